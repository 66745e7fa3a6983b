"""`VectorSpace`: any structure as one vector, for solvers that know nothing of what it holds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import numpy as np

from irad.api.structures.functions import (
    Predicate,
    copy,
    dot,
    leaves,
    make_zero,
    norm,
    recursive_map,
    recursive_map_into,
)
from irad.data.recursive.mapping import add, axpy, copied, divided, scaled, subtract, zero
from irad.errors import HERE, SignatureError
from irad.message import with_article


class VectorSpace:
    """A structure with the operations of a vector: ``+``, ``-``, products with numbers, inner products.

    Operators create new structures. In place, ``+=`` and the like reuse the memory of the vector on the left, and
    `axpy` and `copyto` that of another vector, as far as it can be overwritten. All work on the vectors of the
    structure, each once; its other parts stay those of the vector on the left.

    Args:
        value: any structure, as in `irad.data.recursive_map`.
        inactive: a predicate, as in `irad.data.recursive_map`.

    Attributes:
        value: the structure.

    Raises:
        SignatureError: in an operation: the structures are not alike, or the other operand is not a vector or a number.

    Examples:
        >>> import numpy as np
        >>> from irad.data import VectorSpace
        >>> x = VectorSpace({"w": np.array([3.0, 0.0]), "b": 4.0})
        >>> x.norm(), x.dot(x)
        (5.0, 25.0)
        >>> (x + 2.0 * x).value
        {'w': array([9., 0.]), 'b': 12.0}
        >>> x.map(np.sqrt).value["b"]
        2.0
        >>> y = x.zero()
        >>> x.copyto(y)
        >>> y.axpy(10.0, x)  # y += 10 x, without a temporary
        >>> y.value
        {'w': array([33.,  0.]), 'b': 44.0}
        >>> z = y.copy()
        >>> z.map_(np.minimum, x, y)
        >>> z.value
        {'w': array([3., 0.]), 'b': 4.0}
        >>> z.zero_()
        >>> z.norm()
        0.0
    """

    __slots__ = ("_inactive", "_scratch", "value")
    __array_ufunc__ = None  # NumPy's numbers leave products with a vector to it

    def __init__(self, value: Any, *, inactive: Predicate | None = None) -> None:
        self.value: Any = value.value if isinstance(value, VectorSpace) else value
        self._inactive = inactive
        self._scratch: dict[tuple[Any, ...], Any] = {}

    def __repr__(self) -> str:
        return f"VectorSpace({self.value!r})"

    def __add__(self, other: VectorSpace) -> Self:
        return self._made(add, other)

    def __sub__(self, other: VectorSpace) -> Self:
        return self._made(subtract, other)

    def __neg__(self) -> Self:
        return self * -1.0

    def __pos__(self) -> Self:
        return self

    def __mul__(self, factor: complex) -> Self:
        return self._made(_times(factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: complex) -> Self:
        return self._made(_over(divisor))

    def __iadd__(self, other: VectorSpace) -> Self:
        return self._overwritten(add, other)

    def __isub__(self, other: VectorSpace) -> Self:
        return self._overwritten(subtract, other)

    def __imul__(self, factor: complex) -> Self:
        return self._overwritten(_times(self._factor(factor)))

    def __itruediv__(self, divisor: complex) -> Self:
        return self._overwritten(_over(self._factor(divisor)))

    def dot(self, other: VectorSpace) -> Any:
        """The inner product with another vector, as `irad.data.dot` computes it."""
        return dot(self.value, _structure(other), inactive=self._inactive)

    def norm(self) -> float:
        """The Euclidean norm, as `irad.data.norm` computes it."""
        return norm(self.value, inactive=self._inactive)

    def zero(self) -> Self:
        """The zero vector of this space, in new memory."""
        return self._like(make_zero(self.value, inactive=self._inactive))

    def zero_(self) -> None:
        """Overwrites the vector with zeros."""
        self._overwritten(zero)

    def copy(self) -> Self:
        """A copy of the vector, in new memory."""
        return self._like(copy(self.value, inactive=self._inactive))

    def copyto(self, target: VectorSpace) -> None:
        """Overwrites another vector of this space with this one."""
        target._filled(copied, self)

    def map(self, f: Callable[..., Any], *others: VectorSpace) -> Self:
        """A new vector of the results of ``f`` for the parts of this vector and others: ``x.map(np.maximum, y)``."""
        return self._made(f, *others)

    def map_(self, f: Callable[..., Any], *vectors: VectorSpace) -> None:
        """Overwrites this vector with the results of ``f`` for the parts of others, as in ``x.map_(np.sqrt, y)``.

        Functions of NumPy, and others with a parameter ``out``, write to the arrays of this vector. It may itself be
        one of ``vectors``.
        """
        self._filled(f, *vectors)

    def axpy(self, factor: complex, x: VectorSpace) -> None:
        """Adds ``factor * x`` in place; the temporary memory for that is kept for the next call."""
        self._overwritten(partial(axpy, factor=self._factor(factor), room=self._room), x)

    def _factor(self, factor: complex) -> Any:
        """A number by which this vector can be multiplied in place."""
        number = _number(factor)
        if isinstance(number, complex):
            for part in leaves(self.value, inactive=self._inactive):
                if isinstance(part, np.ndarray) and part.dtype.kind == "f":
                    raise SignatureError(
                        f"an array of {part.dtype} is multiplied by a complex number in place",
                        "(a) use x * factor, which makes complex arrays or (b) pass a real number",
                        "the array cannot hold complex numbers",
                        HERE,
                    )
        return number

    def _room(self, like: Any) -> Any:
        """Memory for a product; None for numbers."""
        if not isinstance(like, np.ndarray):
            return None
        key = like.shape, like.dtype
        if key not in self._scratch:
            self._scratch[key] = np.empty_like(like)
        return self._scratch[key]

    def _like(self, value: Any) -> Self:
        return type(self)(value, inactive=self._inactive)

    def _made(self, operation: Callable[..., Any], *others: VectorSpace) -> Self:
        return self._like(recursive_map(operation, self.value, *map(_structure, others), inactive=self._inactive))

    def _overwritten(self, operation: Callable[..., Any], *others: VectorSpace) -> Self:
        return self._filled(operation, self, *others)

    def _filled(self, operation: Callable[..., Any], *vectors: VectorSpace) -> Self:
        self.value = recursive_map_into(operation, self.value, *map(_structure, vectors), inactive=self._inactive)
        return self


def _times(factor: complex) -> Callable[..., Any]:
    return partial(scaled, factor=_number(factor))


def _over(divisor: complex) -> Callable[..., Any]:
    return partial(divided, divisor=_number(divisor))


def _number(factor: Any) -> Any:
    """A number of Python, which does not change the type of what it is multiplied by."""
    if isinstance(factor, np.generic | np.ndarray) and factor.ndim == 0:
        factor = factor.item()
    if isinstance(factor, int | float | complex):
        return factor
    raise SignatureError(
        f"a vector is multiplied by {with_article(type(factor).__name__)}",
        "multiply it by a number; of two vectors, x.dot(y) is the inner product",
        "a vector space has products of vectors and numbers",
        HERE,
    )


def _structure(other: Any) -> Any:
    if isinstance(other, VectorSpace):
        return other.value
    raise SignatureError(
        f"a vector is combined with {with_article(type(other).__name__)}",
        "wrap the structure first: irad.data.VectorSpace(structure)",
        "operators combine two vectors of the same space",
        HERE,
    )
