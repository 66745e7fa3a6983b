"""Calls of speculative derivatives, which are repeated with strong zeros where a result is NaN.

See `irad.passes.analysis.speculation`. Compiled code says so by an exception, which the dispatcher catches.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from llvmlite.ir import Value
from numba.core import cgutils

from irad.debug.nonfinite import nonfinite
from irad.errors import NonFiniteError
from irad.frontend.calls.sweeps import Lane, Sweeps
from irad.frontend.memory.shadows import any_of
from irad.frontend.values import layouts, tree

_BIT = ir.IntType(1)


class FoundNaN(Exception):
    """A result of a speculative derivative is NaN."""


def zero_that_won(
    shows_zeros: Callable[[bool], Callable[..., Any]], args: tuple[Any, ...], kwargs: dict[str, Any], *, into: bool
) -> NonFiniteError | None:
    """What a derivative has to say of a zero that may have to be another number; None if there is none.

    Args:
        shows_zeros: makes the derivative with `Task.shows_zeros`, and in debug mode if it is passed true.
        args: of a call.
        kwargs: of a call.
        into: whether the first argument takes a derivative.
    """
    result = shows_zeros(False)(*args, **kwargs)
    if nonfinite((result, args[:1] if into else ())) is None:
        return None
    try:
        shows_zeros(True)(*args, **kwargs)
    except NonFiniteError as error:
        return error
    return None


def check_for_nan(sweeps: Sweeps) -> None:
    """Ends the call with `FoundNaN` if a derivative has one."""
    found = [bit for lane in sweeps.lanes for bit in (*_in_numbers(sweeps, lane), *_in_arrays(sweeps, lane))]
    with cgutils.if_unlikely(sweeps.builder, any_of(sweeps.builder, found)):
        sweeps.drop_value()
        sweeps.references.release()
        sweeps.context.call_conv.return_user_exc(sweeps.builder, FoundNaN, ())


def _in_numbers(sweeps: Sweeps, lane: Lane) -> list[Value]:
    values = [sweeps.builder.load(pointer) for pointer in lane.cotangents.pointers()]
    return [sweeps.builder.fcmp_unordered("uno", value, value) for value in values]


def _in_arrays(sweeps: Sweeps, lane: Lane) -> list[Value]:
    builder, found = sweeps.builder, []
    for _, leaf in sweeps.derivation.active_memory():
        is_complex = leaf.element in layouts.COMPLEX
        number = leaf.element.underlying_float if is_complex else leaf.element
        count: Any = sweeps.flat[leaf.index + tree.ITEM_COUNT]
        if is_complex:
            count = builder.mul(count, cgutils.intp_t(2))
        data = builder.bitcast(lane.memory.shadow_of(leaf.data_index), cgutils.voidptr_t)
        look = sweeps.support(f"irad.has_nan_f{number.bitwidth}", _BIT, [data.type, count.type])
        found.append(builder.call(look, [data, count]))
    return found
