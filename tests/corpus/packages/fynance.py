"""Financial time series: rolling statistics, indicators, GARCH models, filters, portfolios."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, ints, of
from tests.tools.catalogue import floats

X = floats(14)
LOW, HIGH, CLOSE = floats(14) - 0.8, floats(14) + 0.9, floats(14, seed=1)
RETURNS = floats(14, low=-0.1, high=0.1)
W = floats(6, 3) / floats(6, 3).sum(1)[:, None]
R = floats(6, 3, low=-0.05, high=0.05)
FEATURES = "fynance.features."
MODELS = "fynance.models.econometric_models:"
REBALANCE = "fynance.portfolio.rebalance:"

PACKAGE = Package(
    "fynance",
    "fynance>=2.13",
    (
        of(FEATURES + "_metrics_helpers:_drawdown_1d", X, False),
        of(FEATURES + "_metrics_helpers:_roll_drawdown_1d", X, 4, False),
        of(FEATURES + "_metrics_helpers:_roll_mdd_1d", X, 4, False),
        of(FEATURES + "_metrics_helpers:_roll_annual_return_1d", X, 252, 4, 0),
        of(FEATURES + "_metrics_helpers:_roll_annual_volatility_1d", X, 252, False, 4, 0),
        of(FEATURES + "_metrics_helpers:_roll_mad_1d", X, 4),
        of(FEATURES + "engineering:_fracdiff_kernel", X, floats(4), has_nan=True),
        of(
            FEATURES + "filters:_kalman_filter_core",
            floats(5, 2),
            floats(2, 2, low=0.1, high=0.5),
            np.eye(2) + 0.1,
            np.eye(2) * 0.3,
            np.eye(2) * 0.2,
            floats(2),
            np.eye(2),
        ),
        of(
            FEATURES + "filters:_rts_smoother_core",
            floats(4, 2),
            floats(4, 2, 2),
            floats(4, 2, seed=1),
            floats(4, 2, 2, seed=1),
            floats(2, 2),
        ),
        of(FEATURES + "momentums:_sma_1d", X, 4),
        of(FEATURES + "momentums:_sma_2d", floats(9, 2), 4),
        of(FEATURES + "momentums:_wma_1d", X, 4),
        of(FEATURES + "momentums:_ema_1d", X, 0.3),
        of(FEATURES + "momentums:_smstd_1d", X, 4, 0, known="not smooth: the first deviation is 0"),
        of(FEATURES + "momentums:_wmstd_1d", X, 4, known="not smooth: the first deviation is 0"),
        of(FEATURES + "momentums:_emstd_1d", X, 0.3, known="not smooth: the first deviation is 0"),
        of(FEATURES + "ohlcv:_atr_kernel", HIGH, LOW, CLOSE, 4),
        of(FEATURES + "ohlcv:_adx_kernel", HIGH, LOW, CLOSE, 3),
        of(FEATURES + "ohlcv:_williams_kernel", HIGH, LOW, CLOSE, 4),
        of(FEATURES + "ohlcv:_obv_kernel", CLOSE, X),
        of(FEATURES + "ohlcv:_vwap_kernel", CLOSE, X, 4),
        of(FEATURES + "roll_functions:_roll_min_1d", X, 4),
        of(FEATURES + "roll_functions:_roll_max_2d", floats(9, 2), 4),
        of(FEATURES + "roll_functions:_roll_cov_1d", X, CLOSE, 4, has_nan=True),
        of(FEATURES + "roll_functions:_roll_corr_1d", X, CLOSE, 4, has_nan=True),
        of(FEATURES + "roll_functions:_roll_beta_1d", X, CLOSE, 4, has_nan=True),
        of(FEATURES + "roll_functions:_cross_corr_1d", X, CLOSE, 3),
        of("fynance.metrics.risk:_roll_window_moments_1d", RETURNS, 5, has_nan=True),
        of("fynance.metrics.risk:_roll_hist_quantile_1d", RETURNS, 5, 0.1, argnums=(0,), has_nan=True),
        of("fynance.metrics.risk:_roll_hist_tail_mean_1d", RETURNS, 5, 0.3, argnums=(0,), has_nan=True),
        of(MODELS + "_ma", X, floats(2), 0.1, 2),
        of(MODELS + "_arma", X, floats(2), floats(2, seed=1), 0.1, 2, 2),
        of(
            MODELS + "_arma_garch",
            RETURNS,
            floats(2),
            floats(2, seed=1),
            floats(1),
            floats(1, seed=1) / 3,
            0.1,
            0.2,
            2,
            2,
            1,
            1,
        ),
        of(
            MODELS + "_armax_garch",
            RETURNS,
            floats(14, 2),
            floats(2),
            floats(2, seed=2),
            floats(2, seed=1),
            floats(1),
            floats(1, seed=1) / 3,
            0.1,
            0.2,
            2,
            2,
            1,
            1,
        ),
        of(MODELS + "_gjr_garch", RETURNS, 0.01, 0.1, 0.1, 0.7),
        of(MODELS + "_egarch", RETURNS, 0.01, 0.1, 0.1, 0.7, 0.8),
        of(MODELS + "_loglik_normal", RETURNS, X),
        of(MODELS + "_loglik_t", RETURNS, X, 5.5),
        of("fynance.portfolio.covariance:_ewma_cov_kernel", R, 0.9),
        of(REBALANCE + "_drift_step", W[0].copy(), R[0].copy()),
        of(REBALANCE + "_calendar_kernel", W, R, 2),
        of(REBALANCE + "_band_kernel", W, R, 0.02, True),
        of(REBALANCE + "_turnover_cap_kernel", W, R, 0.1),
        of("fynance.research.bootstrap:_circular_kernel", RETURNS, ints(3, 9, 1).reshape(1, 3), 5, 14),
    ),
)
