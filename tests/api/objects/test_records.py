"""Records by every public function: whose memory, which type, what overlaps."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

import irad
from irad import Active, Const, Duplicated, MixedDuplicated, Reverse, ReverseWithPrimal

PARTICLE = np.dtype([("k", np.int8), ("m", np.float64), ("v", np.float64, (2,))])


def particle(k: int, m: float, *v: float) -> Any:
    return np.array((k, m, v), PARTICLE)[()]


@numba.njit
def energy(p, scale):
    return scale * p.m * (p.v[0] ** 2 + p.v[1] ** 2)


@numba.njit
def doubled(p, x):
    p.m = p.m * x
    return p


def same(found, k, m, *v):
    assert isinstance(found, np.void)
    assert found.dtype == PARTICLE
    assert (found["k"], found["m"], tuple(found["v"])) == (k, m, v)


def test_gradient_is_a_record_of_its_own():
    p = particle(3, 2.0, 1.0, 2.0)
    gradient = irad.grad(energy)(p, 0.5)
    same(gradient, 0, 2.5, 2.0, 4.0)
    gradient["m"] = 9.0
    assert p["m"] == 2.0
    value, (by_p, by_scale) = irad.value_and_grad(energy, (0, 1))(p, 0.5)
    assert (value, by_scale) == (5.0, 10.0)
    same(by_p, 0, 2.5, 2.0, 4.0)


def test_in_compiled_code_it_is_an_array_without_dimensions():
    gradient = irad.grad(energy)

    @numba.njit
    def slope(p):
        found = gradient(p, 0.5)
        return found[()].m + found[()].v[1], found.ndim

    assert slope(particle(3, 2.0, 1.0, 2.0)) == (6.5, 0)


def test_a_record_beside_the_array_that_it_lies_in():
    """Memory that is written has one derivative."""

    @numba.njit
    def f(p, particles):
        p.m = 3 * p.m
        return particles[1].m * p.m

    particles = np.array([(0, 1.0, (0, 0)), (0, 2.0, (0, 0))], PARTICLE)
    by_p, by_particles = irad.grad(f, (0, 1))(particles[1], particles)
    same(by_p, 0, 36.0, 0.0, 0.0)
    np.testing.assert_array_equal(by_particles["m"], [0.0, 36.0])
    with pytest.raises(irad.SignatureError, match="is constant but shares memory"):
        irad.grad(f)(particles[1], particles)


def test_shadow():
    p, dp, seed = particle(3, 2.0, 1.0, 2.0), particle(0, 0, 0, 10.0), particle(1, 1.0, 0.5, 0)
    gradients, value = irad.autodiff(ReverseWithPrimal, doubled, Duplicated(p, dp), Active(4.0), seed=seed)
    assert gradients == (None, 2.0)
    same(value, 3, 8.0, 1.0, 2.0)
    same(p, 3, 8.0, 1.0, 2.0)
    same(dp, 0, 4.0, 0.5, 10.0)


def test_mixed():
    @numba.njit
    def f(t):
        return energy(t[0], t[1])

    p, dp = particle(3, 2.0, 1.0, 2.0), particle(0, 1.0, 0, 0)
    [(found, by_scale)] = irad.autodiff(Reverse, f, MixedDuplicated((p, 0.5), (dp, 0.0)))
    same(found, 0, 3.5, 2.0, 4.0)
    same(dp, 0, 3.5, 2.0, 4.0)
    assert by_scale == 10.0


def test_into():
    out = particle(1, 7.0, 7.0, 7.0), np.empty(1)
    assert irad.value_and_grad_into(energy, (0, 1))(out, particle(3, 2.0, 1.0, 2.0), 0.5) == 5.0
    same(out[0], 0, 2.5, 2.0, 4.0)
    assert out[1] == 10.0


def test_pullback():
    p = particle(3, 2.0, 1.0, 2.0)
    value, pullback = irad.vjp(doubled, p, 4.0)
    same(value, 3, 8.0, 1.0, 2.0)
    p["m"] = np.nan
    seed = particle(1, 1.0, 0.5, 0)
    for _ in range(2):
        by_p, by_x = pullback(seed)
        same(by_p, 0, 4.0, 0.5, 0.0)
        assert by_x == 2.0
    same(pullback(None)[0], 0, 0.0, 0.0, 0.0)
    with pytest.raises(irad.SignatureError, match="a record of the same dtype"):
        pullback(np.zeros(1, [("m", np.float64)])[0])


BAD = {
    "by value": (Active(particle(0, 1, 1, 1)), "irad.Duplicated"),
    "itself": (Duplicated(*[particle(0, 1, 1, 1)] * 2), "pass a separate"),
    "another dtype": (
        Duplicated(particle(0, 1, 1, 1), np.zeros(1, [("m", np.float64)])[0]),
        "a record of the same dtype",
    ),
    "an array": (Duplicated(particle(0, 1, 1, 1), np.zeros(1, PARTICLE)), "a record of the same dtype"),
}


@pytest.mark.parametrize(("argument", "words"), BAD.values(), ids=BAD)
def test_bad_annotation(argument, words):
    with pytest.raises(irad.SignatureError) as caught:
        irad.autodiff(Reverse, energy, argument, Const(1.0))
    assert words in caught.value.remedy
