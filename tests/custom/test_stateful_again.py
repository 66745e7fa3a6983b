"""Derivatives whose rules have workspace, differentiated again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import rules
from irad.errors import UnsupportedError
from irad.rules import AugmentedReturn, StatefulRule


def _cube(kept_always: bool) -> Any:
    """x³, whose rule keeps x in its slot: always, or unless it is differentiated itself."""

    @njit
    def cube(x):
        return x**3

    @rules.build_rule(cube)
    def build(signature):
        def augmented_primal(config, slot, x):
            if kept_always or not irad.within_autodiff():
                slot.state[0] = x.value
            return AugmentedReturn(x.value**3, None, x.value)

        def reverse(config, slot, cotangent, tape, x):
            if kept_always or not irad.within_autodiff():
                return (3.0 * cotangent * slot.state[0] ** 2,)
            return (3.0 * cotangent * tape**2,)

        return StatefulRule(augmented_primal, reverse, lambda: np.empty(1))

    return cube


def test_what_a_slot_keeps_would_lose_its_derivative():
    cube = _cube(kept_always=True)
    assert irad.grad(cube)(2.0) == 12.0
    with pytest.raises(UnsupportedError, match="active values pass through memory, whose origin irad cannot trace"):
        irad.hvp(lambda x: cube(x) * x)(2.0, 1.0)


def test_a_rule_that_uses_the_tape_then():
    cube = _cube(kept_always=False)

    @njit
    def f(x):
        total = 0.0
        for _ in range(3):
            total += cube(x) * x
        return total

    first = irad.grad(f)
    assert first(2.0) == 96.0
    assert irad.hvp(f)(2.0, 1.0) == 144.0
    assert irad.grad(njit(lambda x: first(x)))(2.0) == 144.0
    assert rules.workspace(cube).in_use == 0
