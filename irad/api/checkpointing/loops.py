"""The first sweep of a checkpointed loop: where to take snapshots, and how the state before a step is recomputed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from irad.api.checkpointing.random_state import put_random_state, random_state
from irad.api.checkpointing.rules import advanced, are_kept
from irad.api.checkpointing.values import copied
from irad.frontend.inner import inner_jitable

# Where to take snapshots of a loop that is run backwards, so that as few steps as possible run again.
#
# A snapshot is the state before a step. Reversing step ``i`` needs the state before it, which is recomputed from
# the last snapshot at or before it. `distance` gives the best place for the next snapshot where the number of steps is
# known; `replaced` says, in a loop whose length is not known, which snapshot is given up for another.
#
# Source: Griewank, Walther: Revolve, ACM TOMS 26 (2000) 19-45; Wang, Moin, Iaccarino: Minimal repetition dynamic
# checkpointing, SIAM J. Sci. Comput. 31 (2009) 2549-2567.


def repetitions(steps: int, snapshots: int) -> tuple[int, int]:
    """The most times ``r`` that a step is run again, and ``beta(snapshots, r)``: the most steps that this allows.

    ``beta(s, r) = (s + r)! / (s! r!)``; ``r`` is the smallest with ``beta(snapshots, r) >= steps``.
    """
    r, most = 0, 1
    while most < steps:
        r += 1
        most = most * (snapshots + r) // r
    return r, most


def reruns(steps: int, snapshots: int) -> int:
    """The fewest steps that run, apart from the run of each step that is reversed at once.

    The snapshot of the initial state counts among ``snapshots``.
    """
    r, most = repetitions(steps, snapshots)
    # r * steps - beta(snapshots + 1, r - 1)
    return r * steps - most * r // (snapshots + 1)


def distance(steps: int, snapshots: int) -> int:
    """After how many steps the next snapshot is taken.

    Args:
        steps: from a snapshot to the end of what is to be reversed, at least 2.
        snapshots: that may be held, the one from which the steps begin included. If it is the only one, the steps up to
            the last are the answer.
    """
    if snapshots == 1:
        return steps - 1
    r, most = repetitions(steps, snapshots)
    # beta(snapshots, r - 1), and beta(snapshots - 1, r - 1), …: each from the one before
    before = most * r // (snapshots + r)
    fewer = before * snapshots // (snapshots + r - 1)
    fewer_still = fewer * (snapshots - 1) // (snapshots + r - 2) if r > 1 else 1
    if steps <= before + fewer_still:
        return max(before * (r - 1) // (snapshots + r - 1), 1)
    third = most * snapshots // (snapshots + r)  # beta(snapshots - 1, r)
    for held in (snapshots - 1, snapshots - 2):
        third = third * held // (held + r)
    if steps >= most - third:
        return before
    return steps - fewer - fewer_still


def replaced(levels: list[int], snapshots: int) -> int:
    """Number of the snapshot that the state of a loop of unknown length replaces; -1 if there is room.

    A snapshot has level 0 at first. One that is followed by a snapshot of a higher level is given up. If there is none,
    the last one is, and what takes its place is a level higher than it.

    Args:
        levels: of the snapshots that are held, in the order of their steps; that of the initial state, which stays, is
            not looked at.
        snapshots: that may be held.
    """
    held = len(levels)
    if held < snapshots:
        return -1
    highest = levels[held - 1]
    for i in range(held - 2, 0, -1):
        if levels[i] < highest:
            return i
        highest = max(highest, levels[i])
    return held - 1


for _function in (repetitions, reruns, distance, replaced):
    inner_jitable(_function)


# The sweeps, as code that a rule calls.
#
# The snapshots are a list of pairs: a state, and that of the random generators where a step draws numbers. Three lists
# of integers go with it: the numbers of the snapshots in use, in the order of their steps; these steps; and the numbers
# of those that are free. The first snapshot, of the initial state, is always in use: a pullback that runs again begins
# with it.


@inner_jitable
def snapshot(step, state, arguments):  # type: ignore[no-untyped-def]
    """The state before a step, with that of the random generators."""
    return copied(state), random_state(step, (state, *arguments))


@inner_jitable
def _take(snapshots, used, places, free, place, taken):  # type: ignore[no-untyped-def]
    """Puts a snapshot in place of one that is free, if there is any."""
    if len(free) > 0:
        used.append(free.pop())
        snapshots[used[-1]] = taken
    else:
        used.append(len(snapshots))
        snapshots.append(taken)
    places.append(place)


@inner_jitable
def begun(first):  # type: ignore[no-untyped-def]
    """The lists, with a snapshot of the initial state: ``(snapshots, used, places, free)``."""
    free = [0]
    free.pop()
    return [first], [0], [0], free


def counted_sweep(most: int) -> Callable[..., Any]:
    """The first sweep of a loop of a known number of steps, which holds at most ``most`` snapshots."""

    @inner_jitable
    def sweep(config, step, steps, state, arguments, held):  # type: ignore[no-untyped-def]
        snapshots, used, places, free = begun(snapshot(step, state, arguments))
        ahead = steps + 1  # what follows the loop is like a step, and the first to be reversed
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

    @inner_jitable
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
    """A function that gives the state before a step, in memory of its own; the steps after it have been reversed."""

    @inner_jitable
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
