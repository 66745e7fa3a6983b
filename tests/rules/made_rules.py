"""Rules that irad's libraries make for a function, each with functions and operands at which `check_rule` checks it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numba import njit

import irad
from irad.frontend.packing.packed import packed
from irad.implicit.fixed_points import _fixed_point
from irad.implicit.krylov import krylov_of
from irad.implicit.minima import _argmin
from irad.implicit.newton import _brentq, _newton
from irad.implicit.pseudoinverse import _lsqr
from irad.integrate.cubature import cubature_of
from irad.integrate.integrands import batched, pointwise
from irad.integrate.quad import quadrature_of
from irad.ode.adjoints import continuous, discrete
from irad.ode.events import watching
from irad.ode.march import METHODS, Settings
from irad.sparse_linalg.eigen import _rules_of

Made: TypeAlias = Callable[[], tuple[Any, ...]]
"""Makes the function with the rule, and the arguments after it."""

WEIGHTS, WAVE = np.array([2.0, 1.0]), (np.array([2.0, 1.0]), 1.5)
START, DAMPING = np.array([1.0, 0.5]), np.array([2.0, 0.3])
TWO, KRYLOV = np.array([1.0, 2.0]), (np.zeros(2), 1e-14, 0.0, 100, 10)
MATRIX = (  # and the settings of a search for its two largest eigenvalues
    np.array([4.0, 1.0, 1.0, 3.0, 0.5, 0.5, 2.0]), np.array([0, 1, 0, 1, 2, 1, 2]), np.array([0, 2, 5, 7]),
    irad.Const(np.zeros(0)), irad.Const((2, 0, 0.0, 1e-12, 100)),
)  # fmt: skip
BREAKS = irad.Const(np.array([0.6]))  # where the integrand is smooth, moving one changes nothing but rounding


@njit
def wave(t, weights, rate):
    return weights[0] * np.sin(rate * t) + weights[1]


@njit
def waves(t, out, weights, rate):
    for i in range(t.size):
        out[i] = weights[0] * np.sin(rate * t[i]) + weights[1]


@njit
def sheet(x, weights, rate):
    return (weights[0] * np.sin(rate * x[0]) + weights[1]) * x[1]


@njit
def cube(x, a):
    return x**3 - a


@njit
def pair(x, a, b):
    return np.array([x[0] * x[0] + a[0] * x[1] - b, x[1] * a[1] - x[0]])


@njit
def named(x, a):
    return x["low"] * x["low"] - a, x["high"] - x["low"] * a


@njit
def contraction(x, m, b):
    return np.array([0.3 * np.sin(m[0] * x[0]) + m[1] * x[1] + b, 0.3 * m[0] * x[0] + 0.1 * b])


@njit
def valley(x, a, b):
    return (x[0] - a[0]) ** 2 * (1.0 + b * b) + (x[1] - a[1] * x[0]) ** 2 * b + x[0] ** 4


@njit
def symmetric(x, a):
    return np.array([a[0] * x[0] + a[1] * x[1], a[1] * x[0] + a[2] * x[1]])


@njit
def oscillator(t, y, k):
    return np.array([y[1], -k[0] * y[0] - k[1] * y[1] + 0.1 * np.cos(t)])


def integration(settings: Settings) -> tuple[Any, ...]:
    return START, 0.0, 0.7, (DAMPING,), np.array([0.3]), irad.Const(settings)


def equal_steps(steps: int) -> Settings:
    """Settings of an integration without events; the tolerances are for the continuous adjoint."""
    return Settings(np.full(2, 1e-11), np.full(2, 1e-12), 0.0, np.inf, steps, steps, (), ())


def tolerances(*rest: Any) -> irad.Const:
    return irad.Const((1e-12, 1e-12, 50, *rest))


MADE: dict[str, dict[str, Made]] = {
    "irad.integrate.quad.quadrature_of": {
        "points": lambda: (quadrature_of(pointwise(wave)), 0.2, 1.1, WAVE, BREAKS, tolerances(None)),
        "batches": lambda: (quadrature_of(batched(waves)), 0.2, 1.1, WAVE, BREAKS, tolerances(())),
    },
    "irad.integrate.cubature.cubature_of": {
        "a box": lambda: (
            cubature_of(sheet), np.zeros(2), np.array([1.0, 0.5]), WAVE, irad.Const(1e-11), irad.Const(1e-11), 500
        ),
    },
    "irad.implicit.theorem.implicit": {
        "a number": lambda: (_brentq(cube), irad.Const((0.0, 10.0, 2e-14, 1e-15, 100)), (8.0,)),
        "a vector": lambda: (_newton(pair, False), irad.Const((np.ones(2), 1e-13, 0.0, 50)), (TWO, 3.0)),
        "a dictionary": lambda: (
            _newton(named, False), irad.Const(packed(({"low": 1.0, "high": 1.0}, 1e-13, 0.0, 50))), (2.0,)
        ),
        "a fixed point": lambda: (
            _fixed_point(contraction, False), irad.Const((np.zeros(2), 1e-13, 0.0, 200, 5)), (np.array([0.5, 0.2]), 0.7)
        ),
        "a minimum": lambda: (_argmin(valley), irad.Const((np.zeros(2), 1e-11, 0.0, 200)), (np.array([0.5, 0.2]), 0.7)),
        "cg": lambda: (krylov_of(symmetric, "cg"), irad.Const(KRYLOV), (TWO, (np.array([3.0, 1.0, 2.0]),))),
        "gmres": lambda: (krylov_of(symmetric, "gmres"), irad.Const(KRYLOV), (TWO, (np.array([3.0, 1.0, 2.0]),))),
    },
    "irad.implicit.pseudoinverse._with_rule": {
        "least squares": lambda: (_lsqr(symmetric), irad.Const(KRYLOV[:4]), (TWO, (np.array([3.0, 1.0, 2.0]),))),
    },
    "irad.ode.adjoints.discrete": {
        "Runge and Kutta": lambda: (
            discrete(oscillator, watching(()), METHODS["rk4"], 8), *integration(equal_steps(6))
        ),
    },
    "irad.ode.adjoints.continuous": {
        # with equal steps: those that are chosen are among the results, and no smooth function
        "Dormand and Prince": lambda: (
            continuous(oscillator, METHODS["dopri5"]._replace(order=0)),
            *integration(equal_steps(40)),
        ),
    },
    "irad.sparse_linalg.eigen._values_of": {"the largest": lambda: (_rules_of(False)[0], *MATRIX)},
    "irad.sparse_linalg.eigen._pairs_of": {"the largest": lambda: (_rules_of(False)[1], *MATRIX)},
}  # fmt: skip
"""By the function that makes the rule."""
