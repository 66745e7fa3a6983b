"""Events: functions of the time and the state, whose changes of sign within a step are found, and their effects.

The functions of a problem become one, which also takes the number of the event: ``(t, y, which, *args) -> value``. So
do the effects: ``(out, t, y, which, *args)`` writes the state after an event.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba.core import types

from irad.api.forward import pushforward
from irad.errors import SignatureError, SourceLocation
from irad.frontend.generated import function_from
from irad.frontend.inner import inner_jitable, inner_njit, inner_overload
from irad.frontend.numba.messages import described
from irad.ode.dense import put_between, put_effect, slope_between

# of [0, 1], which leave less than the distance between two floats
_HALVINGS = 60
NEVER = 2.0
"""The share of an event that does not happen within a step."""
_ABSENT = types.none, types.Omitted(None), None
_NEARLY = 1e-8
"""Share of the range of an event within a step that counts as zero where the event has happened."""
_SIGN = np.finfo(np.float64).tiny


def events_of(events: Any, compiled: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The functions of the events that a call describes, in Python or by their types.

    Args:
        events: a function, a tuple of functions, or None.
        compiled: gives the compiled function of one of them.
    """
    return tuple(compiled(function) for function in _listed(events))


def _listed(given: Any) -> tuple[Any, ...]:
    if given in _ABSENT:
        return ()
    return tuple(given) if isinstance(given, tuple | list | types.BaseTuple) else (given,)


def effects_of(effects: Any, count: int, compiled: Callable[[Any], Any]) -> tuple[Any, ...]:
    """The functions of the effects that a call describes, None where an event has no effect; empty if none has one.

    Args:
        effects: a function, a tuple of functions and None, or None.
        count: number of events.
        compiled: gives the compiled function of one of them.
    """
    if effects in _ABSENT:
        return ()
    listed = _listed(effects)
    if len(listed) != count:
        raise SignatureError(
            f"effect of a differential equation has {len(listed)} entries for {count} events",
            "pass a function for one event, or a tuple with a function or None for each event",
            "each entry is that of one event",
            SourceLocation.here(),
        )
    found = tuple(None if effect in _ABSENT else compiled(effect) for effect in listed)
    return found if any(effect is not None for effect in found) else ()


def _not_for_each(given: int, events: int) -> SignatureError:
    return SignatureError(
        f"direction or terminal of a differential equation has {given} entries for {events} events",
        "pass a number for all, or a tuple with one for each",
        "each entry is that of one event",
        SourceLocation.here(),
    )


def for_each(given: Any, count: int) -> Any:
    """A number for each event, of one for all or one for each."""
    if isinstance(given, tuple | list) and len(given) != count:
        raise _not_for_each(len(given), count)
    return np.full(count, given, np.int64) if count > 0 else ()


def terminal_of(given: Any, effects: tuple[Any, ...]) -> Any:
    """The occurrences that end the integration: as given, or by default the first of events without an effect."""
    if given not in _ABSENT:
        return given
    return tuple(0 if effect is not None else 1 for effect in effects) or 1


def terminal_in_code(given: Any, effects: tuple[Any, ...]) -> Any:
    """A function that gives the occurrences that end the integration, in compiled code."""
    if given not in _ABSENT:
        return inner_jitable(lambda given: given)
    default = terminal_of(None, effects)
    return inner_jitable(lambda given: default)


def for_each_of(count: int) -> Any:
    """A function of compiled code that gives a number for each of some events, of one for all or one for each."""

    def for_each(given: Any) -> Any:
        raise NotImplementedError

    @inner_overload(for_each, strict=False)
    def _for_each_typed(given: Any) -> Any:
        is_tuple = isinstance(given, types.BaseTuple)
        if is_tuple and len(given) != count:
            raise _not_for_each(len(given), count)
        if count == 0:
            return lambda given: ()
        lines = "".join(f"    found[{i}] = int(given{f'[{i}]' if is_tuple else ''})\n" for i in range(count))
        source = f"def for_each(given):\n    found = empty({count}, int64)\n{lines}    return found\n"
        return function_from("for_each", source, "irad.ode", {"empty": np.empty, "int64": np.int64})

    return for_each


class Watch(NamedTuple):
    """The events of a problem.

    Attributes:
        event: one function for all; None if there are none.
        number: how many there are.
        values: ``(t, y, args)``: their values.
        seek: ``(t, h, y, y1, dense, before, after, direction, args)``: their shares of a step, above 1 where there is
            none.
        refine: see `_refining`.
        effective: for each event, whether it has an effect; None if none has one.
        effect: one function for all effects.
        resume: see `_resuming`.
    """

    event: Any
    number: int
    values: Any
    seek: Any
    refine: Any
    effective: Any = None
    effect: Any = None
    resume: Any = None


def watching(functions: Sequence[Any], effects: Sequence[Any] = ()) -> Watch:
    """The events that functions of time, state and arguments describe, and their effects, if any."""
    if not functions:
        return Watch(None, 0, inner_jitable(lambda t, y, args: ()), None, None)
    event, count = _numbered(functions), len(functions)

    @inner_jitable
    def values(t, y, args):  # type: ignore[no-untyped-def]
        found = np.empty(count)
        for which in range(count):
            found[which] = event(t, y, which, *args)
        return found

    watch = Watch(event, count, values, _seeking(event, count), _refining(event))
    if not effects:
        return watch
    effective = np.array([effect is not None for effect in effects])
    return watch._replace(effective=effective, effect=_numbered_effects(effects), resume=_resuming(event, count))


