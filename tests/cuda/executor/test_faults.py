"""Faults that were put into kernels on purpose are found, with both lines, threads and blocks; correct kernels pass."""

from __future__ import annotations

import numpy as np
import pytest

import irad
from irad.backend.cuda.kernel import KernelModule
from irad.backend.executor.scheduler import SCHEDULES, Schedule
from tests.cuda.executor.texts import BARRIER, kernel, line_of, run, with_lines

schedules = pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
SHARED = "@s = internal addrspace(3) global [64 x double] undef, align 8\n"


def reversal(barrier: str) -> KernelModule:
    """Reads what another thread of the block wrote to shared memory."""
    body = f"""
  %from = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %from
  %slot = getelementptr double, ptr addrspace(3) @s, i64 %t.64
  store double %v, ptr addrspace(3) %slot
{barrier}
  %back = sub i64 31, %t.64
  %other = getelementptr double, ptr addrspace(3) @s, i64 %back
  %w = load double, ptr addrspace(3) %other
  %to = getelementptr double, ptr %y, i64 %i
  store double %w, ptr %to
  ret void"""
    return with_lines(kernel("ptr %x, ptr %y", body, SHARED))


def histogram(add: str) -> KernelModule:
    """Counts in y[x[i]]."""
    body = f"""
  %from = getelementptr i64, ptr %x, i64 %i
  %v = load i64, ptr %from
  %to = getelementptr i32, ptr %y, i64 %v
{add}
  ret void"""
    return with_lines(kernel("ptr %x, ptr %y", body))


ATOMIC = "  %old = atomicrmw add ptr %to, i32 1 monotonic"
PLAIN = "  %old = load i32, ptr %to\n  %new = add i32 %old, 1\n  store i32 %new, ptr %to"


@pytest.mark.executor_only("the program is wrong, as PTX too")
@schedules
def test_a_missing_barrier(schedule: Schedule):
    x, y = np.arange(32.0), np.zeros(32)
    broken = reversal("")
    with pytest.raises(irad.RaceError, match=r"race on element [0-9]+ of the shared array s") as caught:
        run(broken, 1, 32, x, y, races=True, schedule=schedule)
    error = caught.value
    lines = {place.line for place in error.locations if place is not None}
    assert lines == {line_of(broken, "store double %v"), line_of(broken, "%w = load")}
    assert error.blocks == ((0, 0, 0), (0, 0, 0))
    assert error.threads[0][0] + error.threads[1][0] == 31
    assert "why both threads are in the same block, with no barrier between" in str(error)
    assert "write at /src/kernel.py:" in str(error)
    run(broken, 1, 32, x, y)  # without looking for races nothing is said


@schedules
def test_the_barrier(schedule: Schedule):
    x, y = np.arange(64.0), np.zeros(64)
    run(reversal(BARRIER), 2, 32, x, y, races=True, schedule=schedule)
    assert np.array_equal(y, x.reshape(2, 32)[:, ::-1].ravel())


@schedules
def test_a_barrier_of_the_warp_orders_its_threads(schedule: Schedule):
    x, y = np.arange(32.0), np.zeros(32)
    run(reversal("  call void @llvm.nvvm.bar.warp.sync(i32 -1)"), 1, 32, x, y, races=True, schedule=schedule)
    assert np.array_equal(y, x[::-1])


def test_a_barrier_of_half_the_warp_does_not_order_the_other_half():
    half = """
  %upper = icmp ugt i32 %t, 15
  %mask = select i1 %upper, i32 -65536, i32 65535
  call void @llvm.nvvm.bar.warp.sync(i32 %mask)"""
    x, y = np.arange(32.0), np.zeros(32)
    with pytest.raises(irad.RaceError):
        run(reversal(half), 1, 32, x, y, races=True)


def test_a_barrier_of_the_warp_does_not_order_two_warps():
    halves = """
  call void @llvm.nvvm.bar.warp.sync(i32 -1)"""
    broken = kernel(
        "ptr %y",
        f"""
  %lane = and i64 %t.64, 31
  %to = getelementptr double, ptr %y, i64 %lane
{halves}
  store double 1.0, ptr %to
  ret void""",
    )
    y = np.zeros(32)
    run(broken, 1, 32, y, races=True)
    with pytest.raises(irad.RaceError) as caught:
        run(broken, 1, 64, y, races=True)
    assert abs(caught.value.threads[0][0] - caught.value.threads[1][0]) == 32


