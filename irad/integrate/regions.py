"""Genz and Malik's rule on one box, of degree 7 with one of degree 5 in it, and adaptive halving of boxes.

Only some axes may be integrated over; on the others a box is a point. Values are rows of numbers, as in `panels.py`.

Source: Genz, Malik: An adaptive algorithm for numerical integration over an N-dimensional rectangular region,
J. Comput. Appl. Math. 6 (1980) 295-302.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable

from irad.integrate.panels import EPSILON, total_of
from irad.integrate.slots import add, distance, move, room

_NEAR, _FAR, _CORNER = np.sqrt(9.0 / 70.0), np.sqrt(9.0 / 10.0), np.sqrt(9.0 / 19.0)


@register_jitable
def weights_of(n, volume):  # type: ignore[no-untyped-def]
    """Of the middle, near, far, pairs and corners: the weight of degree 7 and that of degree 5."""
    return volume * np.array(
        [
            ((12824.0 - 9120.0 * n + 400.0 * n * n) / 19683.0, (729.0 - 950.0 * n + 50.0 * n * n) / 729.0),
            (980.0 / 6561.0, 245.0 / 486.0),
            ((1820.0 - 400.0 * n) / 19683.0, (265.0 - 100.0 * n) / 1458.0),
            (200.0 / 19683.0, 25.0 / 729.0),
            (6859.0 / 19683.0 / 2.0**n, 0.0),
        ]
    )


@register_jitable
def points_of(n):  # type: ignore[no-untyped-def]
    """How many points the rule has in so many dimensions."""
    return 1 + 2 * n + 2 * n * n + 2**n


def box_of(sample: Any) -> Any:
    """The rule on a box, for ``sample(x, data)``: it fills two rows, and says which axis to halve."""

    @register_jitable
    def at(kept, index, fifth, weights, x, data):  # type: ignore[no-untyped-def]
        value = sample(x, data)
        add(kept, index, weights[0], value)
        add(fifth, 0, weights[1], value)
        return value

    @register_jitable
    def box(middle, half, axes, kept, index, fifth, change, data):  # type: ignore[no-untyped-def]
        volume, x = 1.0, middle.copy()
        for i in axes:
            volume *= 2.0 * half[i]
        weights = weights_of(axes.size, volume)
        kept[index] = 0.0
        fifth[0] = 0.0
        centre = at(kept, index, fifth, weights[0], x, data)
        change[1] = 0.0
        add(change, 1, 1.0, centre)
        chosen, most = 0, -1.0
        for i in axes:
            change[0] = 0.0
            move(change, 0, -2.0 * (1.0 - 1.0 / 7.0), change, 1)
            for side in (-1.0, 1.0):
                x[i] = middle[i] + side * _NEAR * half[i]
                add(change, 0, 1.0, at(kept, index, fifth, weights[1], x, data))
                x[i] = middle[i] + side * _FAR * half[i]
                add(change, 0, -1.0 / 7.0, at(kept, index, fifth, weights[2], x, data))
            x[i] = middle[i]
            size = distance(change, 0, change, 2)  # the last row is zero
            if size > most or (size == most and abs(half[i]) > abs(half[chosen])):
                chosen, most = i, size
        for place, i in enumerate(axes):
            for j in axes[place + 1 :]:
                for sides in range(4):
                    x[i] = middle[i] + (-_FAR if sides & 1 else _FAR) * half[i]
                    x[j] = middle[j] + (-_FAR if sides & 2 else _FAR) * half[j]
                    at(kept, index, fifth, weights[3], x, data)
                x[j] = middle[j]
            x[i] = middle[i]
        for corner in range(2**axes.size):
            for place, i in enumerate(axes):
                x[i] = middle[i] + (-_CORNER if corner >> place & 1 else _CORNER) * half[i]
            at(kept, index, fifth, weights[4], x, data)
        return chosen

    return box


def adaptive_boxes(box: Any) -> Any:
    """A cubature that halves the box with the largest error until their sum is small enough."""

    @register_jitable
    def measure(index, state, axes, fifth, change, data):  # type: ignore[no-untyped-def]
        middles, halves, errors, chosen, kept, whole = state
        chosen[index] = box(middles[index], halves[index], axes, kept, index, fifth, change, data)
        errors[index] = distance(kept, index, fifth, 0)
        move(whole, 0, 1.0, kept, index)

    @register_jitable
    def integrate(a, b, axes, like, absolute, relative, limit, data):  # type: ignore[no-untyped-def]
        n, most = a.size, max(limit, 1)
        middles, halves = np.empty((most, n)), np.empty((most, n))
        errors, chosen = np.zeros(most), np.zeros(most, np.int64)
        kept, fifth, change = room(like, most), room(like, 1), room(like, 3)
        whole, zero = room(like, 1), room(like, 1)
        for i in range(n):
            middles[0, i], halves[0, i] = 0.5 * (a[i] + b[i]), 0.5 * (b[i] - a[i])
        count, worst, boxes = 1, 0, 0
        state = middles, halves, errors, chosen, kept, whole
        while True:
            measure(count - 1, state, axes, fifth, change, data)
            if count > 1:
                measure(worst, state, axes, fifth, change, data)
            boxes += min(count, 2)
            error, worst = total_of(errors, count)
            size, axis = distance(whole, 0, zero, 0), chosen[worst]
            quarter = 0.5 * halves[worst, axis] if axes.size > 0 else 0.0
            is_precise = not error > max(absolute, relative * size, EPSILON * size)
            if is_precise or count == most or middles[worst, axis] + quarter == middles[worst, axis]:
                break
            move(whole, 0, -1.0, kept, worst)
            for i in range(n):
                middles[count, i], halves[count, i] = middles[worst, i], halves[worst, i]
            halves[count, axis] = halves[worst, axis] = quarter
            middles[count, axis] += quarter
            middles[worst, axis] -= quarter
            count += 1
        whole[0] = 0.0
        for index in range(count):
            move(whole, 0, 1.0, kept, index)
        return whole, total_of(errors, count)[0], boxes * points_of(axes.size), is_precise

    return integrate
