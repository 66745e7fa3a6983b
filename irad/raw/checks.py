"""Refuses what only raw IR can contain and what would silently lose a derivative.

Input   the normal form of a program (`mark_copies`), later the analysed functions of its derivative (`check_units`).
Output  none; errors.
Method  an integer of four or eight bytes that is only copied may be the bits of a number. Front ends say whether it is
        one, by TBAA tags or, at -O0, by the type of the access; `mark_copies` gives loads without such a statement a
        name that `check_units` knows again. Where such a load, or a raw copy, brings bytes from memory with a
        derivative to memory with one, and nothing else tells what they are, the program is refused. An integer that is
        stored may be an address, unless it is computed from loads that the front end declares to be of integers, in a
        program that makes no pointers from integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from irad.errors import IradError, UnsupportedError, UnsupportedProgram
from irad.ir.instructions import (
    Binary,
    CallSite,
    Cast,
    Freeze,
    GetElementPtr,
    IndirectBr,
    Instruction,
    Load,
    Phi,
    Select,
    Store,
    Unreachable,
)
from irad.ir.module import Function, Module
from irad.ir.types import IntType, address_spaces
from irad.ir.values import ConstantInt, GlobalVariable, Poison, Undef, Value
from irad.ir.worklist import Worklist
from irad.passes.callees import Callee, Pointer, Unknown, resolve
from irad.passes.generated import GeneratedPair
from irad.passes.memory.objects import MemoryObject, ObjectKind
from irad.passes.prepare.retype import copying_group
from irad.passes.unit import Unit
from irad.raw.symbols import named_by
from irad.raw.tbaa import Tbaa
from irad.records import dataclass
from irad.ruleset.interface import CallRule

# Active values that leave a function through a global variable, where another may read them: refused.
#
# Input   the analysed functions of a derivative.
# Output  errors.
# Method  the engine analyses one function at a time, and follows memory to the next through arguments and results only.
#         So a number that depends on an active input, or a pointer to active memory, must not get into a variable that
#         other code of the program reads, nor into memory of unknown origin, which such variables point to. What only
#         the function itself reads, the analysis has seen; what is never read (a log) may be stored.
#
#     static double sum;
#     void add(double v) { sum += v; ... add(v - 1); }        refused, if another function of the program reads sum

_WHY: Final = "irad follows memory from function to function through arguments and results only"


def escapes(pairs: Sequence[GeneratedPair]) -> Iterator[IradError]:
    """The errors of all functions of a derivative."""
    generated = {function for pair in pairs for function in pair.pair.functions.values()}
    module = pairs[0].unit.module
    program = _Program.of([f for f in module.defined_functions() if f not in generated], [pair.unit for pair in pairs])
    for pair in pairs:
        if not pair.unit.everything:
            yield from _escapes(pair.unit, program)


@dataclass(frozen=True, slots=True)
class _Program:
    """Functions that may read and write a global variable.

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
        """True if a callee may write to memory that an argument points to."""
        if not isinstance(callee, Function) or callee not in self.units:
            return True
        if (callee, number) in seen:
            return False
        unit, seen = self.units[callee], seen | {(callee, number)}
        param = callee.params[number]
        given = sum(1 << item.index for item in unit.points_to.objects if item.value is param)
        return any(self.writes(unit, inst, given, seen) for inst in callee.instructions())

    def writes(self, unit: Unit, inst: Instruction, given: int, seen: frozenset[tuple[Function, int]]) -> bool:
        """True if an instruction may write to one of the objects ``given``."""
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
        """True if code other than a function itself may read a variable; None: memory of unknown origin."""
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
        """True if the program calls code that is not in it and has no rule, and goes on afterwards."""
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


def _escapes(unit: Unit, program: _Program) -> Iterator[IradError]:
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
                yield _escape(variable, call)
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
            yield _escape(variable, stored)


def _live(unit: Unit) -> Iterator[Instruction]:
    for block in unit.cfg.order:
        yield from block.instructions if block in unit.live else ()


def _has_body(unit: Unit, inst: Instruction) -> bool:
    return isinstance(inst, CallSite) and isinstance(resolve(inst, unit.registry), Function | Pointer)


def _is_shared(item: MemoryObject) -> bool:
    """True if an object is, or may be, a variable that changes."""
    match item.kind:
        case ObjectKind.UNKNOWN:
            return True
        case ObjectKind.GLOBAL:
            return item.value is not None and not isinstance(item.value, Function) and not _is_constant(item.value)
        case ObjectKind.ARGUMENT | ObjectKind.REACHABLE | ObjectKind.LOCAL | ObjectKind.ALLOCATION | ObjectKind.HEADER:
            return False


