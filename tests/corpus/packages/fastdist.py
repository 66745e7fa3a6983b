"""Distances and scores with optional weights, under fastmath."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Named, Package, of
from tests.tools.catalogue import floats

U, V, W = floats(6), floats(6, seed=1), floats(6, seed=2)
F = "fastdist.fastdist:"

PACKAGE = Package(
    "fastdist",
    "fastdist>=1.1",
    (
        of(F + "braycurtis", U, V, W),
        of(F + "canberra", U, V, None),
        of(F + "chebyshev", U, V, W),
        of(F + "correlation", U, V, W, True),
        of(F + "cosine", U, V, None),
        of(F + "cosine_vector_to_matrix", U, floats(3, 6)),
        of(F + "cosine_matrix_to_matrix", floats(2, 6), floats(3, 6)),
        of(F + "cosine_pairwise_distance", floats(3, 6), True),
        of(F + "euclidean", U, V, None),
        of(F + "jensenshannon", U, V, None),
        of(F + "mahalanobis", U, V, np.eye(6) + 0.1),
        of(F + "minkowski", U, V, 2.5, W),
        of(F + "seuclidean", U, V, W),
        of(F + "vector_to_matrix_distance", U, floats(3, 6), Named(F + "euclidean"), "euclidean"),
        of(F + "matrix_pairwise_distance", floats(3, 6), Named(F + "cityblock"), "cityblock", False),
        of(F + "variance", U, None),
        of(F + "r2_score", U, V, W),
        of(F + "mean_squared_error", U, V, None, False),
        of(F + "median_absolute_error", U, V, None),
        of(F + "log_loss", np.round(U / 2), V / 3, None, argnums=(1,)),
    ),
    fastmath=True,
)
