"""Kernels compute what they say, in every order of threads and blocks, and in race mode."""

from __future__ import annotations

import time

import numpy as np
import pytest

from irad.backend.executor.scheduler import SCHEDULES, Schedule
from tests.cuda.executor.texts import BARRIER, kernel, run

SQUARE = kernel(
    "ptr %x, ptr %y, i64 %n",
    """
  %inside = icmp slt i64 %i, %n
  br i1 %inside, label %work, label %end
work:
  %from = getelementptr double, ptr %x, i64 %i
  %to = getelementptr double, ptr %y, i64 %i
  %v = load double, ptr %from
  %w = fmul double %v, %v
  store double %w, ptr %to
  br label %end
end:
  ret void""",
)
SHARED = "@s = internal addrspace(3) global [64 x double] undef, align 8\n"
REVERSE = kernel(
    "ptr %x, ptr %y",
    f"""
  %from = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %from
  %slot = getelementptr double, ptr addrspace(3) @s, i64 %t.64
  store double %v, ptr addrspace(3) %slot
{BARRIER}
  %back = sub i64 63, %t.64
  %other = getelementptr double, ptr addrspacecast (ptr addrspace(3) @s to ptr), i64 %back
  %w = load double, ptr %other
  %to = getelementptr double, ptr %y, i64 %i
  store double %w, ptr %to
  ret void""",
    SHARED,
)
SUM = kernel(
    "ptr %x, ptr %sum, ptr %count",
    """
  %from = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %from
  %old = atomicrmw fadd ptr %sum, float %v monotonic
  %number = atomicrmw add ptr %count, i64 1 monotonic
  ret void""",
)

modes = pytest.mark.parametrize("races", [False, True], ids=["plain", "races"])
schedules = pytest.mark.parametrize("schedule", SCHEDULES, ids=str)


@modes
@schedules
def test_elements_are_independent(schedule: Schedule, races: bool):
    x, y = np.arange(100.0), np.full(103, -1.0)
    run(SQUARE, 4, 32, x, y, 100, races=races, schedule=schedule)
    assert np.array_equal(y[:100], x * x)
    assert np.array_equal(y[100:], [-1.0] * 3)


@modes
@schedules
def test_a_barrier_orders_shared_memory(schedule: Schedule, races: bool):
    x, y = np.random.default_rng(0).random(192), np.zeros(192)
    report = run(REVERSE, 3, 64, x, y, races=races, schedule=schedule)
    assert np.array_equal(y, x.reshape(3, 64)[:, ::-1].ravel())
    assert report.barriers == 3


@modes
@schedules
def test_atomics_add_up(schedule: Schedule, races: bool):
    x, total, count = np.arange(96, dtype=np.float32), np.zeros(1, np.float32), np.zeros(1, np.int64)
    run(SUM, 3, 32, x, total, count, races=races, schedule=schedule)
    assert total[0] == x.sum()
    assert count[0] == 96


def test_the_grid_has_three_axes():
    body = """
  %ty = call i32 @llvm.nvvm.read.ptx.sreg.tid.y()
  %tz = call i32 @llvm.nvvm.read.ptx.sreg.tid.z()
  %by = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.y()
  %bz = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.z()
  %dy = call i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
  %dz = call i32 @llvm.nvvm.read.ptx.sreg.ntid.z()
  %gx = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.x()
  %gy = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.y()
  %by.before = mul i32 %by, %dy
  %y = add i32 %by.before, %ty
  %bz.before = mul i32 %bz, %dz
  %z = add i32 %bz.before, %tz
  %width = mul i32 %d, %gx
  %height = mul i32 %dy, %gy
  %rows = mul i32 %z, %height
  %row = add i32 %rows, %y
  %skip = mul i32 %row, %width
  %number = add i32 %skip, %i.32
  %number.64 = sext i32 %number to i64
  %to = getelementptr i32, ptr %out, i64 %number.64
  %one = add i32 %number, 1
  store i32 %one, ptr %to
  ret void"""
    out = np.zeros((2 * 2, 3 * 3, 4 * 5), np.int32)
    run(kernel("ptr %out", body), (4, 3, 2), (5, 3, 2), out, races=True, known=True)
    assert np.array_equal(out.ravel(), np.arange(1, out.size + 1))


def test_a_hundred_thousand_threads_take_milliseconds():
    x = np.random.default_rng(0).random(102_400)
    y, times = np.zeros_like(x), list[float]()
    for _ in range(4):
        start = time.process_time()
        run(REVERSE, 1600, 64, x, y)
        times.append(time.process_time() - start)
    assert np.array_equal(y, x.reshape(-1, 64)[:, ::-1].ravel())
    assert min(times) < 0.1  # 3 to 10 milliseconds, on any machine
