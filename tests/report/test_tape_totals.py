"""Inspector, report of the tape and generated code agree about every byte, on functions of all kinds.

The bytes that generated code asks of the arena are counted independently: in the derivative that is *not* metered, by
two functions that stand in for the arena's in the text of its augmented primals.
"""

from __future__ import annotations

import ctypes
import dataclasses
import importlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
import pytest

import irad
from irad.data.copies import copied
from irad.frontend import derivation
from irad.report.tape_size import tape_total
from tests.report.tape_programs import CASES

PROGRAMS = {
    "test_control_flow": [
        "branch", "loop_over_range", "loop_over_elements-1", "zip_loop", "stepped_range", "triangular",
        "triangular_product", "ragged", "nested", "three_deep", "while_loop", "newton", "break_on_sum", "while_true",
        "early_return", "return_from_nested", "several_exits", "collatz", "bisection", "state_machine", "long_loop",
    ],
    "test_recursion": 3,
    "test_calls": 3,
    "test_array_functions": 4,
    "test_arrays": 3,
    "test_linear_algebra": 3,
    "test_typed_lists": 3,
    "test_parallel": ["captured_scalar", "in_place", "two_dimensions"],
    "test_mutation": 2,
}  # fmt: skip
"""Of files of tests/programs the cases by name, or how many of the first functions."""

ALLOCATOR = re.compile(r"@irad\.arena_alloc(_product)?\(")
DEFINITION = re.compile(r"^define [^\n]*?@[^(]*\.augmented[^(]*\(.*?^}\n", re.M | re.S)
COUNTERS = """
define internal ptr @counted.alloc(ptr %arena, i64 %size) {{
  %before = atomicrmw add ptr inttoptr (i64 {word} to ptr), i64 %size monotonic
  %result = call ptr @irad.arena_alloc(ptr %arena, i64 %size)
  ret ptr %result
}}
define internal ptr @counted.alloc_product(ptr %arena, i64 %count, i64 %size) {{
  %bytes = mul i64 %count, %size
  %before = atomicrmw add ptr inttoptr (i64 {word} to ptr), i64 %bytes monotonic
  %result = call ptr @irad.arena_alloc_product(ptr %arena, i64 %count, i64 %size)
  ret ptr %result
}}
"""

DECLARATIONS = {
    "irad.arena_alloc": "declare ptr @irad.arena_alloc(ptr, i64)",
    "irad.arena_alloc_product": "declare ptr @irad.arena_alloc_product(ptr, i64, i64)",
}


def cases() -> Iterator[Any]:
    for file, wanted in PROGRAMS.items():
        module = importlib.import_module(f"tests.programs.{file}")
        names: dict[str, Any] = {}
        for case in module.PROGRAMS:
            names[case.name] = case
        first = [name for name in names if "-" not in name]
        for name in wanted if isinstance(wanted, list) else first[:wanted]:
            yield pytest.param(names[name], id=f"{file.removeprefix('test_')}-{name}")
    for each in CASES:
        yield pytest.param(each, id=f"own-{each.name}")


@contextmanager
def asked_of_the_arena(monkeypatch: pytest.MonkeyPatch) -> Iterator[ctypes.c_int64]:
    """Counts what augmented primals that are made in the meantime ask for, the frame of the entry included."""
    word = ctypes.c_int64(0)
    derive = derivation.derive

    def counting(*args: Any, **options: Any) -> Any:
        made = derive(*args, **options)
        text = DEFINITION.sub(lambda match: ALLOCATOR.sub(r"@counted.alloc\1(", match[0]), made.text)
        assert "tape_alloc" not in text
        word.value += made.frame_size
        missing = [line for name, line in DECLARATIONS.items() if not re.search(rf"^declare .*@{name}\(", text, re.M)]
        return dataclasses.replace(made, text="\n".join([text, *missing, COUNTERS.format(word=ctypes.addressof(word))]))

    with monkeypatch.context() as patch:
        patch.setattr(derivation, "derive", counting)
        yield word


def fresh(function: Any) -> Any:
    """The same function, of which nothing has been compiled."""
    return numba.njit(**{k: v for k, v in function.targetoptions.items() if k != "nopython"})(function.py_func)


def argnums_of(function: Any, args: tuple[Any, ...]) -> tuple[int, ...]:
    return tuple(position for position, _ in irad.inspect(function, *args)._collector.subject.task.roles)


@pytest.mark.parametrize("case", list(cases()))
def test_the_same_bytes_everywhere(case: Any, monkeypatch: pytest.MonkeyPatch):
    function = fresh(case.function)
    inspection = irad.inspect(function, *copied(case.args))
    report = inspection.report
    assert report.note == ""
    kind = inspection._collector.subject.compiled()[0][0]
    argnums = argnums_of(function, copied(case.args))
    by_vjp = kind == "vjp"
    told = irad.tape_report(fresh(case.function), *copied(case.args), argnums=None if by_vjp else argnums)
    assert tape_total(report) == told.total
    with asked_of_the_arena(monkeypatch) as counted:
        other = fresh(case.function)
        if by_vjp:
            irad.vjp(other, *copied(case.args))
        else:
            irad.grad(other, argnums)(*copied(case.args))
    assert told.total == counted.value
    # line by line
    by_line: dict[int, int] = {}
    for use in told.uses:
        if use.location is not None and use.location.file == report.place.file:
            by_line[use.location.line] = by_line.get(use.location.line, 0) + use.bytes
    lines = {line.line: line.saved for line in report.lines if line.saved}
    assert lines == {line: size for line, size in by_line.items() if line in {each.line for each in report.lines}}
    # nothing on a line that is not the function's, and loops are where the source has them
    assert set(by_line) <= {line.line for line in report.lines}
    sources = {line.line: line.text for line in report.lines}
    for entry in (entry for each in report.functions for entry in each.tape):
        assert (entry.total or 0) == (entry.bytes or 1) * (entry.slots or 0) or entry.bytes is None
        for line in entry.loops:
            assert line in sources


@irad.jit
def nest(x, n):
    total = 0.0
    for i in range(x.size):
        for j in range(n):
            total += np.exp(x[i] * j)
        y = np.sin(x) * x
        total += y.sum()
    k = 0
    while k < n:
        total = np.sin(total)
        k += 1
    return total + np.sum(np.array([np.exp(value) * value for value in x]))


def test_loops_have_the_lines_of_their_statements():
    [function] = irad.inspect(nest, np.ones(3), 4).report.functions
    lines = {text.strip(): number for number, text in enumerate_source(nest)}
    outer, inner, loop = (lines[text] for text in ("for i in range(x.size):", "for j in range(n):", "while k < n:"))
    array = lines["y = np.sin(x) * x"]
    comprehension = next(n for text, n in lines.items() if "np.array" in text)
    found = {entry.loops for entry in function.tape if entry.loops}
    assert {(outer,), (outer, inner), (outer, array), (loop,), (comprehension,)} <= found
    exp = next(entry for entry in function.tape if entry.loops == (outer, inner) and entry.name.startswith("exp"))
    assert (exp.slots, exp.bytes, exp.total) == (12, 8, 96)


def enumerate_source(function: Any) -> Iterator[tuple[int, str]]:
    import inspect

    lines, first = inspect.getsourcelines(function.py_func)
    yield from enumerate(lines, first)
