"""Time series: dynamic time warping and its soft forms, global alignment kernels, Fréchet distances."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

S, T = floats(6, 2), floats(5, 2, seed=1)
ALL = np.ones((6, 5), np.bool_)
M = "tslearn.metrics."

PACKAGE = Package(
    "tslearn",
    "tslearn>=0.10",
    (
        of(M + "soft_dtw_fast:_njit_soft_dtw_grad", floats(5, 6), floats(6, 7), np.zeros((6, 7)), 0.8, writes=2),
        of("tslearn.barycenters.dba:_njit_dtw_path", S, T),
        of(
            "tslearn.barycenters.softdtw:_njit_softdtw_func_from_distance_matrix",
            S,
            T,
            floats(6, 5, seed=2),
            0.7,
            0.9,
            ALL,
        ),
        of(M + "_gak:_njit_log_gak_from_gram_matrix", floats(6, 5)),
        of(M + "_frechet:_njit_accumulated_matrix", S, T, ALL),
        of(M + "soft_dtw_loss_pytorch:_njit_soft_dtw_grad_batch", floats(2, 6, 5), floats(2, 6, 5, seed=1), 0.8),
        of(
            "tslearn.clustering.kshape:y_shifted_sbd_vec",
            floats(8, 1),
            floats(3, 8, 1),
            1.3,
            floats(3),
            known="refused: objmode",
        ),
        of(
            M + "cysax:cydist_1d_sax",
            np.array([[1, 2], [0, 3], [4, 1], [2, 2]]),
            np.array([[0, 2], [1, 1], [3, 4], [4, 0]]),
            floats(5),
            floats(5, seed=1),
            12,
        ),
        of(M + "soft_dtw_loss_pytorch:_njit_soft_dtw_batch", floats(2, 6, 5), 0.7, ALL),
        of(
            "tslearn.clustering.kshape:cdist_normalized_cc",
            floats(3, 8, 1),
            floats(2, 8, 1, seed=1),
            floats(3),
            floats(2),
            False,
            known="refused: objmode",
        ),
        of(M + "_soft_dtw:_njit_soft_dtw", S, T, 0.7),
        of(M + "dtw_variants:_njit_subsequence_cost_matrix", floats(3, 2), S),
    ),
)
