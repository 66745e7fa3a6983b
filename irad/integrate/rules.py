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

from irad.api.custom.higher_order import attach, give_cotangents, kept_arguments, zero_cotangents
from irad.frontend.custom.annotated import AugmentedReturn, is_active
from irad.frontend.custom.contract import zero_shadow
from irad.integrate.integrands import Integrand
from irad.integrate.outcome import check_derivative
from irad.integrate.panels import adaptive, edges_of, kind_of, point_of
from irad.integrate.slots import add, inner, largest, move, room, taken


def quadrature_of(f: Integrand) -> Any:
    """The compiled quadrature of an integrand.

    Returns:
        ``(a, b, args, points, settings) -> (value, error, count, is_precise)`` with an array of break points; the
        settings are the absolute and the relative tolerance, the most intervals, and the shape of the value at a point
        if it is one of a batch.
    """
    solve, at, desk = adaptive(f.values), f.at, f.desk

    @njit
    def quadrature(a, b, args, points, settings):  # type: ignore[no-untyped-def]
        absolute, relative, limit, shape = settings
        like = at(_inside(a, b, points), args, shape)
        given = absolute, relative, limit, (desk(like, shape), args)
        whole, error, count, is_precise = solve(a, b, points, like, *given)
        return taken(whole, 0, like), error, count, is_precise

    augmented, back = _reverse_of(quadrature, f)
    return attach(quadrature, augmented_primal=augmented, reverse=back, forward=_forward_of(quadrature, f))


@register_jitable
def _inside(a, b, points):  # type: ignore[no-untyped-def]
    """A node of the first panel."""
    if a == b:
        return a
    kind, origin = kind_of(a, b)
    edges = edges_of(kind, origin, a, b, points)
    return point_of(kind, origin, 0.5 * (edges[0] + edges[1]))[0]


@register_jitable
def _sides(a, b, point):  # type: ignore[no-untyped-def]
    """The last number in front of a point and the first behind it, on the way from one limit to the other."""
    return np.nextafter(point, a), np.nextafter(point, b)


def _reverse_of(quadrature: Any, f: Integrand) -> Any:
    solve, value_at, desk = adaptive(f.cotangents), f.at, f.desk

    @register_jitable
    def by_arguments(config, cotangent, a, b, args, values, points, settings):  # type: ignore[no-untyped-def]
        absolute, relative, limit, shape = settings
        sums, size = zero_cotangents(args), largest(cotangent)
        if size == 0.0:
            return give_cotangents(args, sums)
        data = (desk(cotangent, shape), config, args, values, cotangent, sums)
        whole, _, _, is_precise = solve(a, b, points, sums, absolute * size, relative, limit, data)
        check_derivative(is_precise)
        return give_cotangents(args, taken(whole, 0, sums))

    @register_jitable
    def at(x, values, cotangent, shape):  # type: ignore[no-untyped-def]
        return 0.0 if np.isinf(x) else inner(cotangent, value_at(x, values, shape))

    def quadrature_augmented(config, a, b, args, points, settings):  # type: ignore[no-untyped-def]
        result = quadrature(a.value, b.value, args.value, points.value, settings.value)
        kept = points.value.copy() if config.overwritten[3] else points.value
        shadow = zero_shadow(result) if config.needs_shadow else None
        return AugmentedReturn(result, shadow, (kept_arguments(config, 2, args), kept))

    def quadrature_reverse(config, cotangent, tape, a, b, args, points, settings):  # type: ignore[no-untyped-def]
        values, breaks = tape
        shape = settings.value[3]
        by_a, by_b, by_args = 0.0, 0.0, None
        if is_active(cotangent, 0):
            if is_active(a):
                by_a = -at(a.value, values, cotangent[0], shape)
            if is_active(b):
                by_b = at(b.value, values, cotangent[0], shape)
            if is_active(points):
                for i in range(breaks.size):
                    if min(a.value, b.value) < breaks[i] < max(a.value, b.value):
                        before, behind = _sides(a.value, b.value, breaks[i])
                        jump = at(before, values, cotangent[0], shape) - at(behind, values, cotangent[0], shape)
                        points.shadow[i] += jump
            if is_active(args):
                by_args = by_arguments(config, cotangent[0], a.value, b.value, args, values, breaks, settings.value)
        elif is_active(args):
            by_args = give_cotangents(args, zero_cotangents(args))
        return by_a if is_active(a) else None, by_b if is_active(b) else None, by_args, None, None

    return quadrature_augmented, quadrature_reverse


def _forward_of(quadrature: Any, f: Integrand) -> Any:
    solve, value_at, desk = adaptive(f.tangents), f.at, f.desk

    @register_jitable
    def add_at(kept, x, args, shape, weight):  # type: ignore[no-untyped-def]
        if weight != 0.0 and not np.isinf(x):
            add(kept, 0, weight, value_at(x, args, shape))

    def quadrature_forward(config, a, b, args, points, settings):  # type: ignore[no-untyped-def]
        result = quadrature(a.value, b.value, args.value, points.value, settings.value)
        absolute, relative, limit, shape = settings.value
        like = result[0]
        kept = room(like, 1)
        if is_active(args):
            size = largest(args.tangent)
            if size != 0.0:
                data = desk(like, shape), config, args
                given = absolute * size, relative, limit, data
                whole, _, _, is_precise = solve(a.value, b.value, points.value, like, *given)
                check_derivative(is_precise)
                move(kept, 0, 1.0, whole, 0)
        if is_active(a):
            add_at(kept, a.value, args.value, shape, -a.tangent)
        if is_active(b):
            add_at(kept, b.value, args.value, shape, b.tangent)
        if is_active(points):
            for i in range(points.value.size):
                if min(a.value, b.value) < points.value[i] < max(a.value, b.value):
                    before, behind = _sides(a.value, b.value, points.value[i])
                    add_at(kept, before, args.value, shape, points.tangent[i])
                    add_at(kept, behind, args.value, shape, -points.tangent[i])
        return result, (taken(kept, 0, like), 0.0, None, None)

    return quadrature_forward
