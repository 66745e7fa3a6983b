"""The executor as users meet it: host code of `numba.cuda` runs unchanged, without a driver."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import cuda

import irad
import irad.cuda
from irad import BackendError, Duplicated

ROOT = Path(__file__).parents[3]


@cuda.jit
def square(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] * x[i]


@cuda.jit
def unordered(x, out):
    """A sum without an atomic addition."""
    out[0] += x[cuda.grid(1)]


def test_host_code_of_numba():
    with irad.cuda.executor() as device:
        assert cuda.is_available()
        stream, start, end = cuda.stream(), cuda.event(), cuda.event()
        x = cuda.to_device(np.arange(4.0), stream=stream)
        y = cuda.device_array_like(x, stream=stream)
        start.record(stream)
        square[1, 8, stream](x, y)
        square.forall(4)(y, y)
        end.record(stream)
        end.synchronize()
        assert end.query()
        assert cuda.event_elapsed_time(start, end) >= 0.0
        with stream.auto_synchronize():
            host = y.copy_to_host(stream=stream)
        assert type(host) is np.ndarray
        np.testing.assert_array_equal(host, np.arange(4.0) ** 4)
        pinned = cuda.pinned_array(4)
        y.copy_to_host(pinned)
        np.testing.assert_array_equal(pinned, host)
        y.copy_to_device(np.ones(4))
        np.testing.assert_array_equal(y, 1.0)
        assert cuda.to_device(x) is x
        assert cuda.device_array((2, 3), np.float32, order="F").is_f_contiguous()
        assert cuda.device_array((2, 3), strides=(48, 8)).strides == (48, 8)
        cuda.synchronize()
        assert device.launches == 2


def test_arrays_of_the_device_are_copies():
    host = np.zeros(2)
    with irad.cuda.executor():
        array = cuda.to_device(host)
        array[0] = 1.0
    assert host[0] == 0.0


def test_a_launch_that_was_configured_before():
    if cuda.implementation != "Built-in":
        pytest.skip("numba-cuda asks the driver when a launch is configured")
    configured = square[128, 1]
    y = np.zeros(3)
    with irad.cuda.executor():
        configured(np.array([1.0, 2.0, 3.0]), y)
    np.testing.assert_array_equal(y, [1.0, 4.0, 9.0])


def test_the_innermost_executor_counts():
    x, y = np.ones(3), np.zeros(3)
    with irad.cuda.executor() as outer:
        with irad.cuda.executor() as inner:
            square[1, 4](x, y)
        square[1, 4](x, y)
    assert (outer.launches, inner.launches) == (1, 1)


def test_races_are_errors():
    with irad.cuda.executor(races=True), pytest.raises(irad.RaceError):
        unordered[1, 4](np.ones(4), np.zeros(1))


def test_accesses_outside_of_arrays_are_errors():
    @cuda.jit
    def beyond(x):
        x[cuda.grid(1)] = 1.0

    with irad.cuda.executor(races=True), pytest.raises(irad.KernelBoundsError):
        beyond[1, 4](np.zeros(3))


def test_without_a_device_the_error_says_what_to_do():
    if cuda.is_available():
        pytest.skip("there is a GPU")
    with pytest.raises(BackendError, match=r"with irad\.cuda\.executor\(\)"):
        irad.cuda.grad(square)[1, 4](Duplicated(np.ones(3), np.zeros(3)), Duplicated(np.zeros(3), np.ones(3)))


PROGRAM = """
import numpy as np
import irad, irad.cuda
from numba import cuda
irad.cuda.jit
@cuda.jit
def square(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] * x[i]
x, y = cuda.to_device(np.arange(3.0)), cuda.device_array(3)
square[1, 4](x, y)
print(y.copy_to_host())
dx = cuda.to_device(np.zeros(3))
irad.cuda.grad(square)[1, 4](irad.Duplicated(x, dx), irad.Duplicated(y, cuda.to_device(np.ones(3))))
print(dx.copy_to_host())
"""


@pytest.mark.parametrize(("value", "status"), [("1", 0), ("maybe", 1)])
def test_a_process_on_the_executor(value: str, status: int):
    environment = os.environ | {"IRAD_CUDA_EXECUTOR": value, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == status, done.stderr
    if status == 0:
        assert done.stdout.splitlines() == ["[0. 1. 4.]", "[0. 2. 4.]"]
    else:
        assert "IRAD_CUDA_EXECUTOR=maybe is neither true nor false" in done.stderr


def test_names_load_late():
    done = subprocess.run(
        [sys.executable, "-c", "import sys, irad.cuda; print('numba' in sys.modules)"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "False\n"
