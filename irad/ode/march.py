"""The integration from one end to the other, and one step of it for the reverse sweep.

Places are shares of the whole length, 0 to 1, and constant to the derivative. A change of an end stretches all steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.inner import inner_jitable, inner_njit
from irad.ode.dense import crossing, put, put_between, refining
from irad.ode.explicit import classical, dormand_prince
from irad.ode.rosenbrock import rodas

# Step sizes: how large an error is, and what that makes the next step. All of it is constant to the derivative.

_SAFETY, _SMALLEST, _LARGEST = 0.9, 0.2, 10.0
_MEMORY = 0.04  # how much the last error counts, in powers of errors: Hairer's beta for Dormand–Prince


@inactive_in_irad
@inner_njit
def error_size(error, y, y1, rtol, atol):  # type: ignore[no-untyped-def]
    """The root mean square of an error relative to what is tolerated; at most 1 if the step is accepted, or NaN."""
    if y.size == 0:
        return 0.0
    total = 0.0
    for i in range(y.size):
        size = error[i] / (atol + rtol * max(abs(y[i]), abs(y1[i])))
        total += size * size
    return np.sqrt(total / y.size)


@inactive_in_irad
@inner_njit
def first_share(y, slope, length, rtol, atol, first):  # type: ignore[no-untyped-def]
    """The first step as a share of the whole length: what is asked for, or else a hundredth of what changes ``y``."""
    if length == 0.0:
        return 1.0
    if first > 0.0:
        return min(first / abs(length), 1.0)
    size = speed = 0.0
    for i in range(y.size):
        scale = atol + rtol * abs(y[i])
        size += (y[i] / scale) ** 2
        speed += (slope[i] / scale) ** 2
    step = 0.01 * np.sqrt(size / speed) if size > 1e-10 and speed > 1e-10 else 1e-6
    return min(step / abs(length), 1.0)


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


class Method(NamedTuple):
    """A way to make steps.

    Attributes:
        step_of: makes the step of a right-hand side.
        order: of the error estimate, and 1; 0 if steps are of one size.
        calls: of the right-hand side in a step.
    """

    step_of: Any
    order: int
    calls: int


METHODS = {"rk4": Method(classical, 0, 4), "dopri5": Method(dormand_prince, 5, 6), "rodas": Method(rodas, 4, 6)}


class Course(NamedTuple):
    """Results of an integration.

    Attributes:
        rows: the state at each of the times that were asked for.
        last: the state at the end of the last step.
        times: of the events.
        states: at the events.
        counts: of rows, events, steps, rejected steps; and whether an event ended it.
        places: where steps end, the first is 0; empty if all are of one size.
        row_steps: the step of each row.
        event_steps: the step of each event.
        shares: where in its step an event is.
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


class Settings(NamedTuple):
    """Numbers that have no derivative.

    Attributes:
        rtol: relative tolerance.
        atol: absolute tolerance.
        first: the first step; 0 to choose it.
        steps: the most steps, or their number if they are of one size.
        direction: of the event: rising, falling (-1), both (0).
        terminal: which event is the last; 0 if none is.
    """

    rtol: float
    atol: float
    first: float
    steps: int
    direction: int
    terminal: int


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
def _following(place, size, steps, most):  # type: ignore[no-untyped-def]
    """The point at which a step is to end; a short rest is not left over."""
    if steps >= most:
        raise RuntimeError("a differential equation takes more steps than max_steps")
    following = 1.0 if place + 1.01 * size >= 1.0 else place + size
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


def noting(event: Any) -> Any:
    """A function that appends an event to those before it: ``(events, count, share, step, args) -> events``."""
    refine = refining(event)

    @inner_jitable
    def noted(events, count, share, step, args):  # type: ignore[no-untyped-def]
        times, states, event_steps, shares = events
        steps, t, h, y, y1, dense = step
        times, states = _grown(times, count), _with_row(states, count)
        event_steps, shares = _grown(event_steps, count), _grown(shares, count)
        times[count], state = refine(share, t, h, y, y1, dense, args)
        put(states[count], state)
        event_steps[count], shares[count] = steps, share
        return times, states, event_steps, shares

    return noted


