"""Races in random logs, against every pair of accesses and everything that could order it."""

from __future__ import annotations

import numpy as np
import pytest

import irad
from irad.backend.executor.dialect import Kind
from irad.backend.executor.layout import ENTRY, dtype_of
from irad.backend.executor.trace import WarpOrder, races
from tests.cuda.executor.texts import kernel, run

KINDS = [Kind.READ, Kind.READ, Kind.WRITE, Kind.ATOMIC]


def random_log(rng: np.random.Generator, count: int, *, reads: int = 2) -> np.ndarray:
    """Accesses of a few threads to a few bytes."""
    log = np.zeros(count, dtype_of(ENTRY))
    log["address"] = 4096 + rng.integers(0, 24, count)
    log["size"] = 2 ** rng.integers(0, 3, count)
    log["kind"] = rng.choice(KINDS[2 - reads :], count)
    log["thread"] = rng.integers(0, 4, count)
    log["epoch"] = rng.integers(0, 3, count)
    return log


def conflict(one: np.void, other: np.void) -> bool:
    """Whether two accesses are a race, if nothing but barriers of the block orders them."""
    apart = one["address"] >= other["address"] + other["size"] or other["address"] >= one["address"] + one["size"]
    if apart or one["thread"] == other["thread"] or one["epoch"] != other["epoch"]:
        return False
    return not (one["kind"] == other["kind"] != Kind.WRITE)


@pytest.mark.parametrize("seed", range(30))
def test_races_are_the_pairs_that_conflict(seed: int):
    rng = np.random.default_rng(seed)
    log = random_log(rng, int(rng.integers(1, 30)))
    wanted = {(i, j) for j in range(len(log)) for i in range(j) if conflict(log[i], log[j])}
    found = {(race.first, race.second) for race in races(log, log["thread"], log["epoch"])}
    assert found == wanted


def test_an_empty_log_has_none():
    log = np.zeros(0, dtype_of(ENTRY))
    assert list(races(log, log["thread"], log["epoch"])) == []


@pytest.mark.parametrize("seed", range(20))
def test_barriers_of_warps_order_what_a_chain_of_them_connects(seed: int):
    """Moments of threads in the order in which they happened; a barrier joins moments of several threads."""
    rng = np.random.default_rng(seed)
    clocks, history, meetings = [0] * 6, list[tuple[str, object]](), list[tuple[int, int]]()
    for _ in range(30):
        if rng.random() < 0.4:
            members = sorted(rng.choice(6, size=int(rng.integers(2, 4)), replace=False).tolist())
            history.append(("meet", members))
            meetings.append((sum(1 << m for m in members), 0))
            for member in members:
                clocks[member] += 1
        else:
            thread = int(rng.integers(0, 6))
            history.append(("access", (thread, clocks[thread])))
    lanes, firsts = (np.array(each, np.int64) for each in zip(*meetings, strict=True))
    order = WarpOrder(lanes, firsts)
    for start, (word, one) in enumerate(history):
        if word == "meet":
            continue
        reached = {one[0]}
        for later, other in history[start + 1 :]:
            if later == "meet":
                reached |= set(other) if reached & set(other) else set()
            elif other[0] != one[0]:
                assert order.is_ordered(one, other) == (other[0] in reached)


def test_the_block_of_a_race_is_named_among_thousands():
    body = """
  %late = icmp eq i32 %b, 1234
  %lane = select i1 %late, i64 0, i64 %t.64
  %first = mul i32 %b, %d
  %first.64 = sext i32 %first to i64
  %place = add i64 %first.64, %lane
  %to = getelementptr i32, ptr %y, i64 %place
  store i32 1, ptr %to
  ret void"""
    y = np.zeros(2000 * 8, np.int32)
    with pytest.raises(irad.RaceError, match=f"element {1234 * 8} of a0") as caught:
        run(kernel("ptr %y", body), 2000, 8, y, races=True, known=True)
    assert caught.value.blocks == ((1234, 0, 0), (1234, 0, 0))


@pytest.mark.parametrize("distance", [1, 1999])
def test_blocks_far_apart_race(distance: int):
    body = f"""
  %far = icmp eq i32 %b, {distance}
  %row = select i1 %far, i64 0, i64 %i
  %to = getelementptr i64, ptr %y, i64 %row
  store i64 1, ptr %to
  ret void"""
    y = np.zeros(2000, np.int64)
    with pytest.raises(irad.RaceError, match="element 0 of a0") as caught:
        run(kernel("ptr %y", body), 2000, 1, y, races=True, known=True)
    assert set(caught.value.blocks) == {(0, 0, 0), (distance, 0, 0)}