def _numbered(functions: Sequence[Any]) -> Any:
    """One function for several, with the number of the one that is called."""
    scope = {"as_value": as_value, **{f"f{which}": function for which, function in enumerate(functions)}}
    lines = [f"    if which == {i}:\n        return as_value(f{i}(t, y, *args))\n" for i in range(len(functions) - 1)]
    lines.append(f"    return as_value(f{len(functions) - 1}(t, y, *args))\n")
    return inner_njit(function_from("chosen", f"def chosen(t, y, which, *args):\n{''.join(lines)}", "irad.ode", scope))


def _numbered_effects(effects: Sequence[Any]) -> Any:
    """One function for several effects, which writes the state after an event."""
    given = {f"f{which}": effect for which, effect in enumerate(effects) if effect is not None}
    lines = "".join(f"    if which == {name[1:]}:\n        put(out, {name}(t, y, *args))\n" for name in given)
    source = f"def affect(out, t, y, which, *args):\n{lines}"
    return inner_njit(function_from("affect", source, "irad.ode", {"put": put_effect, **given}))


def as_value(value: Any) -> Any:
    """The value of an event as a float."""
    return float(value)


@inner_overload(as_value, strict=False)
def _as_value_typed(value: Any) -> Any:
    if not isinstance(value, types.Float | types.Integer | types.Boolean):
        raise SignatureError(
            f"an event of a differential equation returns {described(value)}",
            "return a real number",
            "an event is a change of its sign",
            SourceLocation.here(),
        )
    return lambda value: float(value)


@inner_jitable
def changes(before, after, direction):  # type: ignore[no-untyped-def]
    """True if an event changes its sign in the direction that is watched."""
    return (before < 0.0 <= after and direction >= 0) or (before > 0.0 >= after and direction <= 0)


@inner_jitable
def any_changes(before, after, directions):  # type: ignore[no-untyped-def]
    """True if one of several events does."""
    found = False
    for which in range(before.size):
        found = found or changes(before[which], after[which], directions[which])
    return found


@inner_jitable
def earliest(shares):  # type: ignore[no-untyped-def]
    """The number of the next event within a step; -1 if there is no more."""
    found, least = -1, 1.0
    for which in range(shares.size):
        if shares[which] <= least and (found < 0 or shares[which] < least):
            found, least = which, shares[which]
    return found


def _seeking(event: Any, count: int) -> Any:
    @inner_jitable
    def share_of(t, h, y, y1, dense, rises, which, args):  # type: ignore[no-untyped-def]
        low, high, point = 0.0, 1.0, np.empty(y.size)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            put_between(point, y, y1, dense, middle)
            value = event(t + middle * h, point, which, *args)
            if value >= 0.0 if rises else value <= 0.0:
                high = middle
            else:
                low = middle
        return high

    @inner_jitable
    def seek(t, h, y, y1, dense, before, after, directions, args):  # type: ignore[no-untyped-def]
        shares = np.full(count, NEVER)
        for which in range(count):
            if changes(before[which], after[which], directions[which]):
                shares[which] = share_of(t, h, y, y1, dense, before[which] < 0.0, which, args)
        return shares

    return seek


def _refining(event: Any) -> Any:
    """A function that gives the share of an event its derivative, and the state there.

    Where a search ended is a constant. Two steps of Newton's method from there change nothing but that: their
    derivatives up to the third order are those of the implicit function theorem.

    Returns:
        ``(share, which, t, h, y, y1, dense, args) -> (time, state)``.
    """
    derivative = pushforward(event, (0, 1))

    @inner_jitable
    def refined(share, which, t, h, y, y1, dense, args):  # type: ignore[no-untyped-def]
        # The search ended in a constant: only these steps depend on the arguments, so they carry the derivative.
        for _ in range(2):
            point = np.empty(y.size)
            put_between(point, y, y1, dense, share)
            tangents = h, slope_between(y, y1, dense, share)
            value, slope = derivative(t + share * h, point, tangents, which, *args)
            share = share - value / slope
        state = np.empty(y.size)
        put_between(state, y, y1, dense, share)
        return t + share * h, state

    return refined


# What follows an event with an effect.


def _resuming(event: Any, count: int) -> Any:
    """A function that gives the values of events where an integration goes on after an effect.

    Where the event was found its value is zero but for rounding, and so is that of another one at the same time. Such
    a value gets the sign that it has next: of the event, that of its slope; of another one, that from before. So an
    event does not happen a second time at once, and none at the same time is missed.

    Returns:
        ``(t, y, slope, length, which, before, after, args) -> values``, with the values at both ends of the step and
        the length of the integration, which may run backwards.
    """
    derivative = pushforward(event, (0, 1))

    @inner_jitable
    def resumed(t, y, slope, length, which, before, after, args):  # type: ignore[no-untyped-def]
        found = np.empty(count)
        for i in range(count):
            found[i] = event(t, y, i, *args)
            if abs(found[i]) <= _NEARLY * max(abs(before[i]), abs(after[i])):
                next_sign = before[i]
                if i == which:
                    next_sign = derivative(t, y, (1.0, slope), i, *args)[1] * length
                found[i] = _SIGN * np.sign(next_sign)
        return found

    return resumed
