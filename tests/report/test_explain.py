from __future__ import annotations

import json

import pytest

import irad
from irad.errors import SignatureError
from irad.report.model import FunctionReport, LineFacts, Report, TapeEntry, ValueFacts
from tests.report.subjects import TYPES, energy, helper, inspected, line_of, power, until

EXP = line_of(energy, "np.exp")


def explained(question: str | int, function=energy) -> list[str]:
    return inspected(function).explain(question).split("\n")


def test_a_line():
    head, *lines = explained(EXP)
    assert head == f"subjects.py:{EXP}  total += np.exp(x[i]) * x[i] * w"
    text = "\n".join(lines)
    assert "active: total, w, x; constant: i" in text
    assert "saves 8 bytes per iteration" in text
    assert "rule: exp, written in elementwise.py:" in text
    assert "saved: 8 bytes per iteration, 1 loop deep (cost 128): exp, which costs more than a load" in text
    assert "loaded again, its memory stays as it is; saving it: 8 bytes" in text


def test_a_line_by_file_and_number():
    assert explained(f"subjects.py:{EXP}") == explained(EXP)


def test_a_line_without_values():
    text = "\n".join(explained(line_of(energy, "total = 0.0")))
    assert "active: total" in text
    assert "saves nothing" in text
    assert "most is saved by line" in text


@pytest.mark.parametrize("spelled", ["{}", "%{}"])
def test_a_value(spelled: str):
    [function] = inspected(energy).report.functions
    exp = next(v for v in function.values if v.rule == "exp")
    text = "\n".join(explained(spelled.format(exp.name.lstrip("%"))))
    assert text.startswith(f"{exp.name}: double, call of exp at subjects.py:{EXP}")
    assert f"depends on {exp.operands[0]}, load from argument x at subjects.py:{EXP}" in text
    assert "and so reaches store to the memory of the result" in text
    assert "on the tape: 8 bytes in a slab, per iteration of the loop of line" in text


def test_an_inlined_value_names_both_places():
    [function] = inspected(energy).report.functions
    sine = next(v for v in function.values if v.rule == "sin")
    text = "\n".join(explained(sine.name))
    assert f"at subjects.py:{line_of(helper, 'np.sin')}, inlined at subjects.py:{line_of(energy, 'helper(w')}" in text


def test_a_variable():
    text = "\n".join(explained("total"))
    assert text.startswith("total: a variable of energy")
    assert f"active on line {line_of(energy, 'total = 0')}, {EXP}, {line_of(energy, 'return')}" in text
    assert ": double, sum at" in text
    constant = "\n".join(explained("scale"))
    assert f"constant on line {line_of(energy, 'float(n)')}, {line_of(energy, 'return')}" in constant


def test_an_argument():
    text = "\n".join(explained("x"))
    assert "argument x" in text
    assert "its shadow: saved: 8 bytes per call" in text


def test_the_tape():
    lines = explained("tape")
    heavy = [line for line in lines if "makes the tape large" in line]
    assert [line.split()[1] for line in heavy] == [str(line_of(helper, "np.sin")), str(EXP)]
    only = explained("tape", until)
    assert only[0].startswith(f"line {line_of(until, 'np.exp')} makes the tape large: ")


def test_values_of_both_variants_of_a_recursive_function():
    functions = inspected(power).report.functions
    sine = next(v for v in functions[0].values if v.rule == "sin")
    assert len("\n".join(explained(sine.name, power)).split("\n\n")) == 2


@pytest.mark.parametrize(
    ("question", "problem"),
    [(1, "line 1 is not in energy"), ("nothing", "'nothing' is not a line, value or variable"), ("%.9999", "'%.9999'")],
)
def test_unknown_questions(question, problem):
    with pytest.raises(SignatureError, match=problem) as caught:
        inspected(energy).explain(question)
    assert caught.value.location is not None
    assert "ask for" in caught.value.remedy


def test_a_variable_that_is_a_value_only():
    """A value is found by its name in LLVM even where a variable has none left."""
    assert "argument n" in "\n".join(explained("%arg.n"))


# ------------------------------------------------------------------------------------------------------------- JSON


def test_json_holds_every_fact():
    found = json.loads(inspected(energy).json("tape", "numba-ir"))
    report = inspected(energy).report
    assert found["format"] == 2
    assert set(found) == {"format", *Report.__dataclass_fields__}
    assert set(found["stages"]) == {"tape", "numba-ir"}
    [function] = found["functions"]
    assert set(function) == set(FunctionReport.__dataclass_fields__)
    assert set(function["values"][0]) == set(ValueFacts.__dataclass_fields__)
    assert set(function["tape"][0]) == set(TapeEntry.__dataclass_fields__)
    assert set(found["lines"][0]) == set(LineFacts.__dataclass_fields__)
    assert [line["line"] for line in found["lines"]] == [line.line for line in report.lines]
    [exp] = [value for value in function["values"] if value["rule"] == "exp"]
    assert exp["places"][0]["line"] == EXP
    assert function["tape"][0]["storage"] == "slab"
    assert found["stages"]["tape"]["language"] == "text"


def test_json_of_no_stage_has_none():
    assert json.loads(inspected(energy).json())["stages"] == {}


def test_answers_do_not_depend_on_what_was_asked_before():
    again = irad.inspect(energy, *TYPES[energy])
    again.stage("python")
    assert again.explain(EXP) == inspected(energy).explain(EXP)
