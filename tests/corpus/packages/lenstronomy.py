"""Gravitational lenses: complex deflections of elliptical power laws, the lens equation by Brent's method."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

X, Y = floats(4), floats(4, seed=1)
EPL = (X, Y, 1.2, 1.9, 0.1, -0.2, 0.05, 0.03)
P = "lenstronomy.LensModel.Profiles.epl_numba:"
S = "lenstronomy.LensModel.Solver.epl_shear_solver:"
SHEAR = (1.1, 0.9, 0.05, 0.1, 0.7, 0.03, 0.02)
ANGLES = np.linspace(0.0, 2 * np.pi, 24)

PACKAGE = Package(
    "lenstronomy",
    "lenstronomy>=1.14",
    (
        of("lenstronomy.Util.util:rotate", X, Y, 0.3),
        of(P + "EPL_numba.derivatives", *EPL),
        of(S + "rotmat", 0.4),
        of(S + "ps", -0.4, 1.3),
        of("lenstronomy.LensModel.QuadOptimizer.param_manager:ellipticity2phi_q", 0.1, 0.2),
        of(S + "_one_dim_lens_eq_calcs", SHEAR, floats(3)),
        of(S + "_alpha_epl_shear", X, Y, 1.1, 0.7, 0.9, 0.03, 0.02),
        of(P + "omega", X, 0.9, 0.7),
        of(P + "EPL_numba.hessian", *EPL),
        of(S + "cart_to_pol", 0.4, -0.3),
        of(S + "_getphi", ANGLES, SHEAR, argnums=(1,)),
        of(P + "EPL_numba.function", *EPL),
    ),
    fastmath=True,
)
