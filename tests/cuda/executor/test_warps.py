"""Shuffles, votes, matches and barriers with predicates, against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from irad.backend.cuda.kernel import KernelModule
from irad.backend.executor.scheduler import SCHEDULES, Schedule
from tests.cuda.executor.texts import kernel, run

FULL = "i32 -1"
schedules = pytest.mark.parametrize("schedule", SCHEDULES, ids=str)


def exchanged(mode: str, short: str, spelled: str, operand: int) -> KernelModule:
    """y[i] is what a shuffle of x[i] gives."""
    return kernel(
        "ptr %x, ptr %y",
        f"""
  %from = getelementptr {spelled}, ptr %x, i64 %i
  %v = load {spelled}, ptr %from
  %w = call {spelled} @irad.cuda.shfl.{mode}.{short}({FULL}, {spelled} %v, i32 {operand})
  %to = getelementptr {spelled}, ptr %y, i64 %i
  store {spelled} %w, ptr %to
  ret void""",
    )


LANES = np.arange(32)
SOURCES: dict[str, Callable[[int], np.ndarray]] = {
    "idx": lambda k: np.full(32, k % 32),
    "up": lambda k: np.where(LANES >= k % 32, LANES - k % 32, LANES),
    "down": lambda k: np.where(LANES + k % 32 < 32, LANES + k % 32, LANES),
    "bfly": lambda k: LANES ^ (k % 32),
}
TYPES = {"i32": ("i32", np.int32), "i64": ("i64", np.int64), "f32": ("float", np.float32), "f64": ("double", float)}


@pytest.mark.parametrize("short", TYPES)
@pytest.mark.parametrize("mode", SOURCES)
def test_shuffles(mode: str, short: str):
    spelled, dtype = TYPES[short]
    x = (np.random.default_rng(1).random(96) * 1e9).astype(dtype)
    for operand, schedule in zip((0, 1, 5, 31, 33), SCHEDULES, strict=True):
        y = np.zeros_like(x)
        report = run(exchanged(mode, short, spelled, operand), 1, 96, x, y, schedule=schedule)
        assert np.array_equal(y.reshape(3, 32), x.reshape(3, 32)[:, SOURCES[mode](operand)])
        assert report.warp_operations == 3


@pytest.mark.executor_only("what is not there is NaN on the executor only")
def test_a_shuffle_from_a_lane_that_is_not_there_gives_nan():
    x, y = np.arange(40.0), np.zeros(40)
    run(exchanged("down", "f64", "double", 4), 1, 40, x, y)
    assert np.array_equal(y[:36], np.r_[4.0:32.0, 28:32, 36:40])
    assert np.isnan(y[36:]).all()


def answered(call: str) -> KernelModule:
    """y[i] is the answer to a vote on x[i]."""
    return kernel(
        "ptr %x, ptr %y",
        f"""
  %from = getelementptr i32, ptr %x, i64 %i
  %v = load i32, ptr %from
  %w = {call}
  %to = getelementptr i32, ptr %y, i64 %i
  store i32 %w, ptr %to
  ret void""",
    )


def bits(truths: np.ndarray) -> int:
    """A mask, as a signed number."""
    return int(np.uint32(sum(1 << int(n) for n in np.flatnonzero(truths))).astype(np.int32))


VOTES: dict[str, Callable[[np.ndarray], int]] = {
    "all": lambda v: int(v.all()),
    "any": lambda v: int(v.any()),
    "uni": lambda v: int(v.all() or not v.any()),
    "ballot": bits,
}


@pytest.mark.parametrize("mode", VOTES)
@pytest.mark.parametrize("holding", [(), (3,), (0, 31), tuple(range(32))], ids=len)
def test_votes(mode: str, holding: tuple[int, ...]):
    x, y = np.zeros(32, np.int32), np.zeros(32, np.int32)
    x[list(holding)] = 7
    run(answered(f"call i32 @irad.cuda.vote.{mode}({FULL}, i32 %v)"), 1, 32, x, y)
    assert np.array_equal(y, np.full(32, VOTES[mode](x != 0)))


def test_matches():
    x, y = np.random.default_rng(3).integers(0, 4, 32).astype(np.int32), np.zeros(32, np.int32)
    run(answered(f"call i32 @irad.cuda.match.any.i32({FULL}, i32 %v)"), 1, 32, x, y)
    assert np.array_equal(y, [bits(x == each) for each in x])


@pytest.mark.parametrize(("word", "answer"), [("popc", 40), ("and", 0), ("or", 1)])
def test_barriers_with_a_predicate(word: str, answer: int):
    x, y = np.r_[np.ones(40, np.int32), np.zeros(30, np.int32)], np.full(70, -1, np.int32)
    run(answered(f"call i32 @irad.cuda.barrier.{word}(i32 %v)"), 1, 70, x, y)
    assert np.array_equal(y, np.full(70, answer))
    run(answered(f"call i32 @irad.cuda.barrier.{word}(i32 %v)"), 1, 40, x, y)
    assert y[0] == {"popc": 40, "and": 1, "or": 1}[word]
    run(answered(f"call i32 @irad.cuda.barrier.{word}(i32 %v)"), 1, 30, x[40:], y)
    assert y[0] == 0


def test_lanes():
    x, lanes, sizes, below = (np.zeros(70, np.int32) for _ in range(4))
    run(answered("call i32 @llvm.nvvm.read.ptx.sreg.laneid()"), 1, 70, x, lanes)
    run(answered("call i32 @llvm.nvvm.read.ptx.sreg.warpsize()"), 1, 70, x, sizes)
    run(answered("call i32 @irad.cuda.lanemask.lt()"), 1, 70, x, below)
    assert np.array_equal(lanes, np.arange(70) % 32)
    assert np.array_equal(sizes, np.full(70, 32))
    assert np.array_equal(below.view(np.uint32), [(1 << int(lane)) - 1 for lane in lanes])


# The lanes of x that are not zero go one way, the others another; both add up with a shuffle of their own.
TWO_GROUPS = kernel(
    "ptr %x, ptr %y, i32 %mask",
    """
  %from = getelementptr i32, ptr %x, i64 %i
  %v = load i32, ptr %from
  %to = getelementptr i32, ptr %y, i64 %i
  %bit = shl i32 1, %t
  %member = and i32 %mask, %bit
  %is = icmp ne i32 %member, 0
  br i1 %is, label %some, label %others
