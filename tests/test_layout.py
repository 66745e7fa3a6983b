"""The three folders are one package: the links exist and the wheel holds every module."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINKED = ("passes", "rules")


def files_of(folder: str) -> set[str]:
    """Files of a top-level folder under their installed names, Python modules and package data alike."""
    prefix = Path() if folder == "irad" else Path("irad")
    kinds = (".py", ".html", ".css", ".js")
    found = (path for path in (ROOT / folder).rglob("*") if path.suffix in kinds or path.name == "py.typed")
    return {str(prefix / path.relative_to(ROOT)) for path in found}


@pytest.mark.parametrize("name", LINKED)
def test_the_link_is_relative_and_points_to_the_folder(name: str):
    link = ROOT / "irad" / name
    assert link.is_symlink()
    assert os.readlink(link) == f"../{name}"
    assert (link / "__init__.py").samefile(ROOT / name / "__init__.py")


@pytest.mark.parametrize("folder", ["irad", *LINKED])
def test_every_folder_with_modules_is_a_package(folder: str):
    bare = {str(p.parent) for p in (ROOT / folder).rglob("*.py") if not (p.parent / "__init__.py").exists()}
    assert bare == set()


@pytest.fixture(scope="module")
def wheel_contents(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names in a wheel that the build backend makes from a copy of the sources: no network, nothing left behind."""
    source = tmp_path_factory.mktemp("source")
    output = tmp_path_factory.mktemp("wheel")
    ignore = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for folder in ("irad", *LINKED):
        shutil.copytree(ROOT / folder, source / folder, symlinks=True, ignore=ignore)
    for file in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / file, source / file)
    build = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", build, str(output)], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [wheel] = output.glob("irad-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_every_module(wheel_contents: set[str]):
    wanted = set().union(*(files_of(folder) for folder in ("irad", *LINKED)))
    assert {"irad/__init__.py", "irad/py.typed", "irad/passes/__init__.py", "irad/rules/__init__.py"} <= wanted
    assert wanted - wheel_contents == set()


def test_the_wheel_holds_nothing_else(wheel_contents: set[str]):
    tops = {name.split("/")[0] for name in wheel_contents}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"irad"}


def test_the_wheel_holds_the_licence(wheel_contents: set[str]):
    assert any(name.endswith("LICENSE") for name in wheel_contents)
