"""Sparse systems by an LU factorisation, with a rule: the factors of the primal serve derivatives of all orders.

The factors have no derivative of their own. A solution with them is a function of the matrix that was factored, whose
entries are passed with them; its rule solves with the same factors again, through the rule.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numba.core import types

from irad.api.custom.rules import augmented_primal, forward, reverse
from irad.frontend.custom.rule_arguments import AugmentedReturn, is_active
from irad.frontend.custom.rules_from_partials import kept_value
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.operands import inexact, require, require_axes, require_vectors
from irad.sparse_linalg.ordering import column_order, grown
from irad.sparse_linalg.products import check_matrix, check_size, divide, subtract


@inner_jitable
def _reached(start, j, found, top, seen, stack, at, rows, starts, middles, place):  # type: ignore[no-untyped-def]
    """Puts the rows that a row fills in through the columns of L before those found, itself first; returns the top."""
    depth, stack[0], at[0], seen[start] = 0, start, -1, j
    while depth >= 0:
        i = stack[depth]
        p, k, following = place[i], at[depth], -1
        if p >= 0:
            k = middles[p] + 1 if k < 0 else k
            while k < starts[p + 1] and following < 0:
                if seen[rows[k]] != j:
                    following = rows[k]
                k += 1
            at[depth] = k
        if following >= 0:
            depth += 1
            stack[depth], at[depth], seen[following] = following, -1, j
        else:
            top -= 1
            found[top] = i
            depth -= 1
    return top


@inactive_in_irad
@inner_njit
def factored(data, indices, indptr):  # type: ignore[no-untyped-def]
    """Factors of a matrix in CSC with its rows and columns permuted: left-looking, with partial pivoting.

    Both factors are stored by columns, in one pair of arrays, the entries of U in front and the pivot between. What is
    an entry is decided by the pattern alone, so that an entry that happens to be zero is one. The entries of a column
    are found first, in an order in which each comes after those that change it: so the time is that of the products.

    Source:
        Gilbert, Peierls: Sparse partial pivoting in time proportional to arithmetic operations, SIAM J. Sci. Stat.
        Comput. 9 (1988) 862-874.
    """
    n, indices, indptr = indptr.size - 1, indices.astype(np.int64), indptr.astype(np.int64)
    columns = column_order(data, indices, indptr)
    values, rows = np.zeros(2 * data.size + n, data.dtype), np.zeros(2 * data.size + n, np.int64)
    starts, middles = np.zeros(n + 1, np.int64), np.zeros(n, np.int64)
    order, place = np.zeros(n, np.int64), np.full(n, -1)  # the row of each pivot; the pivot of each row
    work, seen = np.zeros(n, data.dtype), np.full(n, -1)
    found, stack, next_at = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    for j in range(n):
        column, top = columns[j], n
        for k in range(indptr[column], indptr[column + 1]):
            work[indices[k]] += data[k]
            if seen[indices[k]] != j:
                top = _reached(indices[k], j, found, top, seen, stack, next_at, rows, starts, middles, place)
        at = starts[j]
        values, rows = grown(values, at + n - top), grown(rows, at + n - top)
        for i in found[top:]:
            p = place[i]
            if p >= 0:
                values[at], rows[at] = work[i], p
                at += 1
                for k in range(middles[p] + 1, starts[p + 1]):
                    work[rows[k]] -= values[k] * work[i]
        chosen = column if seen[column] == j and place[column] < 0 else -1  # of two that are as large
        for i in found[top:]:
            if place[i] < 0 and (chosen < 0 or abs(work[i]) > abs(work[chosen])):
                chosen = i
        if chosen < 0 or abs(work[chosen]) == 0.0:
            raise ValueError("a sparse solve is given a singular matrix")
        order[j], place[chosen], middles[j] = chosen, j, at
        pivot = work[chosen]
        values[at], rows[at] = pivot, chosen
        at += 1
        for i in found[top:]:
            if place[i] < 0:
                values[at], rows[at] = work[i] / pivot, i
                at += 1
            work[i] = 0.0
        starts[j + 1] = at
    return values, rows, starts, middles, order, columns


@inner_jitable
def back(factors, b):  # type: ignore[no-untyped-def]
    """The solution for the matrix that was factored; b is a vector or a matrix."""
    values, rows, starts, middles, order, columns = factors
    n = order.size
    right, y, x = b.copy(), np.zeros_like(b), np.zeros_like(b)
    for j in range(n):
        y[j] = right[order[j]]
        for k in range(middles[j] + 1, starts[j + 1]):
            subtract(right, rows[k], values[k], y, j)
    for j in range(n - 1, -1, -1):
        divide(y, j, values[middles[j]])
        for k in range(starts[j], middles[j]):
            subtract(y, rows[k], values[k], y, j)
        x[columns[j]] = y[j]
    return x


@inner_jitable
def _back_transposed(factors, b):  # type: ignore[no-untyped-def]
    """The solution for the transpose of the matrix that was factored; b is a vector or a matrix."""
    values, rows, starts, middles, order, columns = factors
    n = order.size
    y, x = np.zeros_like(b), np.zeros_like(b)
    for j in range(n):
        y[j] = b[columns[j]]
        for k in range(starts[j], middles[j]):
            subtract(y, j, values[k], y, rows[k])
        divide(y, j, values[middles[j]])
    for j in range(n - 1, -1, -1):
        for k in range(middles[j] + 1, starts[j + 1]):
            subtract(y, j, values[k], x, rows[k])
        x[order[j]] = y[j]
    return x


@inner_njit
def solution(factors, data, indices, indptr, b, by_rows):  # type: ignore[no-untyped-def]
    """The solution for the matrix of these entries in CSC, or in CSR, with the factors of that in CSC."""
    x = _back_transposed(factors, b) if by_rows else back(factors, b)
    # irad sees from the code what a result depends on, and the factors have no derivative: this reads the entries.
    nothing = np.zeros(1, x.dtype)
    for k in range(indptr[0], indptr[-1]):
        nothing[0] += 0.0 * data[k]
    return x + nothing[0]


def _conjugate(x: Any) -> Any:
    """The conjugate of an array of complex numbers; others as they are."""
    raise NotImplementedError


@inner_overload(_conjugate, strict=False)
def _conjugate_typed(x: Any) -> Any:
    return (lambda x: np.conj(x)) if isinstance(x.dtype, types.Complex) else (lambda x: x)


def _subtract_product(target: Any, k: Any, one: Any, i: Any, other: Any, j: Any) -> None:
    """Subtracts the product of an element of one vector and one of another, or of rows of matrices, from an element."""
    raise NotImplementedError


@inner_overload(_subtract_product, strict=False)
def _subtract_product_typed(target: Any, k: Any, one: Any, i: Any, other: Any, j: Any) -> Any:
    def of_elements(target, k, one, i, other, j):  # type: ignore[no-untyped-def]
        target[k] -= one[i] * other[j]

    def of_rows(target, k, one, i, other, j):  # type: ignore[no-untyped-def]
        for c in range(one.shape[1]):
            target[k] -= one[i, c] * other[j, c]

    return of_elements if one.ndim == 1 else of_rows


@augmented_primal(solution)
def _solution_augmented(config, factors, data, indices, indptr, b, by_rows):  # type: ignore[no-untyped-def]
    x = solution(factors.value, data.value, indices.value, indptr.value, b.value, by_rows.value)
    entries = data.value.copy() if config.overwritten[1] else data.value
    places = indices.value.copy() if config.overwritten[2] else indices.value
    starts = indptr.value.copy() if config.overwritten[3] else indptr.value
    lu = kept_value(factors.value) if config.overwritten[0] else factors.value
    return AugmentedReturn(x, np.zeros_like(x), (lu, entries, places, starts, x.copy()))


@reverse(solution)
def _solution_reverse(config, cotangent, tape, factors, data, indices, indptr, b, by_rows):  # type: ignore[no-untyped-def]
    if is_active(cotangent):
        lu, entries, places, starts, x = tape
        turned = not by_rows.value
        multipliers = _conjugate(solution(lu, entries, places, starts, _conjugate(cotangent), turned))
        if is_active(b):
            b.shadow[:] += multipliers
        if is_active(data):
            along, across = (_conjugate(x), multipliers) if turned else (multipliers, _conjugate(x))
            for j in range(starts.size - 1):
                for k in range(starts[j], starts[j + 1]):
                    _subtract_product(data.shadow, k, along, j, across, places[k])
    return None, None, None, None, None, None


@forward(solution)
def _solution_forward(config, factors, data, indices, indptr, b, by_rows):  # type: ignore[no-untyped-def]
    lu, entries, places, starts = factors.value, data.value, indices.value, indptr.value
    x = solution(lu, entries, places, starts, b.value, by_rows.value)
    change = np.zeros_like(x)
    if is_active(b):
        change += b.tangent
    if is_active(data):
        for j in range(starts.size - 1):
            for k in range(starts[j], starts[j + 1]):
                if by_rows.value:
                    subtract(change, j, data.tangent[k], x, places[k])
                else:
                    subtract(change, places[k], data.tangent[k], x, j)
    return x, solution(lu, entries, places, starts, change, by_rows.value)


class Factors(NamedTuple):
    """An LU factorisation of a sparse matrix for `irad.sparse_linalg.lu_solve`, and the matrix itself.

    Attributes:
        values: the entries of both factors, column by column.
        rows: their rows.
        starts: where each column begins.
        middles: where its pivot is.
        order: the row of each pivot.
        columns: the column of each pivot.
        data: the entries of the matrix, which derivatives are with respect to.
        indices: their columns in CSR, rows in CSC.
        indptr: where each row begins in CSR, each column in CSC.
        by_rows: whether the matrix is in CSR.

    Examples:
        >>> import numpy as np
        >>> from irad.sparse_linalg import Factors, csr_lu_factor
        >>> factors = csr_lu_factor(np.array([2.0, 4.0]), np.array([0, 1]), np.array([0, 1, 2]))
        >>> isinstance(factors, Factors), factors.data, bool(factors.by_rows)
        (True, array([2., 4.]), True)
    """

    values: Any
    rows: Any
    starts: Any
    middles: Any
    order: Any
    columns: Any
    data: Any
    indices: Any
    indptr: Any
    by_rows: Any


def _lu_of(name: str, by_rows: bool) -> Any:
    """Function that checks a matrix in one of the formats and factors it, for the function of a name."""

    @inner_jitable
    def lu(data, indices, indptr):  # type: ignore[no-untyped-def]
        require(name, "iu", indices, indptr)
        data = inexact(name, data)
        require_axes(name, 1, data, indices, indptr)
        check_matrix(name, data.size, indices, indptr, indptr.size - 1)
        values, rows, starts, middles, order, columns = factored(data, indices, indptr)
        return Factors(values, rows, starts, middles, order, columns, data, indices, indptr, by_rows)

    return lu


def _solve_of(name: str, by_rows: bool) -> Any:
    """Function that checks a system and solves it, for the solver of a name."""

    @inner_jitable
    def solve(data, indices, indptr, b):  # type: ignore[no-untyped-def]
        require(name, "iu", indices, indptr)
        data, b = inexact(name, data, b)
        require_axes(name, 1, data, indices, indptr)
        require_vectors(name, b)
        check_matrix(name, data.size, indices, indptr, indptr.size - 1)
        check_size(name, "a right-hand side of", b.shape[0], indptr.size - 1)
        return solution(factored(data, indices, indptr), data, indices, indptr, b, by_rows)

    return solve


_csc_lu, _csr_lu = _lu_of("csc_lu_factor", False), _lu_of("csr_lu_factor", True)
_csc_solved, _csr_solved = _solve_of("csc_solve", False), _solve_of("csr_solve", True)


@njit
def csc_solve(data: Any, indices: Any, indptr: Any, b: Any) -> Any:
    """The solution of a system with a matrix in CSC, by an LU factorisation with partial pivoting.

    Columns are eliminated in an order that keeps the factors sparse. The derivative with respect to ``data`` is on the
    pattern; entries that are stored more than once are added.

    Args:
        data: the entries, column by column.
        indices: their rows.
        indptr: where each column begins, and the number of entries.
        b: the right-hand side: a vector, or a matrix of several in its columns.

    Returns:
        An array of the shape of ``b``.

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
    return _csc_solved(data, indices, indptr, b)


