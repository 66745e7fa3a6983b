"""Distances with their hand-written gradients, sparse vectors, the embedding's steps."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

X, Y = floats(5), floats(5, seed=1)
D = "umap.distances:"
SPARSE = "umap.sparse:"
AT, BT = np.array([0, 2, 3, 7], np.int32), np.array([1, 2, 7], np.int32)
A, B = floats(4), floats(3, seed=1)

PACKAGE = Package(
    "umap",
    "umap-learn>=0.5.7",
    (
        of(D + "softmax", X),
        of(D + "euclidean_grad", X, Y),
        of(D + "standardised_euclidean_grad", X, Y, floats(5, seed=2)),
        of(D + "manhattan_grad", X, Y),
        of(D + "chebyshev_grad", X, Y),
        of(D + "minkowski_grad", X, Y + 2, 2.5),
        of(D + "poincare", X / 9, Y / 9),
        of(D + "hyperboloid_grad", X, Y),
        of(D + "weighted_minkowski_grad", X, Y, floats(5, seed=2), 3.0),
        of(D + "mahalanobis_f64", X, Y, np.eye(5) + 0.1),
        of(D + "mahalanobis_grad", X, Y, np.eye(5) + 0.1),
        of(D + "canberra_grad", X, Y),
        of(D + "bray_curtis_grad", X, Y),
        of(D + "haversine_grad", X[:2].copy(), Y[:2].copy()),
        of(D + "cosine_grad", X, Y),
        of(D + "correlation_grad", X, Y),
        of(D + "hellinger_grad", X, Y),
        of(D + "softmax_hellinger", X, Y),
        of(D + "ll_dirichlet", X * 3, Y * 3),
        of(D + "symmetric_kl", X, Y, 1e-11, argnums=(0, 1)),
        of(D + "symmetric_kl_grad", X, Y, 1e-11, argnums=(0, 1)),
        of(D + "sinkhorn_distance", X, Y, floats(5, 5, dtype=np.float32), floats(5, 5, seed=3), 8),
        of(D + "spherical_gaussian_energy_grad", floats(3), floats(3, seed=1)),
        # diagonal_gaussian_energy_grad returns two numbers that it has not written
        of(D + "gaussian_energy_grad", X, Y),
        of(D + "spherical_gaussian_grad", floats(3), floats(3, seed=1)),
        of(SPARSE + "sparse_sum", AT, A, BT, B),
        of(SPARSE + "sparse_mul", AT, A, BT, B),
        of(SPARSE + "sparse_minkowski", AT, A, BT, B, 2.5),
        of(SPARSE + "sparse_canberra", AT, A, BT, B),
        of(SPARSE + "sparse_correlation", AT, A, BT, B, 9),
        of(SPARSE + "sparse_ll_dirichlet", AT, A * 3, BT, B * 3),
        of("umap.layouts:rdist", X.astype(np.float32), Y.astype(np.float32)),
        of("umap.utils:norm", X),
        of("umap.umap_:init_transform", np.array([[0, 1], [2, 1]]), floats(2, 2), floats(3, 2)),
        of(
            "umap.umap_:smooth_knn_dist",
            np.sort(floats(4, 6)),
            5.0,
            64,
            1.0,
            1.0,
            argnums=(0,),
            known="not smooth: bisection",
        ),
        of("umap.umap_:reprocess_row", X.astype(np.float32), 3, 32, known="not smooth: bisection"),
        of("umap.aligned_umap:procrustes_align", floats(5, 2), floats(5, 2, seed=1), np.array([[0, 1, 3], [2, 1, 4]])),
    ),
    fastmath=True,
)
