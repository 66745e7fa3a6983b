"""Memory without a header: `malloc` and its relatives, `operator new` and `delete` of C++, Numba's `NRT_Allocate`.

The shadow of an allocation comes from the tape and is given back with it, so `free` concerns the primal only. In front
of a shadow stands its size, which `realloc` needs::

    tape ┬ 64 bytes, of which the first eight are the size
         └ the shadow, as aligned as the tape gives it

In forward mode there is no tape: the shadow is memory of the C heap, changes its size with the primal's and is freed
with it. What the function leaves allocated has a shadow that stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from irad.ir import types
from irad.ir.instructions import CallSite
from irad.ir.types import PTR, VOID, function_type
from irad.ir.values import ConstantNull, Value, const_int
from irad.rules.memory import fill, move, move_back
from irad.ruleset.interface import (
    CallRule,
    CopyContext,
    Effects,
    Inactive,
    Origin,
    Rule,
    TangentContext,
    shadow_rule,
)

_HEADER: Final = 64  # bytes; keeps the shadow as aligned as the tape


def _new_shadow(context: CopyContext, size: Value) -> Value:
    """Cleared memory, preceded by its size."""
    build = context.before
    total = build.add(size, const_int(types.I64, _HEADER))
    whole = context.allocate(total)
    build = context.before
    build.store(size, whole, align=8)
    shadow = build.byte_offset(whole, _HEADER)
    fill(build, shadow, size)
    return shadow


def _allocation(
    symbols: tuple[str, ...], size_of: Callable[[CopyContext, CallSite], Value], *, is_owned: bool = True
) -> CallRule:
    """The rule of functions whose arguments tell the size; whether a function of `RULES` frees what they allocate."""

    def allocate(context: CopyContext, call: CallSite) -> None:
        if context.is_active(call):
            context.set_shadow(_new_shadow(context, size_of(context, call)))

    def allocate_owned(context: TangentContext, call: CallSite) -> None:
        if context.is_active(call):
            context.set_shadow(context.allocate_owned(size_of(context, call)))

    rule = shadow_rule(symbols, _FRESH, allocate)
    return replace(rule, tangent=allocate_owned) if is_owned else rule


def _argument(index: int) -> Callable[[CopyContext, CallSite], Value]:
    def size(context: CopyContext, call: CallSite) -> Value:
        return context.before.zext(context.value(call.arguments[index]), types.I64)

    return size


def _product(context: CopyContext, call: CallSite) -> Value:
    build = context.before
    count, size = (build.zext(context.value(argument), types.I64) for argument in call.arguments[:2])
    return build.mul(count, size)


def _reallocate(context: CopyContext, call: CallSite) -> Sequence[Value]:
    """The shadow moves too, with what was there. Returns old and new shadow and the bytes in both.

    Where nothing was allocated before, or nothing is now, no bytes are in both.
    """
    old, size = call.arguments
    if not (context.is_active(old) or context.is_active(call)):
        return ()
    new_size = context.before.zext(context.value(size), types.I64)
    new = _new_shadow(context, new_size)
    build = context.before
    shadow = context.shadow(old)
    is_first = build.icmp("eq", shadow, ConstantNull(PTR))
    # with no memory before, its size is read from the new shadow's, and not used
    known = build.byte_offset(build.select(is_first, new, shadow), -_HEADER)
    old_size = build.load(types.I64, known, align=8)
    smaller = build.select(build.icmp("ult", old_size, new_size), old_size, new_size)
    copied = build.select(is_first, const_int(types.I64, 0), smaller)
    move(build, new, shadow, copied)
    context.set_shadow(new)
    after = context.after
    # Without memory realloc leaves the old block as it is, so no cotangents move back.
    failed = after.icmp("eq", context.value(call), ConstantNull(PTR))
    return shadow, new, after.select(failed, const_int(types.I64, 0), copied)


def _reallocate_owned(context: TangentContext, call: CallSite) -> None:
    """The shadow is reallocated as the memory is."""
    if context.is_active(call.arguments[0]) or context.is_active(call):
        size = context.before.zext(context.value(call.arguments[1]), types.I64)
        context.set_shadow(context.reallocate_owned(size))


def _free_owned(context: TangentContext, call: CallSite) -> None:
    """The shadow is freed with the memory; constant memory has none, which is to say null."""
    pointer = call.arguments[0]
    if context.is_active(pointer):
        build = context.after
        # as it is declared already: with Numba a function that returns nothing has a result
        free = build.module.functions.get("free") or build.module.declare("free", function_type(VOID, [PTR]))
        build.call(free, [context.shadow(pointer)])


def _apart(context: CopyContext, call: CallSite) -> None:
    """Constant memory: the same, beside a shadow that holds zeros and that nothing else looks at."""
    if context.is_active(call):
        context.set_shadow(_new_shadow(context, context.value(call.arguments[1])))


_SAME: Final = Effects(result=Origin.ARGUMENT, result_argument=0, other=False)
_FRESH: Final = Effects(result=Origin.FRESH)
_MOVED: Final = Effects(
    reads=frozenset({0}), frees=frozenset({0}), result=Origin.FRESH, keeps=0, raw=True, writes_no_floats=False
)
_NEW: Final = (
    *("_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t", "_ZnwmSt11align_val_t", "_ZnamSt11align_val_t"),
    *("_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t"),
)
_DELETE: Final = (
    *("_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm", "_ZdlPvSt11align_val_t", "_ZdaPvSt11align_val_t"),
    *("_ZdlPvmSt11align_val_t", "_ZdaPvmSt11align_val_t", "_ZdlPvRKSt9nothrow_t", "_ZdaPvRKSt9nothrow_t"),
)

RULES: Final[tuple[Rule, ...]] = (
    _allocation(("malloc", *_NEW), _argument(0)),
    _allocation(("NRT_Allocate",), _argument(0), is_owned=False),
    _allocation(("calloc",), _product),
    _allocation(("aligned_alloc", "memalign"), _argument(1)),
    shadow_rule(("irad.stop.memory",), _SAME, _apart),
    CallRule(("realloc",), _MOVED, move_back, _reallocate, tangent=_reallocate_owned, moves=True),
    Inactive(("free", "cfree", *_DELETE), "gives memory back", Effects(frees=frozenset({0})), tangent=_free_owned),
)
