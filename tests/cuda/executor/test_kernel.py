"""What a loaded kernel is, what launches are refused, and what is refused before anything is compiled."""

from __future__ import annotations

import gc
import resource
import threading
import weakref

import numpy as np
import pytest

import irad
from irad.backend.cuda.kernel import KernelModule
from irad.backend.executor.kernel import ExecutableKernel, load
from irad.backend.executor.rewriting.lower import lower
from irad.backend.executor.scheduler import SCHEDULES, Schedule
from tests.cuda.executor.texts import BARRIER, HEAD, kernel, line_of, run, with_lines

DYNAMIC = "@irad.dynamic_shared = external addrspace(3) global [0 x i8], align 16\n"
STATIC = "@s = internal addrspace(3) global [3 x float] undef, align 4\n"


def test_parameters_are_known():
    loaded = load(kernel("ptr addrspace(1) %arg.x.0, i64 %n, half %h, i1 %flag", "  ret void"))
    assert [str(type_) for type_ in loaded.parameter_types] == ["ptr addrspace(1)", "i64", "half", "i1"]
    assert loaded.parameter_names == ("arg.x.0", "n", "h", "flag")


def test_numbers_arrive_as_they_are():
    body = """
  store i8 %a, ptr %out
  %p1 = getelementptr i8, ptr %out, i64 8
  store i16 %short, ptr %p1
  %p2 = getelementptr i8, ptr %out, i64 16
  store i32 %c, ptr %p2
  %p3 = getelementptr i8, ptr %out, i64 24
  store i64 %long, ptr %p3
  %p4 = getelementptr i8, ptr %out, i64 32
  store half %e, ptr %p4
  %p5 = getelementptr i8, ptr %out, i64 40
  store float %f, ptr %p5
  %p6 = getelementptr i8, ptr %out, i64 48
  store double %g, ptr %p6
  %p7 = getelementptr i8, ptr %out, i64 56
  %h8 = zext i1 %h to i8
  store i8 %h8, ptr %p7
  ret void"""
    out = np.zeros(8, np.uint64)
    text = kernel("ptr %out, i8 %a, i16 %short, i32 %c, i64 %long, half %e, float %f, double %g, i1 %h", body)
    run(text, 1, 1, out, -1, 2**16 - 1, np.int32(-5), 2**64 - 1, 0.1, np.float32(0.1), np.pi, np.True_)
    at = out.view(np.uint8).reshape(8, 8)
    assert at[0, 0] == 255
    assert at[1].view(np.uint16)[0] == 2**16 - 1
    assert at[2].view(np.int32)[0] == -5
    assert out[3] == 2**64 - 1
    assert at[4].view(np.float16)[0] == np.float16(0.1)
    assert at[5].view(np.float32)[0] == np.float32(0.1)
    assert out.view(float)[6] == np.pi
    assert out[7] == 1


@pytest.mark.parametrize("arguments", [[], [1, 2], ["x"], [None]])
def test_arguments_that_do_not_fit_are_refused(arguments: list[object]):
    with pytest.raises(irad.SignatureError):
        load(kernel("i64 %n", "  ret void")).run((1, 1, 1), (1, 1, 1), arguments)


@pytest.mark.parametrize(
    ("grid", "block", "shared"),
    [
        ((0, 1, 1), (1, 1, 1), 0),
        ((1, 1, 1), (32, 33, 1), 0),
        ((1, 1, 1), (1, 1, 1), 1 << 20),
        ((1, 1, 1), (1, 0, 1), 0),
    ],
)
def test_launches_that_no_gpu_takes_are_refused(grid: tuple[int, int, int], block: tuple[int, int, int], shared: int):
    with pytest.raises(irad.SignatureError, match="cannot be launched"):
        load(kernel("", "  ret void")).run(grid, block, [], dynamic_shared=shared)


def test_dynamic_shared_memory_lies_behind_static():
    body = f"""
  %is.first = icmp eq i32 %t, 0
  br i1 %is.first, label %first, label %all
first:
  %size = call i32 @irad.cuda.dynamic_shared_size()
  store i32 %size, ptr %out
  br label %all
all:
  %p = getelementptr i32, ptr addrspace(3) @irad.dynamic_shared, i64 %t.64
  store i32 %t, ptr addrspace(3) %p
  %q = getelementptr float, ptr addrspacecast (ptr addrspace(3) @s to ptr), i64 %t.64
  store float 7.0, ptr %q
{BARRIER}
  %back = sub i64 2, %t.64
  %r = getelementptr i32, ptr addrspacecast (ptr addrspace(3) @irad.dynamic_shared to ptr), i64 %back
  %v = load i32, ptr %r
  %place = add i64 %t.64, 1
  %to = getelementptr i32, ptr %out, i64 %place
  store i32 %v, ptr %to
  ret void"""
    out = np.zeros(4, np.int32)
    text = kernel("ptr %out", body, DYNAMIC + STATIC)
    run(text, 1, 3, out, dynamic_shared=12, races=True, known=True)
    assert np.array_equal(out, [12, 2, 1, 0])
    with pytest.raises(irad.KernelBoundsError):
        run(text, 1, 3, out, dynamic_shared=8, races=True, known=True)


