"""`cubature`: the integral of a function over a box, with its rule.

By a limit the derivative is the integral over the face there, of one dimension less. By the arguments of the integrand
it is the integral of the integrand's derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from irad.api.custom.higher_order import (
    attach,
    give_cotangents,
    kept_arguments,
    passed_along,
    pull,
    push,
    zero_cotangents,
)
from irad.api.functions import primal_of, remembered
from irad.api.nopython import function_behind, literal
from irad.frontend.calls.raising import public
from irad.frontend.custom.rule_arguments import AugmentedReturn, is_active
from irad.frontend.custom.rules_from_partials import zero_shadow
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.integrate.outcome import all_of, check_derivative, first_two, told
from irad.integrate.panels import EPSILON, kind_of, place_of, point_of, total_of
from irad.integrate.quad import as_points
from irad.integrate.slots import add, cleared, distance, inner, largest, move, room, taken

# Genz and Malik's rule on one box, of degree 7 with one of degree 5 in it, and adaptive halving of boxes.
#
# Only some axes may be integrated over; on the others a box is a point. Values are rows of numbers, as in `panels.py`.
# An infinite range of an axis is mapped to a finite one as there, so boxes are those of places.
#
# Source: Genz, Malik: An adaptive algorithm for numerical integration over an N-dimensional rectangular region,
# J. Comput. Appl. Math. 6 (1980) 295-302.

_NEAR, _FAR, _CORNER = np.sqrt(9.0 / 70.0), np.sqrt(9.0 / 10.0), np.sqrt(9.0 / 19.0)


@inner_jitable
def weights_of(n, volume):  # type: ignore[no-untyped-def]
    """Weights of degree 7 and of degree 5, for the middle, near, far, pairs and corners."""
    return volume * np.array(
        [
            ((12824.0 - 9120.0 * n + 400.0 * n * n) / 19683.0, (729.0 - 950.0 * n + 50.0 * n * n) / 729.0),
            (980.0 / 6561.0, 245.0 / 486.0),
            ((1820.0 - 400.0 * n) / 19683.0, (265.0 - 100.0 * n) / 1458.0),
            (200.0 / 19683.0, 25.0 / 729.0),
            (6859.0 / 19683.0 / 2.0**n, 0.0),
        ]
    )


@inner_jitable
def points_of(n):  # type: ignore[no-untyped-def]
    """Number of points of the rule in ``n`` dimensions."""
    return 1 + 2 * n + 2 * n * n + 2**n


def box_of(sample: Any) -> Any:
    """The rule on a box, for ``sample(x, data)``: it fills two rows, and says which axis to halve."""

    @inner_jitable
    def at(kept, index, fifth, weights, places, maps, data):  # type: ignore[no-untyped-def]
        kinds, origins, x = maps
        stretch = 1.0
        for i in range(x.size):
            x[i], factor = point_of(kinds[i], origins[i], places[i])
            stretch *= factor
        value = sample(x, data)
        add(kept, index, weights[0] * stretch, value)
        add(fifth, 0, weights[1] * stretch, value)
        return value, stretch

    @inner_jitable
    def box(middle, half, axes, kept, index, fifth, change, maps, data):  # type: ignore[no-untyped-def]
        volume, x = 1.0, middle.copy()
        for i in axes:
            volume *= 2.0 * half[i]
        weights = weights_of(axes.size, volume)
        kept[index] = 0.0
        fifth[0] = 0.0
        centre, stretch = at(kept, index, fifth, weights[0], x, maps, data)
        change[1] = 0.0
        add(change, 1, stretch, centre)
        chosen, most = 0, -1.0
        for i in axes:
            change[0] = 0.0
            move(change, 0, -2.0 * (1.0 - 1.0 / 7.0), change, 1)
            for side in (-1.0, 1.0):
                x[i] = middle[i] + side * _NEAR * half[i]
                value, stretch = at(kept, index, fifth, weights[1], x, maps, data)
                add(change, 0, stretch, value)
                x[i] = middle[i] + side * _FAR * half[i]
                value, stretch = at(kept, index, fifth, weights[2], x, maps, data)
                add(change, 0, -stretch / 7.0, value)
            x[i] = middle[i]
            size = distance(change, 0, change, 2)  # the last row is zero
            if size > most or (size == most and abs(half[i]) > abs(half[chosen])):
                chosen, most = i, size
        for place, i in enumerate(axes):
            for j in axes[place + 1 :]:
                for sides in range(4):
                    x[i] = middle[i] + (-_FAR if sides & 1 else _FAR) * half[i]
                    x[j] = middle[j] + (-_FAR if sides & 2 else _FAR) * half[j]
                    at(kept, index, fifth, weights[3], x, maps, data)
                x[j] = middle[j]
            x[i] = middle[i]
        for corner in range(2**axes.size):
            for place, i in enumerate(axes):
                x[i] = middle[i] + (-_CORNER if corner >> place & 1 else _CORNER) * half[i]
            at(kept, index, fifth, weights[4], x, maps, data)
        return chosen

    return box


@inner_jitable
def map_of(a, b):  # type: ignore[no-untyped-def]
    """The map of each axis, as kind and origin; the places of the limits.

    An axis whose limits are the same infinity has one place: nothing is integrated there.
    """
    n = a.size
    kinds, origins, low, high = np.zeros(n, np.int64), np.zeros(n), np.zeros(n), np.zeros(n)
    for i in range(n):
        if a[i] != b[i] or np.isfinite(a[i]):
            kinds[i], origins[i] = kind_of(a[i], b[i])
            low[i], high[i] = place_of(kinds[i], origins[i], a[i]), place_of(kinds[i], origins[i], b[i])
    return kinds, origins, low, high


@inner_jitable
def centre_of(a, b):  # type: ignore[no-untyped-def]
    """The point that is mapped to the middle of the box."""
    kinds, origins, low, high = map_of(a, b)
    x = np.empty(a.size)
    for i in range(a.size):
        x[i] = point_of(kinds[i], origins[i], 0.5 * (low[i] + high[i]))[0]
    return x


def adaptive_boxes(box: Any) -> Any:
    """A cubature that halves the box with the largest error until their sum is small enough."""

    @inner_jitable
    def measure(index, state, axes, fifth, change, maps, data):  # type: ignore[no-untyped-def]
        middles, halves, errors, chosen, kept, whole = state
        chosen[index] = box(middles[index], halves[index], axes, kept, index, fifth, change, maps, data)
        errors[index] = distance(kept, index, fifth, 0)
        move(whole, 0, 1.0, kept, index)

    @inner_jitable
    def integrate(a, b, axes, like, absolute, relative, limit, data):  # type: ignore[no-untyped-def]
        n, most = a.size, max(limit, 1)
        middles, halves = np.empty((most, n)), np.empty((most, n))
        errors, chosen = np.zeros(most), np.zeros(most, np.int64)
        kept, fifth, change = room(like, most), room(like, 1), room(like, 3)
        whole, zero = room(like, 1), room(like, 1)
        kinds, origins, low, high = map_of(a, b)
        maps = kinds, origins, np.empty(n)
        for i in range(n):
            middles[0, i], halves[0, i] = 0.5 * (low[i] + high[i]), 0.5 * (high[i] - low[i])
        count, worst, boxes = 1, 0, 0
        state = middles, halves, errors, chosen, kept, whole
        while True:
            measure(count - 1, state, axes, fifth, change, maps, data)
            if count > 1:
                measure(worst, state, axes, fifth, change, maps, data)
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


_TOLERANCE = 1.49e-8  # SciPy's default for `quad`
_LIMIT = 1000


@public
def cubature(
    f: Callable[..., Any],
    a: Any,
    b: Any,
    args: Any = (),
    full_output: bool = False,
    epsabs: float = _TOLERANCE,
    epsrel: float = _TOLERANCE,
    limit: int = _LIMIT,
) -> tuple[Any, ...]:
    """The integral of a function over a box, with derivatives with respect to limits and arguments.

    It can be called from Python and in compiled code. Boxes are halved, the one with the largest error first, until the
    sum of the errors is small enough; on each there are 1 + 2n + 2n² + 2ⁿ points in n dimensions.

    Args:
        f: takes a point (an array), followed by ``args``, and returns a number, real or complex, an array, or a tuple
            of these. It must not keep the point.
        a: lower limit on each axis: an array, or a tuple of numbers; may be infinite.
        b: upper limit on each axis; may be infinite, and less than ``a``.
        args: a tuple of further arguments: numbers, arrays and structures of these.
        full_output: whether to return the number of points, too, and leave it to the caller to compare the error with
            the tolerances; a literal in compiled code.
        epsabs: absolute tolerance for the largest part of the value, 1.49e-8 by default; it depends on the units, as in
            `irad.integrate.quad`.
        epsrel: tolerance relative to the largest part of the value, 1.49e-8 by default; the greater of both applies.
        limit: the largest number of boxes, 1000 by default.

    Returns:
        The integral and an estimate of its error, which has no derivative.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles.
        ValueError: ``a`` and ``b`` differ in length, or a limit is NaN; in compiled code, and so in each
            derivative: the error is greater than the tolerances, because the limit has been reached. From Python it is
            an `IntegrationWarning`; with ``full_output`` only the error estimate tells. That of a derivative raises in
            any case.

    When a derivative is made, `UnsupportedError` refuses a function that writes to ``args``.

    Source:
        Genz, Malik: J. Comput. Appl. Math. 6 (1980) 295-302.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.integrate import cubature
        >>> from numba import njit
        >>> @njit
        ... def product(x, power):
        ...     return (x[0] * x[1]) ** power
        >>> @njit
        ... def mass(width, power):
        ...     return cubature(product, (0.0, 0.0), (width, 1.0), (power,))[0]
        >>> round(mass(2.0, 1.0), 9), round(irad.grad(mass)(2.0, 1.0), 9)  # width²/4
        (1.0, 1.0)
    """
    low, high = (np.array(limits, dtype=np.float64).reshape(-1) for limits in (a, b))
    result = _cubature(primal_of(f))(low, high, passed_along(args), float(epsabs), float(epsrel), int(limit))
    return told(result, full_output)


def _cubature(f: Any) -> Any:
    return remembered(f, (cubature,), lambda: cubature_of(f))


@inner_overload(cubature, prefer_literal=True, strict=False)
def _cubature_typed(
    f: Any,
    a: Any,
    b: Any,
    args: Any = (),
    full_output: Any = False,
    epsabs: Any = _TOLERANCE,
    epsrel: Any = _TOLERANCE,
    limit: Any = _LIMIT,
) -> Any:
    found = _cubature(function_behind(f))
    chosen = all_of if literal(full_output, "full_output") else first_two

    def cubature(  # type: ignore[no-untyped-def]
        f, a, b, args=(), full_output=False, epsabs=_TOLERANCE, epsrel=_TOLERANCE, limit=_LIMIT
    ):
        low, high = as_points(a), as_points(b)
        return chosen(found(low, high, passed_along(args), float(epsabs), float(epsrel), limit))

    return cubature


def cubature_of(f: Any) -> Any:
    """The compiled cubature of a function.

    Returns:
        ``(a, b, args, absolute, relative, limit) -> (value, error, count, is_precise)``.
    """

    @inner_jitable
    def value_at(x, args):  # type: ignore[no-untyped-def]
        return f(x, *args)

    solve = adaptive_boxes(box_of(value_at))

    @inner_njit
    def integrate(a, b, args, absolute, relative, limit):  # type: ignore[no-untyped-def]
        if a.size != b.size:
            raise ValueError("the limits of a cubature differ in length")
        for i in range(a.size):
            if np.isnan(a[i]) or np.isnan(b[i]):
                raise ValueError("a limit of a cubature is NaN")
        like = f(centre_of(a, b), *args)
        whole, error, count, is_precise = solve(a, b, np.arange(a.size), like, absolute, relative, limit, args)
        return taken(whole, 0, like), error, count, is_precise

    @inner_njit
    def face(a, b, axis, place, args, absolute, relative, limit):  # type: ignore[no-untyped-def]
        """The integral over a face: one axis has one place."""
        low, high = a.copy(), b.copy()
        low[axis] = high[axis] = place
        axes = np.arange(a.size)
        like = f(centre_of(low, high), *args)
        whole, _, _, is_precise = solve(low, high, axes[axes != axis], like, absolute, relative, limit, args)
        check_derivative(is_precise)
        return whole

    augmented, back = _reverse_of(integrate, face, f)
    return attach(integrate, augmented_primal=augmented, reverse=back, forward=_forward_of(integrate, face, f))


def _reverse_of(integrate: Any, face: Any, f: Any) -> Any:
    @inner_jitable
    def gradient_at(x, data):  # type: ignore[no-untyped-def]
        config, args, values, cotangent, sums = data
        return pull(config, f, (x,), (None,), args, values, cotangent, cleared(sums))

    solve = adaptive_boxes(box_of(gradient_at))

    @inner_jitable
    def gradient_in_args(config, cotangent, a, b, args, values, absolute, relative, limit):  # type: ignore[no-untyped-def]
        sums, size = zero_cotangents(args), largest(cotangent)
        if size == 0.0:
            return give_cotangents(args, sums)
        data = (config, args, values, cotangent, sums)
        whole, _, _, is_precise = solve(a, b, np.arange(a.size), sums, absolute * size, relative, limit, data)
        check_derivative(is_precise)
        return give_cotangents(args, taken(whole, 0, sums))

    @inner_jitable
    def add_faces(shadow, sign, places, cotangent, like, given):  # type: ignore[no-untyped-def]
        for i in range(places.size):
            if np.isfinite(places[i]):
                rows = face(given[0], given[1], i, places[i], *given[2:])
                shadow[i] += sign * inner(cotangent, taken(rows, 0, like))

    def integrate_augmented(config, a, b, args, absolute, relative, limit):  # type: ignore[no-untyped-def]
        result = integrate(a.value, b.value, args.value, absolute.value, relative.value, limit.value)
        low, high = a.value.copy(), b.value.copy()
        shadow = zero_shadow(result) if config.needs_shadow else None
        return AugmentedReturn(result, shadow, (low, high, kept_arguments(config, 2, args)))

    def integrate_reverse(config, cotangent, tape, a, b, args, absolute, relative, limit):  # type: ignore[no-untyped-def]
        low, high, values = tape
        d_args = None
        if is_active(cotangent, 0):
            given = low, high, values, absolute.value, relative.value, limit.value
            if is_active(a) or is_active(b):
                like = f(centre_of(low, high), *values)
                if is_active(a):
                    add_faces(a.shadow, -1.0, low, cotangent[0], like, given)
                if is_active(b):
                    add_faces(b.shadow, 1.0, high, cotangent[0], like, given)
            if is_active(args):
                d_args = gradient_in_args(config, cotangent[0], low, high, args, *given[2:])
        elif is_active(args):
            d_args = give_cotangents(args, zero_cotangents(args))
        return None, None, d_args, None, None, None

    return integrate_augmented, integrate_reverse


def _forward_of(integrate: Any, face: Any, f: Any) -> Any:
    @inner_jitable
    def tangent_at(x, data):  # type: ignore[no-untyped-def]
        config, args = data
        return push(config, f, (x,), (None,), args)[1]

    solve = adaptive_boxes(box_of(tangent_at))

    @inner_jitable
    def add_faces(kept, tangent, sign, places, given):  # type: ignore[no-untyped-def]
        for i in range(places.size):
            if tangent[i] != 0.0 and np.isfinite(places[i]):
                rows = face(given[0], given[1], i, places[i], *given[2:])
                move(kept, 0, sign * tangent[i], rows, 0)

    def integrate_forward(config, a, b, args, absolute, relative, limit):  # type: ignore[no-untyped-def]
        given = a.value, b.value, args.value, absolute.value, relative.value, limit.value
        result = integrate(*given)
        kept = room(result[0], 1)
        if is_active(args):
            size = largest(args.tangent)
            if size != 0.0:
                axes = np.arange(a.value.size)
                data = config, args
                whole, _, _, is_precise = solve(
                    a.value, b.value, axes, result[0], absolute.value * size, relative.value, limit.value, data
                )
                check_derivative(is_precise)
                move(kept, 0, 1.0, whole, 0)
        if is_active(a):
            add_faces(kept, a.tangent, -1.0, a.value, given)
        if is_active(b):
            add_faces(kept, b.tangent, 1.0, b.value, given)
        return result, (taken(kept, 0, result[0]), 0.0, None, None)

    return integrate_forward
