"""The arenas of derivatives that are differentiated themselves, as a part of another program.

What a first derivative saves is memory of the program that is differentiated. In reverse mode its shadow comes from the
tape; in forward mode it lies in the same arena, and ends with it. `guards` of products stand in such code, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Final

from irad.ir.instructions import CallSite
from irad.ir.types import PTR
from irad.ir.values import Value
from irad.rules.memory import fill
from irad.ruleset.guards import GUARDS, strong_zero, zero_of
from irad.ruleset.interface import (
    PURE,
    CallRule,
    CopyContext,
    Effects,
    Inactive,
    Origin,
    ReverseContext,
    Rule,
    TangentContext,
    save_nothing,
    shadow_rule,
)


def _arena(call: CallSite) -> Value:
    """Arena in which a call allocates: the last of its pointers."""
    return [argument for argument in call.arguments if argument.type is PTR][-1]


def _size(context: CopyContext, call: CallSite) -> Value:
    """Number of bytes that a call allocates."""
    sizes = [context.value(argument) for argument in call.arguments if argument.type is not PTR]
    return sizes[0] if len(sizes) == 1 else context.before.mul(sizes[0], sizes[1])


def _on_tape(context: CopyContext, call: CallSite) -> None:
    if context.is_active(call):
        size = _size(context, call)
        shadow = context.allocate(size)
        # Memory of the tape is not cleared, and a shadow begins with zeros.
        fill(context.before, shadow, size)
        context.set_shadow(shadow)


def _beside(context: TangentContext, call: CallSite) -> None:
    if context.is_active(call):
        context.set_shadow(context.allocate_beside(context.value(_arena(call)), _size(context, call)))


def _owned(context: TangentContext, call: CallSite) -> None:
    """Allocates the shadow on the heap as owned memory, so that it is freed as such."""
    if context.is_active(call):
        context.set_shadow(context.allocate_owned(_size(context, call)))


def _guard_reverse(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    """The cotangent goes to the product, whose other factor decides there."""
    context.accumulate(call.arguments[1], context.cotangent(call))


def _guard_tangent(context: TangentContext, call: CallSite) -> None:
    """Zero where the derivative is zero and stays so: the tangent of a derivative that is zero passes."""
    _guard(context, call, 1)


def _guard_series(context: TangentContext, call: CallSite) -> None:
    """Guards a Taylor coefficient, with those of lower order."""
    _guard(context, call, context.order)


def _guard(context: TangentContext, call: CallSite, order: int) -> None:
    derivative, product = call.arguments
    build, tangent = context.after, context.tangent(product)
    stays = strong_zero(build, context.tangent(derivative), tangent)
    # A derivative is zero near the point only if all its coefficients of lower order are.
    lower = (context.coefficient(derivative, each) for each in range(order))
    conditions = [build.fcmp("oeq", found, zero_of(call.type)) for found in lower if found is not None]
    context.set_tangent(build.select(reduce(build.and_, conditions), stays, tangent))


_LENT: Final = Effects(result=Origin.FRESH, is_lent=True, other=False)
_LOOKS: Final = Effects(reads=frozenset({0}), writes_no_floats=True)
_CHANGES: Final = Effects(reads=frozenset({0}), writes=frozenset({0}), writes_no_floats=True)

RULES: Final[tuple[Rule, ...]] = (
    shadow_rule(("irad.shadow_alloc",), Effects(result=Origin.FRESH), _on_tape, _owned),
    shadow_rule(("irad.arena_alloc", "irad.arena_alloc_product", "irad.arena_shadow"), _LENT, _on_tape, _beside),
    CallRule(
        tuple(GUARDS.values()),
        PURE,
        _guard_reverse,
        save_nothing,
        tangent=_guard_tangent,
        series=_guard_series,
        factors=((0, 1),),
    ),
    Inactive(
        ("irad.arena_new",),
        "where a derivative keeps what it saves",
        Effects(result=Origin.FRESH, writes_no_floats=True),
    ),
    Inactive(("irad.arena_delete",), "gives memory back", Effects(frees=frozenset({0}))),
    Inactive(("irad.arena_top",), "a place in an arena", replace(_LOOKS, result=Origin.ARGUMENT, result_argument=0)),
    Inactive(("irad.arena_rewind",), "gives memory back", _CHANGES),
    Inactive(("irad.arena_failed", "irad.arena_reason", "irad.stack_full"), "whether a sweep can go on", _LOOKS),
    Inactive(("irad.arena_defer",), "gives memory back later", Effects(frees=frozenset({1}))),
    Inactive(("irad.slot_take",), "workspace of a rule", Effects(reads=frozenset({0, 1}), writes=frozenset({0, 1}))),
    Inactive(
        ("irad.slot_add",),
        "workspace of a rule",
        Effects(writes=frozenset({0, 1, 2}), captures=frozenset({2}), captures_into=frozenset({0, 1})),
    ),
    Inactive(
        ("irad.keep_raised", "irad.keep_misfit", "irad.keep_pending"),
        "raises an exception",
        Effects(),
    ),
)