def test_device_functions_with_barriers_are_inlined():
    outside = f"""
@s = internal addrspace(3) global [8 x i32] undef, align 4
define internal i32 @swap(i32 %v, i64 %t.64) noinline {{
entry:
  %slot = getelementptr i32, ptr addrspace(3) @s, i64 %t.64
  store i32 %v, ptr addrspace(3) %slot
{BARRIER}
  %back = xor i64 %t.64, 1
  %other = getelementptr i32, ptr addrspace(3) @s, i64 %back
  %w = load i32, ptr addrspace(3) %other
{BARRIER}
  ret i32 %w
}}
"""
    body = """
  %a = call i32 @swap(i32 %t, i64 %t.64)
  %b2 = mul i32 %a, 10
  %c = call i32 @swap(i32 %b2, i64 %t.64)
  %to = getelementptr i32, ptr %out, i64 %i
  store i32 %c, ptr %to
  ret void"""
    out = np.zeros(8, np.int32)
    assert run(kernel("ptr %out", body, outside), 1, 8, out, races=True).barriers == 4
    assert np.array_equal(out, np.arange(8) * 10)


def test_local_arrays_stay_with_their_thread():
    body = f"""
  %local = alloca [4 x double], align 8
  %slot = getelementptr double, ptr %local, i64 %t.64
  %v = sitofp i32 %t to double
  store double %v, ptr %slot
{BARRIER}
  %w = load double, ptr %slot
  %to = getelementptr double, ptr %out, i64 %i
  store double %w, ptr %to
  ret void"""
    out = np.zeros(8)
    counts = run(kernel("ptr %out", body), 2, 4, out, races=True).accesses
    assert np.array_equal(out, np.tile(np.arange(4.0), 2))
    assert (counts.global_writes, counts.global_reads, counts.shared_writes) == (8, 0, 0)


@pytest.mark.parametrize("barrier", [BARRIER, ""], ids=["in a frame", "on the stack"])
def test_addresses_of_local_arrays_that_are_chosen_are_private(barrier: str):
    body = f"""
  %one = alloca double, align 8
  %two = alloca double, align 8
  %odd = trunc i32 %t to i1
  %p = select i1 %odd, ptr %one, ptr %two
  store volatile double 1.0, ptr %p
{barrier}
  %w = load double, ptr %p
  %to = getelementptr double, ptr %out, i64 %i
  store double %w, ptr %to
  ret void"""
    out = np.zeros(8)
    counts = run(kernel("ptr %out", body), 2, 4, out, races=True, known=True).accesses
    assert np.array_equal(out, np.ones(8))
    assert (counts.global_writes, counts.global_reads) == (8, 0)


def test_constant_memory():
    outside = "@c = internal addrspace(4) constant [4 x double] [double 1.0, double 2.0, double 4.0, double 8.0]\n"
    body = """
  %p = getelementptr double, ptr addrspacecast (ptr addrspace(4) @c to ptr), i64 %t.64
  %v = load double, ptr %p
  %to = getelementptr double, ptr %out, i64 %i
  store double %v, ptr %to
  ret void"""
    out = np.zeros(4)
    run(kernel("ptr %out", body, outside), 1, 4, out, races=True, known=True)
    assert np.array_equal(out, [1, 2, 4, 8])


def test_copies_of_memory_are_accesses():
    outside = (
        "@s = internal addrspace(3) global [4 x i64] undef, align 8\n"
        "declare void @llvm.memcpy.p3.p0.i64(ptr addrspace(3), ptr, i64, i1)\n"
        "declare void @llvm.memcpy.p0.p3.i64(ptr, ptr addrspace(3), i64, i1)\n"
    )
    body = """
  call void @llvm.memcpy.p3.p0.i64(ptr addrspace(3) @s, ptr %x, i64 32, i1 false)
  call void @llvm.memcpy.p0.p3.i64(ptr %y, ptr addrspace(3) @s, i64 32, i1 false)
  ret void"""
    text = kernel("ptr %x, ptr %y", body, outside)
    x, y = np.arange(4.0), np.zeros(4)
    counts = run(text, 1, 1, x, y, races=True, known=True).accesses
    assert np.array_equal(x, y)
    assert (counts.global_reads, counts.global_writes, counts.shared_reads, counts.shared_writes) == (1, 1, 1, 1)
    with pytest.raises(irad.RaceError):
        run(text, 1, 2, x, y, races=True)
    with pytest.raises(irad.KernelBoundsError):
        run(text, 1, 1, x, y[:3], races=True, known=True)


