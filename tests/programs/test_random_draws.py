"""Random draws by the parameters of their distributions: quantiles, means, the state of the generator."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy import special, stats

import irad
from irad.options import Options

# A draw of each distribution, with a weight: the gradient with respect to the weights is the draws.


@njit(error_model="numpy")
def legacy(p, w, seed):
    np.random.seed(seed)
    s = w[0] * np.random.gamma(p[0], p[1])
    s += w[1] * np.random.standard_gamma(p[2])
    s += w[2] * np.random.chisquare(p[3])
    s += w[3] * np.random.wald(p[4], p[5])
    s += w[4] * np.random.exponential(p[6])
    s += w[5] * np.random.lognormal(p[7], p[8])
    s += w[6] * np.random.weibull(p[9])
    s += w[7] * np.random.laplace(p[10], p[11])
    s += w[8] * np.random.logistic(p[12], p[13])
    s += w[9] * np.random.gumbel(p[14], p[15])
    s += w[10] * np.random.pareto(p[16])
    s += w[11] * np.random.power(p[17])
    s += w[12] * np.random.rayleigh(p[18])
    s += w[13] * np.random.normal(p[19], p[20])
    s += w[14] * np.random.uniform(p[21], p[22])
    s += w[15] * np.random.triangular(p[23], p[24], p[25])
    return s


@njit(error_model="numpy")
def generator(p, w, g):
    s = w[0] * g.gamma(p[0], p[1])
    s += w[1] * g.standard_gamma(p[2])
    s += w[2] * g.chisquare(p[3])
    s += w[3] * g.wald(p[4], p[5])
    s += w[4] * g.exponential(p[6])
    s += w[5] * g.lognormal(p[7], p[8])
    s += w[6] * g.weibull(p[9])
    s += w[7] * g.laplace(p[10], p[11])
    s += w[8] * g.logistic(p[12], p[13])
    s += w[9] * g.beta(p[14], p[15])
    s += w[10] * g.pareto(p[16])
    s += w[11] * g.power(p[17])
    s += w[12] * g.rayleigh(p[18])
    s += w[13] * g.normal(p[19], p[20])
    s += w[14] * g.uniform(p[21], p[22])
    s += w[15] * g.triangular(p[23], p[24], p[25])
    return s


@njit(error_model="numpy")
def python(p, w, seed):
    random.seed(seed)
    s = w[0] * random.gammavariate(p[0], p[1])
    s += w[1] * random.expovariate(p[2])
    s += w[2] * random.lognormvariate(p[3], p[4])
    s += w[3] * random.weibullvariate(p[5], p[6])
    s += w[4] * random.paretovariate(p[7])
    s += w[5] * random.gauss(p[8], p[9])
    return s


def wald(mean: float, scale: float) -> Any:
    return stats.invgauss(mean / scale, scale=scale)


def triangular(left: float, mode: float, right: float) -> Any:
    return stats.triang((mode - left) / (right - left), loc=left, scale=right - left)


LEGACY: list[tuple[Callable[..., Any], int]] = [
    (lambda a, b: stats.gamma(a, scale=b), 2),
    (stats.gamma, 1),
    (stats.chi2, 1),
    (wald, 2),
    (lambda b: stats.expon(scale=b), 1),
    (lambda m, s: stats.lognorm(s, scale=np.exp(m)), 2),
    (stats.weibull_min, 1),
    (stats.laplace, 2),
    (stats.logistic, 2),
    (stats.gumbel_r, 2),
    (stats.lomax, 1),
    (stats.powerlaw, 1),
    (lambda b: stats.rayleigh(scale=b), 1),
    (stats.norm, 2),
    (lambda a, b: stats.uniform(a, b - a), 2),
    (triangular, 3),
]
GENERATOR = [*LEGACY[:9], (stats.beta, 2), *LEGACY[10:]]
PYTHON: list[tuple[Callable[..., Any], int]] = [
    LEGACY[0],
    (lambda rate: stats.expon(scale=1.0 / rate), 1),
    LEGACY[5],
    (lambda scale, shape: stats.weibull_min(shape, scale=scale), 2),
    (stats.pareto, 1),
    LEGACY[13],
]

FIRST = [2.5, 1.7, 0.4, 3.0, 1.2, 0.8, 0.6, 0.3, 0.5, 1.5, 0.2, 1.3, -0.4, 0.7, 0.9, 1.1, 2.5, 1.6, 0.8, 0.1, 1.4]
FIRST += [-0.5, 1.5, 0.2, 0.5, 1.9]
SECOND = [0.6, 0.3, 1.0, 0.5, 3.0, 40.0, 2.0, 0.0, 1.2, 0.7, -1.0, 0.4, 2.0, 3.0, 0.4, 0.3, 0.9, 0.5, 3.0, 5.0, 0.2]
SECOND += [1.0, 4.0, -2.0, 1.5, 2.0]


def slope_of_quantile(distribution: Callable[..., Any], draw: float, parameters: np.ndarray, index: int) -> float:
    """Difference of fourth order of the quantile at the level of a draw, of the smaller tail."""
    at_draw = distribution(*parameters)
    low, high = at_draw.cdf(draw), at_draw.sf(draw)

    def at(step: float) -> float:
        moved = distribution(*(parameters + step * (np.arange(len(parameters)) == index)))
        return moved.ppf(low) if low < high else moved.isf(high)

    h = 1e-3 * max(abs(parameters[index]), 0.1)
    return (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h)


def check(
    function: Any, distributions: list[Any], parameters: np.ndarray, source: Callable[[], Any], plan: Any
) -> None:
    weights = np.linspace(1.0, 2.0, len(distributions))
    gradient = irad.value_and_grad(function, argnums=(0, 1), options=Options(plan=plan))
    value, (slopes, draws) = gradient(parameters, weights, source())
    assert value == function(parameters, weights, source())
    position = 0
    for (distribution, count), draw, weight in zip(distributions, draws, weights, strict=True):
        own = slice(position, position + count)
        wanted = [weight * slope_of_quantile(distribution, draw, parameters[own], i) for i in range(count)]
        # Quantiles are inverted to about 1e-10; divided by the step of the difference.
        np.testing.assert_allclose(slopes[own], wanted, rtol=1e-6, atol=1e-7)
        position += count
    assert position == len(slopes)


@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_quantiles_of_legacy_draws(plan: str):
    for seed, parameters in enumerate((FIRST, SECOND, FIRST)):
        check(legacy, LEGACY, np.array(parameters), lambda seed=seed: seed, plan)


@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_quantiles_of_draws_of_a_generator(plan: str):
    for seed, parameters in enumerate((FIRST, SECOND, FIRST)):
        check(generator, GENERATOR, np.array(parameters), lambda seed=seed: np.random.default_rng(seed), plan)


@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_quantiles_of_draws_of_pythons_module(plan: str):
    for parameters in ([2.5, 1.7, 0.4, 0.3, 0.5, 1.5, 0.7, 2.5, 0.1, 1.3], [0.3, 0.6, 2.0, 0, 1, 0.6, 2, 0.9, 2, 0.4]):
        check(python, PYTHON, np.array(parameters, dtype=float), lambda: 3, plan)


@njit
def next_of_numpy():
    return np.random.random()


@njit
def next_of_python():
    return random.random()


def test_the_state_advances_once():
    parameters, weights = np.array(FIRST), np.ones(16)
    irad.grad(legacy)(parameters, weights, 5)
    found = next_of_numpy()
    legacy(parameters, weights, 5)
    assert found == next_of_numpy()
    irad.grad(python)(parameters, weights, 5)
    found = next_of_python()
    python(parameters, weights, 5)
    assert found == next_of_python()
    one, other = np.random.default_rng(5), np.random.default_rng(5)
    irad.grad(generator)(parameters, weights, one)
    generator(parameters, weights, other)
    assert one.bit_generator.state == other.bit_generator.state


# ------------------------------------------------------------------------------------------------ means

MANY = 40_000


@njit
def beta(p, g):
    np.random.seed(1)
    s = 0.0
    for _ in range(MANY):
        s += np.random.beta(p[0], p[1])
    return s / MANY


@njit
def log_of_small_beta(p, g):
    s = 0.0
    for _ in range(MANY):
        s += np.log(g.beta(p[0], p[1]))
    return s / MANY


@njit
def student(p, g):
    np.random.seed(1)
    s = 0.0
    for _ in range(MANY):
        s += np.random.standard_t(p[0]) ** 2
    return s / MANY


@njit
def student_of_generator(p, g):
    s = 0.0
    for _ in range(MANY):
        s += g.standard_t(p[0]) ** 2
    return s / MANY


@njit
def ratio_of_chisquares(p, g):
    np.random.seed(1)
    s = 0.0
    for _ in range(MANY):
        s += np.log(np.random.f(p[0], p[1])) + np.log(g.f(p[0], p[1]))
    return s / MANY


@njit
def dirichlet(p, g):
    np.random.seed(1)
    s = 0.0
    for _ in range(MANY):
        s += np.log(np.random.dirichlet(p)[1])
    return s / MANY


@njit
def log_of_gamma(p, g):
    np.random.seed(1)
    return np.mean(np.log(np.random.gamma(p[0], p[1], MANY))) + np.mean(np.log(g.gamma(p[0], p[1], MANY)))


MEANS = [
    (beta, [2.5, 0.7], lambda a, b: a / (a + b)),
    (log_of_small_beta, [0.5, 0.8], lambda a, b: special.digamma(a) - special.digamma(a + b)),
    (student, [9.0], lambda df: df / (df - 2.0)),
    (student_of_generator, [9.0], lambda df: df / (df - 2.0)),
    (ratio_of_chisquares, [5.0, 8.0], lambda a, b: 2.0 * sum(s * (special.digamma(x) - np.log(x))
                                                            for x, s in ((a / 2.0, 1.0), (b / 2.0, -1.0)))),
    (dirichlet, [0.6, 1.5, 3.0], lambda a, b, c: special.digamma(b) - special.digamma(a + b + c)),
    (log_of_gamma, [0.7, 1.3], lambda a, b: 2.0 * (special.digamma(a) + np.log(b))),
]  # fmt: skip


@pytest.mark.parametrize(("function", "parameters", "mean"), MEANS, ids=lambda v: getattr(v, "__name__", None))
def test_the_mean_derivative_is_that_of_the_mean(function: Any, parameters: list[float], mean: Callable[..., float]):
    point = np.array(parameters)
    value, found = irad.value_and_grad(function)(point, np.random.default_rng(2))
    assert value == function(point, np.random.default_rng(2))
    for i, slope in enumerate(found):
        step = 1e-4 * (np.arange(len(point)) == i)
        wanted = (mean(*(point + step)) - mean(*(point - step))) / 2e-4
        # The standard errors are around one percent; the derivative of the samplers' code is off by 8 to 30 percent.
        assert slope == pytest.approx(wanted, rel=0.06)


# ------------------------------------------------------------------------------------------------ types, refusals


@njit
def single(a, g):
    return g.standard_gamma(a, dtype=np.float32)


def test_single_precision():
    for seed in range(4):
        draw, slope = irad.value_and_grad(single)(np.float32(0.7 + seed), np.random.default_rng(seed))
        assert draw == single(np.float32(0.7 + seed), np.random.default_rng(seed))
        wanted = slope_of_quantile(stats.gamma, float(draw), np.array([float(np.float32(0.7 + seed))]), 0)
        assert slope == pytest.approx(wanted, rel=1e-5)
        assert np.asarray(slope).dtype == np.float32


@njit
def whole_shape(scale, g):
    np.random.seed(3)
    return np.random.gamma(2, scale) + g.gamma(3, scale) + np.random.beta(scale, 1)


def test_integer_parameters():
    scale = 0.7
    assert irad.grad(whole_shape)(scale, np.random.default_rng(1)) != 0.0


@njit
def direction(mean, concentration):
    np.random.seed(2)
    return np.random.vonmises(mean, concentration)


def test_von_mises_draws_move_with_the_mean_direction():
    assert irad.grad(direction)(0.3, 2.0) == 1.0


@njit
def noncentral(df, nonc):
    return np.random.noncentral_chisquare(df, nonc)


@njit
def noncentral_of_generator(df, nonc, g):
    return g.noncentral_f(df, 3.0, nonc)


@pytest.mark.parametrize(
    ("function", "args", "argnum", "words"),
    [
        (direction, (0.3, 2.0), 1, "concentration"),
        (noncentral, (0.5, 2.0), 0, "noncentral chi-square"),
        (noncentral, (3.0, 2.0), 1, "noncentral chi-square"),
        (noncentral_of_generator, (3.0, 2.0, np.random.default_rng(0)), 1, "noncentral chi-square"),
    ],
)
def test_refused_by_name(function: Any, args: tuple[Any, ...], argnum: int, words: str):
    with pytest.raises(irad.UnsupportedError, match=words) as caught:
        irad.grad(function, argnums=argnum)(*args)
    assert caught.value.location is not None
    assert caught.value.location.file == __file__


@njit
def counted(rate, chance):
    np.random.seed(4)
    return rate * (np.random.poisson(rate) + np.random.binomial(10, chance) + np.random.geometric(chance))


def test_counts_are_constant():
    rate, chance = 3.0, 0.4
    np.testing.assert_allclose(irad.grad(counted, argnums=(0, 1))(rate, chance), (counted(rate, chance) / rate, 0.0))
