"""Wigner matrices and modes on the sphere: recursions with complex numbers, made of jitclasses inside."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats


def complex_floats(*shape: int, seed: int = 0) -> np.ndarray:
    """With real and imaginary parts away from zero."""
    return floats(*shape, seed=seed) + 1j * floats(*shape, seed=seed + 50)


MODES = complex_floats(9)
ROTOR = floats(4) / np.linalg.norm(floats(4))
Z = np.exp(0.7j)

PACKAGE = Package(
    "spherical",
    "spherical>=1.1",
    (
        of(
            "spherical.modes.algebra:_multiplication_helper",
            *(complex_floats(1, 9), 0, 2, 0, complex_floats(1, 4, seed=1), 0, 1, 0),
            *(np.zeros((1, 16), complex), 0, 3, 0),
        ),
        of("spherical:ethbar_NP", MODES, -1, 0),
        of("spherical:vector_as_ell_1_modes", floats(3)),
        of("spherical:eth_NP", MODES, 1, 0),
        of(
            "spherical.wigner:_rotate",
            *(complex_floats(2, 9), np.zeros((2, 9), complex), 0, 2, 2, 0, 2, 0, complex_floats(35, seed=3)),
            writes=1,
        ),
        of(
            "spherical.wigner:_rotate_Horner",
            *(complex_floats(2, 9), np.zeros((2, 9), complex), 0, 2, 2, 0, 2, 0, floats(14), Z, Z**0.5),
            writes=1,
        ),
        of("spherical.recursions:quaternion_angles", ROTOR),
        of("spherical.wigner:_fill_wigner_d", 0, 2, 2, np.zeros(35), floats(14), writes=3),
        of(
            "spherical.wigner:_fill_wigner_D",
            *(0, 2, 2, np.zeros(35, complex), floats(14), complex_floats(3), complex_floats(3, seed=1)),
            writes=3,
        ),
        of("spherical:constant_as_ell_0_mode", 0.7 + 0.2j),
        of("spherical:vector_from_ell_1_modes", complex_floats(3)),
        of("spherical:eth_GHP", MODES, 1, 0),
        of(
            "spherical.recursions.complex_powers:_complex_powers",
            np.array([Z, Z**2]),
            3,
            np.zeros((2, 4), complex),
            writes=2,
        ),
    ),
)
