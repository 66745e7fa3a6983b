"""The reverse of an integration, step by step, with checkpoints: the derivative of what was computed.

The augmented primal keeps where steps end, and no states. The reverse goes back from the last step: the state before it
is recomputed from a snapshot, the step is pulled back, and what was read in it joins on the way. The first snapshot
is the beginning, the others are taken on the way to the last step.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from irad.api.checkpointing.loops import begun, recovering, snapshot
from irad.api.custom.higher_order import attach, give_cotangents, kept_arguments, pull, zero_cotangents
from irad.frontend.custom.rule_arguments import AugmentedReturn, is_active
from irad.frontend.custom.rules_from_partials import zero_shadow
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.integrate.slots import add, room, taken
from irad.ode.dense import add_to, put
from irad.ode.events import Watch, watching
from irad.ode.march import METHODS, ROWS, Method, Reads, Settings, keeps_places, marching, unit_of


def discrete(f: Any, watch: Watch, method: Method, snapshots: int, reads: Reads = ROWS) -> Any:
    """The integration of a right-hand side, with the derivative of its steps."""
    march = marching(f, watch, method, reads)
    return attach(
        march,
        augmented_primal=_augmented_of(march),
        reverse=_reverse_of(f, watch, method, snapshots, reads),
        body_otherwise=True,
    )


class Record(NamedTuple):
    """Parts of a course that the reverse sweep needs; see `irad.ode.march.Course`.

    Attributes:
        shape: of the pieces; an empty tuple if none are kept.
    """

    counts: Any
    places: Any
    row_steps: Any
    event_steps: Any
    shares: Any
    which: Any
    applied: Any
    shape: Any


def _augmented_of(march: Any) -> Any:
    def augmented(config, y0, t0, t1, args, wanted, settings):  # type: ignore[no-untyped-def]
        course = march(y0.value, t0.value, t1.value, args.value, wanted.value, settings.value)
        shadow = zero_shadow(course) if config.needs_shadow else None
        kept = kept_arguments(config, 3, args), y0.value.copy(), wanted.value.copy(), settings.value
        steps = course.counts, course.places, course.row_steps
        happened = course.event_steps, course.shares, course.which, course.applied
        return AugmentedReturn(course, shadow, (kept, Record(*steps, *happened, _shape_of(course.dense))))

    return augmented


def part(cotangent: Any, like: Any) -> Any:
    """A part of a cotangent, or zeros if it is None."""
    raise NotImplementedError


@inner_overload(part, strict=False)
def _part_typed(cotangent: Any, like: Any) -> Any:
    if cotangent == types.none:
        return lambda cotangent, like: np.zeros_like(like)
    return lambda cotangent, like: cotangent


def _shape_of(dense: Any) -> Any:
    """The shape of the pieces of a solution; an empty tuple if none are kept."""
    raise NotImplementedError


@inner_overload(_shape_of, strict=False)
def _shape_typed(dense: Any) -> Any:
    return (lambda dense: dense[0].shape) if len(dense) > 0 else lambda dense: ()


def _pieces_of(cotangent: Any, shape: Any, n: Any) -> Any:
    """The cotangents of the pieces and of the first slope; an empty tuple if no pieces are kept."""
    raise NotImplementedError


@inner_overload(_pieces_of, strict=False)
def _pieces_typed(cotangent: Any, shape: Any, n: Any) -> Any:
    if len(shape) == 0:
        return lambda cotangent, shape, n: ()
    if cotangent == types.none:
        return lambda cotangent, shape, n: (np.zeros(shape), np.zeros(n))
    return lambda cotangent, shape, n: (part(cotangent[0], np.zeros(shape)), part(cotangent[1], np.zeros(n)))


def _piece_of(pieces: Any, i: Any) -> Any:
    """A tuple of the cotangent of a step's piece; an empty one if no pieces are kept."""
    raise NotImplementedError


