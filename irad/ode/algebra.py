"""The linear algebra of implicit steps: derivatives of a right-hand side, mass matrices and factors, dense or sparse.

A derivative J is a matrix, or ``(data, indices, indptr)`` in CSR. A mass matrix M is either of these, a vector for a
diagonal one, or an empty tuple. Code for each is chosen by its type where it is compiled.

The factors of λ M - J are constant to derivatives: steps use them for corrections only, which products with the true
derivative decide.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from irad.api.forward import pushforward
from irad.api.functions import remembered
from irad.api.sparse.colouring import first_fit
from irad.errors import SignatureError, SourceLocation
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.numba.messages import described
from irad.ode.rosenbrock import lu_factored, lu_solve, lu_solve_transposed
from irad.sparse_linalg.solve import factored, solution


class Needs(NamedTuple):
    """Arrays that a step needs besides the arguments of the right-hand side.

    Attributes:
        rtol: relative tolerance of each part of the state.
        atol: absolute tolerance of each part of the state.
        mass: the mass matrix; an empty tuple if there is none.
        pattern: of the right-hand side's derivative, with colours, as `coloured` returns it; an empty tuple if none is
            given.
    """

    rtol: Any
    atol: Any
    mass: Any
    pattern: Any


def with_needs(function: Any) -> Any:
    """A right-hand side, an event or a Jacobian that takes `Needs` before further arguments."""

    def make() -> Any:
        @inner_njit
        def taking_needs(t, y, needs, *args):  # type: ignore[no-untyped-def]
            return function(t, y, *args)

        return taking_needs

    return remembered(function, (with_needs,), make)


def is_csr(given: Any) -> bool:
    """True for the type of a sparse matrix of real numbers: its entries, their columns, and where each row begins."""
    if not (isinstance(given, types.BaseTuple) and len(given) == 3):
        return False
    data, *places = given
    return _is_vector_of(data, types.Float | types.Integer) and is_pattern(places)


def is_pattern(given: Any) -> bool:
    """True for the types of the columns of entries, and of where each row begins."""
    return len(given) == 2 and all(_is_vector_of(each, types.Integer) for each in given)


def _is_vector_of(given: Any, kinds: Any) -> bool:
    return isinstance(given, types.Array) and given.ndim == 1 and isinstance(given.dtype, kinds)


@inactive_in_irad
@inner_njit
def is_square(n, entries, indices, indptr):  # type: ignore[no-untyped-def]
    """True if arrays are those of an n by n matrix in CSR with this number of entries: callers name what is not."""
    if indptr.size != n + 1 or indices.size != entries or indptr[0] < 0 or indptr[n] > entries:
        return False
    for i in range(n):
        if indptr[i] > indptr[i + 1]:
            return False
    outside = 0
    for k in range(indptr[0], indptr[n]):
        outside += indices[k] < 0 or indices[k] >= n
    return outside == 0


# Mass matrices.


def weighted(mass: Any, out: Any, weight: Any, v: Any) -> Any:
    """Adds a multiple of the product of a mass matrix and a vector."""
    raise NotImplementedError


@inner_overload(weighted, strict=False)
def _weighted_typed(mass: Any, out: Any, weight: Any, v: Any) -> Any:
    def by_one(mass, out, weight, v):  # type: ignore[no-untyped-def]
        for j in range(v.size):
            out[j] += weight * v[j]

    def by_diagonal(mass, out, weight, v):  # type: ignore[no-untyped-def]
        for j in range(v.size):
            out[j] += weight * mass[j] * v[j]

    def by_matrix(mass, out, weight, v):  # type: ignore[no-untyped-def]
        for i in range(v.size):
            for j in range(v.size):
                out[i] += weight * mass[i, j] * v[j]

    def by_entries(mass, out, weight, v):  # type: ignore[no-untyped-def]
        data, indices, indptr = mass
        for i in range(v.size):
            for k in range(indptr[i], indptr[i + 1]):
                out[i] += weight * data[k] * v[indices[k]]

    if isinstance(mass, types.BaseTuple):
        return by_entries if len(mass) else by_one
    return by_diagonal if mass.ndim == 1 else by_matrix


def check_no_mass(mass: Any) -> None:
    """Refuses a mass matrix where a step has no length, whose derivative would be a solution with the matrix alone."""
    raise NotImplementedError


@inner_overload(check_no_mass, strict=False)
def _check_no_mass_typed(mass: Any) -> Any:
    def refuse(mass):  # type: ignore[no-untyped-def]
        raise ValueError("a differential equation with a mass matrix has no derivative where it is solved over no time")

    return (lambda mass: None) if isinstance(mass, types.BaseTuple) and len(mass) == 0 else refuse


def checked_mass(n: Any, mass: Any) -> Any:
    """A mass matrix of floats that is as large as the state; nothing if there is none."""
    raise NotImplementedError


@inner_overload(checked_mass, strict=False)
def _checked_mass_typed(n: Any, mass: Any) -> Any:
    def dense(n, mass):  # type: ignore[no-untyped-def]
        for size in mass.shape:
            if size != n:
                raise ValueError("the mass matrix of a differential equation is not as large as the state")
        return mass.astype(np.float64)

    def sparse(n, mass):  # type: ignore[no-untyped-def]
        data, indices, indptr = mass
        if not is_square(n, data.size, indices, indptr):
            raise ValueError("the mass matrix of a differential equation is not one in CSR as large as the state")
        return data.astype(np.float64), indices.astype(np.int64), indptr.astype(np.int64)

    if isinstance(mass, types.BaseTuple):
        return sparse if len(mass) else lambda n, mass: mass
    return dense


# The derivative of a right-hand side.


def jacobian_of(f: Any, jac: Any, has_pattern: bool) -> Any:
    """The right-hand side's derivative with respect to the state: ``(t, y, args)``.

    Args:
        f: the right-hand side, with needs.
        jac: the user's function for it, with needs; None if there is none.
        has_pattern: whether a pattern is known, so that the derivative is sparse.
    """
    if jac is not None:
        return _given(jac)
    return _by_colours(f) if has_pattern else _by_columns(f)


def _by_columns(f: Any) -> Any:
    derivative = pushforward(f, 1)

    @inner_jitable
    def jacobian(t, y, args):  # type: ignore[no-untyped-def]
        matrix = np.empty((y.size, y.size))
        for j in range(y.size):
            direction = np.zeros(y.size)
            direction[j] = 1.0
            column = derivative(t, y, direction, *args)[1]
            for i in range(y.size):
                matrix[i, j] = column[i]
        return matrix

    return jacobian


def _by_colours(f: Any) -> Any:
    derivative = pushforward(f, 1)

    @inner_jitable
    def jacobian(t, y, args):  # type: ignore[no-untyped-def]
        indices, indptr, colours = args[0].pattern
        data, direction = np.zeros(indices.size), np.empty(y.size)
        for colour in range(colours.max() + 1):
            for j in range(y.size):
                direction[j] = 1.0 if colours[j] == colour else 0.0
            product = derivative(t, y, direction, *args)[1]
            for i in range(y.size):
                for k in range(indptr[i], indptr[i + 1]):
                    if colours[indices[k]] == colour:
                        data[k] = product[i]
        return data, indices, indptr

    return jacobian


inner_jitable(first_fit)


@inactive_in_irad
@inner_njit
def coloured(n, indices, indptr):  # type: ignore[no-untyped-def]
    """A pattern in CSR, checked, and a colour for each column: two of one colour have no row in common."""
    if not is_square(n, indices.size, indices, indptr):
        raise ValueError("jac_sparsity of a differential equation is not a pattern in CSR as large as the state")
    indices, indptr = indices.astype(np.int64), indptr.astype(np.int64)
    starts, rows, ends = np.zeros(n + 1, np.int64), np.empty(indices.size, np.int64), np.zeros(n, np.int64)
    for k in range(indptr[0], indptr[n]):
        starts[indices[k] + 1] += 1
    for j in range(n):
        starts[j + 1] += starts[j]
        ends[j] = starts[j]
    for i in range(n):
        for j in indices[indptr[i] : indptr[i + 1]]:
            if ends[j] > starts[j] and rows[ends[j] - 1] == i:
                raise ValueError("jac_sparsity of a differential equation has an entry twice")
            rows[ends[j]] = i
            ends[j] += 1
    return indices, indptr, first_fit(np.arange(n), starts, rows, indptr, indices)


def _check_jacobian(values: Any, n: Any) -> None:
    """Refuses what is not a matrix as large as the state; its type where it is compiled."""
    raise NotImplementedError


@inner_overload(_check_jacobian, strict=False)
def _check_jacobian_typed(values: Any, n: Any) -> Any:
    def dense(values, n):  # type: ignore[no-untyped-def]
        if values.shape != (n, n):
            raise ValueError("jac of a differential equation does not return a matrix as large as the state")

    def sparse(values, n):  # type: ignore[no-untyped-def]
        data, indices, indptr = values
        if not is_square(n, data.size, indices, indptr):
            raise ValueError("jac of a differential equation does not return a matrix in CSR as large as the state")

    if is_csr(values):
        return sparse
    if isinstance(values, types.Array) and values.ndim == 2 and isinstance(values.dtype, types.Float | types.Integer):
        return dense
    raise SignatureError(
        f"jac of a differential equation returns {described(values)}",
        "return a matrix of real numbers, or (data, indices, indptr) of a sparse one in CSR",
        "it is the derivative of the right-hand side with respect to the state",
        SourceLocation.here(),
    )


def _given(jac: Any) -> Any:
    """The user's function for the derivative."""

    @inner_jitable
    def jacobian(t, y, args):  # type: ignore[no-untyped-def]
        found = jac(t, y, *args)
        _check_jacobian(found, y.size)
        return found

    return jacobian


