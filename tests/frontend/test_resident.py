"""Support functions are compiled with the first code that calls them, and work in whatever order that is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from irad.backend.runtime.support import support
from irad.frontend import resident

ALL = sorted(support().functions)
INLINED = {name for name in ALL if support().functions[name].is_inlined}

_IN_STEPS = """
import ctypes, sys
import numba, numpy as np, irad
from irad.frontend import resident

def loaded(*kinds):
    return sorted(name for name in resident._LOADED if name.split(".")[1].startswith(kinds))

@numba.njit
def square(x):
    return x * x

@numba.njit
def chain(x, n):
    for _ in range(n):
        x = np.sin(x)
    return x

@numba.njit
def summed(x, n):
    items = numba.typed.List.empty_list(numba.float64)
    for i in range(n):
        items.append(x * i)
    total = 0.0
    for item in items:
        total += item * item
    return total

assert loaded("") == [], loaded("")
assert irad.grad(square)(3.0) == 6.0
assert loaded("list", "dict", "lanes_open", "partial", "add", "copy", "move", "check", "tape") == []
step = 1e-6
difference = (chain(0.5 + step, 50) - chain(0.5 - step, 50)) / (2 * step)
assert abs(irad.grad(chain)(0.5, 50) - difference) < 1e-8
assert "irad.arena_grow" in resident._LOADED
assert loaded("list", "dict") == []
assert abs(irad.grad(summed)(2.0, 4) - 2 * 2.0 * 14) < 1e-12
assert loaded("list") and loaded("dict") == []
before = dict(resident._LOADED)
assert irad.grad(square)(4.0) == 8.0 and resident._LOADED == before
print("right")
"""

_ONE_BY_ONE = """
import random, sys
from irad.frontend import resident
names = sys.argv[2:]
random.Random(int(sys.argv[1])).shuffle(names)
for name in names:
    assert resident.address_of(name), name
assert len({resident.address_of(name) for name in names}) == len(names)
print("right")
"""


def run(script: str, *arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "right\n", done.stderr


def test_what_is_not_called_is_not_compiled():
    run(_IN_STEPS)


@pytest.mark.parametrize("seed", ["1", "2"])
def test_each_function_can_be_the_first_to_be_called(seed: str):
    messages = "irad.mpi"  # they need a library of MPI: tests/mpi
    run(_ONE_BY_ONE, seed, *(name for name in ALL if name not in INLINED and not name.startswith(messages)))


@pytest.mark.parametrize("name", ALL)
def test_callers_see_what_they_need(name: str):
    text = resident.inline_text([name])
    module = llvm.parse_assembly(text)  # LLVM refuses a call of what is neither declared nor defined
    module.verify()
    defined = {function.name for function in module.functions if not function.is_declaration}
    assert (name in defined) == (name in INLINED)
    assert defined <= INLINED


def test_names_in_text():
    text = "call ptr @irad.arena_open()\n  call void @irad.unknown()\n  call void @other.irad.arena_close(ptr @f.irad0)"
    assert resident.named_in(text) == {"irad.arena_open"}


def test_there_is_support_of_both_kinds():
    assert {"irad.arena_alloc", "irad.stop.f64"} <= INLINED
    assert {"irad.arena_grow", "irad.list_grow"} <= set(ALL) - INLINED