def test_a_chain_of_barriers_of_pairs_orders_its_ends():
    """Lane 0 tells lane 1, lane 1 tells lane 2."""
    chain = """
  %to.1 = icmp ult i32 %t, 2
  br i1 %to.1, label %first, label %second
first:
  %is.0 = icmp eq i32 %t, 0
  br i1 %is.0, label %write, label %meet
write:
  store double 5.0, ptr %y
  br label %meet
meet:
  call void @llvm.nvvm.bar.warp.sync(i32 3)
  br i1 %is.0, label %end, label %second
second:
  call void @llvm.nvvm.bar.warp.sync(i32 6)
  %is.2 = icmp eq i32 %t, 2
  br i1 %is.2, label %read, label %end
read:
  %v = load double, ptr %y
  %to = getelementptr double, ptr %y, i64 1
  store double %v, ptr %to
  br label %end
end:
  ret void"""
    for schedule in SCHEDULES:
        y = np.zeros(2)
        run(kernel("ptr %y", chain), 1, 3, y, races=True, schedule=schedule)
        assert np.array_equal(y, [5.0, 5.0])


@schedules
@pytest.mark.parametrize(("blocks", "threads"), [(1, 8), (8, 1)])
def test_a_missing_atomic(schedule: Schedule, blocks: int, threads: int):
    x, y = np.array([0, 1, 2, 3, 4, 1, 6, 7]), np.zeros(8, np.int32)
    broken = histogram(PLAIN)
    with pytest.raises(irad.RaceError, match="race on element 1 of a1") as caught:
        run(broken, blocks, threads, x, y, races=True, known=True, schedule=schedule)
    error = caught.value
    places = zip(error.blocks, error.threads, strict=True)
    assert {block[0] * threads + thread[0] for block, thread in places} == {1, 5}
    assert error.address == y.ctypes.data + 4
    lines = {place.line for place in error.locations if place is not None}
    assert lines <= {line_of(broken, "%old = load"), line_of(broken, "store i32 %new")}


@schedules
def test_the_atomic(schedule: Schedule):
    x, y = np.array([0, 1, 2, 3, 4, 1, 6, 7]), np.zeros(8, np.int32)
    run(histogram(ATOMIC), 2, 4, x, y, races=True, known=True, schedule=schedule)
    assert np.array_equal(y, np.bincount(x))


def test_reading_what_others_add_to_is_a_race():
    mixed = histogram(f"{ATOMIC}\n  %seen = load i32, ptr %to\n  %z = getelementptr i32, ptr %y, i64 8\n")
    x, y = np.zeros(2, np.int64), np.zeros(8, np.int32)
    with pytest.raises(irad.RaceError) as caught:
        run(mixed, 2, 1, x, y, races=True)
    assert caught.value.blocks in (((0, 0, 0), (1, 0, 0)), ((1, 0, 0), (0, 0, 0)))


def test_writes_of_parts_of_a_number_are_a_race():
    overlapping = kernel(
        "ptr %y",
        """
  %first = icmp eq i32 %t, 0
  br i1 %first, label %wide, label %narrow
wide:
  store i64 0, ptr %y
  ret void
narrow:
  %to = getelementptr i8, ptr %y, i64 6
  store i16 1, ptr %to
  ret void""",
    )
    with pytest.raises(irad.RaceError):
        run(overlapping, 1, 2, np.zeros(2, np.int64), races=True)


def test_an_access_outside_of_the_arrays_is_refused_and_does_not_happen():
    broken = histogram(ATOMIC)
    x, memory = np.array([0, 1, 9]), np.zeros(16, np.int32)
    with pytest.raises(irad.KernelBoundsError, match="element 9 of a1, which has 8") as caught:
        run(broken, 1, 3, x, memory[:8], races=True, known=True)
    assert memory[9] == 0
    assert isinstance(caught.value, IndexError)
    assert caught.value.location is not None
    assert caught.value.location.line == line_of(broken, "atomicrmw")
    assert "thread (2, 0, 0) of block (0, 0, 0)" in str(caught.value)


