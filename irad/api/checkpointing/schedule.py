"""Where to take snapshots of a loop that is run backwards, so that as few steps as possible run again.

A snapshot is the state before a step. Reversing step ``i`` needs the state before it, which is computed again from the
last snapshot at or before it. `distance` gives the best place for the next snapshot where the number of steps is known;
`replaced` says, in a loop whose length is not known, which snapshot is given up for another.

Source: Griewank, Walther: Revolve, ACM TOMS 26 (2000) 19-45; Wang, Moin, Iaccarino: Minimal repetition dynamic
checkpointing, SIAM J. Sci. Comput. 31 (2009) 2549-2567.
"""

from __future__ import annotations

from numba.extending import register_jitable


def repetitions(steps: int, snapshots: int) -> tuple[int, int]:
    """How often a step has to run again at most, ``r``, and ``beta(snapshots, r)``: the most steps that this allows.

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
    """Which snapshot makes room for one of the state that a loop of unknown length has reached; -1 if there is room.

    A snapshot has level 0 at first. One with a snapshot of a higher level behind it is given up. If there is none, the
    last one is, and what takes its place is a level higher than it.

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
    register_jitable(_function)
