"""Elastic distances between time series: dynamic programming with fastmath."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

X, Y = floats(2, 7), floats(2, 7, seed=1)
U, V = floats(8), floats(8, seed=1)
ALL = np.ones((7, 7), np.bool_)
E = "aeon.distances.elastic."
P = "aeon.distances.pointwise."

PACKAGE = Package(
    "aeon",
    "aeon>=1.4",
    (
        of(E + "_dtw:dtw_distance", U, V, 0.4, None, argnums=(0, 1)),
        of(E + "_dtw:dtw_cost_matrix", X, Y, None, None),
        of(E + "_dtw:_dtw_distance", X, Y, ALL),
        of(E + "_dtw:_dtw_cost_matrix", X, Y, ALL),
        of(E + "_adtw:_adtw_distance", X, Y, ALL, 0.3),
        of(E + "_ddtw:ddtw_distance", U, V, None, None),
        of(E + "_erp:_erp_distance", X, Y, ALL, 0.2, None),
        of(E + "_erp:_erp_distance", X, Y, ALL, 0.0, floats(2), argnums=(0, 1, 4)),
        of(E + "_edr:_edr_distance", X, Y, ALL, 0.3, known="not smooth: counts"),
        of(E + "_msm:_msm_distance", X, Y, ALL, True, 0.4),
        of(E + "_msm:_msm_distance", X, Y, ALL, False, 0.4),
        of(E + "_shape_dtw:shape_dtw_distance", X, Y, None, "identity", 2, None, None, None),
        of(E + "_shape_dtw:_pad_ts_edges", X, 2),
        of(E + "_soft_dtw:_softmin3", 0.3, 0.4, 0.5, 0.7),
        of(E + "_soft_dtw:_soft_dtw_distance", X, Y, ALL, 0.7),
        of(E + "_soft_dtw:soft_dtw_distance", U, V, 0.7, None, None, argnums=(0, 1, 2)),
        of(
            E + "_twe:_twe_distance",
            floats(2, 8),
            floats(2, 8, seed=1),
            np.ones((8, 8), np.bool_),
            0.01,
            0.8,
        ),
        of(E + "_wdtw:_wdtw_distance", X, Y, ALL, 0.2),
        of(E + "_wddtw:wddtw_distance", U, V, None, 0.2, None),
        of("aeon.distances._sbd:_univariate_sbd_distance", U, V, True, known="refused: objmode"),
        of("aeon.distances._shift_scale_invariant:_scale_d", U, V),
        of(P + "_euclidean:euclidean_distance", X, Y),
        of(P + "_squared:squared_distance", U, V),
        of(P + "_manhattan:manhattan_distance", X, Y),
        of(P + "_minkowski:minkowski_distance", U, V, 2.5, None),
        of("aeon.utils.numba.general:z_normalise_series", U),
        of("aeon.utils.numba.general:slope_derivative", U),
        of("aeon.utils.numba.general:first_order_differences", U),
        of("aeon.utils.numba.stats:mean", U),
        of("aeon.utils.numba.stats:std", U),
        of("aeon.utils.numba.stats:median", U),
        of("aeon.utils.numba.stats:quantile75", U),
        of("aeon.utils.numba.stats:slope", U),
    ),
    fastmath=True,
)
