"""Density of sea water: universal functions."""

from __future__ import annotations

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

STATE = (floats(4, low=30.0, high=36.0), floats(4, low=2.0, high=20.0), floats(4, low=10.0, high=900.0))

PACKAGE = Package(
    "fastjmd95",
    "fastjmd95>=0.2",
    (
        of("fastjmd95.jmd95numba:rho", *STATE),
        of("fastjmd95.jmd95numba:rho", 35.1, 12.3, 400.0),
        of("fastjmd95.jmd95numba:drhodt", *STATE),
        of("fastjmd95.jmd95numba:drhods", *STATE),
        of("fastjmd95.jmd95numba:_bulkmodjmd95", *STATE),
    ),
)
