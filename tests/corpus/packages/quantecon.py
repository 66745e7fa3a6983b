"""Economics: root finding, optimisation, Markov chains, quadrature, linear programming."""

from __future__ import annotations

import numpy as np
from numba import njit

from tests.corpus.sample import Package, ints, of
from tests.tools.catalogue import floats


@njit
def cubic(x, a, b):
    return x**3 - a * x - b


@njit
def cubic_slope(x, a, b):
    return 3 * x**2 - a


@njit
def cubic_curvature(x, a, b):
    return 6 * x


@njit
def bowl(x, a):
    return -((x - a) ** 2) - 0.1 * x**4


@njit
def rosenbrock(x, a):
    return -((a - x[0]) ** 2) - 5.0 * (x[1] - x[0] ** 2) ** 2


CHAIN = np.array([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.1, 0.3, 0.6]])
ROOTS = "quantecon.optimize.root_finding:"
QUAD = "quantecon.quad:"
TABLEAU = np.array([[2.0, 1.0, 1.0, 0.0, 4.0], [1.0, 3.0, 0.0, 1.0, 6.0], [3.0, 2.0, 0.0, 0.0, 0.0]])

PACKAGE = Package(
    "quantecon",
    "quantecon>=0.11",
    (
        of(ROOTS + "newton", cubic, 2.0, cubic_slope, (1.3, 0.7), argnums=(3,)),
        of(ROOTS + "newton_halley", cubic, 2.0, cubic_slope, cubic_curvature, (1.3, 0.7), argnums=(4,)),
        of(ROOTS + "newton_secant", cubic, 2.0, (1.3, 0.7), argnums=(2,)),
        of(ROOTS + "bisect", cubic, 0.9, 3.0, (1.3, 0.7), argnums=(3,), known="not smooth: bisection"),
        of(ROOTS + "brentq", cubic, 0.9, 3.0, (1.3, 0.7), argnums=(3,), rtol=1e-4),
        of(
            "quantecon.optimize.scalar_maximization:brent_max",
            bowl,
            -1.0,
            2.0,
            (0.6,),
            1e-10,
            500,
            argnums=(3,),
            rtol=1e-4,
        ),
        of(
            "quantecon.optimize.nelder_mead:nelder_mead",
            rosenbrock,
            np.array([0.4, 0.6]),
            np.array([[-2.0, 2.0], [-2.0, 2.0]]),
            (1.1,),
            1e-10,
            1e-10,
            30,
            argnums=(1,),
            known="not smooth: ties",
        ),
        of("quantecon.optimize.nelder_mead:_initialize_simplex", np.array([0.4, 0.6]), np.zeros((0, 2)), argnums=(0,)),
        of(
            "quantecon.optimize.nelder_mead:_neg_bounded_fun",
            rosenbrock,
            np.array([[-2.0, 2.0], [-2.0, 2.0]]),
            np.array([0.4, 0.6]),
            (1.1,),
            argnums=(2, 3),
        ),
        of("quantecon.optimize.pivoting:_pivoting", TABLEAU, 0, 1),
        of(
            "quantecon.optimize.linprog_simplex:linprog_simplex",
            np.array([3.0, 2.0]),
            np.array([[2.0, 1.0], [1.0, 3.0]]),
            np.array([4.0, 6.0]),
        ),
        of("quantecon.optimize.linprog_simplex:_set_criterion_row", floats(2), ints(2, 3), np.vstack([TABLEAU])),
        of("quantecon.optimize.lcp_lemke:lcp_lemke", np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([-1.0, -2.0])),
        of("quantecon.optimize.minmax:minmax", np.array([[3.0, 1.0, 0.5], [0.2, 2.0, 1.1]])),
        of("quantecon._lss:simulate_linear_model", floats(3, 3, low=-0.4, high=0.4), floats(3), floats(3, 9), 10),
        of("quantecon._inequality:lorenz_curve", floats(9)),
        of("quantecon._inequality:gini_coefficient", floats(9)),
        of("quantecon._gridtools:_repeat_1d", floats(3), 4, np.zeros(12), writes=2),
        of("quantecon.markov.gth_solve:_gth_solve_jit", CHAIN, np.zeros(3), writes=1),
        of("quantecon.markov.approximation:_fill_tauchen", floats(4), np.zeros((4, 4)), 4, 0.8, 0.3, 0.2, writes=1),
        of("quantecon.markov.approximation:std_norm_cdf", 0.4),
        of("quantecon.markov.utilities:_s_wise_max", ints(0, 1, 0, 1), ints(0, 2, 4), floats(4), np.zeros(2), writes=3),
        of(
            "quantecon.markov.utilities:_s_wise_max_argmax",
            ints(0, 1, 0, 1),
            ints(0, 2, 4),
            floats(4),
            np.zeros(2),
            np.zeros(2, np.int64),
            writes=3,
        ),
        of(
            "quantecon.markov.utilities:_fill_dense_Q",
            ints(0, 0, 1, 1),
            ints(0, 1, 0, 1),
            floats(4, 2),
            np.zeros((2, 2, 2)),
            writes=3,
        ),
        of(
            "quantecon.game_theory.lemke_howson:_initialize_tableaux",
            (np.array([[3.0, 3.1], [2.0, 5.0]]), np.array([[3.2, 2.0], [3.0, 6.0]])),
            (np.zeros((2, 5)), np.zeros((2, 5))),
            (np.zeros(2, np.int64), np.zeros(2, np.int64)),
        ),
        of(
            "quantecon.game_theory.support_enumeration:_indiff_mixed_action",
            floats(3, 3),
            ints(0, 1),
            ints(1, 2),
            np.zeros((3, 3)),
            np.zeros(3, np.bool_),
            np.zeros(3),
            writes=5,
        ),
        of(QUAD + "gammaln", 1.7),
        of(QUAD + "_qnwcheb1", 5, 0.3, 1.7),
        of(QUAD + "_qnwlege1", 5, 0.3, 1.7),
        of(QUAD + "_qnwsimp1", 5, 0.3, 1.7),
        of(QUAD + "_qnwtrap1", 5, 0.3, 1.7),
        of(QUAD + "_qnwbeta1", 5, 1.3, 1.7),
        of(QUAD + "_qnwgamma1", 5, 1.3, 1.7, 3e-14, argnums=(1, 2)),
        of(
            "quantecon.markov._ddp_linprog_simplex:ddp_linprog_simplex",
            floats(4),
            floats(4, 2, low=0.2, high=0.4) / floats(4, 2, low=0.2, high=0.4).sum(1)[:, None],
            0.9,
            ints(0, 1, 0, 1),
            ints(0, 2, 4),
            np.zeros(2, np.int64),
        ),
    ),
)
