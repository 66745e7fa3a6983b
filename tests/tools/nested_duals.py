"""Derivatives of plain Python functions of any order, by dual numbers: the truth for derivatives of derivatives.

Each derivative that is taken has a level of its own, and each dual number the level at which it varies, so that
perturbations of nested derivatives stay apart. `NUMPY` and `IRAD` stand in for these modules where the source of a
random composition runs as plain Python: with them the same text is its own reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from types import SimpleNamespace
from typing import Any, Final

import numpy as np

_LEVELS: Final = count(1)


@dataclass(frozen=True, slots=True, eq=False)
class Dual:
    """``primal + tangent · ε``, with the ε of a level; both parts may be dual numbers of lower levels."""

    level: int
    primal: Any
    tangent: Any

    def __add__(self, other: Any) -> Any:
        return _combine(self, other, lambda a, b: a + b, lambda a, b, da, db: da + db)

    def __sub__(self, other: Any) -> Any:
        return _combine(self, other, lambda a, b: a - b, lambda a, b, da, db: da - db)

    def __mul__(self, other: Any) -> Any:
        return _combine(self, other, lambda a, b: a * b, lambda a, b, da, db: da * b + a * db)

    def __truediv__(self, other: Any) -> Any:
        return _combine(self, other, lambda a, b: a / b, lambda a, b, da, db: (da - a / b * db) / b)

    __radd__, __rmul__ = __add__, __mul__

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __rtruediv__(self, other: Any) -> Any:
        return _combine(other, self, lambda a, b: a / b, lambda a, b, da, db: (da - a / b * db) / b)

    def __pow__(self, exponent: int) -> Any:
        return _lifted(self, lambda a: a**exponent, lambda a: exponent * a ** max(exponent - 1, 0))

    def __neg__(self) -> Dual:
        return Dual(self.level, -self.primal, -self.tangent)

    def __abs__(self) -> Any:
        return -self if self < 0.0 else self

    def __lt__(self, other: Any) -> bool:
        return number(self) < number(other)

    def __gt__(self, other: Any) -> bool:
        return number(self) > number(other)


def number(value: Any) -> float:
    """What is left without perturbations."""
    while isinstance(value, Dual):
        value = value.primal
    return float(value)


def _parts(value: Any, level: int) -> tuple[Any, Any]:
    return (value.primal, value.tangent) if isinstance(value, Dual) and value.level == level else (value, 0.0)


def _combine(a: Any, b: Any, value: Callable[..., Any], slope: Callable[..., Any]) -> Any:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return NotImplemented
    level = max(x.level for x in (a, b) if isinstance(x, Dual))
    (a, da), (b, db) = _parts(a, level), _parts(b, level)
    return Dual(level, value(a, b), slope(a, b, da, db))


def _lifted(x: Any, value: Callable[[Any], Any], slope: Callable[[Any], Any]) -> Any:
    if isinstance(x, Dual):
        return Dual(x.level, value(x.primal), slope(x.primal) * x.tangent)
    return value(x)


def _elementwise(value: Callable[[float], float], slope: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        if isinstance(x, np.ndarray):
            return np.array([function(e) for e in x.ravel()], object).reshape(x.shape)
        if isinstance(x, Dual):
            return _lifted(x, function, slope)
        return value(x)

    return function


_exp = _elementwise(math.exp, lambda x: _exp(x))
_sin = _elementwise(math.sin, lambda x: _cos(x))
_cos = _elementwise(math.cos, lambda x: -_sin(x))
_tanh = _elementwise(math.tanh, lambda x: 1.0 - _tanh(x) ** 2)
_sqrt = _elementwise(math.sqrt, lambda x: 0.5 / _sqrt(x))

NUMPY: Final = SimpleNamespace(
    exp=_exp,
    sin=_sin,
    cos=_cos,
    tanh=_tanh,
    sqrt=_sqrt,
    abs=abs,
    empty_like=np.empty_like,
    zeros_like=lambda x: x * 0.0,
    array=lambda values: np.array(values, object),
    dot=np.dot,
    outer=np.outer,
    sum=np.sum,
)

# ------------------------------------------------------------------------------------------------- derivatives


def _perturbed(value: Any, tangent: Any, level: int) -> Any:
    if isinstance(value, np.ndarray):
        pairs = zip(value.ravel(), tangent.ravel(), strict=True)
        return np.array([Dual(level, a, b) for a, b in pairs], object).reshape(value.shape)
    return Dual(level, value, tangent)


def _part(value: Any, level: int, which: int) -> Any:
    if isinstance(value, tuple):
        return tuple(_part(v, level, which) for v in value)
    if isinstance(value, np.ndarray):
        return np.array([_parts(e, level)[which] for e in value.ravel()], object).reshape(value.shape)
    return _parts(value, level)[which]


def _pushforward(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Leaves arrays, and their tangents, as `irad.pushforward` does."""

    def function(*given: Any) -> tuple[Any, Any]:
        after = max(_positions(argnums)) + 1
        args, tangents = (*given[:after], *given[after + 1 :]), given[after]
        level, inner = next(_LEVELS), list(args)
        directions = dict(zip(_positions(argnums), (tangents,) if isinstance(argnums, int) else tangents, strict=True))
        for i, tangent in directions.items():
            inner[i] = _perturbed(args[i], tangent, level)
        before = [list(a) if isinstance(a, np.ndarray) else a for a in inner]
        value = f(*inner)
        for i, (given, old, new) in enumerate(zip(args, before, inner, strict=True)):
            if isinstance(given, np.ndarray) and any(a is not b for a, b in zip(old, new, strict=True)):
                given[...] = _part(new, level, 0)
                if i in directions:
                    directions[i][...] = _part(new, level, 1)
        return _part(value, level, 0), _part(value, level, 1)

    return function


def _positions(argnums: int | Sequence[int]) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


def _columns(f: Callable[..., Any], i: int, args: tuple[Any, ...]) -> Any:
    """The derivative of what ``f`` returns with respect to an argument: indices of the value first."""

    def column(tangent: Any) -> Any:
        copies = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        return _pushforward(f, i)(*copies[: i + 1], tangent, *copies[i + 1 :])[1]

    if not isinstance(args[i], np.ndarray):
        return column(1.0)
    n = args[i].size
    columns = [column(np.array([float(j == k) for k in range(n)], object)) for j in range(n)]
    return np.moveaxis(np.array(columns, object), 0, -1)


def _derivative(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    def function(*args: Any) -> Any:
        found = tuple(_columns(f, i, args) for i in _positions(argnums))
        f(*args)  # leaves the arguments as the function does
        return found[0] if isinstance(argnums, int) else found

    return function


def _value_and_derivative(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    def function(*args: Any) -> tuple[Any, Any]:
        found = tuple(_columns(f, i, args) for i in _positions(argnums))
        return f(*args), found[0] if isinstance(argnums, int) else found

    return function


def _hvp(f: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    return lambda *given: _pushforward(_derivative(f, argnums), argnums)(*given)[1]


IRAD: Final = SimpleNamespace(
    pushforward=_pushforward,
    grad=_derivative,
    value_and_grad=_value_and_derivative,
    jacobian=_derivative,
    hvp=_hvp,
    hessian=lambda f: _derivative(_derivative(f)),
)
