"""Sparse systems by an LU factorisation, with a rule: the factors of the primal serve the derivative."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from irad.api.custom.rules import augmented_primal, forward, reverse
from irad.frontend.custom.rule_arguments import AugmentedReturn, is_active
from irad.frontend.operands import inexact, require, require_axes
from irad.sparse_linalg.products import check_matrix, check_size, csc_matvec, csr_matvec


@register_jitable
def _grown(array, needed):  # type: ignore[no-untyped-def]
    if needed <= array.size:
        return array
    more = np.zeros(max(needed, 2 * array.size), array.dtype)
    more[: array.size] = array
    return more


@register_jitable
def _factored(data, indices, indptr):  # type: ignore[no-untyped-def]
    """Factors of a matrix in CSC with its rows permuted: left-looking, with partial pivoting.

    Both factors are stored by columns, in one pair of arrays, the entries of U in front and the pivot between. What is
    an entry is decided by the pattern alone, so that an entry that happens to be zero is one.
    """
    n = indptr.size - 1
    values, rows = np.zeros(2 * data.size + n, data.dtype), np.zeros(2 * data.size + n, np.int64)
    starts, middles = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    order, place = np.zeros(n, np.int64), np.full(n, -1)  # the row of each pivot; the pivot of each row
    work, is_entry = np.zeros(n, data.dtype), np.zeros(n, np.bool_)
    for j in range(n):
        for k in range(indptr[j], indptr[j + 1]):
            work[indices[k]] += data[k]
            is_entry[indices[k]] = True
        at = starts[j]
        values, rows = _grown(values, at + n), _grown(rows, at + n)
        for i in range(j):
            if is_entry[order[i]]:
                values[at], rows[at] = work[order[i]], i
                at += 1
                for k in range(middles[i] + 1, starts[i + 1]):
                    work[rows[k]] -= values[k] * values[at - 1]
                    is_entry[rows[k]] = True
        chosen = -1
        for i in range(n):
            if is_entry[i] and place[i] < 0 and (chosen < 0 or abs(work[i]) > abs(work[chosen])):
                chosen = i
        if chosen < 0 or abs(work[chosen]) == 0.0:
            raise ValueError("a sparse solve is given a singular matrix")
        order[j], place[chosen], middles[j] = chosen, j, at
        pivot = work[chosen]
        values[at], rows[at] = pivot, chosen
        at += 1
        for i in range(n):
            if is_entry[i] and place[i] < 0:
                values[at], rows[at] = work[i] / pivot, i
                at += 1
            work[i] = 0.0
            is_entry[i] = False
        starts[j + 1] = at
    return values, rows, starts, middles, order


@register_jitable
def _back(factors, b):  # type: ignore[no-untyped-def]
    """The solution for the matrix that was factored."""
    values, rows, starts, middles, order = factors
    n = order.size
    right, x = b.astype(values.dtype), np.zeros(n, values.dtype)
    for j in range(n):
        x[j] = right[order[j]]
        for k in range(middles[j] + 1, starts[j + 1]):
            right[rows[k]] -= values[k] * x[j]
    for j in range(n - 1, -1, -1):
        x[j] /= values[middles[j]]
        for k in range(starts[j], middles[j]):
            x[rows[k]] -= values[k] * x[j]
    return x


@register_jitable
def _back_transposed(factors, b):  # type: ignore[no-untyped-def]
    """The solution for the transpose of the matrix that was factored."""
    values, rows, starts, middles, order = factors
    n = order.size
    y, x = b.astype(values.dtype), np.zeros(n, values.dtype)
    for j in range(n):
        for k in range(starts[j], middles[j]):
            y[j] -= values[k] * y[rows[k]]
        y[j] /= values[middles[j]]
    for j in range(n - 1, -1, -1):
        total = y[j]
        for k in range(middles[j] + 1, starts[j + 1]):
            total -= values[k] * x[rows[k]]
        x[order[j]] = total
    return x


@njit
def _csc_solution(data, indices, indptr, b):  # type: ignore[no-untyped-def]
    return _back(_factored(data, indices, indptr), b)


@njit
def _csr_solution(data, indices, indptr, b):  # type: ignore[no-untyped-def]
    return _back_transposed(_factored(data, indices, indptr), b)


def _system_of(name: str) -> Any:
    """Function that checks and converts the parts of a system, for the solver of a name."""

    @register_jitable
    def system(data, indices, indptr, b):  # type: ignore[no-untyped-def]
        require(name, "iu", indices, indptr)
        data, b = inexact(name, data, b)
        require_axes(name, 1, data, indices, indptr, b)
        check_matrix(name, data.size, indices, indptr, indptr.size - 1)
        check_size(name, "a right-hand side of", b.size, indptr.size - 1)
        return data, indices, indptr, b

    return system


_csc_system, _csr_system = _system_of("csc_solve"), _system_of("csr_solve")


@njit
def csc_solve(data: Any, indices: Any, indptr: Any, b: Any) -> Any:
    """The solution of a system with a matrix in CSC, by an LU factorisation with partial pivoting.

    The derivative with respect to ``data`` is on the pattern; entries that are stored more than once are added.

    Args:
        data: the entries, column by column.
        indices: their rows.
        indptr: where each column begins, and the number of entries.
        b: the right-hand side, a vector.

    Returns:
        A vector.

    Raises:
        ValueError: sizes or indices do not fit, or the matrix is singular.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import csc_solve
        >>> indices, indptr = np.array([0, 1, 1]), np.array([0, 2, 3])
        >>> csc_solve(np.array([2.0, 1.0, 4.0]), indices, indptr, np.array([2.0, 9.0]))
        array([1., 2.])
    """
    return _csc_solution(*_csc_system(data, indices, indptr, b))


@njit
def csr_solve(data: Any, indices: Any, indptr: Any, b: Any) -> Any:
    """The solution of a system with a matrix in CSR, by an LU factorisation with partial pivoting.

    The derivative with respect to ``data`` is on the pattern; entries that are stored more than once are added.

    Args:
        data: the entries, row by row.
        indices: their columns.
        indptr: where each row begins, and the number of entries.
        b: the right-hand side, a vector.

    Returns:
        A vector.

    Raises:
        ValueError: sizes or indices do not fit, or the matrix is singular.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import csr_solve
        >>> indices, indptr = np.array([0, 0, 1]), np.array([0, 1, 3])
        >>> csr_solve(np.array([2.0, 1.0, 4.0]), indices, indptr, np.array([2.0, 9.0]))
        array([1., 2.])
    """
    return _csr_solution(*_csr_system(data, indices, indptr, b))


@register_jitable
def _subtract_outer(data, indices, indptr, along, across):  # type: ignore[no-untyped-def]
    """Subtracts an outer product on the pattern: of a vector along the lines that are stored, and one across."""
    for j in range(indptr.size - 1):
        for k in range(indptr[j], indptr[j + 1]):
            data[k] -= along[j] * across[indices[k]]


def _with_rule(solve: Any, primal: Any, transposed: Any, product: Any, *, by_rows: bool) -> None:
    @augmented_primal(solve)
    def solve_augmented(config, data, indices, indptr, b):  # type: ignore[no-untyped-def]
        factors = _factored(data.value, indices.value, indptr.value)
        x = primal(factors, b.value)
        places = indices.value.copy() if config.overwritten[1] else indices.value
        starts = indptr.value.copy() if config.overwritten[2] else indptr.value
        return AugmentedReturn(x, np.zeros_like(x), (factors, places, starts, x.copy()))

    @reverse(solve)
    def solve_reverse(config, cotangent, tape, data, indices, indptr, b):  # type: ignore[no-untyped-def]
        if is_active(cotangent):
            factors, places, starts, x = tape
            multipliers = transposed(factors, cotangent)
            if is_active(b):
                b.shadow[:] += multipliers
            if is_active(data):
                along, across = (multipliers, x) if by_rows else (x, multipliers)
                _subtract_outer(data.shadow, places, starts, along, across)
        return None, None, None, None

    @forward(solve)
    def solve_forward(config, data, indices, indptr, b):  # type: ignore[no-untyped-def]
        factors = _factored(data.value, indices.value, indptr.value)
        x = primal(factors, b.value)
        change = np.zeros_like(x)
        if is_active(b):
            change += b.tangent
        if is_active(data):
            change -= product(data.tangent, indices.value, indptr.value, x)
        return x, primal(factors, change)


@register_jitable
def _csc_product(data, indices, indptr, x):  # type: ignore[no-untyped-def]
    return csc_matvec(data, indices, indptr, x, x.size)


_with_rule(_csc_solution, _back, _back_transposed, _csc_product, by_rows=False)
_with_rule(_csr_solution, _back_transposed, _back, csr_matvec, by_rows=True)
