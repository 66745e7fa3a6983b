"""Indicators of technical analysis: moving windows and averages, of series that begin with missing values."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

CLOSE = 20.0 + np.cumsum(floats(40, low=-1.0, high=1.0))
HIGH, LOW = CLOSE + floats(40, low=0.2, high=0.9), CLOSE - floats(40, low=0.2, high=0.9, seed=1)
VOLUME = floats(40, low=100.0, high=200.0)
BARS = (HIGH, LOW, CLOSE)

PACKAGE = Package(
    "ta_numba",
    "ta-numba>=0.4",
    (
        of("ta_numba.streaming.base:_streaming_rsi_update", 0.4, 0.3, 0.2, 0.1),
        of("ta_numba.volume:ease_of_movement_numba", HIGH, LOW, VOLUME, 14, has_nan=True),
        of("ta_numba.trend:dpo_numba", CLOSE, 8, has_nan=True),
        of("ta_numba.others:rolling_percentile_numba", CLOSE, 12, has_nan=True),
        of("ta_numba.momentum:ultimate_oscillator_numba", *BARS, 3, 5, 9, has_nan=True),
        of("ta_numba.volume:volume_price_trend_numba", CLOSE, VOLUME, has_nan=True),
        of("ta_numba.helpers:_ema", CLOSE, 6, True, has_nan=True),
        of(
            "ta_numba.volume:volume_weighted_exponential_moving_average_numba",
            *(*BARS, VOLUME, 5, 7),
            has_nan=True,
        ),
        of("ta_numba.trend:parabolic_sar_numba", *BARS, 0.02, 0.02, 0.2),
        of("ta_numba.volume:negative_volume_index_numba", CLOSE, VOLUME),
        of("ta_numba.helpers:_sma_numba", CLOSE, 6, 3, has_nan=True),
        of("ta_numba.trend:schaff_trend_cycle_numba", CLOSE, 4, 8, 5, 3, has_nan=True),
        of("ta_numba.others:linear_regression_slope_numba", CLOSE, 6, has_nan=True),
        of("ta_numba.helpers:_wilders_ema_numba_adjusted", CLOSE, 6, has_nan=True),
        of("ta_numba.trend:adx_numba", *BARS, 5, has_nan=True),
    ),
    fastmath=True,
)
