"""Extinction laws of interstellar dust: piecewise polynomials and splines."""

from __future__ import annotations

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

WAVE = floats(7, low=1300.0, high=9000.0)
M = "numba_extinction.models."

PACKAGE = Package(
    "numba_extinction",
    "numba-extinction>=0.1",
    (
        of(M + "calzetti_00:compute_extinction", WAVE, 1.0, 3.1),
        of(M + "ccm_89:compute_exctinction", WAVE, 1.0, 3.1),
        of(M + "fitzpatrick_99:F_Fi99", 6.3, 5.9, argnums=(0,)),
        of(M + "fitzpatrick_99:k_Fi99", 6.3, 3.1, floats(7)),
        of(M + "fitzpatrick_99:Fi99_y_knots", 3.1, floats(7)),
        of(M + "gordon_23:compute_exctinction", WAVE * 1e-4, 1.0, 3.1),
        of(M + "gordon_23:Go23_inum", 2.3, 4.3),
        of(M + "odonnell_94:compute_exctinction", WAVE, 1.0, 3.1),
        of(M + "vcg_04:compute_exctinction", WAVE, 1.0, 3.1),
        of("numba_extinction.numba_extinction:redden", floats(5), floats(5, seed=1), False),
        of("numba_extinction.utils.cubic_spline:sparse_solver", floats(6), floats(6) + 3, floats(6), floats(6)),
        of("numba_extinction.utils.helpers:mod_D", 10.1, 9.9, 2.5, -0.2),
    ),
)
