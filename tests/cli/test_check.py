"""`irad check` as users call it: what it says, and its status."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from irad.cli import main
from irad.cli.output import _bar

MODEL = """
import math

import numpy as np
from numba import njit, types

import irad
from irad.rules import AugmentedReturn

_first = types.ExternalFunction("my_first", types.float64(types.int32, types.float64))
_second = types.ExternalFunction("my_second", types.float64(types.int32, types.float64))


@njit
def emitted(temperature_of_the_outer_layer_of_the_atmosphere):
    return np.exp(temperature_of_the_outer_layer_of_the_atmosphere)


@njit
def loss(x, rate):
    s = 0.0
    for i in range(x.size):
        if x[i] > 1.0:
            s += math.log(x[i]) * rate
        else:
            s += (x[i] - 1.0) * 2.0 * rate
    return s + np.exp(rate)


@njit
def foreign(x):
    a = _first(2, x)
    return a + _second(3, x)


@njit
def picky(x):
    if x > 3.0:
        raise ValueError("too large")
    return math.sqrt(x)


@njit
def stepping(x):
    return np.floor(3.3 * x) + x


@njit
def bent(x):
    return abs(x) + abs(x - 0.25)


@njit
def looked_up(x, table):
    return table[int(x)] * x


@njit
def square(x):
    return x * x


@irad.rules.augmented_primal(square)
def square_augmented(config, x):
    return AugmentedReturn(x.value * x.value, None, x.value)


@irad.rules.reverse(square)
def square_reverse(config, cotangent, tape, x):
    return (cotangent * tape,)  # twice that would be right


@njit
def squares(x):
    return square(x[0]) + square(x[1])


@njit
def long(x):
    while x > 1.0:
        x -= 1.0
    return x


@njit
def cancelling(x, w):
    s = 0.0
    for i in range(x.size):
        s += math.log(1.0 + math.sqrt(x[i]) / w[i] * w[i])
    return s


number = 3.0
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("check") / "check_model.py"
    path.write_text(MODEL)
    return path


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")


def run(model: Path, function: str, *options: str) -> Result:
    return CliRunner().invoke(main, ["check", f"{model}:{function}", *options])


def as_json(model: Path, function: str, *options: str) -> tuple[int, dict[str, Any]]:
    done = run(model, function, "--json", *options)
    return done.exit_code, json.loads(done.stdout)


def test_a_derivative_that_is_nothing_but_rounding_has_no_kinks(model: Path):
    status, report = as_json(model, "cancelling", "--args", "np.array([0.5, 1.2, 0.1]), np.array([0.3, -0.2, 1.0])")
    assert status == 0
    assert [weak["what"] for weak in report["weak_points"] if "kink" in weak["what"]] == []


def test_a_right_gradient(model: Path):
    done = run(model, "loss", "--args", "np.array([0.5, 1.2, 3.0]), 0.3")
    assert done.exit_code == 0, done.output
    assert "irad differentiates it with respect to x and rate." in done.output
    assert "at 3 points" in done.output
    assert "x: float64[3]" in done.output
    assert "x × 0.833333" in done.output
    assert "a kink: the derivative with respect to x[1] jumps from 0.6 to 0.3" in done.output
    assert "rate = 709.783 and beyond" in done.output
    assert "The gradient is right here." in done.output


def test_a_message_keeps_its_lines_on_a_narrow_terminal(model: Path, monkeypatch: pytest.MonkeyPatch):
    wide = run(model, "foreign", "--args", "1.0").output
    monkeypatch.setenv("COLUMNS", "60")
    assert run(model, "foreign", "--args", "1.0").output == wide
    assert max(map(len, wide.splitlines())) > 60


def test_the_tables_cut_no_names_on_a_narrow_terminal(model: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "60")
    done = run(model, "emitted", "--args", "1.5")
    table = done.output.partition("where it would break")[2]
    names = "".join(line.split("│")[1].strip() for line in table.splitlines() if line.startswith("│"))
    assert "temperature_of_the_outer_layer_of_the_atmosphere" in names
    assert max(map(len, table.splitlines())) <= 60
    assert "…" not in table


def test_what_overflows_while_weak_points_are_looked_for_is_no_warning(model: Path):
    call = f"{model}:loss", "--args", "np.linspace(0.1, 2.0, 50), 3.0"
    done = subprocess.run([sys.executable, "-m", "irad", "check", *call], capture_output=True, text=True)
    assert done.returncode == 0
    assert done.stderr == ""
    assert "difference / allowed: how far the gradient is from the expected number" in " ".join(done.stdout.split())


def test_a_right_gradient_as_json(model: Path):
    status, found = as_json(model, "loss", "--sig", "float64[::1], float64", "--points", "2", "--no-probe")
    assert status == 0
    assert found["right"] is True
    assert found["unsupported"] == found["weak_points"] == []
    assert found["gradient"]["verdict"] == "right"
    assert found["gradient"]["points"] == 2
    assert [each["name"] for each in found["gradient"]["arguments"]] == ["x", "rate"]


