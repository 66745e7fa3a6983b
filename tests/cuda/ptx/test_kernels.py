"""The test kernels and their derivatives as PTX and as machine code."""

from __future__ import annotations

import re

import numpy as np
import pytest

from irad.backend.cuda.kernel import KernelModule
from irad.backend.cuda.limits import bounds_of_launch
from irad.backend.cuda.ptx import LaunchBounds, compile_ptx
from irad.backend.cuda.toolkit import Assembly, assemble
from irad.passes.mode import FORWARD_MODE
from tests.cuda.case import Case
from tests.cuda.derivatives import derivative_of, program_of
from tests.cuda.kernels import CASES, KERNELS
from tests.cuda.ptx.tools import each_architecture, needs_libdevice, needs_ptxas

pytestmark = [needs_libdevice, needs_ptxas]
each_case = pytest.mark.parametrize("case", CASES, ids=list(KERNELS))


def assembled(module: KernelModule, arch: str = "sm_90", bounds: LaunchBounds | None = None) -> Assembly:
    ptx = compile_ptx(module, arch, bounds=bounds)
    assert not WIDE.search(ptx), "shadows are aligned as their elements, no better"
    return assemble(ptx, arch)


WIDE = re.compile(r"(?:ld|st|atom|red)\.(?!param|global\.nc)\S*\.v[24]")
"""Accesses to several elements at once, but for those to tables of libdevice, which are read only."""
SLACK = 4  # releases of ptxas differ


def launched(case: Case, module: KernelModule) -> LaunchBounds:
    """What a launch of the test's blocks has a kernel compiled for."""
    return LaunchBounds(bounds_of_launch(module, int(np.prod(case.block))))


@each_architecture
@each_case
def test_a_kernel_assembles_for_each_gpu(case: Case, arch: str):
    module = program_of(case).module
    done = assembled(module, arch, launched(case, module))
    assert done.spill_stores == done.spill_loads == 0


@each_architecture
@each_case
def test_a_derivative_assembles_without_spills(case: Case, arch: str):
    module = derivative_of(case).module
    for bounds in {launched(case, module), LaunchBounds()}:
        done = assembled(module, arch, bounds)
        assert done.spill_stores == done.spill_loads == 0
    primal = assembled(program_of(case).module, arch)
    assert done.registers <= max(32, 2 * primal.registers) + SLACK, "up to 32 are for free"
    assert done.stack <= primal.stack + 32, "frames are in registers; 28 bytes are libdevice's, of large angles"


def test_products_and_sums_of_kernels_are_fused():
    module = program_of(KERNELS["nbody"]).module
    assert module.contract
    assert "fmul contract double" in module.text
    assert "fma.rn.f64" in compile_ptx(module)


@each_case
def test_tangents_assemble(case: Case):
    done = assembled(derivative_of(case, FORWARD_MODE).module)
    assert done.spill_stores == done.spill_loads == 0
