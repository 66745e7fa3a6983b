"""Heat equation: the steps are linear, so the tangent of the field takes the same steps."""

from __future__ import annotations

from numba import njit


@njit(error_model="numpy")
def hand(tangents, initial, target, ratio, steps):
    """Both fields take the same steps."""
    (direction,) = tangents
    n, m = initial.shape
    old, new = initial.copy(), initial.copy()
    old_dot, new_dot = direction.copy(), direction.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                neighbours = old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]
                new[i, j] = old[i, j] + ratio * (neighbours - 4.0 * old[i, j])
                neighbours_dot = old_dot[i - 1, j] + old_dot[i + 1, j] + old_dot[i, j - 1] + old_dot[i, j + 1]
                new_dot[i, j] = old_dot[i, j] + ratio * (neighbours_dot - 4.0 * old_dot[i, j])
        old, new = new, old
        old_dot, new_dot = new_dot, old_dot
    total, total_dot = 0.0, 0.0
    for i in range(n):
        for j in range(m):
            difference = old[i, j] - target[i, j]
            total += difference * difference
            total_dot += difference * old_dot[i, j]
    return 0.5 * total, total_dot
