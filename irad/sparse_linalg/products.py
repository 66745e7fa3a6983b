"""Products and triangular solves of sparse matrices in compressed form.

A matrix in CSR has its rows one after the other: ``data[indptr[i]:indptr[i + 1]]`` are the entries of row i, and
``indices`` their columns. In CSC it has its columns so. What is stored is the pattern; a stored zero is an entry
like any other, with a derivative.

Entries and vectors of several types become one as in NumPy. Before anything is read, sizes and indices are checked: a
scan of the indices, which LLVM vectorises, beside which the product is slow.

This is plain compiled code, which irad differentiates: gradients with respect to ``data`` are on the pattern, in all
modes and orders.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_njit, inner_overload
from irad.frontend.operands import inexact, numbers, require, require_axes, require_vectors, whole


@inactive_in_irad
@inner_njit
def check_matrix(name: str, entries: int, indices: Any, indptr: Any, across: int) -> None:
    """Checks that all entries of a matrix are there, and that their indices are.

    Args:
        name: name of the function that was called.
        entries: number of entries.
        indices: their columns in CSR, rows in CSC.
        indptr: where each row begins in CSR, each column in CSC, and the number of entries.
        across: number of columns in CSR, of rows in CSC.

    Raises:
        ValueError: of a matrix that is not one.
    """
    if indices.size != entries:
        raise FormattedValueError("{}: {} entries and {} indices", name, entries, indices.size)
    if indptr.size < 1:
        raise FormattedValueError(
            "{}: indptr is empty; for a matrix of n rows, or columns in CSC, it has n + 1 elements", name
        )
    first, last = np.int64(indptr[0]), np.int64(indptr[indptr.size - 1])
    falls = 0
    for i in range(indptr.size - 1):
        falls += indptr[i] > indptr[i + 1]
    if first < 0 or last < first or last > entries or falls > 0:  # a large unsigned number is negative here
        raise FormattedValueError(
            "{}: indptr goes from {} to {}, {} times downwards, for {} entries", name, first, last, falls, entries
        )
    if first == last:
        return
    lowest, highest = indices[first], indices[first]
    for k in range(first, last):
        lowest, highest = min(lowest, indices[k]), max(highest, indices[k])
    if lowest < 0 or highest >= across:
        raise FormattedValueError("{}: indices from {} to {} do not fit a size of {}", name, lowest, highest, across)


@inactive_in_irad
@inner_njit
def check_size(name: str, what: str, found: int, wanted: int) -> None:
    """Checks the size of a vector or of an axis of a dense matrix, or a number of rows."""
    if found != wanted:
        raise FormattedValueError("{}: {} {} for a sparse matrix with {}", name, what, found, wanted)


@njit
def csr_matvec(data: Any, indices: Any, indptr: Any, x: Any) -> Any:
    """The product of a matrix in CSR with a vector.

    Args:
        data: the entries, row by row.
        indices: their columns.
        indptr: where each row begins, and the number of entries.
        x: the vector.

    Returns:
        A vector with an entry for each row.

    Raises:
        ValueError: sizes or indices do not fit.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import csr_matvec
        >>> indices, indptr = np.array([0, 1, 1]), np.array([0, 2, 3])  # two rows
        >>> csr_matvec(np.array([1.0, 2.0, 3.0]), indices, indptr, np.array([1.0, 10.0]))
        array([21., 30.])
    """
    require("csr_matvec", "iu", indices, indptr)
    data, x = numbers("csr_matvec", data, x)
    require_axes("csr_matvec", 1, data, indices, indptr, x)
    check_matrix("csr_matvec", data.size, indices, indptr, x.size)
    found = np.zeros(indptr.size - 1, data.dtype)
    for i in range(found.size):
        # A zero of the type of the entries.
        total = found[i]
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * x[indices[k]]
        found[i] = total
    return found


@njit
def csc_matvec(data: Any, indices: Any, indptr: Any, x: Any, rows: Any) -> Any:
    """The product of a matrix in CSC with a vector; with the arrays of a CSR matrix, that of its transpose.

    Args:
        data: the entries, column by column.
        indices: their rows.
        indptr: where each column begins, and the number of entries.
        x: the vector.
        rows: how many rows the matrix has.

    Returns:
        A vector with an entry for each row.

    Raises:
        ValueError: sizes or indices do not fit.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import csc_matvec
        >>> indices, indptr = np.array([0, 1, 1]), np.array([0, 2, 3])  # two columns
        >>> csc_matvec(np.array([1.0, 2.0, 3.0]), indices, indptr, np.array([1.0, 10.0]), 2)
        array([ 1., 32.])
    """
    require("csc_matvec", "iu", indices, indptr)
    data, x = numbers("csc_matvec", data, x)
    require_axes("csc_matvec", 1, data, indices, indptr, x)
    rows = whole("csc_matvec", rows)
    check_matrix("csc_matvec", data.size, indices, indptr, rows)
    check_size("csc_matvec", "a vector of", x.size, indptr.size - 1)
    found = np.zeros(rows, data.dtype)
    for j in range(indptr.size - 1):
        for k in range(indptr[j], indptr[j + 1]):
            found[indices[k]] += data[k] * x[j]
    return found


@njit
def csr_matmat(data: Any, indices: Any, indptr: Any, x: Any) -> Any:
    """The product of a matrix in CSR with a dense matrix.

    Args:
        data: the entries, row by row.
        indices: their columns.
        indptr: where each row begins, and the number of entries.
        x: the dense matrix.

    Returns:
        A dense matrix.

    Raises:
        ValueError: sizes or indices do not fit.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import csr_matmat
        >>> indices, indptr = np.array([0, 1, 1]), np.array([0, 2, 3])
        >>> csr_matmat(np.array([1.0, 2.0, 3.0]), indices, indptr, np.eye(2))
        array([[1., 2.],
               [0., 3.]])
    """
    require("csr_matmat", "iu", indices, indptr)
    data, x = numbers("csr_matmat", data, x)
    require_axes("csr_matmat", 1, data, indices, indptr)
    require_axes("csr_matmat", 2, x)
    check_matrix("csr_matmat", data.size, indices, indptr, x.shape[0])
    found = np.zeros((indptr.size - 1, x.shape[1]), data.dtype)
    for i in range(found.shape[0]):
        for k in range(indptr[i], indptr[i + 1]):
            for j in range(found.shape[1]):
                found[i, j] += data[k] * x[indices[k], j]
    return found


@njit
def csc_matmat(data: Any, indices: Any, indptr: Any, x: Any, rows: Any) -> Any:
    """The product of a matrix in CSC with a dense matrix.

    Args:
        data: the entries, column by column.
        indices: their rows.
        indptr: where each column begins, and the number of entries.
        x: the dense matrix.
        rows: how many rows the matrix has.

    Returns:
        A dense matrix.

    Raises:
        ValueError: sizes or indices do not fit.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import csc_matmat
        >>> indices, indptr = np.array([0, 1, 1]), np.array([0, 2, 3])
        >>> csc_matmat(np.array([1.0, 2.0, 3.0]), indices, indptr, np.eye(2), 2)
        array([[1., 0.],
               [2., 3.]])
    """
    require("csc_matmat", "iu", indices, indptr)
    data, x = numbers("csc_matmat", data, x)
    require_axes("csc_matmat", 1, data, indices, indptr)
    require_axes("csc_matmat", 2, x)
    rows = whole("csc_matmat", rows)
    check_matrix("csc_matmat", data.size, indices, indptr, rows)
    check_size("csc_matmat", "a matrix with rows:", x.shape[0], indptr.size - 1)
    found = np.zeros((rows, x.shape[1]), data.dtype)
    for i in range(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            for j in range(found.shape[1]):
                found[indices[k], j] += data[k] * x[i, j]
    return found


@register_jitable
def _diagonal(indices, indptr, i, is_before):  # type: ignore[no-untyped-def]
    """Position of the diagonal entry of a row or column, whose other entries have to stand before it, or after it."""
    at = -1
    for k in range(indptr[i], indptr[i + 1]):
        if indices[k] == i and at < 0:
            at = k
        elif not (indices[k] < i if is_before else indices[k] > i):
            raise ValueError("a sparse triangular solve is given a matrix that is not triangular")
    if at < 0:
        raise ValueError("a sparse triangular solve is given a matrix without an entry on the diagonal")
    return at


def subtract(target: Any, i: Any, factor: Any, source: Any, j: Any) -> None:
    """Subtracts a multiple of an element of one vector from one of another, or of a row of a matrix from a row."""
    raise NotImplementedError


def divide(target: Any, i: Any, divisor: Any) -> None:
    """Divides an element of a vector, or a row of a matrix."""
    raise NotImplementedError


@inner_overload(subtract, strict=False)
def _subtract_typed(target: Any, i: Any, factor: Any, source: Any, j: Any) -> Any:
    def of_elements(target, i, factor, source, j):  # type: ignore[no-untyped-def]
        target[i] -= factor * source[j]

    def of_rows(target, i, factor, source, j):  # type: ignore[no-untyped-def]
        for c in range(target.shape[1]):
            target[i, c] -= factor * source[j, c]

    return of_elements if target.ndim == 1 else of_rows


@inner_overload(divide, strict=False)
def _divide_typed(target: Any, i: Any, divisor: Any) -> Any:
    def of_elements(target, i, divisor):  # type: ignore[no-untyped-def]
        target[i] /= divisor

    def of_rows(target, i, divisor):  # type: ignore[no-untyped-def]
        for c in range(target.shape[1]):
            target[i, c] /= divisor

    return of_elements if target.ndim == 1 else of_rows


@register_jitable
def _solved(data, indices, indptr, b, lower, by_rows):  # type: ignore[no-untyped-def]
    """The solution of a triangular system, row by row, or column by column."""
    n, x = indptr.size - 1, b.copy()
    for step in range(n):
        i = step if lower else n - 1 - step
        at = _diagonal(indices, indptr, i, lower == by_rows)
        if not by_rows:
            divide(x, i, data[at])
        for k in range(indptr[i], indptr[i + 1]):
            if k != at:
                if by_rows:
                    subtract(x, i, data[k], x, indices[k])
                else:
                    subtract(x, indices[k], data[k], x, i)
        if by_rows:
            divide(x, i, data[at])
    return x


@njit
def csr_solve_triangular(data: Any, indices: Any, indptr: Any, b: Any, lower: Any = True) -> Any:
    """The solution of a triangular system with a matrix in CSR.

    Args:
        data: the entries, row by row; each row has one on the diagonal.
        indices: their columns, in any order.
        indptr: where each row begins, and the number of entries.
        b: the right-hand side: a vector, or a matrix of several in its columns.
        lower: whether the matrix is lower triangular, or upper. An entry on the other side is an error.

    Returns:
        An array of the shape of ``b``.

    Raises:
        ValueError: sizes do not fit, the matrix is not triangular, or a diagonal entry is missing.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import csr_solve_triangular
        >>> indices, indptr = np.array([0, 0, 1]), np.array([0, 1, 3])
        >>> csr_solve_triangular(np.array([2.0, 1.0, 4.0]), indices, indptr, np.array([2.0, 9.0]))
        array([1., 2.])
    """
    require("csr_solve_triangular", "iu", indices, indptr)
    data, b = inexact("csr_solve_triangular", data, b)
    require_axes("csr_solve_triangular", 1, data, indices, indptr)
    require_vectors("csr_solve_triangular", b)
    check_matrix("csr_solve_triangular", data.size, indices, indptr, indptr.size - 1)
    check_size("csr_solve_triangular", "a right-hand side of", b.shape[0], indptr.size - 1)
    return _solved(data, indices, indptr, b, lower, by_rows=True)


@njit
def csc_solve_triangular(data: Any, indices: Any, indptr: Any, b: Any, lower: Any = True) -> Any:
    """The solution of a triangular system with a matrix in CSC.

    Args:
        data: the entries, column by column; each column has one on the diagonal.
        indices: their rows, in any order.
        indptr: where each column begins, and the number of entries.
        b: the right-hand side: a vector, or a matrix of several in its columns.
        lower: whether the matrix is lower triangular, or upper. An entry on the other side is an error.

    Returns:
        An array of the shape of ``b``.

    Raises:
        ValueError: sizes do not fit, the matrix is not triangular, or a diagonal entry is missing.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import csc_solve_triangular
        >>> indices, indptr = np.array([0, 1, 1]), np.array([0, 2, 3])
        >>> csc_solve_triangular(np.array([2.0, 1.0, 4.0]), indices, indptr, np.array([2.0, 9.0]))
        array([1., 2.])
    """
    require("csc_solve_triangular", "iu", indices, indptr)
    data, b = inexact("csc_solve_triangular", data, b)
    require_axes("csc_solve_triangular", 1, data, indices, indptr)
    require_vectors("csc_solve_triangular", b)
    check_matrix("csc_solve_triangular", data.size, indices, indptr, indptr.size - 1)
    check_size("csc_solve_triangular", "a right-hand side of", b.shape[0], indptr.size - 1)
    return _solved(data, indices, indptr, b, lower, by_rows=False)
