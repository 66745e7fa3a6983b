"""Rules where there are several directions: called for each, or for all. They differ from true derivatives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numba import njit, types

import irad
from irad import rules
from irad.api.forward import batched_pushforward
from irad.errors import NoRuleError, RuleError
from irad.frontend.custom import catalogue
from irad.rules import AugmentedReturn, StatefulRule, in_lanes, is_active
from irad.testing import check_rule
from irad.testing.allocations import allocations

A = np.array([1.0, 2.0])
J0 = types.ExternalFunction("j0", types.float64(types.float64))
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
        np.testing.assert_equal(lane, one(A, 3.0, each)[1])
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


@njit
def scaled(x, factor):
    return x * factor, factor + x.sum()


@njit
def scaled_in_lane(lane, x, factor):
    array, number = np.zeros_like(x.value), 0.0
    if is_active(x):
        array += 10.0 * x.tangent[lane] * factor.value
        number += 7.0 * x.tangent[lane].sum()
    if is_active(factor):
        array += 100.0 * x.value * factor.tangent[lane]
        number += factor.tangent[lane]
    return array, number


def test_all_directions_at_once(capfd: pytest.CaptureFixture[str]):
    """The rule runs once, is given tuples of tangents, and gives what a rule for one direction would."""

    @rules.forward(scaled, batched=True)
    def scaled_forward(config, x, factor):
        print("width", config.width)
        return scaled(x.value, factor.value), in_lanes(config, scaled_in_lane, x, factor)

    @njit
    def through(x, factor):
        array, number = scaled(x * 2.0, factor)
        return array * number, number

    given = tuple((dx, float(k)) for k, dx in enumerate(DIRECTIONS))
    batch, one = batched_pushforward(through, (0, 1), 3), irad.pushforward(through, (0, 1))
    value, lanes = batch(given, A, 3.0)
    assert capfd.readouterr().out.split() == ["width", "3"]
    for each, lane in zip(given, lanes, strict=True):
        np.testing.assert_equal(lane, one(A, 3.0, each)[1])
    np.testing.assert_equal(lanes[1][0], 20.0 * DIRECTIONS[1] * 3.0 * 9.0 + 200.0 * A * 9.0 + 6.0 * A * 29.0)
    found = batched_pushforward(through, 0, 2)(DIRECTIONS[1:], A, 3.0)[1]
    np.testing.assert_equal(found, tuple(irad.jvp(through, (A, 3.0), (dx, None))[1] for dx in DIRECTIONS[1:]))
    del value, lanes, lane, found
    with allocations() as count:
        for _ in range(3):
            batch(given, A, 3.0)
        assert count().kept == count().kept_headers == 0


def test_memory_in_all_directions():
    """What cannot be run again can be run for all directions: functions that write, draw, or are in C."""

    @njit
    def double_into(out, x):
        out[:] = 2.0 * x

    @rules.forward(double_into, batched=True)
    def double_forward(config, out, x):
        double_into(out.value, x.value)
        for lane in range(config.width):
            out.tangent[lane][:] = 20.0 * x.tangent[lane]

    @njit
    def drawn(x):
        return x * np.random.random()

    @rules.forward(drawn, batched=True)
    def drawn_forward(config, x):
        u = np.random.random()
        return x.value * u, in_lanes(config, lambda lane: x.tangent[lane] * u)

    @rules.forward("j0", batched=True)
    def j0_forward(config, x):
        return 0.5, in_lanes(config, lambda lane: -3.0 * x.tangent[lane])

    @njit
    def through(x):
        out = np.empty_like(x)
        double_into(out, x)
        u = drawn(x[0]) / x[0]
        return out, u, drawn(u * x[1]) / x[1], J0(x[1])

    (out, _, drawn_twice, bessel), lanes = batched_pushforward(through, 0, 3)(DIRECTIONS, A)
    np.testing.assert_equal(out, 2.0 * A)
    assert bessel == 0.5
    for dx, (out_tangent, u_tangent, twice_tangent, bessel_tangent) in zip(DIRECTIONS, lanes, strict=True):
        np.testing.assert_equal(out_tangent, 20.0 * dx)
        np.testing.assert_allclose((u_tangent, twice_tangent), 0.0, atol=1e-15)
        assert bessel_tangent == -3.0 * dx[1]
    assert 0.0 < drawn_twice < 1.0


def test_partials_are_computed_once_for_all_directions(capfd: pytest.CaptureFixture[str]):
    @njit
    def slope(x, y):
        return x * y, x * x

    def by_x(x, y):
        print("partial")
        return 5.0 * y, 2.0 * x

    rules.easy_rule(slope, by_x, lambda x, y: (7.0 * x, 0.0))
    found = batched_pushforward(njit(lambda x, y: slope(x, y)), (0, 1), 3)(
        ((1.0, 0.0), (0.0, 1.0), (-2.0, 3.0)), 3.0, 2.0
    )
    assert found == ((6.0, 9.0), ((10.0, 6.0), (21.0, 0.0), (43.0, -12.0)))
    assert capfd.readouterr().out.split() == ["partial"]


@pytest.mark.parametrize(
    ("rule", "problem"),
    [
        (lambda config, x: (x.value, x.tangent[0]), "returns no tuple of tangents"),
        (lambda config, x: (x.value, (1.0, 2.0, 3.0)), "returns no tuple of tangents"),
        (lambda config, x: (x.value, (1.0, x.tangent)), r"returns the wrong tangent"),
        (lambda config, x: (x.value, in_lanes(2, lambda lane: 1.0)), "the number of directions is not known"),
    ],
)
def test_what_a_batched_rule_must_return(rule: Any, problem: str):
    doubled = njit(lambda x: x + x)
    rules.forward(doubled, batched=True)(rule)
    with pytest.raises(RuleError, match=problem):
        batched_pushforward(njit(lambda x: doubled(x)), 0, 2)((1.0, 2.0), 3.0)


# ------------------------------------------------------------------------------------------------ reverse mode


def reversed_in_lanes(f: Any, seeds: tuple[Any, ...], *numbers: float) -> tuple[Any, np.ndarray]:
    """The derivatives of a function of A and numbers for several cotangents; checked against those of each alone."""
    shadows = np.zeros((len(seeds), A.size))
    active = [irad.Active(number) for number in numbers]
    batch = irad.BatchDuplicated(A.copy(), tuple(shadows))
    (_, *found), value = irad.autodiff(irad.ReverseWithPrimal, f, batch, *active, seed=seeds)
    for lane, seed in enumerate(seeds):
        alone = np.zeros_like(A)
        one = irad.Duplicated(A.copy(), alone)
        (_, *expected), its_value = irad.autodiff(irad.ReverseWithPrimal, f, one, *active, seed=seed)
        np.testing.assert_equal(([each[lane] for each in found], value), (expected, its_value))
        np.testing.assert_array_equal(shadows[lane], alone)
    return found, shadows


@pytest.mark.parametrize("batched", [False, True])
def test_cotangents(batched: bool, capfd: pytest.CaptureFixture[str]):
    def augmented_each(config, x, factor):
        print("augmented", config.width)
        array, number = scaled(x.value, factor.value)
        return AugmentedReturn((array, number), (np.zeros_like(array), None), (x.value * 100.0, x.value[0]))

    def reverse_each(config, cotangent, tape, x, factor):
        print("reverse", config.width)
        if is_active(x):
            x.shadow[:] += 10.0 * cotangent[0] * factor.value + 7.0 * cotangent[1]
        return None, (cotangent[0] * tape[0]).sum() + cotangent[1] * tape[1] if is_active(factor) else None

    def augmented_all(config, x, factor):
        print("augmented", config.width)
        array, number = scaled(x.value, factor.value)
        shadows = in_lanes(config, lambda lane: (np.zeros_like(array), None))
        return AugmentedReturn((array, number), shadows, (x.value * 100.0, x.value[0]))

    def reverse_all(config, cotangent, tape, x, factor):
        print("reverse", config.width)

        def in_lane(lane):
            if is_active(x):
                x.shadow[lane][:] += 10.0 * cotangent[lane][0] * factor.value + 7.0 * cotangent[lane][1]
            return (cotangent[lane][0] * tape[0]).sum() + cotangent[lane][1] * tape[1]

        by_factor = in_lanes(config, in_lane)
        return None, by_factor if is_active(factor) else None

    rules.augmented_primal(scaled, batched=batched)(augmented_all if batched else augmented_each)
    rules.reverse(scaled, batched=batched)(reverse_all if batched else reverse_each)

    @njit
    def through(x, factor):
        total = 0.0
        for _ in range(2):
            array, number = scaled(x * 2.0, factor)
            total += (array * number).sum()
            x[0] = array[1]
        return total, array

    seeds = ((1.0, np.array([1.0, 2.0])), (0.5, np.zeros(2)), (0.0, np.array([0.0, -1.0])))
    found, shadows = reversed_in_lanes(through, seeds, 3.0)
    assert found[0][1] != 0.0
    assert shadows[1].all()
    printed = capfd.readouterr().out.split()
    assert printed[:4] == (["augmented", "3"] * 2 if batched else ["augmented", "1"] * 2)
    irad.autodiff(irad.Reverse, through, irad.BatchDuplicated(A.copy(), tuple(shadows)), irad.Const(3.0), seed=seeds)
    batch = irad.BatchDuplicated(A.copy(), tuple(shadows))
    with allocations() as count:
        for _ in range(3):
            irad.autodiff(irad.Reverse, through, batch, irad.Active(3.0), seed=seeds)
        assert count().kept == count().kept_headers == 0


def test_what_cannot_be_repeated_in_reverse_mode():
    """It is refused, unless the rule takes all directions at once."""

    @njit
    def double_into(out, x):
        out[:] = 2.0 * x

    @njit
    def through(x):
        out = x * 1.0
        double_into(out, x)
        return out[0] * J0(out[1])

    def augmented(config, out, x):
        double_into(out.value, x.value)
        return AugmentedReturn(None, None, None)

    def reverse(config, cotangent, tape, out, x):
        x.shadow[:] += 20.0 * out.shadow
        out.shadow[:] = 0.0

    rules.augmented_primal(double_into)(augmented)
    rules.reverse(double_into)(reverse)
    with pytest.raises(NoRuleError, match="double_into cannot be called once for each") as caught:
        reversed_in_lanes(through, (1.0, 2.0))
    assert "batched=True" in str(caught.value)

    rules.augmented_primal(double_into, batched=True)(augmented)
    with pytest.raises(RuleError, match="takes all directions at once"):
        reversed_in_lanes(through, (1.0, 2.0))

    @rules.reverse(double_into, batched=True)
    def reverse_all(config, cotangent, tape, out, x):
        for lane in range(config.width):
            x.shadow[lane][:] += 20.0 * out.shadow[lane]
            out.shadow[lane][:] = 0.0

    @rules.augmented_primal("j0", batched=True)
    def j0_augmented(config, x):
        return AugmentedReturn(0.5, None, x.value)

    @rules.reverse("j0", batched=True)
    def j0_reverse(config, cotangent, tape, x):
        return (in_lanes(config, lambda lane: cotangent[lane] * tape),)

    _, shadows = reversed_in_lanes(through, (1.0, 2.0, 0.0))
    np.testing.assert_array_equal(shadows, [[10.0, 160.0], [20.0, 320.0], [0.0, 0.0]])


def test_a_batched_rule_whose_value_has_no_cotangent():
    """Then there is None in the place of the tuple; `check_rule` tries it, and much else."""

    @njit
    def store(out, x):
        out[:] = x * x
        return x.sum()

    @rules.augmented_primal(store, batched=True)
    def augmented(config, out, x):
        return AugmentedReturn(store(out.value, x.value), None, x.value.copy())

    @rules.reverse(store, batched=True)
    def reverse(config, cotangent, tape, out, x):
        for lane in range(config.width):
            if is_active(x) and is_active(cotangent):
                x.shadow[lane][:] += cotangent[lane]
            if is_active(x) and is_active(out):
                x.shadow[lane][:] += 2.0 * tape * out.shadow[lane]
            if is_active(out):
                out.shadow[lane][:] = 0.0
        return None, None

    check_rule(store, np.array([0.3, 0.4]), np.array([0.5, -0.2]), single=False, aliasing=False)


def test_workspace_of_each_direction():
    @njit
    def cubed(x):
        return x * x * x

    @rules.build_rule(cubed)
    def build(signature):
        def state():
            return np.zeros(1)

        def augmented_primal(config, slot, x):
            slot.state[0] += 1.0 if slot.state[0] == 0.0 else 0.0
            return AugmentedReturn(cubed(x.value), None, x.value)

        def reverse(config, slot, cotangent, tape, x):
            slot.state[0] *= 2.0
            return (cotangent * slot.state[0] * tape,)

        return StatefulRule(augmented_primal, reverse, state)

    through = njit(lambda x: cubed(x[0]) + x[1])
    shadows = np.zeros((3, 2))
    irad.autodiff(irad.Reverse, through, irad.BatchDuplicated(A, tuple(shadows)), seed=(1.0, 2.0, 3.0))
    np.testing.assert_array_equal(shadows[:, 0], [2.0, 4.0, 6.0])  # and not 2, 8, 24
    assert rules.workspace(cubed) == (0, 3)


@pytest.mark.parametrize(
    ("shadow", "cotangent", "problem"),
    [
        (lambda x: np.zeros(2), lambda bar: (None,), "returns no tuple of shadows"),
        (lambda x: (np.zeros(2), np.zeros(2)), lambda bar: ((1.0, 2.0),), "a cotangent for argument 0"),
    ],
)
def test_what_a_batched_rule_must_return_in_reverse_mode(shadow: Any, cotangent: Any, problem: str):
    doubled, made, given = njit(lambda x: x + x), njit(shadow), njit(cotangent)
    rules.augmented_primal(doubled, batched=True)(lambda config, x: AugmentedReturn(x.value * 2.0, made(x.value), None))
    rules.reverse(doubled, batched=True)(lambda config, bar, tape, x: given(bar))
    through = njit(lambda x: doubled(x).sum())
    with pytest.raises(RuleError, match=problem):
        irad.autodiff(irad.Reverse, through, irad.BatchDuplicated(A, (A * 0.0, A * 0.0)), seed=(1.0, 2.0))
