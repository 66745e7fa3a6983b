"""An implicit Runge–Kutta step for stiff systems: Radau IIA of order 5, stiffly accurate and L-stable.

The changes Z of the state up to three stages solve M Z = h A F(Z); the last stage ends the step. Newton's method takes
the derivative J of the right-hand side at one point for all stages. In the eigenvectors of A⁻¹ its system is then one
real and one complex one of the size of the state, with the matrices λ M / h - J.

The derivative is that of the solution of these equations, by the implicit function theorem: how Newton's method came
there does not matter. Its linear system has the derivatives at all stages. It is solved by products with these, in
forward or reverse mode, and corrections by the matrices of Newton's method. So a matrix that is only an approximation
costs iterations, not precision.

Source: Hairer, Wanner: Solving Ordinary Differential Equations II, second edition, IV.5 and IV.8.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from irad.api.checkpointing.values import copied
from irad.api.forward import pushforward
from irad.api.functions import remembered
from irad.errors import SignatureError, SourceLocation
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.numba.messages import described
from irad.implicit.systems import pulled, pushed
from irad.implicit.theorem import implicit
from irad.ode.dense import Steps, put
from irad.ode.rosenbrock import lu_factored, lu_solve, lu_solve_transposed

_ROOT = np.sqrt(6.0)
_NODES = np.array([(4.0 - _ROOT) / 10.0, (4.0 + _ROOT) / 10.0, 1.0])
_STAGES = np.array(
    [
        [(88.0 - 7.0 * _ROOT) / 360.0, (296.0 - 169.0 * _ROOT) / 1800.0, (-2.0 + 3.0 * _ROOT) / 225.0],
        [(296.0 + 169.0 * _ROOT) / 1800.0, (88.0 + 7.0 * _ROOT) / 360.0, (-2.0 - 3.0 * _ROOT) / 225.0],
        [(16.0 - _ROOT) / 36.0, (16.0 + _ROOT) / 36.0, 1.0 / 9.0],
    ]
)
_VALUES, _VECTORS = np.linalg.eig(np.linalg.inv(_STAGES))
_FIRST = np.argsort(-_VALUES.imag)  # that with a positive imaginary part, the real one, the conjugate of the first
_COMPLEX, _REAL = _VALUES[_FIRST[0]], _VALUES[_FIRST[1]].real
_TO_COMPLEX, _TO_REAL = np.linalg.inv(_VECTORS)[_FIRST[0]], np.linalg.inv(_VECTORS)[_FIRST[1]].real.copy()
_OF_COMPLEX, _OF_REAL = 2.0 * _VECTORS[:, _FIRST[0]], _VECTORS[:, _FIRST[1]].real.copy()  # for the conjugate, too
_ERROR = np.array([-13.0 - 7.0 * _ROOT, -13.0 + 7.0 * _ROOT, -1.0]) / 3.0

_CONVERGED = 1e-3  # share of the tolerance that Newton's method may leave
_ITERATIONS = 10
_ROUNDING = 10.0 * np.finfo(np.float64).eps
_FAILED = 10.0  # the error of a step whose equations are not solved: the next one is about half as long
_PRECISE, _NEARLY, _CORRECTIONS = 1e-14, 1e-9, 200  # of the linear system of the derivative


class Needs(NamedTuple):
    """Arrays that a step needs besides the arguments of the right-hand side.

    Attributes:
        rtol: relative tolerance of each part of the state.
        atol: absolute tolerance of each part of the state.
        mass: the mass matrix, a matrix, or a vector if it is diagonal; an empty tuple if there is none.
    """

    rtol: Any
    atol: Any
    mass: Any


def with_needs(function: Any) -> Any:
    """A right-hand side, an event or a Jacobian that takes `Needs` before further arguments."""

    def make() -> Any:
        @inner_njit
        def taking_needs(t, y, needs, *args):  # type: ignore[no-untyped-def]
            return function(t, y, *args)

        return taking_needs

    return remembered(function, (with_needs,), make)


# Linear algebra.


class Algebra(NamedTuple):
    """The linear algebra of the steps.

    Attributes:
        jacobian: ``(t, y, args)``: the right-hand side's derivative with respect to the state.
        system: ``(jacobian, shift, needs)``: the factors of shift M - J.
        solve: ``(system, right, is_transposed)``.
    """

    jacobian: Any
    system: Any
    solve: Any


def _weighted(mass: Any, out: Any, weight: Any, v: Any) -> Any:
    """Adds a multiple of the product of a mass matrix and a vector."""
    raise NotImplementedError


@inner_overload(_weighted, strict=False)
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

    if not isinstance(mass, types.Array):
        return by_one
    return by_diagonal if mass.ndim == 1 else by_matrix


def _check_no_mass(mass: Any) -> None:
    """Refuses a mass matrix where a step has no length, whose derivative would be a solution with the matrix alone."""
    raise NotImplementedError


@inner_overload(_check_no_mass, strict=False)
def _check_no_mass_typed(mass: Any) -> Any:
    def refuse(mass):  # type: ignore[no-untyped-def]
        raise ValueError("a differential equation with a mass matrix has no derivative where it is solved over no time")

    return refuse if isinstance(mass, types.Array) else lambda mass: None


def _entry(mass: Any, i: Any, j: Any) -> Any:
    """An entry of a mass matrix."""
    raise NotImplementedError


@inner_overload(_entry, strict=False)
def _entry_typed(mass: Any, i: Any, j: Any) -> Any:
    if not isinstance(mass, types.Array):
        return lambda mass, i, j: 1.0 if i == j else 0.0
    if mass.ndim == 1:
        return lambda mass, i, j: mass[i] if i == j else 0.0
    return lambda mass, i, j: mass[i, j]


def _dense(f: Any, jac: Any) -> Algebra:
    @inner_jitable
    def system(jacobian, shift, needs):  # type: ignore[no-untyped-def]
        found = np.empty(jacobian.shape, type(shift))
        for i in range(jacobian.shape[0]):
            for j in range(jacobian.shape[1]):
                found[i, j] = shift * _entry(needs.mass, i, j) - jacobian[i, j]
        return found, lu_factored(found)

    @inner_jitable
    def solve(system, right, is_transposed):  # type: ignore[no-untyped-def]
        (factors, order), x = system, np.empty_like(right)
        if is_transposed:
            lu_solve_transposed(x, factors, order, right)
        else:
            lu_solve(x, factors, order, right)
        return x

    return Algebra(_by_columns(f) if jac is None else _checked(jac), system, solve)


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


def _check_jacobian(values: Any) -> None:
    """Refuses what is not a matrix of real numbers when it is typed; nothing in plain Python."""


@inner_overload(_check_jacobian, strict=False)
def _check_jacobian_typed(values: Any) -> Any:
    if isinstance(values, types.Array) and values.ndim == 2 and isinstance(values.dtype, types.Float | types.Integer):
        return lambda values: None
    raise SignatureError(
        f"jac of a differential equation returns {described(values)}",
        "return a matrix of real numbers",
        "it is the derivative of the right-hand side with respect to the state",
        SourceLocation.here(),
    )


def _checked(jac: Any) -> Any:
    """The user's function for the derivative."""

    @inner_jitable
    def jacobian(t, y, args):  # type: ignore[no-untyped-def]
        found = jac(t, y, *args)
        _check_jacobian(found)
        if found.shape != (y.size, y.size):
            raise ValueError("jac of a differential equation does not return a matrix as large as the state")
        return found

    return jacobian


