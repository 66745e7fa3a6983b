"""What only a GPU shows: registers, shared memory, address spaces, streams, threads, derivatives in launches."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import cuda

import irad
import irad.cuda
from irad import Duplicated
from tests.cuda.host import test_inside
from tests.cuda.host.test_driver import logistic
from tests.cuda.ptx.test_limits import SIDE, black_scholes, prices, tile, tile_gradient
from tests.cuda.ptx.test_local_atomics import either

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not cuda.is_available(), reason="there is no GPU"),
]
Launch = Callable[[Callable[[Any], Any]], list[Any]]


def with_1024_threads(place: Callable[[Any], Any]) -> list[Any]:
    """Twice the registers that a block of this size has for the kernel alone."""
    arguments = [place(each) for each in prices(1024)]
    shadows = [place(np.ones_like(each)) for each in prices(1024)]
    irad.cuda.grad(cuda.jit(black_scholes))[1, 1024](*map(Duplicated, arguments, shadows))
    return shadows


def with_64_kib_of_shared_memory(place: Callable[[Any], Any]) -> list[Any]:
    """32 KiB static, which shadows double, and dynamic memory beside it."""
    x, dx = place(np.linspace(0, 1, SIDE * SIDE)), place(np.zeros(SIDE * SIDE))
    y, dy = place(np.zeros(SIDE)), place(np.linspace(1, 2, SIDE))
    irad.cuda.grad(tile)[1, SIDE, 0, SIDE * 8](Duplicated(x, dx), Duplicated(y, dy))
    return [dx]


def with_local_or_global_memory(place: Callable[[Any], Any]) -> list[Any]:
    x, dx, y, dy = (place(each) for each in (np.linspace(1, 2, 8), np.zeros(8), np.zeros(8), np.ones(8)))
    irad.cuda.grad(either)[1, 8](Duplicated(x, dx), Duplicated(y, dy), 3)
    return [dx]


def with_a_tape(place: Callable[[Any], Any]) -> list[Any]:
    x, dx, y, dy = (place(each) for each in (np.linspace(0.1, 0.9, 8), np.zeros(8), np.zeros(8), np.ones(8)))
    irad.cuda.grad(logistic)[1, 8](Duplicated(x, dx), Duplicated(y, dy))
    return [dx]


def with_derivatives_inside(place: Callable[[Any], Any]) -> list[Any]:
    x, v, parameters = place(np.linspace(0.8, 1.4, 8)), place(np.zeros(8)), place(np.array([2.0, 1.5]))
    test_inside.step[1, 32](x, v, parameters, 0.05)
    return [x, v]


PROGRAMS = (
    *(with_1024_threads, with_64_kib_of_shared_memory, with_local_or_global_memory, with_a_tape),
    with_derivatives_inside,
)


def same(found: list[Any], wanted: list[np.ndarray]) -> None:
    for each, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(each.copy_to_host(), other, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda each: each.__name__)
def test_a_gpu_does_what_the_executor_does(program: Launch):
    with irad.cuda.executor():
        wanted = program(np.copy)
    same(program(cuda.to_device), wanted)
    if program is with_64_kib_of_shared_memory:
        np.testing.assert_allclose(wanted[0], tile_gradient(np.linspace(0, 1, SIDE * SIDE), np.linspace(1, 2, SIDE)))


def test_threads_launch_at_the_same_time():
    with irad.cuda.executor():
        wanted = with_a_tape(np.copy)
    found: list[list[Any]] = []
    threads = [threading.Thread(target=lambda: found.append(with_a_tape(cuda.to_device))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == len(threads)
    for each in found:
        same(each, wanted)


class OnStream:
    """An array whose interface says that it is computed on a stream."""

    def __init__(self, array: Any, stream: Any) -> None:
        self.array, self.stream = array, stream

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.array.__cuda_array_interface__, "version": 3, "stream": int(self.stream.handle.value)}


def test_the_stream_of_an_array_is_waited_for():
    """The array is computed on a stream of its own, after much else, and read on the default one."""
    stream, count = cuda.stream(), 1 << 22

    @cuda.jit
    def fill(x, value):
        i = cuda.grid(1)
        if i < x.size:
            for _ in range(200):
                x[i] = 0.5 * x[i] + 0.5 * value

    x, dx = cuda.to_device(np.zeros(count)), cuda.to_device(np.zeros(count))
    y, dy = cuda.to_device(np.zeros(count)), cuda.to_device(np.ones(count))
    cuda.synchronize()
    fill[count // 256, 256, stream](x, 0.3)
    given = Duplicated(OnStream(x, stream), OnStream(dx, stream))
    irad.cuda.grad(logistic)[count // 256, 256](given, Duplicated(y, dy))
    cuda.synchronize()
    with irad.cuda.executor():
        one, done = np.full(1, 0.3), np.zeros(1)
        irad.cuda.grad(logistic)[1, 1](Duplicated(one, done), Duplicated(np.zeros(1), np.ones(1)))
    np.testing.assert_allclose(dx.copy_to_host(), done[0], rtol=1e-9)


def test_what_a_device_has_not_is_refused_before_the_driver_is_asked():
    arguments = [cuda.to_device(each) for each in prices(1024)]
    bound = cuda.jit(max_registers=96)(black_scholes)
    with pytest.raises(irad.SignatureError, match="registers for each of 1024 threads"):
        irad.cuda.grad(bound)[1, 1024](*(Duplicated(each, cuda.to_device(np.ones(1024))) for each in arguments))
