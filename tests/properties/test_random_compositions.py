"""Random compositions of derivatives: derivatives of functions that call derivatives, against nested dual numbers.

``IRAD_RANDOM_COMPOSITIONS=200`` tests as many, ``IRAD_RANDOM_COMPOSITIONS=150:200`` those seeds only.
"""

from __future__ import annotations

import math
import os

import pytest

from tests.tools.check_composition import check_composition
from tests.tools.nested_duals import IRAD, NUMPY
from tests.tools.random_compositions import compose

FIRST, _, END = f"0:{os.environ.get('IRAD_RANDOM_COMPOSITIONS', '3')}".rpartition(":")
FOUND = (96,)  # a cycle with four entries, which LLVM's code generator spoiled
SEEDS = dict.fromkeys((*range(int(FIRST.rpartition(":")[2]), int(END)), *FOUND))


@pytest.mark.parametrize("seed", SEEDS)
def test_random_composition(seed: int):
    composition = compose(seed)
    try:
        check_composition(composition, second=seed % 4 == 0)
    except Exception as error:
        error.add_note(f"\n{composition.source}")
        raise


def test_the_reference_keeps_perturbations_apart():
    """d/dx (x · d/dy (x + y)) is 1."""

    def slope(x):
        return x * IRAD.grad(lambda y: x + y)(1.0)

    assert IRAD.grad(slope)(3.0) == 1.0
    assert IRAD.grad(IRAD.grad(IRAD.grad(NUMPY.sin)))(0.4) == pytest.approx(-math.cos(0.4))


def test_every_way_to_take_a_derivative_is_drawn():
    text = "".join(compose(seed).source for seed in range(60))
    for way in ("grad", "pushforward", "value_and_grad", "jacobian", "hvp", "hessian"):
        assert f"irad.{way}(" in text
    assert compose(3).source == compose(3).source != compose(4).source