# Factors of λ M - J.


def factors_of(jacobian: Any, shift: Any, mass: Any) -> Any:
    """The factors of a multiple of a mass matrix less a Jacobian, as `solved` takes them."""
    raise NotImplementedError


@inner_overload(factors_of, strict=False)
def _factors_of_typed(jacobian: Any, shift: Any, mass: Any) -> Any:
    if isinstance(jacobian, types.BaseTuple):
        return lambda jacobian, shift, mass: _sparse_factors(jacobian, complex(shift), mass)
    return lambda jacobian, shift, mass: _dense_factors(jacobian, shift, mass)


@inactive_in_irad
@inner_njit
def _dense_factors(jacobian, shift, mass):  # type: ignore[no-untyped-def]
    found = np.empty(jacobian.shape, type(shift))
    for i in range(jacobian.shape[0]):
        for j in range(jacobian.shape[1]):
            found[i, j] = -jacobian[i, j]
    _add_mass(found, shift, mass)
    return found, lu_factored(found)


def _add_mass(matrix: Any, shift: Any, mass: Any) -> None:
    """Adds a multiple of a mass matrix to a dense matrix."""
    raise NotImplementedError


@inner_overload(_add_mass, strict=False)
def _add_mass_typed(matrix: Any, shift: Any, mass: Any) -> Any:
    def one(matrix, shift, mass):  # type: ignore[no-untyped-def]
        for i in range(matrix.shape[0]):
            matrix[i, i] += shift

    def diagonal(matrix, shift, mass):  # type: ignore[no-untyped-def]
        for i in range(matrix.shape[0]):
            matrix[i, i] += shift * mass[i]

    def dense(matrix, shift, mass):  # type: ignore[no-untyped-def]
        for i in range(matrix.shape[0]):
            for j in range(matrix.shape[1]):
                matrix[i, j] += shift * mass[i, j]

    def sparse(matrix, shift, mass):  # type: ignore[no-untyped-def]
        data, indices, indptr = mass
        for i in range(matrix.shape[0]):
            for k in range(indptr[i], indptr[i + 1]):
                matrix[i, indices[k]] += shift * data[k]

    if isinstance(mass, types.BaseTuple):
        return sparse if len(mass) else one
    return diagonal if mass.ndim == 1 else dense