@inner_overload(_piece_of, strict=False)
def _piece_typed(pieces: Any, i: Any) -> Any:
    return (lambda pieces, i: (pieces[0][i],)) if len(pieces) > 0 else lambda pieces, i: ()


def beginning(f: Any) -> Any:
    """The slope at the first end: ``(y0, ends, *args)``."""

    @inner_njit
    def begin(y0, ends, *args):  # type: ignore[no-untyped-def]
        return f(ends[0], y0, *args)

    return begin


def _around_of(watch: Watch, method: Method) -> Any:
    """A function that tells how a step was made: ``(i, event, record, most) -> (place, following, event, jumps)``.

    These are the places where it begins and ends, the number of events before its end (given the number of those before
    its beginning), and 1 if it ends with an effect, or else 0.
    """
    has_places, has_effect = keeps_places(watch, method), watch.effect is not None

    @inner_jitable
    def around(i, event, record, most):  # type: ignore[no-untyped-def]
        if not has_places:
            return i / most, (i + 1) / most, event, 0
        place, jumps, steps = record.places[i], 0, record.event_steps
        if has_effect:
            if event > 0 and steps[event - 1] == i - 1 and record.applied[event - 1] == 1:
                place = 0.0
            while event < steps.size and steps[event] == i:
                jumps = record.applied[event]
                event += 1
        return place, record.places[i + 1], event, jumps

    return around


class Repeat(NamedTuple):
    """Functions that repeat steps; their state is that of the equation, and with effects what these change.

    Attributes:
        first: ``(z, ends)``: the state before the first step.
        advance: ``(state, ends, record, most, args)``: that after one more step.
        parts: ``(state, ends)``: the state and its slope, and the ends of the time from the last effect on.
    """

    first: Any
    advance: Any
    parts: Any


def _repeating(unit: Any, around: Any, watch: Watch, reads: Reads) -> Repeat:
    has_rows, has_event = reads.rows, watch.number > 0

    @inner_njit
    def advance(state, ends, record, most, args):  # type: ignore[no-untyped-def]
        i, z = state
        place, following, _, _ = around(i, 0, record, most)
        wanted = np.zeros(0) if has_rows else ()
        shares, which = (np.zeros(0), np.zeros(0, np.int64)) if has_event else ((), ())
        return i + 1, unit(z, ends, place, following, wanted, shares, which, 0, *args)[0]

    @inner_njit
    def advance_over(state, ends, record, most, args):  # type: ignore[no-untyped-def]
        i, z, here, event = state
        place, following, last, jumps = around(i, event, record, most)
        happened = record.shares[last - jumps : last], record.which[last - jumps : last]
        wanted = np.zeros(0) if has_rows else ()
        found = unit(z, here, place, following, wanted, *happened, jumps, *args)
        return i + 1, found[0], found[-1], last

    if watch.effect is not None:
        first = inner_jitable(lambda z, ends: (0, z, ends, 0))
        return Repeat(first, advance_over, inner_jitable(lambda state, ends: (state[1], state[2])))
    return Repeat(inner_jitable(lambda z, ends: (0, z)), advance, inner_jitable(lambda state, ends: (state[1], ends)))


