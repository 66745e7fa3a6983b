"""Programs that communicate: functions of an array, of which every rank has one. The results of the ranks add up.

They run on any number of ranks. `tests/mpi/run.py` takes their derivatives.
"""

from __future__ import annotations

import numba_mpi as mpi
import numpy as np
from mpi4py import MPI
from numba import njit

import irad

MAX, MIN, SUM = mpi.Operator.MAX, mpi.Operator.MIN, mpi.Operator.SUM
NOBODY = MPI.PROC_NULL


@njit
def ring(x):
    """Even ranks send first, so that nobody waits forever; a rank that is alone sends by the way."""
    rank, size = mpi.rank(), mpi.size()
    received = np.empty_like(x)
    if size == 1:
        mpi.sendrecv(x * x, rank, received, rank, 3, 3)
    elif rank % 2 == 0:
        mpi.send(x * x, (rank + 1) % size, 3)
        mpi.recv(received, (rank - 1) % size, 3)
    else:
        mpi.recv(received, (rank - 1) % size, 3)
        mpi.send(x * x, (rank + 1) % size, 3)
    return (received**2 * x).sum()


@njit
def not_waiting(x):
    """Completes messages in another order than that in which they were started, and overwrites what was sent."""
    rank, size = mpi.rank(), mpi.size()
    left, right = np.empty_like(x), np.empty_like(x)
    squares = x * x
    _, from_left = mpi.irecv(left, (rank - 1) % size, 1)
    _, from_right = mpi.irecv(right, (rank + 1) % size, 2)
    _, to_right = mpi.isend(squares, (rank + 1) % size, 1)
    _, to_left = mpi.isend(x, (rank - 1) % size, 2)
    meanwhile = np.sin(x)  # while messages are on their way; those that are sent may be read
    meanwhile += squares
    mpi.wait(to_right)
    mpi.wait(from_right)
    mpi.wait(to_left)
    mpi.wait(from_left)
    squares[:] = 0.0
    return (left * right * meanwhile).sum() + (squares * x).sum()


@njit
def halos(x):
    """Sends and receives views of one array at once, again and again, by requests in an array that is used again."""
    rank, size = mpi.rank(), mpi.size()
    left = rank - 1 if rank > 0 else NOBODY
    right = rank + 1 if rank < size - 1 else NOBODY
    u = np.zeros((x.size + 2, 2))
    u[1:-1, 0] = x
    u[1:-1, 1] = np.cos(x)
    requests = np.zeros(4, dtype=mpi.RequestType)
    for _ in range(3):
        requests[0:1] = mpi.irecv(u[0], left, 1)[1]
        requests[1:2] = mpi.irecv(u[-1], right, 2)[1]
        requests[2:3] = mpi.isend(u[-2], right, 1)[1]
        requests[3:4] = mpi.isend(u[1], left, 2)[1]
        mpi.waitall(requests)
        new = u.copy()
        for i in range(1, u.shape[0] - 1):
            for j in range(2):
                new[i, j] = u[i, j] + 0.1 * (u[i - 1, j] * u[i + 1, 1 - j] - u[i, j] ** 2)
        u[1:-1] = new[1:-1]
        u[0] *= 2.0  # between messages the memory belongs to the program
    return (u**3).sum()


@njit
def together(x):
    rank, size = mpi.rank(), mpi.size()
    given = x * x * (rank + 1)
    mpi.bcast(given, size - 1)
    total, at_root = np.zeros(x.size), np.full(x.size, 2.0)
    mpi.allreduce(x * given, total)
    mpi.reduce(np.sin(x), at_root, SUM, 0)
    whole, part, every = np.zeros(size * x.size), np.zeros(x.size), np.zeros(size * x.size)
    mpi.gather(x * total, whole, x.size, 0)
    mpi.scatter(whole * whole, part, x.size, 0)
    mpi.allgather(x * x, every, x.size)
    mpi.barrier()
    return (part * x).sum() + (at_root**2 * x).sum() + (every * every[::-1]).sum()


@njit
def extremes(x):
    largest, least = np.zeros(x.size), np.zeros(1)
    mpi.allreduce(x * x, largest, MAX)
    mpi.reduce(np.min(x), least, MIN, 0)
    return (largest * largest * x).sum() + least[0] ** 3


@njit
def sum_in_a_loop(x):
    """The norm of a vector that is spread over the ranks decides what happens to it, twenty times."""
    u, norm = x.copy(), np.zeros(1)
    for _ in range(20):
        mpi.allreduce((u * u).sum(), norm)
        u = np.sin(u) / np.sqrt(norm[0]) if norm[0] > 0.5 else u * 1.5
    return (u * x).sum()


@njit
def to_anybody(x):
    """Strides, and messages from any source, or with any tag."""
    rank, size = mpi.rank(), mpi.size()
    pairs = np.zeros((x.size, 2))
    mpi.sendrecv(np.exp(x), (rank + 1) % size, pairs[:, 1], (rank - 1) % size, 5)
    pairs[:, 0] = pairs[:, 1] * x
    total = (pairs**2).sum()
    if rank == 0:
        received = np.empty_like(x)
        for _ in range(size - 1):
            mpi.recv(received, tag=4)
            total += (received * received * x).sum()
    else:
        mpi.send(pairs[:, 0], 0, 4)
    mpi.barrier()  # or the next run's message of a fast rank would be taken for one of this run
    return total


