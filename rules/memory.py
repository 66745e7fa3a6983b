"""Raw memory: copies and fills.

A copy moves whatever bytes hold. Its adjoint adds the cotangent of the destination to that of the source and clears the
destination, float by float; pointers are copied between the shadows in the forward sweep, like the primal's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.module import Function
from irad.ir.types import PTR, VOID, Type, function_type
from irad.ir.values import ConstantInt, Value, const_float, const_int
from irad.ruleset.interface import AugmentedContext, CallRule, Effects, ReverseContext, Rule, TangentContext
from irad.ruleset.memory_type import MemoryType

_FLOATS: Final = {"double": types.DOUBLE, "float": types.FLOAT}
_COPY_ADJOINT: Final = {"double": "irad.copy_adjoint_f64", "float": "irad.copy_adjoint_f32"}
_MEMSET: Final = "llvm.memset.p0.i64"
# memmove, not memcpy: shadows overlap where the memory of the primal does.
_MEMMOVE: Final = "llvm.memmove.p0.p0.i64"


def fill(build: Builder, pointer: Value, size: Value) -> None:
    """Emits a memset to zero of ``size`` (i64) bytes."""
    memset = build.module.declare(_MEMSET, function_type(VOID, [PTR, types.I8, types.I64, types.I1]))
    build.call(memset, [pointer, const_int(types.I8, 0), size, const_int(types.I1, 0)])


def move(build: Builder, into: Value, source: Value, size: Value) -> None:
    """Emits a memmove of ``size`` (i64) bytes."""
    memmove = build.module.declare(_MEMMOVE, function_type(VOID, [PTR, PTR, types.I64, types.I1]))
    build.call(memmove, [into, source, size, const_int(types.I1, 0)])


def move_back(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    """The reverse part of a reallocation: of old and new shadow, and the bytes in both.

    Nothing uses the old memory after the call, so its cotangent is just that of the new memory.
    """
    if saved:
        old, new, common = (context.value(v) for v in saved)
        move(context.builder, old, new, common)
        fill(context.builder, new, common)


def _copy_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    into, source, size = call.arguments[:3]
    if context.is_active(into) and context.holds_pointers(source):
        build = context.after
        wide = build.zext(context.value(size), types.I64)
        layout = pattern_of_copy(context.layout(into), context.layout(source), size)
        if context.is_active(source):
            _change_pointers(build, layout, context.shadow(into), context.shadow(source), wide)
        else:
            _clear_pointers(context, layout, into, wide)
    return ()


def _clear_pointers(context: AugmentedContext, layout: MemoryType | None, into: Value, size: Value) -> None:
    """Clears the pointers in a shadow where constant bytes are written; what the caller put next to them stays.

    Raises:
        UnsupportedError: it is not certain which bytes of the caller's shadow are pointers.
    """
    layout = layout or context.number_places(into, size)
    if layout is None and not context.is_made_here(into):
        raise UnsupportedError(
            "constant bytes overwrite memory of the caller that holds numbers and pointers, and irad cannot tell them "
            "apart",
            "(a) assign the members one by one or (b) in a recursive function, take the new object as an argument "
            "instead of creating it",
            "the caller's cotangents in the shadows of numbers count, while the shadows of pointers change",
        )
    _change_pointers(context.after, layout, context.shadow(into), None, size)


def pattern_of_copy(into: MemoryType | None, source: MemoryType | None, size: Value) -> MemoryType | None:
    """Pattern that a copy moves; None if the two ends hold numbers in different places, or neither is known."""
    if into is None or source is None or into == source:
        return into or source
    if not (into.floats() and source.floats()):
        return into if not into.floats() else source
    span = math.lcm(into.stride, source.stride)
    if isinstance(size, ConstantInt) and 0 < size.value < span:
        span = size.value
    floats = into.floats_within(span)
    return MemoryType(span, floats) if floats == source.floats_within(span) else None


def _change_pointers(build: Builder, layout: MemoryType | None, into: Value, source: Value | None, size: Value) -> None:
    """Applies a copy, or a fill with zeros, to the pointers in a shadow; cotangents lie next to them, and stay."""
    if layout is not None and layout.floats():
        if _gaps(layout):
            helper = _run_helper(build, layout, "pointers", _gaps(layout), copies=source is not None)
            build.call(helper, [into, *([source] if source else []), size])
    elif source is not None:
        move(build, into, source, size)
    else:
        fill(build, into, size)


def _gaps(layout: MemoryType) -> list[tuple[int, int]]:
    """The bytes of a pattern that hold no numbers: start and length of each run."""
    found: list[tuple[int, int]] = []
    end = 0
    for offset, text in (*layout.floats(), (layout.stride, "")):
        if offset > end:
            found.append((end, offset - end))
        end = offset + (_FLOATS[text].bits // 8 if text else 0)
    return found


def _clear_numbers(context: ReverseContext, into: Value, size: Value) -> None:
    """Clears the cotangents in a shadow where constant bytes were written; pointers next to them stay."""
    build, shadow = context.builder, context.shadow(into)
    layout = context.number_places(into, size) if context.holds_pointers(into) else None
    if layout is None:
        fill(build, shadow, size)
    elif layout.floats():
        runs = [(offset, _FLOATS[text].bits // 8) for offset, text in layout.floats()]
        build.call(_run_helper(build, layout, "numbers", runs, copies=False), [shadow, size])


def _run_helper(
    build: Builder, layout: MemoryType, what: str, runs: Sequence[tuple[int, int]], *, copies: bool
) -> Function:
    """A function that copies, or clears, the same bytes of all records: (into, [source,] bytes).

    Records that overlap are copied in the order in which none is overwritten before it was read.
    """
    numbers = "_".join(f"{offset}{text}" for offset, text in layout.floats())
    name = f"irad.{'copy' if copies else 'clear'}_{what}.{numbers}_{layout.stride}"
    known = build.module.functions.get(name)
    if known is not None:
        return known
    names = ["into", "source", "bytes"] if copies else ["into", "bytes"]
    made = build.module.define(name, function_type(VOID, [*([PTR] * (len(names) - 1)), types.I64]), names)
    made.prefix = ("internal",)
    into, size = made.params[0], made.params[-1]
    entry, body, end = made.add_block("entry"), made.add_block("record"), made.add_block("end")
    step, zero, one = (const_int(types.I64, value) for value in (layout.stride, 0, 1))
    start = Builder(entry)
    count = start.udiv(start.add(size, const_int(types.I64, layout.stride - 1)), step)
    is_backward = start.icmp("ugt", into, made.params[1]) if copies else const_int(types.I1, 0)
    start.cond_br(start.icmp("eq", count, zero), end, body)
    inner = Builder(body)
    number = inner.phi(types.I64, [(zero, entry)])
    following = inner.add(number, one)
    offset = inner.mul(inner.select(is_backward, inner.sub(count, following), number), step)
    for first, length in runs:
        at = inner.add(offset, const_int(types.I64, first))
        # The last record may be copied in part.
        left = inner.intrinsic("llvm.usub.sat.i64", types.I64, [size, at])
        part = inner.intrinsic("llvm.umin.i64", types.I64, [left, const_int(types.I64, length)])
        if copies:
            move(inner, inner.byte_offset(into, at), inner.byte_offset(made.params[1], at), part)
        else:
            fill(inner, inner.byte_offset(into, at), part)
    number.add_incoming(following, body)
    inner.cond_br(inner.icmp("uge", following, count), end, body)
    Builder(end).ret()
    return made


def _copy_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    into, source, size = call.arguments[:3]
    if not context.is_active(into) or not (context.holds_floats(into) or context.holds_floats(source)):
        return
    build = context.builder
    bytes_ = build.zext(context.value(size), types.I64)
    if not context.is_active(source):
        _clear_numbers(context, into, bytes_)
        return
    layout = pattern_of_copy(context.layout(into), context.layout(source), size)
    move_cotangents(build, context.shadow(into), context.shadow(source), bytes_, layout)


def move_cotangents(build: Builder, into: Value, source: Value, size: Value, layout: MemoryType | None) -> None:
    """Emits the adjoint of a copy of ``size`` bytes: the source's shadow grows by the destination's, which is cleared.

    Raises:
        UnsupportedError: the layout is not known.
    """
    if layout is None:
        raise UnsupportedError(
            "memory of unknown type is copied: irad cannot tell which bytes in it are numbers",
            "copy the elements one by one",
            "numbers have derivatives, other bytes do not",
        )
    kind = layout.lone_float()
    if kind is not None:
        helper = build.module.declare(_COPY_ADJOINT[kind], function_type(VOID, [PTR, PTR, types.I64]))
        build.call(helper, [into, source, size])
    elif layout.floats():
        build.call(_record_helper(build, layout), [into, source, size])


def _record_helper(build: Builder, layout: MemoryType) -> Function:
    """A function that runs the adjoint of a copy over records: (destination's shadow, source's shadow, bytes)."""
    name = "irad.copy_adjoint." + "_".join(f"{offset}{text}" for offset, text in layout.floats()) + f"_{layout.stride}"
    known = build.module.functions.get(name)
    if known is not None:
        return known
    made = build.module.define(name, function_type(VOID, [PTR, PTR, types.I64]), ["into", "source", "bytes"])
    made.prefix = ("internal",)
    into, source, size = made.params
    entry, body, tail = made.add_block("entry"), made.add_block("record"), made.add_block("tail")
    step, zero = const_int(types.I64, layout.stride), const_int(types.I64, 0)
    start = Builder(entry)
    count = start.udiv(size, step)  # counted: LLVM finds the trip count of a loop over offsets by 128-bit division
    start.cond_br(start.icmp("eq", count, zero), tail, body)
    inner = Builder(body)
    number = inner.phi(types.I64, [(zero, entry)])
    offset = inner.mul(number, step)
    for field_offset, text in layout.floats():
        at = inner.add(offset, const_int(types.I64, field_offset))
        _move_cotangent(inner, inner.byte_offset(into, at), inner.byte_offset(source, at), _FLOATS[text])
    following = inner.add(number, const_int(types.I64, 1))
    number.add_incoming(following, body)
    inner.cond_br(inner.icmp("uge", following, count), tail, body)
    _move_tail(Builder(tail), layout, made, start_of_tail=Builder(tail).mul(count, step))
    return made


def _move_tail(build: Builder, layout: MemoryType, made: Function, start_of_tail: Value) -> None:
    """The numbers of a record that is copied only in part."""
    into, source, size = made.params
    for field_offset, text in layout.floats():
        at = build.add(start_of_tail, const_int(types.I64, field_offset))
        past = build.add(at, const_int(types.I64, _FLOATS[text].bits // 8))
        number, following = made.add_block("number"), made.add_block("next")
        build.cond_br(build.icmp("ule", past, size), number, following)
        inner = Builder(number)
        _move_cotangent(inner, inner.byte_offset(into, at), inner.byte_offset(source, at), _FLOATS[text])
        inner.br(following)
        build = Builder(following)
    build.ret()


def _move_cotangent(build: Builder, into: Value, source: Value, type_: Type) -> None:
    # Cleared before the sum, so that memory which is copied onto itself keeps its cotangent; fields need not be
    # aligned.
    taken = build.load(type_, into, align=1)
    build.store(const_float(type_, 0.0), into, align=1)
    build.store(build.fadd(build.load(type_, source, align=1), taken), source, align=1)


def _fill_augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    pointer, _, size = call.arguments[:3]
    if context.is_active(pointer) and context.holds_pointers(pointer):
        wide = context.after.zext(context.value(size), types.I64)
        _clear_pointers(context, context.layout(pointer), pointer, wide)
    return ()


def _fill_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    pointer, _, size = call.arguments[:3]
    if context.is_active(pointer) and context.holds_floats(pointer):
        _clear_numbers(context, pointer, context.builder.zext(context.value(size), types.I64))


def _copy_tangent(context: TangentContext, call: CallSite) -> None:
    """The shadow holds the tangents where the memory holds the numbers, so it is copied as a whole."""
    into, source, size = call.arguments[:3]
    if context.is_active(into):
        wide = context.after.zext(context.value(size), types.I64)
        if context.is_active(source):
            move(context.after, context.shadow(into), context.shadow(source), wide)
        else:
            fill(context.after, context.shadow(into), wide)


def _fill_tangent(context: TangentContext, call: CallSite) -> None:
    pointer, _, size = call.arguments[:3]
    if context.is_active(pointer):
        fill(context.after, context.shadow(pointer), context.after.zext(context.value(size), types.I64))


_COPY_EFFECTS: Final = Effects(reads=frozenset({1}), writes=frozenset({0}), copies=((0, 1),), raw=True, other=False)
_FILL_EFFECTS: Final = Effects(writes=frozenset({0}), raw=True, other=False)

RULES: Final[tuple[Rule, ...]] = (
    CallRule(
        ("llvm.memcpy.*", "llvm.memmove.*"),
        _COPY_EFFECTS,
        _copy_reverse,
        _copy_augmented,
        source="linear: the transpose",
        tangent=_copy_tangent,
        moves=True,
    ),
    CallRule(
        ("llvm.memset.*",),
        _FILL_EFFECTS,
        _fill_reverse,
        _fill_augmented,
        source="the result is constant",
        tangent=_fill_tangent,
        moves=True,
    ),
)
