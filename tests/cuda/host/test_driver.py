"""What the driver is asked for: contexts of threads and devices, streams, shared memory, logs. By a stand-in."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from numba import cuda, float64

import irad
import irad.cuda
from irad import Duplicated
from irad.cuda.devices import gpu
from irad.cuda.devices.driver import Driver
from tests.cuda.host import fake_gpu
from tests.cuda.host.fake_driver import FakeLibrary
from tests.cuda.host.fake_gpu import Foreign
from tests.cuda.ptx.tools import needs_libdevice

N = 8


@cuda.jit
def logistic(x, y):
    """It has a tape."""
    i = cuda.grid(1)
    if i < x.size:
        v = x[i]
        for _ in range(3):
            v = 3.5 * v * (1.0 - v)
        y[i] = v


@cuda.jit
def tile(x, y):
    """20 KiB of static and 10 of dynamic shared memory, both of which double."""
    s = cuda.shared.array(2560, float64)
    d = cuda.shared.array(0, float64)
    t = cuda.threadIdx.x
    s[t] = x[t] ** 2
    d[t] = x[t]
    cuda.syncthreads()
    y[t] = s[N - 1 - t] * d[t]


@pytest.fixture
def library(monkeypatch):
    return fake_gpu.install(monkeypatch)


class OnStream(Foreign):
    """An array that is computed on a stream."""

    def __init__(self, array, stream):
        super().__init__(array)
        self.stream = stream

    @property
    def __cuda_array_interface__(self):
        return {**super().__cuda_array_interface__, "stream": self.stream}


def run(kernel=logistic, shared=0, stream=0, wrap=Foreign, threads=N):
    x, dx, y, dy = np.linspace(0.1, 0.9, N), np.zeros(N), np.zeros(N), np.ones(N)
    given = Duplicated(wrap(x), wrap(dx)), Duplicated(wrap(y), wrap(dy))
    irad.cuda.grad(kernel)[1, threads, stream, shared](*given)
    return dx


def wanted(kernel=logistic, shared=0):
    x, dx = np.linspace(0.1, 0.9, N), np.zeros(N)
    with irad.cuda.executor():
        irad.cuda.grad(kernel)[1, N, 0, shared](Duplicated(x, dx), Duplicated(np.zeros(N), np.ones(N)))
    return dx


def test_a_thread_without_a_context_gets_it_for_each_call(library):
    found, stacks = [], []

    def work():
        found.append(run())
        stacks.append(list(library.stack))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    np.testing.assert_allclose(found[0], wanted(), rtol=1e-13)
    assert set.union(*library.current.values()) == {4096}
    assert stacks == [[]], "the thread has what it had before"


def test_the_context_of_the_thread_is_back_after_each_call(library):
    library.stack.append(8192)
    run()
    assert library.stack[-1] == 8192
    assert set.union(*library.current.values()) == {4096}


def test_each_device_has_its_own_kernels_and_buffers(monkeypatch):
    library = FakeLibrary()
    monkeypatch.setattr(gpu, "load_library", lambda: library)
    monkeypatch.setattr(gpu, "_GPUS", {})
    first = gpu.gpu()
    assert library.stack == [4096], "that of the first device, where there was none"
    library.stack[:] = [8192]
    second = gpu.gpu()
    library.stack[:] = [4096]
    assert gpu.gpu() is first is not second
    assert first.pool is not second.pool
    library.current.clear()
    buffer = second.pool.take(100, 0)
    assert library.current == {"cuMemAlloc_v2": {8192}}
    del buffer
    assert library.current["cuMemFree_v2"] == {8192}
    assert library.stack == [4096]


def test_an_array_of_another_device_is_refused(library):
    x = Foreign(np.linspace(0.1, 0.9, N))
    library.ordinals[x.array.ctypes.data] = 1
    with pytest.raises(irad.SignatureError, match="in the memory of another GPU"):
        irad.cuda.grad(logistic)[1, N](Duplicated(x, x), Duplicated(x, x))
    library.ordinals[x.array.ctypes.data] = 0
    other = Foreign(np.zeros(N))
    irad.cuda.grad(logistic)[1, N](Duplicated(x, other), Duplicated(Foreign(np.zeros(N)), Foreign(np.zeros(N))))


def test_the_stream_of_an_array_is_waited_for(library):
    streams = iter([5, None, 7, 77, 5, 1] + [77] * 50)
    dx = run(stream=77, wrap=lambda array: OnStream(array, next(streams)))
    np.testing.assert_allclose(dx, wanted(), rtol=1e-13)
    assert {(other or 0, own) for other, own in library.waits} >= {(5, 77), (7, 77)}
    assert all(own == 77 != other for other, own in library.waits)
    first = next(i for i, name in enumerate(library.calls) if name in ("cuMemcpyAsync", "cuLaunchKernel"))
    assert library.calls.index("cuStreamWaitEvent") < first
    library.waits.clear()
    run(stream=77)
    assert not library.waits, "it has waited once"


def test_static_and_dynamic_shared_memory_count_together(library):
    dx = run(tile, 10 * 1024)
    np.testing.assert_allclose(dx, wanted(tile, 10 * 1024), rtol=1e-13)
    assert set(library.dynamic_shared.values()) == {20 * 1024}, "beside 40 KiB that are static"
    library.dynamic_shared.clear()
    run(tile, 64)
    assert not library.dynamic_shared


def test_a_launch_that_does_not_fit_is_refused_before_the_driver_sees_it(library):
    with pytest.raises(irad.SignatureError, match=r"derivative of tile .* bytes of shared memory") as found:
        run(tile, 80 * 1024)
    assert "cuLaunchKernel" not in library.calls
    assert "this GPU (sm_80) has 166912 bytes for a block" in str(found.value)
    library.registers = 96
    with pytest.raises(irad.SignatureError, match="needs 96 registers for each of 1024 threads"):
        run(threads=1024)


@needs_libdevice
def test_large_blocks_are_compiled_for_their_size(library):
    run()
    run(threads=200)
    assert ".maxntid" not in library.images[-1]
    count = len(library.images)
    run(threads=1000)
    assert ".maxntid 1024" in library.images[-1]
    run(threads=1024)
    assert len(library.images) == count + 1


def test_what_the_drivers_compiler_says_is_in_the_error(library):
    library.rejects = b"ptxas application ptx input, line 7; error : Unknown symbol 'r'\0"
    with pytest.raises(irad.BackendError, match="cuModuleLoadDataEx") as found:
        run()
    assert "line 7; error : Unknown symbol 'r'" in str(found.value)


def test_limits_are_those_of_the_device():
    limits = Driver(FakeLibrary()).limits
    assert (limits.shared, limits.registers, limits.grid) == (163 * 1024, 65536, ((1 << 31) - 1, 65535, 65535))
