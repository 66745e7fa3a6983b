"""`irad opt`: forms of output, status, help."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from irad.backend.toolchain import Toolchain
from irad.cli import main
from irad.options import Options
from irad.raw.differentiate import Differentiated, differentiate

# The output of clang for  double f(double x) { return x * x; }  double df(double x) { return __irad_autodiff(f, x); }
MODULE = """\
declare double @__irad_autodiff(ptr, ...)

define double @f(double %x) {
  %y = fmul double %x, %x
  ret double %y
}

define double @df(double %x) {
  %d = call double (ptr, ...) @__irad_autodiff(ptr @f, double %x)
  ret double %d
}
"""


@pytest.fixture
def module(tmp_path: Path) -> Path:
    path = tmp_path / "module.ll"
    path.write_text(MODULE)
    return path


def test_text_goes_to_standard_output(module: Path):
    done = CliRunner().invoke(main, ["opt", str(module)])
    assert done.exit_code == 0
    assert "define double @df(double %x)" in done.output
    assert "__irad_autodiff" not in done.output


def test_tangents(tmp_path: Path):
    path = tmp_path / "module.ll"
    path.write_text(MODULE.replace("autodiff", "fwddiff").replace("@f, double %x", "@f, double %x, double 3.0"))
    done = CliRunner().invoke(main, ["opt", str(path), "-v"])
    assert done.exit_code == 0
    assert "__irad_fwddiff" not in done.stdout
    assert "call double @irad.fwddiff.0(double %x, double 3.000000e+00)" in done.stdout
    assert "derivative of f(dup)" in done.stderr


@pytest.mark.parametrize(
    ("name", "magic"),
    [("out.ll", b"source_filename"), ("out.bc", b"BC\xc0\xde"), ("out.s", b".file"), ("out.o", b"ELF")],
)
def test_the_suffix_says_the_form(module: Path, tmp_path: Path, name: str, magic: bytes):
    output = tmp_path / name
    assert CliRunner().invoke(main, ["opt", str(module), "-o", str(output)]).exit_code == 0
    assert magic in output.read_bytes()[:200]


def test_emit_says_the_form(module: Path, tmp_path: Path):
    output = tmp_path / "out"
    assert CliRunner().invoke(main, ["opt", str(module), "-o", str(output), "--emit", "bc"]).exit_code == 0
    assert output.read_bytes().startswith(b"BC")
    again = CliRunner().invoke(main, ["opt", str(output)])  # bitcode is read, and asks for nothing any more
    assert again.exit_code == 1
    assert "nothing in this module asks for a derivative" in again.output


def test_plans_and_levels(module: Path, tmp_path: Path):
    for flags in (["--plan", "save_all"], ["--strict"], ["-O", "0"]):
        assert CliRunner().invoke(main, ["opt", str(module), "-o", str(tmp_path / "out.ll"), *flags]).exit_code == 0


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], Options(plan="save_all", strict=True, verify=True)),
        (["--plan", "default"], Options(strict=True, verify=True)),
    ],
)
def test_the_environment_gives_the_options_that_the_command_line_leaves_out(
    module: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], expected: Options
):
    taken = []

    def note(text: str, toolchain: Toolchain, options: Options, level: int) -> Differentiated:
        taken.append(options)
        return differentiate(text, toolchain, options, level)

    monkeypatch.setattr("irad.raw.differentiate.differentiate", note)
    variables = {"IRAD_PLAN": "save_all", "IRAD_STRICT": "1", "IRAD_VERIFY": "yes", "IRAD_MAX_TAPE_BYTES": "0"}
    done = CliRunner().invoke(main, ["opt", str(module), *flags], env=variables)
    assert done.exit_code == 0
    assert taken == [expected]
    assert "IRAD_MAX_TAPE_BYTES has no effect here" in done.stderr
    assert "IRAD_DEBUG" not in done.stderr


def test_standard_input(module: Path):
    text = subprocess.run(
        [sys.executable, "-m", "irad", "opt", "-"], input=module.read_bytes(), capture_output=True, check=True
    ).stdout.decode()
    assert "define double @df(double %x)" in text
    assert "__irad_autodiff" not in text


def test_standard_input_without_llvm():
    done = CliRunner().invoke(main, ["opt", "-"], input="no module")
    assert done.exit_code == 1
    assert "cannot read standard input" in done.output


def test_verbose_names_what_was_replaced(module: Path, tmp_path: Path):
    done = CliRunner().invoke(main, ["opt", "-v", str(module), "-o", str(tmp_path / "out.ll")])
    assert done.output == "replaced: derivative of f(out)\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["opt"], "Missing argument"),
        (["opt", "module.ll", "-o", "out.txt"], "'.txt' is not a form of output"),
        (["opt", "module.ll", "--emit", "wasm"], "is not one of"),
        (["opt", "module.ll", "-O", "7"], "is not in the range"),
    ],
)
def test_a_wrong_command_line_has_status_2(arguments: list[str], message: str):
    done = CliRunner().invoke(main, arguments)
    assert done.exit_code == 2
    assert message in done.output


def test_a_file_that_is_not_there_has_status_1(tmp_path: Path):
    done = CliRunner().invoke(main, ["opt", str(tmp_path / "missing.bc")])
    assert done.exit_code == 1
    assert done.output.startswith("error: cannot read")
    assert "Traceback" not in done.output


def test_a_folder_that_is_not_there(module: Path, tmp_path: Path):
    done = CliRunner().invoke(main, ["opt", str(module), "-o", str(tmp_path / "no" / "out.ll")])
    assert done.exit_code == 1
    assert "out.ll" in done.output


def test_help_has_examples():
    done = CliRunner().invoke(main, ["opt", "--help"])
    assert "Examples:" in done.output
    assert "irad opt model.bc -o model.o" in done.output


def test_the_object_file_links(module: Path, tmp_path: Path):
    cc = shutil.which("cc") or shutil.which("clang")
    if cc is None:
        pytest.skip("no C compiler")
    code = tmp_path / "module.o"
    assert CliRunner().invoke(main, ["opt", str(module), "-o", str(code)]).exit_code == 0
    (tmp_path / "main.c").write_text("double df(double);\nint main(void) { return df(3.0) != 6.0; }\n")
    subprocess.run([cc, str(tmp_path / "main.c"), str(code), "-o", str(tmp_path / "program")], check=True)
    assert subprocess.run([str(tmp_path / "program")]).returncode == 0


def test_the_help_is_complete_without_other_files():
    done = CliRunner().invoke(main, ["opt", "--help"])
    for word in ("enzyme_const", "enzyme_dup ", "enzyme_dupnoneed", "enzyme_out", "__enzyme_inactivefn", "f_reverse"):
        assert word in done.output
    assert "docs/" not in done.output
