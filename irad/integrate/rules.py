"""The quadrature of one function, with its rule.

By a limit the derivative is the integrand there. By a break point it is the jump of the integrand, so a break point
that moves with a discontinuity has the derivative that the integrand's own cannot have. By the arguments of the
integrand it is the integral of the integrand's derivative, which a quadrature of its own finds, to tolerances relative
to the cotangent or tangent: what was precise enough for the value need not be for its derivative.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.extending import register_jitable

from irad.api.custom.higher_order import attach, give_cotangents, kept_arguments, pull, push, zero_cotangents
from irad.frontend.custom.annotated import AugmentedReturn, is_active
from irad.frontend.custom.contract import zero_shadow
from irad.integrate.panels import adaptive, edges_of, kind_of, panel_of, point_of
from irad.integrate.slots import add, cleared, inner, largest, move, room, taken


def quadrature_of(f: Any) -> Any:
    """The compiled quadrature of a function.

    Returns:
        ``(a, b, args, points, absolute, relative, limit) -> (value, error, count)`` with arrays of break points.
    """
    solve = adaptive(panel_of(values_of(f)))

    @njit
    def quadrature(a, b, args, points, absolute, relative, limit):  # type: ignore[no-untyped-def]
        like = f(_inside(a, b, points), *args)
        whole, error, count = solve(a, b, points, like, absolute, relative, limit, args)
        return taken(whole, 0, like), error, count

    augmented, back = _reverse_of(quadrature, f)
    return attach(quadrature, augmented_primal=augmented, reverse=back, forward=_forward_of(quadrature, f))


def values_of(f: Any) -> Any:
    """The integrand as ``(x, args)``."""

    @register_jitable
    def value_at(x, args):  # type: ignore[no-untyped-def]
        return f(x, *args)

    return value_at


@register_jitable
def _inside(a, b, points):  # type: ignore[no-untyped-def]
    """A node of the first panel."""
    kind, origin = kind_of(a, b)
    edges = edges_of(kind, origin, a, b, points)
    return point_of(kind, origin, 0.5 * (edges[0] + edges[1]))[0]


@register_jitable
def _sides(a, b, point):  # type: ignore[no-untyped-def]
    """The last number in front of a point and the first behind it, on the way from one limit to the other."""
    return np.nextafter(point, a), np.nextafter(point, b)


def _reverse_of(quadrature: Any, f: Any) -> Any:
    @register_jitable
    def gradient_at(x, data):  # type: ignore[no-untyped-def]
        config, args, values, cotangent, sums = data
        return pull(config, f, (x,), (None,), args, values, cotangent, cleared(sums))

    solve = adaptive(panel_of(gradient_at))

    @register_jitable
    def by_arguments(config, cotangent, a, b, args, values, points, absolute, relative, limit):  # type: ignore[no-untyped-def]
        sums, size = zero_cotangents(args), largest(cotangent)
        if size == 0.0:
            return give_cotangents(args, sums)
        data = (config, args, values, cotangent, sums)
        whole, _, _ = solve(a, b, points, sums, absolute * size, relative, limit, data)
        return give_cotangents(args, taken(whole, 0, sums))

    @register_jitable
    def at(x, values, cotangent):  # type: ignore[no-untyped-def]
        return 0.0 if np.isinf(x) else inner(cotangent, f(x, *values))

    def quadrature_augmented(config, a, b, args, points, absolute, relative, limit):  # type: ignore[no-untyped-def]
        result = quadrature(a.value, b.value, args.value, points.value, absolute.value, relative.value, limit.value)
        kept = points.value.copy() if config.overwritten[3] else points.value
        shadow = zero_shadow(result) if config.needs_shadow else None
        return AugmentedReturn(result, shadow, (kept_arguments(config, 2, args), kept))

    def quadrature_reverse(config, cotangent, tape, a, b, args, points, absolute, relative, limit):  # type: ignore[no-untyped-def]
        values, breaks = tape
        by_a, by_b, by_args = 0.0, 0.0, None
        if is_active(cotangent, 0):
            if is_active(a):
                by_a = -at(a.value, values, cotangent[0])
            if is_active(b):
                by_b = at(b.value, values, cotangent[0])
            if is_active(points):
                for i in range(breaks.size):
                    if min(a.value, b.value) < breaks[i] < max(a.value, b.value):
                        before, behind = _sides(a.value, b.value, breaks[i])
                        jump = at(before, values, cotangent[0]) - at(behind, values, cotangent[0])
                        points.shadow[i] += jump
            if is_active(args):
                by_args = by_arguments(
                    config,
                    cotangent[0],
                    a.value,
                    b.value,
                    args,
                    values,
                    breaks,
                    absolute.value,
                    relative.value,
                    limit.value,
                )
        elif is_active(args):
            by_args = give_cotangents(args, zero_cotangents(args))
        return by_a if is_active(a) else None, by_b if is_active(b) else None, by_args, None, None, None, None

    return quadrature_augmented, quadrature_reverse


def _forward_of(quadrature: Any, f: Any) -> Any:
    @register_jitable
    def tangent_at(x, data):  # type: ignore[no-untyped-def]
        config, args = data
        return push(config, f, (x,), (None,), args)[1]

    solve = adaptive(panel_of(tangent_at))

    @register_jitable
    def add_at(kept, x, args, weight):  # type: ignore[no-untyped-def]
        if weight != 0.0 and not np.isinf(x):
            add(kept, 0, weight, f(x, *args))

    def quadrature_forward(config, a, b, args, points, absolute, relative, limit):  # type: ignore[no-untyped-def]
        result = quadrature(a.value, b.value, args.value, points.value, absolute.value, relative.value, limit.value)
        kept = room(result[0], 1)
        if is_active(args):
            size = largest(args.tangent)
            if size != 0.0:
                whole, _, _ = solve(
                    a.value,
                    b.value,
                    points.value,
                    result[0],
                    absolute.value * size,
                    relative.value,
                    limit.value,
                    (config, args),
                )
                move(kept, 0, 1.0, whole, 0)
        if is_active(a):
            add_at(kept, a.value, args.value, -a.tangent)
        if is_active(b):
            add_at(kept, b.value, args.value, b.tangent)
        if is_active(points):
            for i in range(points.value.size):
                if min(a.value, b.value) < points.value[i] < max(a.value, b.value):
                    before, behind = _sides(a.value, b.value, points.value[i])
                    add_at(kept, before, args.value, points.tangent[i])
                    add_at(kept, behind, args.value, -points.tangent[i])
        return result, (taken(kept, 0, result[0]), 0.0, None)

    return quadrature_forward