@njit
def csr_solve(data: Any, indices: Any, indptr: Any, b: Any) -> Any:
    """The solution of a system with a matrix in CSR, by an LU factorisation with partial pivoting.

    Rows are eliminated in an order that keeps the factors sparse. The derivative with respect to ``data`` is on the
    pattern; entries that are stored more than once are added.

    Args:
        data: the entries, row by row.
        indices: their columns.
        indptr: where each row begins, and the number of entries.
        b: the right-hand side: a vector, or a matrix of several in its columns.

    Returns:
        An array of the shape of ``b``.

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
    return _csr_solved(data, indices, indptr, b)


@njit
def csc_lu_factor(data: Any, indices: Any, indptr: Any) -> Any:
    """An LU factorisation of a matrix in CSC for any number of systems, by `irad.sparse_linalg.lu_solve`.

    Args:
        data: the entries, column by column.
        indices: their rows.
        indptr: where each column begins, and the number of entries.

    Returns:
        An `irad.sparse_linalg.Factors`. Derivatives of what is solved with it are with respect to ``data``.

    Raises:
        ValueError: sizes or indices do not fit, or the matrix is singular.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import csc_lu_factor, lu_solve
        >>> indices, indptr = np.array([0, 1, 1]), np.array([0, 2, 3])
        >>> factors = csc_lu_factor(np.array([2.0, 1.0, 4.0]), indices, indptr)
        >>> lu_solve(factors, np.array([2.0, 9.0]))
        array([1., 2.])
    """
    return _csc_lu(data, indices, indptr)


@njit
def csr_lu_factor(data: Any, indices: Any, indptr: Any) -> Any:
    """An LU factorisation of a matrix in CSR for any number of systems, by `irad.sparse_linalg.lu_solve`.

    Args:
        data: the entries, row by row.
        indices: their columns.
        indptr: where each row begins, and the number of entries.

    Returns:
        An `irad.sparse_linalg.Factors`. Derivatives of what is solved with it are with respect to ``data``.

    Raises:
        ValueError: sizes or indices do not fit, or the matrix is singular.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import csr_lu_factor, lu_solve
        >>> indices, indptr = np.array([0, 0, 1]), np.array([0, 1, 3])
        >>> factors = csr_lu_factor(np.array([2.0, 1.0, 4.0]), indices, indptr)
        >>> lu_solve(factors, np.array([2.0, 9.0])), lu_solve(factors, np.array([2.0, 8.0]), True)
        (array([1., 2.]), array([0., 2.]))
    """
    return _csr_lu(data, indices, indptr)


@njit
def lu_solve(factors: Any, b: Any, transposed: Any = False) -> Any:
    """The solution of a system with a matrix that was factored.

    It has derivatives with respect to ``b`` and the entries of the matrix: those that were passed to
    `irad.sparse_linalg.csr_lu_factor` in the same function. They solve with the same factors.

    Args:
        factors: what `irad.sparse_linalg.csr_lu_factor` or `irad.sparse_linalg.csc_lu_factor` returned.
        b: the right-hand side: a vector, or a matrix of several in its columns.
        transposed: whether to solve with the transpose of the matrix.

    Returns:
        An array of the shape of ``b``.

    Raises:
        ValueError: ``b`` has another size than the matrix.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import csr_lu_factor, lu_solve
        >>> from numba import njit
        >>> @njit
        ... def two_steps(data, indices, indptr, x):
        ...     factors = csr_lu_factor(data, indices, indptr)
        ...     return lu_solve(factors, lu_solve(factors, x)).sum()
        >>> indices, indptr = np.array([0, 1]), np.array([0, 1, 2])
        >>> irad.grad(two_steps)(np.array([1.0, 2.0]), indices, indptr, np.array([1.0, 8.0]))
        array([-2., -2.])
    """
    data, b = inexact("lu_solve", factors.data, b)
    require_vectors("lu_solve", b)
    check_size("lu_solve", "a right-hand side of", b.shape[0], factors.order.size)
    lu = factors.values, factors.rows, factors.starts, factors.middles, factors.order, factors.columns
    return solution(lu, data, factors.indices, factors.indptr, b, factors.by_rows != transposed)
