"""Facts of reports against reality: hand-made expectations, and what the memory of a derivative really takes."""

from __future__ import annotations

import ctypes
from pathlib import Path

import numba
import numpy as np
import pytest

import irad
from irad.api.vjp import augmented_of
from irad.report.collect import Collector
from irad.report.inspection import Inspection
from irad.report.model import FunctionReport, LineFacts, Storage, ValueFacts
from irad.report.subject import subject_of
from irad.report.tape_size import terms
from irad.runtime_layouts import STATE
from tests.report.subjects import (
    TYPES,
    energy,
    helper,
    inspected,
    line_of,
    power,
    scaled,
    smooth,
    triangle,
    until,
)

ARRAY = numba.float64[::1]
HEADER = 256  # bytes of an arena before the first allocation


def facts(function, text: str, of=None) -> LineFacts:
    """Of the line with some text, of the function or of one that it calls."""
    number = line_of(of or function, text)
    return next(line for line in inspected(function).report.lines if line.line == number)


def value(function: FunctionReport, **wanted: object) -> ValueFacts:
    """The one value with some facts."""
    found = [v for v in function.values if all(getattr(v, name) == fact for name, fact in wanted.items())]
    assert len(found) == 1, found
    return found[0]


@pytest.mark.parametrize(
    ("text", "active", "constant"),
    [
        ("def energy", ("w", "x"), ("n",)),
        ("for i in range(x.size)", ("x",), ("i",)),
        ("total +=", ("total", "w", "x"), ("i",)),
        ("np.zeros", ("y",), ("n",)),
        ("helper(w + i)", ("w", "y"), ("i",)),
        ("float(n)", (), ("n", "scale")),
        ("return total", ("total", "y"), ("scale",)),
    ],
)
def test_variables_of_lines(text, active, constant):
    line = facts(energy, text)
    assert (line.active, line.constant) == (active, constant)


def test_what_is_known_of_a_line_of_an_inlined_function():
    line = facts(energy, "np.sin", of=helper)
    assert (line.active, line.rules, line.saved_per_iteration) == (("a",), ("sin",), 8)


def test_an_inlined_function_called_with_a_constant():
    @irad.jit
    def square(a):
        return a * a

    @irad.jit
    def f(x, n):
        return x * square(float(n))

    report = irad.inspect(f, 2.0, 3).report
    [line] = [line for line in report.lines if line.text.strip() == "return a * a"]
    assert (line.active, line.constant) == ((), ("a",))


def test_what_is_differentiated_decides_what_is_active():
    report = irad.inspect(energy, *TYPES[energy], argnums=1).report
    [line] = [line for line in report.lines if "total +=" in line.text]
    assert "x" in line.constant
    assert "w" in line.active
    [line] = [line for line in report.lines if "def energy" in line.text]
    assert line.active == ("w",)


def test_a_variable_that_reaches_no_output_is_constant():
    @irad.jit
    def f(x):
        unused = np.exp(x)
        flag = float(int(unused > 2.0))
        return flag * x

    report = irad.inspect(f, 2.0).report
    lines = {line.text.strip().partition(" ")[0]: line for line in report.lines}
    assert "unused" in lines["unused"].constant
    assert "flag" in lines["return"].constant
    assert lines["return"].active == ("x",)


def test_bytes_of_lines():
    assert facts(energy, "np.exp").saved_per_iteration == 8  # the exponential; x[i] is loaded again
    assert facts(energy, "return total").saved_per_call == 0
    report = inspected(energy).report
    loops = sum(term.bytes for term in terms(report) if term.bytes is not None and term.loops)
    assert sum(line.saved_per_iteration for line in report.lines) == loops


def test_single_precision_takes_half():
    @numba.njit
    def f(out, x):
        for i in range(x.size):
            out[i] = 2.0 * np.exp(x[i])

    x = numba.float32[::1]
    report = irad.inspect(f, x, x).report
    [term] = [term for term in terms(report) if term.loops]
    assert term.bytes == 4