# The equations of a step.


def _equations(f: Any) -> Any:
    """The residual of the changes; the error estimate, which follows them, is taken to be a constant."""

    @inner_njit
    def equations(kept, t, h, y, args):  # type: ignore[no-untyped-def]
        n, slopes, found = y.size, np.empty((3, y.size)), np.zeros(kept.size)
        for j in range(3):
            put(slopes[j], f(t + _NODES[j] * h, y + kept[j * n : j * n + n], *args))
            _weighted(args[0].mass, found[j * n : j * n + n], 1.0, kept[j * n : j * n + n])
        for i in range(3):
            for j in range(3):
                for k in range(n):
                    found[i * n + k] -= h * _STAGES[i, j] * slopes[j, k]
        for k in range(3 * n, 4 * n):
            found[k] = kept[k]
        return found

    return equations


def _correcting(algebra: Algebra) -> Any:
    """Solves with one derivative for all stages: ``(systems, h, right, is_transposed)``."""
    solve = algebra.solve

    @inner_jitable
    def correct(systems, h, right, is_transposed):  # type: ignore[no-untyped-def]
        n, (real, other), found = right.size // 4, systems, right.copy()
        to_real, of_real = (_OF_REAL, _TO_REAL) if is_transposed else (_TO_REAL, _OF_REAL)
        to_complex, of_complex = (_OF_COMPLEX, _TO_COMPLEX) if is_transposed else (_TO_COMPLEX, _OF_COMPLEX)
        one, pair = np.zeros(n), np.zeros(n, np.complex128)
        for i in range(3):
            for j in range(n):
                one[j] += _REAL / h * to_real[i] * right[i * n + j]
                pair[j] += _COMPLEX / h * to_complex[i] * right[i * n + j]
        one, pair = solve(real, one, is_transposed), solve(other, pair, is_transposed)
        for i in range(3):
            for j in range(n):
                found[i * n + j] = of_real[i] * one[j] + (of_complex[i] * pair[j]).real
        return found

    return correct


