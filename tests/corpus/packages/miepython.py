"""Mie scattering by a sphere: downward recurrences and continued fractions with complex numbers."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

M = "miepython.mie_jit:"
INDEX = 1.5 - 0.1j

PACKAGE = Package(
    "miepython",
    "miepython>=3.3",
    (
        of(M + "_Lentz_Dn", 3.0 - 0.4j, 9),
        of(M + "_D_downwards", 3.0 - 0.4j, 9, np.zeros(9, np.complex128), writes=2),
        of(M + "_small_sphere_nb", INDEX, 0.06),
        of(M + "_D_calc_nb", INDEX, 2.2, 9),
        of(M + "_cn_dn_nb", 1.4 - 0.05j, 2.1, 0),
        of(M + "_single_sphere_nb", INDEX, 3.3, 0, False),
        of(M + "_single_sphere_nb", INDEX, 3.3, 2, True),
        of(M + "_S1_S2_nb", INDEX, 2.2, floats(3, low=-0.9, high=0.9), 0),
        of(M + "_small_conducting_sphere_nb", 0.0 - 1.0j, 0.07),
        of(M + "_an_bn_nb", INDEX, 3.1, 0),
        of(M + "_pi_tau_nb", 0.4, np.zeros(5), np.zeros(5), writes=(1, 2)),
        of(M + "_psi_downwards_nb", 2.2 + 0.3j, 9),
    ),
)
