"""The reverse of an integration, step by step, with checkpoints: the derivative of what was computed.

The augmented primal keeps where steps end, and no states. The reverse goes back from the last step: the state before it
is computed again from a snapshot, the step is pulled back, and what was read in it joins on the way. The first snapshot
is the beginning, the others are taken on the way to the last step.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numba.core import types
from numba.extending import overload, register_jitable

from irad.api.checkpointing.loops import begun, recovering, snapshot
from irad.api.custom.higher_order import attach, give_cotangents, kept_arguments, pull, zero_cotangents
from irad.frontend.custom.annotated import AugmentedReturn, is_active
from irad.frontend.custom.contract import zero_shadow
from irad.ode.dense import add_to, put
from irad.ode.march import Method, marching, unit_of


def discrete(f: Any, event: Any, method: Method, snapshots: int) -> Any:
    """The integration of a right-hand side, with the derivative of its steps."""
    march = marching(f, event, method)
    return attach(
        march,
        augmented_primal=_augmented_of(march),
        reverse=_reverse_of(f, event, method, snapshots),
        body_otherwise=True,
    )


def _augmented_of(march: Any) -> Any:
    def augmented(config, y0, t0, t1, args, wanted, settings):  # type: ignore[no-untyped-def]
        course = march(y0.value, t0.value, t1.value, args.value, wanted.value, settings.value)
        shadow = zero_shadow(course) if config.needs_shadow else None
        kept = kept_arguments(config, 3, args), y0.value.copy(), wanted.value.copy(), settings.value
        record = course.counts, course.places, course.row_steps, course.event_steps, course.shares
        return AugmentedReturn(course, shadow, (kept, record))

    return augmented


def part(cotangent: Any, like: Any) -> Any:
    """A part of a cotangent, or zeros if it is None."""
    raise NotImplementedError


@overload(part, strict=False)
def _part_typed(cotangent: Any, like: Any) -> Any:
    if cotangent == types.none:
        return lambda cotangent, like: np.zeros_like(like)
    return lambda cotangent, like: cotangent


def beginning(f: Any) -> Any:
    """The slope at the first end: ``(y0, ends, *args)``."""

    @njit
    def begin(y0, ends, *args):  # type: ignore[no-untyped-def]
        return f(ends[0], y0, *args)

    return begin


def _reverse_of(f: Any, event: Any, method: Method, snapshots: int) -> Any:
    unit, begin, is_fixed = unit_of(f, event, method), beginning(f), method.order == 0
    recovered = recovering(snapshots)

    @register_jitable
    def place_of(i, places, most):  # type: ignore[no-untyped-def]
        return i / most if is_fixed else places[i]

    @njit
    def advance(state, ends, places, most, args):  # type: ignore[no-untyped-def]
        i, z = state
        place, following = place_of(i, places, most), place_of(i + 1, places, most)
        return i + 1, unit(z, ends, place, following, np.zeros(0), -1.0, *args)[0]

    @register_jitable
    def back_from(config, cotangent, kept, record, ends, args, sums):  # type: ignore[no-untyped-def]
        values, start, wanted, settings = kept
        counts, places, row_steps, event_steps, shares = record
        row, event, most = counts[0], counts[1], settings.steps
        z, n = np.empty((2, start.size)), start.size
        put(z[0], start)
        put(z[1], begin(start, ends, *values))
        rows_bar = part(cotangent.rows, np.zeros((wanted.size, n)))
        times_bar, states_bar = part(cotangent.times, np.zeros(event)), part(cotangent.states, np.zeros((event, n)))
        ends_bar, wanted_bar, z_bar = np.zeros(2), np.zeros(wanted.size), np.zeros((2, n))
        add_to(z_bar[0], part(cotangent.last, np.zeros(n)))
        arguments = ends, places, most, values
        held, used, spots, free = begun(snapshot(advance, (0, z), arguments))
        for i in range(counts[2] - 1, -1, -1):
            _, z = recovered(advance, i, held, used, spots, free, arguments)
            first, share, time_bar, state_bar = row, -1.0, 0.0, np.zeros(n)
            while first > 0 and row_steps[first - 1] == i:
                first -= 1
            if event > 0 and event_steps[event - 1] == i:
                event -= 1
                share, time_bar = shares[event], times_bar[event]
                put(state_bar, states_bar[event])
            before_bar = np.zeros((2, n))
            place, following = place_of(i, places, most), place_of(i + 1, places, most)
            sums = pull(
                config,
                unit,
                (z, ends, place, following, wanted[first:row], share),
                (before_bar, ends_bar, None, None, wanted_bar[first:row], None),
                args,
                values,
                (z_bar, rows_bar[first:row], time_bar, state_bar),
                sums,
            )
            z_bar, row = before_bar, first
        y_bar = z_bar[0].copy()
        sums = pull(config, begin, (start, ends), (y_bar, ends_bar), args, values, z_bar[1].copy(), sums)
        return sums, y_bar, ends_bar, wanted_bar

    def back(config, cotangent, tape, y0, t0, t1, args, wanted, settings):  # type: ignore[no-untyped-def]
        kept, record = tape
        sums, ends_bar = zero_cotangents(args), np.zeros(2)
        if is_active(cotangent):
            ends = np.array([t0.value, t1.value])
            sums, y_bar, ends_bar, wanted_bar = back_from(config, cotangent, kept, record, ends, args, sums)
            if is_active(y0):
                add_to(y0.shadow, y_bar)
            if is_active(wanted):
                add_to(wanted.shadow, wanted_bar)
        by_t0 = ends_bar[0] if is_active(t0) else None
        by_t1 = ends_bar[1] if is_active(t1) else None
        return None, by_t0, by_t1, give_cotangents(args, sums), None, None

    return back
