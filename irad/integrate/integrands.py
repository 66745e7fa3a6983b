"""What a quadrature calls for the points of a panel: an integrand by itself, and its pullback and pushforward.

There are two kinds: an integrand that is called for each point, and one that fills an array with the values at all
points of a panel (`batches.py`). A panel is ``(low, high, kind, origin, kept, index, gauss, data)``: it overwrites a
row of ``kept`` with Kronrod's sum and ``gauss`` with Gauss's.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from numba.extending import register_jitable

from irad.api.custom.higher_order import pull, push
from irad.integrate.panels import panel_of
from irad.integrate.slots import cleared


class Integrand(NamedTuple):
    """How an integrand is evaluated.

    Attributes:
        at: ``(x, args, shape)``, the value at one point.
        desk: ``(like, shape)``, the memory of the panels of one quadrature; ``like`` is a value or its cotangent.
        values: a panel, whose data are ``(desk, args)``.
        cotangents: a panel, whose data are ``(desk, config, args, values, cotangent, sums)`` as `pull` takes them.
        tangents: a panel, whose data are ``(desk, config, args)``.
    """

    at: Any
    desk: Any
    values: Any
    cotangents: Any
    tangents: Any


def pointwise(f: Any) -> Integrand:
    """An integrand that is called as ``f(x, *args)``."""

    @register_jitable
    def at(x, args, shape):  # type: ignore[no-untyped-def]
        return f(x, *args)

    @register_jitable
    def desk(like, shape):  # type: ignore[no-untyped-def]
        return None

    @register_jitable
    def value_at(x, data):  # type: ignore[no-untyped-def]
        return f(x, *data[1])

    @register_jitable
    def gradient_at(x, data):  # type: ignore[no-untyped-def]
        _, config, args, values, cotangent, sums = data
        return pull(config, f, (x,), (None,), args, values, cotangent, cleared(sums))

    @register_jitable
    def tangent_at(x, data):  # type: ignore[no-untyped-def]
        _, config, args = data
        return push(config, f, (x,), (None,), args)[1]

    return Integrand(at, desk, panel_of(value_at), panel_of(gradient_at), panel_of(tangent_at))
