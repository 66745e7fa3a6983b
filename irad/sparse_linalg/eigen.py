"""A few eigenvalues and eigenvectors of a sparse symmetric matrix, by a restarted Lanczos method, with a rule.

For a simple eigenvalue, dλ = vᵀ dA v and dv is the solution of a system with the bordered matrix

    A - λI   v
    vᵀ       0

which is regular although A - λI is singular. Both are plain code on A, λ and v, so the rule can be differentiated.

A stands for the symmetric part of the matrix that is stored, so that derivatives are right along all tangents.

Loops stand for assignments to slices and for functions of NumPy that have messages: these take longer to compile than
the Lanczos method.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Final

import numpy as np
from numba import njit
from numba.core import types

from irad.api.custom.higher_order import attach
from irad.api.nopython import literal
from irad.errors import HERE, SignatureError
from irad.frontend.calls.raising import public
from irad.frontend.custom.rule_arguments import AugmentedReturn, is_active
from irad.frontend.custom.rules_from_partials import zero_shadow
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.operands import floats, real, require, require_axes, whole
from irad.sparse_linalg.products import check_matrix
from irad.sparse_linalg.solve import back, factored, solution

_WHICH: Final = ("LA", "SA", "LM", "SM", "BE")
_SMALLEST, _LARGEST_MAGNITUDE, _SMALLEST_MAGNITUDE, _BOTH_ENDS = 1, 2, 3, 4  # places in _WHICH
_ROUNDING: Final = 1e-14  # what is left of zero, relative to what was subtracted
_FINEST: Final = 1e-12  # the smallest tolerance that rounding allows to reach


@public
def eigsh(
    data: Any,
    indices: Any,
    indptr: Any,
    k: int = 6,
    sigma: Any = None,
    which: str = "LM",
    v0: Any = None,
    maxiter: int = 1000,
    tol: float = 0.0,
    return_eigenvectors: bool = True,
) -> Any:
    """Some eigenvalues and eigenvectors of a sparse symmetric matrix, by the Lanczos method with thick restarts.

    It can be called from Python and in compiled code. Derivatives are with respect to ``data``, on the pattern, and
    those of the symmetric part of the matrix: unlike those of ``np.linalg.eigh``, which reads one triangle, they have
    the same value in both entries of a symmetric pair. Without eigenvectors they need no linear systems.

    Equal eigenvalues are treated as by ``np.linalg.eigh``: the derivative of an eigenvalue is the one given by the
    eigenvectors that are returned, so that of a symmetric function of all that are equal, such as their sum, is right.
    Cotangents of their eigenvectors, and second derivatives, give infinite values or NaN.

    Args:
        data: the entries of a matrix in CSR or CSC, of both triangles.
        indices: their columns in CSR, rows in CSC.
        indptr: where each row or column begins, and the number of entries.
        k: number of eigenvalues, up to all of them.
        sigma: if given, eigenvalues near this number, by an LU factorisation of ``A - sigma * I``: for the small ones
            of a Laplacian, ``sigma=0.0``. It must not be an eigenvalue. Results do not depend on it otherwise.
        which: ``"LM"`` for the eigenvalues of the largest absolute value, ``"SM"`` for those of the smallest, ``"LA"``
            for the largest ones, ``"SA"`` for the smallest, ``"BE"`` for half of them from each end. With ``sigma``
            this is said of ``1 / (w - sigma)``: ``"LM"`` for the nearest, ``"LA"`` for the nearest above, ``"SA"``
            below. A literal in compiled code.
        v0: a vector to start with; it has no derivative.
        maxiter: the largest number of restarts.
        tol: tolerance of the residuals, relative to the largest eigenvalue; with ``sigma``, of the inverse. 0 stands
            for 1e-12, the smallest one. Errors of vectors, and of their derivatives, are those of the residuals divided
            by the distance of eigenvalues.
        return_eigenvectors: a literal in compiled code.

    Returns:
        ``(w, v)``: the eigenvalues, in ascending order, and a matrix with the eigenvectors in its columns, of length 1,
        whose largest element is positive; or only ``w``. They are computed in double precision, and have the type of
        ``data``, float64 for integers.

    Raises:
        ValueError: sizes or indices do not fit, the matrix is not symmetric, ``k`` is not from 1 to its size, ``sigma``
            is an eigenvalue, ``v0`` is zero, or the method does not converge, as for eigenvalues inside the spectrum.
        SignatureError: ``which`` is none of the above, or the numbers are not real.

    Source:
        Wu, Simon: Thick-restart Lanczos method for large symmetric eigenvalue problems, SIAM J. Matrix Anal. Appl. 22
        (2000) 602-616.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.sparse_linalg import eigsh
        >>> indices, indptr = np.array([0, 1, 0, 1]), np.array([0, 2, 4])
        >>> w, v = eigsh(np.array([2.0, 1.0, 1.0, 2.0]), indices, indptr, 1)
        >>> w.round(6)
        array([3.])
        >>> largest = lambda data: eigsh(data, indices, indptr, 1, return_eigenvectors=False)[0]
        >>> irad.grad(largest)(np.array([2.0, 1.0, 1.0, 2.0])).round(6)
        array([0.5, 0.5, 0.5, 0.5])
    """
    code, is_near, start = _code_of(which), sigma is not None, np.zeros(0) if v0 is None else v0
    solve = _solver(is_near, bool(return_eigenvectors))
    return solve(data, indices, indptr, k, sigma if is_near else 0.0, code, start, maxiter, tol)


@inner_overload(eigsh, prefer_literal=True, strict=False)
def _eigsh_typed(
    data: Any,
    indices: Any,
    indptr: Any,
    k: Any = 6,
    sigma: Any = None,
    which: Any = "LM",
    v0: Any = None,
    maxiter: Any = 1000,
    tol: Any = 0.0,
    return_eigenvectors: Any = True,
) -> Any:
    is_near, code = not _is_none(sigma), _code_of(literal(which, "which"))
    solve = _solver(is_near, bool(literal(return_eigenvectors, "return_eigenvectors")))
    shift_of = inner_jitable((lambda sigma: sigma) if is_near else (lambda sigma: 0.0))
    start_of = inner_jitable((lambda v0: np.zeros(0)) if _is_none(v0) else (lambda v0: v0))

    def call(  # type: ignore[no-untyped-def]
        data,
        indices,
        indptr,
        k=6,
        sigma=None,
        which="LM",
        v0=None,
        maxiter=1000,
        tol=0.0,
        return_eigenvectors=True,
    ):
        return solve(data, indices, indptr, k, shift_of(sigma), code, start_of(v0), maxiter, tol)

    return call


def _is_none(given: Any) -> bool:
    return given is None or isinstance(given, types.NoneType | types.Omitted)


def _code_of(which: Any) -> int:
    """The place of ``which`` in `_WHICH`."""
    if which not in _WHICH:
        raise SignatureError(
            f"eigsh: which={which!r}",
            f"pass one of {', '.join(map(repr, _WHICH))}",
            "it says which eigenvalues are returned",
            HERE,
        )
    return _WHICH.index(which)


@cache
def _solver(is_near: bool, has_vectors: bool) -> Callable[..., Any]:
    """Compiled function that checks a matrix and returns what `eigsh` does."""

    @inner_jitable
    def checked(data, indices, indptr, k, sigma, code, v0, maxiter, tol):  # type: ignore[no-untyped-def]
        require("eigsh", "iu", indices, indptr)
        entries, start = floats("eigsh", data), floats("eigsh", v0)
        require_axes("eigsh", 1, entries, indices, indptr, start)
        count, n = whole("eigsh", k), indptr.size - 1
        check_matrix("eigsh", entries.size, indices, indptr, n)
        check_count(count, n, start.size)
        wide = entries.astype(np.float64)
        check_symmetry(wide, indices, indptr, 1e-8 if entries.itemsize == 8 else 1e-4)
        settings = count, code, real("eigsh", sigma), max(real("eigsh", tol), _FINEST), whole("eigsh", maxiter)
        return entries, wide, start.astype(np.float64), settings

    values, pairs = _rules_of(is_near)

    @njit
    def only_values(data, indices, indptr, k, sigma, code, v0, maxiter, tol):  # type: ignore[no-untyped-def]
        entries, wide, start, settings = checked(data, indices, indptr, k, sigma, code, v0, maxiter, tol)
        return values(wide, indices, indptr, start, settings).astype(entries.dtype)

    @njit
    def with_vectors(data, indices, indptr, k, sigma, code, v0, maxiter, tol):  # type: ignore[no-untyped-def]
        entries, wide, start, settings = checked(data, indices, indptr, k, sigma, code, v0, maxiter, tol)
        w, v, _ = pairs(wide, indices, indptr, start, settings)
        return w.astype(entries.dtype), v.astype(entries.dtype)

    return with_vectors if has_vectors else only_values


@inactive_in_irad
@inner_njit
def check_count(count, n, given):  # type: ignore[no-untyped-def]
    """Checks how many eigenvalues are asked for, and the size of a vector to start with, of which 0 is none."""
    if not 1 <= count <= n:
        raise FormattedValueError(
            "eigsh: {} eigenvalues of a matrix with {} rows: k is from 1 to that number", count, n
        )
    if given != 0 and given != n:
        raise FormattedValueError("eigsh: v0 has {} elements for a matrix with {} rows", given, n)


@inactive_in_irad
@inner_njit
def check_symmetry(data, indices, indptr, tolerance):  # type: ignore[no-untyped-def]
    """Checks that a matrix and its transpose have the same product with a vector."""
    n = indptr.size - 1
    x, difference, largest = _scattered(n, 0), np.zeros(n), 0.0
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            difference[i] += data[k] * x[indices[k]]
            difference[indices[k]] -= data[k] * x[i]
            largest = max(largest, abs(data[k]))
    for i in range(n):
        if not abs(difference[i]) <= tolerance * largest:
            raise ValueError("eigsh is given a matrix that is not symmetric, or entries that are not finite")


@inner_jitable
def _scattered(n, number):  # type: ignore[no-untyped-def]
    """A vector that is orthogonal to none that one would think of; another one for each number."""
    x = np.zeros(n)
    for i in range(n):
        x[i] = np.cos((1.0 + 0.1 * number) * (i + 1.0) ** 2)
    return x


@inner_jitable
def _product(data, indices, indptr, x):  # type: ignore[no-untyped-def]
    """The product of the symmetric part of a matrix with a vector."""
    y = np.zeros(x.size)
    for i in range(x.size):
        for k in range(indptr[i], indptr[i + 1]):
            y[i] += 0.5 * data[k] * x[indices[k]]
            y[indices[k]] += 0.5 * data[k] * x[i]
    return y


@inner_jitable
def _inner(x, y):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(x.size):
        total += x[i] * y[i]
    return total


@inner_jitable
def _put(matrix, i, scale, vector):  # type: ignore[no-untyped-def]
    """Sets a row to a multiple of a vector."""
    for j in range(vector.size):
        matrix[i, j] = scale * vector[j]


@inner_jitable
def _orthogonalised(basis, count, w):  # type: ignore[no-untyped-def]
    """Makes a vector orthogonal to the first rows of a matrix, and returns its products with them."""
    found = np.zeros(count)
    for _ in range(2):  # rounding leaves some of it the first time
        part = np.dot(basis[:count], w)
        for i in range(count):
            found[i] += part[i]
            for j in range(w.size):
                w[j] -= part[i] * basis[i, j]
    return found


@inner_jitable
def _put_another(basis, count, w):  # type: ignore[no-untyped-def]
    """Sets the row after the first ones to a vector of length 1: what of another one is orthogonal to them."""
    _orthogonalised(basis, count, w)
    size = np.sqrt(_inner(w, w))
    if not 0.0 < size < np.inf:
        raise ValueError("eigsh is given v0 that is zero, or not finite")
    _put(basis, count, 1.0 / size, w)


@inner_jitable
def _best_first(values, code):  # type: ignore[no-untyped-def]
    """The places of ascending values in the order of `_WHICH`."""
    order, low, high = np.zeros(values.size, np.int64), 0, values.size - 1
    for i in range(values.size):
        place = values.size - 1 - i if code == _SMALLEST_MAGNITUDE else i
        from_below = code == _SMALLEST or (code == _BOTH_ENDS and i % 2 == 1)
        if code in (_LARGEST_MAGNITUDE, _SMALLEST_MAGNITUDE):
            from_below = abs(values[low]) > abs(values[high])
        if from_below:
            order[place], low = low, low + 1
        else:
            order[place], high = high, high - 1
    return order


@inner_jitable
def _combined(vectors, order, count, basis):  # type: ignore[no-untyped-def]
    """The products of some columns of a matrix, the first of an order, with the rows of a basis, as rows."""
    chosen = np.zeros((count, vectors.shape[0]))
    for i in range(count):
        for j in range(vectors.shape[0]):
            chosen[i, j] = vectors[j, order[i]]
    return np.dot(chosen, basis[: vectors.shape[0]])


@inner_jitable
def _shifted(data, indices, indptr, shift, border):  # type: ignore[no-untyped-def]
    """The symmetric part of a matrix less a multiple of the identity, in CSR, with a last row and column if given."""
    n, wide = indptr.size - 1, border.size > 0
    starts = np.zeros(n + 1 + wide, np.int64)
    for i in range(n):
        starts[i + 1] += 1 + wide
        for k in range(indptr[i], indptr[i + 1]):  # entries that are stored several times are added
            starts[i + 1] += 1
            starts[indices[k] + 1] += 1
    for i in range(n):
        starts[i + 1] += starts[i]
    if wide:
        starts[n + 1] = starts[n] + n
    values, places, at = np.zeros(starts[-1]), np.zeros(starts[-1], np.int64), starts.copy()
    for i in range(n):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            values[at[i]], places[at[i]], at[i] = 0.5 * data[k], j, at[i] + 1
            values[at[j]], places[at[j]], at[j] = 0.5 * data[k], i, at[j] + 1
    for i in range(n):
        values[at[i]], places[at[i]] = -shift, i
        if wide:
            values[at[i] + 1], places[at[i] + 1] = border[i], n
            values[starts[n] + i], places[starts[n] + i] = border[i], i
    return values, places, starts


@cache
def _eigenpairs_of(is_near: bool) -> Any:
    """Compiled search, without a derivative; only one near a number compiles a factorisation."""
    if is_near:

        @inner_jitable
        def operator_of(data, indices, indptr, sigma):  # type: ignore[no-untyped-def]
            return factored(*_shifted(data, indices, indptr, sigma, np.zeros(0)))

        apply = back
    else:

        @inner_jitable
        def operator_of(data, indices, indptr, sigma):  # type: ignore[no-untyped-def]
            return data, indices, indptr

        @inner_jitable
        def apply(matrix, x):  # type: ignore[no-untyped-def]
            data, indices, indptr = matrix
            return _product(data, indices, indptr, x)

    @inner_njit
    def eigenpairs(data, indices, indptr, start, settings):  # type: ignore[no-untyped-def]
        """Eigenvalues in ascending order, eigenvectors, and whether no other eigenvalue is equal to each of them.

        A Krylov space holds one vector of each eigenspace. So when all have converged, they stay, and the search goes
        on from another vector that is orthogonal to them, until that finds none that belongs among them.
        """
        n, (k, code, sigma, tol, maxiter) = indptr.size - 1, settings
        operator = operator_of(data, indices, indptr, sigma)
        most, kept, number = min(n, max(2 * k + 4, 24)), 0, 1
        # One more shows whether the last one is repeated; at each end one.
        wanted = min(k + (2 if code == _BOTH_ENDS else 1), n)
        last = min(wanted + 1, n)
        basis, projected, before = np.zeros((most + 1, n)), np.zeros((most, most)), np.full(k, np.nan)
        _put_another(basis, 0, start.copy() if start.size > 0 else _scattered(n, 0))
        for _ in range(maxiter):
            rest = 0.0
            for i in range(kept, most):
                w = apply(operator, basis[i])
                size = np.sqrt(_inner(w, w))
                products = _orthogonalised(basis, i + 1, w)
                for j in range(i + 1):
                    projected[i, j] = projected[j, i] = products[j]
                rest = np.sqrt(_inner(w, w))
                if rest > _ROUNDING * size:
                    _put(basis, i + 1, 1.0 / rest, w)
                else:
                    rest = 0.0
                    if i + 1 < n:  # an invariant space: the search goes on from outside it
                        _put_another(basis, i + 1, _scattered(n, number))
                        number += 1
            values, vectors = np.linalg.eigh(projected)
            order = _best_first(values, code)
            largest = max(abs(values[0]), abs(values[-1]))
            is_done, is_final = True, True
            for i in range(wanted):
                value = values[order[i]]
                # Of the inverse, small eigenvalues count too: they are far ones of the matrix.
                scale = max(abs(value), 0.01 * largest) if is_near else largest
                is_done = is_done and rest * abs(vectors[most - 1, order[i]]) <= tol * scale
                if i < k:
                    is_final = is_final and abs(value - before[i]) <= 10.0 * tol * largest
            if is_done and (most == n or is_final):
                columns = _combined(vectors, order, wanted, basis)
                # Eigenvalues are as accurate as the residuals of the operator, and the factors, allow.
                least = 1e-13 * _size(data) if is_near else 10.0 * tol * largest
                return _sorted(values, order, columns, k, code, sigma, tol, least, is_near)
            keep = wanted if is_done else min(wanted + (most - wanted) // 2, most - 1)
            columns = _combined(vectors, order, keep, basis)
            following = basis[most].copy()
            for i in range(keep):
                _put(basis, i, 1.0, columns[i])
            if is_done:
                for i in range(k):
                    before[i] = values[order[i]]
                _put_another(basis, keep, _scattered(n, number))
                wanted, number = last, number + 1
            else:
                _put(basis, keep, 1.0, following)
            projected = np.zeros((most, most))
            for i in range(keep):
                projected[i, i] = values[order[i]]
            kept = keep
        raise ValueError(
            "eigsh did not converge within maxiter restarts: pass sigma= for eigenvalues inside the spectrum"
        )

    return eigenpairs


@inner_jitable
def _sorted(values, order, columns, k, code, sigma, tol, least, is_near):  # type: ignore[no-untyped-def]
    """The results of the search; eigenvalues up to the least distance from each other count as equal."""
    count, n = columns.shape
    every, places = np.zeros(count), np.zeros(k, np.int64)
    for i in range(count):
        value = values[order[i]]
        every[i] = sigma + 1.0 / value if is_near else value
        if is_near:
            least = max(least, 100.0 * tol * abs(every[i] - sigma))
        if i < k:
            at = i
            while at > 0 and every[places[at - 1]] > every[i]:
                places[at] = places[at - 1]
                at -= 1
            places[at] = i
    w, v, are_simple = np.zeros(k), np.zeros((n, k)), np.full(k, True)
    for i in range(k):
        chosen = places[i]
        w[i] = every[chosen]
        for j in range(count):
            gap = abs(every[j] - w[i])
            if j >= k and code in (_LARGEST_MAGNITUDE, _SMALLEST_MAGNITUDE):
                # If two of opposite signs are the last, which one is returned is left to rounding.
                gap = min(gap, abs(abs(every[j] - sigma) - abs(w[i] - sigma)))
            if j != chosen and gap <= least:
                are_simple[i] = False
        largest, sign = 0.0, 1.0
        for j in range(n):
            # The first of several as large, whatever their last bits are.
            if abs(columns[chosen, j]) > (1.0 + 1e-6) * largest:
                largest, sign = abs(columns[chosen, j]), np.sign(columns[chosen, j])
        for j in range(n):
            v[j, i] = sign * columns[chosen, j]
    return w, v, are_simple


@inactive_in_irad
@inner_njit
def _size(data):  # type: ignore[no-untyped-def]
    largest = 0.0
    for k in range(data.size):
        largest = max(largest, abs(data[k]))
    return largest if largest > 0.0 else 1.0


@inner_jitable
def _response(data, indices, indptr, value, vector, is_simple, right):  # type: ignore[no-untyped-def]
    """The solution of the bordered system; infinite for a repeated eigenvalue, unless the right side is zero."""
    n = right.size
    if not is_simple:
        # All elements, with infinite derivatives: none is a number that might be wrong.
        return np.full(n, _inner(_scattered(n, 0), right) * 1e308 * 1e308)
    size = _size(data)
    entries, places, starts = _shifted(data, indices, indptr, value, size * vector)
    extended = np.zeros(n + 1)
    for i in range(n):
        extended[i] = right[i]
    return solution(factored(entries, places, starts), entries, places, starts, extended, True)[:n]


@inner_jitable
def _add_outer(sums, indices, indptr, one, other):  # type: ignore[no-untyped-def]
    """Adds the symmetric part of the outer product of two vectors, on the pattern."""
    for i in range(indptr.size - 1):
        for k in range(indptr[i], indptr[i + 1]):
            j = indices[k]
            sums[k] += 0.5 * (one[i] * other[j] + one[j] * other[i])


@cache
def _rules_of(is_near: bool) -> tuple[Any, Any]:
    """Compiled functions with rules: of the eigenvalues, and of `_eigenpairs_of`."""
    pairs = _pairs_of(_eigenpairs_of(is_near))
    return _values_of(pairs), pairs


def _pairs_of(search: Any) -> Any:
    @inner_njit
    def pairs(data, indices, indptr, start, settings):  # type: ignore[no-untyped-def]
        return search(data, indices, indptr, start, settings)

    def augmented(config, data, indices, indptr, start, settings):  # type: ignore[no-untyped-def]
        made = pairs(data.value, indices.value, indptr.value, start.value, settings.value)
        entries = data.value.copy() if config.overwritten[0] else data.value
        places = indices.value.copy() if config.overwritten[1] else indices.value
        starts = indptr.value.copy() if config.overwritten[2] else indptr.value
        w, v, are_simple = made
        return AugmentedReturn(made, zero_shadow(made), (entries, places, starts, w.copy(), v.copy(), are_simple))

    def reverse(config, cotangent, tape, data, indices, indptr, start, settings):  # type: ignore[no-untyped-def]
        if is_active(cotangent) and is_active(data):
            entries, places, starts, w, v, are_simple = tape
            dw, dv, _ = cotangent
            for i in range(w.size):
                vector = v[:, i].copy()
                # Also where the cotangent is zero: its derivative need not be.
                change = dw[i] * vector - _response(
                    entries, places, starts, w[i], vector, are_simple[i], dv[:, i].copy()
                )
                _add_outer(data.shadow, places, starts, change, vector)
        return None, None, None, None, None

    def forward(config, data, indices, indptr, start, settings):  # type: ignore[no-untyped-def]
        made = pairs(data.value, indices.value, indptr.value, start.value, settings.value)
        w, v, are_simple = made
        dw, dv = np.zeros_like(w), np.zeros_like(v)
        if is_active(data):
            for i in range(w.size):
                vector = v[:, i].copy()
                change = _product(data.tangent, indices.value, indptr.value, vector)
                dw[i] = _inner(vector, change)
                turned = _response(data.value, indices.value, indptr.value, w[i], vector, are_simple[i], -change)
                for j in range(vector.size):
                    dv[j, i] = turned[j]
        return made, (dw, dv, np.zeros_like(are_simple))

    return attach(pairs, augmented_primal=augmented, reverse=reverse, forward=forward)


def _values_of(pairs: Any) -> Any:
    @inner_njit
    def values(data, indices, indptr, start, settings):  # type: ignore[no-untyped-def]
        return pairs(data, indices, indptr, start, settings)[0]

    def augmented(config, data, indices, indptr, start, settings):  # type: ignore[no-untyped-def]
        w, v, _ = pairs(data.value, indices.value, indptr.value, start.value, settings.value)
        places = indices.value.copy() if config.overwritten[1] else indices.value
        starts = indptr.value.copy() if config.overwritten[2] else indptr.value
        return AugmentedReturn(w, np.zeros_like(w), (places, starts, v))

    def reverse(config, cotangent, tape, data, indices, indptr, start, settings):  # type: ignore[no-untyped-def]
        if is_active(cotangent) and is_active(data):
            places, starts, v = tape
            for i in range(v.shape[1]):
                vector = v[:, i].copy()
                _add_outer(data.shadow, places, starts, cotangent[i] * vector, vector)
        return None, None, None, None, None

    def forward(config, data, indices, indptr, start, settings):  # type: ignore[no-untyped-def]
        w, v, _ = pairs(data.value, indices.value, indptr.value, start.value, settings.value)
        dw = np.zeros_like(w)
        if is_active(data):
            for i in range(w.size):
                vector = v[:, i].copy()
                dw[i] = _inner(vector, _product(data.tangent, indices.value, indptr.value, vector))
        return w, dw

    return attach(values, augmented_primal=augmented, reverse=reverse, forward=forward)
