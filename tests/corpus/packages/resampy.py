"""Resampling of audio by windowed sinc interpolation."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

ARGUMENTS = (floats(9), np.linspace(0.3, 7.4, 6), floats(33), floats(33, seed=1), 8, 0.8, np.zeros(6))

PACKAGE = Package(
    "resampy",
    "resampy>=0.4.3",
    (
        of("resampy.interpn:_resample_loop_s", *ARGUMENTS, writes=6),
        of("resampy.interpn:_resample_loop_p", *ARGUMENTS, writes=6),
    ),
)