def _reverse_of(f: Any, watch: Watch, method: Method, snapshots: int, reads: Reads) -> Any:
    unit, begin, around = unit_of(f, watch, method, reads), beginning(f), _around_of(watch, method)
    recovered, has_effect = recovering(snapshots), watch.effect is not None
    has_rows, has_event, keeps_pieces = reads.rows, watch.number > 0, reads.pieces
    first_of, advance, parts_of = _repeating(unit, around, watch, reads)

    @inner_jitable
    def back_from(config, cotangent, kept, record, ends, args, sums):  # type: ignore[no-untyped-def]
        values, start, wanted, settings = kept
        row_steps, event_steps, shares, which = record.row_steps, record.event_steps, record.shares, record.which
        row, event, most = record.counts[0], record.counts[1], settings.steps
        z, n = np.empty((2, start.size)), start.size
        put(z[0], start)
        put(z[1], begin(start, ends, *values))
        rows_bar = part(cotangent.rows, np.zeros((wanted.size, n)))
        times_bar, states_bar = part(cotangent.times, np.zeros(event)), part(cotangent.states, np.zeros((event, n)))
        pieces_bar = _pieces_of(cotangent.dense, record.shape, n)
        ends_bar, wanted_bar, z_bar = np.zeros(2), np.zeros(wanted.size), np.zeros((2, n))
        add_to(z_bar[0], part(cotangent.last, np.zeros(n)))
        arguments = ends, record, most, values
        held, used, spots, free = begun(snapshot(advance, first_of(z, ends), arguments))
        for i in range(record.counts[2] - 1, -1, -1):
            z, here = parts_of(recovered(advance, i, held, used, spots, free, arguments), ends)
            first, earliest = row, event
            while first > 0 and row_steps[first - 1] == i:
                first -= 1
            while earliest > 0 and event_steps[earliest - 1] == i:
                earliest -= 1
            before_bar, here_bar = np.zeros((2, n)), np.zeros(2) if has_effect else ends_bar
            place, following, _, jumps = around(i, earliest, record, most)
            of_rows = (rows_bar[first:row],) if has_rows else ()
            of_events = (times_bar[earliest:event], states_bar[earliest:event]) if has_event else ()
            there, there_bar = (wanted[first:row], wanted_bar[first:row]) if has_rows else ((), None)
            happened = (shares[earliest:event], which[earliest:event]) if has_event else ((), ())
            of_ends = (ends_bar,) if has_effect else ()
            found_bar = (z_bar, *of_rows, *of_events, *_piece_of(pieces_bar, i), *of_ends)
            sums = pull(
                config,
                unit,
                (z, here, place, following, there, *happened, jumps),
                (before_bar, here_bar, None, None, there_bar, None, None, None),
                args,
                values,
                found_bar,
                sums,
            )
            z_bar, ends_bar, row, event = before_bar, here_bar, first, earliest
        y_bar = z_bar[0].copy()
        if keeps_pieces:
            add_to(z_bar[1], pieces_bar[1])
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
        d_t0 = ends_bar[0] if is_active(t0) else None
        d_t1 = ends_bar[1] if is_active(t1) else None
        return None, d_t0, d_t1, give_cotangents(args, sums), None, None

    return back


# The reverse of an integration by another one: the continuous adjoint.
#
# The state, its cotangent and the cotangents of the arguments are integrated backwards together, by steps of their own.
# Memory does not grow with the number of steps. What comes out is precise to the tolerances, but it is not the
# derivative of what was computed.
#
# Source: Chen et al.: Neural ordinary differential equations, NeurIPS 2018; Pontryagin's adjoint.

_MOST_STEPS = 1_000_000


def continuous(f: Any, method: Method) -> Any:
    """The integration of a right-hand side, with the derivative of the differential equation."""
    march = marching(f, watching(()), method)

    def augmented(config, y0, t0, t1, args, wanted, settings):  # type: ignore[no-untyped-def]
        course = march(y0.value, t0.value, t1.value, args.value, wanted.value, settings.value)
        shadow = zero_shadow(course) if config.needs_shadow else None
        states = y0.value.copy(), course.rows.copy(), course.last.copy()
        given = settings.value
        tolerances = given.rtol.copy(), given.atol.copy(), given.longest
        kept = kept_arguments(config, 3, args), states, wanted.value.copy(), tolerances
        return AugmentedReturn(course, shadow, kept)

    return attach(march, augmented_primal=augmented, reverse=_continuous_reverse_of(f), body_otherwise=True)


