"""The numbers of steps that run again, against those that are known to be the fewest."""

from __future__ import annotations

from functools import cache
from math import comb

from irad.api.checkpointing.loops import distance, repetitions, replaced, reruns


@cache
def fewest(steps: int, snapshots: int) -> int:
    """By trying every place for the next snapshot."""
    if steps <= 1:
        return 0
    if snapshots == 1:
        return steps * (steps - 1) // 2
    return min(j + fewest(steps - j, snapshots - 1) + fewest(j, snapshots) for j in range(1, steps))


@cache
def taken(steps: int, snapshots: int) -> int:
    """With the places that the schedule chooses."""
    if steps <= 1:
        return 0
    if snapshots == 1:
        return sum(distance(length, 1) for length in range(2, steps + 1))
    j = distance(steps, snapshots)
    assert 1 <= j < steps
    return j + taken(steps - j, snapshots - 1) + taken(j, snapshots)


def closed_form(steps: int, snapshots: int) -> int:
    """Griewank and Walther 2000, equation (3): r l - beta(s + 1, r - 1)."""
    r = next(r for r in range(steps) if comb(snapshots + r, snapshots) >= steps)
    return r * steps - (comb(snapshots + r, snapshots + 1) if r else 0)


def test_as_few_steps_run_again_as_possible() -> None:
    assert taken(10, 3) == 15  # the example of the paper
    for snapshots in range(1, 8):
        for steps in range(1, 70):
            found = taken(steps, snapshots)
            assert found == fewest(steps, snapshots) == closed_form(steps, snapshots) == reruns(steps, snapshots)
    assert taken(100_000, 50) == closed_form(100_000, 50) == reruns(100_000, 50) == 375_196


def test_a_loop_of_unknown_length_repeats_a_step_at_most_once_more_often() -> None:
    for snapshots in (2, 3, 5, 10, 20):
        levels, places = [0], [0]
        for steps in range(2, 600):
            old = replaced(levels, snapshots)
            level = levels[old] + 1 if old == len(levels) - 1 else 0
            if old >= 0:
                del levels[old], places[old]
            levels.append(level)
            places.append(steps - 1)
            parts = list(zip(places, [*places[1:], steps], range(snapshots, 0, -1), strict=False))
            assert places[0] == 0
            assert len(places) <= snapshots
            total = steps - 1 + sum(reruns(end - start, room) for start, end, room in parts)
            assert total <= 1.5 * closed_form(steps, snapshots) + 1
            most = max(1 + repetitions(end - start, room)[0] for start, end, room in parts)
            assert most <= repetitions(steps, snapshots)[0] + 1
