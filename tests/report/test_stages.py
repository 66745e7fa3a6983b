from __future__ import annotations

import re

import llvmlite.binding as llvm
import numba
import pytest

import irad
from irad.errors import NoRuleError, SignatureError, UnsupportedError
from irad.report.collect import ALL, EARLY, Collector
from irad.report.model import Report, Stage, StageText
from irad.report.shown.text import stage_text
from irad.report.subject import subject_of
from tests.report.subjects import TYPES, energy, fill, helper, inspected, line_of, power, refused, scaled, triangle

EXP, SIN = line_of(energy, "np.exp"), line_of(helper, "np.sin")


@pytest.fixture(scope="module")
def report() -> Report:
    return Collector(subject_of(energy, TYPES[energy])).report(ALL)


def lines_with(stage: StageText, pattern: str) -> set[int | None]:
    """The source lines of the lines of a stage that match."""
    found = [line.line for line in stage.lines if not line.is_noise and re.search(pattern, line.text)]
    assert found, pattern
    return set(found)


@pytest.mark.parametrize("stage", ALL)
def test_every_stage_has_lines_of_the_source(report: Report, stage: Stage):
    lines = [line for line in report.stages[stage].lines if not line.is_noise]
    assert len(lines) > 10 or stage is Stage.PYTHON
    assert {EXP, SIN} <= {line.line for line in lines}


@pytest.mark.parametrize(
    ("stage", "pattern", "line"),
    [
        (Stage.PYTHON, r"np\.exp", EXP),
        (Stage.NUMBA_IR, r"attr=exp", EXP),
        (Stage.LLVM, r"call .*@llvm\.exp", EXP),
        (Stage.PREPARED, r"call .*@llvm\.exp", EXP),
        (Stage.PREPARED, r"call .*@llvm\.sin", SIN),
        (Stage.ACTIVITY, r"rule: exp", EXP),
        (Stage.ACTIVITY, r"rule: sin", SIN),
        (Stage.PLAN, r"saved: .*: exp, which", EXP),
        (Stage.TAPE, r": exp, which", EXP),
        (Stage.ADJOINT, r"call .*@llvm\.exp", EXP),
        (Stage.OPTIMIZED, r"call .*@(llvm\.)?exp", EXP),
    ],
)
def test_lines_are_those_of_the_source(report: Report, stage: Stage, pattern: str, line: int):
    assert lines_with(report.stages[stage], pattern) == {line}


def test_both_sweeps_come_from_the_same_lines(report: Report):
    """The cosine of the reverse sweep belongs to the line with the sine."""
    assert lines_with(report.stages[Stage.ADJOINT], r"call .*@llvm\.cos") == {SIN}


@pytest.mark.parametrize("stage", [Stage.LLVM, Stage.PREPARED, Stage.ADJOINT, Stage.OPTIMIZED, Stage.ASM])
def test_noise_is_hidden(report: Report, stage: Stage):
    text = stage_text(report.stages[stage])
    for word in ("_ZN", "!dbg", "NRT_incref", "NRT_decref(", "attributes #", "cpython", "py_closure"):
        assert not re.search(rf"^(?!.*movabsq).*{re.escape(word)}", text, re.M), word
    assert "\n\n\n" not in text
    assert not text.startswith("\n")


def test_noise_that_is_shown_is_what_llvm_reads(report: Report):
    for stage in (Stage.LLVM, Stage.OPTIMIZED):
        text = stage_text(report.stages[stage], noise=True)
        llvm.parse_assembly(text).verify()
    assert "NRT_decref" in text
    assert "!dbg" in text


def test_the_optimised_text_is_that_of_the_compiled_derivative():
    subject = subject_of(energy, TYPES[energy])
    text = stage_text(Collector(subject).report((Stage.OPTIMIZED,)).stages[Stage.OPTIMIZED], noise=True)
    [(name, dispatcher, kinds)] = subject.compiled()
    assert name == "grad"
    assert text.rstrip() == dispatcher.inspect_llvm(kinds).rstrip()


