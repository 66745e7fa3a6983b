"""Derivatives of particular programs, each checked by every rank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba_mpi as mpi
import numpy as np
import pytest
from mpi4py import MPI
from numba import njit, prange

import irad

WORLD = MPI.COMM_WORLD
MAX, MIN = mpi.Operator.MAX, mpi.Operator.MIN


@njit
def largest(x):
    found = np.zeros(x.size)
    mpi.allreduce(x, found, MAX)
    return found.sum() / mpi.size()


@njit
def least(x):
    found = np.zeros(x.size)
    mpi.reduce(x, found, MIN, mpi.size() - 1)
    return found.sum() if mpi.rank() == mpi.size() - 1 else 0.0


def ties() -> None:
    """The lowest rank with the extreme has all of the derivative; the sign of zero and NaN come through."""
    x = np.array([1.0, 2.0, -0.0, 3.0 + WORLD.rank])
    tied = np.array([1.0, 1.0, 1.0, 0.0]) if WORLD.rank == 0 else np.zeros(4)
    top = tied + (np.array([0.0, 0.0, 0.0, 1.0]) if WORLD.rank == WORLD.size - 1 else 0.0)
    low = np.ones(4) if WORLD.rank == 0 else np.zeros(4)
    np.testing.assert_array_equal(irad.grad(largest)(x), top)
    np.testing.assert_array_equal(irad.grad(least)(x), low)


@njit
def cubes(x):
    """The sum over the ranks of x[r - 1]**3 * x[r]."""
    rank, size = mpi.rank(), mpi.size()
    left = np.empty_like(x)
    _, first = mpi.irecv(left, (rank - 1) % size, 1)
    _, second = mpi.isend(x, (rank + 1) % size, 1)
    mpi.waitall((first, second))
    return (left**3 * x).sum()


def third_order() -> None:
    """Forward mode over reverse mode over reverse mode, in the same direction at all ranks."""
    gradient = irad.grad(cubes)

    @njit
    def slope(x):
        return gradient(x).sum()

    second = irad.grad(slope)

    @njit
    def curvature(x):
        return second(x).sum()

    x = np.array([1.5 + WORLD.rank])
    left, right = 1.5 + (WORLD.rank - 1) % WORLD.size, 1.5 + (WORLD.rank + 1) % WORLD.size
    # of a³ b: (3 a² b + a³) summed over the ranks; its gradient; and so on
    gradients = left**3 + 3 * x**2 * right
    np.testing.assert_allclose(gradient(x), gradients)
    np.testing.assert_allclose(second(x), 3 * x**2 + 6 * x * right + 3 * left**2)  # of the sum of all gradients
    _, change = irad.jvp(curvature, (x,), (np.ones(1),))
    np.testing.assert_allclose(change, (12 * x + 6 * right + 6 * left).sum())


@njit
def shifted(x):
    rank, size = mpi.rank(), mpi.size()
    left, total = np.empty_like(x), np.zeros(x.size)
    _, first = mpi.irecv(left, (rank - 1) % size, 1)
    _, second = mpi.isend(x * x, (rank + 1) % size, 1)
    mpi.waitall((first, second))
    mpi.allreduce(x * left, total)
    return total


def jacobians() -> None:
    """All directions at once, in both modes, are those one after the other."""
    x = np.array([1.0, 2.0, 3.0]) + WORLD.rank
    unit = np.eye(3)
    columns = np.array([irad.jvp(shifted, (x,), (each,))[1] for each in unit]).T
    np.testing.assert_allclose(irad.jacobian(shifted, mode="forward")(x), columns)
    _, pullback = irad.vjp(shifted, x)
    rows = np.array([pullback(each)[0] for each in unit])
    np.testing.assert_allclose(irad.jacobian(shifted, mode="reverse")(x), rows)


@njit
def of_constants(x, data):
    rank, size = mpi.rank(), mpi.size()
    received = np.empty(x.size)
    _, request = mpi.isend(data, (rank + 1) % size, 1)
    mpi.recv(received, (rank - 1) % size, 1)
    mpi.wait(request)
    return (x * received * received).sum()


def constants() -> None:
    """A rank that sends constants answers all the same, for the other end need not know."""
    x, data = np.ones(2), np.array([1.0, 2.0]) * (WORLD.rank + 1)
    shadow = np.zeros(2)
    irad.autodiff(irad.Reverse, of_constants, irad.Duplicated(x, shadow), irad.Const(data))
    np.testing.assert_allclose(shadow, (np.array([1.0, 2.0]) * ((WORLD.rank - 1) % WORLD.size + 1)) ** 2)


@njit
def roots(x):
    total = np.zeros(1)
    mpi.allreduce(np.where(x > 1.0, np.sqrt(x - 1.0), x).sum(), total)
    return total[0] / mpi.size()


def lost_zeros() -> None:
    """A NaN on one rank does not make that rank alone start again."""
    x = np.array([np.nan, 1.0]) if WORLD.rank == 0 else np.array([0.5, 1.0])
    np.testing.assert_array_equal(irad.grad(roots)(x), np.ones(2))


@njit
def single(x):
    """Complex numbers of single precision, in messages that are not waited for."""
    rank, size = mpi.rank(), mpi.size()
    z = np.empty(x.size, np.complex64)
    for i in range(x.size):
        z[i] = x[i] + 1j * x[i] * x[i]
    w = np.empty_like(z)
    _, first = mpi.irecv(w, (rank - 1) % size, 1)
    _, second = mpi.isend(z, (rank + 1) % size, 1)
    mpi.waitall((first, second))
    return (w * w * z).sum().real


def single_precision() -> None:
    x = np.array([0.5, 0.75]) + 0.25 * WORLD.rank
    left, right = (np.array([0.5, 0.75]) + 0.25 * ((WORLD.rank + side) % WORLD.size) for side in (-1, 1))

    def point(t: np.ndarray) -> np.ndarray:
        return t + 1j * t * t

    slope = 1.0 + 2j * x
    expected = (point(left) ** 2 * slope).real + (2.0 * point(x) * slope * point(right)).real
    np.testing.assert_allclose(irad.grad(single)(x), expected, rtol=1e-6)


@njit
def from_anybody(x):
    mpi.recv(x)
    return x.sum()


@njit
def later_from_anybody(x):
    _, request = mpi.irecv(x, 0)
    mpi.wait(request)
    return x.sum()


@njit
def as_bytes(x):
    y = np.empty_like(x)
    mpi.sendrecv(x.view(np.uint8), 0, y.view(np.uint8), 0, 1, 1)
    return (x * y).sum()


@njit
def strided(x):
    _, request = mpi.isend(x[::2], 0, 1)
    mpi.wait(request)
    return x.sum()


@njit
def overtaking(x):
    a, b = np.empty_like(x), np.empty_like(x)
    _, first = mpi.irecv(a, 0, 1)
    _, second = mpi.irecv(b, 0, 1)
    mpi.send(x, 0, 1)
    mpi.send(x, 0, 1)
    mpi.wait(second)
    mpi.wait(first)
    return (a * b).sum()


@njit
def overtaking_at_once(x):
    a = np.empty_like(x)
    _, first = mpi.irecv(a, 0, 7)
    _, second = mpi.isend(x, 0, 7)
    mpi.send(x, 0, 7)
    mpi.waitall((first, second))
    return (a * x).sum()


@njit(parallel=True)
def in_threads(x):
    y = np.zeros(x.size)
    for i in prange(x.size):
        total = np.zeros(1)
        mpi.allreduce(x[i : i + 1] * x[i], total)
        y[i] = total[0]
    return y.sum()


@njit
def of_high_tag(x):
    mpi.send(x, 0, 1 << 14)
    return x.sum()


@njit
def into(x, data):
    mpi.sendrecv(x, 0, data, 0, 1, 1)
    return (data * x).sum()


@njit
def of_another(x, request):
    mpi.wait(request)
    return x.sum()


def _refusal(error: type[BaseException], text: str, call: Callable[..., Any], *arguments: Any) -> None:
    with pytest.raises(error, match=f"(?s){text}"):
        call(*arguments)


def refusals() -> None:
    """By name, with the line where that is known; at run time where only then it is known."""
    x, single, single_request = np.ones(4), np.ones(4, np.float32), np.array([12345], mpi.RequestType)
    line = r"at  .*more\.py:\d+"
    _refusal(irad.UnsupportedError, f"recv takes any message.*{line}", irad.grad(from_anybody), x)
    _refusal(irad.UnsupportedError, f"irecv takes a message.*{line}", irad.grad(later_from_anybody), x)
    _refusal(irad.UnsupportedError, f"bytes of floating-point.*{line}", irad.grad(as_bytes), x)
    _refusal(irad.UnsupportedError, f"parallel loop communicates.*{line}", irad.grad(in_threads), x)
    _refusal(ValueError, "not contiguous", irad.grad(strided), x)
    _refusal(ValueError, "waited for first", irad.grad(overtaking), x)
    _refusal(ValueError, "waited for first", irad.grad(overtaking_at_once), x)
    _refusal(ValueError, "from 16384 on", irad.grad(of_high_tag), x)
    _refusal(ValueError, "was not made in the function", irad.grad(of_another), x, single_request)
    _refusal(irad.IradError, "Type: float32", irad.grad(of_high_tag), single)
    constant = irad.autodiff, irad.Reverse, into, irad.Duplicated(x, x.copy()), irad.Const(x.copy())
    _refusal(irad.ActivityError, f"passed as constant.*{line}", *constant)


ACTIONS = {
    each.__name__: each for each in (ties, single_precision, third_order, jacobians, constants, lost_zeros, refusals)
}
