"""The integration from one end to the other, and one step of it for the reverse sweep.

Places are shares of the whole length, 0 to 1, and constant to the derivative. A change of an end stretches all steps.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.inner import inner_jitable, inner_njit
from irad.ode.dense import just_after, piece_of, put, put_between
from irad.ode.events import NEVER, Watch, any_changes, earliest
from irad.ode.explicit import TABLEAUX, runge_kutta
from irad.ode.radau import radau
from irad.ode.rosenbrock import rodas

# Step sizes: how large an error is, and what that makes the next step. All of it is constant to the derivative.

_SAFETY, _SMALLEST, _LARGEST = 0.9, 0.2, 10.0
_MEMORY = 0.04  # how much the last error counts, in powers of errors: Hairer's beta for Dormand–Prince


@inactive_in_irad
@inner_njit
def error_size(h, kept, weights, y, y1, rtol, atol):  # type: ignore[no-untyped-def]
    """The size of an error relative to what is tolerated; at most 1 if the step is accepted, or NaN.

    The error is ``h`` times weighted rows; the size is the root mean square. A second estimate, of lower order, makes
    it smaller where the error falls off as fast as it should (Hairer, Nørsett, Wanner: Solving Ordinary Differential
    Equations I, II.10).
    """
    if y.size == 0:
        return 0.0
    total = lower = 0.0
    for i in range(y.size):
        scale = atol[i] + rtol[i] * max(abs(y[i]), abs(y1[i]))
        for k in range(weights.shape[0]):
            error = 0.0
            for j in range(weights.shape[1]):
                error += weights[k, j] * kept[j, i]
            square = (h * error / scale) ** 2
            if k == 0:
                total += square
            else:
                lower += square
    if lower > 0.0:
        return total / np.sqrt((total + 0.01 * lower) * y.size)
    return np.sqrt(total / y.size)


@inactive_in_irad
@inner_njit
def first_share(y, slope, length, settings):  # type: ignore[no-untyped-def]
    """The first step as a share of the whole length: what is asked for, or else a hundredth of what changes ``y``."""
    rtol, atol = settings.rtol, settings.atol
    if length == 0.0:
        return 1.0
    if settings.first > 0.0:
        return min(settings.first / abs(length), 1.0)
    size = speed = 0.0
    for i in range(y.size):
        scale = atol[i] + rtol[i] * abs(y[i])
        size += (y[i] / scale) ** 2
        speed += (slope[i] / scale) ** 2
    step = 0.01 * np.sqrt(size / speed) if size > 1e-10 and speed > 1e-10 else 1e-6
    return min(step / abs(length), 1.0)


@inactive_in_irad
@inner_njit
def longest_share(length, settings):  # type: ignore[no-untyped-def]
    """The longest step as a share of the whole length."""
    return settings.longest / abs(length) if length != 0.0 else 1.0


@inactive_in_irad
@inner_njit
def factor(size, before, order):  # type: ignore[no-untyped-def]
    """By what the next step is longer, after an accepted one: a PI controller.

    Args:
        size: of the error.
        before: of the error of the step before.
        order: of the error estimate, and 1.
    """
    if size == 0.0:
        return _LARGEST
    found = _SAFETY * size ** -(1.0 / order - 0.75 * _MEMORY) * before**_MEMORY
    return min(max(found, _SMALLEST), _LARGEST)


@inactive_in_irad
@inner_njit
def shrinking(size, order):  # type: ignore[no-untyped-def]
    """By what a rejected step is shorter when it is tried again."""
    if not np.isfinite(size):
        return 0.1
    return min(max(_SAFETY * size ** (-1.0 / order), _SMALLEST), 0.9)


@inactive_in_irad
@inner_njit
def rest_of_steps(size, length, rest, whole, settings):  # type: ignore[no-untyped-def]
    """The next step and the longest one as shares of what is left of the time, and the number of equal steps in it."""
    count = np.ceil(settings.steps * rest / whole - 1e-9)
    return size * length / rest, longest_share(rest, settings), max(int(count), 1)


class Method(NamedTuple):
    """A way to make steps.

    Attributes:
        steps_of: makes the `irad.ode.dense.Steps` of a right-hand side.
        order: of the error estimate, and 1; 0 if steps are of one size.
        calls: of the right-hand side in a step.
        further: calls where the solution within a step is needed.
    """

    steps_of: Any
    order: int
    calls: int
    further: int = 0


METHODS = {
    name: Method(partial(runge_kutta, tableau=each), each.order, len(each.stages), len(each.further))
    for name, each in TABLEAUX.items()
} | {"rodas": Method(rodas, 4, 6), "radau": Method(radau, 4, 4)}


def has_equal_steps(name: str) -> bool:
    """True for the name of a method without error control."""
    return name in METHODS and METHODS[name].order == 0


class Course(NamedTuple):
    """Results of an integration.

    Attributes:
        rows: the state at each of the times that were asked for.
        last: the state at the end of the last step.
        times: of the events.
        states: at the events.
        counts: of rows, events, steps, rejected steps, steps within which something was read; and whether an
            event ended it.
        places: where steps end, the first is 0; empty if all are of one size.
        row_steps: the step of each row.
        event_steps: the step of each event.
        shares: where in its step an event is.
        which: the number of the function of each event.
        applied: for each event, 1 if it had an effect, which ends its step; empty if no event has one.
        dense: if all steps are kept, the solution within each of them, see `irad.ode.dense.piece_of`, and the slope at
            the beginning; an empty tuple if not.
    """

    rows: Any
    last: Any
    times: Any
    states: Any
    counts: Any
    places: Any
    row_steps: Any
    event_steps: Any
    shares: Any
    which: Any
    applied: Any
    dense: Any


class Settings(NamedTuple):
    """Numbers that have no derivative.

    Attributes:
        rtol: relative tolerance of each part of the state.
        atol: absolute tolerance of each part of the state.
        first: the first step; 0 to choose it.
        longest: the longest step.
        steps: the most steps, or their number if they are of one size.
        limit: the most steps with what effects of events add to their number.
        directions: of each event: rising, falling (-1), both (0). An empty tuple if there are no events.
        terminal: for each event, which occurrence ends the integration; 0 if none does.
    """

    rtol: Any
    atol: Any
    first: float
    longest: float
    steps: int
    limit: int
    directions: Any
    terminal: Any


@inner_jitable
def _grown(array, count):  # type: ignore[no-untyped-def]
    """An array with room for one more."""
    if count < array.shape[0]:
        return array
    more = np.zeros(2 * count + 8, array.dtype)
    for i in range(count):
        more[i] = array[i]
    return more


@inner_jitable
def _with_row(rows, count):  # type: ignore[no-untyped-def]
    """Rows with room for one more."""
    if count < rows.shape[0]:
        return rows
    more = np.zeros((2 * count + 8, rows.shape[1]))
    for i in range(count):
        put(more[i], rows[i])
    return more


@inner_jitable
def _with_piece(pieces, count, piece):  # type: ignore[no-untyped-def]
    """Pieces with one more."""
    if count == pieces.shape[0]:
        more = np.zeros((2 * count + 8, piece.shape[0], piece.shape[1]))
        for i in range(count):
            more[i] = pieces[i]
        pieces = more
    pieces[count] = piece
    return pieces


@inner_jitable
def _check_steps(steps, most):  # type: ignore[no-untyped-def]
    if steps >= most:
        raise RuntimeError("a differential equation takes more steps than max_steps")


@inactive_in_irad
@inner_njit
def _check_progress(t, start, t0, t1, is_same):  # type: ignore[no-untyped-def]
    """Refuses an event that follows itself so closely that rounding decides in which order the two happen."""
    if is_same and (t - just_after(start, t0, t1)) * (t1 - t0) <= 0.0:
        raise RuntimeError(
            "an effect makes the same event happen again in no time: end the integration before, with terminal"
        )


@inner_jitable
def _following(place, size, longest, steps, most):  # type: ignore[no-untyped-def]
    """The point at which a step is to end; a short rest is not left over."""
    _check_steps(steps, most)
    size = min(size, longest)
    following = 1.0 if place + min(1.01 * size, longest) >= 1.0 else place + size
    if following <= place:
        raise RuntimeError("the steps of a differential equation become too small: is it stiff, or singular?")
    return following


def rows_of(step: Any) -> Any:
    """A function that writes the state at a time within a step."""

    @inner_jitable
    def put_row(out, wanted, t, h, y, y1, slope, dense, args):  # type: ignore[no-untyped-def]
        if h == 0.0:  # shares of it say nothing of how a row changes with its time: a step of its own does
            put(out, step(t, wanted - t, y, slope, args)[0])
        else:
            put_between(out, y, y1, dense, (wanted - t) / h)

    return put_row


def reading(step: Any) -> Any:
    """A function that writes the rows whose times a step has reached, and returns which row is next."""
    put_row = rows_of(step)

    @inner_jitable
    def read(rows, row_steps, row, wanted, reached, length, is_last, made, slope, args):  # type: ignore[no-untyped-def]
        steps, t, h, y, y1, dense = made
        while row < wanted.size and (is_last or (wanted[row] - reached) * length <= 0.0):
            put_row(rows[row], wanted[row], t, h, y, y1, slope, dense, args)
            row_steps[row] = steps
            row += 1
        return row

    return read


def noting(watch: Watch) -> Any:
    """A function that appends those events of a step that come before its end, or before the integration ends.

    Returns:
        ``(events, occurred, shares, terminal, ends, step, args) -> (events, ended, jumps)``; the last is 1 if the step
        ends with an effect. The numbers of occurrences are updated.
    """
    refine, effective, has_effect = watch.refine, watch.effective, watch.effect is not None

    @inner_jitable
    def noted(events, occurred, found, terminal, ends, step, args):  # type: ignore[no-untyped-def]
        times, states, event_steps, shares, whiches, applied, count = events
        steps, t, h, y, y1, dense = step
        which, ended, jumps = earliest(found), 0, 0
        while which >= 0 and ended == 0 and jumps == 0:
            times, states = _grown(times, count), _with_row(states, count)
            event_steps, shares, whiches = _grown(event_steps, count), _grown(shares, count), _grown(whiches, count)
            times[count], state = refine(found[which], which, t, h, y, y1, dense, args)
            put(states[count], state)
            event_steps[count], shares[count], whiches[count] = steps, found[which], which
            found[which] = NEVER
            occurred[which] += 1
            ended = 1 if occurred[which] == terminal[which] else 0
            if has_effect:
                # at the end there is no time left for an effect
                is_inside = (just_after(times[count], *ends) - ends[1]) * (ends[1] - ends[0]) < 0.0
                jumps = 1 if effective[which] and ended == 0 and is_inside else 0
                applied = _grown(applied, count)
                applied[count] = jumps
            count += 1
            which = earliest(found)
        return (times, states, event_steps, shares, whiches, applied, count), ended, jumps

    return noted


def jumping(f: Any, watch: Watch) -> Any:
    """A function that gives the state and its slope after an effect: ``(t, y, which, args)``; None if there is none."""
    affect = watch.effect
    if affect is None:
        return None

    @inner_jitable
    def jump(t, y, which, args):  # type: ignore[no-untyped-def]
        y1, slope1 = np.empty(y.size), np.empty(y.size)
        affect(y1, t, y.copy(), which, *args)
        put(slope1, f(t, y1, *args))
        return y1, slope1

    return jump


def keeps_places(watch: Watch, method: Method) -> bool:
    """True if where steps end is not known from their number."""
    return method.order > 0 or watch.effect is not None


class Reads(NamedTuple):
    """Outputs of steps besides events.

    Attributes:
        rows: whether there may be times that are asked for.
        pieces: whether all pieces are kept.
    """

    rows: bool = True
    pieces: bool = False


ROWS = Reads()
"""Rows only."""


def marching(f: Any, watch: Watch, method: Method, reads: Reads = ROWS) -> Any:
    """The integration of a right-hand side: ``(y0, t0, t1, args, wanted, settings) -> Course``."""
    step, weights, is_scaled, dense = method.steps_of(f)
    values, seek, note, jump, resume = watch.values, watch.seek, noting(watch), jumping(f, watch), watch.resume
    has_event, has_effect, has_places = watch.number > 0, watch.effect is not None, keeps_places(watch, method)
    order, read, keeps_pieces = method.order, reading(step), reads.pieces

    @inner_jitable
    def begin(y0, t0, length, args, settings):  # type: ignore[no-untyped-def]
        """The slope, the first step's share, and the values of events."""
        slope = np.empty(y0.size)
        put(slope, f(t0, y0, *args))
        size = 1.0 / settings.steps
        if order > 0:
            size = first_share(y0, slope, length, settings)
        return slope, size, values(t0, y0, args)

    @inner_njit
    def march(y0, t0, t1, args, wanted, settings):  # type: ignore[no-untyped-def]
        rtol, atol, most, directions = settings.rtol, settings.atol, settings.steps, settings.directions
        # what follows an effect is an integration from there: its places are shares of the time that is left
        start, length, n, y = t0, t1 - t0, y0.size, y0
        slope, size, before = begin(y0, t0, length, args, settings)
        longest, first, number, latest = longest_share(length, settings), 0, most, -1
        rows, row_steps = np.zeros((wanted.size, n)), np.zeros(wanted.size, np.int64)
        nothing, none = np.zeros(0), np.zeros(0, np.int64)
        events = nothing, np.zeros((0, n)), none, nothing, none, none, 0
        occurred, after = (np.zeros(len(before), np.int64) if has_event else none), before
        places = np.zeros(16 if has_places else 0)
        pieces, first_slope = np.zeros((0, 0, n)), slope
        row = steps = rejected = looked = ended = jumps = 0
        place, error_before, was_rejected = 0.0, 1e-4, False
        while place < 1.0 and ended == 0:
            following = (steps - first + 1) / number
            if order > 0:
                following = _following(place, size, longest, steps + rejected, most)
            elif has_effect:
                _check_steps(steps, settings.limit)
            t, h = start + place * length, (following - place) * length
            y1, slope1, kept = step(t, h, y, slope, args)
            if order > 0:
                wrong = error_size(h if is_scaled else 1.0, kept, weights, y, y1, rtol, atol)
                if not wrong <= 1.0:
                    rejected += 1
                    was_rejected = True
                    size = min(size, following - place) * shrinking(wrong, order)  # the difference may round up
                    continue
                longer = factor(wrong, error_before, order)
                size = (following - place) * (min(longer, 1.0) if was_rejected else longer)
                error_before, was_rejected = max(wrong, 1e-4), False
            if has_places:
                places = _grown(places, steps + 1)
                places[steps + 1] = following
            reached, is_last, crosses = start + following * length, following == 1.0, False
            if has_event:
                after = values(reached, y1, args)
                crosses = any_changes(before, after, directions)
            is_read = row < wanted.size and (is_last or (wanted[row] - reached) * length <= 0.0)
            if keeps_pieces or crosses or is_read:
                made = steps, t, h, y, y1, dense(t, h, y, y1, kept, args)
                looked += 1
                if keeps_pieces:
                    pieces = _with_piece(pieces, steps, piece_of(y, y1, made[5]))
                if has_event:
                    found = seek(t, h, y, y1, made[5], before, after, directions, args)
                    events, ended, jumps = note(events, occurred, found, settings.terminal, (t0, t1), made, args)
                    if ended == 1:
                        reached, is_last = events[0][events[6] - 1], False
                    if jumps == 1:
                        reached, is_last = just_after(events[0][events[6] - 1], t0, t1), False
                row = read(rows, row_steps, row, wanted, reached, length, is_last, made, slope, args)
            y, slope, place = y1, slope1, following
            steps += 1
            if has_effect:  # noqa: SIM102 - a condition of its own, known when this is compiled
                if jumps == 1:
                    t, which = events[0][events[6] - 1], events[4][events[6] - 1]
                    _check_progress(t, start, t0, t1, which == latest)
                    y, slope = jump(t, events[1][events[6] - 1], which, args)
                    after = resume(t, y, slope, length, which, before, after, args)
                    size, longest, number = rest_of_steps(size, length, t1 - t, t1 - t0, settings)
                    start, length, place, first, latest, jumps = t, t1 - t, 0.0, steps, which, 0
            before = after
        times, states, event_steps, shares, whiches, applied, count = events
        counts = np.array([row, count, steps, rejected, looked, ended])
        found = rows, y, times[:count], states[:count], counts, places[: steps + 1], row_steps
        happened = event_steps[:count], shares[:count], whiches[:count], applied[:count]
        dense_steps = (pieces[:steps], first_slope) if keeps_pieces else ()
        return Course(*found, *happened, dense_steps)

    return march


