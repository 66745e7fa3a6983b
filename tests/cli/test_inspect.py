"""`irad inspect` as users run it."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from irad.cli import main
from irad.cli.inspect import _options
from irad.errors import InternalError
from irad.options import Options
from irad.report import subject
from irad.report.collect import ALL

inspect = importlib.import_module("irad.cli.inspect")  # the package has the command under this name

MODEL = """\
import numba
import numpy as np

import irad


@irad.jit
def loss(x, w):
    total = 0.0
    for value in x:
        total += np.exp(value) * w
    return total


@numba.njit("float64(float64)")
def declared(x):
    return x * x


def plain(x):
    return x ** 3


@numba.njit
def in_python(x):
    with numba.objmode(out="float64"):
        out = x * 2.0
    return out


gradient = irad.grad(loss, argnums=1)
number = 3


class Group:
    @staticmethod
    @irad.jit
    def inner(x):
        return x * 2.0
"""
SIGNATURE = ("--sig", "float64[::1], float64")
EXP = 11


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("model") / "inspected_model.py"
    path.write_text(MODEL)
    return str(path)


def run(*words: str) -> Result:
    result = CliRunner().invoke(main, ["inspect", *words])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def output(*words: str) -> str:
    result = run(*words)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_overview(model: str):
    text = output(f"{model}:loss", *SIGNATURE)
    assert text.startswith("loss(float64[::1], float64) -> float64")
    assert re.search(rf"^ *{EXP} .*np\.exp.*│ active total, value, w; rule exp$", text, re.M)
    assert "[0] loss: with respect to x, w; result active" in text
    assert "\x1b" not in text


@pytest.mark.parametrize("stage", [stage.value for stage in ALL])
def test_every_stage(model: str, stage: str):
    text = output(f"{model}:loss", *SIGNATURE, "--stage", stage)
    assert re.search(rf"^ +{EXP} │ ", text, re.M)
    plain = output(f"{model}:loss", *SIGNATURE, "--stage", stage, "--no-lines")
    assert "│" not in plain.split("\n")[0]
    assert len(plain.splitlines()) == len(text.splitlines())


def test_several_stages_and_answers(model: str):
    text = output(f"{model}:loss", *SIGNATURE, "--stage", "tape", "--stage", "python", "--explain", str(EXP))
    assert re.findall("^──── (.*)$", text, re.M) == ["python", "tape", f"why: {EXP}"]


def test_answers(model: str):
    text = output(f"{model}:loss", *SIGNATURE, "--explain", "total")
    assert text.startswith("total: a variable of loss")
    assert "makes the tape large" in output(f"{model}:loss", *SIGNATURE, "--explain", "tape")


def test_difference(model: str):
    text = output(f"{model}:loss", *SIGNATURE, "--diff", "prepared", "adjoint")
    assert text.startswith("--- prepared\n+++ adjoint\n@@")


def test_noise(model: str):
    quiet = output(f"{model}:loss", *SIGNATURE, "--stage", "optimized")
    loud = output(f"{model}:loss", *SIGNATURE, "--stage", "optimized", "--noise")
    assert "_ZN" not in quiet
    assert "!dbg" not in quiet
    assert "_ZN" in loud
    assert "!dbg" in loud


def test_json(model: str, tmp_path: Path):
    found = json.loads(output(f"{model}:loss", *SIGNATURE, "--json", "--stage", "tape", "--explain", str(EXP)))
    assert found["function"] == "loss"
    assert list(found["stages"]) == ["tape"]
    assert "np.exp" in found["explanations"][str(EXP)]
    file = tmp_path / "report.json"
    assert output(f"{model}:loss", *SIGNATURE, "--json", "-o", str(file)) == ""
    again = json.loads(file.read_text())
    assert again["stages"] == {}
    assert again["functions"][0]["tape"] == found["functions"][0]["tape"]
    assert "explanations" not in again


def test_a_file_gets_no_colours(model: str, tmp_path: Path):
    file = tmp_path / "adjoint.ll"
    output(f"{model}:loss", *SIGNATURE, "--stage", "adjoint", "--color", "-o", str(file))
    assert "\x1b" not in file.read_text()


def test_the_page_of_a_refused_function(model: str, tmp_path: Path):
    """The error as ever, and beside it a page that shows where."""
    pytest.importorskip("jinja2", reason="no Jinja2: pip install jinja2")
    file = tmp_path / "refused.html"
    result = run(f"{model}:in_python", "--sig", "float64", "--html", str(file))
    assert result.exit_code == 1
    assert f"{file}: why the function is refused" in result.output
    error = "no derivative rule for a call to Python code (objmode)"
    assert f"error: {error}" in result.output
    assert error in file.read_text(encoding="utf-8")
    assert run(f"{model}:in_python", "--sig", "float64", "--html", str(file), "--args", "x").exit_code == 2


@pytest.mark.parametrize("stage", [stage.value for stage in ALL])
def test_stages_fit_the_terminal(model: str, stage: str, monkeypatch: pytest.MonkeyPatch):
    """Long lines go on below, beside the gutter; into files and pipes they stay whole."""
    whole = output(f"{model}:loss", *SIGNATURE, "--stage", stage)
    monkeypatch.setattr(inspect, "is_terminal", lambda: True)
    monkeypatch.setattr(inspect, "columns", lambda: 80)
    wrapped = output(f"{model}:loss", *SIGNATURE, "--stage", stage)
    assert max(map(len, wrapped.splitlines())) <= 80
    assert {line[6] for line in wrapped.splitlines()} == {"│"}
    joined = ["".join(word for line in text.splitlines() for word in line[7:].split()) for text in (wrapped, whole)]
    one, other = (re.sub(r"[0-9a-f]{10,}", "#", text) for text in joined)  # symbols have numbers that change
    assert one == other


def test_answers_fit_the_terminal(model: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(inspect, "is_terminal", lambda: True)
    monkeypatch.setattr(inspect, "columns", lambda: 80)
    assert max(map(len, output(f"{model}:loss", *SIGNATURE, "--explain", str(EXP)).splitlines())) <= 80


def test_colours(model: str):
    coloured = output(f"{model}:loss", *SIGNATURE, "--stage", "adjoint", "--color")
    assert "\x1b[" in coloured
    bare = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert bare == output(f"{model}:loss", *SIGNATURE, "--stage", "adjoint")


@pytest.mark.parametrize(
    ("words", "variant"),
    [((), "x, w"), (("--wrt", "w"), "w"), (("--argnums", "0"), "x"), (("--wrt", "w,x"), "x, w")],
)
def test_what_is_differentiated(model: str, words: tuple[str, ...], variant: str):
    text = output(f"{model}:loss", *SIGNATURE, "--stage", "tape", "--no-lines", *words)
    assert text.startswith(f"loss: with respect to {variant}; result active")


def test_options(model: str, monkeypatch: pytest.MonkeyPatch):
    assert "the plan is save_all" in output(f"{model}:loss", *SIGNATURE, "--stage", "plan", "--plan", "save_all")
    assert "reassoc" in output(f"{model}:loss", *SIGNATURE, "--stage", "adjoint")
    assert "reassoc" not in output(f"{model}:loss", *SIGNATURE, "--stage", "adjoint", "--strict")
    monkeypatch.setenv("IRAD_PLAN", "save_all")
    assert "the plan is save_all" in output(f"{model}:loss", *SIGNATURE, "--stage", "plan")
    assert "the plan is save_all" not in output(f"{model}:loss", *SIGNATURE, "--stage", "plan", "--plan", "default")


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("loss", ("--args", "np.ones(3), 2.0")),
        ("loss", ("--args", "(np.arange(number) * 1.0, float(number))")),  # names of the module
        ("loss", ("--sig", "(float64[::1], float64)")),
        ("loss", ("--sig", "float64(float64[::1], float64)")),
        ("declared", ()),
        ("plain", ("--args", "2.0")),
        ("gradient", SIGNATURE),
        ("Group.inner", ("--args", "2.0")),
    ],
)
def test_targets_and_arguments(model: str, target: str, words: tuple[str, ...]):
    assert "result active" in output(f"{model}:{target}", *words)


def test_modules_are_found_here(model: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(Path(model).parent)
    monkeypatch.delitem(sys.modules, "inspected_model", raising=False)
    assert "result active" in output("inspected_model:loss", *SIGNATURE)
    assert "with respect to x" in output("inspected_model.py:plain", "--args", "2.0")


@pytest.mark.parametrize(
    ("target", "words", "status", "message"),
    [
        ("{model}", (), 2, "is not of the form MODULE_OR_FILE:FUNCTION; write model.py:loss"),
        ("no_such_module:f", (), 2, "there is no module 'no_such_module' here or on the Python path"),
        ("no/such/file.py:f", (), 2, "there is no file no/such/file.py"),
        ("{model}:los", SIGNATURE, 2, "has no 'los'; did you mean 'loss'?"),
        ("{model}:Group.outer", SIGNATURE, 2, "has no 'Group.outer'"),
        ("{model}:loss", (), 2, "the types of the arguments are not known: give --args"),
        ("{model}:loss", ("--args", "1", "--sig", "float64"), 2, "give --args or --sig, not both"),
        ("{model}:loss", ("--args", "np.ones("), 2, "is not a Python expression: '(' was never closed"),
        ("{model}:loss", ("--args", "nothing"), 2, "'nothing' raises NameError"),
        ("{model}:loss", ("--args", "1 / 0"), 2, "raises ZeroDivisionError"),
        ("{model}:loss", ("--sig", "double"), 1, "missing a required argument: 'w'"),
        ("{model}:loss", ("--sig", "real"), 2, "'real' raises NameError"),
        ("{model}:loss", ("--sig", "3"), 2, "3 is not a Numba type"),
        ("{model}:loss", ("--args", "2.0"), 1, "loss cannot be called with these arguments"),
        ("{model}:loss", ("--args", "2.0, 3.0"), 1, "Numba cannot compile loss"),
        ("{model}:number", ("--args", "2.0"), 1, "3 is not a function"),
        ("{model}:loss", (*SIGNATURE, "--wrt", "y"), 2, "there is no parameter 'y', only x, w"),
        ("{model}:loss", (*SIGNATURE, "--wrt", "x,x"), 2, "names an argument twice"),
        ("{model}:loss", (*SIGNATURE, "--argnums", "a"), 2, "write positions, counted from 0, as 0,2"),
        (
            "{model}:loss",
            (*SIGNATURE, "--argnums", "5"),
            2,
            "argnums names argument 5, but loss has 2 parameters; use 0 for x",
        ),
        ("{model}:loss", (*SIGNATURE, "--argnums", "1,-1"), 2, "names an argument twice"),
        ("{model}:number", ("--args", "2.0", "--argnums", "0"), 1, "3 is not a function"),
        ("{model}:loss", (*SIGNATURE, "--argnums", "0", "--wrt", "x"), 2, "give --wrt or --argnums, not both"),
        ("{model}:loss", ("--sig", "int64[::1], int64"), 1, "no argument of loss has a derivative"),
        ("{model}:loss", (*SIGNATURE, "--stage", "gpu"), 2, "'gpu' is not one of 'python', 'numba-ir'"),
        ("{model}:loss", (*SIGNATURE, "--stage", "ptx"), 1, "a function for the CPU has no PTX"),
        ("{model}:loss", (*SIGNATURE, "--diff", "plan"), 2, "'--diff' requires 2 arguments"),
        ("{model}:loss", (*SIGNATURE, "--diff", "plan", "tape", "--json"), 2, "--diff goes with neither"),
        ("{model}:loss", (*SIGNATURE, "--explain", "999"), 1, "line 999 is not in loss"),
        ("{model}:loss", (*SIGNATURE, "--explain", "q"), 1, "'q' is not a line, value or variable of loss"),
        ("{model}:gradient", (*SIGNATURE, "--wrt", "x"), 1, "is already created"),
        ("{model}:loss", (*SIGNATURE, "-o", "no/such/folder/file"), 2, "no/such/folder"),
    ],
)
def test_mistakes_have_a_line_and_no_traceback(
    model: str, target: str, words: tuple[str, ...], status: int, message: str
):
    result = run(target.format(model=model), *words)
    assert result.exit_code == status
    assert message in result.output
    assert "Traceback" not in result.output
    assert len(result.output.splitlines()) <= 25


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("raise RuntimeError('no data')\n", "raises RuntimeError: no data\n  at  {file}:1"),
        ("\ndef f(:\n", "raises SyntaxError: invalid syntax"),
        ("import sys\nsys.exit(0)\n", "raises SystemExit: 0\n  at  {file}:2"),
        ("import sys\nsys.path.insert(0, '/nowhere')\nraise OSError('gone')\n", "raises OSError: gone\n  at  {file}:3"),
        ("\0", "raises SyntaxError: source code string cannot contain null bytes"),
        ("\n\nimport not_installed_anywhere\n", "raises ModuleNotFoundError: No module named 'not_installed_anywhere'"),
    ],
)
def test_a_module_that_cannot_be_imported(tmp_path: Path, source: str, message: str):
    file = tmp_path / "broken.py"
    file.write_text(source)
    result = run(f"{file}:f", "--args", "1.0")
    assert result.exit_code == 2
    assert message.format(file=file) in result.output
    assert str(file) in result.output
    assert "None" not in result.output
    assert "broken" not in sys.modules
    assert str(tmp_path) not in sys.path


def test_a_fault_of_irad_is_an_error_that_asks_for_a_report(model: str, monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> None:
        raise InternalError("the loop is upside down")

    monkeypatch.setattr(subject, "program_of", fail)
    result = run(f"{model}:loss", *SIGNATURE)
    assert result.exit_code == 1
    assert "the loop is upside down" in result.output
    assert "report it with the function that caused it" in result.output


def test_help_has_examples_and_loads_no_numba():
    code = (
        "import sys\nfrom click.testing import CliRunner\nfrom irad.cli import main\n"
        "print(CliRunner().invoke(main, ['inspect', '--help']).output)\nsys.exit('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Examples:" in done.stdout
    assert "irad inspect model.py:loss --args" in done.stdout


def test_as_a_process(model: str):
    command = [sys.executable, "-m", "irad", "inspect", f"{model}:loss", *SIGNATURE]
    done = subprocess.run([*command, "--stage", "tape"], capture_output=True, text=True, check=True)
    assert f"{EXP} │     " in done.stdout
    assert done.stderr == ""
    failed = subprocess.run([*command, "--explain", "q"], capture_output=True, text=True, check=False)
    assert failed.returncode == 1
    assert failed.stderr.startswith("error: 'q' is not a line")
    assert failed.stdout == ""


@pytest.mark.parametrize(
    ("words", "expected"),
    [("irad ins", "inspect"), ("irad inspect f --stage opt", "optimized"), ("irad inspect f --expl", "--explain")],
)
def test_completion_in_the_shell(words: str, expected: str):
    environment = {
        **os.environ,
        "_IRAD_COMPLETE": "bash_complete",
        "COMP_WORDS": words,
        "COMP_CWORD": str(words.count(" ")),
    }
    code = "import sys; sys.argv = ['irad']; from irad.cli import main; main(prog_name='irad')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False)
    assert done.stdout.split() == [f"plain,{expected}"]


def test_a_file_of_the_name_of_a_module(tmp_path: Path):
    known = sys.modules["types"]
    file = tmp_path / "types.py"
    file.write_text("def f(x):\n    return x * x\n")
    assert run(f"{file}:f", "--args", "1.0").exit_code == 0
    assert sys.modules["types"] is known


def test_a_page_that_cannot_be_written(model: str, tmp_path: Path):
    (tmp_path / "is_a_file").write_text("")
    broken = tmp_path / "link.html"
    broken.symlink_to(tmp_path / "is_a_file" / "page.html")
    result = run(f"{model}:loss", *SIGNATURE, "--html", str(broken))
    assert result.exit_code == 1
    assert result.output.startswith(f"Error: Could not open file '{broken}'")


def test_a_profile_of_a_function_that_raises(tmp_path: Path):
    file = tmp_path / "raising.py"
    file.write_text("def f(x):\n    if x < 1.0:\n        raise ValueError\n    return x\n")
    result = run(f"{file}:f", "--args", "0.0", "--html", str(tmp_path / "page.html"), "--profile")
    assert result.exit_code == 1
    assert result.output.startswith("error: f raises ValueError at these arguments")


def test_other_options_of_the_environment_stay(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("IRAD_MAX_TAPE_BYTES", "1000")
    assert _options("save_all", True) == Options(plan="save_all", strict=True, max_tape_bytes=1000)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_where_output_goes(model: str):
    command = f"{sys.executable} -m irad inspect {model}:loss --sig '{SIGNATURE[1]}'"

    def process(tail: str, **environment: str) -> tuple[int, str, str]:
        done = subprocess.run(
            ["bash", "-c", f"{command} {tail}"],
            capture_output=True,
            encoding="latin-1",
            env={**os.environ, **environment},
            check=False,
        )
        assert "Traceback" not in done.stderr
        return done.returncode, done.stdout, done.stderr

    status, _, complaint = process("> /dev/full")
    assert status == 1
    assert "No space left" in complaint
    assert process(">&-")[0] == 0
    status, text, _ = process("--stage tape --stage plan", PYTHONIOENCODING="latin-1")
    assert status == 0
    assert text.startswith("???? plan\n      ? loss")


@pytest.mark.parametrize("command", ["inspect", "bench", "check"])
def test_wrong_arguments_are_told_without_another_command(model: str, command: str):
    done = CliRunner().invoke(main, [command, f"{model}:loss", "--args", "np.ones(3)"])
    assert done.exit_code == 1
    assert "missing a required argument: 'w'" in done.output
    assert "irad." not in done.output