def _backwards(f: Any) -> Any:
    """The right-hand side of the state, its cotangent and the cotangents of the arguments, one after the other."""

    @inner_jitable
    def backwards(t, z, config, args, values):  # type: ignore[no-untyped-def]
        n = values[1].size
        y, cotangent, y_bar = z[:n].copy(), z[n : 2 * n].copy(), np.zeros(n)
        slope = np.zeros((1, z.size))
        put(slope[0, :n], f(t, y, *values[0]))
        sums = pull(config, f, (t, y), (None, y_bar), args, values[0], cotangent, zero_cotangents(args))
        for j in range(n):
            slope[0, n + j] = -y_bar[j]
        add(slope[:, 2 * n :], 0, -1.0, sums)
        return slope[0]

    return backwards


@inner_jitable
def _inner(one, other):  # type: ignore[no-untyped-def]
    total = 0.0
    for j in range(one.size):
        total += one[j] * other[j]
    return total


@inner_jitable
def _largest(array):  # type: ignore[no-untyped-def]
    found = 0.0
    for x in array.flat:
        if not abs(x) <= found:
            found = abs(x)
    return found


@inner_jitable
def _extended(tolerances, size):  # type: ignore[no-untyped-def]
    """Tolerances of the state, followed by the smallest of them for its cotangents and those of the arguments."""
    smallest = np.inf
    for tolerance in tolerances:
        smallest = min(smallest, tolerance)
    found = np.full(size, smallest)
    found[: tolerances.size] = tolerances
    return found


def _continuous_reverse_of(f: Any) -> Any:
    march = marching(_backwards(f), watching(()), METHODS["dopri5"])

    @inner_jitable
    def back_from(config, cotangent, kept, t0, t1, args):  # type: ignore[no-untyped-def]
        values, (start, rows, last), wanted, (given_rtol, given_atol, longest) = kept
        n, like = start.size, zero_cotangents(args)
        rows_bar, last_bar = part(cotangent.rows, rows), part(cotangent.last, last)
        wanted_bar, z = np.zeros(wanted.size), np.zeros(2 * n + room(like, 1).size)
        # tolerances are for cotangents of size 1
        size = max(_largest(rows_bar), _largest(last_bar))
        scale = 1.0 / size if size > 0.0 else 0.0
        rtol, atol = _extended(given_rtol, z.size), _extended(given_atol, z.size)
        tolerances = Settings(rtol, atol, 0.0, longest, _MOST_STEPS, _MOST_STEPS, (), ())
        put(z[:n], last)
        for j in range(n):
            z[n + j] = scale * last_bar[j]
        d_t1 = _inner(last_bar, f(t1, last, *values))
        reached = t1
        for i in range(wanted.size, -1, -1):
            target = wanted[i - 1] if i > 0 else t0
            if size > 0.0 and target != reached:
                nothing = np.zeros(0)
                z = march(z, reached, target, (config, args, (values, start)), nothing, tolerances).last.copy()
            reached = target
            if i > 0:
                put(z[:n], rows[i - 1])
                wanted_bar[i - 1] = _inner(rows_bar[i - 1], f(reached, rows[i - 1], *values))
                for j in range(n):
                    z[n + j] += scale * rows_bar[i - 1, j]
        y_bar, sums = np.empty(n), np.empty((1, z.size - 2 * n))
        for j in range(n):
            y_bar[j] = size * z[n + j]
        for j in range(sums.size):
            sums[0, j] = size * z[2 * n + j]
        d_t0 = -_inner(y_bar, f(t0, start, *values))
        return taken(sums, 0, like), y_bar, d_t0, d_t1, wanted_bar

    def back(config, cotangent, tape, y0, t0, t1, args, wanted, settings):  # type: ignore[no-untyped-def]
        sums, d_t0, d_t1 = zero_cotangents(args), 0.0, 0.0
        if is_active(cotangent):
            sums, y_bar, d_t0, d_t1, wanted_bar = back_from(config, cotangent, tape, t0.value, t1.value, args)
            if is_active(y0):
                add_to(y0.shadow, y_bar)
            if is_active(wanted):
                add_to(wanted.shadow, wanted_bar)
        given = give_cotangents(args, sums)
        return None, d_t0 if is_active(t0) else None, d_t1 if is_active(t1) else None, given, None, None

    return back
