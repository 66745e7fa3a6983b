"""The derivatives of all test kernels on a GPU, against those of the executor; and the way there, by the stand-in."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import cuda

import irad.cuda
from tests.cuda.case import Case
from tests.cuda.host import fake_gpu
from tests.cuda.host.fake_gpu import Foreign
from tests.cuda.host.launching import Place, directions, forward, reverse, tolerance_of
from tests.cuda.kernels import CASES, KERNELS
from tests.cuda.ptx.tools import needs_libdevice

GPU = Place(cuda.to_device, lambda array: array.copy_to_host())
STAND_IN = Place(Foreign, lambda foreign: foreign.array)


def agrees(case: Case, place: Place) -> None:
    """Both modes give what they give on the executor; the arguments are as the reference leaves them."""
    tangents, cotangents = directions(case, 1), directions(case, 2)
    with irad.cuda.executor():
        _, gradients = reverse(case, cotangents)
        _, results = forward(case, tangents)
    arguments, found = reverse(case, cotangents, place)
    case.check(arguments)
    _same(case, found, gradients)
    arguments, found = forward(case, tangents, place)
    case.check(arguments)
    _same(case, found, results)


def _same(case: Case, found: dict[int, Any], wanted: dict[int, Any]) -> None:
    for position, each in wanted.items():
        tolerance = 10.0 * tolerance_of(case) * (1.0 + np.max(np.abs(each), initial=0.0))
        np.testing.assert_allclose(found[position], each, rtol=0, atol=tolerance)


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES, ids=list(KERNELS))
def test_on_a_gpu(case: Case):
    if not cuda.is_available():
        pytest.skip("there is no GPU")
    agrees(case, GPU)


@needs_libdevice
@pytest.mark.parametrize("name", ["block_reduction", "tridiagonal", "monte_carlo", "stencil"])
def test_the_way_there(name: str, monkeypatch: pytest.MonkeyPatch):
    """With shared memory, a tape, records and numbers: compiled to PTX, launched by the stand-in."""
    library = fake_gpu.install(monkeypatch)
    agrees(KERNELS[name], STAND_IN)
    assert library.calls.count("cuLaunchKernel") >= 2