def test_the_plan_save_all_saves_more():
    default = inspected(energy).report.functions[0]
    everything = irad.inspect(energy, *TYPES[energy], options=irad.Options(plan="save_all")).report
    assert len(everything.functions[0].tape) > len(default.tape)
    assert "save_all" in everything.options
    whys = {e.why for e in everything.functions[0].tape if e.value and e.storage is not Storage.KEPT}
    assert all("the plan is save_all" in why or "is found by it" in why for why in whys)


def test_tape_entries():
    [function] = inspected(energy).report.functions
    exp = value(function, rule="exp")
    [entry] = [entry for entry in function.tape if entry.value == exp.name]
    assert exp.is_saved
    assert exp.is_active
    assert (entry.bytes, entry.storage, entry.type) == (8, Storage.SLAB, "double")
    assert entry.loops == (line_of(energy, "range(x.size)"),)
    assert entry.place is not None
    assert entry.place.line == line_of(energy, "np.exp")
    assert [len(entry.loops) for entry in function.tape] == sorted((len(e.loops) for e in function.tape), reverse=True)


def test_loops_of_tape_entries_outermost_first():
    inner, outer = line_of(triangle, "range(i)"), line_of(triangle, "range(x.size)")
    found = {term.loops: term.bytes for term in terms(inspected(triangle).report) if term.loops}
    assert found == {(outer,): 9, (outer, inner): 8}


def test_origins_of_rules():
    [function] = inspected(energy).report.functions
    origin = value(function, rule="exp").rule_origin
    assert origin is not None
    text = Path(origin.file).read_text().splitlines()[origin.line - 1]
    assert text.strip().startswith('elementwise("exp"')
    decref = next(v for v in function.values if v.rule is not None and v.rule.startswith("NRT_decref"))
    assert decref.rule_origin is not None
    assert '"NRT_decref"' in Path(decref.rule_origin.file).read_text().splitlines()[decref.rule_origin.line - 1]


def test_origin_of_a_users_rule():
    @irad.jit
    def special(x):
        return np.floor(x) + x

    irad.rules.easy_rule(special, lambda x: 1.0)

    @irad.jit
    def f(x):
        return special(x) * x

    try:
        report = irad.inspect(f, 2.0).report
    finally:
        irad.rules.remove(special)
    call = next(v for function in report.functions for v in function.values if v.rule and "special" in v.rule)
    assert call.rule_origin is not None
    assert call.rule_origin.file == __file__


def test_values_name_their_memory():
    [function] = inspected(energy).report.functions
    load = next(v for v in function.values if v.operation == "load from argument x")
    assert load.memory == ("its memory: not overwritten before the reverse sweep reads it",)
    [shadowed] = [v for v in function.values if v.name == "%arg.x.4"]
    assert "may point to argument x" in shadowed.memory
    stored = next(v for v in function.values if v.operation.startswith("store to memory of line"))
    assert stored.operation == f"store to memory of line {line_of(energy, 'np.zeros')}"


def test_parallel_loops():
    """Their bodies are functions of their own, with the lines of the user."""
    report = inspected(smooth).report
    names = [function.name for function in report.functions]
    assert names[:3] == [
        "smooth",
        *(f"parallel loop of line {line_of(smooth, text)}" for text in ("np.zeros", "prange")),
    ]
    line = facts(smooth, "np.exp")
    assert (line.active, line.rules) == (("out", "w", "x"), ("exp",))
    assert line.saved_per_iteration >= 8
    assert facts(smooth, "np.zeros").active == ("out", "x")
    lines = {line.line for line in report.lines}
    entries = [entry for function in report.functions for entry in function.tape]
    assert {
        entry.place.line for entry in entries if entry.place is not None and "subjects" in entry.place.file
    } <= lines
    assert {line for entry in entries for line in entry.loops} <= lines | {0}


# ---------------------------------------------------------------------------------------- what is really allocated


