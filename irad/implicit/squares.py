"""Minima of a sum of squares, or of robust losses of these, by the method of Levenberg and Marquardt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from irad.api.custom.higher_order import passed_along
from irad.api.functions import primal_of, remembered
from irad.api.grad import value_and_grad
from irad.api.jacobians.jacobian import jacobian
from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.raising import public
from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_jitable, inner_njit
from irad.implicit import systems
from irad.implicit.bounded import bounded, bounds_of, start_within, within
from irad.implicit.compiled import offer
from irad.implicit.theorem import outcome, solver_of
from irad.implicit.unknowns import epsilon_of, is_within, larger, relative_size, size_of, started

_ROUNDING: Final = 4.0  # in units of the relative error of a float


@public
def least_squares(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    rtol: float = 1e-10,
    atol: float = 0.0,
    maxiter: int = 100,
    loss: str = "linear",
    f_scale: float = 1.0,
    bounds: Any = None,
    full_output: bool = False,
) -> Any:
    """A local minimum of the sum of the squares of ``fun(x, *args)``, and its derivative with respect to ``args``.

    It can be called from Python and in compiled code. The method is that of Levenberg and Marquardt. The derivative is
    that of the point where the gradient of the sum is zero; it includes the second derivatives of ``fun``.
    With a robust loss the sum is that of ``f_scale**2 * rho((fun / f_scale)**2)``, in which outliers count less.

    Args:
        fun: returns an array.
        x0: the initial guess, an array with one axis.
        args: a tuple of further arguments: numbers, arrays and structures of these.
        rtol: relative tolerance: the search ends when the Gauss-Newton step changes each unknown by at most this share
            of its size, or when the gradient is zero up to the rounding of its terms. Units do not matter.
        atol: absolute tolerance, added to the relative one.
        maxiter: the largest number of steps.
        loss: the function ``rho(z)``, as in SciPy; a literal in compiled code: ``"linear"``, z itself; ``"soft_l1"``,
            ``2 * (sqrt(1 + z) - 1)``; ``"huber"``, z up to 1 and ``2 * sqrt(z) - 1`` from there; ``"cauchy"``,
            ``log(1 + z)``; ``"arctan"``, ``arctan(z)``. With the last two there may be several minima. The second
            derivative of ``"huber"`` jumps: a value of size ``f_scale`` counts as none of the outliers.
        f_scale: the size of values from which on they are outliers; derivatives are with respect to it, too.
        bounds: as for `irad.implicit.argmin`, whose method and derivative within bounds apply.
        full_output: whether to return an `irad.implicit.Solution`, which says if ``x`` is a minimum, instead of
            raising if it is not; a literal in compiled code.

    Returns:
        The minimum, in new memory.

    Raises:
        SignatureError: ``fun`` is not a function that Numba compiles, or ``loss`` is none of these.
        ValueError: no minimum is found within ``maxiter`` steps, ``fun`` is not finite at ``x0``, it has fewer values
            than there are unknowns, or ``f_scale`` is not positive.

    Source:
        Nocedal, Wright: Numerical optimization, Springer 2006, section 10.3.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.implicit import least_squares
        >>> from numba import njit
        >>> @njit
        ... def misfit(p, x, y):
        ...     return p[0] * np.exp(-p[1] * x) - y
        >>> x = np.linspace(0.0, 2.0, 5)
        >>> least_squares(misfit, np.ones(2), (x, 3.0 * np.exp(-0.5 * x))).round(6)
        array([3. , 0.5])
    """
    solve = _least_squares(primal_of(fun), loss, full_output, bounds is not None)
    start, *sides = (x0,) if bounds is None else within(x0, bounds)
    return solve((start, float(rtol), float(atol), int(maxiter)), float(f_scale), (*sides, *passed_along(args)))


# Robust losses: rho(z), its derivative, and its second one. `huber` has a kink in the second: its derivatives are those
# of the side where z is 1.


@inner_jitable
def _huber(z):  # type: ignore[no-untyped-def]
    return z if z <= 1.0 else 2.0 * np.sqrt(z) - 1.0


@inner_jitable
def _huber_slopes(z):  # type: ignore[no-untyped-def]
    return (1.0, 0.0) if z <= 1.0 else (1.0 / np.sqrt(z), -0.5 / (z * np.sqrt(z)))


@inner_jitable
def _soft_l1(z):  # type: ignore[no-untyped-def]
    return 2.0 * z / (np.sqrt(1.0 + z) + 1.0)


@inner_jitable
def _soft_l1_slopes(z):  # type: ignore[no-untyped-def]
    root = np.sqrt(1.0 + z)
    return 1.0 / root, -0.5 / (root * (1.0 + z))


@inner_jitable
def _cauchy(z):  # type: ignore[no-untyped-def]
    return np.log1p(z)


@inner_jitable
def _cauchy_slopes(z):  # type: ignore[no-untyped-def]
    return 1.0 / (1.0 + z), -1.0 / (1.0 + z) ** 2


@inner_jitable
def _arctan(z):  # type: ignore[no-untyped-def]
    return np.arctan(z)


@inner_jitable
def _arctan_slopes(z):  # type: ignore[no-untyped-def]
    return 1.0 / (1.0 + z * z), -2.0 * z / (1.0 + z * z) ** 2


_LOSSES: Final = {
    "huber": (_huber, _huber_slopes),
    "soft_l1": (_soft_l1, _soft_l1_slopes),
    "cauchy": (_cauchy, _cauchy_slopes),
    "arctan": (_arctan, _arctan_slopes),
}
_LEAST_WEIGHT: Final = 1e-6  # of an outlier's row, in units of the slope, where the second derivative is not positive
_ERROR: Final = "irad.implicit.least_squares found no minimum within maxiter steps"


def _least_squares(residuals: Any, loss: Any, full_output: bool = False, is_bounded: bool = False) -> Any:
    """The compiled ``(settings, f_scale, args) -> x`` with its rule; bounds are the first two of the arguments."""
    if loss != "linear" and loss not in _LOSSES:
        raise SignatureError(
            f"least_squares: loss={loss!r}",
            f"pass one of {', '.join(map(repr, ['linear', *_LOSSES]))}",
            "it is the function of the squares that are added",
            SourceLocation.here(),
        )

    def make() -> Any:
        if loss == "linear":
            return _of_squares(residuals, full_output, is_bounded)
        return _of_losses(residuals, loss, full_output, is_bounded)

    return remembered(residuals, (least_squares, loss, full_output, is_bounded), make)


def _core(half_cost: Any, steps: Any, full_output: bool, is_bounded: bool) -> Any:
    gradient = systems.stationary(half_cost)
    if is_bounded:
        return solver_of(*bounded(value_and_grad(half_cost), gradient), _ERROR, full_output)
    return solver_of(steps, gradient, systems.dense(gradient), _ERROR, full_output)


def _of_squares(residuals: Any, full_output: bool, is_bounded: bool) -> Any:
    @inner_njit
    def half_squares(x, *args):  # type: ignore[no-untyped-def]
        r = residuals(x, *args).ravel()
        return 0.5 * np.dot(r, r)

    @inner_njit
    def flat(x, *args):  # type: ignore[no-untyped-def]
        return residuals(x, *args).ravel()

    weighted = inner_jitable(lambda r, j, args: (r, j))
    cost = inner_jitable(lambda r, args: np.dot(r, r))
    core = _core(half_squares, _levenberg_marquardt(flat, weighted, cost), full_output, is_bounded)

    @inner_njit
    def solve(settings, f_scale, args):  # type: ignore[no-untyped-def]
        return core(settings, args)

    return solve


def _of_losses(residuals: Any, loss: str, full_output: bool, is_bounded: bool) -> Any:
    """The solver for a robust loss, where the scale of outliers is the first of the arguments after the bounds.

    Source:
        Triggs et al.: Bundle adjustment, a modern synthesis, Vision Algorithms 1999, LNCS 1883, section 4.3.
    """
    rho, slopes = _LOSSES[loss]

    @inner_jitable
    def cost(r, args):  # type: ignore[no-untyped-def]
        scale, total = args[0], 0.0
        for i in range(r.size):
            total += rho((r[i] / scale) ** 2)
        return scale * scale * total

    @inner_njit
    def half_cost(x, f_scale, *args):  # type: ignore[no-untyped-def]
        return 0.5 * cost(residuals(x, *args).ravel(), (f_scale,))

    @inner_njit
    def flat(x, f_scale, *args):  # type: ignore[no-untyped-def]
        return residuals(x, *args).ravel()

    @inner_jitable
    def weighted(r, j, args):  # type: ignore[no-untyped-def]
        values, rows = np.empty(r.size), np.empty(j.shape)
        for i in range(r.size):
            z = (r[i] / args[0]) ** 2
            first, second = slopes(z)
            root = np.sqrt(max(first + 2.0 * second * z, _LEAST_WEIGHT * first))
            values[i], rows[i] = r[i] * first / root, j[i] * root
        return values, rows

    core, before = _core(half_cost, _levenberg_marquardt(flat, weighted, cost), full_output, is_bounded), 2 * is_bounded

    @inner_njit
    def solve(settings, f_scale, args):  # type: ignore[no-untyped-def]
        if not f_scale > 0.0:
            raise ValueError("irad.implicit.least_squares is given an f_scale that is not positive")
        return core(settings, args[:before] + (f_scale,) + args[before:])  # noqa: RUF005, Numba adds tuples

    return solve


def _levenberg_marquardt(flat: Any, weighted: Any, cost: Any) -> Any:
    """Steps for a vector of values, and functions for their weights ``(r, j, args)`` and their cost ``(r, args)``."""
    slope = jacobian(flat)

    @inner_njit
    def steps(settings, *args):  # type: ignore[no-untyped-def]
        x0, rtol, atol, limit = settings
        x, damping, is_stuck = started(x0).astype(np.float64), 1e-3, False
        values = flat(x, *args)
        _check_residuals(values, x.size)
        rounding = _ROUNDING * epsilon_of(x)
        tolerance, seen, nit, nfev = max(rtol, rounding), np.abs(x), 0, 1
        while nit < limit:
            r, j = weighted(values, slope(x, *args), args)
            gradient, least, matrix = j.T @ r, cost(values, args), j.T @ j
            sizes = np.abs(j)
            wrong = relative_size(gradient, sizes.T @ (sizes @ np.abs(x) + np.abs(r)))
            units = systems.units_of(np.diag(matrix).copy())
            newton_step = units * np.linalg.lstsq(j * units, r)[0]
            is_small = is_within(newton_step, x, tolerance, atol) and (wrong <= 100.0 * tolerance or atol > 0.0)
            # no step is better: what is left is rounding, of the gradient's terms or of where the search has been
            is_rounding = wrong <= tolerance or (wrong >= 0.0 and is_within(newton_step, seen, rounding, atol))
            if is_small or wrong <= rounding or (is_stuck and is_rounding):
                return outcome(x, True, nit, nfev)
            if is_stuck:
                break
            trial, after, nit = x, values, nit + 1
            while damping < 1e15:
                trial = x - np.linalg.solve(matrix + damping * np.diag(1.0 / units**2), gradient)
                after, nfev = flat(trial, *args), nfev + 1
                # near the minimum of a sum that stays, rounding hides the decrease
                if cost(after, args) <= least * (1.0 + 1e-13):
                    break
                damping *= 4.0
            is_stuck = damping >= 1e15
            x, values, damping = trial, after, max(damping / 8.0, 1e-15)
            seen = larger(seen, x)
        return outcome(x, False, nit, nfev)

    return steps


@inner_njit
def _check_residuals(r, unknowns):  # type: ignore[no-untyped-def]
    if r.size < unknowns:
        raise FormattedValueError(
            "the function of irad.implicit.least_squares returns {} values for {} unknowns: its minimum is not unique, "
            "give at least as many values",
            r.size,
            unknowns,
        )
    if not np.isfinite(size_of(r)):
        raise ValueError("the function of irad.implicit.least_squares is not finite where the search begins")


offer(
    least_squares,
    _least_squares,
    "(start_within(bounds, x0), rtol, atol, maxiter), float(f_scale), bounds_of(bounds, x0) + passed_along(args)",
    literals=("loss", "full_output"),
    present=("bounds",),
    start_within=start_within,
    bounds_of=bounds_of,
)
