"""Quaternions: generalised universal functions and conversions."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

Q, R = floats(4), floats(4, seed=1)

PACKAGE = Package(
    "quaternionic",
    "quaternionic>=1.0",
    (
        of("quaternionic.distance:_divide", Q, R, np.zeros(4), writes=2),
        of("quaternionic.distance:_absolute", Q, np.zeros(1), writes=1),
        of("quaternionic.distance:_log", Q, np.zeros(4), writes=1),
        of(
            "quaternionic.alignment:_construct_S",
            np.zeros((3, 3)),
            floats(5, 3),
            floats(5, 3, seed=1),
            floats(5),
            writes=0,
        ),
    ),
)
