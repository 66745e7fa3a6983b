"""Conformal geometric algebra: multivectors with 32 coefficients, sparse products, rotors, series."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats


def multivector(**coefficients: float) -> np.ndarray:
    """These coefficients, named ``_17`` and so on, and small ones elsewhere: products skip those that are zero."""
    values = 0.01 * floats(32, seed=len(coefficients))
    for name, value in coefficients.items():
        values[int(name[1:])] += value
    return values


LINE = multivector(
    _17=-0.265495, _18=-0.265495, _19=0.249878, _20=0.249878, _21=0.624695,
    _22=0.078087, _23=0.078087, _24=-0.468521, _25=0.624695,
)  # fmt: skip
OTHER_LINE = multivector(
    _17=0.117108, _18=0.117108, _19=0.322047, _20=0.322047, _21=-0.39036,
    _22=-0.497709, _23=-0.497709, _24=0.78072, _25=0.48795,
)  # fmt: skip
PLANE = multivector(_26=-0.27058, _27=-0.27058, _28=-0.175275, _29=-0.810646, _30=0.558688)
ROTOR = multivector(
    _0=0.589568, _6=-0.258511, _7=-0.465321, _8=-0.003347, _9=-0.003347, _10=0.607502,
    _11=0.418068, _12=0.418068, _13=0.317221, _14=0.317221, _26=0.187421, _27=0.187421,
)  # fmt: skip
POINT = multivector(_1=0.3, _2=0.2, _3=-0.1)
G = "clifford.tools.g3c:"

PACKAGE = Package(
    "clifford",
    "clifford>=1.5",
    (
        of(G + "val_rotor_between_objects_explicit", LINE, OTHER_LINE),
        of(G + "val_intersect_line_and_plane_to_point", LINE, PLANE),
        of("clifford.tools.g3c.rotor_parameterisation:val_vec_repr_to_bivector", floats(6)),
        of(G + "val_up", POINT),
        of("clifford.tools.g3c.rotor_estimation:val_project_bv", floats(32), floats(32, seed=1)),
        of(
            "clifford.tools.g3c.cost_functions:val_object_cost_function",
            *(LINE, OTHER_LINE),
            known="refused: a recursion that returns a multivector",
        ),
        of("clifford.taylor_expansions:cos", 0.7),
        of(G + "val_rotor_between_lines", LINE, OTHER_LINE),
        of(G + "val_apply_rotor", LINE, ROTOR),
        of(G + "val_midpoint_of_line_cluster", np.stack([LINE, OTHER_LINE])),
        of(G + "val_normalInv", ROTOR),
    ),
)