@njit
def tested(x):
    """Two messages of one tag to the same rank, asked after until they are through."""
    rank, size = mpi.rank(), mpi.size()
    a, b = np.empty_like(x), np.empty_like(x)
    _, first = mpi.irecv(a, (rank - 1) % size, 1)
    _, second = mpi.irecv(b, (rank - 1) % size, 1)
    y, z = np.exp(x), x * x
    _, third = mpi.isend(y, (rank + 1) % size, 1)
    _, fourth = mpi.isend(z, (rank + 1) % size, 1)
    done = False
    while not done:
        _, done = mpi.test(first)
    requests = np.hstack((second, third, fourth))
    mpi.waitany(requests)
    done = False
    while not done:
        _, done, _ = mpi.testany(requests)
    done = False
    while not done:
        _, done = mpi.testall(requests)
    mpi.waitany((first, second))  # none is left
    return (a * b * b).sum() + z[0] * y[0]  # Numba would free them after their last use, under way or not


@njit
def without_data(x):
    """Odd ranks have nothing: they send, receive and add up empty arrays."""
    rank, size = mpi.rank(), mpi.size()
    mine = x[: x.size if rank % 2 == 0 else 0]
    total, nothing = np.zeros(1), np.zeros(0)
    mpi.allreduce((mine * mine).sum(), total)
    if rank % 2 == 1:
        mpi.send(mine, rank - 1, 1)
    elif rank + 1 < size:
        mpi.recv(nothing, rank + 1, 1)
    mpi.bcast(nothing, 0)
    return total[0] ** 2


@njit
def to_nobody(x):
    """MPI_PROC_NULL takes everything and gives nothing, so that memory stays as it is."""
    rank, size = mpi.rank(), mpi.size()
    left = rank - 1 if rank > 0 else NOBODY
    right = rank + 1 if rank < size - 1 else NOBODY
    a, b, c = x * x, np.full(x.size, 2.0), x**3
    _, first = mpi.irecv(a, left, 1)
    _, second = mpi.irecv(b, right, 2)
    _, third = mpi.isend(x, right, 1)
    _, fourth = mpi.isend(x, left, 2)
    mpi.waitall((fourth, second, third, first))
    mpi.sendrecv(x, left, c, right, 3, 3)
    mpi.send(c, NOBODY, 1)
    mpi.recv(c, NOBODY, 1)
    return (a * b * c).sum()


@njit
def shorter(x):
    """A message may be shorter than the memory for it, the rest of which stays as it is."""
    rank, size = mpi.rank(), mpi.size()
    a, b = x * x, x * x * x
    if rank == 0:
        for source in range(1, size):
            mpi.recv(a, source)
            _, request = mpi.irecv(b, source, 2)
            mpi.wait(request)
    else:
        mpi.send(x[:2], 0, 1)
        _, request = mpi.isend(x[:1], 0, 2)
        mpi.wait(request)
    return (a * b).sum()


@njit
def complex_numbers(x):
    rank, size = mpi.rank(), mpi.size()
    z = x + 1j * x * x
    w, total = np.empty_like(z), np.zeros_like(z)
    mpi.sendrecv(z, (rank + 1) % size, w, (rank - 1) % size, 1, 1)
    mpi.allreduce(z * w, total)
    _, first = mpi.irecv(w, (rank - 1) % size, 2)
    _, second = mpi.isend(total, (rank + 1) % size, 2)
    mpi.waitall((first, second))
    return (w * w * z).sum().real


@njit
def integers(x):
    """Counts and indices that are communicated have no derivative; what is computed with them has."""
    rank, size = mpi.rank(), mpi.size()
    mine, other, total = np.array([rank + 1, 7]), np.zeros(2, np.int64), np.zeros(2, np.int64)
    mpi.sendrecv(mine, (rank + 1) % size, other, (rank - 1) % size, 1, 1)
    mpi.allreduce(mine, total, MAX)
    _, first = mpi.irecv(other, (rank - 1) % size, 2)
    _, second = mpi.isend(mine, (rank + 1) % size, 2)
    mpi.waitall((second, first))
    mpi.bcast(mine, 0)
    return (x**2).sum() * other[0] * total[0] * mine[1]


@irad.rules.noinline
@njit
def _post(u, v, requests):
    rank, size = mpi.rank(), mpi.size()
    requests[0:1] = mpi.irecv(v, (rank - 1) % size, 1)[1]
    requests[1:2] = mpi.isend(u, (rank + 1) % size, 1)[1]


@irad.rules.noinline
@njit
def _settle(requests):
    mpi.waitall(requests)


@irad.rules.noinline
@njit
def _count():
    total = np.zeros(1)
    mpi.allreduce(np.ones(1), total)
    return total[0]


@njit
def in_callees(x):
    """Messages that one function starts and another completes; a sum in which no argument takes part."""
    requests, v, u, total = np.zeros(2, dtype=mpi.RequestType), np.zeros(x.size), x, 0.0
    for _ in range(3):
        _post(u, v, requests)
        _settle(requests)
        total += (v * v * u).sum()
        u = v * u
    return total * _count()


PROGRAMS = {
    each.__name__: each
    for each in (
        *(ring, not_waiting, halos, together, extremes, sum_in_a_loop, to_anybody, tested, without_data),
        *(to_nobody, shorter, complex_numbers, integers, in_callees),
    )
}
