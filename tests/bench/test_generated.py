"""Drawn programs: C computes what Numba computes, and irad's derivatives are those of the complex step."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

import irad
from bench.cases import find
from bench.generated import __main__ as generated
from bench.generated.__main__ import changes, main, means
from bench.generated.c_text import c_text
from bench.generated.families import FAMILIES
from bench.generated.numba_text import counting_text, numba_text
from bench.generated.program import Program, compiled, program
from bench.generated.tree import Call, Num, Sum, Var, exp, square
from bench.generated.truth import error
from bench.generated.writer import Writer
from bench.harness import worker
from bench.harness.outcome import Outcome
from bench.harness.worker import TOLERANCE, Request
from bench.variants import irad_against, irad_gradient, largest_error, settings_of

SEEDS = {
    "stencil": (10, 12, 0, 5, 16, 17),
    "gather": (3, 19, 5, 11, 8, 4),
    "recurrence": (5, 9, 2, 16, 20, 0),
    "pairs": (2, 21, 7, 6, 11, 3),
    "integrator": (2, 16, 7, 17, 21, 1),
    "factorisation": (10, 1, 16, 0, 8, 22),
}
NAMES = [f"{family}/{seed}" for family, seeds in SEEDS.items() for seed in seeds]


def plain_value(drawn: Program, folder: Path) -> float:
    """The value of a program that gcc compiled as C, at the smallest arguments."""
    source, library = folder / "program.c", folder / "program.so"
    source.write_text(drawn.plain_c("small"))
    flags = ["-O1", "-ffp-contract=off", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(library), "-lm"], check=True)
    passed = []
    for position, arg in enumerate(drawn.arguments("small")):
        if isinstance(arg, np.ndarray) or position in drawn.argnums:
            passed.append(np.ctypeslib.as_ctypes(np.atleast_1d(arg)))
        else:
            passed.append(ctypes.c_double(arg) if isinstance(arg, float) else ctypes.c_long(arg))
    value = ctypes.c_double()
    ctypes.CDLL(str(library)).loss(*passed, ctypes.byref(value))
    return value.value


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
def test_c_computes_what_numba_computes(name: str, tmp_path: Path):
    drawn = program(name)
    # The order of all operations is the same; elementary functions may differ in the last place.
    assert plain_value(drawn, tmp_path) == pytest.approx(drawn.primal(*drawn.arguments("small")), rel=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives(name: str):
    drawn = program(name)
    args = drawn.arguments("small")
    _, gradients = found = irad_gradient(drawn.case())(*args)
    assert drawn.error(args, found) < 1e-11
    assert largest_error(found, drawn.oracle(*args)) < TOLERANCE
    rng = np.random.default_rng(0)
    directions = tuple(rng.standard_normal(np.shape(args[number]))[()] for number in drawn.argnums)
    _, tangent = irad.jvp(drawn.primal, args, directions, argnums=drawn.argnums)
    products = [np.sum(gradient * direction) for gradient, direction in zip(gradients, directions, strict=True)]
    sizes = [np.sum(np.abs(gradient * direction)) for gradient, direction in zip(gradients, directions, strict=True)]
    assert tangent == pytest.approx(sum(products), abs=1e-11 * sum(sizes))
    for left, right in zip(args, drawn.arguments("small"), strict=True):
        np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_seed_gives_the_same_program(family: str):
    texts = set()
    for seed in range(40):
        drawn, again = program(f"{family}/{seed}"), program(f"{family}/{seed}")
        assert (drawn.numba, drawn.c) == (again.numba, again.c)
        assert drawn.argnums
        compile(drawn.numba, "text", "exec")
        for left, right in zip(drawn.arguments("small"), again.arguments("small"), strict=True):
            np.testing.assert_array_equal(left, right)
        texts.add(drawn.numba)
    assert len(texts) >= 25


@pytest.mark.parametrize("family", FAMILIES)
def test_sizes_grow(family: str):
    for seed in range(10):
        drawn = program(f"{family}/{seed}")
        small, full = (sum(np.size(arg) for arg in drawn.arguments(size)) for size in ("small", "full"))
        steps = [sum(arg for arg in drawn.arguments(size) if isinstance(arg, int)) for size in ("small", "full")]
        assert (small, steps[0]) < (full, steps[1]) or small == full


def test_brackets_keep_the_order_of_operations():
    a, b, c = Var("a"), Var("b"), Var("c")
    f = Writer("loss")
    for each in (a, b, c):
        f.parameter(each.name)
    x = f.let("x", a - (b - c) + (a + b) * -c / (b * c))
    y = f.let("y", square(-a) - -x / (a / b))
    drawn = f.function(y + square(x + Num(-1.5)))
    assert numba_text([drawn]).splitlines()[-3:] == [
        "    x = a - (b - c) + (a + b) * -c / (b * c)",
        "    y = (-a) ** 2 - -x / (a / b)",
        "    return y + (x + -1.5) ** 2",
    ]
    assert "x = a - (b - c) + (a + b) * -c / (b * c);" in c_text([drawn], ["a"])
    assert "y = square(-a) - -x / (a / b);" in c_text([drawn], ["a"])


def test_operations_are_counted_while_the_program_runs():
    f = Writer("inner")
    x = f.parameter("x", 1)
    inner = f.function(Sum(exp(x) * x))
    g = Writer("loss")
    x = g.parameter("x", 1)
    [n] = g.sizes(x, "count")  # a name of the program, too
    total = g.let("total", 0.0)
    with g.loop("i", 0, n) as i:
        g.add(total, 2.0 * x[i - 1 + 1])
        with g.when(x[i] > 0.5):
            g.add(total, Call(inner, (x + 1.0,)))
    loss = compiled(counting_text([inner, g.function(total)]), "counting.py")
    count = np.zeros(2, np.int64)
    assert loss(np.array([0.0, 1.0, 0.0]), count) == pytest.approx(2.0 + 2.0 * np.e + 2.0 * np.exp(2.0))
    assert list(count) == [3 * 2 + 1 * (3 + 3 + 3 + 1), 3]


def test_a_wrong_gradient_is_found():
    drawn = program("recurrence/1")
    args = drawn.arguments("small")
    value, (first, *others) = irad_gradient(drawn.case())(*args)
    assert drawn.error(args, (value, (first, *others))) < 1e-13
    assert drawn.error(args, (value, (first * 1.001, *others))) > 1e-5
    assert drawn.error(args, (value * 1.001, (first, *others))) > 1e-5
    assert np.isnan(error(drawn.complex, drawn.argnums, args, (value, (np.full_like(first, np.nan), *others))))


def test_names():
    assert find("stencil/3").name == "stencil/3"
    assert find("garch").name == "garch"
    with pytest.raises(KeyError):
        find("no such family/3")


def test_other_settings():
    case = find("stencil/23")
    args = case.make("small")
    assert case.error is not None
    preparation = ["prepare.shape_specialisation", "prepare.overlap_tests", "prepare.stack_promotion"]
    for settings in (["reverse.gather"], ["plan=save_all"], ["speculative=False", *preparation]):
        assert case.error(args, irad_against(case, settings)(*args)) < 1e-12
    assert settings_of(["max_tape_bytes=100", "strict=True"])[0] == irad.Options(max_tape_bytes=100, strict=True)
    for setting in ("reverse.nothing", "nothing=1"):
        wrong = CliRunner().invoke(main, ["stencil/23", "--against", setting])
        assert wrong.exit_code == 2
        assert "is neither an option of irad nor a pass" in wrong.output


def test_a_case_without_an_adjoint_by_hand():
    request = Request("recurrence/1", "irad", ("small",), 3, against=("vector_math=False",))
    own = worker.measure(request)
    assert set(own["sizes"]["small"]["seconds"]) == {"primal", "irad", "against"}
    assert set(own["error"]) == {"irad", "against"}
    found = Outcome(find("recurrence/1"), "small", own)
    assert found.wrong == []
    assert found.ratios["irad"] == 1.0
    assert found.to_json()["flops"] > 0


def test_means():
    rows = [
        {"name": "pairs/1", "ratios": {"primal": 2.0}},
        {"name": "pairs/2", "ratios": {"primal": 8.0, "enzyme": 0.5}},
        {"name": "gather/1", "ratios": {}},
    ]
    assert means(rows) == {
        "gather": {"primal": None, "enzyme": None},
        "pairs": {"primal": pytest.approx(4.0), "enzyme": pytest.approx(0.5)},
        "all": {"primal": pytest.approx(4.0), "enzyme": pytest.approx(0.5)},
    }


def test_programs_are_printed():
    done = CliRunner().invoke(main, ["--seed", "3", "--count", "2", "--family", "pairs", "--print"])
    assert done.exit_code == 0
    assert done.output.count("static void loss(") == done.output.count("def loss(") == 2
    again = CliRunner().invoke(main, ["--seed", "3", "--count", "2", "--print"])
    assert done.output in again.output
    wrong = CliRunner().invoke(main, ["stencil"])
    assert wrong.exit_code == 2
    assert "'stencil' is not a family and a seed" in wrong.output


def test_a_small_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    ceilings = {"bytes_per_second": 1e10, "flops_per_second": 1e10}  # to measure them takes seconds
    monkeypatch.setattr(generated, "run_ceilings", lambda: ceilings)
    file = tmp_path / "result.json"
    arguments = ["recurrence/1", "--size", "small", "--rounds", "3", "--json", str(file)]
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 0, done.output
    found = json.loads(file.read_text())
    [row] = found["programs"]
    assert set(row["ratios"]) == {"primal", "least", "compile"}
    assert row["wrong"] == row["missing"] == []
    old = tmp_path / "old.json"
    old.write_text(json.dumps({"programs": [row | {"ratios": {"primal": 0.5 * row["ratios"]["primal"]}}]}))
    assert changes(json.loads(old.read_text())["programs"], [row]) == [
        {"name": "recurrence/1", "ratios": {"primal": pytest.approx(2.0)}}
    ]