@inner_jitable
def _norm(parts, scale):  # type: ignore[no-untyped-def]
    """The root mean square of vectors, one after the other, in units of a scale."""
    total = 0.0
    for i in range(parts.size):
        total += (parts[i] / scale[i % scale.size]) ** 2
    return np.sqrt(total / parts.size)


def _newton(f: Any, algebra: Algebra, equations: Any) -> Any:
    """The changes of the state up to the stages, and the estimate of the error, one after the other."""
    jacobian, system, _ = algebra
    correct, estimate = _correcting(algebra), _estimating(f, algebra)

    @inner_jitable
    def iterate(kept, t, h, y, scale, systems, args):  # type: ignore[no-untyped-def]
        """Writes the changes; returns whether it converged."""
        before, limit = 0.0, max(_CONVERGED, _ROUNDING * (np.abs(y) / scale).max())
        for k in range(_ITERATIONS):
            change = correct(systems, h, equations(kept, t, h, y, args), False)
            kept -= change
            size = _norm(change[: 3 * y.size], scale)
            if size <= limit:
                return True
            # also for NaN: it does not fall by enough for the iterations that are left
            if k > 0 and not (size / before) ** (_ITERATIONS - 1 - k) * size <= limit:
                return False
            before = size
        return False

    @inner_njit
    def solver(slope, t, h, y, args):  # type: ignore[no-untyped-def]
        n, kept, needs = y.size, np.zeros(4 * y.size), args[0]
        if h != 0.0 and n > 0:
            scale, matrix = needs.atol + needs.rtol * np.abs(y), jacobian(t, y, args)
            systems = system(matrix, _REAL / h, needs), system(matrix, _COMPLEX / h, needs)
            if iterate(kept, t, h, y, scale, systems, args):
                estimate(kept, t, h, y, slope, systems[0], args)
            else:
                for j in range(n):
                    kept[j], kept[n + j], kept[2 * n + j], kept[3 * n + j] = 0.0, 0.0, 0.0, _FAILED * scale[j]
        return kept

    return solver


