"""A sparse matrix whose pattern is known: products are computed, and the entries taken out of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Protocol

import numpy as np

from irad.api.sparse.compression import Compression
from irad.api.sparse.patterns import blocks_of
from irad.api.sparse.products import Product
from irad.errors import SignatureError

_SEED: Final = 20261123


class Runs:
    """Products of the Jacobian, or its transpose, at some arguments and vectors.

    Arrays are restored before each run but the first, so that they are left as by one; as a context, at the end.

    Attributes:
        columns: how many the Jacobian has.
        aux: what the last run returned besides.
    """

    def __init__(
        self, products: Callable[..., Any], args: tuple[Any, ...], columns: int, *, is_transposed: bool
    ) -> None:
        self._products, self._args, self.columns, self._is_transposed = products, args, columns, is_transposed
        arrays = (each for each in args if isinstance(each, np.ndarray) and each.flags.writeable)
        self._before = [(array, array.copy()) for array in arrays]
        self._is_first, self.aux = True, None

    def __call__(self, vectors: Any) -> Any:
        """From vectors, as the rows of an array, to their products; none where the vectors do not fit."""
        return self.run(vectors)[1]

    def rows(self) -> int:
        """How many the Jacobian has. Leaves the arrays as they were."""
        with self:
            rows, _ = self.run(np.zeros((0, 0 if self._is_transposed else self.columns)))
        return int(rows)

    def run(self, vectors: Any) -> tuple[Any, Any]:
        """The number of rows of the Jacobian, and the products."""
        if not self._is_first:
            self.restore()
        self._is_first = False
        rows, products, *aux = self._products(vectors, *self._args)
        self.aux = aux[0] if aux else None
        return rows, products

    def __enter__(self) -> None:
        """Begins what leaves no trace in the arrays."""

    def __exit__(self, *_: object) -> None:
        """Ends it."""
        self.restore()

    def restore(self) -> None:
        """Gives the arrays the content that they had."""
        for array, content in self._before:
            array[...] = content


class Derivative(Protocol):
    """What was prepared."""

    def runs(self, product: Product, args: tuple[Any, ...]) -> Runs:
        """Products at the arguments."""
        ...

    def misfit(self, problem: str, remedy: str) -> SignatureError:
        """The error of a pattern that does not fit."""
        ...


class PreparedMatrix:
    """A sparse matrix whose pattern is known: call it with the arguments of the function.

    Attributes:
        pattern: a sparse matrix of bools.
        mode: "forward" where columns are computed together, "reverse" where rows are.
        colours: a number for each column, or row; those of one colour are computed together.
        products: how many products with a vector a call takes, without the check.
    """

    def __init__(self, derivative: Derivative, compression: Compression, *, checks: bool, has_aux: bool) -> None:
        self._derivative, self._compression, self._checks, self._has_aux = derivative, compression, checks, has_aux
        self.pattern, self.colours = compression.pattern, compression.colours
        self.mode, self.products = compression.mode, compression.count
        self._weights = np.random.default_rng(_SEED).uniform(1.0, 2.0, (1, self.colours.size))

    def __call__(self, *args: Any) -> Any:
        """The matrix, of SciPy's in the format CSC. Arguments are left as the function leaves them.

        Raises:
            SignatureError: the shape is not that of the pattern, or the pattern lacks an entry.
        """
        from scipy import sparse  # an optional dependency

        pattern, where = self.pattern, self._compression
        runs = self._derivative.runs(where.mode, args)
        if runs.columns != pattern.shape[1]:
            raise self._another_shape(f"{pattern.shape[1]} columns, the argument {runs.columns} numbers")
        checked, values = np.zeros(0), np.zeros(0)
        for first, last in blocks_of(self.colours):
            unit = (self.colours == np.arange(first, last)[:, np.newaxis]).astype(float)
            found = self._products(runs, np.vstack([self._weights, unit]) if self._checks and first == 0 else unit)
            if first == 0:
                values = np.zeros(pattern.nnz, found.dtype)
                checked, found = (found[0], found[1:]) if self._checks else (checked, found)
            mine = (first <= where.product) & (where.product < last)
            values[mine] = found[where.product[mine] - first, where.place[mine]]
        matrix = sparse.csc_array((values, pattern.indices, pattern.indptr), shape=pattern.shape)
        if self._checks:
            self._compare(matrix.T if self.mode == "reverse" else matrix, checked)
        return (matrix, runs.aux) if self._has_aux else matrix

    def _products(self, runs: Runs, vectors: Any) -> Any:
        rows, found = runs.run(vectors)
        if rows != self.pattern.shape[0]:
            raise self._another_shape(f"{self.pattern.shape[0]} rows, the value {rows} numbers")
        return found

    def _compare(self, matrix: Any, product: Any) -> None:
        """Compares with a product in a random direction: what the pattern lacks is in that, too."""
        weights = self._weights[0].astype(product.dtype)
        mine, scale = matrix @ weights, abs(matrix) @ weights
        bound = np.sqrt(np.finfo(product.dtype).eps) * (scale + np.finfo(product.dtype).eps * scale.max(initial=0.0))
        with np.errstate(invalid="ignore"):  # rows that are not finite tell nothing
            differs = np.isfinite(mine) & ~(abs(product - mine) <= bound)
        if differs.any():
            raise self._derivative.misfit(
                f"lacks an entry in {'column' if self.mode == 'reverse' else 'row'} {int(np.argmax(differs))}",
                "(a) prepare at these arguments as well, and pass the sum of both patterns as pattern= or (b) pass a "
                "pattern with every entry that may differ from zero",
            )

    def _another_shape(self, what: str) -> SignatureError:
        return self._derivative.misfit(f"has {what}", "prepare for arguments of this shape")

    def __repr__(self) -> str:
        return f"<{self._derivative!r}, prepared: {self.products} products>"
