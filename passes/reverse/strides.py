"""Growth of integers and addresses of a reversed loop from one iteration to the next.

Input   the blocks of a loop of a reverse sweep, the slot of its iteration number.
Output  `Strides`: by how much a value grows with the iteration, and its value in a given iteration, as code elsewhere.
Method  sums, and products with what does not vary. What is loaded does not vary if its address does not, and the loop
        leaves it alone: the tape, memory of the primal, slots that it does not store to. A choice that differs in one
        iteration only, as of a neighbour across a periodic border, counts as what it is in all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import Final

from irad.ir import instructions as ir
from irad.ir.builder import Builder
from irad.ir.clone import clone_instruction
from irad.ir.folding import signed
from irad.ir.instructions import Instruction
from irad.ir.module import Block, Function
from irad.ir.types import I64, size_of
from irad.ir.values import ConstantInt, Value, const_int
from irad.passes.reverse.sweep import Sweep
from irad.records import dataclass

LINEAR: Final = "linear"
"""The stride of what grows by the same in each iteration, by a number that is known when it runs."""

Stride = int | str | None


@dataclass(eq=False, slots=True)
class Strides:
    """Answers for one loop."""

    counter: ir.Alloca
    blocks: tuple[Block, ...]
    sweep: Sweep
    allows_exceptions: bool = False
    known: dict[Value, Stride] = field(default_factory=dict)
    usual: dict[Value, tuple[ir.ICmp, Value]] = field(default_factory=dict)
    written: frozenset[Value] = field(init=False)
    unchanged: frozenset[str] = field(init=False)

    def __post_init__(self) -> None:
        insts = [inst for block in self.blocks for inst in block.instructions]
        self.written = frozenset(inst.operands[1] for inst in insts if isinstance(inst, ir.Store))
        shadows = (inst for inst in insts if isinstance(inst, ir.Store) and not isinstance(inst.operands[1], ir.Alloca))
        kinds = [self.sweep.scopes.kind_of(inst.metadata) for inst in shadows]
        # A store without a scope may go anywhere.
        keeps_primal = all(kind is not None and kind[0] != "primal" for kind in kinds)
        self.unchanged = frozenset(("tape", "primal") if keeps_primal else ("tape",))

    def of(self, value: Value) -> Stride:
        """By how much a value grows with the iteration; None where that varies, or is not known."""
        if not self.is_inside(value):
            return 0
        if value not in self.known:
            self.known[value] = self._find(value)
        return self.known[value]

    def is_inside(self, value: Value) -> bool:
        """True if the loop computes a value."""
        return isinstance(value, Instruction) and value.block in self.blocks

    def _find(self, value: Value) -> Stride:
        match value:
            case ir.Load(operands=[pointer]) if pointer is self.counter:
                return 1
            case ir.Load(operands=[pointer]):
                return 0 if value.is_plain and self.of(pointer) == 0 and self._stays(value, pointer) else None
            case ir.Binary(opcode="add" | "sub" as opcode, operands=[a, b]) if value.type is I64:
                return _sum(self.of(a), self.of(b), 1 if opcode == "add" else -1)
            case ir.Binary(opcode="mul", operands=[a, b]) if value.type is I64:
                return self._product(a, b)
            case ir.GetElementPtr(operands=[base, index], source_type=type_) if index.type is I64:
                return _sum(self.of(base), self.of(index), size_of(type_))
            case ir.Binary() | ir.Cast() | ir.Select() | ir.ICmp() | ir.GetElementPtr():
                if all(self.of(each) == 0 for each in value.operands):
                    return 0
                return self._with_exception(value) if isinstance(value, ir.Select) else None
            case ir.CallSite(callee=Function(name=str(name))) if name.startswith(("llvm.smax.", "llvm.smin.")):
                return 0 if all(self.of(each) == 0 for each in value.arguments) else None
            case _:
                return None

    def _with_exception(self, choice: ir.Select) -> Stride:
        """That of a choice in all iterations but the one in which two numbers are equal."""
        match choice.operands:
            case [ir.ICmp(predicate="eq" | "ne", operands=[a, b]) as test, if_true, if_false]:
                steps = {self.of(a), self.of(b)}
                usual = if_false if test.predicate == "eq" else if_true
            case _:
                return None
        # With a step of one the two numbers are equal in at most one iteration; their distance says in which.
        if not self.allows_exceptions or a.type is not I64 or steps not in ({0, 1}, {0, -1}):
            return None
        stride = self.of(usual)
        if stride is not None:
            self.usual[choice] = test, usual
        return stride

    def without_constant(self, number: Value) -> tuple[Value, int]:
        """An integer of the loop as another one and a constant that is added to it."""
        constant = 0
        while self.is_inside(number):
            match number:
                case ir.Select() if number in self.usual:
                    number = self.usual[number][1]
                case ir.Binary(opcode="add", operands=[rest, ConstantInt() as more] | [ConstantInt() as more, rest]):
                    number, constant = rest, constant + signed(more)
                case _:
                    break
        return number, constant

    def exceptions(self, build: Builder) -> Iterator[Value]:
        """Numbers of iterations, perhaps of none that runs, in which a choice is not what it usually is."""
        first = dict[Value, Value]()
        for test in dict.fromkeys(test for test, _ in self.usual.values()):
            one, other = (self.emit(build, each, const_int(I64, 0), first) for each in test.operands)
            moving, fixed, step = one, other, self.of(test.operands[0])
            if step == 0:
                moving, fixed, step = other, one, self.of(test.operands[1])
            yield build.sub(fixed, moving) if step == 1 else build.sub(moving, fixed)

    def _stays(self, load: ir.Load, pointer: Value) -> bool:
        if isinstance(pointer, ir.Alloca):
            return pointer not in self.written
        kind = self.sweep.scopes.kind_of(load.metadata)
        return kind is not None and kind[0] in self.unchanged

    def _product(self, a: Value, b: Value) -> Stride:
        one, other = self.of(a), self.of(b)
        if one is None or other is None or (one != 0 and other != 0):
            return None
        if one == 0 and other == 0:
            return 0
        stride, factor = (one, b) if other == 0 else (other, a)
        if isinstance(stride, int) and isinstance(factor, ConstantInt):
            return _limited(stride * signed(factor))
        return LINEAR

    def emit(self, build: Builder, value: Value, iteration: Value, made: dict[Value, Value]) -> Value:
        """A linear value in a given iteration, as code elsewhere.

        Args:
            build: where.
            value: value of the loop.
            iteration: its number.
            made: values made there for that iteration.
        """
        pending = [value]
        while pending:
            needed = pending[-1]
            missing = [each for each in self._operands(needed) if self.is_inside(each) and each not in made]
            if needed in made or not self.is_inside(needed):
                pending.pop()
            elif missing:
                pending += missing
            else:
                made[needed] = self._made(build, needed, iteration, made)
        return made.get(value, value)

    def _made(self, build: Builder, value: Value, iteration: Value, made: dict[Value, Value]) -> Value:
        if self._is_counter(value):
            return iteration
        if value in self.usual:
            _, usual = self.usual[value]
            return made.get(usual, usual)
        return copied(build, value, made)

    def _operands(self, value: Value) -> list[Value]:
        if value in self.usual:
            return [self.usual[value][1]]
        return [] if self._is_counter(value) or not isinstance(value, Instruction) else value.operands

    def _is_counter(self, value: Value) -> bool:
        return isinstance(value, ir.Load) and value.operands[0] is self.counter


def copied(build: Builder, value: Value, made: dict[Value, Value]) -> Value:
    """A copy that promises nothing: that iteration need not run."""
    assert isinstance(value, Instruction)
    copy = clone_instruction(value, made)
    if isinstance(copy, ir.Binary | ir.Cast | ir.GetElementPtr):
        copy.flags = ()
    build.insert(copy)
    return copy


def _sum(one: Stride, other: Stride, factor: int) -> Stride:
    if one is None or other is None:
        return None
    if isinstance(one, int) and isinstance(other, int):
        return _limited(one + factor * other)
    return LINEAR


def _limited(stride: int) -> Stride:
    """Nothing that is reached in memory has a stride beyond this."""
    return stride if abs(stride) < 1 << 40 else None
