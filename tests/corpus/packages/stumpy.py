"""Matrix profiles: sliding windows, some of them parallel."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

Q, T = floats(5), floats(16)
PLAIN = np.zeros(12, np.bool_)
C = "stumpy.core:"

PACKAGE = Package(
    "stumpy",
    "stumpy>=1.13",
    (
        of(C + "_sliding_dot_product", Q, T),
        of(C + "_welford_nanvar", T, 5, np.ones(12, np.bool_)),
        of(C + "_rolling_nanstd_1d", T, 5),
        of(C + "_calculate_squared_distance", 5, 4.1, 1.1, 0.4, 0.9, 0.5, False, False),
        of(
            C + "_calculate_squared_distance_profile",
            5,
            floats(12),
            1.1,
            0.4,
            floats(12, seed=1),
            floats(12, seed=2),
            False,
            PLAIN,
        ),
        of(C + "_p_norm_distance_profile", Q, T, 2.0, argnums=(0, 1)),
        of(C + "_p_norm_distance_profile", Q, T, 1.5),
        of(C + "_apply_exclusion_zone", T, 6, 2, 9.0, writes=0),
        of(C + "_shift_insert_at_index", T, 4, 0.7, "right", writes=0),
        of("stumpy.fastmath:_add_assoc", 0.3, 0.4),
    ),
    fastmath=True,
)
