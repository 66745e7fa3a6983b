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

from functools import cache
from typing import Any

import numpy as np

from irad.api.checkpointing.values import copied
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.implicit.systems import pulled, pushed
from irad.implicit.theorem import implicit
from irad.ode.algebra import check_no_mass, factors_of, jacobian_of, solved, weighted
from irad.ode.dense import Steps, put

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


# The equations of a step.


def _equations(f: Any) -> Any:
    """The residual of the changes; the error estimate, which follows them, is taken to be a constant."""

    @inner_njit
    def equations(kept, t, h, y, args):  # type: ignore[no-untyped-def]
        n, slopes, found = y.size, np.empty((3, y.size)), np.zeros(kept.size)
        for j in range(3):
            put(slopes[j], f(t + _NODES[j] * h, y + kept[j * n : j * n + n], *args))
            weighted(args[0].mass, found[j * n : j * n + n], 1.0, kept[j * n : j * n + n])
        for i in range(3):
            for j in range(3):
                for k in range(n):
                    found[i * n + k] -= h * _STAGES[i, j] * slopes[j, k]
        for k in range(3 * n, 4 * n):
            found[k] = kept[k]
        return found

    return equations


def _correcting(solve: Any) -> Any:
    """Solves with one derivative for all stages: ``(systems, h, right, is_transposed)``."""

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


_correct = _correcting(solved)


@inner_jitable
def _systems(jacobian, h, needs):  # type: ignore[no-untyped-def]
    """The factors of the real and of the complex system of Newton's method."""
    return factors_of(jacobian, _REAL / h, needs.mass), factors_of(jacobian, _COMPLEX / h, needs.mass)


def _newton(f: Any, jacobian: Any, equations: Any) -> Any:
    """The changes of the state up to the stages, and the estimate of the error, one after the other."""
    estimate = _estimating(f)

    @inner_jitable
    def iterate(kept, t, h, y, scale, systems, args):  # type: ignore[no-untyped-def]
        """Writes the changes; returns whether it converged."""
        before, limit = 0.0, max(_CONVERGED, _ROUNDING * (np.abs(y) / scale).max())
        for k in range(_ITERATIONS):
            change = _correct(systems, h, equations(kept, t, h, y, args), False)
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
            scale, systems = needs.atol + needs.rtol * np.abs(y), _systems(jacobian(t, y, args), h, needs)
            if iterate(kept, t, h, y, scale, systems, args):
                estimate(kept, t, h, y, slope, systems[0], args)
            else:
                for j in range(n):
                    kept[j], kept[n + j], kept[2 * n + j], kept[3 * n + j] = 0.0, 0.0, 0.0, _FAILED * scale[j]
        return kept

    return solver


def _estimating(f: Any) -> Any:
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
            weighted(needs.mass, right, 1.0 / h, change)
            put(error, solved(real, right, False))
            if not _norm(error, scale) > 1.0:
                break

    return estimate


def _solutions(jacobian: Any, equations: Any) -> tuple[Any, Any]:
    """The solution of the linear system with the derivative of the equations, and of that with its transpose.

    Both have rules: corrections end when their sum is precise, which its derivative need not be by then.
    """
    products = pushed(equations), pulled(equations)

    @cache
    def solution_of(is_transposed: bool) -> Any:
        product = products[is_transposed]

        @inner_njit
        def residual(x, kept, args, right):  # type: ignore[no-untyped-def]
            return product(x, kept, args) - right

        systems = again(is_transposed), again(not is_transposed)
        return implicit(_solving(jacobian, product, is_transposed), residual, systems)

    def again(is_transposed: bool) -> Any:
        """A solution for another right-hand side, made where a derivative of higher order needs it."""

        def solve(slope: Any, x: Any, args: Any, right: Any) -> Any:
            raise NotImplementedError

        @inner_overload(solve, strict=False)
        def solve_typed(slope: Any, x: Any, args: Any, right: Any) -> Any:
            solution = solution_of(is_transposed)
            return lambda slope, x, args, right: solution(slope, (args[0], args[1], right))

        return solve

    plain, transposed = solution_of(False), solution_of(True)
    return (
        inner_jitable(lambda slope, kept, args, right: plain(slope, (kept, args, right))),
        inner_jitable(lambda slope, kept, args, right: transposed(slope, (kept, args, right))),
    )


def _solving(jacobian: Any, product: Any, is_transposed: bool) -> Any:
    """The solution of a linear system with the derivative of the equations, from a product with it."""

    @inner_njit
    def solve(slope, kept, args, right):  # type: ignore[no-untyped-def]
        t, h, y, rest = args
        n, needs = y.size, rest[0]
        if h == 0.0 or n == 0:
            check_no_mass(needs.mass)
            return right.copy()
        # the stage in the middle: the derivative there is nearest to those of the others
        systems = _systems(jacobian(t + _NODES[1] * h, y + kept[n : 2 * n], rest), h, needs)
        scale = needs.atol + needs.rtol * np.abs(y)
        scale = 1.0 / scale if is_transposed else scale  # a cotangent of what is small is large
        x, most, before = np.zeros(right.size), 0.0, np.inf
        for _ in range(_CORRECTIONS):
            change = _correct(systems, h, right - product(x, kept, args), is_transposed)
            x += change
            most, size = max(most, _norm(x, scale)), _norm(change, scale)
            # at last it is rounding, which does not become smaller; NaN in, NaN out
            if not size > _PRECISE * most or before <= size < _NEARLY * most:
                return x
            before = size
        raise RuntimeError(
            "the derivative of a step of a differential equation is not found: is jac or jac_sparsity right?"
        )

    return solve


def radau(f: Any, jac: Any = None, has_pattern: bool = False) -> Steps:
    """The steps for a right-hand side; they keep the changes and the estimate of the error, as rows.

    Args:
        f: the right-hand side, with needs.
        jac: the user's function for its derivative, with needs; None if there is none.
        has_pattern: whether the pattern of this derivative is known.
    """
    jacobian, equations = jacobian_of(f, jac, has_pattern), _equations(f)
    collocate = implicit(_newton(f, jacobian, equations), equations, _solutions(jacobian, equations))

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
