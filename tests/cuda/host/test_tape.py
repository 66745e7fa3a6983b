"""The tape of launches: against the same computation in NumPy, and what it refuses."""

from __future__ import annotations

import gc
import math

import numpy as np
import pytest
from numba import cuda
from numba.cuda.cudadrv.devicearray import DeviceNDArray
from numba.cuda.random import xoroshiro128p_uniform_float64

import irad
import irad.cuda
from irad import ChangedBufferError, Const, SignatureError, UnsupportedError

N = 6
STEPS = 4


@cuda.jit
def step_to(x, rate, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] + rate[0] * math.sin(x[i] * x[(i + 1) % x.size])


@cuda.jit
def step_in_place(x, rate):
    i = cuda.grid(1)
    if i < x.size:
        x[i] += rate[0] * math.sin(x[i])


@cuda.jit
def total(x, out):
    i = cuda.grid(1)
    if i < x.size:
        cuda.atomic.add(out, 0, x[i] * x[i])


@cuda.jit
def fill(x, value):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = value


@pytest.fixture(params=[False, True], ids=["", "races"])
def device(request):
    with irad.cuda.executor(races=request.param) as found:
        yield found


def start():
    return np.linspace(0.2, 1.4, N), np.array([0.3])


def ping_pong(x, rate, out):
    a, b = x, cuda.device_array(N)
    for _ in range(STEPS):
        step_to[1, 8](a, rate, b)
        a, b = b, a
    total[1, 8](a, out)


def in_place(x, rate, out):
    for _ in range(STEPS):
        step_in_place[1, 8](x, rate)
    total[1, 8](x, out)


def ping_pong_reference(x, rate):
    for _ in range(STEPS):
        x = x + rate * np.sin(x * np.roll(x, -1))
    return np.sum(x * x)


def in_place_reference(x, rate):
    for _ in range(STEPS):
        x = x + rate * np.sin(x)
    return np.sum(x * x)


def difference(f, arguments, position, step=1e-6):
    """The gradient of a real function by complex steps."""
    found = np.zeros_like(arguments[position])
    for i in range(found.size):
        moved = [np.array(each, complex) for each in arguments]
        moved[position][i] += 1e-30j
        found[i] = f(*moved).imag / 1e-30
    return found


PROGRAMS = pytest.mark.parametrize(
    ("program", "reference"), [(ping_pong, ping_pong_reference), (in_place, in_place_reference)]
)


def recorded(program, tape=None):
    x, rate = map(cuda.to_device, start())
    out = cuda.to_device(np.zeros(1))
    with tape or irad.cuda.Tape() as tape:
        program(x, rate, out)
    return tape, x, rate, out


@PROGRAMS
def test_overwritten_arrays(device, program, reference):
    tape, x, rate, out = recorded(program)
    assert len(tape) == STEPS + 1
    assert tape.saved_bytes > 0
    assert out[0] == pytest.approx(reference(*start()))
    left = x.copy_to_host(), out.copy_to_host()
    for _ in range(2):  # it can be reversed again
        tape.backward(out)
        np.testing.assert_allclose(tape.gradient(x), difference(reference, start(), 0), rtol=1e-12)
        np.testing.assert_allclose(tape.gradient(rate), difference(reference, start(), 1), rtol=1e-12)
    np.testing.assert_array_equal(x, left[0])
    np.testing.assert_array_equal(out, left[1])


@PROGRAMS
def test_the_second_step_allocates_nothing(program, reference):
    with irad.cuda.executor() as device:
        for _ in range(2):  # the second of them finds what the first has left
            tape, x, rate, out = recorded(program)
            tape.backward(out)
            tape.reset()
            before, counted = device.pool.allocations, device.launches
            tape, *_, out = recorded(program, tape)
            tape.backward(out)
            del tape, x, rate, out
            gc.collect()
        assert device.pool.allocations == before
        assert device.launches > counted


def test_what_is_not_needed_is_not_saved():
    with irad.cuda.executor():
        x, rate = map(cuda.to_device, start())
        y = cuda.device_array(N)
        with irad.cuda.Tape() as tape:
            step_to[1, 8](x, rate, y)
        assert tape.saved_bytes == 0


def test_only_what_leads_to_the_output_is_reversed():
    with irad.cuda.executor() as device:
        x, rate = map(cuda.to_device, start())
        y, z, out = cuda.device_array(N), cuda.device_array(N), cuda.to_device(np.zeros(1))
        with irad.cuda.Tape() as tape:
            step_to[1, 8](x, rate, y)
            step_to[1, 8](x, rate, z)
            total[1, 8](z, out)
        before = device.launches
        tape.backward(out)
        assert device.launches - before == 3  # the seed, and the derivatives of two kernels
        np.testing.assert_array_equal(tape.gradient(y), 0.0)


