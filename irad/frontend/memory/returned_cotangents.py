"""Cotangents of lists, dictionaries and instances that a function returned, added to their shadows.

`returned_walk` noted where these lie, when the function had returned.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils
from numba.core.base import BaseContext

from irad.frontend.memory.given_values import GivenValues, Refuse, Visit, Words, add
from irad.frontend.memory.kept_notes import KeptNotes
from irad.frontend.memory.object_gradients import NotedWords
from irad.frontend.memory.shadows import all_of
from irad.frontend.values.tree import Content

NotesOf: TypeAlias = Callable[[Content], NotedWords | KeptNotes]
"""Emits what reads the notes of a part of the value; where that may be None, only where it is there."""

_COTANGENT = Words("cotangent", "it holds a weight for each number in the value", "make it with irad.data.make_zero")


def misfit(
    context: BaseContext,
    builder: IRBuilder,
    content: Content,
    given: tuple[Any, Any],
    notes_of: NotesOf,
    conditions: Sequence[Value],
) -> Any:
    """A bit: whether lengths, keys or shapes are not those of the value, which is there if all conditions hold.

    Args:
        context: Numba's target context.
        builder: of llvmlite.
        content: of the part of the value.
        given: the cotangent and its Numba type, which fits.
        notes_of: reads what was noted.
        conditions: bits.
    """
    flag = cgutils.alloca_once_value(builder, cgutils.false_bit)
    end = builder.append_basic_block("followed")

    def note_it(condition: Value, *texts: Any) -> None:
        with builder.if_then(condition, likely=False):
            builder.store(cgutils.true_bit, flag)
            builder.branch(end)

    with builder.if_then(all_of(builder, conditions)):
        _follow(context, builder, content, given, notes_of, note_it, None)
    builder.branch(end)
    builder.position_at_end(end)
    return builder.load(flag)


def add_cotangent(
    context: BaseContext, builder: IRBuilder, content: Content, given: tuple[Any, Any], notes_of: NotesOf
) -> None:
    """Adds a cotangent, which fits."""
    _follow(context, builder, content, given, notes_of, _it_fits, add)


def _it_fits(*texts: Any) -> None:
    """Lengths, keys and shapes were compared."""


def _follow(
    context: BaseContext,
    builder: IRBuilder,
    content: Content,
    given: tuple[Any, Any],
    notes_of: NotesOf,
    refuse: Refuse,
    visit: Visit | None,
) -> None:
    value, kind = given
    GivenValues(context, builder, notes_of(content), refuse, _COTANGENT, visit).value(content, value, kind, "it")
