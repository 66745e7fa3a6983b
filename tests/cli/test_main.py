from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

import irad
import irad.demo.run
from irad.cli import main
from irad.errors import SignatureError, SourceLocation


def test_doctor_names_versions_and_options(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("IRAD_PLAN", "save_all")
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 0
    for word in (irad.__version__, "numba", "llvmlite", "plan=save_all"):
        assert word in done.output


def test_version():
    assert irad.__version__ in CliRunner().invoke(main, ["--version"]).output


def test_an_irad_error_is_shown_without_traceback(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("IRAD_VERIFY", "perhaps")
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 1
    assert done.output.startswith("error: IRAD_VERIFY=perhaps is neither true nor false\n")
    assert "\n  do  (a) IRAD_VERIFY=1\n" in done.output
    assert "Traceback" not in done.output


def test_location_is_shown(monkeypatch: pytest.MonkeyPatch):
    def fail(*_: object) -> bool:
        raise SignatureError("wrong", "right it", location=SourceLocation("model.py", 13))

    monkeypatch.setattr(irad.demo.run, "run", fail)
    done = CliRunner().invoke(main, ["demo"])
    assert (done.exit_code, done.output) == (1, "error: wrong\n  at  model.py:13\n  do  right it\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["no-such-command"],
        ["demo", "--points", "3"],
        ["demo", "--points", "many"],
        ["demo", "--seed", "-1"],
        ["demo", "--plot", "no/such/folder/x.png"],
    ],
)
def test_a_wrong_command_line_has_status_2(arguments: list[str]):
    assert CliRunner().invoke(main, arguments).exit_code == 2


@pytest.mark.parametrize("passed", [True, False])
def test_demo_passes_its_options_and_the_verdict_on(monkeypatch: pytest.MonkeyPatch, passed: bool):
    seen = []
    monkeypatch.setattr(irad.demo.run, "run", lambda _, *rest: seen.append(rest) or passed)
    done = CliRunner().invoke(main, ["demo", "--points", "99", "--seed", "5", "--plot", "x.png"])
    assert done.exit_code == (0 if passed else 1)
    assert CliRunner().invoke(main, ["demo", "--no-plot"]).exit_code == done.exit_code
    assert seen == [(99, 5, Path("x.png")), (2000, 7, None)]


def test_python_m_irad():
    done = subprocess.run([sys.executable, "-m", "irad", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"irad, version {irad.__version__}\n"


def test_help_does_not_load_numba():
    code = "import sys, irad.cli, irad.ir; sys.exit('numba' in sys.modules or 'llvmlite' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("name", irad.__all__)
def test_every_public_name_is_there(name: str):
    assert getattr(irad, name) is not None
    assert name in dir(irad)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'gradient'"):
        irad.gradient  # noqa: B018  # pyright: ignore[reportAttributeAccessIssue]