def test_the_assembly_is_that_of_the_compiled_derivative(report: Report):
    """Source lines are found by adding debug information, which must not change the code."""
    [(_, dispatcher, kinds)] = subject_of(energy, TYPES[energy]).compiled()

    def instructions(text: str) -> list[str]:
        code = [line.split("#")[0].strip() for line in text.splitlines()]
        labels = re.compile(r"\.L(?:tmp|func_|BB)\w*:|\.|$")
        return [re.sub(r"\s+", " ", line) for line in code if not labels.match(line)]

    shown = stage_text(report.stages[Stage.ASM], noise=True)
    assert instructions(shown) == instructions(dispatcher.inspect_asm(kinds))


def test_assembly_belongs_to_lines(report: Report):
    asm = report.stages[Stage.ASM]
    shown = [line for line in asm.lines if not line.is_noise]
    assert {EXP, SIN} <= {line.line for line in shown if re.search(r"\bcall|\bvmul|\bmul", line.text)}
    assert all(line.line is None for line in shown if not line.text.startswith(" "))


def test_values_are_marked(report: Report):
    [line] = [line for line in report.stages[Stage.PREPARED].lines if "@llvm.exp" in line.text and "call" in line.text]
    assert line.value is not None
    assert line.text.startswith(f"  {line.value} = ")
    assert any(value.name == line.value for value in report.functions[0].values)


def test_numba_ir_is_typed_and_without_the_details_of_calls(report: Report):
    text = stage_text(report.stages[Stage.NUMBA_IR])
    assert "x = arg(0, name=x)  :: float64[::1]" in text
    assert "# helper" in text
    assert "vararg=" not in text
    assert "vararg=" in stage_text(report.stages[Stage.NUMBA_IR], noise=True)


@pytest.mark.parametrize("function", [triangle, power, scaled, fill])
def test_other_kinds_of_functions(function):
    """Nested loops, recursion, a result that is an array, one that is written to an argument."""
    report = Collector(subject_of(function, TYPES[function])).report(ALL)
    assert set(report.stages) == set(ALL)
    assert all(stage_text(stage).strip() for stage in report.stages.values())


def test_recursive_functions_have_a_node_for_each_variant():
    functions = inspected(power).report.functions
    assert [f.name for f in functions] == ["power", "power"]
    assert functions[0].calls == (1,)
    assert functions[1].calls == (1,)
    assert "with respect to x" in functions[1].variant


def test_vectorised_code_is_shown():
    @irad.jit
    def dot(x, y):
        total = 0.0
        for i in range(x.size):
            total += x[i] * y[i]
        return total

    x = numba.float64[::1]
    text = irad.inspect(dot, x, x).optimized
    assert re.search(r"<\d+ x double>", text)


@numba.njit
def object_mode(x):
    with numba.objmode(out="float64"):
        out = x * 2.0
    return out  # noqa: RET504


def test_a_function_with_a_block_in_object_mode_has_the_early_stages():
    """Numba keeps no types of it."""
    report = Collector(subject_of(object_mode, (1.0,))).report(EARLY)
    assert "numba_unpickle" in stage_text(report.stages[Stage.LLVM])
    assert stage_text(report.stages[Stage.NUMBA_IR]).startswith("# Numba keeps no types")


def test_a_refused_function_has_the_early_stages():
    collector = Collector(subject_of(refused, (1.0,)))
    report = collector.report(EARLY)
    assert "@significand" in stage_text(report.stages[Stage.PREPARED])
    assert report.functions == ()
    with pytest.raises(NoRuleError, match="significand"):
        collector.report((Stage.ACTIVITY,))


def test_there_is_no_ptx_of_a_function():
    with pytest.raises(UnsupportedError, match="a function for the CPU has no PTX") as caught:
        inspected(energy).stage("ptx")
    assert "stage asm" in caught.value.remedy


def test_an_unknown_stage():
    with pytest.raises(SignatureError, match="'machine' is not a stage") as caught:
        inspected(energy).stage("machine")
    assert "adjoint, optimized" in caught.value.remedy
