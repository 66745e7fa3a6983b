"""Instructions to steps: each becomes a function of the threads that run it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tests.cuda.ptx_interpreter.faults import PtxFault, UnknownInstructionError
from tests.cuda.ptx_interpreter.instructions.conversions import second_result
from tests.cuda.ptx_interpreter.instructions.operation import Operation, operation_of
from tests.cuda.ptx_interpreter.machine import Block, Frame, Machine, Step, Waiting
from tests.cuda.ptx_interpreter.syntax import (
    Function,
    Immediate,
    Instruction,
    Negated,
    Pair,
    Register,
    Symbol,
)
from tests.cuda.ptx_interpreter.types import PRED, PtxType

if TYPE_CHECKING:
    from collections.abc import Sequence

Reader = Callable[[Any], Any]
Writer = Callable[[Any, Any], None]
Made = Step | Waiting | None
_MAKERS: Final[dict[str, Callable[[Builder, Instruction], Made]]] = {}
_ENDS: Final[dict[str, Callable[[Builder, Instruction], Step]]] = {}


def makes(*names: str) -> Callable[[Callable[[Builder, Instruction], Made]], Any]:
    """Registers what makes the step of an instruction, or what threads wait at; None for nothing."""

    def add(maker: Callable[[Builder, Instruction], Made]) -> Any:
        _MAKERS.update(dict.fromkeys(names, maker))
        return maker

    return add


def ends(*names: str) -> Callable[[Callable[[Builder, Instruction], Step]], Any]:
    """Registers what makes the end of a basic block."""

    def add(maker: Callable[[Builder, Instruction], Step]) -> Any:
        _ENDS.update(dict.fromkeys(names, maker))
        return maker

    return add


def build(machine: Machine) -> None:
    """Makes the frames and the basic blocks of all functions."""
    from tests.cuda.ptx_interpreter.instructions import control, integers, together, transfers  # noqa: F401 - register

    for function in machine.program.functions.values():
        machine.frames[function.name] = _frame(machine, function)
    for frame in machine.frames.values():
        Builder(machine, frame).build()


def _frame(machine: Machine, function: Function) -> Frame:
    count, garbage = machine.count, machine.order.garbage
    registers = {
        name: np.full(count, garbage & 1, bool)
        if type_ is PRED
        else np.full(count * type_.size, garbage, np.uint8).view(type_.raw)
        for name, type_ in function.registers.items()
    }
    variables = [each for each in function.variables.values() if each.space == "param"]
    variables += [*function.parameters, *([function.returned] if function.returned else [])]
    parameters = {each.name: np.full((count, each.size), garbage, np.uint8) for each in variables}
    offsets, size = dict[str, int](), 0
    for each in function.variables.values():
        if each.space == "local":
            offsets[each.name] = size = -(-size // each.align) * each.align
            size += each.size
    none = np.zeros(count, np.int64)
    return Frame(function, 0, registers, np.zeros(count, bool), parameters, offsets, size, none, none.copy())


class Builder:
    """Of the blocks of one function."""

    def __init__(self, machine: Machine, frame: Frame) -> None:
        self.machine, self.frame, self.function = machine, frame, frame.function
        self.labels: dict[str, int] = {}

    def build(self) -> None:
        """Appends the blocks."""
        self.frame.first = len(self.machine.blocks)
        starts: dict[int, list[str]] = {}
        for label, number in self.function.labels.items():
            starts.setdefault(number, []).append(label)
        block = self.new_block()
        for number, instruction in enumerate(self.function.instructions):
            if number in starts:
                block = self._next(block)
                self.labels.update(dict.fromkeys(starts[number], block.number))
            block = self._add(block, instruction)
        last = len(self.function.instructions)
        if last in starts:
            block = self._next(block)
            self.labels.update(dict.fromkeys(starts[last], block.number))
        block.end = self._fell_off

    def _fell_off(self, threads: Any) -> None:
        raise PtxFault(f"thread {int(threads[0])} runs beyond the end of {self.function.name}")

    def new_block(self) -> Block:
        self.machine.blocks.append(Block(len(self.machine.blocks)))
        return self.machine.blocks[-1]

    def _next(self, block: Block) -> Block:
        """The block after one, which goes on there unless it has an end."""
        if not block.steps and block.end is None and block.waiting is None and block.number == self.frame.first:
            return block
        following = self.new_block()
        if block.end is None and block.waiting is None:
            block.end = self.go_to(following.number)
        return following

    def _add(self, block: Block, instruction: Instruction) -> Block:
        """Adds an instruction to a block; the block to go on with."""
        name = instruction.opcode.partition(".")[0]
        if name in _ENDS:
            end = _ENDS[name](self, instruction)
            block.end = self._guarded_end(instruction, end, len(self.machine.blocks))
            return self.new_block()
        made = self.make(name, instruction)
        if isinstance(made, Waiting):
            place = self.new_block()
            place.waiting = made
            block.end = self._guarded_end(instruction, self.go_to(place.number), place.number + 1)
            return self.new_block()
        if made is not None:
            block.steps.append((self._guarded(instruction, made), instruction))
        return block

    def make(self, name: str, instruction: Instruction) -> Made:
        operation = operation_of(instruction.opcode)
        if operation is not None:
            return self._computing(instruction, operation)
        if name not in _MAKERS:
            raise UnknownInstructionError(f"the interpreter does not know {instruction.opcode}")
        return _MAKERS[name](self, instruction)

    # --- guards -------------------------------------------------------------------------------------------------------

    def _guarded(self, instruction: Instruction, step: Step) -> Step:
        if instruction.guard is None:
            return step
        holds = self.read(instruction.guard, PRED)

        def guarded(threads: Any) -> None:
            chosen = threads[holds(threads)]
            if chosen.size:
                step(chosen)

        return guarded

    def _guarded_end(self, instruction: Instruction, end: Step, following: int) -> Step:
        if instruction.guard is None:
            return end
        holds, machine = self.read(instruction.guard, PRED), self.machine

        def guarded(threads: Any) -> None:
            taken = holds(threads)
            machine.place[threads[~taken]] = following
            if taken.any():
                end(threads[taken])

        return guarded

    def go_to(self, number: int) -> Step:
        machine = self.machine

        def go(threads: Any) -> None:
            machine.place[threads] = number

        return go

    # --- operands -----------------------------------------------------------------------------------------------------

    def read(self, operand: Any, type_: PtxType, *, cut: bool = False) -> Reader:
        """A function from threads to an array of the type.

        Args:
            cut: whether a register may be wider than the type; else it must be as wide.
        """
        match operand:
            case Negated(register):
                inner = self.read(register, type_)
                return lambda threads: ~inner(threads)
            case Register(name) if name in self.frame.registers:
                return self._read_register(name, type_, cut=cut)
            case Register(name) if name in self.machine.special:
                values = self.machine.special[name].astype(type_.raw).view(type_.dtype)
                return lambda threads: values[threads]
            case Immediate():
                constant = _constant(operand, type_)
                return lambda threads: constant
            case Symbol(name):
                return self._read_address(name, type_)
        raise UnknownInstructionError(f"the interpreter does not know the operand {operand}")

    def _read_register(self, name: str, type_: PtxType, *, cut: bool) -> Reader:
        values, raw, dtype = self.frame.registers[name], type_.raw, type_.dtype
        declared = self.function.registers[name]
        if not _fits(declared, type_, wider=cut):
            raise PtxFault(f"{name} of type {declared.name} is read as {type_.name}")
        if declared.bits > type_.bits:
            return lambda threads: values[threads].astype(raw).view(dtype)
        return lambda threads: values[threads].view(dtype)

    def _read_address(self, name: str, type_: PtxType) -> Reader:
        if type_.bits != 64:
            raise PtxFault(f"the address of {name} is read as {type_.name}")
        if name in self.frame.offsets:
            offset, start, address = self.frame.offsets[name], self.frame.start, self.machine.memory.local_address
            return lambda threads: address(start[threads] + offset).astype(np.uint64).view(type_.dtype)
        found = self.machine.memory.address_of(name)
        if found is None:
            raise UnknownInstructionError(f"the interpreter does not know the address of {name}")
        constant = np.array([found], np.uint64).view(type_.dtype)
        return lambda threads: constant

    def write(self, operand: Any, type_: PtxType, *, extends: bool = False) -> Writer:
        """A function that puts an array of the type into a register.

        Args:
            extends: whether the register may be wider than the type; else it must be as wide.
        """
        match operand:
            case Symbol("_"):
                return lambda threads, values: None
            case Register(name) if name in self.frame.registers:
                registers, declared = self.frame.registers[name], self.function.registers[name]
            case _:
                raise PtxFault(f"{operand} cannot be written to")
        if not _fits(declared, type_, wider=extends):
            raise PtxFault(f"{name} of type {declared.name} gets a {type_.name}")
        dtype, raw = type_.dtype, type_.raw
        if declared.bits == type_.bits:

            def put(threads: Any, values: Any) -> None:
                assert values.dtype == dtype, (values.dtype, dtype)
                registers[threads] = values.view(raw)

            return put
        wider = np.dtype(f"i{declared.size}") if type_.is_signed else declared.raw

        def extend(threads: Any, values: Any) -> None:
            assert values.dtype == dtype, (values.dtype, dtype)
            registers[threads] = (values if type_.is_signed else values.view(raw)).astype(wider).view(declared.raw)

        return extend

    # --- what only computes -------------------------------------------------------------------------------------------

    def _computing(self, instruction: Instruction, operation: Operation) -> Step:
        result, *operands = instruction.operands
        if isinstance(result, Pair):
            first = self._computing_one(result.parts[0], operands, operation)
            second = self._computing_one(result.parts[1], operands, second_result(instruction.opcode))
            return lambda threads: (first(threads), second(threads))[0]
        return self._computing_one(result, operands, operation)

    def _computing_one(self, result: Any, operands: Sequence[Any], operation: Operation) -> Step:
        if len(operands) != len(operation.operands):
            raise UnknownInstructionError(f"{len(operation.operands)} operands are known, {len(operands)} are given")
        types, loose = operation.operands, operation.any_width
        reads = [self.read(each, type_, cut=loose) for each, type_ in zip(operands, types, strict=True)]
        write = self.write(result, operation.results[0], extends=loose)
        function, carry = operation.function, self.frame.carry
        if operation.takes_carry:
            reads.append(lambda threads: carry[threads])
        if operation.gives_carry:

            def compute_both(threads: Any) -> None:
                found, out = function(*(read(threads) for read in reads))
                write(threads, found)
                carry[threads] = out

            return compute_both
        return lambda threads: write(threads, function(*(read(threads) for read in reads)))


def _fits(declared: PtxType, type_: PtxType, *, wider: bool) -> bool:
    """Whether a register can hold a value. Bytes are in registers of 16 bits, or wider ones."""
    if declared is PRED or type_ is PRED:
        return declared is type_
    return declared.bits == type_.bits or (wider and declared.bits > type_.bits)


def _constant(operand: Immediate, type_: PtxType) -> Any:
    if type_ is PRED:
        return np.array([bool(operand.value)])
    if not operand.float_bits:
        if type_.is_float:
            raise PtxFault(f"the integer {operand.value} stands for a number of type {type_.name}")
        return np.array([operand.value % (1 << type_.bits)], np.uint64).astype(type_.raw).view(type_.dtype)
    if operand.float_bits == type_.bits:
        return np.array([operand.value], np.uint64).astype(type_.raw).view(type_.dtype)
    if not type_.is_float:
        raise PtxFault(f"a number of {operand.float_bits} bits stands for {type_.name}")
    return np.array([operand.number], type_.dtype)
