"""Entries of sparse matrices, written to arrays of the caller, in all formats, against dense derivatives."""

from __future__ import annotations

import pickle
import tracemalloc

import numpy as np
import pytest
from numba import njit
from numba.core.runtime import rtsys

import irad
from irad.testing.allocations import allocations


@njit
def chain(x, weight):
    """A banded Jacobian with two columns more than rows, and some zeros."""
    r = np.empty(x.size - 2, x.dtype)
    for i in range(r.size):
        r[i] = weight * np.sin(x[i]) * x[i + 2] + x[i] ** 2
    return r


@njit
def chain_into(out, x, weight):
    for i in range(out.size):
        out[i] = weight * np.sin(x[i]) * x[i + 2] + x[i] ** 2


@njit
def energy(x, weight):
    total = weight * x[0] * x[-1]
    for i in range(x.size - 1):
        total += np.exp(x[i] * x[i + 1])
    return total


def dense(prepared, entries):
    """The matrix that the entries stand for; each has a place of its own."""
    found = np.zeros(prepared.pattern.shape, entries.dtype)
    assert len(set(zip(prepared.rows, prepared.columns, strict=True))) == prepared.rows.size == entries.size
    found[prepared.rows, prepared.columns] = entries
    return found


@pytest.mark.parametrize("mode", ["forward", "reverse"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_jacobians_in_all_formats(mode, dtype):
    x, rtol = np.linspace(0.5, 2.0, 11).astype(dtype), 10.0 * np.finfo(dtype).eps
    weight = dtype(1.5)
    expected = irad.jacobian(chain)(x, weight)
    orders = {}
    for form in ("csc", "csr", "coo"):
        prepared = irad.sparse_jacobian(chain, mode=mode, format=form).prepare(x, weight)
        matrix = prepared(x, weight)
        assert (matrix.format, matrix.dtype, prepared.dtype) == (form, dtype, dtype)
        np.testing.assert_allclose(matrix.toarray(), expected, rtol=rtol)
        entries = np.full(prepared.rows.size, np.nan, dtype)
        assert prepared.values_into(entries, x, weight) is None
        np.testing.assert_allclose(dense(prepared, entries), expected, rtol=rtol)
        np.testing.assert_array_equal(entries, matrix.data)  # the order is that of the format
        orders[form] = list(zip(prepared.rows.tolist(), prepared.columns.tolist(), strict=True))
        other = x + dtype(0.5)
        pickle.loads(pickle.dumps(prepared)).values_into(entries, other, weight)
        np.testing.assert_allclose(dense(prepared, entries), irad.jacobian(chain)(other, weight), rtol=rtol)
    assert orders["csr"] == sorted(orders["csr"])
    assert orders["csc"] == orders["coo"] == sorted(orders["csc"], key=lambda place: place[::-1])


def test_hessians_by_way_of_a_work_array():
    x = np.linspace(-1.0, 1.0, 9)
    expected = irad.hessian(energy)(x, 1.0) + irad.hessian(energy)(x, 1.0)
    for work in (1, ()):
        np.testing.assert_allclose(
            irad.sparse_hessian(through_work, work=work)(x, np.ones(8)).toarray(), expected, rtol=1e-13
        )
    with pytest.raises(irad.SignatureError, match=r"argument 1 of energy, named by work= or outputs=, is float64"):
        irad.sparse_hessian(energy, work=1)(x, 1.0)


def test_hessians_and_their_lower_triangles():
    x = np.linspace(-1.0, 1.0, 9)
    expected = irad.hessian(energy)(x, 2.0)
    for form in ("csc", "csr", "coo"):
        for lower in (False, True):
            prepared = irad.sparse_hessian(energy, format=form, lower=lower).prepare(x, 2.0)
            wanted = np.tril(expected) if lower else expected
            matrix = prepared(x, 2.0)
            assert matrix.format == form
            np.testing.assert_allclose(matrix.toarray(), wanted, rtol=1e-13)
            entries = np.empty(2 * prepared.rows.size)[::2]  # any strides
            prepared.values_into(entries, x, 2.0)
            np.testing.assert_allclose(dense(prepared, entries), wanted, rtol=1e-13)
            assert not lower or (prepared.rows >= prepared.columns).all()
            assert prepared.pattern.nnz == 3 * 9  # of both triangles: a pattern may be passed on
    with pytest.raises(irad.SignatureError, match="lacks an entry in row"):  # told from a triangle, too
        irad.sparse_hessian(energy, lower=True, pattern=np.eye(9))(x, 2.0)


def test_layouts_dimensions_and_auxiliary_results():
    @njit
    def grid(u, scale):
        return scale * u[1:] * u[:-1], u.sum()

    @njit
    def bending(u, scale):
        return scale * ((u[1:] - u[:-1]) ** 4).sum() + u[0, 0] ** 3, u.size

    u = np.random.default_rng(1).uniform(1.0, 2.0, (4, 3))
    spread = np.zeros((8, 6))[::2, ::2]
    spread[...] = u
    for given in (u, np.asfortranarray(u), spread, np.broadcast_to(u[0], (4, 3))):
        expected = irad.jacobian(grid, has_aux=True)(np.array(given), 2.0)[0].reshape(9, 12)
        for mode in ("forward", "reverse"):
            prepared = irad.sparse_jacobian(grid, has_aux=True, mode=mode).prepare(given, 2.0)
            entries = np.empty(prepared.rows.size)
            assert prepared.values_into(entries, given, 2.0) == pytest.approx(given.sum())
            np.testing.assert_allclose(dense(prepared, entries), expected, rtol=1e-14)
        expected = irad.hessian(bending, has_aux=True)(np.array(given), 2.0)[0].reshape(12, 12)
        prepared = irad.sparse_hessian(bending, has_aux=True).prepare(given, 2.0)
        entries = np.empty(prepared.rows.size)
        assert prepared.values_into(entries, given, 2.0) == 12
        np.testing.assert_allclose(dense(prepared, entries), expected, rtol=1e-13, atol=1e-13)


def test_arrays_that_are_written_to():
    @njit
    def through(out, x, work, keep):
        """Works in one array, overwrites another, and what it differentiates."""
        keep[0] = keep[0] * x[0]
        for i in range(x.size):
            work[i] = x[i] ** 2
            x[i] = 0.5 * x[i]
        for i in range(out.size):
            out[i] = work[i] * x[i + 1] * keep[0]

    x, rest = np.linspace(1.0, 2.0, 6), (np.empty(6), np.array([3.0]))
    expected = irad.jacobian(through, 1, outputs=0)(np.empty(5), x.copy(), rest[0], rest[1].copy())
    for mode in ("forward", "reverse"):
        prepared = irad.sparse_jacobian(through, 1, outputs=0, mode=mode).prepare(np.empty(5), x, *rest)
        entries, given, kept = np.empty(prepared.rows.size), x.copy(), rest[1].copy()
        prepared.values_into(entries, np.empty(5), given, rest[0], kept)
        np.testing.assert_allclose(dense(prepared, entries), expected, rtol=1e-13)
        np.testing.assert_array_equal(given, 0.5 * x)  # as a plain call leaves them
        np.testing.assert_array_equal(kept, 3.0 * x[:1])


def test_no_entries_numbers_and_one_row():
    @njit
    def constant(x):
        return np.ones(3)

    @njit
    def linear(x):
        return 2.0 * x.sum()

    x = np.arange(1.0, 5.0)
    for derivative in (irad.sparse_jacobian(constant), irad.sparse_hessian(linear, lower=True)):
        prepared = derivative.prepare(x)
        assert prepared.rows.size == 0
        assert prepared.values_into(np.empty(0), x) is None
        assert prepared(x).nnz == 0
        assert derivative(np.zeros(0)).nnz == 0  # nothing to differentiate
    for mode in ("forward", "reverse"):
        prepared = irad.sparse_jacobian(linear, mode=mode).prepare(x)
        entries = np.empty(4)
        prepared.values_into(entries, x)
        np.testing.assert_array_equal(dense(prepared, entries), [[2.0, 2.0, 2.0, 2.0]])


def costs(call, arrays):
    """Allocations of Numba in a call besides a header for each array that Python passes, and bytes that Python took."""
    call()
    with allocations():  # switches Numba's counters on
        before = rtsys.get_allocation_stats()
        call()
        allocated = rtsys.get_allocation_stats().alloc - before.alloc - arrays
    tracemalloc.start()
    before_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    call()
    peak = tracemalloc.get_traced_memory()[1] - before_bytes
    tracemalloc.stop()
    return allocated, peak


@njit
def through_work(x, work):
    """Twice the energy, by way of an array."""
    for i in range(work.size):
        work[i] = np.exp(x[i] * x[i + 1])
    total = 2.0 * x[0] * x[-1]
    for i in range(work.size):
        total += 2.0 * work[i]
    return total


def test_nothing_is_allocated_from_the_second_call_on():
    plan = 4 + 2  # arrays of the plan; entries and scratch memory
    for size in (50, 50_000):
        x, out = np.linspace(0.5, 1.0, size), np.empty(size - 2)
        cases = [
            (irad.sparse_jacobian(chain_into, 1, outputs=0, mode=mode), (out, x, 2.0))
            for mode in ("forward", "reverse")
        ]
        cases.append((irad.sparse_hessian(energy, lower=True), (x, 2.0)))
        cases.append((irad.sparse_hessian(through_work, work=1), (x, np.empty(size - 1))))
        for derivative, args in cases:
            prepared = derivative.prepare(*args)
            entries = np.empty(prepared.rows.size)
            arrays = sum(isinstance(each, np.ndarray) for each in args)
            allocated, peak = costs(lambda: prepared.values_into(entries, *args), plan + arrays)  # noqa: B023
            assert allocated == 0
            assert peak < 4000  # a tuple of arguments, whatever their size


def test_arrays_that_entries_cannot_be_written_to():
    x = np.linspace(0.5, 1.0, 5)
    prepared = irad.sparse_jacobian(chain).prepare(x, 1.0)
    fixed = np.empty(prepared.rows.size)
    fixed.flags.writeable = False
    wrong = {"of the shape": np.empty(3), "a list": [0.0] * 6, "is read-only": fixed}
    for what, given in wrong.items():
        with pytest.raises(irad.SignatureError, match=f"has 6 entries, and what they are to be written to .*{what}"):
            prepared.values_into(given, x, 1.0)
    for dtype in (np.float32, np.int64):
        with pytest.raises(irad.SignatureError, match=r"(?s)to be written to an array of .*pass an array of float64"):
            prepared.values_into(np.empty(6, dtype), x, 1.0)
    both = np.linspace(0.5, 1.0, 6)
    with pytest.raises(irad.SignatureError, match="shares memory with an argument"):
        prepared.values_into(both, both[:5], 1.0)
    with pytest.raises(irad.SignatureError, match="not a format of irad"):
        irad.sparse_jacobian(chain, format="dia")
