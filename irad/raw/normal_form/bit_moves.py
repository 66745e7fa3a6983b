"""Numbers and pointers that LLVM moves about as integers get their type back.

Input   a module in normal form.
Output  whether anything was changed; the module is rewritten in place.
Method  loads, phis, selects and freezes of integers of 16, 32 or 64 bits that hand a value on to each other are a
        group. A group moves numbers, or pointers, if one comes in or goes out by a cast, or if TBAA says that memory
        which the group reads or writes holds them. Then the whole group gets that type; casts stand where integers meet
        it.
Why     a derivative follows numbers and pointers, not bits; `irad.passes.prepare.retype` knows only groups that touch
        memory known to hold numbers.

    %b = ptrtoint ptr %p to i64
    %m = phi i64 [ 0, %entry ], [ %b, %loop ]        %m = phi ptr [ null, %entry ], [ %p, %loop ]
    store i64 %m, ptr %q                             store ptr %m, ptr %q
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Cast, Freeze, Instruction, Load, Phi, Select, Store, replace_operand, replace_uses
from irad.ir.module import Function, Module
from irad.ir.types import FloatType, IntType, PointerType, Type
from irad.ir.values import ConstantInt, TrackedValue, Value
from irad.ir.worklist import reachable
from irad.passes.prepare.retype import converted, moved_values
from irad.raw.normal_form.replacement import kept_metadata
from irad.raw.tbaa import Tbaa

_FLOAT_OF_BITS: Final = {64: types.DOUBLE, 32: types.FLOAT, 16: types.HALF}


def restore_types(module: Module) -> bool:
    """Rewrites every function."""
    tbaa = Tbaa(module)
    changed = [_restore(function, tbaa) for function in module.defined_functions()]
    return any(changed)


def _restore(function: Function, tbaa: Tbaa) -> bool:
    changed = False
    seen: set[Instruction] = set()
    for inst in list(function.instructions()):
        if _is_member(inst) and inst not in seen:
            group = _group(inst)
            seen.update(group)
            kind = _kind_of(group, tbaa)
            if kind is not None:
                _convert(group, kind)
                changed = True
    for inst in list(function.instructions()):
        if isinstance(inst, Store) and (source := _uncast(inst.operands[0])) is not None:
            inst.set_operand(0, source)
            changed = True
    return changed


def _is_member(value: Value) -> bool:
    if isinstance(value, Load) and (value.volatile or value.ordering is not None):
        return False
    is_wide = isinstance(value.type, IntType) and value.type.bits in _FLOAT_OF_BITS
    return is_wide and isinstance(value, Load | Phi | Select | Freeze)


def _group(start: Instruction) -> dict[Instruction, None]:
    def neighbours(inst: Instruction) -> Iterator[Instruction]:
        around = (*_moved(inst), *inst.users)
        return (v for v in around if isinstance(v, Instruction) and _is_member(v) and _hands_on(inst, v))

    return dict.fromkeys(reachable([start], neighbours))


def _hands_on(a: Instruction, b: Instruction) -> bool:
    """True if one of two members is a value that the other one moves, not a condition or an address."""
    return b in _moved(a) or a in _moved(b)


def _moved(inst: Instruction) -> list[Value]:
    return moved_values(inst) or []


def _kind_of(group: dict[Instruction, None], tbaa: Tbaa) -> Type | None:
    """Type that a group moves, if all evidence agrees; None: integers, as far as is known."""
    found = {kind for inst in group for kind in _evidence(inst, tbaa)}
    (width,) = {inst.type for inst in group}
    assert isinstance(width, IntType)
    fitting = {kind for kind in found if kind is types.PTR or kind is _FLOAT_OF_BITS[width.bits]}
    return fitting.pop() if len(fitting) == 1 else None


def _evidence(inst: Instruction, tbaa: Tbaa) -> Iterator[Type]:
    if isinstance(inst, Load) and (told := tbaa.type_of(inst)) is not None:
        yield told
    for value in _moved(inst):
        if (source := _uncast(value)) is not None:
            yield source.type
    for user in inst.users:
        match user:
            case Cast(opcode="inttoptr" | "bitcast") if isinstance(user.type, PointerType | FloatType):
                yield user.type
            case Store() if user.operands[0] is inst and (told := tbaa.type_of(user)) is not None:
                yield told
            case _:
                pass


def _uncast(value: Value) -> Value | None:
    """The number or pointer whose bits an integer is."""
    match value:
        case Cast(opcode="ptrtoint", operands=[source]) if value.type is types.I64 and source.type is types.PTR:
            return source
        case Cast(opcode="bitcast", operands=[source]) if source.type in (types.DOUBLE, types.FLOAT, types.HALF):
            return source
        case _:
            return None


# ------------------------------------------------------------------------------------------------ rewriting


def _convert(group: dict[Instruction, None], kind: Type) -> None:
    """Gives all of a group another type."""
    width = next(iter(group)).type
    for inst in group:
        inst.type = kind
        if inst.metadata and isinstance(inst, Load):
            # What else LLVM notes on a load, such as a range, holds of integers only.
            inst.metadata = kept_metadata(inst, "dbg", "tbaa")
    for inst in group:
        first = 1 if isinstance(inst, Select) else 0
        for index, value in enumerate(inst.operands):
            if index >= first and not isinstance(inst, Load) and value not in group:
                replace_operand(inst, index, _as_kind(value, kind, inst, index))
    for inst in group:
        _serve_users(inst, group, kind, width)


def _as_kind(value: Value, kind: Type, user: Instruction, index: int) -> Value:
    """A value from outside as the type of the group."""
    source = _uncast(value)
    if source is not None and source.type is kind:
        return source
    plain = converted(value, kind) if not (kind is types.PTR and _is_number(value)) else value
    if plain.type is kind:
        return plain
    at = user.blocks[index].terminator if isinstance(user, Phi) else user
    build = Builder.before(at)
    return build.cast("inttoptr" if kind is types.PTR else "bitcast", value, kind)


def _is_number(value: Value) -> bool:
    return isinstance(value, ConstantInt) and value.value != 0


def _serve_users(inst: Instruction, group: dict[Instruction, None], kind: Type, width: Type) -> None:
    """Users of the bits get the value itself if they turned the bits into it, otherwise a cast."""
    bits: TrackedValue | None = None
    for user in list(inst.users):
        if user in group and inst in _moved(user):
            continue
        if isinstance(user, Store) and user.operands[0] is inst and user.operands[1] is not inst:
            continue
        if isinstance(user, Cast) and user.type is kind and user.opcode in ("inttoptr", "bitcast"):
            replace_uses(user, inst)
            user.erase()
            continue
        if bits is None:
            bits = _bits_of(inst, kind, width)
        for index, value in enumerate(user.operands):
            if value is inst and user is not bits:
                user.set_operand(index, bits)


def _bits_of(inst: Instruction, kind: Type, width: Type) -> TrackedValue:
    block = inst.block
    assert block is not None
    if isinstance(inst, Phi):
        build = Builder.before(next(i for i in block.instructions if not isinstance(i, Phi)))
    else:
        build = Builder.after(inst)
    made = build.cast("ptrtoint" if kind is types.PTR else "bitcast", inst, width)
    assert isinstance(made, TrackedValue)
    return made
