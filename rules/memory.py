"""Raw memory: copies and fills.

A copy moves whatever bytes hold. Its adjoint adds the cotangent of the destination to that of the source and clears the
destination, float by float; pointers are copied between the shadows in the forward sweep, like the primal's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.module import Function
from irad.ir.types import PTR, VOID, Type, function_type
from irad.ir.values import Value, const_float, const_int
from irad.ruleset.interface import CallRule, Effects, ForwardContext, ReverseContext, Rule
from irad.ruleset.memory_type import MemoryType

_FLOATS: Final = {"double": types.DOUBLE, "float": types.FLOAT}
_COPY_ADJOINT: Final = {"double": "irad.copy_adjoint_f64", "float": "irad.copy_adjoint_f32"}
_MEMSET: Final = "llvm.memset.p0.i64"
_MEMMOVE: Final = "llvm.memmove.p0.p0.i64"


def fill(build: Builder, pointer: Value, size: Value) -> None:
    """Emits a memset to zero of ``size`` (i64) bytes."""
    memset = build.module.declare(_MEMSET, function_type(VOID, [PTR, types.I8, types.I64, types.I1]))
    build.call(memset, [pointer, const_int(types.I8, 0), size, const_int(types.I1, 0)])


def move(build: Builder, into: Value, source: Value, size: Value) -> None:
    """Emits a memmove of ``size`` (i64) bytes."""
    memmove = build.module.declare(_MEMMOVE, function_type(VOID, [PTR, PTR, types.I64, types.I1]))
    build.call(memmove, [into, source, size, const_int(types.I1, 0)])


def _copy_forward(context: ForwardContext, call: CallSite) -> Sequence[Value]:
    into, source, size = call.arguments[:3]
    if context.is_active(into) and context.holds_pointers(source):
        build = context.after
        wide = build.zext(context.value(size), types.I64)
        if context.is_active(source):
            move(build, context.shadow(into), context.shadow(source), wide)
        else:
            fill(build, context.shadow(into), wide)
    return ()


def _copy_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    into, source, size = call.arguments[:3]
    if not context.is_active(into) or not (context.holds_floats(into) or context.holds_floats(source)):
        return
    build = context.builder
    bytes_ = build.zext(context.value(size), types.I64)
    into_shadow = context.shadow(into)
    if not context.is_active(source):
        fill(build, into_shadow, bytes_)
        return
    move_cotangents(build, into_shadow, context.shadow(source), bytes_, context.layout(into) or context.layout(source))


def move_cotangents(build: Builder, into: Value, source: Value, size: Value, layout: MemoryType | None) -> None:
    """Emits the adjoint of a copy of ``size`` bytes: the source's shadow grows by the destination's, which is cleared.

    Raises:
        UnsupportedError: the layout is not known.
    """
    if layout is None:
        raise UnsupportedError(
            "memory of unclear type is copied: irad cannot tell numbers from other bytes in it",
            "copy the elements one by one",
            "numbers have derivatives, other bytes have none",
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
    entry, body, end = made.add_block("entry"), made.add_block("record"), made.add_block("end")
    step, zero = const_int(types.I64, layout.stride), const_int(types.I64, 0)
    start = Builder(entry)
    count = start.udiv(size, step)  # counted: LLVM finds the trip count of a loop over offsets by 128-bit division
    start.cond_br(start.icmp("eq", count, zero), end, body)
    inner = Builder(body)
    number = inner.phi(types.I64, [(zero, entry)])
    offset = inner.mul(number, step)
    for field_offset, text in layout.floats():
        at = inner.add(offset, const_int(types.I64, field_offset))
        _move_cotangent(inner, inner.byte_offset(into, at), inner.byte_offset(source, at), _FLOATS[text])
    following = inner.add(number, const_int(types.I64, 1))
    number.add_incoming(following, body)
    inner.cond_br(inner.icmp("uge", following, count), end, body)
    Builder(end).ret()
    return made


def _move_cotangent(build: Builder, into: Value, source: Value, type_: Type) -> None:
    taken = build.load(type_, into, align=1)
    build.store(const_float(type_, 0.0), into, align=1)
    build.store(build.fadd(build.load(type_, source, align=1), taken), source, align=1)


def _fill_forward(context: ForwardContext, call: CallSite) -> Sequence[Value]:
    pointer, _, size = call.arguments[:3]
    if context.is_active(pointer) and context.holds_pointers(pointer):
        build = context.after
        fill(build, context.shadow(pointer), build.zext(context.value(size), types.I64))
    return ()


def _fill_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    pointer, _, size = call.arguments[:3]
    if context.is_active(pointer) and context.holds_floats(pointer):
        build = context.builder
        fill(build, context.shadow(pointer), build.zext(context.value(size), types.I64))


_COPY_EFFECTS: Final = Effects(reads=frozenset({1}), writes=frozenset({0}), copies=((0, 1),), raw=True, other=False)
_FILL_EFFECTS: Final = Effects(writes=frozenset({0}), raw=True, other=False)

RULES: Final[tuple[Rule, ...]] = (
    CallRule(
        ("llvm.memcpy.*", "llvm.memmove.*"), _COPY_EFFECTS, _copy_reverse, _copy_forward, source="linear: the transpose"
    ),
    CallRule(("llvm.memset.*",), _FILL_EFFECTS, _fill_reverse, _fill_forward, source="the result is constant"),
)