def unit_of(f: Any, watch: Watch, method: Method, reads: Reads = ROWS) -> Any:
    """One accepted step and what is read from it: ``(z, ends, place, following, wanted, shares, which, jumps, *args)``.

    ``z`` has the state and its slope as rows; ``ends`` are those of the time from the last effect on. What is given is
    the same ``z`` at the end of the step; the state at each time that is wanted, if there are rows; the times and
    states of events, whose shares of the step and numbers are known, if there are any; the piece, if pieces are kept;
    and the ends for the next step, if events have effects. The last event has its effect if ``jumps`` is 1. ``wanted``
    is an empty tuple if there are no rows, and so are ``shares`` and ``which`` if there are no events.
    """
    step, _, _, dense = method.steps_of(f)
    refine, has_event, put_row, jump = watch.refine, watch.number > 0, rows_of(step), jumping(f, watch)
    has_rows, keeps_pieces, has_effect = reads.rows, reads.pieces, jump is not None

    @inner_njit
    def unit(z, ends, place, following, wanted, shares, which, jumps, *args):  # type: ignore[no-untyped-def]
        length = ends[1] - ends[0]
        t, h = ends[0] + place * length, (following - place) * length
        y1, slope1, kept = step(t, h, z[0], z[1], args)
        z1, is_read = np.empty(z.shape), keeps_pieces
        put(z1[0], y1)
        put(z1[1], slope1)
        if has_rows:
            rows, is_read = np.empty((wanted.size, y1.size)), is_read or wanted.size > 0
        if has_event:
            times, states = np.zeros(shares.size), np.zeros((shares.size, y1.size))
            is_read = is_read or shares.size > 0
        if is_read:
            polynomial = dense(t, h, z[0], y1, kept, args)
            if has_rows:
                for i in range(wanted.size):
                    put_row(rows[i], wanted[i], t, h, z[0], y1, z[1], polynomial, args)
            if has_event:
                for i in range(shares.size):
                    times[i], state = refine(shares[i], which[i], t, h, z[0], y1, polynomial, args)
                    put(states[i], state)
        piece, ends1 = (piece_of(z[0], y1, polynomial),) if keeps_pieces else (), ends
        if has_effect:
            ends1 = ends.copy()
            if jumps == 1:
                last = shares.size - 1
                ends1[0] = times[last]
                y1, slope1 = jump(times[last], states[last], which[last], args)
                put(z1[0], y1)
                put(z1[1], slope1)
        of_rows, of_events = (rows,) if has_rows else (), (times, states) if has_event else ()
        of_ends = (ends1,) if has_effect else ()
        return (z1, *of_rows, *of_events, *piece, *of_ends)

    return unit
