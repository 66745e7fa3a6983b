"""Resampling of audio by windowed sinc interpolation."""

from __future__ import annotations

import numpy as np

from irad.testing.catalogue import floats
from tests.corpus.sample import Package, of

ARGUMENTS = (floats(9), np.linspace(0.3, 7.4, 6), floats(33), floats(33, seed=1), 8, 0.8, np.zeros(6))

PACKAGE = Package(
    "resampy",
    "resampy>=0.4.3",
    (
        of("resampy.interpn:_resample_loop_s", *ARGUMENTS, writes=6),
        of("resampy.interpn:_resample_loop_p", *ARGUMENTS, writes=6),
    ),
)