def _entries(mass: Any, n: Any) -> Any:
    """A mass matrix in CSR."""
    raise NotImplementedError


@inner_overload(_entries, strict=False)
def _entries_typed(mass: Any, n: Any) -> Any:
    if isinstance(mass, types.BaseTuple):
        return (lambda mass, n: mass) if len(mass) else lambda mass, n: (np.ones(n), np.arange(n), np.arange(n + 1))
    if mass.ndim == 1:
        return lambda mass, n: (mass, np.arange(n), np.arange(n + 1))
    raise SignatureError(
        "the mass matrix of a differential equation is dense, and jac is sparse",
        "pass mass as (data, indices, indptr) in CSR, or as a vector if it is diagonal",
        "the steps factor a matrix with the entries of both",
        SourceLocation.here(),
    )


@inactive_in_irad
@inner_njit
def _sparse_factors(jacobian, shift, mass):  # type: ignore[no-untyped-def]
    """Factors, and the matrix in CSR. Where both matrices have an entry it has two, which count as their sum.

    The real matrix of a step is factored as a complex one, too: finding the pattern of the factors takes more time than
    arithmetic, and half the code is compiled.
    """
    (data, indices, indptr), n, at = jacobian, jacobian[2].size - 1, 0
    others, places, begins = _entries(mass, n)
    size = data.size + others.size
    values, columns, starts = np.empty(size, np.complex128), np.empty(size, np.int64), np.zeros(n + 1, np.int64)
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            values[at], columns[at] = -data[k], indices[k]
            at += 1
        for k in range(begins[i], begins[i + 1]):
            values[at], columns[at] = shift * others[k], places[k]
            at += 1
        starts[i + 1] = at
    return factored(values, columns, starts), values, columns, starts


def solved(factors: Any, right: Any, is_transposed: Any) -> Any:
    """The solution of a system, or of the transposed one, with the factors of its matrix."""
    raise NotImplementedError


@inner_overload(solved, strict=False)
def _solved_typed(factors: Any, right: Any, is_transposed: Any) -> Any:
    def dense(factors, right, is_transposed):  # type: ignore[no-untyped-def]
        (matrix, order), x = factors, np.empty_like(right)
        if is_transposed:
            lu_solve_transposed(x, matrix, order, right)
        else:
            lu_solve(x, matrix, order, right)
        return x

    def sparse(factors, right, is_transposed):  # type: ignore[no-untyped-def]
        lu, data, columns, starts = factors
        return solution(lu, data, columns, starts, right.astype(np.complex128), not is_transposed)

    def real_of_sparse(factors, right, is_transposed):  # type: ignore[no-untyped-def]
        lu, data, columns, starts = factors
        return solution(lu, data, columns, starts, right.astype(np.complex128), not is_transposed).real.copy()

    if len(factors) == 2:
        return dense
    return sparse if isinstance(right.dtype, types.Complex) else real_of_sparse
