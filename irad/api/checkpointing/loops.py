"""The sweeps of a checkpointed loop, as code that a rule calls.

The snapshots are a list of pairs: a state, and that of the random generators where a step draws numbers. Three lists of
integers go with it: the numbers of the snapshots in use, in the order of their steps; these steps; and the numbers of
those that are free. The first snapshot, of the initial state, is always in use: a pullback that runs again begins with
it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.extending import register_jitable

from irad.api.checkpointing.random_state import put_random_state, random_state
from irad.api.checkpointing.rules import are_kept
from irad.api.checkpointing.schedule import distance, replaced
from irad.api.checkpointing.state import advanced
from irad.api.checkpointing.values import copied


@register_jitable
def snapshot(step, state, arguments):  # type: ignore[no-untyped-def]
    """The state before a step, with that of the random generators."""
    return copied(state), random_state(step, (state, *arguments))


@register_jitable
def _take(snapshots, used, places, free, place, taken):  # type: ignore[no-untyped-def]
    """Puts a snapshot in place of one that is free, if there is any."""
    if len(free) > 0:
        used.append(free.pop())
        snapshots[used[-1]] = taken
    else:
        used.append(len(snapshots))
        snapshots.append(taken)
    places.append(place)


@register_jitable
def begun(first):  # type: ignore[no-untyped-def]
    """The lists, with a snapshot of the initial state: ``(snapshots, used, places, free)``."""
    free = [0]
    free.pop()
    return [first], [0], [0], free


def counted_sweep(most: int) -> Callable[..., Any]:
    """The first sweep of a loop of a known number of steps, which holds at most so many snapshots."""

    @register_jitable
    def sweep(config, step, steps, state, arguments, held):  # type: ignore[no-untyped-def]
        snapshots, used, places, free = begun(snapshot(step, state, arguments))
        ahead = steps + 1  # what comes behind the loop is like a step, and the first to be reversed
        following = distance(ahead, most) if most > 1 else steps
        for i in range(steps):
            if i == following:
                _take(snapshots, used, places, free, i, snapshot(step, state, arguments))
                room = most - len(used) + 1
                following = i + distance(ahead - i, room) if room > 1 else steps
            state = advanced(step, state, arguments)
            are_kept(config, step, held, arguments)
        return state, (snapshots, used, places, free, max(steps, 0))

    found: Callable[..., Any] = sweep
    return found


def growing_sweep(most: int) -> Callable[..., Any]:
    """The first sweep of a loop that runs while a condition holds."""

    @register_jitable
    def sweep(config, step, condition, state, arguments, held):  # type: ignore[no-untyped-def]
        snapshots, used, places, free = begun(snapshot(step, state, arguments))
        levels, steps = [0], 0
        while condition(state, *arguments):
            if steps > 0 and most > 1:
                level, old = 0, replaced(levels, most)
                if old >= 0:
                    if old == len(levels) - 1:
                        level = levels[old] + 1
                    free.append(used.pop(old))
                    places.pop(old)
                    levels.pop(old)
                _take(snapshots, used, places, free, steps, snapshot(step, state, arguments))
                levels.append(level)
            state = advanced(step, state, arguments)
            are_kept(config, step, held, arguments)
            steps += 1
        return state, (snapshots, used, places, free, steps)

    found: Callable[..., Any] = sweep
    return found


def recovering(most: int) -> Callable[..., Any]:
    """A function that gives the state before a step, in memory of its own; the steps behind it have been reversed."""

    @register_jitable
    def recovered(step, index, snapshots, used, places, free, arguments):  # type: ignore[no-untyped-def]
        at = places[-1]
        state, drawing = snapshots[used[-1]]
        put_random_state(drawing)
        if at == index and index > 0:
            places.pop()
            free.append(used.pop())
            return state
        state = copied(state)
        while at < index:
            room = most - len(used) + 1
            count = distance(index + 1 - at, room)
            for _ in range(count):
                state = advanced(step, state, arguments)
            at += count
            if at < index:
                _take(snapshots, used, places, free, at, snapshot(step, state, arguments))
        return copied(state)  # two of its arrays may be one, or one of the arguments

    found: Callable[..., Any] = recovered
    return found
