"""`split`: two sweeps called separately, and the tape between them."""

from __future__ import annotations

import gc
import pickle
from concurrent.futures import ThreadPoolExecutor

import numba
import numpy as np
import pytest

import irad
from irad import Active, Const, Duplicated, DuplicatedNoNeed, MixedDuplicated, ReverseSplit, ReverseSplitWithPrimal
from irad.testing.allocations import allocations

X = np.linspace(0.1, 1.5, 6)
SAVE_ALL = irad.Options(plan="save_all")


@numba.njit
def weighted(x, w):
    return w * (np.exp(x) * x).sum()


def slope(x):
    return np.exp(x) * (x + 1.0)


@numba.njit
def step(x, a):
    for i in range(x.size):
        x[i] = a * np.sin(x[i])


@numba.njit
def product(pair, x):
    scale, weights = pair
    return scale * weights * x, x.sum(), x.size


@numba.njit
def picky(x):
    total = 0.0
    for i in range(x.size):
        if x[i] < 0.0:
            raise ValueError("negative")
        total += np.sqrt(x[i])
    return total


# --- derivatives ------------------------------------------------------------------------------------------------------


def test_many_tapes_reversed_in_any_order_after_the_arguments_have_changed():
    augmented, reverse = irad.split(ReverseSplitWithPrimal, weighted, Duplicated, Active)
    x, shadows, tapes = X.copy(), [np.zeros(6) for _ in range(5)], []
    for i, shadow in enumerate(shadows):
        x[:] = X + i
        tape, value = augmented(Duplicated(x, shadow), Active(1.0 + i))
        assert value == weighted(x, 1.0 + i)
        tapes.append(tape)
    x[:] = np.nan
    irad.grad(weighted)(X, 1.0)
    for i in (3, 0, 4, 1, 2):
        constant, by_weight = reverse(tapes[i])
        assert constant is None
        assert by_weight == pytest.approx(weighted(X + i, 1.0), rel=1e-14)
        np.testing.assert_allclose(shadows[i], (1.0 + i) * slope(X + i), rtol=1e-14)


def test_the_shadow_of_a_written_array_goes_from_its_final_to_its_initial_cotangent():
    augmented, reverse = irad.split(ReverseSplit, step, Duplicated, Active)
    x, dx = X.copy(), np.arange(1.0, 7.0)
    tape = augmented(Duplicated(x, dx), Active(2.0))
    np.testing.assert_allclose(x, 2.0 * np.sin(X), rtol=2e-15)  # by a sine for vectors, perhaps
    scalar, _ = irad.split(ReverseSplit, step, Duplicated, Active, options=irad.Options(vector_math=False))
    exact, plain = X.copy(), X.copy()
    scalar(Duplicated(exact, np.zeros(6)), Active(2.0))
    step(plain, 2.0)
    np.testing.assert_array_equal(exact, plain)
    np.testing.assert_array_equal(dx, np.arange(1.0, 7.0))
    dx *= 2.0  # the cotangent is that of the moment of the reverse sweep
    assert reverse(tape)[1] == pytest.approx((np.sin(X) * np.arange(2.0, 14.0, 2.0)).sum(), rel=1e-14)
    np.testing.assert_allclose(dx, 2.0 * np.cos(X) * np.arange(2.0, 14.0, 2.0), rtol=1e-14)


def test_structures_and_seeds():
    augmented, reverse = irad.split(ReverseSplitWithPrimal(repeatable=True), product, MixedDuplicated, Duplicated)
    d_weights, dx = np.zeros(6), np.zeros(6)
    tape, value = augmented(MixedDuplicated((3.0, X + 1.0), (0.0, d_weights)), Duplicated(X, dx))
    np.testing.assert_array_equal(value[0], 3.0 * (X + 1.0) * X)
    (by_scale, shadow), nothing = reverse(tape, (np.ones(6), 10.0, None))
    assert nothing is None
    assert by_scale == pytest.approx(((X + 1.0) * X).sum(), rel=1e-14)
    assert shadow is d_weights or np.shares_memory(shadow, d_weights)
    np.testing.assert_allclose(d_weights, 3.0 * X)
    np.testing.assert_allclose(dx, 3.0 * (X + 1.0) + 10.0)
    assert reverse(tape, None)[0][0] == 0.0
    np.testing.assert_allclose(dx, 3.0 * (X + 1.0) + 10.0)
    with pytest.raises(irad.SignatureError, match="no cotangent"):
        reverse(tape)
    with pytest.raises(irad.SignatureError, match=r"cotangent\[0\] has a different shape .*\(5,\), not \(6,\)"):
        reverse(tape, (np.ones(5), None, None))


