"""Splines and multilinear interpolation, on code that is generated for each dimension."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, ints, of
from tests.tools.catalogue import floats

A, B = np.zeros(3), np.ones(3)
GRID = (0.0, 1.0, 6)
C = "interpolation.splines.eval_cubic_numba:"
F = "interpolation.splines.prefilter_cubic:"
H = "interpolation.splines.hermite:"

PACKAGE = Package(
    "interpolation",
    "interpolation>=2.2.7",
    (
        of(C + "eval_cubic_spline_1", A[:1], B[:1], ints(6), floats(8), np.array([0.37])),
        of(C + "eval_cubic_spline_2", A[:2], B[:2], ints(6, 5), floats(8, 7), np.array([0.37, 0.71])),
        of(
            C + "vec_eval_cubic_spline_1",
            A[:1],
            B[:1],
            ints(6),
            floats(8),
            floats(4, 1, low=0.1, high=0.9),
            np.zeros(4),
            writes=5,
        ),
        of(
            C + "vec_eval_cubic_spline_2",
            A[:2],
            B[:2],
            ints(6, 5),
            floats(8, 7),
            floats(4, 2, low=0.1, high=0.9),
            np.zeros(4),
            writes=5,
        ),
        of(
            C + "vec_eval_cubic_splines_G_2",
            A[:2],
            B[:2],
            ints(6, 5),
            floats(8, 7, 2),
            floats(3, 2, low=0.1, high=0.9),
            np.zeros((3, 2)),
            np.zeros((3, 2, 2)),
            writes=(5, 6),
        ),
        of(F + "filter_cubic", (GRID,), floats(6)),
        of(F + "prefilter", (GRID, GRID), floats(6, 6), None, 3),
        of(F + "solve_deriv_interp_1d", floats(8, 4), np.zeros(8), writes=1),
        of("interpolation.splines.eval_splines:eval_linear", (GRID,), floats(6), floats(4, 1, low=0.1, high=0.9)),
        of(
            "interpolation.splines.eval_splines:eval_cubic", (GRID, GRID), floats(8, 8), floats(4, 2, low=0.1, high=0.9)
        ),
        of(
            "interpolation.splines.eval_splines:eval_spline",
            (GRID,),
            floats(8),
            np.array([0.41]),
            None,
            3,
            "None",
            "linear",
        ),
        of(
            "interpolation.multilinear.mlinterp:interp",
            np.linspace(0, 1, 6),
            floats(6),
            floats(4, low=0.1, high=0.9),
            argnums=(1, 2),
        ),
        of(H + "hermite_splines", 0.3),
        of(H + "hermite_interp", 0.3, 0.1, 0.6, 1.1, 1.2, 0.3, 0.4),
        of(
            H + "HermiteInterpolationVect",
            floats(4, low=0.1, high=0.9),
            np.linspace(0, 1, 6),
            floats(6),
            floats(6, seed=1),
        ),
        of("interpolation.complete_poly:_complete_poly_impl", floats(2, 3), 2, np.zeros((6, 3)), writes=2),
        of("interpolation.complete_poly:_complete_poly_der_impl_vec", floats(2), 3, 0, np.zeros(10), writes=3),
    ),
)
