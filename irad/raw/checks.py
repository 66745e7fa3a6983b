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
from irad.ir.instructions import Binary, CallSite, Cast, Freeze, IndirectBr, Instruction, Load, Phi, Select, Store
from irad.ir.module import Function, Module
from irad.ir.types import IntType, address_spaces
from irad.ir.values import ConstantInt, Poison, Undef, Value
from irad.passes.generated import GeneratedPair
from irad.passes.memory.objects import ObjectKind
from irad.passes.prepare.retype import copying_group
from irad.passes.unit import Unit
from irad.raw.escapes import escapes
from irad.raw.tbaa import Tbaa

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
    """Whether what is loaded is an integer that has room for a number or an address."""
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
    """Whether an integer that is stored beside shadows may be the address of memory that has one."""
    if not (unit.activity.has_shadow(value) and unit.activity.has_shadow(pointer)):
        return False
    return _makes_pointers(unit.function) or unit.memory_types.is_pointer_at(pointer) or not _is_number(value)


def _makes_pointers(function: Function) -> bool:
    """Whether any function of the program makes a pointer of an integer."""
    assert function.module is not None
    return any(
        isinstance(inst, Cast) and inst.opcode == "inttoptr"
        for each in function.module.defined_functions()
        for inst in each.instructions()
    )


def _is_number(value: Value) -> bool:
    """Whether an integer is computed from nothing but constants and loads that are said to be of integers."""
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
    """Whether shadows are of the C heap, as the caller's are, and may be reallocated with the memory."""
    return unit.program.request.mode.is_forward


def _overruns(unit: Unit, call: CallSite) -> bool:
    """Whether a copy may go on behind the one structure that an argument is known to lead to: to what is not known."""
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
    """Whether a copy may pass on active numbers that nothing describes."""
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
    whose = f"behind parameter {name}" if name is not None else "with a derivative"
    return UnsupportedError(
        f"memory {whose} is copied, and nothing shows whether it holds numbers",
        "(a) copy it number by number, (b) compile with optimisation and strict aliasing, so that the types are in the "
        "file, or (c) mark the argument enzyme_const",
        "numbers have derivatives, other bytes do not",
    )
