"""Sums, products, extreme values and norms over axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from irad.cuda.arrays.ruleset import ArrayCall, Rule


def _axes(ndim: int, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    return tuple(each % ndim for each in (axis if isinstance(axis, tuple | list) else (axis,)))


def _stretched(call: ArrayCall, reduced: Any, a: Any, axis: Any) -> Any:
    """A result of a reduction, broadcast to the shape of its operand."""
    axes = _axes(a.ndim, axis)
    shape = tuple(1 if i in axes else length for i, length in enumerate(a.shape))
    return call.xp.broadcast_to(call.xp.reshape(reduced, shape), a.shape)


def _count(a: Any, axis: Any) -> int:
    found = 1
    for each in _axes(a.ndim, axis):
        found *= a.shape[each]
    return found


def _rows(call: ArrayCall, a: Any, axis: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The elements that are reduced to one in a row each, and the way back."""
    m, axes = call.xp, _axes(a.ndim, axis)
    order = (*(i for i in range(a.ndim) if i not in axes), *axes)
    back = tuple(sorted(range(a.ndim), key=lambda i: order[i]))
    moved = m.transpose(a, order)
    rows = m.reshape(moved, (a.size // max(_count(a, axis), 1), _count(a, axis)))
    return rows, lambda changed: m.transpose(m.reshape(changed, moved.shape), back)


def _reverse_sum(
    call: ArrayCall, cotangent: Any, a: Any, axis: Any = None, dtype: Any = None, *, keepdims: Any = False
) -> Any:
    return _stretched(call, cotangent, a, axis)


def _reverse_add_reduce(
    call: ArrayCall, cotangent: Any, a: Any, axis: Any = 0, dtype: Any = None, *, keepdims: Any = False
) -> Any:
    return _stretched(call, cotangent, a, axis)


def _reverse_mean(
    call: ArrayCall, cotangent: Any, a: Any, axis: Any = None, dtype: Any = None, *, keepdims: Any = False
) -> Any:
    return _stretched(call, cotangent / _count(a, axis), a, axis)


def _reverse_prod(
    call: ArrayCall, cotangent: Any, a: Any, axis: Any = None, dtype: Any = None, *, keepdims: Any = False
) -> Any:
    m = call.xp
    rows, back = _rows(call, a, axis)
    ones = m.ones_like(rows[:, :1])
    before = m.cumprod(m.concatenate([ones, rows[:, :-1]], axis=1), axis=1)
    after = m.cumprod(m.concatenate([ones, rows[:, :0:-1]], axis=1), axis=1)[:, ::-1]
    return call.times(_stretched(call, cotangent, a, axis), back(before * after))


def _reverse_cumprod(call: ArrayCall, cotangent: Any, a: Any, axis: Any = None, dtype: Any = None) -> Any:
    """The product before an element, times s[k] = cotangent[k] + a[k + 1] s[k + 1]: zeros divide nothing."""
    m = call.xp
    rows, back = _rows(call, a, axis)
    given, _ = _rows(call, cotangent.reshape(a.shape), axis)
    before = m.cumprod(m.concatenate([m.ones_like(rows[:, :1]), rows[:, :-1]], axis=1), axis=1)
    after = given.copy()
    for k in range(rows.shape[1] - 2, -1, -1):
        after[:, k] += m.conj(rows[:, k + 1]) * after[:, k + 1]
    return back(call.times(after, before))


def _reverse_multiply_accumulate(call: ArrayCall, cotangent: Any, a: Any, axis: Any = 0, dtype: Any = None) -> Any:
    return _reverse_cumprod(call, cotangent, a, axis)


def _reverse_ptp(call: ArrayCall, cotangent: Any, a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    highest, lowest = (_extreme(position)(call, cotangent, a, axis) for position in ("argmax", "argmin"))
    return highest - lowest


def _reverse_average(
    call: ArrayCall, cotangent: Any, a: Any, axis: Any = None, weights: Any = None, *, keepdims: Any = False
) -> tuple[Any, ...]:
    m = call.xp
    if weights is None:
        return (_reverse_mean(call, cotangent, a, axis),)
    axes, own = _axes(a.ndim, axis), m.asarray(weights)
    if own.shape != a.shape:  # NumPy takes a row of weights along the axis
        own = m.reshape(own, tuple(length if i in axes else 1 for i, length in enumerate(a.shape)))
    spread = m.broadcast_to(own, a.shape)
    share = _stretched(call, cotangent, a, axis) / m.conj(m.sum(spread, axis=axes, keepdims=True))
    if not call.is_active(weights):
        return share * m.conj(spread), None, None
    to_own = call.like(m.conj(a - _stretched(call, call.result, a, axis)) * share, own)
    return share * m.conj(spread), None, m.reshape(to_own, weights.shape)


def _of_numbers(reverse: Callable[..., Any], filler: float) -> Callable[..., Any]:
    """Rule of a function that leaves NaN out: the rule of the function that does not, where those have a filler."""

    def without(
        call: ArrayCall, cotangent: Any, a: Any, axis: Any = None, dtype: Any = None, *, keepdims: Any = False
    ) -> Any:
        isnan = call.xp.isnan(a)
        filled = call.xp.where(isnan, filler, a)
        return call.xp.where(isnan, 0, reverse(call, cotangent, filled, axis))

    return without


def _nan_mean(call: ArrayCall, cotangent: Any, a: Any, axis: Any = None) -> Any:
    given = _stretched(call, cotangent, a, axis)
    original = call.args[0] if call.args else call.kwargs["a"]
    count = call.xp.sum(~call.xp.isnan(original), axis=_axes(a.ndim, axis), keepdims=True)
    return given / count


def _reverse_trapezoid(
    call: ArrayCall, cotangent: Any, y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1
) -> tuple[Any, ...]:
    """Half the width of each strip goes to either end; the mean heights go to the abscissae."""
    m = call.xp
    along = axis % y.ndim
    given = m.expand_dims(cotangent, along)

    def moved(values: Any) -> Any:
        return m.moveaxis(values, along, -1)

    width = dx if x is None else m.diff(x) if m.ndim(x) == 1 else moved(m.diff(x, axis=along))
    strips = m.broadcast_to(moved(given), moved(y)[..., 1:].shape)
    edge = m.zeros((*strips.shape[:-1], 1), cotangent.dtype)

    def at_ends(left: Any, right: Any) -> Any:
        return m.concatenate([left, edge], axis=-1) + m.concatenate([edge, right], axis=-1)

    half = 0.5 * strips * m.conj(m.asarray(width))
    to_y = m.moveaxis(at_ends(half, half), -1, along)
    if x is None or not call.is_active(x):
        return to_y, None
    heights = strips * m.conj(0.5 * (moved(y)[..., 1:] + moved(y)[..., :-1]))
    to_x = at_ends(-heights, heights)
    return to_y, call.like(to_x if m.ndim(x) == 1 else m.moveaxis(to_x, -1, along), x)


def _weights_of_softmax(m: Any, a: Any, axis: Any) -> Any:
    powers = m.exp(a - m.max(a, axis=_axes(a.ndim, axis), keepdims=True))
    return powers / m.sum(powers, axis=_axes(a.ndim, axis), keepdims=True)


def _reverse_logsumexp(call: ArrayCall, cotangent: Any, a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
    return call.times(_stretched(call, cotangent, a, axis), _weights_of_softmax(call.xp, a, axis))


def _reverse_softmax(call: ArrayCall, cotangent: Any, x: Any, axis: Any = None) -> Any:
    y = call.result
    return y * (cotangent - call.xp.sum(cotangent * y, axis=_axes(x.ndim, axis), keepdims=True))


def _reverse_log_softmax(call: ArrayCall, cotangent: Any, x: Any, axis: Any = None) -> Any:
    total = call.xp.sum(cotangent, axis=_axes(x.ndim, axis), keepdims=True)
    return cotangent - call.xp.exp(call.result) * total


def _extreme(position: str) -> Callable[..., Any]:
    """The first of the extreme values has the derivative."""

    def reverse(call: ArrayCall, cotangent: Any, a: Any, axis: Any = None, *, keepdims: Any = False) -> Any:
        m = call.xp
        rows, back = _rows(call, a, axis)
        places = getattr(m, position)(rows, axis=1)
        is_there = m.arange(rows.shape[1])[None, :] == places[:, None]
        return m.where(back(is_there), _stretched(call, cotangent, a, axis), 0)

    return reverse


def _extreme_reduce(position: str) -> Callable[..., Any]:
    def reverse(call: ArrayCall, cotangent: Any, a: Any, axis: Any = 0, *, keepdims: Any = False) -> Any:
        return _extreme(position)(call, cotangent, a, axis, keepdims=keepdims)

    return reverse


def _prod_reduce(
    call: ArrayCall, cotangent: Any, a: Any, axis: Any = 0, dtype: Any = None, *, keepdims: Any = False
) -> Any:
    return _reverse_prod(call, cotangent, a, axis)


def _reverse_var(
    call: ArrayCall,
    cotangent: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: Any = 0,
    keepdims: Any = False,
) -> Any:
    away = a - call.xp.mean(a, axis=_axes(a.ndim, axis), keepdims=True)
    return call.times(_stretched(call, cotangent, a, axis), 2.0 / (_count(a, axis) - ddof) * away)


def _reverse_std(
    call: ArrayCall,
    cotangent: Any,
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    *,
    ddof: Any = 0,
    keepdims: Any = False,
) -> Any:
    """Zero where all values are equal."""
    m, deviation = call.xp, call.result
    slope = m.where(deviation == 0, 0.0, 0.5 / m.where(deviation == 0, 1.0, deviation))
    return _reverse_var(call, call.times(cotangent, slope), a, axis, ddof=ddof)


def _reverse_norm(
    call: ArrayCall, cotangent: Any, x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False
) -> Any:
    """Zero at the origin."""
    m = call.xp
    length = _stretched(call, call.result, x, axis)
    along = m.abs(x) if ord == 1 else length
    slope = m.where(along == 0, 0.0, x / m.where(along == 0, 1.0, along))
    return call.times(_stretched(call, cotangent, x, axis), m.conj(slope))


def _norm_is_of_columns(x: Any, ord: Any = None, axis: Any = None, keepdims: Any = False) -> str | None:
    axes = len(_axes(x.ndim, axis))
    if ord is None or (ord == "fro" and axes == 2) or (ord in {1, 2} and axes == 1):
        return None
    return f"it has no rule for ord={ord!r} of {'a matrix' if axes == 2 else 'a vector'}"


def _reverse_cumsum(call: ArrayCall, cotangent: Any, a: Any, axis: Any = None, dtype: Any = None) -> Any:
    m = call.xp
    along = 0 if axis is None else axis
    summed = m.flip(m.cumsum(m.flip(cotangent, along), axis=along), along)
    return m.reshape(summed, a.shape)


def _reverse_accumulate(call: ArrayCall, cotangent: Any, a: Any, axis: Any = 0, dtype: Any = None) -> Any:
    return _reverse_cumsum(call, cotangent, a, axis)


def _reverse_diff(call: ArrayCall, cotangent: Any, a: Any, n: int = 1, axis: int = -1) -> Any:
    m = call.xp
    for _ in range(n):
        shape = list(cotangent.shape)
        shape[axis] = 1
        edge = m.zeros(shape, cotangent.dtype)
        cotangent = m.concatenate([edge, cotangent], axis=axis) - m.concatenate([cotangent, edge], axis=axis)
    return cotangent


RULES: Final = (
    Rule("sum", _reverse_sum),
    Rule("add.reduce", _reverse_add_reduce),
    Rule("mean", _reverse_mean),
    Rule("prod", _reverse_prod),
    Rule("multiply.reduce", _prod_reduce),
    *(Rule(name, _extreme("argmax"), is_real=True) for name in ("max", "amax")),
    *(Rule(name, _extreme("argmin"), is_real=True) for name in ("min", "amin")),
    Rule("maximum.reduce", _extreme_reduce("argmax"), is_real=True),
    Rule("minimum.reduce", _extreme_reduce("argmin"), is_real=True),
    Rule("var", _reverse_var, is_real=True),
    Rule("std", _reverse_std, is_real=True),
    Rule("linalg.norm", _reverse_norm, check=_norm_is_of_columns),
    Rule("cumsum", _reverse_cumsum),
    Rule("add.accumulate", _reverse_accumulate),
    Rule("diff", _reverse_diff),
    Rule("cumprod", _reverse_cumprod),
    Rule("multiply.accumulate", _reverse_multiply_accumulate),
    Rule("ptp", _reverse_ptp, is_real=True),
    Rule("average", _reverse_average, arrays=3),
    Rule("nansum", _of_numbers(_reverse_sum, 0.0)),
    Rule("nanprod", _of_numbers(_reverse_prod, 1.0)),
    Rule("nanmean", _of_numbers(_nan_mean, 0.0)),
    Rule("nanmax", _of_numbers(_extreme("argmax"), -math.inf), is_real=True),
    Rule("nanmin", _of_numbers(_extreme("argmin"), math.inf), is_real=True),
    *(Rule(name, _reverse_trapezoid, arrays=2) for name in ("trapezoid", "trapz")),
    Rule("logsumexp", _reverse_logsumexp, is_real=True),
    Rule("softmax", _reverse_softmax, is_real=True),
    Rule("log_softmax", _reverse_log_softmax, is_real=True),
)
