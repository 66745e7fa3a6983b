"""What launches need of a GPU: registers, shared memory, parameters; and what is refused for it, without a GPU."""

from __future__ import annotations

import math
import re
from functools import cache

import numpy as np
import pytest
from numba import cuda, float64
from numba.core import types

import irad
import irad.cuda
from irad import BatchDuplicated, Duplicated
from irad.backend.cuda.kernel import KernelModule
from irad.backend.cuda.limits import LIMITS, STATIC_SHARED, Needs, bounds_of_launch, check_launch, needs_of
from irad.backend.cuda.ptx import LaunchBounds, compile_ptx
from irad.backend.cuda.toolkit import assemble
from irad.frontend.cuda.program import load_kernel
from irad.ir.text.parser import parse_module
from irad.report.shown.text import code_words
from tests.cuda.case import Case
from tests.cuda.derivatives import derivative_of
from tests.cuda.executor.texts import kernel, run
from tests.cuda.ptx.tools import ARCHITECTURES, needs_libdevice, needs_ptxas


@cuda.jit(device=True)
def normal(d):
    k = 1.0 / (1.0 + 0.2316419 * math.fabs(d))
    p = k * (0.31938153 + k * (-0.356563782 + k * (1.781477937 + k * (-1.821255978 + k * 1.330274429))))
    r = 0.3989422804014327 * math.exp(-0.5 * d * d) * p
    return 1.0 - r if d > 0 else r


def black_scholes(call, put, spot, strike, time, rate, volatility):
    i = cuda.grid(1)
    if i >= spot.shape[0]:
        return
    root = math.sqrt(time[i])
    d1 = math.log(spot[i] / strike[i]) + (rate[0] + 0.5 * volatility[0] * volatility[0]) * time[i]
    d1 /= volatility[0] * root
    d2 = d1 - volatility[0] * root
    discounted = strike[i] * math.exp(-rate[0] * time[i])
    call[i] = spot[i] * normal(d1) - discounted * normal(d2)
    put[i] = discounted * (1 - normal(d2)) - spot[i] * (1 - normal(d1))


def prices(count: int) -> list[np.ndarray]:
    columns = [np.full(count, value) for value in (0.0, 0.0, 30.0, 28.0, 1.0)]
    return [*columns, np.array([0.03]), np.array([0.3])]


@cache
def reverse_of(function) -> KernelModule:
    case = Case(function, function, lambda rng: tuple(prices(4)), 1, 4, (0, 1), tuple(range(7)))
    return derivative_of(case).module


@needs_libdevice
@needs_ptxas
@pytest.mark.parametrize(("arch", "threads"), [*((arch, 1024) for arch in ARCHITECTURES), ("sm_90", 300)])
def test_a_derivative_fits_the_block_that_it_is_compiled_for(arch: str, threads: int):
    module = reverse_of(black_scholes)
    ptx = compile_ptx(module, arch, bounds=LaunchBounds(bounds_of_launch(module, threads)))
    assert f".maxntid {-(-threads // 128) * 128}" in ptx
    needs = Needs(0, registers=assemble(ptx, arch).registers)
    check_launch("k", LIMITS[arch], needs, (1, 1, 1), (threads, 1, 1), 0)


@needs_libdevice
@needs_ptxas
def test_without_that_it_does_not_fit():
    module = reverse_of(black_scholes)
    assert assemble(compile_ptx(module, "sm_90"), "sm_90").registers > 64
    assert bounds_of_launch(module, 256) is None


@needs_libdevice
@pytest.mark.parametrize(
    ("options", "directives"),
    [
        ({"launch_bounds": 1024}, [".maxntid 1024"]),
        ({"launch_bounds": (256, 3)}, [".maxntid 256", ".minnctapersm 3"]),
        ({"max_registers": 64}, [".maxnreg 64"]),
        ({}, []),
    ],
)
def test_what_the_user_promises_holds_for_the_derivative(options, directives):
    module = reverse_of(cuda.jit(**options)(black_scholes))
    ptx = compile_ptx(module, bounds=LaunchBounds(bounds_of_launch(module, 128)))
    assert re.findall(r"\.(?:max|minn)\w+ \d+", ptx) == directives
    if options:
        assert bounds_of_launch(module, 1024) is None


@needs_libdevice
@needs_ptxas
def test_the_executor_refuses_what_has_too_few_registers():
    def launch(kernel, gpu):
        arguments = prices(1024)
        with irad.cuda.executor(gpu=gpu):
            irad.cuda.grad(kernel)[1, 1024](*(Duplicated(a, np.ones_like(a)) for a in arguments))

    free, bound = cuda.jit(black_scholes), cuda.jit(max_registers=96)(black_scholes)
    launch(free, "sm_80")
    launch(bound, None)
    with pytest.raises(irad.SignatureError, match=r"needs [0-9]+ registers for each of 1024 threads"):
        launch(bound, "sm_80")
    with pytest.raises(irad.SignatureError, match="compiled for blocks of at most 256 threads"):
        launch(cuda.jit(launch_bounds=256)(black_scholes), None)
    with pytest.raises(irad.BackendError, match="does not compile for 'sm_70'"), irad.cuda.executor(gpu="sm_70"):
        pass