def _brings(unit: Unit, inst: Instruction, bit: int, program: _Program) -> bool:
    """True if an instruction may bring something active into an object."""
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
    """True if a value depends on an active input, or points to memory that does."""
    reached = unit.points_to.reachable(unit.points_to.mask(value))
    return value in unit.activity.varied or bool(reached & (unit.activity.varied_objects | unit.activity.shadowed))


def _escape(variable: Value | None, inst: Instruction) -> IradError:
    name = variable.name if variable is not None else None
    error = UnsupportedError(
        f"an active value is stored in {f'the global variable {name}' if name else 'memory of unknown origin'}, "
        "from where irad cannot follow it",
        "pass it as an argument, or return it",
        _WHY,
    )
    error.instruction = inst
    return error


SPELLED: Final = "irad.spelled"  # metadata: the front end spells the type of this access
INTEGER: Final = "irad.integer"  # name: the front end says that this load is of an integer
_COPIED: Final = "irad.copied"
_COPIES: Final = ("llvm.memcpy.", "llvm.memmove.")
_CALLERS: Final = (ObjectKind.ARGUMENT, ObjectKind.REACHABLE, ObjectKind.UNKNOWN)


def check_spaces(module: Module, foreign: frozenset[int]) -> None:
    """Refuses pointers into address spaces of a machine that are not memory like any other.

    Args:
        module: with the functions that are to be differentiated, and those that they call.
        foreign: those address spaces.
    """
    for function in module.defined_functions():
        for inst in function.instructions():
            found = frozenset().union(*(address_spaces(each.type) for each in (inst, *inst.operands))) & foreign
            if found:
                error = UnsupportedError(
                    f"a pointer to address space {min(found)} is used",
                    "(a) read what is there outside the function, and pass it as an argument, or (b) pass an ordinary "
                    "pointer to it",
                    "on this machine such a pointer is relative to a register, or has another size than 64 bits, so "
                    "that no shadow can lie beside it",
                )
                error.instruction = inst
                raise error


def mark_spelled(function: Function) -> None:
    """Marks the accesses of a function that the front end did not optimise: it spells their types as they are.

    LLVM drops the mark where it makes one load of two; the name of a load of an integer stays. Where the addresses of
    blocks are taken, no value gets a name: they may name blocks by number.
    """
    may_name = not any(isinstance(block.terminator, IndirectBr) for block in function.blocks)
    for inst in function.instructions():
        if isinstance(inst, Load | Store):
            inst.metadata[SPELLED] = "!{}"
        if may_name and isinstance(inst, Load) and _is_wide(inst):
            inst.name = INTEGER


def mark_copies(module: Module) -> None:
    """Names the loads that copy bytes of unknown type, and those that are declared to be of integers."""
    tbaa = Tbaa(module)
    for function in module.defined_functions():
        for inst in function.instructions():
            if isinstance(inst, Load) and _is_wide(inst):
                group = copying_group(inst)
                if group is not None and not any(_is_integer(each, tbaa) for each in group):
                    inst.name = _COPIED
                elif _is_integer(inst, tbaa):
                    inst.name = INTEGER


def _is_wide(load: Load) -> bool:
    """True if what is loaded is an integer that has room for a number or an address."""
    return isinstance(load.type, IntType) and load.type.bits >= 32


def _is_integer(inst: Instruction, tbaa: Tbaa) -> bool:
    return (inst.name or "").startswith(INTEGER) or SPELLED in inst.metadata or tbaa.is_integer(inst)


# ------------------------------------------------------------------------------------------------ analysed functions


def check_units(pairs: Sequence[GeneratedPair]) -> None:
    """Raises what is wrong with the functions of a derivative."""
    errors = [error for pair in pairs if not pair.unit.everything for error in _errors(pair.unit)]
    errors.extend(escapes(pairs))
    if errors:
        raise errors[0] if len(errors) == 1 else UnsupportedProgram(errors)


def _errors(unit: Unit) -> Iterator[IradError]:
    for block in unit.cfg.order:
        for inst in block.instructions if block in unit.live else ():
            error = _error(unit, inst)
            if error is not None:
                error.instruction = inst
                yield error


def _error(unit: Unit, inst: Instruction) -> IradError | None:
    match inst:
        case Load() if (inst.name or "").startswith(_COPIED):
            targets = [u.operands[1] for u in copying_group(inst) or () if isinstance(u, Store)]
            if any(_is_unclear(unit, target, inst.operands[0]) for target in targets):
                return _unclear(unit, inst.operands[0])
        case Store(operands=[value, pointer]) if isinstance(value.type, IntType):
            if _hides_address(unit, value, pointer):
                if isinstance(value, Load) and (value.name or "").startswith(_COPIED):
                    return _unclear(unit, value.operands[0])
                return UnsupportedError(
                    "a pointer to active memory is stored as an integer",
                    "store it as a pointer, which irad can follow",
                    "the shadow of a pointer is stored beside it, but nothing shows that an integer is a pointer",
                )
        case CallSite(callee=Function(name=str(name))):
            return _call_error(unit, inst, name)
        case _:
            pass
    return None


