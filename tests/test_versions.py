"""One table says which versions irad was tested with; whoever claims something about versions agrees with it."""

from __future__ import annotations

import ast
import importlib
import re
import runpy
import shlex
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import irad
from irad import versions
from irad.versions import numbers_of, spelled

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
OLDEST, NEWEST = spelled(min(versions.NUMBA)), spelled(max(versions.NUMBA))


@pytest.mark.parametrize(
    ("text", "numbers"), [("0.68.1", (0, 68, 1)), ("1.26.0rc1", (1, 26, 0)), ("2.x", (2,)), ("", ())]
)
def test_numbers(text: str, numbers: tuple[int, ...]):
    assert numbers_of(text) == numbers


def test_pyproject_claims_what_was_tested():
    assert PROJECT["requires-python"] == f">={spelled(min(versions.PYTHON))}"
    prefix = "Programming Language :: Python :: 3."
    claimed = {numbers_of(line[len(prefix) - 2 :]) for line in PROJECT["classifiers"] if line.startswith(prefix)}
    assert claimed == set(versions.PYTHON)
    assert f"numba>={OLDEST}" in PROJECT["dependencies"]
    assert f"llvmlite>={spelled(min(versions.NUMBA.values()))}" in PROJECT["dependencies"]
    assert f"numpy>={spelled(versions.NUMPY)}" in PROJECT["dependencies"]
    for number in ("12", "13"):
        packages = PROJECT["optional-dependencies"][f"cuda{number}"]
        assert f"numba-cuda[cu{number}]>={spelled(versions.NUMBA_CUDA)}" in packages


@pytest.mark.parametrize("page", ["README.md", "docs/README.md"])
def test_the_front_page_claims_what_was_tested(page: str):
    text = (ROOT / page).read_text(encoding="utf-8")
    first, last = spelled(min(versions.PYTHON)), spelled(max(versions.PYTHON))
    assert f"Python {first} to {last}" in text
    assert f"Numba {OLDEST} to {NEWEST}" in text


def test_the_newest_release_of_the_changelog_is_this_one():
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", changelog, re.MULTILINE)
    assert headings[0] == "Unreleased"
    assert re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", headings[1])
    version, _, date = headings[1].partition(" - ")
    assert version == irad.__version__
    assert f"version: {version}\ndate-released: {date}\n" in citation


def test_every_version_has_its_row_in_the_documentation():
    text = (ROOT / "docs" / "versions.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (0\.\d+)(?:\.\d+)? \| (0\.\d+)(?:\.\d+)? \| (3\.\d+)(?:\.\d+)? \|", text, re.MULTILINE)
    assert {(numbers_of(numba), numbers_of(llvmlite)) for numba, llvmlite, _ in rows} == set(versions.NUMBA.items())
    assert {numbers_of(python) for _, _, python in rows} == set(versions.PYTHON)


def test_branches_by_version_stand_in_one_file():
    asks = re.compile(r"(?:numba|llvmlite)\.(?:__version__|version_info)|metadata\.version\(\"(?:numba|llvmlite)\"\)")
    found = [path for path in (ROOT / "irad").rglob("*.py") if asks.search(path.read_text(encoding="utf-8"))]
    assert [str(path.relative_to(ROOT)) for path in found] == ["irad/backend/compat.py"]


def test_what_nox_runs_exists():
    text = (ROOT / "noxfile.py").read_text(encoding="utf-8")
    paths = re.findall(r'"(tests/[\w/.]+)"', text)
    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


class _Skipped(Exception):
    """What nox raises where a session is skipped."""


class _Session:
    """Of nox: pip lists versions, and what is installed and run is noted."""

    def __init__(self, numba: str) -> None:
        self.numba, self.posargs = numba, ["tests/frontend"]
        self.notes: list[tuple[str, ...]] = []

    def run(self, *command: str, **_: object) -> str:
        self.notes.append(command)
        newest = self.numba if command[-1] == "numba" else "0.99.0rc1"
        return f"{command[-1]} ({newest})\nAvailable versions: {newest}, 0.68.1, 0.68.0\n  INSTALLED: 0.68.1\n"

    def install(self, *packages: str) -> None:
        self.notes.append(packages)

    def log(self, text: str) -> None:
        pass

    def skip(self, text: str) -> None:
        raise _Skipped(text)