def test_memory_before_an_array():
    x, y = np.array([-1]), np.zeros(8, np.int32)
    with pytest.raises(irad.KernelBoundsError, match="element -1 of a1"):
        run(histogram(PLAIN), 1, 1, x, y, races=True, known=True)


# Threads below %some reach the first barrier, the others the second, or none.
BRANCHES = """
  %is.below = icmp slt i32 %t, %some
  br i1 %is.below, label %below, label %above
below:
  {first}
  br label %end
above:
  {second}
  br label %end
end:
  {last}
  ret void"""
CTA = "call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)"
WARP = "call void @llvm.nvvm.bar.warp.sync(i32 {})"
COUNT = "%n = call i32 @irad.cuda.barrier.popc(i32 1)"


def branches(first: str, second: str, last: str = "") -> KernelModule:
    return with_lines(kernel("i32 %some", BRANCHES.format(first=first, second=second, last=last)))


@schedules
def test_threads_that_wait_for_each_other_for_ever(schedule: Schedule):
    stuck = branches(CTA, WARP.format(-1))
    with pytest.raises(irad.BarrierError, match="wait for each other forever") as caught:
        run(stuck, 1, 32, 8, schedule=schedule)
    text = " ".join(str(caught.value).split())
    below, above = line_of(stuck, CTA[5:]), line_of(stuck, "warp.sync(i32 -1)")
    assert caught.value.location is not None
    assert caught.value.location.line == below
    assert f"thread (0, 0, 0) and 7 more wait at the barrier at /src/kernel.py:{below} in k" in text
    assert "thread (8, 0, 0) and 23 more wait at the barrier of the warp at" in text
    assert f"kernel.py:{above} in k" in text
    assert "mask 0xffffffff" in text


def test_a_mask_without_the_thread_itself():
    with pytest.raises(irad.BarrierError, match="leaves out its own lane 1"):
        run(branches(WARP.format(2), WARP.format(5)), 1, 2, 1)


def test_barriers_of_different_kinds():
    with pytest.raises(irad.BarrierError, match="barriers of different kinds"):
        run(branches(CTA, COUNT), 1, 4, 2)


@pytest.mark.executor_only("the program is wrong, as PTX too")
def test_different_barriers_of_the_program_are_reported_with_races():
    different = branches(CTA, CTA)
    assert run(different, 1, 4, 2).barriers == 1
    with pytest.raises(irad.BarrierError, match="wait at different barriers") as caught:
        run(different, 1, 4, 2, races=True)
    assert caught.value.location is not None
    lines = {line_of(different, CTA[5:], 0), line_of(different, CTA[5:], 1)}
    assert caught.value.location.line in lines
    assert all(f":{line} in k" in str(caught.value) for line in lines)
    run(different, 1, 4, 4, races=True)


def test_threads_that_return_before_a_barrier_are_not_waited_for():
    assert run(branches("ret void\nunreached:", CTA), 1, 64, 40).barriers == 1


@pytest.mark.executor_only("what was not written is NaN on the executor only")
@pytest.mark.parametrize("short", ["double", "float", "i32"])
def test_shared_memory_that_was_not_written_is_not_a_number(short: str):
    size = {"double": 8, "float": 4, "i32": 4}[short]
    body = f"""
  %from = getelementptr {short}, ptr addrspace(3) @s, i64 %t.64
  %v = load {short}, ptr addrspace(3) %from
  %to = getelementptr {short}, ptr %y, i64 %i
  store {short} %v, ptr %to
  store {short} zeroinitializer, ptr addrspace(3) %from
  ret void"""
    y = np.zeros(8, {"double": float, "float": np.float32, "i32": np.int32}[short])
    body = body.replace("zeroinitializer", "0" if short == "i32" else "0.0")
    run(kernel("ptr %y", body, SHARED.replace("64 x double", f"{64 * 8 // size} x {short}")), 2, 4, y)
    assert (y == -1).all() if short == "i32" else np.isnan(y).all()


