"""Distances between points, in single precision, as nearest-neighbour search uses them."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

X, Y = floats(6, dtype=np.float32), floats(6, seed=1, dtype=np.float32)
P, Q = floats(6), floats(6, seed=1)
D = "pynndescent.distances:"
SPARSE = "pynndescent.sparse:"
AT, BT = np.array([0, 2, 3, 7], np.int32), np.array([1, 2, 7], np.int32)
A, B = floats(4, dtype=np.float32), floats(3, dtype=np.float32, seed=1)

PACKAGE = Package(
    "pynndescent",
    "pynndescent>=0.6",
    (
        of(D + "euclidean", P, Q),
        of(D + "squared_euclidean", X, Y),
        of(D + "standardised_euclidean", P, Q, floats(6, seed=2)),
        of(D + "manhattan", X, Y),
        of(D + "chebyshev", P, Q),
        of(D + "minkowski", P, Q, 3),
        of(D + "minkowski", P, Q, 2.5),
        of(D + "weighted_minkowski", P, Q, floats(6, seed=2), 3),
        of(D + "mahalanobis", X, Y, np.eye(6, dtype=np.float32) + np.float32(0.1)),
        of(D + "canberra", P, Q),
        of(D + "bray_curtis", X, Y),
        of(D + "haversine", P[:2].copy(), Q[:2].copy()),
        of(D + "cosine", X, Y),
        of(D + "alternative_cosine", X, Y),
        of(D + "dot", X, Y),
        of(D + "alternative_dot", X / 4, Y / 4),
        of(D + "tsss", X, Y),
        of(D + "true_angular", X, Y),
        of(D + "correlation", P, Q),
        of(D + "hellinger", X, Y),
        of(D + "alternative_hellinger", X, Y),
        of(D + "correct_alternative_hellinger", 0.4),
        of(D + "spearmanr", P, Q),
        of(D + "sinkhorn", P, Q, floats(6, 6), 1.0),
        of(D + "jensen_shannon_divergence", P, Q),
        of(D + "wasserstein_1d", P, Q, 2),
        of(D + "circular_kantorovich", P, Q, 1, known="not smooth: the median"),
        of(D + "symmetric_kl_divergence", P, Q),
        of(D + "kantorovich", P, Q, floats(6, 6), 1000),
        of(D + "proxy_wasserstein_1d", P, Q),
        of(SPARSE + "sparse_euclidean", AT, A, BT, B),
        of(SPARSE + "sparse_cosine", AT, A, BT, B),
        of(SPARSE + "sparse_correlation", AT, A, BT, B, 9),
        of(SPARSE + "sparse_bray_curtis", AT, A, BT, B),
        of(SPARSE + "sparse_hellinger", AT, A, BT, B),
        of(SPARSE + "sparse_jensen_shannon_divergence", AT, A, BT, B, single=True),
    ),
    fastmath=True,
)
