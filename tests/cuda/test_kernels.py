"""The catalogue of kernels itself, without compiling: by Numba's simulator of CUDA, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.cuda.kernels import CASES, KERNELS

# What Numba's simulator lacks: shuffles.
SIMULATED = sorted(set(KERNELS) - {"warp_reduction"})

PROGRAM = """
import sys
from numba import cuda
from tests.cuda.kernels import KERNELS
for name in sys.argv[1:]:
    case = KERNELS[name]
    arguments = case.fresh()
    cuda.jit(case.kernel)[case.grid, case.block, 0, case.shared](*arguments)
    case.check(arguments)
    print(name)
"""


def test_names_are_unique():
    assert len(CASES) == len(KERNELS) >= 14


@pytest.mark.slow
def test_kernels_do_what_their_references_do():
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, *SIMULATED]
    done = subprocess.run(
        command, env=os.environ | {"NUMBA_ENABLE_CUDASIM": "1"}, capture_output=True, text=True, timeout=300
    )
    assert done.stdout.split() == SIMULATED, done.stderr


@pytest.mark.parametrize("case", CASES, ids=list(KERNELS))
def test_a_reference_changes_only_outputs(case):
    before, after = case.fresh(), case.expected()
    case.check(after)
    with pytest.raises(AssertionError):
        case.check(before)
    assert set(case.outputs) < set(range(len(before)))
