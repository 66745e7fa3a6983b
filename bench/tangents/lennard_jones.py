"""Lennard-Jones energy: the tangent of each pair."""

from __future__ import annotations

from numba import njit


@njit(error_model="numpy")
def hand(tangents, positions, epsilon, sigma):
    """One reciprocal for each pair."""
    (directions,) = tangents
    n = positions.shape[0]
    total, total_dot = 0.0, 0.0
    for i in range(n):
        for j in range(i + 1, n):
            dx = positions[i, 0] - positions[j, 0]
            dy = positions[i, 1] - positions[j, 1]
            dz = positions[i, 2] - positions[j, 2]
            inner = (
                dx * (directions[i, 0] - directions[j, 0])
                + dy * (directions[i, 1] - directions[j, 1])
                + dz * (directions[i, 2] - directions[j, 2])
            )
            inverse = 1.0 / (dx * dx + dy * dy + dz * dz)
            s2 = sigma * sigma * inverse
            s6 = s2 * s2 * s2
            total += 4.0 * epsilon * (s6 * s6 - s6)
            total_dot += 24.0 * epsilon * inverse * inner * (s6 - 2.0 * s6 * s6)
    return total, total_dot
