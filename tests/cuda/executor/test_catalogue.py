"""Numba's kernels on the executor touch nothing but their arrays, in orders that are far from each other."""

from __future__ import annotations

import numpy as np
import pytest
from numba import cuda, types

import irad
from irad.backend.executor.kernel import load
from irad.backend.executor.launch import Extent
from irad.backend.executor.scheduler import REVERSED, STRIDED
from irad.errors import SourceLocation
from irad.frontend.cuda.program import flatten, load_kernel
from tests.cuda.case import Case
from tests.cuda.kernels import CASES, KERNELS


def three(sizes: int | tuple[int, ...]) -> tuple[int, int, int]:
    """Sizes along x, y, z."""
    x, y, z = (*((sizes,) if isinstance(sizes, int) else sizes), 1, 1)[:3]
    return x, y, z


@pytest.mark.parametrize("case", CASES, ids=list(KERNELS))
def test_kernels_stay_inside_of_their_arrays(case: Case):
    program = load_kernel(case.kernel, case.types())
    kernel = load(program.module, races=True)
    for schedule in (REVERSED, STRIDED):
        arguments = case.fresh()
        arrays = [each for each in arguments if isinstance(each, np.ndarray)]
        extents = [Extent(a.ctypes.data, a.nbytes, f"array {n}", a.itemsize) for n, a in enumerate(arrays)]
        flat = flatten(program.signature, arguments)
        report = kernel.run(
            three(case.grid), three(case.block), flat, dynamic_shared=case.shared, schedule=schedule, extents=extents
        )
        case.check(arguments)
        assert report.accesses is not None
        assert report.accesses.global_writes + report.accesses.global_atomics > 0


def racing(x, out):
    i = cuda.grid(1)
    add(out, i % 3, x[i])


@cuda.jit(device=True)
def add(out, i, value):
    out[i] += value


def test_messages_have_the_users_names():
    program = load_kernel(racing, (types.float64[::1], types.float64[::1]))
    x, out = np.ones(6), np.zeros(3)
    extents = [Extent(a.ctypes.data, a.nbytes, name, a.itemsize) for name, a in (("x", x), ("out", out))]
    with pytest.raises(irad.RaceError) as caught:
        load(program.module, races=True).run(
            (2, 1, 1), (3, 1, 1), flatten(program.signature, (x, out)), extents=extents
        )
    error = caught.value
    assert error.problem == "racing has a race on element 0 of out"
    assert error.location is not None
    assert (error.location.function, [place.function for place in error.callers]) == ("add", ["racing"])
    assert error.location.line == SourceLocation.of(add).line + 1
