"""The machine that code is made for is named in few places, and passed on from there."""

from __future__ import annotations

import ast
import platform
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from irad.frontend.numba.library import CPU

ROOT = Path(__file__).parents[2]
NUMBA_CPU = {"cpu_target", "CPUTarget", "CPUContext", "JITCPUCodegen", "target_override"}


def names_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.alias(name=name):
                yield name
            case ast.ImportFrom(module=str() as name):
                yield name


def modules(*folders: str) -> Iterator[Path]:
    return (path for folder in folders for path in sorted((ROOT / folder).rglob("*.py")))


def test_three_modules_name_the_cpu_target_of_numba():
    found = {path.relative_to(ROOT / "irad").as_posix() for path in modules("irad") if NUMBA_CPU & set(names_in(path))}
    assert found == {f"frontend/numba/{name}.py" for name in ("target", "private", "raw_target")}


def test_the_back_end_is_given_its_machine():
    imports = {path.name: set(names_in(path)) for path in modules("irad/backend")}
    assert not [name for name, found in imports.items() if any(each.startswith("irad.frontend") for each in found)]


def test_passes_and_rules_know_no_machine():
    named = {"triple", "layout", "toolchain"}
    owners = {"module"}  # `module.layout`; `memory_types.layout` is something else
    for path in modules("passes", "rules"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Attribute) and node.attr in named:
                assert ast.unparse(node.value).rpartition(".")[2] not in owners, f"{path}:{node.lineno}"


TEXT = """
define i64 @f(i64 %n) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %head ]
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %head, label %done
done:
  ret i64 %next
}
"""


def test_canonical_loops_change_nothing_else():
    again = CPU.canonical_loops(TEXT)
    assert "%next.lcssa = phi i64 [ %next, %head ]" in again
    assert CPU.canonical_loops(again) == again


def test_the_machine_of_the_cpu_is_that_of_the_process():
    assert CPU.machine().triple.split("-")[0] == llvm.get_process_triple().split("-")[0]


SHORT_LOOP = """
import llvmlite.binding as llvm
import pytest
import numba
from irad.backend.toolchain import vectors_of_derivatives

def compiled():
    @numba.njit(fastmath=True)
    def short(x, n):
        total = 0.0
        for i in range(min(n, 7)):
            total += x[i] * x[i]
        for i in range(x.size):
            total += x[i]
        return total
    short.compile("float64(float64[::1], int64)")
    (text,) = short.inspect_asm().values()
    return [line.split("#")[0] for line in text.splitlines() if line.startswith("\\tv")]

before = compiled()
with vectors_of_derivatives():
    meanwhile = compiled()
assert before
assert compiled() == before, "the options stay"
assert meanwhile != before, "they change nothing"
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="what LLVM does by default differs between machines")
def test_code_of_others_is_compiled_as_before_afterwards():
    subprocess.run([sys.executable, "-c", SHORT_LOOP], check=True)
