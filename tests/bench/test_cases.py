"""The hand-written adjoints agree with finite differences: a wrong yardstick measures nothing."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

from bench.case import Case, Size
from bench.cases import BY_NAME, CASES
from bench.harness.worker import TOLERANCE
from bench.variants import irad_gradient, largest_error

KINKED = {"asian-option", "cnn", "spline"}  # in a longer step a maximum switches, a point leaves its piece


def difference_quotient(case: Case, args: tuple, argnum: int, direction, step: float) -> float:
    """Central difference of fourth order along a direction of one argument."""

    def at(t: float) -> float:
        moved = list(args)
        moved[argnum] = args[argnum] + t * direction
        return case.primal(*moved)

    return (8.0 * (at(step) - at(-step)) - (at(2.0 * step) - at(-2.0 * step))) / (12.0 * step)


def unit(shape: tuple[int, ...], index: tuple[int, ...]) -> np.ndarray:
    out = np.zeros(shape)
    out[index] = 1.0
    return out


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_every_entry_on_small_inputs(case: Case):
    args = case.make("small")
    value, gradients = case.hand(*args)
    assert value == pytest.approx(case.primal(*args), rel=1e-12)
    assert len(gradients) == len(case.argnums)
    for argnum, gradient in zip(case.argnums, gradients, strict=True):
        shape = np.shape(args[argnum])
        assert np.shape(gradient) == shape
        expected = [difference_quotient(case, args, argnum, unit(shape, i), 1e-4) for i in np.ndindex(shape)]
        scale = np.max(np.abs(expected))
        # Fourth order with step 1e-4: truncation and rounding are both below 1e-9 of the largest entry here.
        np.testing.assert_allclose(np.ravel(gradient), expected, rtol=1e-7, atol=1e-8 * scale)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_random_direction_on_full_inputs(case: Case):
    args = case.make("full")
    _, gradients = case.hand(*args)
    rng = np.random.default_rng(0)
    for argnum, gradient in zip(case.argnums, gradients, strict=True):
        direction = rng.standard_normal(np.shape(args[argnum]))
        step = (1e-7 if case.name in KINKED else 1e-4) * float(np.linalg.norm(args[argnum]) / np.linalg.norm(direction))
        expected = difference_quotient(case, args, argnum, direction, step)
        products = gradient * direction
        # Products cancel; the rounding of the value, a sum of as many terms, does not.
        assert np.sum(products) == pytest.approx(expected, rel=1e-6, abs=1e-6 * float(np.linalg.norm(products)))


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_inputs_are_reproducible_and_left_alone(case: Case):
    args, again = case.make("small"), case.make("small")
    case.primal(*args)
    case.hand(*args)
    for left, right in zip(args, again, strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_irad_agrees(case: Case):
    args = case.make("small")
    assert largest_error(irad_gradient(case)(*args), case.hand(*args)) < TOLERANCE


@pytest.mark.parametrize("size", get_args(Size))
@pytest.mark.parametrize("case", [case for case in CASES if case.hand_opt is not None], ids=lambda c: c.name)
def test_the_best_adjoint_agrees(case: Case, size: Size):
    args = case.make(size)
    assert case.hand_opt is not None
    assert largest_error(case.hand_opt(*args), case.hand(*args)) < TOLERANCE


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_sizes(case: Case):
    numbers = [sum(np.size(arg) for arg in case.make(size)) for size in get_args(Size)]
    assert numbers == sorted(numbers)


def test_names_are_unique():
    assert len(BY_NAME) == len(CASES)
