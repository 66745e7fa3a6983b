"""`gradcheck` of kernels: right ones pass in both modes, a wrong rule is found."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import cuda

import irad
import irad.cuda
from irad import SignatureError
from irad.testing import GradcheckError, gradcheck
from tests.cuda.host.launching import compiled
from tests.cuda.kernels import KERNELS


@pytest.mark.parametrize("name", ["elementwise", "block_reduction", "newton", "gather_scatter", "springs"])
def test_kernels_are_right(name: str):
    case = KERNELS[name]
    launch = irad.cuda.grad(compiled(name))[case.grid, case.block, 0, case.shared]
    report = gradcheck(launch, *case.fresh(), argnums=case.active, max_partials=8, directions=2, cotangents=1)
    assert report.right
    assert {each.name for each in report.arguments} >= {"x"} or name == "springs"


@cuda.jit
def weighted(x, rate, y):
    """Overwrites y, reads a number and neighbours."""
    i = cuda.grid(1)
    if i < x.size:
        y[i] = rate * x[i] * x[(i + 1) % x.size] + 0.5 * y[i]


POINT = np.array([0.5, 1.5, -2.0]), 0.75, np.array([1.0, 2.0, 3.0])


def test_both_modes_and_numbers():
    report = gradcheck(irad.cuda.grad(weighted)[1, 4], *POINT, modes=("autodiff", "jvp"), points=2)
    assert report.right
    assert [each.name for each in report.arguments] == ["x", "rate", "y"]
    assert all(each.method == "finite differences" for each in report.arguments)


def test_single_precision_and_chosen_arguments():
    x, _, y = POINT
    given = x.astype(np.float32), np.float32(0.75), y.astype(np.float32)
    report = gradcheck(irad.cuda.grad(weighted)[1, 4], *given, argnames=("x", "y"), domain={0: (-3.0, 3.0)})
    assert report.right
    assert [each.name for each in report.arguments] == ["x", "y"]


@cuda.jit(device=True)
def cubed(t):
    return t * t * t


irad.rules.easy_rule(cubed, lambda t: 2.0 * t * t)


@cuda.jit
def wrong(x, y):
    i = cuda.grid(1)
    y[i] = cubed(x[i])


@pytest.mark.parametrize("mode", ["autodiff", "jvp"])
def test_a_wrong_rule_is_found(mode: str):
    with pytest.raises(GradcheckError, match="wrong"):
        gradcheck(irad.cuda.grad(wrong)[1, 2], np.array([0.5, 1.5]), np.zeros(2), modes=(mode,))


@cuda.jit
def undefined(x, y):
    i = cuda.grid(1)
    y[i] = math.log(x[i])


def test_where_there_is_no_derivative():
    report = gradcheck(irad.cuda.grad(undefined)[1, 2], np.array([-0.5, 1.5]), np.zeros(2), raises=False)
    assert report.verdict.value == "undecided"


def test_what_does_not_fit_is_refused():
    launch = irad.cuda.grad(weighted)[1, 4]
    with pytest.raises(SignatureError, match="'vjp'"):
        gradcheck(launch, *POINT, modes=("vjp",))
    with pytest.raises(SignatureError, match="no configuration of a launch"):
        gradcheck(weighted, *POINT)
    with pytest.raises(SignatureError, match="share memory"):
        gradcheck(launch, POINT[0], 1.0, POINT[0])