def test_lists_and_records_among_the_arguments():
    @numba.njit
    def f(items, record, x):
        total = record.k
        for i in range(len(items)):
            total += items[i] * record.k * x[i]
        return total

    kind = np.dtype([("k", float), ("n", np.int64)])
    record, d_record = np.array([(2.0, 1)], kind)[0], np.zeros(1, kind)[0]
    augmented, reverse = irad.split(ReverseSplit, f, Active, Duplicated, Duplicated)
    dx, items = np.zeros(6), numba.typed.List([1.0, 3.0])
    tape = augmented(Active(items), Duplicated(record, d_record), Duplicated(X, dx))
    items.append(5.0)
    by_items, _, _ = reverse(tape)
    assert list(by_items) == list(2.0 * X[:2])
    assert d_record["k"] == 1.0 + X[0] + 3.0 * X[1]
    np.testing.assert_array_equal(dx, [2.0, 6.0, 0, 0, 0, 0])


@pytest.mark.parametrize(("parallel", "promises"), [(False, [None, (), (0,), (1,)]), (True, [None, ()])])
def test_with_every_promise_the_derivative_is_that_of_both_sweeps_together(parallel, promises):
    @numba.njit(parallel=parallel)
    def f(x, w, out):
        total = 0.0
        for i in numba.prange(x.size):
            out[i] = np.exp(w[i]) * x[i]
            total += out[i] * np.sin(x[i]) * w[i]
            out[i] *= out[i]
        return total

    def given():
        arrays, shadows = (X.copy(), X + 1.0, np.zeros(6)), (np.zeros(6), np.zeros(6), np.arange(6.0))
        return arrays, shadows, [Duplicated(*pair) for pair in zip(arrays, shadows, strict=True)]

    _, expected, arguments = given()
    irad.autodiff(irad.Reverse, f, *arguments, options=SAVE_ALL)
    for modified in promises:
        augmented, reverse = irad.split(ReverseSplit(modified=modified), f, *[Duplicated] * 3)
        arrays, shadows, arguments = given()
        tape = augmented(*arguments)
        for i in (0, 1, 2) if modified is None else modified:
            arrays[i][:] = np.nan
        reverse(tape)
        for mine, its in zip(shadows, expected, strict=True):
            np.testing.assert_allclose(mine, its, rtol=1e-14)


def test_a_promise_saves_what_the_argument_holds_on_the_tape():
    @numba.njit
    def f(x, w):
        total = 0.0
        for i in range(x.size):
            total += np.sin(x[i]) * w[i]
        return total

    x, w = np.linspace(0, 1, 1000), np.ones(1000)
    arguments = Duplicated(x, np.zeros(1000)), Duplicated(w, np.zeros(1000))
    total = {}
    for modified in (None, (0,), (1,), ()):
        augmented, _ = irad.split(ReverseSplit(modified=modified), f, Duplicated, Duplicated)
        total[modified] = irad.tape_report(augmented, *arguments).total
    assert total[()] < total[0,] < total[None]
    assert total[()] < total[1,] < total[None]
    assert total[None] - total[()] >= 2 * 8 * 1000


def test_what_is_not_needed_afterwards():
    @numba.njit
    def squares(x, out):
        out[:] = x * x

    augmented, reverse = irad.split(ReverseSplit, squares, Duplicated, DuplicatedNoNeed)
    dx, d_out = np.zeros(6), np.ones(6)
    tape = augmented(Duplicated(X, dx), DuplicatedNoNeed(np.empty(6), d_out))
    assert reverse(tape) == (None, None)
    np.testing.assert_array_equal(dx, 2.0 * X)
    np.testing.assert_array_equal(d_out, 0.0)


# --- how often, and by whom -------------------------------------------------------------------------------------------