def test_shared_memory_is_named_in_the_users_words():
    outside = (
        "@s = internal addrspace(3) global [3 x float] undef, align 4\n"
        "@v = internal addrspace(3) global double undef, align 8\n"
        "@irad.dynamic_shared = external addrspace(3) global [0 x i8], align 16\n"
    )
    places = {
        "getelementptr (float, ptr addrspace(3) @s, i64 2)": "element 2 of the shared array s",
        "@v": "element 0 of the shared array v",
        "getelementptr (i8, ptr addrspace(3) @irad.dynamic_shared, i64 5)": "byte 5 of dynamic shared memory",
    }
    for place, words in places.items():
        module = kernel("", f"  store i8 1, ptr addrspace(3) {place}\n  ret void", outside)
        with pytest.raises(irad.RaceError, match=f"race on {words}"):
            run(module, 1, 2, races=True, dynamic_shared=8)


OUTSIDE = (
    "@s = internal addrspace(3) global [4 x double] undef, align 8\n"
    "@other = internal addrspace(3) global [4 x double] undef, align 8\n"
    "@irad.dynamic_shared = external addrspace(3) global [0 x i8], align 16\n"
    "@constant.table = internal addrspace(4) constant [2 x double] [double 5.0, double 6.0]\n"
)


@pytest.mark.executor_only("what was not written is not a number on the executor only")
@pytest.mark.parametrize(
    ("array", "index", "words"),
    [
        ("addrspacecast (ptr addrspace(3) @s to ptr)", 4, "element 4 of the shared array s, which has 4"),
        ("addrspacecast (ptr addrspace(3) @s to ptr)", 9, "element 9 of the shared array s, which has 4"),
        ("addrspacecast (ptr addrspace(3) @other to ptr)", -2, "element -2 of the shared array other, which has 4"),
        (
            "addrspacecast (ptr addrspace(3) @irad.dynamic_shared to ptr)",
            2,
            "element 2 of dynamic shared memory, which",
        ),
        ("addrspacecast (ptr addrspace(3) @irad.dynamic_shared to ptr)", -1, "element -1 of dynamic shared memory"),
        ("addrspacecast (ptr addrspace(4) @constant.table to ptr)", 2, "element 2 of the constant array table, which"),
        ("%local.mine.1", 3, "element 3 of the local array mine, which has 3"),
        ("%local.mine.1", 300000, "element 300000 of the local array mine, which has 3"),
        ("%x", 4, "element 4 of a0, which has 4"),
    ],
)
def test_each_array_ends_where_it_ends(array: str, index: int, words: str):
    """Also where what comes after it is another array of the kernel, or the stack of the process."""
    filled = "" if "constant" in array else "store double 1.0, ptr %at"
    body = f"""
  %local.mine.1 = alloca [3 x double]
  %at = getelementptr double, ptr {array}, i64 %n
  {filled}
  %v = load double, ptr %at
  store double %v, ptr %x
  ret void"""
    memory = np.zeros(8)
    checked = kernel("ptr %x, ptr %y, i64 %n", body, OUTSIDE)
    run(checked, 1, 1, memory[:4], memory[4:], 1, races=True, known=True, dynamic_shared=16)
    with pytest.raises(irad.KernelBoundsError) as caught:
        run(checked, 1, 1, memory[:4], memory[4:], index, races=True, known=True, dynamic_shared=16)
    assert words in str(caught.value)


def test_constant_memory_is_an_array_wherever_its_address_comes_from():
    body = """
  %even = icmp eq i64 %i, 0
  %from = select i1 %even, ptr addrspacecast (ptr addrspace(4) @constant.table to ptr), ptr %x
  %at = getelementptr double, ptr %from, i64 %n
  %v = load double, ptr %at
  %to = getelementptr double, ptr %y, i64 %i
  store double %v, ptr %to
  ret void"""
    x, y = np.array([1.0, 2.0]), np.zeros(2)
    run(kernel("ptr %x, ptr %y, i64 %n", body, OUTSIDE), 1, 2, x, y, 1, races=True, known=True)
    np.testing.assert_array_equal(y, [6.0, 2.0])


def test_reads_of_constant_memory_do_not_count_as_global():
    body = """
  %at = getelementptr double, ptr addrspacecast (ptr addrspace(4) @constant.table to ptr), i64 %t.64
  %v = load double, ptr %at
  %to = getelementptr double, ptr %x, i64 %i
  store double %v, ptr %to
  ret void"""
    x = np.zeros(2)
    report = run(kernel("ptr %x", body, OUTSIDE), 1, 2, x, races=True, known=True)
    np.testing.assert_array_equal(x, [5.0, 6.0])
    assert report.accesses.global_reads == 0
