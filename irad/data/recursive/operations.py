"""Operations on one vector of each structure, which write to ``out`` where that is given."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np

from irad.data.recursive.kinds import Vector, kind_of


def zero(value: Any, out: Any = None) -> Any:
    """The zero of the space that a vector is in."""
    kind = _kind(value)
    if out is None:
        return kind.zero(value)
    if kind.takes_ufuncs:
        out[...] = 0
        return out
    return _assigned(kind, out, kind.zero(value))


def copied(value: Any, out: Any = None) -> Any:
    """A copy."""
    kind = _kind(value)
    if out is None and kind.assign is not None:
        out = kind.zero(value)
    return value if out is None else _assigned(kind, out, value)


def add(a: Any, b: Any, out: Any = None) -> Any:
    """The sum of two vectors."""
    kind = _kind(a)
    return np.add(a, b, out=out) if kind.takes_ufuncs else _assigned(kind, out, a + b)


def subtract(a: Any, b: Any, out: Any = None) -> Any:
    """The difference of two vectors."""
    kind = _kind(a)
    return np.subtract(a, b, out=out) if kind.takes_ufuncs else _assigned(kind, out, a - b)


def scaled(value: Any, factor: Any, out: Any = None) -> Any:
    """The product of a vector and a number."""
    kind = _kind(value)
    return np.multiply(value, factor, out=out) if kind.takes_ufuncs else _assigned(kind, out, value * factor)


def axpy(target: Any, value: Any, *, factor: Any, room: Callable[[Any], Any], out: Any = None) -> Any:
    """``target + factor * value``.

    Args:
        target: a vector.
        value: another one.
        factor: a number.
        room: of a vector memory for a product with it, or None.
        out: where to write.
    """
    return add(target, scaled(value, factor, out=room(value)), out=out)


def divided(value: Any, divisor: Any, out: Any = None) -> Any:
    """The quotient of a vector and a number."""
    kind = _kind(value)
    return np.divide(value, divisor, out=out) if kind.takes_ufuncs else _assigned(kind, out, value / divisor)


_OPERATIONS: Final = frozenset({zero, copied, add, subtract, scaled, axpy, divided})


def is_elementwise(function: Callable[..., Any]) -> bool:
    """Whether a function is known to work element by element: it may be called with parts of arrays in their place."""
    of = function.func if isinstance(function, partial) else function
    return isinstance(of, np.ufunc) or of in _OPERATIONS


def is_scaling(function: Callable[..., Any]) -> bool:
    """Whether a function multiplies by a number, which makes complex numbers of floats if it is complex."""
    return isinstance(function, partial) and function.func in (scaled, axpy, divided)


def _kind(value: Any) -> Vector:
    kind = kind_of(value)
    assert isinstance(kind, Vector)
    return kind


def _assigned(kind: Vector, out: Any, value: Any) -> Any:
    if out is None:
        return value
    assert kind.assign is not None
    kind.assign(out, value)
    return out
