"""No derivative touches memory beyond what it allocated or was given: every block ends at a page without access.

One program of a few catalogues; all of them with ``IRAD_ROBUSTNESS=all``, which also puts guarded pages in front.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.robustness.guarded import ROOT, cases, modules

FULL = os.environ.get("IRAD_ROBUSTNESS") == "all"
SIDES = ("after", "before") if FULL else ("after",)
FEW = (
    "test_arrays",
    "test_control_flow",
    "test_linear_algebra",
    "test_parallel",
    "test_structures",
    "test_typed_lists",
)


def run(*arguments: str, side: str = "after") -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IRAD_GUARD": side}
    command = [sys.executable, "-X", "faulthandler", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=pipe, stderr=pipe, text=True)


def failures(names: list[str], side: str) -> Iterator[str]:
    """The cases that fail, with what they say; after one that ends its process the others go on in a new one."""
    rest = list(names)
    while rest:
        with run("-m", "tests.robustness.guarded", *rest, side=side) as process:
            begun = None
            assert process.stdout is not None
            for line in process.stdout:
                if not line.startswith(('{"begun"', '{"ended"')):  # printed by the program
                    continue
                entry = json.loads(line)
                begun = entry.get("begun")
                if begun is None:
                    rest.remove(entry["ended"])
                    if entry["outcome"]:
                        yield f"{entry['ended']}: {entry['outcome']}"
            assert process.stderr is not None
            errors = process.stderr.read()
        if begun is None:
            assert process.returncode == 0, errors
            return
        rest.remove(begun)
        yield f"{begun}: ended with {process.returncode}\n{errors}"


def chosen() -> list[str]:
    names = {module: [f"{module}:{case}" for case in cases(module)] for module in (modules() if FULL else FEW)}
    return [name for group in names.values() for name in (group if FULL else group[len(group) // 2 :][:1])]


@pytest.mark.parametrize("side", SIDES)
def test_programs_keep_to_their_memory(side: str):
    assert not list(failures(chosen(), side))


_OVERRUN = """
import ctypes, json, os
from tests.tools import guard
guard.install()
import numba, numpy as np
from irad.frontend import resident
from irad.frontend.numba.library import build_library

@numba.njit  # an unsigned index is not counted from the end
def beyond(x, i):
    return x[np.uint64(i)]

@numba.njit
def beyond_own(n, i):
    return np.zeros(n)[np.uint64(i)]

@numba.njit
def beyond_grown(n, i):
    values = [1.0]
    for _ in range(n - 1):
        values.append(2.0)
    return values[0] + np.array(values)[np.uint64(i)]

probe = '''
define double @probe(i64 %n, i64 %i) {
  %arena = call ptr @irad.arena_open()
  %bytes = mul i64 %n, 8
  %place = call ptr @irad.arena_alloc(ptr %arena, i64 %bytes)
  call void @llvm.memset.p0.i64(ptr %place, i8 0, i64 %bytes, i1 false)
  %element = getelementptr double, ptr %place, i64 %i
  %value = load volatile double, ptr %element
  call void @irad.arena_close(ptr %arena)
  ret double %value
}

define double @late(i64 %n, i64 %i) {
  %arena = call ptr @irad.arena_open()
  %bytes = mul i64 %n, 8
  %place = call ptr @irad.arena_alloc(ptr %arena, i64 %bytes)
  call void @irad.arena_close(ptr %arena)
  %element = getelementptr double, ptr %place, i64 %i
  %value = load volatile double, ptr %element
  ret double %value
}
'''
called = resident.named_in(probe)
resident.load(called)
library = build_library("probe", resident.inline_text(called) + probe, ())
def compiled(name):
    address = library.get_pointer_to_function(name)
    return ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int64, ctypes.c_int64)(address)

ACCESSES = {
    "argument": lambda i: beyond(np.ones(5), i),
    "array": lambda i: beyond_own(5, i),
    "list": lambda i: beyond_grown(5, i),
    "tape": lambda i: compiled("probe")(5, i),
    "freed tape": lambda i: compiled("late")(5, i),
}

def survives(access, i):
    child = os.fork()
    if child == 0:
        access(i)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0

for name, access in ACCESSES.items():
    if name != "freed tape":
        access(4)  # compiles
print(json.dumps({name: [survives(access, i) for i in (-1, 0, 4, 5)] for name, access in ACCESSES.items()}))
"""


@pytest.mark.parametrize(
    ("side", "alive"), [("after", [True, True, True, False]), ("before", [False, True, True, True])]
)
def test_what_is_guarded(side: str, alive: list[bool]):
    """Elements -1, 0, 4, 5 of five; of a freed tape none is alive."""
    with run("-c", _OVERRUN, side=side) as process:
        output, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    found = json.loads(output)
    assert found.pop("freed tape") == [False] * 4
    assert found == dict.fromkeys(found, alive)