def marching(f: Any, event: Any, method: Method) -> Any:
    """The integration of a right-hand side: ``(y0, t0, t1, args, wanted, settings) -> Course``."""
    step, find, note = method.step_of(f), crossing(event), noting(event)
    valued = event if event is not None else inner_jitable(lambda t, y: 0.0)
    has_event, order, read = event is not None, method.order, reading(step)

    @inner_jitable
    def begin(y0, t0, length, args, settings):  # type: ignore[no-untyped-def]
        """The slope, the first step's share, and the value of the event."""
        slope = np.empty(y0.size)
        put(slope, f(t0, y0, *args))
        size = 1.0 / settings.steps
        if order > 0:
            size = first_share(y0, slope, length, settings.rtol, settings.atol, settings.first)
        return slope, size, valued(t0, y0, *args) if has_event else 0.0

    @inner_njit
    def march(y0, t0, t1, args, wanted, settings):  # type: ignore[no-untyped-def]
        rtol, atol, _, most, direction, terminal = settings
        length, n, y = t1 - t0, y0.size, y0
        slope, size, before = begin(y0, t0, length, args, settings)
        rows, row_steps = np.zeros((wanted.size, n)), np.zeros(wanted.size, np.int64)
        events = np.zeros(0), np.zeros((0, n)), np.zeros(0, np.int64), np.zeros(0)
        places = np.zeros(0 if order == 0 else 16)
        row = count = steps = rejected = ended = 0
        place, error_before, was_rejected = 0.0, 1e-4, False
        while place < 1.0 and ended == 0:
            following = _following(place, size, steps + rejected, most) if order > 0 else (steps + 1) / most
            t, h = t0 + place * length, (following - place) * length
            y1, slope1, error, dense = step(t, h, y, slope, args)
            if order > 0:
                wrong = error_size(error, y, y1, rtol, atol)
                if not wrong <= 1.0:
                    rejected += 1
                    was_rejected = True
                    size = min(size, following - place) * shrinking(wrong, order)  # the difference may round up
                    continue
                longer = factor(wrong, error_before, order)
                size = (following - place) * (min(longer, 1.0) if was_rejected else longer)
                error_before, was_rejected = max(wrong, 1e-4), False
                places = _grown(places, steps + 1)
                places[steps + 1] = following
            reached, made = t0 + following * length, (steps, t, h, y, y1, dense)
            if has_event:
                after = valued(reached, y1, *args)
                share = find(t, h, y, y1, dense, before, after, direction, args)
                if share >= 0.0:
                    events = note(events, count, share, made, args)
                    count += 1
                    if count == terminal:
                        ended = 1
                        reached = events[0][count - 1]
                before = after
            is_last = following == 1.0 and ended == 0
            row = read(rows, row_steps, row, wanted, reached, length, is_last, made, slope, args)
            y, slope, place = y1, slope1, following
            steps += 1
        times, states, event_steps, shares = events
        counts = np.array([row, count, steps, rejected, ended])
        return Course(
            rows, y, times[:count], states[:count], counts, places[: steps + 1], row_steps, event_steps, shares
        )

    return march


def unit_of(f: Any, event: Any, method: Method) -> Any:
    """One accepted step and what is read from it: ``(z, ends, place, following, wanted, share, *args)``.

    ``z`` has the state and its slope as rows. What is given are the same at the end of the step, the state at each time
    that is wanted, and the time and the state of an event, if its share of the step is not negative.
    """
    step, refine = method.step_of(f), refining(event)
    has_event, put_row = event is not None, rows_of(step)

    @inner_njit
    def unit(z, ends, place, following, wanted, share, *args):  # type: ignore[no-untyped-def]
        length = ends[1] - ends[0]
        t, h = ends[0] + place * length, (following - place) * length
        y1, slope1, _, dense = step(t, h, z[0], z[1], args)
        z1, rows, time, state = np.empty(z.shape), np.empty((wanted.size, y1.size)), 0.0, np.zeros(y1.size)
        put(z1[0], y1)
        put(z1[1], slope1)
        for i in range(wanted.size):
            put_row(rows[i], wanted[i], t, h, z[0], y1, z[1], dense, args)
        if has_event and share >= 0.0:
            time, found = refine(share, t, h, z[0], y1, dense, args)
            put(state, found)
        return z1, rows, time, state

    return unit
