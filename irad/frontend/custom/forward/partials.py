"""Multiplies partial derivatives by tangents, for `easy`: njit code for all shapes of results and arguments.

Zero times anything is zero, so a tangent of zero never meets an infinite partial. The tangent of a real result is the
real part of the product: the transpose of what `contract` does with cotangents.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.extending import overload, register_jitable
from numba.np.numpy_support import as_dtype

from irad.frontend.custom.contract import misfit_of_partial, misfit_of_parts, rank, real, whole
from irad.frontend.generated import function_from
from irad.frontend.values import layouts


def zero_tangent(value: object) -> Any:
    """The tangent of a constant: zeros for numbers and arrays of numbers, None for what has no derivative."""
    raise NotImplementedError("called in compiled code only")


def pushed(total: object, partial: object, tangent: object) -> Any:
    """A tangent of a result, with what comes from the tangent of one argument; arrays are added to in place."""
    raise NotImplementedError("called in compiled code only")


@register_jitable
def zero_in_lane(lane, value):  # type: ignore[no-untyped-def]
    """A zero tangent for a direction."""
    return zero_tangent(value)


@register_jitable
def pushed_in_lane(lane, totals, partial, tangents):  # type: ignore[no-untyped-def]
    """The same for one of several directions."""
    return pushed(totals[lane], partial, tangents[lane])


def tuple_like(like: types.BaseTuple, item: str) -> tuple[str, dict[str, Any]]:
    """A tuple of as many items, a named tuple for such, as an expression with the names that it needs.

    Args:
        like: says how many, and the class.
        item: an expression with ``{0}`` for the index.
    """
    items = "".join(f"{item.format(i)}, " for i in range(len(like)))
    cls = getattr(like, "instance_class", None)
    return (f"({items})", {}) if cls is None else (f"made({items})", {"made": cls})


@overload(zero_tangent)
def _zero_tangent_typed(value):  # type: ignore[no-untyped-def]
    if isinstance(value, types.BaseTuple):
        items, scope = tuple_like(value, "zero_tangent(value[{0}])")
        source = f"def parts(value):\n    return {items}\n"
        return function_from("parts", source, "irad.rules.easy_rule", {"zero_tangent": zero_tangent, **scope})
    number = value.dtype if isinstance(value, types.Array) else value
    if number not in layouts.FLOATS and number not in layouts.COMPLEX:
        return lambda value: None
    if isinstance(value, types.Array):
        return lambda value: np.zeros_like(value)
    zero = as_dtype(value).type(0)
    return lambda value: zero


@register_jitable
def _times(tangent, partial):  # type: ignore[no-untyped-def]
    """The product; zero if the tangent is, and the slope of the product only where the partial is not a number."""
    product = tangent * partial
    if product != product and tangent == 0:
        return tangent * 0.0
    return product


@overload(pushed)
def _pushed_typed(total, partial, tangent):  # type: ignore[no-untyped-def]
    if total == types.none:
        return lambda total, partial, tangent: None
    if isinstance(total, types.BaseTuple):
        return _of_parts(total, partial)
    part = whole if (total.dtype if isinstance(total, types.Array) else total) in layouts.COMPLEX else real
    ranks = (rank(total), rank(partial), rank(tangent))
    match ranks:
        case (0, 0, 0):
            return lambda total, partial, tangent: total + part(_times(tangent, partial))
        case (n, m, 0) if n == m:
            return _scaled(part)
        case (0, m, k) if m == k:
            return _summed(part)
        case (n, m, k) if m == n + k:
            return _jacobian(part)
        case (n, m, k) if n == m == k:
            return _diagonal(part)
        case _:
            raise misfit_of_partial(ranks)


def _of_parts(total: Any, partial: object) -> Any:
    """What comes to each part of a tuple; where there is no partial, nothing."""
    if not isinstance(partial, types.BaseTuple) or len(partial) != len(total):
        raise misfit_of_parts(partial, total)
    calls = [
        f"total[{i}]" if partial[i] == types.none else f"pushed(total[{i}], partial[{i}], tangent)"
        for i in range(len(total))
    ]
    source = f"def parts(total, partial, tangent):\n    return ({''.join(f'{call}, ' for call in calls)})\n"
    return function_from("parts", source, "irad.rules.easy_rule", {"pushed": pushed})


def _scaled(part: Any) -> Any:
    def scaled(total, partial, tangent):  # type: ignore[no-untyped-def]
        for index in np.ndindex(total.shape):
            total[index] += part(_times(tangent, partial[index]))
        return total

    return scaled


def _summed(part: Any) -> Any:
    def summed(total, partial, tangent):  # type: ignore[no-untyped-def]
        for index in np.ndindex(tangent.shape):
            total += part(_times(tangent[index], partial[index]))
        return total

    return summed


def _jacobian(part: Any) -> Any:
    def jacobian(total, partial, tangent):  # type: ignore[no-untyped-def]
        for row in np.ndindex(total.shape):
            for column in np.ndindex(tangent.shape):
                total[row] += part(_times(tangent[column], partial[row + column]))
        return total

    return jacobian


def _diagonal(part: Any) -> Any:
    def diagonal(total, partial, tangent):  # type: ignore[no-untyped-def]
        for index in np.ndindex(total.shape):
            total[index] += part(_times(tangent[index], partial[index]))
        return total

    return diagonal