def test_copies(device):
    host, rate = start()
    with irad.cuda.Tape() as tape:
        x, r = cuda.to_device(host), cuda.to_device(rate)
        y, z = cuda.device_array(N), cuda.device_array(N)
        step_to[1, 8](x, r, y)
        z.copy_to_device(y)
        y.copy_to_device(np.zeros(N))  # the gradient of what was in y must not come from here
        step_in_place[1, 8](z, r)
        result = z.copy_to_host()
        again = np.zeros(N)
        y.copy_to_host(again)
    seed = np.arange(1.0, N + 1)
    tape.backward((result, seed), (again, seed))
    np.testing.assert_array_equal(again, 0.0)

    def reference(x, rate):
        y = x + rate * np.sin(x * np.roll(x, -1))
        return np.sum(seed * (y + rate * np.sin(y)))

    np.testing.assert_allclose(tape.gradient(x), difference(reference, (host, rate), 0), rtol=1e-12)
    np.testing.assert_allclose(tape.gradient(host), difference(reference, (host, rate), 0), rtol=1e-12)
    np.testing.assert_allclose(tape.gradient(rate), difference(reference, (host, rate), 1), rtol=1e-12)


def test_constants_that_overwrite_end_the_derivative(device):
    x, rate = map(cuda.to_device, start())
    y, out = cuda.device_array(N), cuda.to_device(np.zeros(1))
    with irad.cuda.Tape() as tape:
        step_to[1, 8](x, rate, y)
        fill[1, 8](y, 2.0)
        total[1, 8](y, out)
    tape.backward(out)
    np.testing.assert_array_equal(tape.gradient(x), 0.0)


def test_views_share_their_shadows(device):
    x, out = cuda.to_device(start()[0]), cuda.to_device(np.zeros(1))
    with irad.cuda.Tape() as tape:
        total[1, 8](x[:4], out)
        total[1, 8](x[2:], out)
        total[1, 8](x[::-2], out)
    tape.backward(out)
    counts = np.array([1, 1, 2, 2, 1, 1]) + np.array([0, 1, 0, 1, 0, 1])
    np.testing.assert_allclose(tape.gradient(x), 2.0 * counts * start()[0])
    np.testing.assert_allclose(tape.gradient(x[1:3]), tape.gradient(x)[1:3])


def test_random_numbers_are_those_of_the_forward_run():
    @cuda.jit
    def noisy(states, x, y):
        i = cuda.grid(1)
        if i < x.size:
            y[i] = x[i] * xoroshiro128p_uniform_float64(states, i)

    with irad.cuda.executor():
        x, y, z = cuda.to_device(np.ones(N)), cuda.device_array(N), cuda.device_array(N)
        states = _states()
        with irad.cuda.Tape() as tape:
            noisy[1, 8](states, x, y)
            noisy[1, 8](states, y, z)
        tape.backward((z, np.ones(N)))
        np.testing.assert_array_equal(tape.gradient(x), z)


def _states():
    states = np.zeros(N, dtype=[("s0", np.uint64), ("s1", np.uint64)])
    states["s0"], states["s1"] = (
        np.arange(3, N + 3, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15),
        np.arange(7, N + 7),
    )
    return states


def test_streams_and_events(device):
    x, rate = map(cuda.to_device, start())
    y, out = cuda.device_array(N), cuda.to_device(np.zeros(1))
    stream, event = cuda.stream(), cuda.event()
    with irad.cuda.Tape() as tape:
        step_to[1, 8, stream](x, rate, y)
        event.record(stream)
        event.wait()
        total[1, 8](y, out)
        stream.synchronize()
        cuda.synchronize()
    tape.backward(out)
    assert np.all(tape.gradient(x) != 0.0)


def test_value_and_grad():
    def loss(x, rate):
        out = cuda.to_device(np.zeros(1))
        ping_pong(x, rate, out)
        return out.copy_to_host()

    with irad.cuda.executor() as device:
        for _ in range(3):
            before = device.pool.allocations
            x, rate = map(cuda.to_device, start())
            value, (dx, drate) = irad.cuda.value_and_grad(loss, argnums=(0, 1))(x, rate)
            assert value == pytest.approx(ping_pong_reference(*start()))
            np.testing.assert_allclose(dx, difference(ping_pong_reference, start(), 0), rtol=1e-12)
            np.testing.assert_allclose(drate, difference(ping_pong_reference, start(), 1), rtol=1e-12)
            del dx, drate
            gc.collect()
        assert device.pool.allocations == before


def test_a_gradient_lives_as_long_as_it_is_used():
    with irad.cuda.executor():
        tape, x, _, out = recorded(in_place)
        tape.backward(out)
        gradient = tape.gradient(x)
        wanted = gradient.copy_to_host()
        del tape
        gc.collect()
        other, _, _, out = recorded(ping_pong)
        other.backward(out)
        np.testing.assert_array_equal(gradient, wanted)


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_changes_that_the_tape_does_not_see():
    with irad.cuda.executor():
        x, rate = start()
        y = np.zeros(N)
        with irad.cuda.Tape():
            step_to[1, 8](x, rate, y)
            x[2] = 5.0  # NumPy's array: seen when it is used again
            with pytest.raises(ChangedBufferError, match="x was changed after its last use on the tape"):
                step_to[1, 8](x, rate, y)


