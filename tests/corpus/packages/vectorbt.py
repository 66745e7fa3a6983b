"""Backtesting: rolling and expanding statistics with missing values, indicators, measures of returns."""

from __future__ import annotations

import numpy as np
from numba import njit

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

X = floats(12)
GAPS = np.where(np.arange(12) % 5 == 3, np.nan, X)
TABLE = floats(10, 2)
RETURNS = floats(12, low=-0.05, high=0.06)
MARKET = floats(12, low=-0.05, high=0.06, seed=1)
N = "vectorbt.generic.nb:"
R = "vectorbt.returns.nb:"
INDICATORS = "vectorbt.indicators.nb:"


@njit
def spread(col, a, scale):
    return scale * np.std(a) / np.mean(a)


@njit
def scaled(i, col, a, scale):
    return scale * a**2


@njit
def spread_of_window(i, col, a, scale):
    return scale * np.std(a)


PACKAGE = Package(
    "vectorbt",
    "vectorbt>=1.0",
    (
        of(N + "fillna_1d_nb", GAPS, 0.5, argnums=(1,)),
        of(N + "fshift_1d_nb", X, 2, 0.5),
        of(N + "diff_1d_nb", X, 1, has_nan=True),
        of(N + "nanprod_nb", TABLE),
        of(N + "nancumsum_nb", TABLE),
        of(N + "nancumprod_nb", TABLE),
        of(N + "nanmin_nb", TABLE),
        of(N + "nanmedian_nb", TABLE),
        of(N + "nanstd_1d_nb", X, 1),
        of(N + "rolling_min_1d_nb", X, 4, 1),
        of(N + "rolling_mean_nb", TABLE, 4, 1),
        of(N + "rolling_std_1d_nb", X, 4, 2, 0, has_nan=True),
        of(N + "ewm_mean_1d_nb", X, 4, 0, True),
        of(N + "ewm_std_1d_nb", X, 4, 0, True, 0, known="not smooth: the first deviation is 0"),
        of(N + "expanding_max_1d_nb", X, 1),
        of(N + "expanding_mean_nb", TABLE, 1),
        of(N + "_add_var_nb", 0.3, 4.0, 0.4, 0.5, 0.01, False),
        of(N + "applymap_nb", TABLE, scaled, 0.7, argnums=(0, 2)),
        of(
            N + "rolling_apply_nb",
            TABLE,
            3,
            1,
            spread_of_window,
            0.7,
            argnums=(0, 4),
            known="not smooth: the first deviation is 0",
        ),
        of(N + "reduce_nb", TABLE, spread, 0.7, argnums=(0, 2)),
        of(N + "flatten_forder_nb", TABLE),
        of(N + "describe_reduce_nb", 0, X, np.array([0.25, 0.5]), 1, argnums=(1,)),
        of(N + "dd_drawdown_nb", X, X[::-1].copy()),
        of(N + "get_drawdowns_nb", TABLE),
        of(INDICATORS + "ma_nb", TABLE, 3, True, False, has_nan=True),
        of(INDICATORS + "true_range_nb", TABLE + 0.7, TABLE - 0.4, floats(10, 2, seed=1)),
        of(INDICATORS + "obv_custom_nb", TABLE, floats(10, 2, seed=1)),
        of(
            INDICATORS + "bb_cache_nb",
            TABLE,
            (3, 4),
            (True, False),
            (1.5, 2.0),
            True,
            0,
            argnums=(0,),
            known="refused: typed dictionary",
        ),
        of(R + "get_return_nb", 1.2, 1.3),
        of(R + "returns_nb", TABLE, floats(2)),
        of(R + "cum_returns_1d_nb", RETURNS, 1.0),
        of(R + "cum_returns_final_1d_nb", RETURNS, 1.0),
        of(R + "annualized_return_1d_nb", RETURNS, 252.0),
        of(R + "annualized_volatility_1d_nb", RETURNS, 252.0, 2.0, 1),
        of(R + "max_drawdown_1d_nb", RETURNS),
        of(R + "calmar_ratio_1d_nb", RETURNS, 252.0),
        of(R + "ulcer_index_1d_nb", RETURNS),
        of(R + "omega_ratio_1d_nb", RETURNS, 252.0, 0.0001, 0.02, argnums=(0, 2)),
        of(R + "sharpe_ratio_1d_nb", RETURNS, 252.0, 0.001, 1),
        of(R + "sortino_ratio_1d_nb", RETURNS, 252.0, 0.001),
        of(R + "information_ratio_1d_nb", RETURNS, MARKET, 1),
        of(R + "beta_1d_nb", RETURNS, MARKET),
        of(R + "alpha_1d_nb", RETURNS, MARKET, 252.0, 0.001),
        of(R + "tail_ratio_1d_nb", RETURNS),
        of(R + "cond_value_at_risk_1d_nb", RETURNS, 0.3, argnums=(0,)),
        of(
            R + "up_capture_nb", floats(12, 2, low=-0.05, high=0.06), floats(12, 2, low=-0.05, high=0.06, seed=1), 252.0
        ),
        of("vectorbt.base.reshape_fns:flex_select_auto_nb", TABLE, 2, 1, True),
        of("vectorbt.labels.nb:future_mean_apply_nb", TABLE, 3, False, 1, False, has_nan=True),
    ),
)
