"""Active values that leave a function through a global variable, where another may read them: refused.

Input   the analysed functions of a derivative.
Output  errors.
Method  the engine analyses one function at a time, and follows memory to the next through arguments and results
        only. So a number that depends on an active input, or a pointer to active memory, must not get into a variable
        that other code of the program reads, nor into memory of unknown origin, which such variables lead to. What only
        the function itself reads, the analysis has seen; what is never read (a log) may be stored.

    static double sum;
    void add(double v) { sum += v; ... add(v - 1); }        refused, if another function of the program reads sum
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from irad.errors import IradError, UnsupportedError
from irad.ir.instructions import (
    CallSite,
    Cast,
    Freeze,
    GetElementPtr,
    Instruction,
    Load,
    Phi,
    Select,
    Store,
    Unreachable,
)
from irad.ir.module import Function
from irad.ir.types import IntType
from irad.ir.values import GlobalVariable, Value
from irad.ir.worklist import Worklist
from irad.passes.analysis.callees import Callee, Pointer, Unknown, resolve
from irad.passes.generated import GeneratedPair
from irad.passes.memory.objects import MemoryObject, ObjectKind
from irad.passes.unit import Unit
from irad.raw.named import named_by
from irad.ruleset.interface import CallRule

_WHY: Final = "irad follows memory from function to function through arguments and results only"


def escapes(pairs: Sequence[GeneratedPair]) -> Iterator[IradError]:
    """The errors of all functions of a derivative."""
    generated = {function for pair in pairs for function in pair.pair.functions.values()}
    module = pairs[0].unit.module
    program = _Program.of([f for f in module.defined_functions() if f not in generated], [pair.unit for pair in pairs])
    for pair in pairs:
        if not pair.unit.everything:
            yield from _errors(pair.unit, program)


@dataclass(frozen=True, slots=True)
class _Program:
    """Who may read and write a global variable.

    Attributes:
        functions: the primal functions.
        users: of each variable, the functions that name it.
        units: of each function, its analyses.
    """

    functions: Sequence[Function]
    users: dict[Value, set[Function]]
    units: dict[Function, Unit]

    @staticmethod
    def of(functions: Sequence[Function], units: Sequence[Unit]) -> _Program:
        users: dict[Value, set[Function]] = {}
        for function in functions:
            for inst in function.instructions():
                for operand in inst.operands:
                    for variable in _variables(operand):
                        users.setdefault(variable, set()).add(function)
        return _Program(functions, users, {unit.function: unit for unit in units})

    def may_write(self, callee: Callee, number: int, seen: frozenset[tuple[Function, int]] = frozenset()) -> bool:
        """Whether a callee may write to memory that an argument leads to."""
        if not isinstance(callee, Function) or callee not in self.units:
            return True
        if (callee, number) in seen:
            return False
        unit, seen = self.units[callee], seen | {(callee, number)}
        param = callee.params[number]
        given = sum(1 << item.index for item in unit.points_to.objects if item.value is param)
        return any(self.writes(unit, inst, given, seen) for inst in callee.instructions())

    def writes(self, unit: Unit, inst: Instruction, given: int, seen: frozenset[tuple[Function, int]]) -> bool:
        """Whether an instruction may write to one of the objects ``given``."""
        points_to = unit.points_to
        match inst:
            case CallSite() if unit.mod_ref.of(inst).is_opaque:
                callee = unit.mod_ref.callee(inst)
                return any(
                    points_to.reachable(points_to.mask(argument)) & given and self.may_write(callee, index, seen)
                    for index, argument in enumerate(inst.arguments)
                )
            case _:
                return bool(unit.mod_ref.of(inst).writes & given)

    def others_read(self, variable: Value | None, function: Function, unit: Unit) -> bool:
        """Whether code other than a function itself may read a variable; None: memory of unknown origin."""
        if self.calls_external_code(unit):
            return True
        if variable is not None:
            return bool(self.users.get(variable, set()) - {function})
        others = (each for each in self.functions if each is not function)
        return any(isinstance(inst, Load) for each in others for inst in each.instructions())

    def written_globals(self, start: Function) -> Iterator[tuple[Value | None, Function]]:
        """The variables that a function, or one that it calls, stores numbers or pointers in, by their names."""
        pending, seen = [start], {start}
        for function in pending:
            for inst in function.instructions():
                if isinstance(inst, Store) and not isinstance(inst.operands[0].type, IntType):
                    yield from ((variable, function) for variable in _global_roots(inst.operands[1]))
                if isinstance(inst, CallSite) and isinstance(inst.callee, Function) and inst.callee not in seen:
                    seen.add(inst.callee)
                    pending.append(inst.callee)

    def calls_external_code(self, unit: Unit) -> bool:
        """Whether the program calls code that is not in it and has no rule, and goes on afterwards."""
        return any(
            isinstance(inst, CallSite)
            and isinstance(resolve(inst, unit.registry), Unknown | Pointer)
            and not isinstance(block.terminator, Unreachable)
            for function in self.functions
            for block in function.blocks
            for inst in block.instructions
        )


def _variables(value: Value) -> Iterator[GlobalVariable]:
    """The global variables that an operand names."""
    return (each for each in named_by(value) if isinstance(each, GlobalVariable))


def _global_roots(pointer: Value) -> Iterator[Value | None]:
    """The variables that an address is in; None: it was loaded from one."""
    pending = Worklist([pointer])
    for value in pending:
        match value:
            case GetElementPtr(operands=[base, *_]) | Cast(operands=[base]) | Freeze(operands=[base]):
                pending.add(base)
            case Phi(operands=parts) | Select(operands=[_, *parts]):
                pending.add(*parts)
            case Load(operands=[source]):
                if any(True for _ in _global_roots(source)):
                    yield None
            case _:
                yield from (each for each in _variables(value) if not _is_constant(each))


def _is_constant(variable: Value) -> bool:
    return isinstance(variable, GlobalVariable) and variable.constant


def _errors(unit: Unit, program: _Program) -> Iterator[IradError]:
    yield from _stored_errors(unit, program)
    for inst in _live(unit):
        match inst:
            case CallSite() if isinstance(inst.callee, Function) and not unit.activity.takes_part(inst):
                if any(_is_active(unit, argument) for argument in inst.arguments):
                    yield from _call_errors(unit, inst, inst.callee, program)
            case _:
                pass


def _call_errors(unit: Unit, call: CallSite, callee: Function, program: _Program) -> Iterator[IradError]:
    """A callee that has no derivative, for nothing active comes out of it by the ways that the engine follows."""
    if isinstance(resolve(call, unit.registry), Function):
        for variable, function in program.written_globals(callee):
            if program.others_read(variable, function, unit):
                yield _error(variable, call)
                return


def _stored_errors(unit: Unit, program: _Program) -> Iterator[IradError]:
    for item in unit.points_to.objects:
        if not _is_shared(item) or (item.kind is ObjectKind.GLOBAL and item.value not in program.users):
            continue
        bit = 1 << item.index
        is_unknown = item.kind is ObjectKind.UNKNOWN  # what callees store there is found with them
        insts = (inst for inst in _live(unit) if not (is_unknown and _has_body(unit, inst)))
        stored = next((inst for inst in insts if _brings(unit, inst, bit, program)), None)
        is_active = unit.activity.active_objects & unit.activity.shadowed & bit
        variable = item.value if item.kind is ObjectKind.GLOBAL else None
        if stored is not None and (is_active or program.others_read(variable, unit.function, unit)):
            yield _error(variable, stored)


def _live(unit: Unit) -> Iterator[Instruction]:
    for block in unit.cfg.order:
        yield from block.instructions if block in unit.live else ()


def _has_body(unit: Unit, inst: Instruction) -> bool:
    return isinstance(inst, CallSite) and isinstance(resolve(inst, unit.registry), Function | Pointer)


def _is_shared(item: MemoryObject) -> bool:
    """Whether an object is, or may be, a variable that changes."""
    match item.kind:
        case ObjectKind.UNKNOWN:
            return True
        case ObjectKind.GLOBAL:
            return item.value is not None and not isinstance(item.value, Function) and not _is_constant(item.value)
        case ObjectKind.ARGUMENT | ObjectKind.REACHABLE | ObjectKind.LOCAL | ObjectKind.ALLOCATION | ObjectKind.HEADER:
            return False


def _brings(unit: Unit, inst: Instruction, bit: int, program: _Program) -> bool:
    """Whether an instruction may bring something active into an object."""
    points_to = unit.points_to
    match inst:
        case Store(operands=[value, pointer]):
            return bool(points_to.mask(pointer) & bit) and _is_active(unit, value)
        case CallSite():
            callee, access = unit.mod_ref.callee(inst), unit.mod_ref.of(inst)
            if isinstance(callee, CallRule):
                return bool(access.writes & bit) and any(_is_active(unit, inst.arguments[i]) for i in access.sources)
            if not isinstance(callee, Function | Pointer) or not access.is_opaque:
                return False
            written = any(
                points_to.reachable(points_to.mask(argument)) & bit and program.may_write(callee, index)
                for index, argument in enumerate(inst.arguments)
            )
            return written and any(_is_active(unit, argument) for argument in inst.arguments)
        case _:
            return False


def _is_active(unit: Unit, value: Value) -> bool:
    """Whether a value depends on an active input, or leads to memory that does."""
    reached = unit.points_to.reachable(unit.points_to.mask(value))
    return value in unit.activity.varied or bool(reached & (unit.activity.varied_objects | unit.activity.shadowed))


def _error(variable: Value | None, inst: Instruction) -> IradError:
    name = variable.name if variable is not None else None
    error = UnsupportedError(
        f"an active value is stored in {f'the global variable {name}' if name else 'memory of unknown origin'}, "
        "from where irad cannot follow it",
        "pass it as an argument, or return it",
        _WHY,
    )
    error.instruction = inst
    return error
