"""Financial derivatives: simulated paths, trees, volatility surfaces, credit baskets."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

SURVIVAL, RECOVERY = floats(5, low=0.85, high=0.95), floats(5, low=0.3, high=0.5)
TIMES = np.linspace(0.0, 3.0, 7)
DISCOUNTS = np.exp(-0.03 * TIMES - 0.002 * TIMES**2)
BOND = (1.0, 2.0, 1.0, 1.0, np.array([1.5, 2.0]), np.array([0.02, 0.02]), 1, TIMES, DISCOUNTS, TIMES)
TREE = (floats(3, low=0.1, high=0.3), floats(3, low=0.4, high=0.6), floats(3, low=0.1, high=0.3), floats(7, 3) * 0.02)
M = "financepy.models."

PACKAGE = Package(
    "financepy",
    "financepy>=1.1",
    (
        of("financepy.utils:dotproduct", floats(4), floats(4, seed=1)),
        of(M + "vasicek_mc:variancer", 0.5, 0.02, 2.0),
        of(
            "financepy.products.fx.fx_double_one_touch_option:_barrier_pay_at_expiry_double_hit", floats(4, 6), 0.6, 1.9
        ),
        of(M + "black_scholes_mc_tests:value_mc4", 100.0, 1.0, 105.0, 0.05, 0.02, 0.2, 20, 1234),
        of(
            "financepy.market.volatility.fx_vol_surface_plus:_interpolate_gap", 1.3, np.linspace(0.5, 2.0, 5), floats(5)
        ),
        of(M + "gauss_copula_lhp:tr_surv_prob_lhp", 0.03, 0.07, 5, SURVIVAL, RECOVERY, 0.4),
        of(M + "process_simulator:get_gbm_paths", 3, 4, 1.0, 0.05, 100.0, 0.2, 1, 42),
        of(M + "black_scholes_analytic:bjerksund_stensland_value2", 100.0, 1.0, 105.0, 0.05, 0.03, 0.2, 3),
        of(M + "cir_montecarlo:rate_path_mc", 0.04, 0.5, 0.05, 0.1, 1.0, 0.25, 42, 2, argnums=(0, 1, 2, 3)),
        of(M + "bk_tree:bermudan_swaption_tree_fast", *BOND, *TREE, 0.5, 0.5, argnums=(2, 5, 8, 10, 11, 12, 13)),
        of(
            "financepy.market.curves.interpolator:_linear_onf_dfs",
            *(np.array([0.7, 1.9]), TIMES, floats(7) * 0.02, np.cumsum(floats(7)) * 0.01),
        ),
        of(M + "fx_barrier_model:_norm_cdf", 0.4),
        of("financepy.utils:maxaxis", floats(3, 4)),
    ),
    fastmath=True,
)