def _hides_address(unit: Unit, value: Value, pointer: Value) -> bool:
    """True if an integer that is stored beside shadows may be the address of memory that has one."""
    if not (unit.activity.has_shadow(value) and unit.activity.has_shadow(pointer)):
        return False
    return _makes_pointers(unit.function) or unit.memory_types.is_pointer_at(pointer) or not _is_number(value)


def _makes_pointers(function: Function) -> bool:
    """True if any function of the program makes a pointer of an integer."""
    assert function.module is not None
    return any(
        isinstance(inst, Cast) and inst.opcode == "inttoptr"
        for each in function.module.defined_functions()
        for inst in each.instructions()
    )


def _is_number(value: Value) -> bool:
    """True if an integer is computed from nothing but constants and loads that are said to be of integers."""
    pending, seen = [value], {value}
    for each in pending:
        match each:
            case ConstantInt() | Undef() | Poison():
                continue
            case Load() if (each.name or "").startswith(INTEGER):
                continue
            case Binary() | Phi() | Freeze() | Cast(opcode="zext" | "sext" | "trunc"):
                operands = each.operands
            case Select():
                operands = each.operands[1:]
            case _:
                return False
        new = [operand for operand in operands if operand not in seen]
        seen.update(new)
        pending.extend(new)
    return True


def _call_error(unit: Unit, call: CallSite, name: str) -> IradError | None:
    if name.startswith(_COPIES) and (_is_unclear(unit, *call.arguments[:2]) or _overruns(unit, call)):
        return _unclear(unit, call.arguments[1])
    if name != "realloc" or not unit.activity.has_shadow(call.arguments[0]) or _is_forward(unit):
        return None
    if not any(item.kind in _CALLERS for item in unit.points_to.of(call.arguments[0])):
        return None
    return UnsupportedError(
        "memory whose shadow was made by the caller is reallocated, and irad does not know how large that shadow is",
        "reallocate only memory that the differentiated function has allocated",
        "the shadow must grow like the memory, and only its owner knows how",
    )


def _is_forward(unit: Unit) -> bool:
    """True if shadows are of the C heap, as the caller's are, and may be reallocated with the memory."""
    return unit.program.request.mode.is_forward


def _overruns(unit: Unit, call: CallSite) -> bool:
    """True if a copy may go on after the one structure that an argument is known to point to: to what is not known."""
    into, source, size = call.arguments[:3]
    activity, points_to = unit.activity, unit.points_to
    if not (points_to.mask(source) & activity.varied_objects and points_to.mask(into) & activity.useful_objects):
        return False
    for item in (*points_to.of(into), *points_to.of(source)):
        if item.kind is ObjectKind.ARGUMENT and item.holds is not None and item.holds.single:
            is_within = isinstance(size, ConstantInt) and size.value <= item.holds.stride
            if not is_within and _factor(size) % item.holds.stride != 0:
                return True
    return False


def _factor(size: Value) -> int:
    """A number that a size is certainly a multiple of."""
    match size:
        case ConstantInt(value=value):
            return value
        case Binary(opcode="mul", operands=[a, b]):
            return _factor(a) * _factor(b)
        case Binary(opcode="shl", operands=[a, ConstantInt(value=places)]):
            return _factor(a) << places
        case Cast(opcode="zext" | "sext", operands=[source]):
            return _factor(source)
        case _:
            return 1


def _is_unclear(unit: Unit, into: Value, source: Value) -> bool:
    """True if a copy may pass on active numbers that nothing describes."""
    activity, memory = unit.activity, unit.memory_types
    given, taken = unit.points_to.mask(source), unit.points_to.mask(into)
    if not (given & activity.varied_objects and taken & activity.useful_objects):
        return False
    if memory.holds_floats(given) or memory.holds_floats(taken):
        return False  # the engine knows where, or refuses
    return any(
        item.kind in _CALLERS and memory.layouts[item.index] is None for item in unit.points_to.members(given | taken)
    )


def _unclear(unit: Unit, pointer: Value) -> IradError:
    names = [item.value.name for item in unit.points_to.of(pointer) if item.value is not None]
    name = next((name.removeprefix("arg.") for name in names if name and name.startswith("arg.")), None)
    whose = f"that parameter {name} points to" if name is not None else "with a derivative"
    return UnsupportedError(
        f"memory {whose} is copied, and irad cannot tell whether it holds numbers",
        "(a) copy it number by number, (b) compile with optimisation and strict aliasing, so that the types are in the "
        "file, or (c) mark the argument enzyme_const",
        "numbers have derivatives, other bytes do not",
    )
