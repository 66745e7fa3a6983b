"""Device functions, exceptions, options; and that Numba's own kernels are left alone."""

from __future__ import annotations

import math
import threading
import warnings
from contextlib import nullcontext

import numba
import numpy as np
import pytest
from numba import cuda, types
from numba.core import errors as numba_errors

try:
    from numba.cuda.extending import overload
except ImportError:  # Numba's own target has that of Numba
    from numba.extending import overload

import irad
from irad.frontend.cuda import numba_cuda
from irad.frontend.cuda.program import load_kernel
from irad.ir.text.parser import parse_module
from tests.cuda.run import run

F8 = types.float64[::1]


@cuda.jit(device=True)
def square(x):
    return x * x


@cuda.jit(device=True)
def quartic(x):
    return square(square(x)) + 1.0


@cuda.jit(device=True, inline="always" if hasattr(cuda, "HAS_NUMBA") else True)
def inlined(x):
    return 2.0 * quartic(x)


@numba.njit
def of_the_cpu(x):
    return math.sin(x)


@cuda.jit(device=True)
def rotated(part, t, n):
    cuda.syncthreads()
    value = part[(t + 1) % n]
    cuda.syncthreads()
    return value


PAIR = square, quartic


def test_functions_that_call_functions():
    def kernel(x, y):
        i = cuda.grid(1)
        y[i] = inlined(x[i]) + of_the_cpu(x[i]) + PAIR[0](x[i]) + PAIR[1](x[i])

    x, y = np.linspace(-1, 1, 8), np.zeros(8)
    run(kernel, 1, 8, (x, y))
    np.testing.assert_allclose(y, 2 * (x**4 + 1) + np.sin(x) + x**2 + x**4 + 1, rtol=1e-14)


def test_functions_of_a_closure_and_of_several_types():
    @cuda.jit(device=True)
    def scaled(x, factor):
        return x * factor

    @cuda.jit
    def kernel(x, n):
        i = cuda.grid(1)
        x[i] = scaled(x[i], 2.5)
        n[i] = scaled(n[i], 3)

    x, n = np.arange(4.0), np.arange(4)
    run(kernel, 1, 4, (x, n))
    np.testing.assert_array_equal(x, 2.5 * np.arange(4))
    np.testing.assert_array_equal(n, 3 * np.arange(4))


def test_a_barrier_in_a_function():
    def kernel(x):
        part = cuda.shared.array(8, types.float64)
        t = cuda.threadIdx.x
        part[t] = x[t]
        for _ in range(3):
            part[t] = rotated(part, t, 8)
        x[t] = part[t]

    x = np.arange(8.0)
    run(kernel, 1, 8, (x,), races=True)
    np.testing.assert_array_equal(x, np.roll(np.arange(8.0), -3))
    module = load_kernel(cuda.jit(kernel), (F8,)).module
    functions = [each for each in parse_module(module.text).defined_functions() if each.name != module.name]
    assert functions
    assert all("convergent" in each.attributes and each.prefix == ("internal",) for each in functions)


@cuda.jit(device=True)
def mirrored(value, t):
    part = cuda.shared.array(8, types.float64)
    part[t] = value
    cuda.syncthreads()
    value = part[7 - t]
    cuda.syncthreads()
    return value


@cuda.jit(device=True)
def twice_mirrored(value, t):
    return 2.0 * mirrored(value, t)


def test_shared_memory_of_a_function_that_two_others_call():
    """It is one array, as it is to the GPU; NVVM would not link it."""

    def kernel(x):
        t = cuda.threadIdx.x
        x[t] = mirrored(x[t], t) + twice_mirrored(x[t], t)

    x = np.arange(8.0)
    run(kernel, 1, 8, (x,), races=True)
    np.testing.assert_array_equal(x, 3.0 * np.arange(8.0)[::-1])


def doubled_and_shifted(x):
    raise NotImplementedError("in kernels only")


@overload(doubled_and_shifted, target="cuda")
def _doubled_and_shifted(x):
    return lambda x: 2.0 * x + cuda.threadIdx.x


def test_overloads_of_the_user():
    def kernel(x):
        t = cuda.threadIdx.x
        x[t] = doubled_and_shifted(x[t])

    x = np.arange(8.0)
    run(kernel, 1, 8, (x,))
    np.testing.assert_array_equal(x, 3.0 * np.arange(8.0))


def raising(x, y):
    i = cuda.grid(1)
    if x[i] < 0.0:
        raise ValueError("negative")
    y[i] = 1.0 / x[i]


@pytest.mark.parametrize("debug", [False, True])
def test_a_thread_that_raises_ends(debug: bool):
    """As in Numba: without ``debug`` it just ends; with it, dividing by zero raises, too."""
    x, y = np.array([1.0, -1.0, 0.0, 4.0]), np.full(4, 7.0)
    expected = pytest.raises(ValueError, match="negative") if debug else nullcontext()
    with warnings.catch_warnings(), expected:
        warnings.simplefilter("ignore")
        run(raising, 1, 4, (x, y), debug=debug, opt=not debug)
    np.testing.assert_array_equal(y, [1.0, 7.0, 7.0 if debug else np.inf, 0.25])


def test_options_of_the_decorator():
    @cuda.jit(max_registers=40, fastmath=True)
    def kernel(x):
        x[cuda.grid(1)] *= 2.0

    module = load_kernel(kernel, (F8,)).module
    assert module.fastmath
    function = parse_module(module.text).functions[module.name]
    assert '"nvvm.maxnreg"="40"' in function.attributes