def _sessions(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The functions of noxfile.py, also where nox is not installed."""

    def unchanged(*given: Any, **_: Any) -> Any:
        return given[0] if given and callable(given[0]) else lambda function: function

    nox = SimpleNamespace(session=unchanged, parametrize=unchanged, Session=_Session, options=SimpleNamespace())
    monkeypatch.setitem(sys.modules, "nox", nox)
    return runpy.run_path(str(ROOT / "noxfile.py"))


@pytest.mark.parametrize("newest", ["0.99.0rc1", "0.99.0"])
def test_a_release_to_come_is_tested(monkeypatch: pytest.MonkeyPatch, newest: str):
    session = _Session(newest)
    _sessions(monkeypatch)["next_release"](session)
    assert session.notes[0][-2:] == ("--pre", "numba")
    assert ("--editable", ".[test]", f"numba=={newest}") in session.notes
    assert session.notes[-1][-1] == "tests/frontend"


@pytest.mark.parametrize("newest", ["0.68.2rc1", "0.68.1"])
def test_that_there_is_no_release_to_come_is_said(monkeypatch: pytest.MonkeyPatch, newest: str):
    with pytest.raises(_Skipped, match=f"no release of Numba to come.* is {newest}, that of llvmlite 0.99.0rc1"):
        _sessions(monkeypatch)["next_release"](_Session(newest))


def test_the_edges_leave_out_what_the_whole_run_has(monkeypatch: pytest.MonkeyPatch):
    edges = _sessions(monkeypatch)["edges"]
    monkeypatch.setattr("importlib.metadata.version", lambda name: f"{NEWEST}.1")
    newest, asked, oldest = (_Session(NEWEST) for _ in range(3))
    newest.posargs, oldest.posargs = [], []
    with pytest.raises(_Skipped, match="runs all tests with it"):
        edges(newest, NEWEST)
    edges(asked, NEWEST)
    assert asked.notes[-1][-1] == "tests/frontend"
    edges(oldest, OLDEST)
    assert oldest.notes[0] == ("--editable", ".[test]", f"numba=={OLDEST}.*", f"numpy=={spelled(versions.NUMPY)}.*")
    assert oldest.notes[-1][-1].startswith("tests/")


@pytest.mark.parametrize("extra", versions.EXTRAS)
def test_commands_install_the_packages_of_the_extras(extra: str):
    wanted = [re.split(r"[<>=]", each)[0] for each in PROJECT["optional-dependencies"][extra]]
    assert sorted(wanted) == list(versions.EXTRAS[extra])
    assert shlex.split(versions.install(extra)) == ["pip", "install", *versions.EXTRAS[extra]]


def test_the_readme_lists_the_extras_for_users():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [extra for extra in versions.EXTRAS if f"`{extra}`" not in text and f"[{extra}]'" not in text] == []


def test_commands_quote_what_a_shell_would_read():
    assert versions.install("numba>=0.65") == "pip install 'numba>=0.65'"
    assert versions.install("dask") == "pip install 'dask[array]' distributed"


def test_commands_are_made_in_one_place():
    found = []
    for path in (ROOT / "irad").rglob("*.py"):
        if "pip install" not in (source := path.read_text(encoding="utf-8")):
            continue
        tree = ast.parse(source)  # docstrings are for readers of the reference
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in docstrings)
        found += [f"{path}:{text.lineno}" for text in texts if "pip install" in str(text.value)]
    assert found == []


BRIDGES = {"torch": "torch", "jax": "jax", "pytensor": "pytensor", "dask": "dask", "ipopt": "cyipopt", "scipy": "scipy"}


@pytest.mark.parametrize("bridge", BRIDGES)
def test_a_bridge_without_its_partner_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch, bridge: str):
    monkeypatch.delitem(sys.modules, f"irad.interop.{bridge}", raising=False)
    monkeypatch.setitem(sys.modules, BRIDGES[bridge], None)
    with pytest.raises(ModuleNotFoundError, match=BRIDGES[bridge]) as caught:
        importlib.import_module(f"irad.interop.{bridge}")
    assert caught.value.__notes__ == [f"To install what irad needs here: {versions.install(bridge)}"]
