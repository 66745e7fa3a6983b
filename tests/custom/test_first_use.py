"""Names of irad that are met for the first time while Numba compiles a function that uses them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
import irad
from numba import njit

@njit
def f(x):
    return irad.stop_gradient(x) * x if irad.within_autodiff() else x * x
"""
PROGRAMS = {
    "differentiated first": ("print(irad.grad(f)(3.0), f(3.0))", "3.0 9.0"),
    "called first": ("print(f(3.0), irad.grad(f)(3.0))", "9.0 3.0"),
}


@pytest.mark.parametrize(("program", "printed"), PROGRAMS.values(), ids=PROGRAMS)
def test_first_use_inside_compiled_code(program: str, printed: str):
    done = subprocess.run(
        [sys.executable, "-c", HEAD + program], capture_output=True, text=True, cwd=Path(__file__).parents[2]
    )
    assert done.stderr == ""
    assert done.stdout.strip() == printed
