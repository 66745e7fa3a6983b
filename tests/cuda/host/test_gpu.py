"""The way to a GPU: against a stand-in of the driver, and where there is one on the device itself."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import numpy as np
import pytest
from numba import cuda

import irad
import irad.cuda
from irad import Active, Duplicated
from irad.cuda.devices import current
from irad.cuda.recording.record import recorded_copy
from tests.cuda.host import fake_gpu
from tests.cuda.host.fake_gpu import Foreign


@cuda.jit
def power(x, scale, y):
    i = cuda.grid(1)
    if i < x.size:
        v = scale
        for _ in range(3):
            v = v * x[i] + v * v
        y[i] = v


@pytest.fixture
def library(monkeypatch):
    return fake_gpu.install(monkeypatch)


def arguments():
    return np.linspace(0.5, 1.5, 40)[::2], 0.75, np.zeros(20), np.zeros(40)[::2], np.arange(1.0, 21.0)


def wanted():
    x, scale, y, dx, dy = arguments()
    with irad.cuda.executor():
        found = irad.cuda.grad(power)[1, 32](Duplicated(x, dx), Active(scale), Duplicated(y, dy))
    return found[1], dx, y


@pytest.mark.parametrize("stream", [0, 77, SimpleNamespace(handle=SimpleNamespace(value=77)), SimpleNamespace(ptr=77)])
def test_arrays_with_the_interface(library, stream):
    x, scale, y, dx, dy = arguments()
    given = Duplicated(Foreign(x), Foreign(dx)), Active(scale), Duplicated(Foreign(y), Foreign(dy))
    _, derivative, _ = irad.cuda.grad(power)[1, 32, stream](*given)
    expected, gradient, result = wanted()
    assert derivative == pytest.approx(expected)
    np.testing.assert_allclose(dx, gradient)
    np.testing.assert_allclose(y, result)
    assert library.streams == {77 if stream else None}
    loads = library.calls.count("cuModuleLoadDataEx")
    irad.cuda.grad(power)[1, 32, stream](*given)
    assert library.calls.count("cuModuleLoadDataEx") == loads


def test_arrays_of_the_host_are_refused(library):
    x, scale, y, dx, dy = arguments()
    with pytest.raises(irad.SignatureError, match="not in the memory of the GPU"):
        irad.cuda.grad(power)[1, 32](Duplicated(x, dx), Active(scale), Duplicated(y, dy))
    assert "cuLaunchKernel" not in library.calls


def test_buffers_are_freed(library):
    device = current.current_device()
    buffer = device.pool.take(1000, 0)
    assert buffer.address in library.memory
    device.pool.give(buffer, 0)
    del buffer
    device.pool.trim()
    gc.collect()
    assert not library.memory


def test_arrays_of_the_host_that_copies_overwrite(library):
    """What was in them is saved on the device and put back: copies for which the driver finds the direction."""
    x, y, dy = np.linspace(0.5, 1.5, 20), np.linspace(2.0, 3.0, 20), np.arange(1.0, 21.0)
    values, host = x.copy(), np.zeros(20)
    copied = [Foreign(x), Foreign(y)]
    with irad.cuda.Tape() as tape:
        for each in copied * 2:
            with recorded_copy(host, each, 0):
                host[:] = each.array  # Numba's own way needs its driver
    assert tape.saved_bytes == 3 * host.nbytes
    tape.backward((host, Foreign(dy)))
    np.testing.assert_array_equal(host, y)
    np.testing.assert_array_equal(x, values)
    shadow = tape.gradient(copied[1]).keeps[0]
    device = current.current_device()
    np.testing.assert_array_equal(np.frombuffer(device.download(shadow.address, 160, 0)), dy)
    moved = {address for pair in library.copied for address in pair}
    assert host.ctypes.data in moved
    assert {name for name in library.calls if "Dto" in name} == {"cuMemcpyDtoHAsync_v2"}  # the download here


def test_errors_of_the_driver(library):
    library.fails = "cuLaunchKernel"
    x, scale, y, dx, dy = arguments()
    given = Duplicated(Foreign(x), Foreign(dx)), Active(scale), Duplicated(Foreign(y), Foreign(dy))
    with pytest.raises(irad.BackendError, match="cuLaunchKernel of NVIDIA's driver fails: an illegal memory access"):
        irad.cuda.grad(power)[1, 32](*given)


@pytest.mark.parametrize(
    ("array", "layout"),
    [
        (np.zeros((2, 3)), "C"),
        (np.zeros((2, 3)).T, "F"),
        (np.zeros((4, 3))[::2], "A"),
        (np.zeros(3, np.float32), "C"),
        (np.zeros((0, 3)), "C"),
        (np.zeros((1, 3))[:, ::2], "A"),
    ],
)
def test_types_are_those_of_numba(library, array, layout):
    found = current.current_device().type_of(Foreign(array))
    assert (found.layout, found.ndim, str(found.dtype)) == (layout, array.ndim, str(array.dtype))


@pytest.mark.gpu
def test_on_a_gpu():
    if not cuda.is_available():
        pytest.skip("there is no GPU")
    x, scale, y, dx, dy = arguments()
    x, dx = x.copy(), dx.copy()
    arrays = [cuda.to_device(each) for each in (x, dx, y, dy)]
    stream = cuda.stream()
    given = Duplicated(arrays[0], arrays[1]), Active(scale), Duplicated(arrays[2], arrays[3])
    _, derivative, _ = irad.cuda.grad(power)[1, 32, stream](*given)
    expected, gradient, result = wanted()
    assert derivative == pytest.approx(expected)
    np.testing.assert_allclose(arrays[1].copy_to_host(), gradient)
    np.testing.assert_allclose(arrays[2].copy_to_host(), result)
