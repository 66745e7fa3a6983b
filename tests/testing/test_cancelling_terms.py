"""`gradcheck` where the terms of a derivative cancel: what is right to rounding is not called wrong, what is not is.

The truth is rational arithmetic, which also says how large the terms are: rounding is some machine epsilons of them, an
error that has to be found a millionth.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad.data.copies import copied
from irad.data.floats import Vector
from irad.testing import GradcheckError, GradcheckReport, Verdict, gradcheck
from tests.tools.exact import partial_derivatives

_ERROR = 1e-6  # parts of the terms
_ROUNDING = 1e-13


@njit
def repulsion(x):
    s = 0.0
    for i in range(x.size - 1):
        s += (x[i + 1] - x[i]) ** -12
    return s


@njit
def lennard_jones(x):
    s = 0.0
    for i in range(x.size):
        for j in range(i):
            square = (x[i] - x[j]) * (x[i] - x[j])
            sixth = 1.0 / (square * square * square)
            s += sixth * sixth - sixth
    return s


@njit
def crystal(x):
    s = 0.0
    for i in range(x.shape[0]):
        for j in range(i):
            a, b = x[i, 0] - x[j, 0], x[i, 1] - x[j, 1]
            s += (a * a + b * b) ** -3
    return s


@njit
def springs(x, stiffness):
    s = 0.0
    for i in range(x.size - 1):
        d = x[i + 1] - x[i] - 0.25
        s += stiffness * (d * d * 0.5 + d * d * d / 3.0 + d * d * d * d / 4.0)
    return s


@njit
def bending(x, h):
    s = 0.0
    for i in range(1, x.size - 1):
        d = (x[i - 1] - 2.0 * x[i] + x[i + 1]) / (h * h)
        s += d * d
    return s


@njit
def poles(x, at):
    s = 0.0
    for each in at:
        s += 1.0 / (x - each)
    return s


@njit
def polynomial(x, coefficients):
    s = 0.0 * x
    for each in coefficients:
        s = s * x + each
    return s


@njit
def weighted(x, weights):
    s = 0.0
    for each in weights:
        s += each * x
    return s


@njit
def constants(x):
    s = 0.0
    for i in range(x.size):
        s += 0.1 * x[i] + 0.2 * x[i] - 0.3 * x[i] + (x[i] * x[i] - 1.0) * 0.7 - x[i] * (x[i] * 0.7)
    return s


@njit
def determinant(m):
    first = m[0, 0] * (m[1, 1] * m[2, 2] - m[1, 2] * m[2, 1])
    second = m[0, 1] * (m[1, 0] * m[2, 2] - m[1, 2] * m[2, 0])
    return first - second + m[0, 2] * (m[1, 0] * m[2, 1] - m[1, 1] * m[2, 0])


@njit
def variance(x):
    total, squares = 0.0, 0.0
    for i in range(x.size):
        total += x[i]
        squares += x[i] * x[i]
    return squares / x.size - (total / x.size) * (total / x.size)


@njit
def discriminant(x):
    product = 1.0
    for i in range(x.size):
        for j in range(i):
            product *= x[i] - x[j]
    return product * product


def _even(rng: np.random.Generator, most: int, spacing: float | None = None) -> Vector:
    """Points in a row at equal distances."""
    step = rng.uniform(0.2, 3.0) if spacing is None else spacing
    return rng.uniform(0.1, 3.0) + step * np.arange(rng.integers(4, most))


def _near(rng: np.random.Generator, x: Vector) -> Vector:
    """The numbers, or others more or less close to them."""
    parts = rng.choice([0.0, 1e-15, 1e-12, 1e-8, 1e-4, 1e-2])
    return x * (1.0 + parts * rng.standard_normal(x.shape))


def _crystal(rng: np.random.Generator) -> tuple[Any, ...]:
    side = np.arange(rng.integers(2, 4))
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    return (_near(rng, rng.uniform(0.1, 2.0) + rng.uniform(0.3, 2.0) * grid),)


def _poles(rng: np.random.Generator) -> tuple[Any, ...]:
    x, away = rng.uniform(0.5, 2.0), rng.uniform(0.3, 2.0, 5)
    return x * (1.0 + rng.choice([0.0, 1e-15, 1e-9, 1e-3])), np.concatenate([x - away, x + away])


def _polynomial(rng: np.random.Generator) -> tuple[Any, ...]:
    root = rng.choice([0.7, 1.0, 2.0])
    return root * (1.0 + rng.choice([0.0, 1e-8, 1e-4, 1e-2, 0.1])), np.poly(np.full(rng.integers(3, 8), root))


def _weighted(rng: np.random.Generator) -> tuple[Any, ...]:
    weights = rng.standard_normal(12) * 10.0 ** rng.uniform(-3.0, 3.0, 12)
    others = -rng.permutation(weights) * (1.0 + rng.choice([0.0, 1e-14, 1e-10, 1e-5]))
    return rng.uniform(0.5, 2.0), np.concatenate([weights, others])


def _determinant(rng: np.random.Generator) -> tuple[Any, ...]:
    hilbert = 1.0 / (1.0 + np.arange(3)[:, None] + np.arange(3))
    rank_one = np.outer(rng.uniform(0.5, 2.0, 3), rng.uniform(0.5, 2.0, 3))
    return (_near(rng, hilbert if rng.integers(2) else rank_one),)


POINTS = {
    repulsion: lambda rng: (_near(rng, _even(rng, 30)),),
    lennard_jones: lambda rng: (_near(rng, _even(rng, 12)),),
    crystal: _crystal,
    springs: lambda rng: (_near(rng, _even(rng, 30, rng.choice([0.25, 0.3]))), 10.0 ** rng.uniform(-3.0, 6.0)),
    bending: lambda rng: (_near(rng, _even(rng, 30, rng.uniform(0.1, 1.0))), rng.uniform(0.01, 0.1)),
    poles: _poles,
    polynomial: _polynomial,
    weighted: _weighted,
    constants: lambda rng: (_near(rng, rng.uniform(0.5, 2.0, 8)),),
    determinant: _determinant,
    variance: lambda rng: (_near(rng, np.full(8, 10.0 ** rng.integers(0, 5) * rng.uniform(0.5, 2.0))),),
    discriminant: lambda rng: (_near(rng, _even(rng, 7, rng.uniform(0.3, 1.0))),),
}
QUICK = repulsion, bending


def _checked(f: Any, args: tuple[Any, ...], complex_step: bool, error: Vector | float = 0.0) -> GradcheckReport:
    """The report, of a gradient with an error."""
    honest = irad.autodiff

    def mistaken(mode: Any, program: Any, x: Any, *rest: Any, **options: Any) -> Any:
        gradients, value = honest(mode, program, x, *rest, **options)
        if gradients[0] is not None:
            return (gradients[0] + float(np.sum(error)), *gradients[1:]), value
        x.shadow[...] += error
        return gradients, value

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(irad, "autodiff", mistaken)
        return gradcheck(f, *args, argnums=0, complex_step=complex_step, raises=False)


@pytest.mark.parametrize("complex_step", [True, False], ids=["complex", "differences"])
@pytest.mark.parametrize(
    ("functions", "count"),
    [(QUICK, 4), pytest.param(tuple(POINTS), 20, marks=pytest.mark.slow)],
    ids=["some", "all"],
)
def test_right_is_not_called_wrong_and_each_error_is_found(functions: Any, count: int, complex_step: bool):
    rng = np.random.default_rng(1)
    of_right, of_wrong = Counter[Verdict](), Counter[Verdict]()
    for f in functions:
        for _ in range(count):
            args = POINTS[f](rng)
            exact, terms = partial_derivatives(f.py_func, *args)
            assert np.all(np.abs(np.ravel(irad.grad(f, 0)(*copied(args))) - exact) <= _ROUNDING * terms)
            error = np.zeros(exact.size)
            place = rng.integers(exact.size)
            seen = terms[place] if complex_step else np.max(terms)  # differences see what the whole function allows
            error[place] = rng.choice([-1.0, 1.0]) * _ERROR * seen
            of_right[_checked(f, args, complex_step).verdict] += 1
            of_wrong[_checked(f, args, complex_step, error.reshape(np.shape(args[0]))).verdict] += 1
    cases = count * len(functions)
    assert of_wrong[Verdict.WRONG] == cases
    assert of_right[Verdict.WRONG] == 0
    assert of_right[Verdict.UNDECIDED] <= 0.05 * cases


def test_a_cancelling_force_is_right_and_its_accuracy_is_of_the_terms():
    [argument] = gradcheck(repulsion, np.linspace(0.1, 9.0, 30)).arguments
    assert argument.method == "complex step"
    assert argument.accuracy < 1e-9


@njit
def all_cancels(x):
    return weighted(x, np.array([0.1, 0.2, -0.3])) + 0.0 * x


def test_a_derivative_that_cancels_altogether():
    [argument] = gradcheck(all_cancels, 1.7).arguments
    assert argument.verdict is Verdict.RIGHT


def test_large_arrays_along_directions():
    x = 0.1 + 0.3 * np.arange(200)
    assert gradcheck(repulsion, x).right
    error = np.zeros(x.size)
    error[77] = _ERROR * partial_derivatives(repulsion.py_func, x[:3])[1][1]
    report = _checked(repulsion, (x,), True, error)
    assert report.verdict is Verdict.WRONG
    assert report.worst.worst == "x[77]"


def test_single_precision():
    assert gradcheck(repulsion, np.linspace(0.1, 9.0, 30).astype(np.float32)).right


# ------------------------------------------------------------------------------------ what differs and is not known


@njit
def squared_difference(x, y):
    return (x - y) ** 2


def test_what_varies_as_much_as_it_is_off_is_undecided(monkeypatch: pytest.MonkeyPatch):
    honest = irad.autodiff

    def rough(mode: Any, program: Any, x: Any, *rest: Any, **options: Any) -> Any:
        gradients, value = honest(mode, program, x, *rest, **options)
        noise = np.random.default_rng(int(np.float64(x.value).view(np.int64))).uniform(0.5, 1.0)
        return (gradients[0] + 1e-7 * noise, *gradients[1:]), value

    monkeypatch.setattr(irad, "autodiff", rough)
    with pytest.raises(GradcheckError, match="rounding decides there") as caught:
        gradcheck(squared_difference, 1.5, 0.5, argnums=0)
    assert caught.value.report.verdict is Verdict.UNDECIDED


def test_what_differs_between_equal_calls_is_not_rounding(monkeypatch: pytest.MonkeyPatch):
    honest, noise = irad.autodiff, np.random.default_rng(0)

    def random(*args: Any, **options: Any) -> Any:
        gradients, value = honest(*args, **options)
        return (gradients[0] + 1e-7 * noise.standard_normal(), *gradients[1:]), value

    monkeypatch.setattr(irad, "autodiff", random)
    assert gradcheck(squared_difference, 1.5, 0.5, argnums=0, raises=False).verdict is Verdict.WRONG


def test_an_error_at_one_point_only_is_not_rounding(monkeypatch: pytest.MonkeyPatch):
    honest = irad.autodiff

    def mistaken(mode: Any, program: Any, x: Any, *rest: Any, **options: Any) -> Any:
        gradients, value = honest(mode, program, x, *rest, **options)
        return (gradients[0] + 1e-3 * (x.value == 1.5), *gradients[1:]), value

    monkeypatch.setattr(irad, "autodiff", mistaken)
    assert gradcheck(squared_difference, 1.5, 0.5, argnums=0, raises=False).verdict is Verdict.WRONG