def test_a_second_reverse_is_refused_and_the_shadow_left_alone():
    augmented, reverse = irad.split(ReverseSplit, weighted, Duplicated, Active)
    dx = np.zeros(6)
    tape = augmented(Duplicated(X, dx), Active(2.0))
    with pytest.raises(irad.SignatureError, match="cotangent"):
        reverse(tape, np.ones(3))  # nothing has run
    reverse(tape)
    before = dx.copy()
    with pytest.raises(irad.UsedTapeError, match="already been reversed") as caught:
        reverse(tape)
    assert "repeatable=True" in str(caught.value)
    np.testing.assert_array_equal(dx, before)
    assert repr(tape) == "<used tape of weighted>"


def test_a_repeatable_tape_serves_many_threads():
    augmented, reverse = irad.split(ReverseSplit(repeatable=True), picky, Duplicated)
    dx = np.zeros(6)
    tapes = [augmented(Duplicated(X, dx)) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(reverse, tapes * 10))
    np.testing.assert_allclose(dx, 40 * 0.5 / np.sqrt(X), rtol=1e-13)


def test_threads_that_release_the_lock_never_share_a_tape():
    @numba.njit(nogil=True)
    def long(x):
        total = 0.0
        for _ in range(200):
            total += np.sin(x).sum()
        return total

    augmented, reverse = irad.split(ReverseSplit, long, Duplicated)

    def reversed_by(tape):
        try:
            reverse(tape)
        except irad.UsedTapeError:
            return 0
        return 1

    for _ in range(5):
        dx = np.zeros(1000)
        tape = augmented(Duplicated(np.zeros(1000), dx))
        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(reversed_by, [tape] * 8)) == 1
        np.testing.assert_allclose(dx, 200.0)


# --- ownership --------------------------------------------------------------------------------------------------------

_SWEEPS = irad.split(ReverseSplit(modified=()), weighted, Duplicated, Active)
_AUGMENTED, _REVERSE = _SWEEPS


@numba.njit
def made(x, dx):
    return _AUGMENTED(Duplicated(x, dx), Active(2.0))


@numba.njit
def used(tape):
    return _REVERSE(tape)[1]


@numba.njit
def both(x, dx, way):
    tape = _AUGMENTED(Duplicated(x, dx), Active(2.0))
    if way == 1:
        return 0.0
    if way == 2:
        raise ValueError("between")
    return _REVERSE(tape)[1]


def _cycle():
    tape = _AUGMENTED(Duplicated(X, np.zeros(6)), Active(2.0))
    ring = [tape]
    ring.append(ring)


def _primal_raises():
    augmented, _ = irad.split(ReverseSplit, picky, Duplicated)
    with pytest.raises(ValueError, match="negative"):
        augmented(Duplicated(-X, np.zeros(6)))


def _seed_is_refused():
    augmented, reverse = irad.split(ReverseSplit, product, MixedDuplicated, Const)
    tape = augmented(MixedDuplicated((3.0, X), (0.0, np.zeros(6))), Const(X))
    with pytest.raises(irad.SignatureError):
        reverse(tape, (np.ones(5), None, None))


def _reversed_twice():
    augmented, reverse = irad.split(ReverseSplit(repeatable=True), product, MixedDuplicated, Const)
    tape = augmented(MixedDuplicated((3.0, X), (0.0, np.zeros(6))), Const(X))
    assert reverse(tape, (np.ones(6), None, None))[0][0] == reverse(tape, (np.ones(6), None, None))[0][0]


def _used_twice():
    tape = _AUGMENTED(Duplicated(X, np.zeros(6)), Active(2.0))
    _REVERSE(tape)
    with pytest.raises(irad.UsedTapeError):
        _REVERSE(tape)


def _in_other_threads():
    tapes = [_AUGMENTED(Duplicated(X, np.zeros(6)), Active(2.0)) for _ in range(4)]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(_REVERSE, tapes[:2]))
        list(pool.map(lambda _: tapes.pop(), range(4)))


def _raises_between():
    with pytest.raises(ValueError, match="between"):
        both(X, np.zeros(6), 2)


