"""Products and triangular solves of sparse matrices in compressed form.

A matrix in CSR has its rows one after the other: ``data[indptr[i]:indptr[i + 1]]`` are the entries of row i, and
``indices`` their columns. In CSC it has its columns, likewise. What is stored is the pattern; a stored zero is an entry
like any other, with a derivative.

This is plain compiled code, which irad differentiates: gradients with respect to ``data`` are on the pattern, in all
modes and orders.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable


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

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import csr_matvec
        >>> indices, indptr = np.array([0, 1, 1]), np.array([0, 2, 3])  # two rows
        >>> csr_matvec(np.array([1.0, 2.0, 3.0]), indices, indptr, np.array([1.0, 10.0]))
        array([21., 30.])
    """
    found = np.zeros(indptr.size - 1, data.dtype)
    for i in range(found.size):
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

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import csc_matvec
        >>> indices, indptr = np.array([0, 1, 1]), np.array([0, 2, 3])  # two columns
        >>> csc_matvec(np.array([1.0, 2.0, 3.0]), indices, indptr, np.array([1.0, 10.0]), 2)
        array([ 1., 32.])
    """
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

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import csr_matmat
        >>> indices, indptr = np.array([0, 1, 1]), np.array([0, 2, 3])
        >>> csr_matmat(np.array([1.0, 2.0, 3.0]), indices, indptr, np.eye(2))
        array([[1., 2.],
               [0., 3.]])
    """
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

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import csc_matmat
        >>> indices, indptr = np.array([0, 1, 1]), np.array([0, 2, 3])
        >>> csc_matmat(np.array([1.0, 2.0, 3.0]), indices, indptr, np.eye(2), 2)
        array([[1., 0.],
               [2., 3.]])
    """
    found = np.zeros((rows, x.shape[1]), data.dtype)
    for i in range(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            for j in range(found.shape[1]):
                found[indices[k], j] += data[k] * x[i, j]
    return found


@register_jitable
def _diagonal(indices, indptr, i, is_before):  # type: ignore[no-untyped-def]
    """Where the diagonal entry of a row or column is, whose other entries have to stand before it, or behind it."""
    at = -1
    for k in range(indptr[i], indptr[i + 1]):
        if indices[k] == i and at < 0:
            at = k
        elif not (indices[k] < i if is_before else indices[k] > i):
            raise ValueError("a sparse triangular solve is given a matrix that is not triangular")
    if at < 0:
        raise ValueError("a sparse triangular solve is given a matrix without an entry on the diagonal")
    return at


@register_jitable
def _solved(data, indices, indptr, b, lower, by_rows):  # type: ignore[no-untyped-def]
    """The solution of a triangular system, row by row, or column by column."""
    n = indptr.size - 1
    x = np.empty(n, data.dtype)
    for i in range(n):
        x[i] = b[i]
    for step in range(n):
        i = step if lower else n - 1 - step
        at = _diagonal(indices, indptr, i, lower == by_rows)
        if not by_rows:
            x[i] /= data[at]
        for k in range(indptr[i], indptr[i + 1]):
            if k != at:
                if by_rows:
                    x[i] -= data[k] * x[indices[k]]
                else:
                    x[indices[k]] -= data[k] * x[i]
        if by_rows:
            x[i] /= data[at]
    return x


@njit
def csr_solve_triangular(data: Any, indices: Any, indptr: Any, b: Any, lower: Any = True) -> Any:
    """The solution of a triangular system with a matrix in CSR.

    Args:
        data: the entries, row by row; each row has one on the diagonal.
        indices: their columns, in any order.
        indptr: where each row begins, and the number of entries.
        b: the right-hand side, a vector.
        lower: whether the matrix is lower triangular, or upper. An entry on the other side is an error.

    Returns:
        A vector.

    Raises:
        ValueError: the matrix is not triangular, or a diagonal entry is missing.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import csr_solve_triangular
        >>> indices, indptr = np.array([0, 0, 1]), np.array([0, 1, 3])
        >>> csr_solve_triangular(np.array([2.0, 1.0, 4.0]), indices, indptr, np.array([2.0, 9.0]))
        array([1., 2.])
    """
    return _solved(data, indices, indptr, b, lower, by_rows=True)


@njit
def csc_solve_triangular(data: Any, indices: Any, indptr: Any, b: Any, lower: Any = True) -> Any:
    """The solution of a triangular system with a matrix in CSC.

    Args:
        data: the entries, column by column; each column has one on the diagonal.
        indices: their rows, in any order.
        indptr: where each column begins, and the number of entries.
        b: the right-hand side, a vector.
        lower: whether the matrix is lower triangular, or upper. An entry on the other side is an error.

    Returns:
        A vector.

    Raises:
        ValueError: the matrix is not triangular, or a diagonal entry is missing.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import csc_solve_triangular
        >>> indices, indptr = np.array([0, 1, 1]), np.array([0, 2, 3])
        >>> csc_solve_triangular(np.array([2.0, 1.0, 4.0]), indices, indptr, np.array([2.0, 9.0]))
        array([1., 2.])
    """
    return _solved(data, indices, indptr, b, lower, by_rows=False)