some:
  %a = call i32 @irad.cuda.shfl.idx.i32(i32 %mask, i32 %v, i32 1)
  store i32 %a, ptr %to
  br label %end
others:
  %rest = xor i32 %mask, -1
  %c = call i32 @irad.cuda.shfl.idx.i32(i32 %rest, i32 %v, i32 0)
  %active = call i32 @irad.cuda.activemask()
  %same = icmp eq i32 %active, %rest
  %result = select i1 %same, i32 %c, i32 -1
  store i32 %result, ptr %to
  br label %end
end:
  call void @llvm.nvvm.bar.warp.sync(i32 -1)
  ret void""",
)


@pytest.mark.executor_only("which lanes are active depends on the order of the threads")
@schedules
def test_parts_of_a_warp_exchange_with_masks(schedule: Schedule):
    x, y = np.arange(100, 132, dtype=np.int32), np.zeros(32, np.int32)
    report = run(TWO_GROUPS, 1, 32, x, y, 0x0000AAAA, schedule=schedule)
    assert np.array_equal(y, np.where(0xAAAA >> LANES & 1, 101, 100))
    assert report.warp_operations == 4


@pytest.mark.executor_only("what lanes hold that take no part is not a number on the executor only")
def test_a_lane_outside_of_the_mask_gives_nothing():
    x, y = np.arange(32, dtype=np.int32), np.zeros(32, np.int32)
    run(TWO_GROUPS, 1, 32, x, y, 1)
    assert y[0] == -1  # lane 1 does not take part
    assert np.array_equal(y[1:], np.full(31, -1))  # nor does lane 0


EARLY = kernel(
    "ptr %x, ptr %y, i32 %live",
    f"""
  %goes.on = icmp slt i32 %t, %live
  br i1 %goes.on, label %work, label %end
work:
  %from = getelementptr i32, ptr %x, i64 %i
  %v = load i32, ptr %from
  %n = call i32 @irad.cuda.barrier.popc(i32 %v)
  %w = call i32 @irad.cuda.vote.ballot({FULL}, i32 %v)
  %sum = add i32 %n, %w
  %to = getelementptr i32, ptr %y, i64 %i
  store i32 %sum, ptr %to
  br label %end
end:
  ret void""",
)


@schedules
def test_threads_that_have_returned_do_not_count(schedule: Schedule):
    x, y = np.ones(64, np.int32), np.zeros(64, np.int32)
    run(EARLY, 2, 32, x, y, 5, schedule=schedule)
    assert np.array_equal(y.reshape(2, 32), np.tile(np.r_[np.full(5, 5 + 0b11111), np.zeros(27)], (2, 1)))