@pytest.mark.parametrize("bounds", [128, (128, 2)])
def test_launch_bounds(bounds: int | tuple[int, int]):
    @cuda.jit(launch_bounds=bounds)
    def kernel(x):
        x[cuda.grid(1)] *= 2.0

    module = load_kernel(kernel, (F8,)).module
    attributes = parse_module(module.text).functions[module.name].attributes
    assert '"nvvm.maxntid"="128"' in attributes
    assert ('"nvvm.minctasm"="2"' in attributes) == (bounds != 128)


def test_lines_are_the_users():
    text = load_kernel(cuda.jit(raising), (F8, F8)).module.text
    line = raising.__code__.co_firstlineno
    assert f"!DILocation(line: {line + 4}," in text
    assert "DILocalVariable" not in text.partition("!llvm.dbg.cu")[0]


def test_what_numba_cannot_type_is_numbas_error():
    def kernel(x):
        x[0] = undefined_name  # noqa: F821

    with pytest.raises(numba_errors.NumbaError, match="undefined_name"):
        load_kernel(cuda.jit(kernel), (F8,))


def test_an_operation_that_irad_does_not_know_is_refused():
    @cuda.jit
    def kernel(x):
        x[0] = 1.0
        half_as_integer(x)

    from llvmlite import ir
    from numba.cuda.extending import intrinsic

    @intrinsic
    def half_as_integer(context, x):
        def lower(context, builder, signature, arguments):
            code = ir.InlineAsm(ir.FunctionType(ir.IntType(32), []), "mov.u32 $0, %smid;", "=r", side_effect=True)
            builder.call(code, [])
            return context.get_dummy_value()

        return types.none(x), lower

    with pytest.raises(irad.UnsupportedError, match=r"mov\.u32 \$0, %smid;") as refused:
        load_kernel(kernel, (F8,))
    assert refused.value.location is not None
    assert refused.value.location.line == kernel.py_func.__code__.co_firstlineno + 3


def test_the_grid_of_a_cooperative_launch_and_printing_stay_recognisable():
    @cuda.jit
    def kernel(x):
        cuda.cg.this_grid().sync()
        print("x", x[0])

    text = load_kernel(kernel, (F8,)).module.text
    assert "@cudaCGSynchronize(" in text
    assert "@vprintf(" in text


def test_numbas_own_tables_stay_as_they_are():
    """What irad compiles must not be launched by Numba, nor the other way round."""

    @cuda.jit(device=True)
    def helper(x):
        return x + 1.0

    @cuda.jit
    def kernel(x):
        x[0] = helper(x[0]) + of_the_cpu(x[0])

    before = vars(of_the_cpu).keys()
    load_kernel(kernel, (F8,))
    assert not helper.overloads
    assert not kernel.overloads
    assert vars(of_the_cpu).keys() == before
    from numba.cuda import descriptor, dispatcher
    from numba.cuda.cudadrv import nvvm

    assert numba_cuda._CONTEXTS._made is not None
    assert descriptor.cuda_target._typingctx is not numba_cuda._CONTEXTS._made[0]
    assert nvvm.NVVM is not numba_cuda._Nvvm
    assert dispatcher.get_current_device.__module__.startswith("numba")


def test_the_names_of_numba_that_are_used_exist():
    """The first test to run with a new version of Numba or numba-cuda."""
    from numba.cuda import compiler, descriptor, dispatcher, target
    from numba.cuda.cudadrv import nvvm

    assert {"_typingctx", "_targetctx"} <= vars(descriptor.cuda_target).keys()
    assert callable(compiler.compile_cuda)
    assert compiler.global_compiler_lock is not None
    assert dispatcher.get_current_device
    assert {"data_layout", "get_ir_version"} <= vars(nvvm.NVVM).keys()
    assert target.CUDATypingContext.resolve_value_type
    is_wrapped = hasattr(target.CUDATargetContext, "prepare_cuda_kernel")
    assert is_wrapped != hasattr(compiler, "kernel_fixup")


def test_everything_is_put_back_after_an_error():
    from numba.cuda.cudadrv import nvvm

    before = nvvm.NVVM
    with pytest.raises(numba_errors.NumbaError):
        load_kernel(cuda.jit(lambda x: x.nothing), (F8,))
    assert nvvm.NVVM is before


def test_threads_may_compile_at_the_same_time():
    found: dict[int, str] = {}

    def compile_one(number: int) -> None:
        def kernel(x):
            x[cuda.grid(1)] += number

        found[number] = load_kernel(cuda.jit(kernel), (F8,)).module.text

    threads = [threading.Thread(target=compile_one, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found.values())) == 4


def test_plain_functions_are_kernels():
    program = load_kernel(raising, (F8, F8))
    assert program is load_kernel(raising, (F8, F8))
    assert program.source.function == "raising"


def test_the_text_does_not_tell_how_often_something_was_compiled():
    def kernel(x, y):
        i = cuda.grid(1)
        shared = cuda.shared.array(32, types.float64)
        shared[cuda.threadIdx.x] = square(x[i])
        cuda.syncthreads()
        y[i] = square(shared[0])

    before = load_kernel(kernel, (F8, F8))
    irad.rules.inactive(f"unrelated_{id(kernel)}")  # what has no rule is compiled again, too
    after = load_kernel(kernel, (F8, F8))
    assert after is not before
    assert after.module == before.module
    names = {str(function.name) for function in parse_module(after.module.text).defined_functions()}
    assert after.module.name in names


@cuda.jit(device=True)
def power_by_recursion(x, n):
    if n <= 0:
        return 1.0
    return x * power_by_recursion(x, n - 1)


def test_a_function_that_calls_itself_is_refused_by_name():
    @cuda.jit
    def kernel(x):
        x[0] = power_by_recursion(x[0], 3)

    with pytest.raises(irad.UnsupportedError, match="kernel calls a device function that calls itself"):
        load_kernel(kernel, (types.float64[::1],))
