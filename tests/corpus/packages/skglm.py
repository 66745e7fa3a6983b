"""Sparse linear models: proximal operators, coordinate descent with penalties and losses that are class instances."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Made, Package, ints, of
from tests.tools.catalogue import floats


def compiled(path: str, *arguments: float) -> Made:
    """An instance of the jitclass that the package makes from one of its classes."""
    return Made("skglm.utils.jit_compilation:compiled_clone", (Made(path, arguments),))


X, Y, W = floats(6, 4, order="F"), floats(6, low=-1.0, high=1.0, seed=1), floats(4, seed=2)
XW = X @ W
LIPSCHITZ = floats(4, low=2.0, high=3.0, seed=4)
HUBER, LOGISTIC = compiled("skglm.datafits:Huber", 0.3), compiled("skglm.datafits:Logistic")
L1, MCP = compiled("skglm.penalties:L1", 0.05), compiled("skglm.penalties:MCPenalty", 0.05, 3.0)
GRAM = 0.2 * X.T @ X + 5.0 * np.eye(4)
SPARSE = (floats(7, seed=3), np.array([0, 2, 4, 5, 7], np.int32), np.array([0, 3, 1, 5, 2, 0, 4], np.int32))
S = "skglm.solvers."

PACKAGE = Package(
    "skglm",
    "skglm>=0.5",
    (
        of("skglm.datafits.single_task:sigmoid", floats(4)),
        of("skglm.covariance:ST", 1.3, 0.4),
        of(
            "skglm.covariance:barebones_cd_gram",
            GRAM,
            -floats(4, low=3.0, high=4.0),
            W,
            0.05,
            floats(4, seed=3),
            12,
            0.0,
            argnums=(0, 1, 2, 3, 4),
        ),
        of(S + "group_prox_newton:_X_g_T_dot_vec", X, Y, ints(2, 0)),
        of(S + "anderson_cd:construct_grad_sparse", *SPARSE, Y, W, XW, LOGISTIC, ints(0, 2, 3)),
        of("skglm.penalties.separable:value_weighted_MCP", W, 0.3, 3.0, floats(4)),
        of("skglm.experimental.quantile_regression:ST_vec", Y, 0.1),
        of("skglm.penalties.block_separable:prox_SCAD", 1.3, 1.0, 0.4, 3.0),
        of("skglm.datafits.single_task:_sparse_xj_dot", *SPARSE, 1, Y),
        of(
            S + "prox_newton:_descent_direction",
            *(X, Y, W, XW, False, floats(4, low=-0.1, high=0.1), LOGISTIC, L1, ints(0, 1, 2, 3), 1e-9, "subdiff"),
            argnums=(0, 1, 2, 3, 5),
        ),
        of(S + "fista:_prox_vec", W, floats(4, seed=5), MCP, 0.7),
        of(S + "anderson_cd:_cd_epoch", X, Y, W, XW, LIPSCHITZ, HUBER, MCP, ints(0, 1, 3), writes=(2, 3)),
        of("skglm.experimental.sqrt_lasso:proj_L2ball", floats(5)),
        of(
            S + "prox_newton:_backtrack_line_search",
            *(X, Y, W, XW, False, LOGISTIC, L1, -0.1 * floats(4), -0.1 * X @ floats(4), ints(0, 1, 2, 3)),
        ),
        of("skglm.penalties.non_separable:prox_SLOPE", floats(5), floats(5, low=0.1, high=0.3)),
        of("skglm.penalties.separable:prox_2_3", 2.3, 0.4),
    ),
)