SIDE = 64


@cuda.jit
def tile(x, y):
    """32 KiB of shared memory, which shadows double, and dynamic shared memory beside it."""
    s = cuda.shared.array((SIDE, SIDE), float64)
    d = cuda.shared.array(0, float64)
    t = cuda.threadIdx.x
    d[t] = x[t] * 2.0
    for k in range(t, SIDE * SIDE, cuda.blockDim.x):
        s[k // SIDE, k % SIDE] = x[k] * x[k]
    cuda.syncthreads()
    y[t] = s[t, SIDE - 1 - t] * d[SIDE - 1 - t]


def tile_gradient(x, dy):
    dx = np.zeros_like(x)
    for t in range(SIDE):
        place = t * SIDE + SIDE - 1 - t
        dx[place] += dy[t] * 2 * x[place] * 2 * x[SIDE - 1 - t]
        dx[SIDE - 1 - t] += dy[t] * x[place] ** 2 * 2
    return dx


def test_shadows_of_large_shared_arrays_are_dynamic():
    x, dy = np.linspace(0, 1, SIDE * SIDE), np.linspace(1, 2, SIDE)
    dx = np.zeros_like(x)
    with irad.cuda.executor(races=True):
        irad.cuda.grad(tile)[1, SIDE, 0, SIDE * 8](Duplicated(x, dx), Duplicated(np.zeros(SIDE), dy.copy()))
    np.testing.assert_allclose(dx, tile_gradient(x, dy), rtol=1e-14)


def test_so_they_are_in_several_directions():
    x, both = np.linspace(0, 1, SIDE * SIDE), (np.linspace(1, 2, SIDE), np.linspace(-1, 3, SIDE))
    shadows = np.zeros_like(x), np.zeros_like(x)
    with irad.cuda.executor(races=True):
        given = BatchDuplicated(x, shadows), BatchDuplicated(np.zeros(SIDE), tuple(dy.copy() for dy in both))
        irad.cuda.grad(tile)[1, SIDE, 0, SIDE * 8](*given)
    for dx, dy in zip(shadows, both, strict=True):
        np.testing.assert_allclose(dx, tile_gradient(x, dy), rtol=1e-14)


@needs_ptxas
@needs_libdevice
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_ptxas_takes_them(arch: str):
    case = Case(tile.py_func, tile.py_func, lambda rng: (np.zeros(4096), np.zeros(SIDE)), 1, SIDE, (1,), (0, 1))
    made = derivative_of(case)
    done = assemble(compile_ptx(made.module, arch), arch)
    assert done.shared <= STATIC_SHARED
    assert made.dynamic_shared(SIDE * 8) == 2 * SIDE * 8 + SIDE * SIDE * 8


def test_integers_have_no_shadow():
    @cuda.jit
    def indexed(x, y):
        s = cuda.shared.array(8192, types.int32)
        t = cuda.threadIdx.x
        s[t] = 3 - t
        cuda.syncthreads()
        y[t] = x[s[t]] ** 2

    x, dx = np.arange(4.0), np.zeros(4)
    with irad.cuda.executor(races=True):
        irad.cuda.grad(indexed)[1, 4](Duplicated(x, dx), Duplicated(np.zeros(4), np.ones(4)))
    np.testing.assert_array_equal(dx, 2 * x)
    module = load_kernel(indexed, (types.float64[::1], types.float64[::1])).module
    assert needs_of(parse_module(module.text), module.name).static_shared == 4 * 8192


DYNAMIC = "@irad.dynamic_shared = external addrspace(3) global [0 x i8], align 16\n"
HUGE = "@s = internal addrspace(3) global [49160 x i8] undef, align 8\n"
HALF = "@s = internal addrspace(3) global [40960 x i8] undef, align 8\n"
STORE = "  store i8 1, ptr addrspace(3) @s\n  ret void"
TABLE = f"@c = internal addrspace(4) constant [{70 * 1024} x i8] zeroinitializer\n"
READ = "  %v = load i8, ptr addrspace(4) @c\n  ret void"


@pytest.mark.parametrize(
    ("outside", "body", "grid", "block", "dynamic", "gpu", "words"),
    [
        ("", "  ret void", (1, 1, 1), (1025, 1, 1), 0, None, "1025 threads in a block"),
        ("", "  ret void", (1, 1, 1), (8, 2, 65), 0, None, "1040 threads in a block"),
        ("", "  ret void", (1, 1, 1), (1, 2, 65), 0, None, "the block is too long along an axis"),
        ("", "  ret void", (1, 65536, 1), (1, 1, 1), 0, None, "the grid is too long along an axis"),
        ("", "  ret void", (0, 1, 1), (1, 1, 1), 0, None, "it has no threads"),
        ("", "  ret void", (1, 1, 1), (1, 1, 1), 227 * 1024 + 1, None, r"0 \+ 232449 bytes of shared memory"),
        ("", "  ret void", (1, 1, 1), (1, 1, 1), -8, None, "-8 bytes of dynamic shared memory"),
        (HUGE, STORE, (1, 1, 1), (1, 1, 1), 0, None, "its shared arrays have 49160 bytes"),
        (HALF, STORE, (1, 1, 1), (1, 1, 1), 190 * 1024, None, r"40960 \+ 194560 bytes of shared memory"),
        (TABLE, READ, (1, 1, 1), (1, 1, 1), 0, None, "its constant arrays have 71680 bytes"),
    ],
)
def test_launches_that_no_gpu_takes(outside, body, grid, block, dynamic, gpu, words):
    with pytest.raises(irad.SignatureError, match=words):
        run(kernel("", body, outside), grid, block, dynamic_shared=dynamic, gpu=gpu)


@needs_ptxas
@pytest.mark.parametrize(("gpu", "most"), [("sm_80", 163), ("sm_86", 99), ("sm_90", 227), ("sm_100", 227)])
def test_shared_memory_of_each_gpu(gpu: str, most: int):
    largest = (most - 40) * 1024
    run(kernel("", STORE, HALF), 1, 1, dynamic_shared=largest, gpu=gpu)
    with pytest.raises(irad.SignatureError, match=f"{gpu} has {most * 1024} bytes"):
        run(kernel("", STORE, HALF), 1, 1, dynamic_shared=largest + 1, gpu=gpu)


@needs_ptxas
@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_many_parameters(arch: str):
    parameters = ", ".join(f"i64 %p{n}" for n in range(700))
    assemble(compile_ptx(kernel(parameters, "  ret void"), arch), arch)
    beyond = ", ".join(f"i64 %p{n}" for n in range(4096))
    with pytest.raises(irad.SignatureError, match="its parameters have 32768 bytes"):
        run(kernel(beyond, "  ret void"), 1, 1, *range(4096))


@pytest.mark.parametrize("registers", [32, 33, 64, 65, 128, 255])
def test_registers_are_given_in_whole_warps(registers: int):
    """As NVIDIA's occupancy calculator counts: 8 registers a thread and 4 warps at a time."""
    most = LIMITS["sm_80"].threads_with(registers)
    assert most == {32: 1024, 33: 1024, 64: 1024, 65: 896, 128: 512, 255: 256}[registers]


def test_the_check_tells_of_shared_memory():
    x = np.zeros(SIDE * SIDE)
    assert "shadows of shared arrays are 32.0 KiB of dynamic shared memory" in str(irad.check(tile, x, x))

    @cuda.jit
    def large(x):
        s = cuda.shared.array(6145, float64)
        s[cuda.threadIdx.x] = x[cuda.threadIdx.x]
        cuda.syncthreads()
        x[cuda.threadIdx.x] = s[0]

    said = str(irad.check(large, x))
    assert "the shared arrays of the kernel have 49160 bytes (s 49160)" in said
    with irad.cuda.executor(), pytest.raises(irad.SignatureError, match="its shared arrays have 49160 bytes"):
        large[1, 8](x)


def test_several_directions_may_be_too_many():
    x, shadows = np.zeros(SIDE * SIDE), tuple(np.zeros(SIDE * SIDE) for _ in range(7))
    y, seeds = np.zeros(SIDE), tuple(np.ones(SIDE) for _ in range(7))
    with irad.cuda.executor(), pytest.raises(irad.UnsupportedError, match="have 262144 bytes") as found:
        irad.cuda.grad(tile)[1, SIDE, 0, SIDE * 8](BatchDuplicated(x, shadows), BatchDuplicated(y, seeds))
    assert "s 32768; 7 shadows of each array of floats" in str(found.value)


@needs_libdevice
@needs_ptxas
def test_spills_are_reported():
    code = {each.arch: each for each in irad.inspect(cuda.jit(black_scholes), *prices(4)).report.code}
    for each in code.values():
        assert each.spilled == 0
        assert each.registers * each.largest_block <= 65536 < each.registers * (each.largest_block + 128)
        assert each.spilled_beyond > 0
    words = code_words(code["sm_90"])
    assert f"in blocks of more than {code['sm_90'].largest_block} threads" in words