def _estimating(f: Any, algebra: Algebra) -> Any:
    solve = algebra.solve

    @inner_jitable
    def estimate(kept, t, h, y, slope, real, args):  # type: ignore[no-untyped-def]
        """Writes the estimate of the error. A large one is filtered once more, against its stiff components."""
        n, needs = y.size, args[0]
        error, right, change = kept[3 * n :], np.empty(y.size), np.zeros(y.size)
        scale = needs.atol + needs.rtol * np.maximum(np.abs(y), np.abs(y + kept[2 * n : 3 * n]))
        for i in range(3):
            for j in range(n):
                change[j] += _ERROR[i] * kept[i * n + j]
        for again in range(2):
            put(right, slope if again == 0 else f(t, y + error, *args))
            _weighted(needs.mass, right, 1.0 / h, change)
            put(error, solve(real, right, False))
            if not _norm(error, scale) > 1.0:
                break

    return estimate


def _solution(algebra: Algebra, product: Any, is_transposed: bool) -> Any:
    """The solution of a linear system with the derivative of the equations, from a product with it."""
    (jacobian, system, _), correct = algebra, _correcting(algebra)

    @inner_jitable
    def solve(slope, kept, args, right):  # type: ignore[no-untyped-def]
        t, h, y, rest = args
        n, needs = y.size, rest[0]
        if h == 0.0 or n == 0:
            _check_no_mass(needs.mass)
            return right.copy()
        # the stage in the middle: the derivative there is nearest to those of the others
        matrix = jacobian(t + _NODES[1] * h, y + kept[n : 2 * n], rest)
        systems = system(matrix, _REAL / h, needs), system(matrix, _COMPLEX / h, needs)
        scale = needs.atol + needs.rtol * np.abs(y)
        scale = 1.0 / scale if is_transposed else scale  # a cotangent of what is small is large
        x, most, before = np.zeros(right.size), 0.0, np.inf
        for _ in range(_CORRECTIONS):
            change = correct(systems, h, right - product(x, kept, args), is_transposed)
            x += change
            most, size = max(most, _norm(x, scale)), _norm(change, scale)
            # at last it is rounding, which does not become smaller; NaN in, NaN out
            if not size > _PRECISE * most or before <= size < _NEARLY * most:
                return x
            before = size
        raise RuntimeError("the derivative of a step of a differential equation is not found: is jac right?")

    return solve


def radau(f: Any, jac: Any = None) -> Steps:
    """The steps for a right-hand side; they keep the changes and the estimate of the error, as rows.

    Args:
        f: the right-hand side, with needs.
        jac: the user's function for its derivative, with needs; None if there is none.
    """
    algebra, equations = _dense(f, jac), _equations(f)
    systems = _solution(algebra, pushed(equations), False), _solution(algebra, pulled(equations), True)
    collocate = implicit(_newton(f, algebra, equations), equations, systems)

    @inner_jitable
    def step(t, h, y, slope, args):  # type: ignore[no-untyped-def]
        # What irad cannot see through, such as lists of lists in f, may write to what it is passed: these are copies.
        found, kept = collocate(slope.copy(), (t, h, y.copy(), copied(args))), np.empty((4, y.size))
        y1, slope1 = np.empty(y.size), np.empty(y.size)
        for j in range(y.size):
            for i in range(4):
                kept[i, j] = found[i * y.size + j]
            y1[j] = y[j] + kept[2, j]
        put(slope1, f(t + h, y1, *args))
        return y1, slope1, kept

    @inner_jitable
    def dense(t, h, y, y1, kept, args):  # type: ignore[no-untyped-def]
        """The polynomial through the beginning and the stages."""
        found, (first, second, _) = np.empty((2, y.size)), _NODES
        for j in range(y.size):
            one = (kept[0, j] / first - kept[2, j]) / (1.0 - first)
            other = (kept[1, j] / second - kept[2, j]) / (1.0 - second)
            found[1, j] = (other - one) / (second - first)
            found[0, j] = one - first * found[1, j]
        return found

    return Steps(step, np.array([[0.0, 0.0, 0.0, 1.0]]), False, dense)
