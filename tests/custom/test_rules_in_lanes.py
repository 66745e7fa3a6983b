"""Forward rules where there are several directions: a rule is called for each. They differ from true derivatives."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numba import njit

import irad
from irad import rules
from irad.api.forward import batched_pushforward
from irad.errors import NoRuleError
from irad.frontend.custom import catalogue
from irad.testing.allocations import allocations

A = np.array([1.0, 2.0])
DIRECTIONS = (np.array([1.0, 0.0]), np.array([3.0, -1.0]), np.array([0.0, 2.0]))


@pytest.fixture(autouse=True)
def nothing_left() -> Iterator[None]:
    before = {rule.target for rule in catalogue.rules()}
    yield
    for rule in catalogue.rules():
        if rule.target not in before:
            rules.remove(rule.target)


def test_arrays_and_numbers():
    @njit
    def scaled(x, factor):
        return x * factor, factor + x.sum()

    @rules.forward(scaled)
    def scaled_forward(config, x, factor):
        assert config.width == 1
        slope = 10.0 * x.tangent * factor.value + 100.0 * x.value * factor.tangent
        return scaled(x.value, factor.value), (slope, factor.tangent + 7.0 * x.tangent.sum())

    @njit
    def through(x, factor):
        array, number = scaled(x * 2.0, factor)
        return array * number, number

    given = tuple((dx, float(k)) for k, dx in enumerate(DIRECTIONS))
    batch, one = batched_pushforward(through, (0, 1), 3), irad.pushforward(through, (0, 1))
    value, lanes = batch(given, A, 3.0)
    np.testing.assert_equal(value, through(A, 3.0))
    for each, lane in zip(given, lanes, strict=True):
        np.testing.assert_equal(lane, one(each, A, 3.0)[1])
    del value, lanes, lane
    with allocations() as count:
        for _ in range(3):
            batch(given, A, 3.0)
        assert count().kept == count().kept_headers == 0


def test_easy_rules():
    @njit
    def slope(x):
        return x * x

    rules.easy_rule(slope, lambda x: 5.0 * x)
    found = batched_pushforward(njit(lambda x: slope(x) * 2.0), 0, 3)((1.0, 0.0, -2.0), 3.0)
    assert found == (18.0, (30.0, 0.0, -60.0))


def test_what_cannot_be_repeated_is_refused():
    @njit
    def double_into(out, x):
        out[:] = 2.0 * x

    @rules.forward(double_into)
    def double_forward(config, out, x):
        double_into(out.value, x.value)
        double_into(out.tangent, x.tangent)

    @njit
    def drawn(x):
        return x * np.random.random()

    @rules.forward(drawn)
    def drawn_forward(config, x):
        u = np.random.random()
        return x.value * u, x.tangent * u

    def in_place(x):
        out = np.empty_like(x)
        double_into(out, x)
        return out.sum()

    def at_random(x):
        return drawn(x[0])

    for function, name in ((in_place, "double_into"), (at_random, "drawn")):
        with pytest.raises(NoRuleError, match=f"{name} cannot be called once for each of several directions"):
            batched_pushforward(njit(function), 0, 2)(DIRECTIONS[:2], A)
