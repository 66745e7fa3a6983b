"""Gravity and magnetic fields of points, dipoles and prisms: long closed forms with guarded singularities."""

from __future__ import annotations

from tests.corpus.sample import Named, Package, of

POINTS = (0.3, 0.4, 0.5, 1.1, 1.3, -0.9)
PRISM = (0.3, 0.4, 2.5, -1.1, 1.3, -0.9, 1.2, -0.7, 1.4)
INSIDE = (-1.1, 0.4, 2.5, -1.1, 1.3, 0.4, 1.2, -0.7, 1.4)  # above an edge: where logarithms are guarded
G = "choclo.prism._gravity:"
K = "choclo.prism._kernels:"
CORNER = (0.3, 0.4, 0.5, 0.70710678)

PACKAGE = Package(
    "choclo",
    "choclo>=0.3",
    (
        of("choclo.point._forward:gravity_pot", *POINTS, 1e10),
        of("choclo.point._forward:gravity_en", *POINTS, 1e10),
        of("choclo.point._forward:gravity_uu", *POINTS, 1e10),
        of("choclo.dipole._forward:magnetic_field", *POINTS, 1.0, 2.0, 3.0),
        of(G + "gravity_pot", *PRISM, 2670.0),
        of(G + "gravity_e", *PRISM, 2670.0),
        of(G + "gravity_u", *PRISM, 2670.0),
        of(G + "gravity_u", *INSIDE, 2670.0, known="not smooth: guarded logarithms"),
        of(G + "gravity_nn", *PRISM, 2670.0),
        of(G + "gravity_eu", *PRISM, 2670.0),
        of(G + "_evaluate_kernel", *PRISM, Named("choclo.prism._kernels:kernel_u"), argnums=tuple(range(9))),
        of(K + "kernel_pot", *CORNER),
        of(K + "kernel_ee", *CORNER),
        of(K + "kernel_enu", *CORNER),
        of(K + "_safe_atan2", 0.3, -0.4),
        of(K + "_safe_log", 0.3, 0.4, 0.5, 0.70710678),
        of("choclo.prism._magnetic:magnetic_field", *PRISM, 1.0, 2.0, 3.0),
        of("choclo.prism._magnetic:magnetic_eu", *PRISM, 1.0, 2.0, 3.0),
        of("choclo.utils:distance_spherical", 20.0, 30.0, 6371.0, 21.0, 31.0, 6372.0),
    ),
)
