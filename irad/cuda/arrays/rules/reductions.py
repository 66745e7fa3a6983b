"""Sums, products, extreme values and norms over axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from irad.cuda.arrays.ruleset import ArrayCall, Rule


def _axes(ndim: int, axis: Any) -> tuple[int, ...]:
    if axis is None:
        return tuple(range(ndim))
    return tuple(each % ndim for each in (axis if isinstance(axis, tuple | list) else (axis,)))


def _stretched(call: ArrayCall, reduced: Any, a: Any, axis: Any) -> Any:
    """A result of a reduction, in the shape of what was reduced."""
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
)