REFUSED = {
    "inline assembly": ("""  %c = call i32 asm "mov.u32 $0, %clock;", "=r"()""", ""),
    "llvm.nvvm.read.ptx.sreg.clock": (
        "  %c = call i32 @llvm.nvvm.read.ptx.sreg.clock()",
        "declare i32 @llvm.nvvm.read.ptx.sreg.clock()\n",
    ),
    "malloc": ("  %c = call ptr @malloc(i64 8)", "declare ptr @malloc(i64)\n"),
    "__nv_nothing": ("  %c = call double @__nv_nothing(double 1.0)", "declare double @__nv_nothing(double)\n"),
    "calls through pointers": ("  %c = call i32 %f(i32 1)", ""),
    "only known when the kernel runs": ("  %c = alloca i8, i64 %i, align 1\n  store ptr %c, ptr %f", ""),
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_is_not_known_is_refused_by_name_and_line(words: str):
    line, outside = REFUSED[words]
    module = with_lines(kernel("ptr %f", f"{line}\n  ret void", outside))
    with pytest.raises(irad.UnsupportedError, match=words) as caught:
        load(module)
    assert caught.value.location is not None
    assert caught.value.location.line == line_of(module, "%c = ")


def test_everything_that_is_not_known_is_listed():
    parts = [REFUSED[words] for words in ("malloc", "__nv_nothing")]
    body = "\n".join(line.replace("%c", f"%c{n}") for n, (line, _) in enumerate(parts))
    module = kernel("", f"{body}\n  ret void", "".join(outside for _, outside in parts))
    with pytest.raises(irad.UnsupportedProgram) as caught:
        load(module)
    assert ["malloc" in str(error) for error in caught.value.errors] == [True, False]


def test_a_variable_without_definition_is_refused():
    body = "  %v = load i32, ptr @outside\n  ret void"
    with pytest.raises(irad.UnsupportedError, match="variable outside"):
        load(kernel("", body, "@outside = external global i32\n"))


def test_recursion_is_refused():
    outside = """
define internal i32 @down(i32 %n) {
entry:
  %more = icmp sgt i32 %n, 0
  br i1 %more, label %again, label %end
again:
  %less = sub i32 %n, 1
  %r = call i32 @down(i32 %less)
  ret i32 %r
end:
  ret i32 0
}
"""
    with pytest.raises(irad.UnsupportedError, match="device function down"):
        load(kernel("", "  %r = call i32 @down(i32 %t)\n  ret void", outside))


def test_a_kernel_is_compiled_once():
    module = kernel("i64 %n", "  ret void")
    assert load(module) is load(KernelModule(module.text, module.name))
    assert load(module) is not load(module, races=True)


def test_code_is_freed_with_the_kernel():
    loaded = ExecutableKernel(kernel("i32 %n", "  ret void"))
    engine = weakref.ref(loaded._engine)
    del loaded
    gc.collect()
    assert engine() is None


def test_launches_leave_no_memory_behind():
    body = f"""
  %local = alloca [32 x double], align 8
  %slot = getelementptr double, ptr %local, i64 %t.64
  store volatile double 1.0, ptr %slot
{BARRIER}
  %w = load volatile double, ptr %slot
  %old = atomicrmw fadd ptr %out, double %w monotonic
  ret void"""
    text, limit, out = kernel("ptr %out", body), 30_000, np.zeros(1)  # kilobytes; the frames of one launch take 256
    run(text, 1, 32, out, races=True)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(200):
        run(text, (1, 1, 1), (32, 32, 1), out)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + limit
    assert out[0] == 32 + 200 * 1024


def test_a_kernel_in_which_nobody_waits_is_no_coroutine():
    assert "coro" not in lower(kernel("", "  ret void"), races=False).text
    assert "coro" in lower(kernel("", f"{BARRIER}  ret void"), races=False).text


def test_threads_of_python_run_the_same_kernel_at_the_same_time():
    body = f"""
  %from = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %from
  %slot = getelementptr double, ptr addrspace(3) @s, i64 %t.64
  store double %v, ptr addrspace(3) %slot
{BARRIER}
  %back = sub i64 63, %t.64
  %other = getelementptr double, ptr addrspace(3) @s, i64 %back
  %w = load double, ptr addrspace(3) %other
  %to = getelementptr double, ptr %y, i64 %i
  store double %w, ptr %to
  ret void"""
    text = kernel("ptr %x, ptr %y", body, "@s = internal addrspace(3) global [64 x double] undef\n")
    x = np.random.default_rng(0).random((4, 200 * 64))
    y = np.zeros_like(x)
    threads = [threading.Thread(target=run, args=(text, 200, 64, x[n], y[n])) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert np.array_equal(y.reshape(4, 200, 64), x.reshape(4, 200, 64)[:, :, ::-1])


@pytest.mark.parametrize("count", [1, 2, 3, 4, 6, 31, 32, 96, 1024])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=str)
def test_an_order_has_every_thread_once(schedule: Schedule, count: int):
    orders = schedule.of_threads(count)
    assert all(np.array_equal(np.sort(order), np.arange(count)) for order in orders)
    assert np.array_equal(np.sort(schedule.of_blocks(count)), np.arange(count))
    if count > 4:
        assert (schedule.kind == "in order") == np.array_equal(orders[0], np.arange(count))


def test_the_head_of_the_tests_is_in_the_dialect():
    assert load(KernelModule(f"{HEAD}define ptx_kernel void @k() {{\n  ret void\n}}\n", "k")).parameter_types == ()