LIVES = {
    "never reversed": lambda: _AUGMENTED(Duplicated(X, np.zeros(6)), Active(2.0)),
    "never reversed, and part of a cycle": _cycle,
    "reversed": lambda: _REVERSE(_AUGMENTED(Duplicated(X, np.zeros(6)), Active(2.0))),
    "reversed twice": _reversed_twice,
    "used twice": _used_twice,
    "the primal raises": _primal_raises,
    "the seed is refused": _seed_is_refused,
    "in other threads": _in_other_threads,
    "in compiled code": lambda: both(X, np.zeros(6), 0),
    "in compiled code, never reversed": lambda: both(X, np.zeros(6), 1),
    "compiled code raises between the sweeps": _raises_between,
    "from compiled code to Python": lambda: _REVERSE(made(X, np.zeros(6))),
    "from compiled code, never reversed": lambda: made(X, np.zeros(6)),
    "from Python to compiled code": lambda: used(_AUGMENTED(Duplicated(X, np.zeros(6)), Active(2.0))),
    "to and fro": lambda: used(made(X, np.zeros(6))),
}


@pytest.mark.parametrize("live", LIVES.values(), ids=LIVES)
def test_all_that_was_allocated_is_freed_once(live):
    live()
    gc.collect()
    with allocations() as count:
        for _ in range(3):
            live()
        found = count()
    assert (found.kept, found.kept_headers) == (0, 0)
    assert found.made > 0


def test_the_tape_is_freed_when_it_has_been_reversed():
    augmented, reverse = irad.split(ReverseSplitWithPrimal, product, MixedDuplicated, Const)
    with allocations() as count:
        tape, value = augmented(MixedDuplicated((3.0, X), (0.0, np.zeros(6))), Const(X))
        del value
        assert count().kept > 0
        reverse(tape, (np.ones(6), 1.0, None))
        assert count().kept == 0


# --- compiled code ----------------------------------------------------------------------------------------------------


def test_tapes_of_a_loop_in_compiled_code():
    augmented, reverse = irad.split(ReverseSplit, step, Duplicated, Active)

    @numba.njit
    def by_factors(x, dx, factors):
        tapes = [augmented(Duplicated(x, dx), Active(factor)) for factor in factors]
        found = np.zeros(factors.size)
        for i in range(factors.size - 1, -1, -1):
            found[i] = reverse(tapes[i])[1]
        return found

    @numba.njit
    def whole(x, factors):
        y = x.copy()
        for factor in factors:
            step(y, factor)
        return y.sum()

    x, dx, factors = X.copy(), np.ones(6), np.array([0.5, 1.5, 2.0, 0.7])
    found = by_factors(x, dx, factors)
    by_x, expected = irad.grad(whole, (0, 1))(X, factors)
    np.testing.assert_allclose(found, expected, rtol=1e-13)
    np.testing.assert_allclose(dx, by_x, rtol=1e-13)


def test_values_seeds_and_errors_in_compiled_code():
    augmented, reverse = irad.split(ReverseSplitWithPrimal, product, MixedDuplicated, Const)

    @numba.njit
    def run(x, dx, seed, twice):
        tape, value = augmented(MixedDuplicated((3.0, x), (0.0, dx)), Const(x))
        found = reverse(tape, (seed, 1.0, None))
        if twice:
            reverse(tape, None)
        return value, found

    dx = np.zeros(6)
    value, ((by_scale, shadow), nothing) = run(X, dx, np.ones(6), False)
    np.testing.assert_array_equal(value[0], 3.0 * X * X)
    assert (by_scale, nothing) == (pytest.approx((X * X).sum(), rel=1e-14), None)
    assert np.shares_memory(shadow, dx)
    np.testing.assert_array_equal(dx, 3.0 * X)
    with pytest.raises(irad.UsedTapeError, match="already been reversed"):
        run(X, dx, np.ones(6), True)
    with pytest.raises(irad.SignatureError, match="different shape"):
        run(X, dx, np.ones(5), False)


def test_a_used_tape_is_used_in_python_and_in_compiled_code():
    tape = _AUGMENTED(Duplicated(X, np.zeros(6)), Active(2.0))
    assert used(tape) == pytest.approx(weighted(X, 1.0), rel=1e-14)
    with pytest.raises(irad.UsedTapeError):
        _REVERSE(tape)
    tape = made(X, np.zeros(6))
    _REVERSE(tape)
    with pytest.raises(irad.UsedTapeError):
        used(tape)


def test_what_does_not_fit_in_compiled_code():
    _, reverse = irad.split(ReverseSplit(repeatable=True), weighted, Duplicated, Active)

    @numba.njit
    def unannotated(x):
        return _AUGMENTED(x, Active(2.0))

    @numba.njit
    def another(x, dx):
        return reverse(_AUGMENTED(Duplicated(x, dx), Active(2.0)))

    with pytest.raises(irad.SignatureError, match="without an annotation"):
        unannotated(X)
    with pytest.raises(irad.SignatureError, match=r"is given a tape of irad\.split of weighted"):
        another(X, np.zeros(6))


