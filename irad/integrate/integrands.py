"""Integrands at the points of a panel: an integrand by itself, and its pullback and pushforward.

There are two kinds: an integrand that is called for each point, and one that fills an array with the values at all
points of a panel (`batches.py`). A panel is ``(low, high, kind, origin, kept, index, gauss, data)``: it overwrites a
row of ``kept`` with Kronrod's sum and ``gauss`` with Gauss's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from irad.api.custom.higher_order import pull, push
from irad.errors import SignatureError, SourceLocation
from irad.frontend.inner import inner_jitable, inner_overload
from irad.frontend.numba.messages import described
from irad.integrate.panels import TABLE, panel_of, point_of
from irad.integrate.slots import add, cleared, move, room


class Integrand(NamedTuple):
    """An integrand with the way to evaluate it.

    Attributes:
        at: ``(x, args, shape)``, the value at one point.
        scratch: ``(like, shape)``, the memory of the panels of one quadrature; ``like`` is a value or its cotangent.
        values: a panel, whose data are ``(scratch, args)``.
        cotangents: a panel, whose data are ``(scratch, config, args, values, cotangent, sums)`` as `pull` takes them.
        tangents: a panel, whose data are ``(scratch, config, args)``.
    """

    at: Any
    scratch: Any
    values: Any
    cotangents: Any
    tangents: Any


def pointwise(f: Any) -> Integrand:
    """An integrand that is called as ``f(x, *args)``."""

    @inner_jitable
    def at(x, args, shape):  # type: ignore[no-untyped-def]
        return f(x, *args)

    @inner_jitable
    def scratch(like, shape):  # type: ignore[no-untyped-def]
        return None

    @inner_jitable
    def value_at(x, data):  # type: ignore[no-untyped-def]
        return f(x, *data[1])

    @inner_jitable
    def gradient_at(x, data):  # type: ignore[no-untyped-def]
        _, config, args, values, cotangent, sums = data
        return pull(config, f, (x,), (None,), args, values, cotangent, cleared(sums))

    @inner_jitable
    def tangent_at(x, data):  # type: ignore[no-untyped-def]
        _, config, args = data
        return push(config, f, (x,), (None,), args)[1]

    return Integrand(at, scratch, panel_of(value_at), panel_of(gradient_at), panel_of(tangent_at))


# Integrands that fill an array with their values at all points of a panel: ``f(xs, out, *args)``.
#
# Sums over the points are made of rows of numbers, so nothing is allocated for a panel. The pullback runs twice for a
# panel: with Kronrod's weights times the cotangent in the shadow of ``out``, and with those of Gauss.

_COUNT = TABLE.shape[0]


class Desk(NamedTuple):
    """The memory of a batch integrand.

    Attributes:
        xs: the points.
        weights: of each point, Kronrod's and Gauss's.
        out: the values at the points.
        shadow: of ``out``.
        rows: ``out`` with a row of numbers for each point.
        shadow_rows: the same of ``shadow``.
        one: what the memory was made for, as a row.
    """

    xs: Any
    weights: Any
    out: Any
    shadow: Any
    rows: Any
    shadow_rows: Any
    one: Any


@inner_jitable
def _scratch(like, shape):  # type: ignore[no-untyped-def]
    one = room(like, 1)
    add(one, 0, 1.0, like)
    out, shadow = np.empty((_COUNT, *shape)), np.empty((_COUNT, *shape))
    width = one.shape[1]
    rows, shadow_rows = out.reshape((_COUNT, width)), shadow.reshape((_COUNT, width))
    return Desk(np.empty(_COUNT), np.empty((_COUNT, 2)), out, shadow, rows, shadow_rows, one)


@inner_jitable
def _fill(rows, number):  # type: ignore[no-untyped-def]
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            rows[i, j] = number


@inner_jitable
def _begin(scratch, low, high, kind, origin):  # type: ignore[no-untyped-def]
    """Writes the points and their weights; values that are not filled in are NaN."""
    middle, half = 0.5 * (low + high), 0.5 * (high - low)
    for k in range(_COUNT):
        scratch.xs[k], stretch = point_of(kind, origin, middle + half * TABLE[k, 0])
        scratch.weights[k, 0] = half * stretch * TABLE[k, 1]
        scratch.weights[k, 1] = half * stretch * TABLE[k, 2]
    _fill(scratch.rows, np.nan)


@inner_jitable
def _sum(weights, rows, kept, index, gauss):  # type: ignore[no-untyped-def]
    for j in range(kept.shape[1]):
        kept[index, j] = gauss[0, j] = 0.0
    for k in range(_COUNT):
        move(kept, index, weights[k, 0], rows, k)
        if weights[k, 1] != 0.0:
            move(gauss, 0, weights[k, 1], rows, k)


def nothing(value: Any) -> None:
    """Refuses an integrand that returns its values, in compiled code."""
    raise NotImplementedError


@inner_overload(nothing, strict=False)
def _nothing_typed(value: Any) -> Any:
    if value == types.none:
        return lambda value: None
    raise SignatureError(
        f"the integrand of a batch returns {described(value)}",
        "(a) write the values to its second argument, out, or (b) leave out batch and return the value at one point",
        "its result would be lost",
        SourceLocation.here(),
    )


def batched(f: Any) -> Integrand:
    """An integrand that is called as ``f(xs, out, *args)`` and writes the value at each point to ``out``."""

    @inner_jitable
    def at(x, args, shape):  # type: ignore[no-untyped-def]
        xs, out = np.full(1, x), np.full((1, *shape), np.nan)
        nothing(f(xs, out, *args))
        return out[0]

    @inner_jitable
    def values(low, high, kind, origin, kept, index, gauss, data):  # type: ignore[no-untyped-def]
        scratch, args = data
        _begin(scratch, low, high, kind, origin)
        f(scratch.xs, scratch.out, *args)
        _sum(scratch.weights, scratch.rows, kept, index, gauss)

    @inner_jitable
    def cotangents(low, high, kind, origin, kept, index, gauss, data):  # type: ignore[no-untyped-def]
        scratch, config, args, values, _, sums = data
        for rule in range(2):
            _begin(scratch, low, high, kind, origin)
            _fill(scratch.shadow_rows, 0.0)
            for k in range(_COUNT):
                move(scratch.shadow_rows, k, scratch.weights[k, rule], scratch.one, 0)
            leading, shadows = (scratch.xs, scratch.out), (None, scratch.shadow)
            found = pull(config, f, leading, shadows, args, values, None, cleared(sums))
            rows, place = (kept, index) if rule == 0 else (gauss, 0)
            for j in range(rows.shape[1]):
                rows[place, j] = 0.0
            add(rows, place, 1.0, found)

    @inner_jitable
    def tangents(low, high, kind, origin, kept, index, gauss, data):  # type: ignore[no-untyped-def]
        scratch, config, args = data
        _begin(scratch, low, high, kind, origin)
        _fill(scratch.shadow_rows, 0.0)
        push(config, f, (scratch.xs, scratch.out), (None, scratch.shadow), args)
        _sum(scratch.weights, scratch.shadow_rows, kept, index, gauss)

    return Integrand(at, _scratch, values, cotangents, tangents)
