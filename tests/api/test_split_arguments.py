"""Which arguments the sweeps of `irad.split` take: workspace, names, defaults, the instance of a method."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import float64, njit
from numba.experimental import jitclass
from numba.typed import List

import irad
from irad import Active, Cache, Duplicated, MixedDuplicated
from irad.testing.allocations import allocations

X = np.array([1.0, 2.0])


@njit
def through(x, work, scale=1.0):
    work[:] = x * x
    total = 0.0
    for i in range(x.size):
        total += np.sin(work[i])
    return scale * total


SLOPE = 2.0 * X * np.cos(X * X)


def test_workspace() -> None:
    """It may change between the sweeps; its shadow, which irad makes, begins at zero each time, and is released."""
    mode = irad.ReverseSplitWithPrimal(repeatable=True)
    augmented, reverse = irad.split(mode, through, Duplicated, Cache, Active)

    def run() -> np.ndarray[Any, Any]:
        shadow, work = np.zeros(2), np.empty(2)
        tape, value = augmented(Duplicated(X, shadow), Cache(work), Active(2.0))
        work[:] = np.nan
        total = np.sin(X * X).sum()
        assert value == pytest.approx(2.0 * total, rel=1e-15)
        for times in (1, 2):
            assert reverse(tape) == (None, None, pytest.approx(total, rel=1e-15))
            np.testing.assert_allclose(shadow, 2.0 * times * SLOPE, rtol=1e-14)
        return shadow

    run()
    with allocations() as made:
        run()
        assert (made().kept, made().kept_headers) == (0, 0)


@pytest.mark.parametrize("make", [lambda: List([1.0, 3.0]), lambda: (np.empty(2), List([1.0, 3.0]))])
def test_workspace_that_is_no_array(make: Any) -> None:
    @njit
    def f(x, work):
        items = work[1] if isinstance(work, tuple) else work
        for i in range(x.size):
            items.append(x[i] * x[i])
        total = 0.0
        for item in items:
            total += item * item
        return total

    augmented, reverse = irad.split(irad.ReverseSplit, f, Duplicated, Cache)

    def run() -> None:
        shadow = np.zeros(2)
        assert reverse(augmented(Duplicated(X, shadow), Cache(make()))) == (None, None)
        np.testing.assert_allclose(shadow, 4.0 * X**3, rtol=1e-15)

    run()
    with allocations() as made:
        run()
        assert (made().kept, made().kept_headers) == (0, 0)


def test_workspace_that_is_another_argument() -> None:
    """An element that is seen through both has one cotangent, which the shadows of the two would share out."""
    augmented, _ = irad.split(irad.ReverseSplit, through, Duplicated, Cache, Active)
    x, shadow = X.copy(), np.zeros(2)
    for attempt in (augmented, lambda *given: irad.autodiff(irad.Reverse, through, *given)):
        with pytest.raises(irad.SignatureError, match=r"\(work\) has no shadow but shares memory with argument 0"):
            attempt(Duplicated(x, shadow), Cache(x), Active(1.0))
    assert x.tolist() == X.tolist()


def test_workspace_in_compiled_code() -> None:
    augmented, reverse = irad.split(irad.ReverseSplit, through, Duplicated, Cache, Active)

    @njit
    def f(x, shadow, work):
        return reverse(augmented(Duplicated(x, shadow), Cache(work), Active(2.0)))[2]

    shadow = np.zeros(2)
    assert f(X, shadow, np.empty(2)) == pytest.approx(np.sin(X * X).sum(), rel=1e-15)
    np.testing.assert_allclose(shadow, 2.0 * SLOPE, rtol=1e-14)


def test_names_and_defaults() -> None:
    augmented, reverse = irad.split(irad.ReverseSplit, through, Duplicated, scale=Active, work=Cache)
    shadow = np.zeros(2)
    tape = augmented(Duplicated(X, shadow), scale=Active(2.0), work=Cache(np.empty(2)))
    assert reverse(tape) == (None, None, pytest.approx(np.sin(X * X).sum(), rel=1e-15))

    @njit
    def f(x, power=2, scale=3.0):
        return scale * x**power

    augmented, reverse = irad.split(irad.ReverseSplit, f, Active, scale=Active)  # power is passed over
    assert reverse(augmented(Active(5.0), scale=Active(4.0))) == (40.0, None, 25.0)
    assert irad.autodiff(irad.Reverse, f, scale=Active(4.0), x=irad.Constant(5.0)) == (None, None, 25.0)


def test_the_shadow_of_a_tuple_behind_that_of_an_array() -> None:
    @njit
    def f(x, model):
        return x.sum() * model[0] * model[1].sum()

    augmented, reverse = irad.split(irad.ReverseSplit, f, Duplicated, MixedDuplicated)
    of_x, weights = np.zeros(2), np.zeros(3)
    _, (by_scale, by_weights) = reverse(
        augmented(Duplicated(X, of_x), MixedDuplicated((2.0, np.ones(3)), (0.0, weights)))
    )
    assert by_scale == 9.0
    assert np.shares_memory(by_weights, weights)
    assert (weights.tolist(), of_x.tolist()) == ([6.0] * 3, [6.0] * 2)


@jitclass([("scale", float64)])
class Model:
    def __init__(self, scale):
        self.scale = scale

    def energy(self, x, w=2.0):
        return self.scale * w * x.sum()


def test_a_method() -> None:
    energy = Model(3.0).energy
    mode = irad.ReverseSplitWithPrimal(modified=(0,))
    augmented, reverse = irad.split(mode, energy, Duplicated, w=Active)
    shadow = np.zeros(2)
    tape, value = augmented(Duplicated(X, shadow), w=Active(4.0))
    assert (value, reverse(tape)) == (36.0, (None, 9.0))
    assert shadow.tolist() == [12.0, 12.0]
    assert irad.autodiff(irad.Reverse, energy, irad.Const(X), Active(4.0)) == (None, 9.0)
    with pytest.raises(irad.SignatureError, match=r"the sweeps of a method, Model\.energy"):
        njit(lambda x, dx: augmented(Duplicated(x, dx), Active(1.0)))(X, shadow)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda: irad.split(irad.ReverseSplit, through, Duplicated, nope=Active), "missing a required argument"),
        (lambda: irad.split(irad.ReverseSplit(modified=(2,)), Model(1.0).energy, Active, Active), "there are 2 anno"),
        (lambda: irad.split(irad.ReverseSplit, through, X, Cache, Active), "argument 0 of through has no annotation"),
        (lambda: irad.autodiff(irad.Reverse, through, Duplicated(X, X.copy()), Cache(X), by=Active(1.0)), "'by'"),
    ],
)
def test_what_is_refused(call: Any, problem: str) -> None:
    with pytest.raises(irad.SignatureError, match=problem):
        call()
