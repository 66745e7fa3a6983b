"""Patterns from dependence in the code against patterns from NaNs, and what dependence sees that NaNs do not."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit, prange

import irad


@njit
def mixed(x, weights, count):
    """Loops, branches, arrays that change in place, calls, a list, slices, single precision and integers."""
    y = np.zeros(count)
    kept = [x[0] * x[1]]
    for i in range(count):
        work = x[i : i + 3].copy()
        work[1] *= weights[i]
        if i % 3 == 0:
            y[i] = np.sin(work).sum()
        elif i % 3 == 1:
            kept.append(work[0] / x[-1])
            y[i] = kept[-1] + kept[0]
        else:
            y[i] = np.float32(work[2]) * np.hypot(x[0], x[i]) + np.floor(x[5])
    y[-2:] = np.sqrt(y[:2] ** 2 + 1.0)
    return y


@njit(parallel=True)
def parallel(x):
    y = np.zeros(x.size)
    for i in prange(x.size - 1):
        y[i] = x[i] * x[i + 1]
    y[-1] = y[0]
    return y


def patterns(f, *args, **more):
    found = [irad.sparse_jacobian(f, pattern=by, **more).prepare(*args).pattern for by in ("dependence", "probe")]
    return [each.toarray() for each in found]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_both_ways_agree_and_have_all_entries_of_the_dense_jacobian(dtype):
    x = np.random.default_rng(3).uniform(0.5, 2.0, 70).astype(dtype)  # more than fit in one set
    weights = np.linspace(1.0, 2.0, 70).astype(dtype)
    by_dependence, by_probing = patterns(mixed, x, weights, 60)
    np.testing.assert_array_equal(by_dependence, by_probing)
    np.testing.assert_array_equal(by_dependence, irad.jacobian(mixed, chunk=4)(x, weights, 60) != 0.0)


def test_parallel_loops_and_branches_that_are_taken():
    x = np.linspace(1.0, 2.0, 40)
    by_dependence, by_probing = patterns(parallel, x)
    np.testing.assert_array_equal(by_dependence, by_probing)
    assert by_dependence.sum() == 2 * 39 + 2

    @njit
    def upwind(u):
        r = np.zeros(3)
        for i in range(1, 4):
            for _ in range(2):  # a loop stays a branch
                if u[i] > 0.0:
                    for k in range(i):
                        r[i - 1] += u[k]
                else:
                    for k in range(i + 1, 5):
                        r[i - 1] += u[k]
        return r

    u = np.array([1.0, 1.0, -1.0, 1.0, 1.0])
    np.testing.assert_array_equal(patterns(upwind, u)[0], irad.jacobian(upwind, chunk=1)(u) != 0.0)


def test_what_nans_do_not_show():
    @njit
    def clipped(x, factor):
        y = np.empty(4)
        y[0] = max(x[0], x[1])  # both, whichever is larger here
        y[1] = factor * x[2]  # even where the factor is zero
        y[2] = x[3] if x[3] == x[3] else 0.0
        y[3] = min(max(x[4], 0.0), 1.0)
        return y

    x = np.array([1.0, 2.0, 3.0, 4.0, -5.0])
    expected = np.zeros((4, 5), bool)
    expected[[0, 0, 1, 2, 3], [0, 1, 2, 3, 4]] = True
    prepared = irad.sparse_jacobian(clipped, pattern="dependence").prepare(x, 0.0)
    np.testing.assert_array_equal(prepared.pattern.toarray(), expected)
    elsewhere = np.array([2.0, 1.0, 3.0, 4.0, 0.5])
    np.testing.assert_array_equal(prepared(elsewhere, 2.0).toarray(), irad.jacobian(clipped, chunk=1)(elsewhere, 2.0))
    assert irad.sparse_jacobian(clipped, pattern="probe").prepare(x, 0.0).pattern.nnz < expected.sum()


def test_fastmath_keeps_sets_whole():
    @njit(fastmath=True)
    def sums(x):
        return np.array([x[:5].sum() / x[5], np.exp(x[6]) - x[7] * x[8], -x[9]])

    x = np.linspace(1.0, 2.0, 12)
    np.testing.assert_array_equal(
        irad.sparse_jacobian(sums, pattern="dependence").prepare(x).pattern.toarray(),
        irad.jacobian(sums, chunk=1, mode="forward")(x) != 0.0,
    )


def test_a_callee_of_which_dependence_is_not_known_is_probed():
    @njit
    def projected(x, basis):
        return basis @ x

    basis = np.triu(np.ones((6, 6)))[:, ::1].copy()
    x = np.linspace(1.0, 2.0, 6)
    with pytest.raises(irad.NoRuleError, match=r"(?s)does not know on which numbers.*pattern=\"probe\""):
        irad.sparse_jacobian(projected, pattern="dependence").prepare(x, basis)
    prepared = irad.sparse_jacobian(projected).prepare(x, basis)
    np.testing.assert_array_equal(prepared(x, basis).toarray(), basis)
    watched = irad.sparse_jacobian(
        projected, options=irad.Options(debug=True)
    )  # NaNs that mark columns are none of its
    np.testing.assert_array_equal(watched(x, basis).toarray(), basis)


def test_full_rows_are_found_without_a_run_for_each_column():
    @njit
    def total(x, counts):
        counts[0] += 1
        r = x**2
        r[0] = (x * x).sum()
        return r

    counts = np.zeros(1, np.int64)
    x = np.linspace(1.0, 2.0, 4000)
    prepared = irad.sparse_jacobian(total).prepare(x, counts)
    assert (prepared.mode, prepared.products, prepared.pattern.nnz) == ("reverse", 2, 2 * 4000 - 1)
    found = prepared(x, counts)
    np.testing.assert_allclose(found[[0], :].toarray()[0], 2.0 * x, rtol=1e-14)
    np.testing.assert_allclose(found.diagonal(), 2.0 * x, rtol=1e-14)
