"""Household models: utility, interpolation with optional arguments, distributions on grids."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

GRID = np.array([0.1, 0.5, 1.1, 1.9, 3.0])
VALUES = np.array([0.2, 0.8, 1.2, 1.6, 1.9])
SLOPES = np.array([1.4, 0.9, 0.6, 0.45, 0.2])
X0 = np.array([0.2, 0.7, 1.5, 2.7, 3.9])
T = "HARK.numba_tools:"

PACKAGE = Package(
    "HARK",
    "econ-ark>=0.16",
    (
        of(T + "linear_interp_fast", X0, GRID, VALUES, None, None, False),
        of(T + "linear_interp_fast", X0, GRID, VALUES, 0.3, 0.1, False),
        of(T + "linear_interp_deriv_fast", X0, GRID, VALUES, None, None, True),
        of(T + "linear_interp_deriv_fast", X0, GRID, VALUES, 0.3, 0.1, True),
        of(T + "cubic_interp_fast", X0, GRID, VALUES, SLOPES, None, None, False),
        of(T + "cubic_interp_fast", X0, GRID, VALUES, SLOPES, 0.3, 0.1, True),
        of(T + "_decay_extrap_coeffs", GRID, VALUES, 0.3, 0.1),
        of(T + "CRRAutility_inv", -0.7, 2.2),
        of(T + "CRRAutilityP_inv", 0.7, 2.2),
        of(T + "CRRAutility_invP", -0.7, 2.2),
        of(T + "CRRAutilityP_invP", 0.7, 2.2),
        of(T + "CRRAutility", 0.7, 2.2),
        of("HARK.dcegm:calc_linear_crossing", np.array([0.2, 0.9]), np.array([0.3, 0.1]), np.array([0.8, 1.1])),
        of("HARK.utilities:jump_to_grid_1D", X0, floats(5), GRID),
        of("HARK.utilities:jump_to_grid_2D", X0, X0[::-1].copy(), floats(5), GRID, GRID),
        of(
            "HARK.simulator:calc_overall_trans_probs",
            np.zeros((3, 5)),
            np.array([0, 1, 1]),
            floats(3, 2, 2),
            np.array([[0, 0], [0, 1], [1, 0], [1, 1]]),
            np.array([0, 1, 2, 3]),
            floats(3),
            np.array([0, 1, 2]),
        ),
        of("HARK.simulator:aggregate_blobs_onto_custom_grid", X0, floats(5), np.array([0, 1, 1, 0, 1]), GRID, 2),
        of(
            "HARK.utilities:gen_tran_matrix_1D",
            GRID,
            VALUES,
            floats(3),
            floats(3, seed=1),
            floats(3, seed=2),
            0.98,
            floats(5, seed=3),
        ),
        of(
            "HARK.simulator:aggregate_blobs_onto_discrete_grid",
            np.array([0, 1, 2]),
            floats(3),
            np.array([0, 1, 1]),
            3,
            2,
        ),
        of(
            "HARK.SSJutils:make_fake_news_matrices",
            4,
            3,
            floats(4, 3),
            floats(4, 5, low=0.1, high=0.3),
            floats(5, 5, low=0.1, high=0.3),
            floats(3, 5),
        ),
    ),
)