def test_everything_unsupported_at_once(model: Path):
    done = run(model, "foreign", "--sig", "float64")
    assert done.exit_code == 1
    assert "2 problems" in done.output
    first = MODEL.splitlines().index("    a = _first(2, x)") + 1
    assert f"check_model.py:{first}" in done.output
    assert f"check_model.py:{first + 1}" in done.output
    assert "gradient against" not in done.output
    status, found = as_json(model, "foreign", "--sig", "float64")
    assert status == 1
    assert [each["line"] for each in found["unsupported"]] == [first, first + 1]
    assert found["gradient"] is None


def test_a_wrong_gradient(model: Path):
    done = run(model, "squares", "--args", "np.array([1.5, 0.5])", "--no-probe")
    assert done.exit_code == 1
    assert "wrong" in done.output
    assert "WRONG: do not use it" in done.output
    _, found = as_json(model, "squares", "--args", "np.array([1.5, 0.5])", "--points", "1")
    [argument] = found["gradient"]["arguments"]
    assert argument["verdict"] == "wrong"
    assert argument["got"] == pytest.approx(argument["expected"] / 2)


def test_what_cannot_be_decided_is_no_success(model: Path):
    done = run(model, "stepping", "--args", "1.0 / 3.3", "--points", "1")
    assert done.exit_code == 1
    assert "undecided" in done.output
    assert "do not converge" in done.output


def test_slopes_on_both_sides_of_a_kink(model: Path):
    _, found = as_json(model, "bent", "--args", "0.3")
    said = {each["where"]: each["what"] for each in found["weak_points"]}
    assert said == {
        "x = 0.25": "a kink: the derivative with respect to x jumps from 0 to 2",
        "x = 0": "a kink: the derivative with respect to x jumps from -2 to 0",
    }


def test_ends_of_the_domain_and_jumps(model: Path):
    _, found = as_json(model, "picky", "--args", "2.0")
    said = {each["where"]: each["what"] for each in found["weak_points"]}
    assert said["x = 3 and beyond"] == "ValueError is raised: too large"
    assert said["x = 0"] == "the value is finite, the gradient with respect to x is inf"
    assert said["x = -2"] == "the value is nan"
    _, found = as_json(model, "stepping", "--args", "1.0")
    assert found["weak_points"][0]["where"] == "x = 0.909091"
    assert "the value jumps from 2.90909 to 3.90909" in found["weak_points"][0]["what"]


def test_indices_out_of_range_are_a_weak_point(model: Path):
    done = run(model, "looked_up", "--args", "1.5, np.arange(1.0, 4.0)", "--wrt", "x")
    assert done.exit_code == 0, done.output
    assert "IndexError is raised" in done.output


def test_loops_that_get_long_are_left(model: Path):
    assert run(model, "long", "--args", "2.5").exit_code == 0


def test_domain(model: Path):
    done = run(model, "picky", "--args", "3.0", "--domain", "x=0:3", "--points", "4", "--no-probe")
    assert done.exit_code == 0, done.output


def test_a_point_at_which_the_function_raises(model: Path):
    done = run(model, "picky", "--args", "5.0")
    assert done.exit_code == 1
    assert done.output.startswith("error: picky raises ValueError at these arguments: too large\n  at  ")
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        ("loss", (), "the types of the arguments are not known"),
        ("losss", ("--sig", "float64"), "did you mean 'loss'?"),
        ("loss", ("--args", "np.ones(3), 1.0", "--domain", "rate"), "write NAME=LOW:HIGH"),
        ("loss", ("--args", "np.ones(3), 1.0", "--domain", "rat=0:1"), "no parameter 'rat'"),
        ("loss", ("--args", "np.ones(3), 1.0", "--points", "0"), "--points"),
        ("loss", ("--args", "np.ones(3), 1.0", "--argnums", "7"), "loss has 2 parameters; use 0 for x, 1 for rate"),
        ("loss", ("--args", "np.ones(3"), "not a Python expression"),
        ("loss", ("--args", "exit()"), "'exit()' raises SystemExit"),
        ("loss", ("--args", "np.ones(3), 1.0", "--domain", "rate=2:1"), "no number lies in that range"),
        ("loss", ("--args", "np.ones(3), 1.0", "--domain", "rate=nan:1"), "no number lies in that range"),
        ("loss", ("--args", "np.ones(3), 1.0", "--rtol", "nan"), "--rtol nan: give a number, 0 or more"),
        ("loss", ("--args", "np.ones(3), 1.0", "--rtol", "-1"), "give a number, 0 or more"),
    ],
)
def test_a_wrong_command_line_has_status_2(model: Path, function: str, options: tuple[str, ...], words: str):
    done = run(model, function, *options)
    assert done.exit_code == 2
    assert words in done.output


def test_what_is_no_function(model: Path):
    done = run(model, "number", "--args", "1.0")
    assert done.exit_code == 1
    assert "irad cannot differentiate" in done.output
    assert "Traceback" not in done.output


def test_help_shows_examples():
    done = CliRunner().invoke(main, ["check", "--help"])
    assert done.exit_code == 0
    assert "irad check model.py:loss --args" in done.output
    assert "Exit status:" in done.output


def test_the_count_of_the_progress_is_whole_in_80_columns():
    console = Console(file=io.StringIO(), width=80, force_terminal=True, color_system=None)
    bar = _bar(console)
    bar.add_task("looking for weak points (--no-probe leaves this out): tolerance", completed=1797, total=21234)
    console.print(bar.get_renderable())
    [line] = console.file.getvalue().splitlines()
    assert line.rstrip().endswith(" 1797/21234")
