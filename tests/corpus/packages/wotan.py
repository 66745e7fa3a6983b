"""Detrending of light curves: robust locations in a sliding window, in parallel, with fastmath."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

TIME = np.sort(floats(30, low=0.0, high=6.0))
FLUX = floats(30, low=0.9, high=1.1, seed=1)
FEW = FLUX[:9].copy()
MASK = np.ones(30)
L = "wotan.location_estimates:"

PACKAGE = Package(
    "wotan",
    "wotan>=2.0",
    (
        of(L + "trim_mean", FEW, 0.2, argnums=(0,)),
        of("wotan.flatten:running_segment", TIME, FLUX, MASK, 2.0, 0.2, 5.0, 1, has_nan=True, argnums=(1,)),
        of(L + "location_iter_core", FEW, 1.0, 0.03, 5.0, 1, argnums=(0, 1)),
        of(L + "_irls_step", FEW, 1.0, 20.0, 2),
        of("wotan.slider:_insert", np.sort(floats(8)), 5, 0.9, writes=0),
        of(L + "hampelfilt", FEW, 2.0, argnums=(0,)),
        of("wotan.slider:_location", FEW, 1.5, 10),
        of("wotan.slider:_location", FEW, 4.5, 11),
        of(L + "location_iter", FEW, 5.0, 3),
        of("wotan.lowess:_local_linear_fit", TIME, FLUX, MASK, 4, 12, 1.5, 2.0),
        of("wotan.flatten:lowess", TIME, FLUX, MASK, 2.5, argnums=(1,)),
        of("wotan.cofiam:matrix_gen", TIME, 3),
        of("wotan.cofiam:matrix_gen_recurrence", TIME, 3),
    ),
    fastmath=True,
)