def test_changes_before_backward_are_seen():
    with irad.cuda.executor():
        x, rate = start()
        y, out = np.zeros(N), np.zeros(1)
        with irad.cuda.Tape() as tape:
            step_to[1, 8](x, rate, y)
            total[1, 8](y, out)
        x[2] = 5.0
        with pytest.raises(ChangedBufferError):
            tape.backward(out)


def test_assignments_to_arrays_of_numba_are_refused():
    with irad.cuda.executor(), irad.cuda.Tape(), pytest.raises(UnsupportedError, match="assignments to elements"):
        DeviceNDArray.__setitem__(None, 0, 2.0)


def test_what_a_tape_does_not_take():
    with irad.cuda.executor():
        x, rate = map(cuda.to_device, start())
        y = cuda.device_array(N)
        with irad.cuda.Tape() as tape:
            with pytest.raises(SignatureError, match="a tape is recording already"), irad.cuda.Tape():
                pass
            with pytest.raises(SignatureError, match=r"y is irad\.Const, and the kernel may write to it"):
                step_to[1, 8](x, rate, Const(y))
            with pytest.raises(SignatureError, match="x is constant and shares memory with y"):
                step_to[1, 8](Const(x), rate, x)
            with pytest.raises(UnsupportedError, match="cannot be recorded"):
                y.copy_to_device(cuda.to_device(np.ones(N, np.float32)))
            with pytest.raises(SignatureError, match="while a tape records"):
                irad.cuda.grad(step_in_place)[1, 8](Const(x), Const(rate))
            with pytest.raises(SignatureError, match="backward is called in the block"):
                tape.backward((y, y))
            step_to[1, 8](x, Const(rate), y)
        with pytest.raises(SignatureError, match="there are no derivatives yet"):
            tape.gradient(x)
        with pytest.raises(SignatureError, match="an output has the shape"):
            tape.backward(y)
        with pytest.raises(SignatureError, match="the cotangent is"):
            tape.backward((y, np.ones(N, np.float32)))
        tape.backward((y, np.ones(N)))
        with pytest.raises(SignatureError, match="has not seen this array"):
            tape.gradient(rate)


@cuda.jit
def decay(u, rate):
    i = cuda.grid(1)
    if i < u.size:
        u[i] = u[i] - rate[0] * u[i] ** 3


@cuda.jit
def energy(u, out):
    i = cuda.grid(1)
    if i < u.size:
        cuda.atomic.add(out, 0, u[i] * u[i])


def decayed(start, rate, nothing, u, out):
    u.copy_to_device(start)
    out.copy_to_device(nothing)
    for _ in range(10):
        decay[1, 32](u, rate)
    energy[1, 32](u, out)
    return out


def in_device():
    """Arrays that are the same in each step: which of them are neighbours decides how many shadows there are."""
    given = np.linspace(0.1, 1.0, 20), np.array([0.01]), np.zeros(1), np.zeros(20), np.zeros(1)
    return [cuda.to_device(each) for each in given]


@pytest.mark.parametrize("is_held", [False, True])
def test_a_gradient_that_is_held_does_not_hold_the_tape(is_held: bool):
    """Results of a step are held while the next one runs, as in a loop that assigns them to the same names."""
    with irad.cuda.executor() as device:
        given = in_device()
        step = irad.cuda.value_and_grad(decayed, argnums=(0, 1))
        counts = []
        for _ in range(4):
            before = device.pool.allocations
            value, gradients = step(*given)
            counts.append(device.pool.allocations - before)
            if not is_held:
                del value, gradients
    assert counts[0] > 10
    assert counts[1:] == [0, 0, 0]


def test_gradients_stay_as_they_are():
    """Each has memory of its own, also after the tape is gone, reset, or has gone backward again."""
    with irad.cuda.executor():
        given = in_device()
        start = given[0]
        kept, wanted = [], []
        for scale in (1.0, 2.0, 3.0):
            with irad.cuda.Tape() as tape:
                out = decayed(*given)
            for factor in (scale, 10.0 * scale):
                tape.backward((out, np.array([factor])))
                kept += [tape.gradient(start), tape.gradient(start), tape.gradient(start[3:5])]
                wanted += [each.copy_to_host() for each in kept[-3:]]
            tape.reset()
    for found, before in zip(kept, wanted, strict=True):
        np.testing.assert_array_equal(found.copy_to_host(), before)
    np.testing.assert_allclose(wanted[3], 10.0 * wanted[0])