# --- debug mode -------------------------------------------------------------------------------------------------------


def test_debug_mode_finds_a_broken_promise():
    weights, x = np.ones(6), X.copy()

    @numba.njit
    def f(pair, x):
        return (pair[0] * x).sum()

    augmented, reverse = irad.split(
        ReverseSplit(modified=(1,)), f, Duplicated, Duplicated, options=irad.Options(debug=True)
    )
    d_weights, dx = np.zeros(6), np.zeros(6)
    tape = augmented(Duplicated((weights,), (d_weights,)), Duplicated(x, dx))
    weights[2], x[:] = 5.0, 0.0
    with pytest.raises(irad.ChangedBufferError, match=r"the argument pair\[0\] was changed .* two sweeps"):
        reverse(tape)
    weights[2] = 1.0
    reverse(tape)
    np.testing.assert_array_equal(d_weights, X)
    np.testing.assert_array_equal(dx, 1.0)


@pytest.mark.filterwarnings("ignore::irad.TieWarning")
def test_debug_mode_names_the_shadow_that_became_nan():
    augmented, reverse = irad.split(ReverseSplit, picky, Duplicated, options=irad.Options(debug=True))
    tape = augmented(Duplicated(np.zeros(2), np.zeros(2)))
    with pytest.raises(irad.NonFiniteError, match="the derivative with respect to x"):
        reverse(tape)


# --- modes ------------------------------------------------------------------------------------------------------------


def test_modes_are_values():
    modes = [
        *(irad.Reverse, irad.ReverseWithPrimal, irad.Forward, irad.ForwardWithPrimal),
        *(ReverseSplit, ReverseSplitWithPrimal, ReverseSplit(modified=(2, 0, 2)), ReverseSplit(repeatable=True)),
    ]
    assert len(set(modes)) == len(modes)
    for mode in modes:
        assert pickle.loads(pickle.dumps(mode)) == mode
        assert hash(pickle.loads(pickle.dumps(mode))) == hash(mode)
        assert eval(repr(mode), {"irad": irad}) == mode
        with pytest.raises(AttributeError):
            mode.has_primal = True
    assert irad.Reverse(primal=True) == irad.ReverseWithPrimal
    assert irad.Reverse(split=True) == ReverseSplit
    assert ReverseSplitWithPrimal(primal=False, modified=[0])(split=False) == irad.Reverse
    assert ReverseSplit(modified=(0,))(modified=None) == ReverseSplit
    assert repr(ReverseSplitWithPrimal(modified=(2, 0, 2))) == "irad.ReverseSplitWithPrimal(modified=(0, 2))"


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: irad.Forward(split=True), "forward mode cannot be split"),
        (lambda: irad.Reverse(modified=(0,)), "no modifiers modified and repeatable"),
        (lambda: ReverseSplit(modified=(True, False)), "positions of arguments"),
        (lambda: ReverseSplit(modified=(-1,)), "positions of arguments"),
        (lambda: irad.split(irad.Reverse, weighted, Duplicated, Active), "separate sweeps"),
        (lambda: irad.split(ReverseSplit, weighted, Duplicated, 2.0), "argument 1 of weighted has no annotation"),
        (lambda: irad.split(ReverseSplit(modified=(2,)), weighted, Duplicated, Active), "2 annotations"),
        (lambda: irad.autodiff(ReverseSplit, weighted, Const(X), Active(1.0)), "called separately"),
        (lambda: _AUGMENTED(Const(X), Active(2.0)), r"called with irad.Const\(…\)"),
        (lambda: _AUGMENTED(X, 2.0), "without an annotation"),
        (lambda: _AUGMENTED(Duplicated(X, np.zeros(5)), Active(2.0)), "shape"),
        (lambda: _REVERSE((1, 2)), "is given a tuple"),
        (lambda: pickle.dumps(_AUGMENTED(Duplicated(X, np.zeros(6)), Active(2.0))), "cannot be copied or pickled"),
    ],
)
def test_what_is_refused(make, words):
    with pytest.raises((irad.SignatureError, TypeError), match=words):
        make()
