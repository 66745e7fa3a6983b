"""Transits of exoplanets: limb darkening, elliptic integrals, overlaps of discs, Kepler orbits."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

MU = floats(5, low=0.1, high=0.9)
ORBIT = (0.1, 3.2, 8.0, 1.54, 0.2, 0.7)  # transit centre, period, axis, inclination, eccentricity, argument
LD = "pytransit.models.limb_darkening."
NB = "pytransit.models.numba."
RR = "pytransit.models.roadrunner."
ORBITS = "pytransit.orbits.orbits_py:"

PACKAGE = Package(
    "pytransit",
    "pytransit>=2.10",
    (
        of(LD + "quadratic:ld_quadratic", MU, np.array([0.3, 0.2])),
        of(LD + "quadratic:ldd_quadratic", MU, np.array([0.3, 0.2])),
        of(LD + "quadratic_tri:ld_quadratic_tri", MU, np.array([0.3, 0.2])),
        of(LD + "nonlinear:ld_nonlinear", MU, np.array([0.3, 0.2, 0.1, 0.05])),
        of(LD + "power_2:ld_power_2_pm", MU, np.array([0.6, 0.7])),
        of(LD + "square_root:ldi_square_root", np.array([0.3, 0.2])),
        of(NB + "gdmodel:planck", 6e-7, 5500.0, argnums=(1,)),  # the wavelength is smaller than any step
        of(NB + "gdmodel:mu_s", 0.3, 0.2, 0.1, 0.6, 0.8),
        of(NB + "general_nb:loggamma", 2.3),
        of(NB + "general_nb:gamma", 2.3),
        of(NB + "ldtkldm:trilinear_interpolation_unit_cube", floats(2, 2, 2, 3, 2), 0.2, 0.3, 0.4),
        of(NB + "ma_quadratic_nb:ellpicb", 0.3, 0.4),
        of(NB + "ma_quadratic_nb:ellec", 0.4),
        of(NB + "ma_quadratic_nb:ellk", 0.4),
        of(NB + "ma_chromosphere_nb:chromosphere_z_s", 0.95, 0.1),
        of(NB + "ma_uniform_nb:uniform_z_s", 0.95, 0.1, 1.0, argnums=(0, 1)),
        of(NB + "qpower2_nb:qpower2_z_s", 0.95, 0.1, np.array([0.6, 0.7])),
        of(NB + "udmodel:uniform_model_simple", np.array([0.05, 0.12, 0.21]), 0.1, *ORBIT, False),
        of(RR + "common:circle_circle_intersection_area", 1.0, 0.3, 0.9),
        of(RR + "common:calculate_weights_2d", 0.1, np.array([0.3, 0.6, 0.85, 1.0]), 4, argnums=(0,)),
        of(RR + "common:cubic_coefficients", floats(7)),
        of(RR + "ecintersection:create_ellipse", 8, 0.1, 0.2, 0.4),
        of(RR + "ecintersection:rotated_ellipse_x", 0.3, 0.4, 0.2),
        of(ORBITS + "z_from_ta_s", 0.4, *ORBIT[2:]),
        of(ORBITS + "mean_anomaly", 0.3, *ORBIT[:2], *ORBIT[4:]),
        of(ORBITS + "ea_newton_s", 0.3, *ORBIT[:2], *ORBIT[4:]),
        of(ORBITS + "ta_iter_s", 0.3, *ORBIT[:2], *ORBIT[4:], rtol=1e-4),
        of(ORBITS + "duration_eccentric", 3.2, 0.1, *ORBIT[2:], 1.0, argnums=(0, 1, 2, 3, 4, 5)),
        of(ORBITS + "eclipse_phase", 3.2, 1.54, 0.2, 0.7),
        of(ORBITS + "as_from_rhop", 1.4, 3.2),
        of(ORBITS + "i_from_baew", 0.3, 8.0, 0.2, 0.7),
    ),
    fastmath=True,
)