def arena_bytes(function, *args) -> int:
    """Bytes that the forward sweep of `irad.vjp` leaves in the arena; all in its first chunk."""
    _, pullback = irad.vjp(function, *args)
    state, _ = pullback._tape.saved()
    address = int(state[: STATE.offset("arena") + 8].view("u8")[-1])
    top = ctypes.c_uint64.from_address(address).value
    assert HEADER <= top - address < 60_000
    return top - address - HEADER


def vjp_report(function) -> Inspection:
    """A report on what `irad.vjp` does, which lets the arguments change between the sweeps."""
    return Inspection(Collector(subject_of(augmented_of(function, None), TYPES[function])))


@pytest.mark.parametrize(("few", "many"), [(8, 24), (16, 128)])
@pytest.mark.parametrize("function", [energy, scaled])
def test_a_loop_takes_the_bytes_that_are_reported(function, few, many):
    [report] = vjp_report(function).report.functions
    x = np.ones(1)
    more = (2.0, 0) if function is energy else (0.5,)
    loop = sum(entry.bytes for entry in report.tape if entry.bytes is not None and entry.loops == first_loop(report))
    kept = [entry for entry in report.tape if entry.storage is Storage.KEPT]
    shadows = 8 * len(kept) * (function is scaled)  # that of the result has its size
    used = [arena_bytes(function, np.resize(x, n), *more) for n in (few, many)]
    assert used[1] - used[0] == (loop + shadows) * (many - few)


def first_loop(report: FunctionReport) -> tuple[int, ...]:
    """The first of the loops in the source that save something."""
    return min(entry.loops for entry in report.tape if entry.loops)


def in_loops(report: FunctionReport, depth: int) -> int:
    """Bytes in an iteration of all loops of a depth."""
    return sum(entry.bytes for entry in report.tape if entry.bytes is not None and len(entry.loops) == depth)


def test_shadows_of_arrays_that_the_function_makes():
    [shadow] = [e for e in vjp_report(scaled).report.functions[0].tape if e.storage is Storage.KEPT]
    assert shadow.place is not None
    assert (shadow.place.line, shadow.loops, shadow.bytes) == (line_of(scaled, "np.exp"), (), None)
    [known] = [e for e in inspected(energy).report.functions[0].tape if e.storage is Storage.KEPT]
    assert known.place is not None
    assert known.place.line == line_of(energy, "np.zeros")
    assert "as needed   kept" in inspected(energy).tape
    [measured] = [e for e in irad.inspect(energy, np.ones(3), 2.0, 50).report.functions[0].tape if e.bytes is None]
    assert 400 <= measured.total < 500  # 50 cotangents, and what Numba keeps beside an array


def test_records_take_the_bytes_that_are_reported():
    [report] = vjp_report(until).report.functions
    assert {entry.storage for entry in report.tape if entry.loops} == {Storage.RECORD}
    size = in_loops(report, 1)
    taken = -(-size // 16) * 16 if size < 64 else -(-size // 64) * 64  # records begin at such multiples

    def trips(x, limit):
        count = 0
        while x < limit:
            x = np.exp(x) * np.sin(x) + 2.0
            count += 1
        return count

    points = [(0.0, 0.0), (0.5, 2.1), (0.5, 8.0)]
    counts = [trips(*point) for point in points]
    assert len(set(counts)) > 1
    used = [arena_bytes(until, *point) for point in points]
    assert [u - used[0] for u in used] == [taken * (count - counts[0]) for count in counts]


def test_nested_loops_take_the_bytes_that_are_reported():
    [report] = vjp_report(triangle).report.functions
    n = 16
    expected = in_loops(report, 1) * n + sum(in_loops(report, 2) * i for i in range(n))
    padding = 64 * (n + 1)  # each slab begins at a multiple of 64
    assert expected <= arena_bytes(triangle, np.linspace(0, 1, n)) <= expected + padding


def test_the_frame_of_a_callee_is_what_is_reported():
    entry, callee = (term.bytes for term in sorted(terms(vjp_report(power).report), key=lambda term: term.function))
    used = [arena_bytes(power, 0.5, n) for n in (3, 7)]
    assert used[1] - used[0] == callee * 4
    assert entry % 64 == 0
