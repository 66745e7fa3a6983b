"""Array libraries and kernels on one tape: memory that is shared and overwritten, what is refused, rules of users."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from numba import cuda

import irad
import irad.cuda
from irad import Const, RuleError, SignatureError, UnsupportedError
from tests.cuda.host.array_case import check

V, W = np.array([0.4, -1.2, 2.0, 0.7]), np.array([1.5, 0.3, -0.8, 1.1])
A = np.arange(12.0).reshape(3, 4) / 5.0 - 1.0


@cuda.jit
def square(x, y):
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i] * x[i]


@pytest.fixture
def device():
    with irad.cuda.executor() as found:
        yield found


def in_place_operators(x, y):
    x += y
    x *= x
    x[1:] -= y[:-1]
    x /= 3.0
    return x * y


def with_out(x, y):
    z = np.zeros_like(x)
    np.multiply(x, y, out=z)
    np.sin(z, z)
    np.add(z[::2], x[:2], out=z[1::2])
    np.sum(z, out=x[:1].reshape(()))
    x.sum(out=y[2:3].reshape(()))
    return z + x + y


def overlapping(x):
    x[1:] = x[:-1]
    x[:-1] += x[1:]
    return x * x


def assigned(x, y):
    x[0] = 2.0 * y[1]
    x[[1, 1]] = y[2:]
    x[x > 1.5] = y[0]
    return x * y


def filled(x, y):
    z = x * y
    x.fill(3.0)
    y[...] = z[0]
    return z + x * y


def copied(x, y):
    np.copyto(x, y, where=np.array([True, False, False, True]))
    np.put(y, [1, 2], x[:2])
    np.putmask(x, np.array([False, True, False, False]), y)
    np.place(y, np.array([True, False, False, False]), x[2:])
    return x * y


def sorted_in_place(x):
    y = x * 2.0
    x.sort()
    return x * y


def added_at(x, y):
    np.add.at(x, [0, 2, 0], y[:3])
    np.add.at(x, 1, 2.0)
    return x * y


def scalars(x):
    s = x[0] * x[-1]
    x[2] = s
    return s * x


@pytest.mark.parametrize("f", [in_place_operators, with_out, assigned, filled, copied, added_at])
def test_arrays_that_are_overwritten(f):
    check(f, V, W)


@pytest.mark.parametrize("f", [overlapping, sorted_in_place, scalars])
def test_one_array_that_is_overwritten(f):
    check(f, V)


@pytest.mark.parametrize("shapes", [((2, 2), (2, 2)), ((2,), (2, 2)), ((3, 2, 2), (2, 2))])
def test_products_in_place(shapes):
    def times(x, y):
        x @= y
        x @= np.swapaxes(x, -1, -2) if x.ndim > 1 else y
        return x * x

    check(times, *(np.linspace(-1.0, 1.5, np.prod(shape)).reshape(shape) for shape in shapes))


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
def test_single_precision(dtype, device):
    x = cuda.to_device(V.astype(dtype))
    with irad.cuda.Tape() as tape:
        y = np.exp(x) * 2.0 + x[::-1]
    assert y.dtype == dtype
    tape.backward((y, np.ones(4, dtype)))
    assert tape.gradient(x).dtype == dtype
    np.testing.assert_allclose(tape.gradient(x), 2.0 * np.exp(V.astype(dtype)) + 1.0, rtol=1e-6)


def test_views_and_constants_need_no_record(device):
    x = cuda.to_device(A)
    with irad.cuda.Tape() as tape:
        view = x.T[1:].reshape(3, 3, order="F")[::-1]
        assert np.argsort(x).dtype == np.int64
        assert np.allclose(x, A)
        assert "DeviceArray" in repr(x)
        assert x.shape == np.shape(x) == (3, 4)
        assert bool(np.all(x < 100.0))
        assert len(tape) == 0
        y = view * 2.0
    assert np.shares_memory(view, x)
    assert len(tape) == 1
    tape.backward((y, np.ones((3, 3))))
    wanted = np.full((3, 4), 2.0)
    wanted[:, 0] = 0.0
    np.testing.assert_array_equal(tape.gradient(x), wanted)


def test_kernels_between_functions(device):
    x, y = cuda.to_device(V), cuda.device_array(4)
    with irad.cuda.Tape() as tape:
        u = np.sin(x)
        square[1, 32](u, y)
        loss = y @ y[::-1]
        square[1, 32](y, x)
        loss += x.sum()
    tape.backward(loss)
    s, c = np.sin(V), np.cos(V)
    wanted = (2.0 * (s**2)[::-1] + 2.0 * s**2) * 2.0 * s * c
    np.testing.assert_allclose(tape.gradient(x), wanted, rtol=1e-12)
    np.testing.assert_allclose(tape.gradient(u), wanted / c, rtol=1e-12)  # of what was computed on the tape, too
    host = loss.copy_to_host()
    assert host == pytest.approx(np.sum(s**2 * (s**2)[::-1] + s**4))


def test_ties_ends_and_zeros(device):
    x = cuda.to_device(np.array([2.0, 2.0, 0.0]))
    with irad.cuda.Tape() as tape:
        y = np.max(x) + np.min(x) + np.linalg.norm(x * 0.0) + np.sqrt(x)[2] * 0.0 + np.maximum(x, x[::-1])[1]
    tape.backward(y)
    np.testing.assert_array_equal(tape.gradient(x), [1.0, 1.0, 1.0])


def test_zero_times_an_infinite_slope(device):
    x = cuda.to_device(np.array([0.0, 4.0]))
    with irad.cuda.Tape() as tape:
        y = np.sqrt(x)
    tape.backward((y, np.array([0.0, 1.0])))
    np.testing.assert_array_equal(tape.gradient(x), [0.0, 0.25])


def test_empty_arrays():
    check(lambda x, y: np.concatenate([x, y]) * 2.0, np.zeros(0), V)
    check(lambda x: np.sum(x[2:2]) + x.sum(), V)


def test_memory_goes_back(device):
    def step(tape):
        x = cuda.to_device(V)
        with tape:
            y = x * 1.0
            x += np.sin(x)
            y *= x
        tape.backward((y, V))
        found = tape.gradient(x).copy_to_host()
        tape.reset()
        return found

    tape = irad.cuda.Tape()
    first = step(tape)
    step(tape)
    before = device.pool.allocations
    np.testing.assert_array_equal(step(tape), first)
    gc.collect()
    assert device.pool.allocations == before


def test_constants(device):
    x, w = cuda.to_device(V), cuda.to_device(W)
    with irad.cuda.Tape() as tape:
        y = x * Const(w) + np.sort(Const(w)) + np.partition(Const(w), 2)
        z = np.dot(Const(w), x)
    tape.backward((y, np.ones(4)), z)
    np.testing.assert_array_equal(tape.gradient(x), 2.0 * W)
    with pytest.raises(SignatureError, match="has not seen this array"):
        tape.gradient(w)


def test_integers_that_are_overwritten(device):
    x, places = cuda.to_device(V), cuda.to_device(np.array([0, 1, 2, 3]))
    with irad.cuda.Tape() as tape:
        y = x[places] * 2.0
        places[...] = 1
        np.add(places, 2, out=places)
        z = x[places] * 3.0
    tape.backward((y, np.ones(4)), (z, np.ones(4)))
    np.testing.assert_array_equal(tape.gradient(x), [2.0, 2.0, 2.0, 14.0])
    np.testing.assert_array_equal(places, 3)


def test_arguments_of_the_host_are_copied(device):
    x, places = cuda.to_device(V), np.array([3, 0])
    with irad.cuda.Tape() as tape:
        y = x[places] * 2.0
        places[...] = 1
    tape.backward((y, np.ones(2)))
    np.testing.assert_array_equal(tape.gradient(x), [2.0, 0.0, 0.0, 2.0])


# --- outside of a tape ------------------------------------------------------------------------------------------------


def test_arrays_of_the_device_are_plain_outside_of_a_tape(device):
    x, out = cuda.to_device(V), cuda.device_array(4)
    assert isinstance(x * 2.0, type(x))
    assert isinstance(x.sum(), float)
    assert isinstance(x[1], float)
    assert np.add(x, 1.0, out=out) is out
    np.testing.assert_array_equal(out, V + 1.0)
    assert isinstance(np.concatenate([x, x]), type(x))
    assert [each.size for each in np.split(x, 2)] == [2, 2]
    x[1:] = 0.0
    np.testing.assert_array_equal(x, [V[0], 0.0, 0.0, 0.0])


# --- refusals ---------------------------------------------------------------------------------------------------------

REFUSED = [
    (lambda x: np.partition(x, 1), "partition of NumPy has no rule for a tape"),
    (lambda x: x.partition(1), "partition of NumPy has no rule"),
    (np.median, "median of NumPy has no rule"),
    (np.gradient, "gradient of NumPy has no rule"),
    (np.fft.hfft, "fft.hfft of NumPy has no rule"),
    (np.modf, "modf of NumPy has no rule"),
    (
        lambda x: np.add(x, x, where=np.array([True, False, True, True]), out=np.zeros_like(x)),
        "as it is called here.*'where'",
    ),
    (lambda x: np.sum(x, initial=2.0), "as it is called here: its rule does not know 'initial'"),
    (lambda x: np.sum(x, 0, None, None), "as it is called here: its rule does not know a call with 4 arguments"),
    (lambda x: np.matmul(x[:, None], x[None], axes=[(1, 0), (1, 0), (0, 1)]), "matmul of NumPy has .*'axes'"),
    (lambda x: np.pad(x, 1, mode="linear_ramp"), "no rule for mode='linear_ramp'"),
    (lambda x: np.linalg.norm(x, 3), "no rule for ord=3 of a vector"),
    (lambda x: np.einsum("ii,i->i", np.outer(x, x), x), "a letter that an operand has twice"),
    (lambda x: np.einsum("...i,i->...", x, x), "no rule for an ellipsis"),
    (lambda x: np.where(x, x, 1.0), "the condition is an array of floats"),
    (lambda x: np.maximum(x, 1j * x), "no rule for complex numbers"),
    (
        lambda x: np.full_like(cuda.to_device(np.arange(4)), x[:1], dtype=np.float64),
        "the array that is given is not of floats",
    ),
    (lambda x: np.gradient(x * x), "gradient of NumPy has no rule"),
    (lambda x: np.ldexp(x, 2), "ldexp of NumPy has no rule"),
]


@pytest.mark.parametrize(("f", "message"), REFUSED)
def test_what_has_no_rule_is_refused(f, message, device):
    x = cuda.to_device(V)
    with irad.cuda.Tape(), pytest.raises(UnsupportedError, match=message) as found:
        f(x)
    assert found.value.location.file == __file__
    assert "irad.cuda.rule" in found.value.remedy
    np.testing.assert_array_equal(x, V)


def test_a_rule_that_fails_leaves_memory_as_it_was_and_no_derivatives(device):
    fails = irad.cuda.rule(lambda x: np.asarray(x) * 2.0, lambda call, cotangent, x: 1 // 0)
    x = cuda.to_device(V)
    with irad.cuda.Tape() as tape:
        y = x * 1.0
        y *= x
        z = fails(y)
        y += x
    with pytest.raises(ZeroDivisionError):
        tape.backward((z, np.ones(4)))
    np.testing.assert_array_equal(y, V * V + V)
    with pytest.raises(SignatureError, match="there are no derivatives yet"):
        tape.gradient(x)
    tape.backward((y, np.ones(4)))
    np.testing.assert_allclose(tape.gradient(x), 2.0 * V + 1.0)


def test_overwriting_a_view_that_repeats_elements_is_refused(device):
    x = cuda.to_device(V)
    with irad.cuda.Tape():
        windows = np.lib.stride_tricks.sliding_window_view(x, 2, writeable=True)
        with pytest.raises(UnsupportedError, match="multiply overwrites a view whose elements share memory"):
            windows *= 2.0
    np.testing.assert_array_equal(x, V)


def test_refused_before_it_overwrites(device):
    x = cuda.to_device(V)
    with irad.cuda.Tape() as tape:
        y = x * 2.0
        with pytest.raises(UnsupportedError, match="ldexp of NumPy has no rule"):
            np.ldexp(x, 2, out=x)
    tape.backward((y, np.ones(4)))
    np.testing.assert_array_equal(tape.gradient(x), 2.0)


def test_what_is_computed_on_the_host(device):
    x, y = cuda.to_device(V), cuda.device_array(4)
    with irad.cuda.Tape():
        square[1, 32](x, y)
        host = y.copy_to_host()
        assert host[1] == pytest.approx(1.44)
        assert np.all(host > 0.0)
        assert "0.16" in str(host)
        with pytest.raises(UnsupportedError, match="sin of NumPy is given a host copy"):
            np.sin(host)
        with pytest.raises(UnsupportedError, match="multiply of NumPy is given a host copy"):
            host * 2.0
        assert np.asarray(host).sum() == pytest.approx(np.sum(V**2))
    np.testing.assert_allclose(np.sqrt(host), np.abs(V))


def test_arrays_that_were_made_unseen(device):
    x, plain, y = cuda.to_device(V), V.copy(), cuda.device_array(4)
    with irad.cuda.Tape() as tape:
        square[1, 32](plain, y)  # made before: an input
        out = np.zeros(4)
        square[1, 32](x, out)  # only written: nothing is lost
        square[1, 32](out, y)
        unseen = plain * 2.0
        with pytest.raises(UnsupportedError, match=r"x was created while the tape records.*test_array_tape\.py:\d+"):
            square[1, 32](unseen, y)
        with pytest.raises(UnsupportedError, match="an array that add is given was created while the tape records"):
            x + unseen
        square[1, 32](Const(unseen), y)
        square[1, 32](plain[1:], y[1:])
    tape.backward((out, np.ones(4)))
    np.testing.assert_allclose(tape.gradient(x), 2.0 * V)


# --- rules of users ---------------------------------------------------------------------------------------------------


def test_rules_of_users(device):
    def run(x, factor, *, power):
        out = cuda.to_device(np.zeros(4))
        square[1, 32](x, out)  # not recorded by itself
        return out**power * factor

    def reverse(call, cotangent, x, factor, *, power):
        assert type(x) is np.ndarray
        np.testing.assert_allclose(call.result, x ** (2 * power) * factor)
        partial = 2.0 * power * x ** (2 * power - 1)
        return cotangent * partial * factor, np.sum(cotangent * x ** (2 * power), keepdims=True)

    powered = irad.cuda.rule(run, reverse)
    x, factor = cuda.to_device(V), cuda.to_device(np.array([3.0]))
    np.testing.assert_allclose(powered(x, factor, power=2), 3.0 * V**4)
    with irad.cuda.Tape() as tape:
        y = powered(x, factor, power=2) * 2.0
    assert len(tape) == 2
    tape.backward((y, np.ones(4)))
    np.testing.assert_allclose(tape.gradient(x), 24.0 * V**3)
    np.testing.assert_allclose(tape.gradient(factor), 2.0 * np.sum(V**4))


def test_rules_of_users_for_functions_of_numpy(device):
    irad.cuda.rule(np.sinc, lambda call, cotangent, x: cotangent * (np.cos(np.pi * x) - call.result) / x)
    check(np.sinc, V)


def test_rules_of_users_that_change_an_argument(device):
    def double(x, y):
        y[...] = 2.0 * x

    doubled = irad.cuda.rule(double, lambda call, cotangent, x, y: (2.0 * cotangent, None), changes=1)

    def program(x, y):
        z = y * y
        double(x, y) if type(x) is np.ndarray else doubled(x, y)
        return y * z

    check(program, V, W)


def test_wrong_rules_are_named(device):
    x = cuda.to_device(V)
    for reverse, message in (
        (lambda call, cotangent, x: cotangent[:2], r"gives one of shape \(2,\) for an argument of shape \(4,\)"),
        (lambda call, cotangent, x: (), r"gives none for an argument"),
    ):
        function = irad.cuda.rule(lambda x: x.copy(), reverse)
        with irad.cuda.Tape() as tape:
            y = function(x)
        with pytest.raises(RuleError, match=message):
            tape.backward((y, np.ones(4)))
    with pytest.raises(SignatureError, match=r"irad\.cuda\.rule is given"):
        irad.cuda.rule(np.sort, 3)


def cleared_sign(y):
    y.view(np.int64)[0] = 0


def flipped_sign(y):
    bits = y.view(np.uint64)
    bits[1:] ^= np.uint64(1 << 63)


def copied_bytes(y):
    return y.view(np.int64).copy().view(np.float64)


def halves(y):
    return y.view(np.float32) * np.float32(2)


@pytest.mark.parametrize("program", [cleared_sign, flipped_sign, copied_bytes, halves])
def test_floats_as_other_numbers_are_refused(device, program):
    """Their bytes would change without the tape knowing what that means."""
    x, y = cuda.to_device(V.copy()), cuda.to_device(np.zeros_like(V))
    with irad.cuda.Tape():
        square[1, 32](x, y)
        with pytest.raises(UnsupportedError, match="numbers of another type"):
            program(y)


def test_parts_of_complex_numbers_and_fields_are_not_other_numbers(device):
    def parts(x, y):
        z = x + 1j * y
        z.real[1:] *= 2.0
        return z.real * z.imag + abs(z.view(np.float64)[::2])

    check(parts, V, W)
