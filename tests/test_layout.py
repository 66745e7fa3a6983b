"""The three folders are one package: links exist; the sdist holds the repository, the wheel every module."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LINKED = ("passes", "rules")


def files_of(folder: str) -> set[str]:
    """Files of a top-level folder under their installed names, Python modules and package data alike."""
    prefix = Path() if folder == "irad" else Path("irad")
    kinds = (".py", ".html", ".css", ".js", ".ll")
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


FOLDERS = (".ci", "bench", "docs", "irad", *LINKED, "scripts", "tests")
GENERATED = shutil.ignore_patterns("__pycache__", "*.egg-info", "*.pyc", "results")
NOT_OURS = {"PKG-INFO", "setup.cfg", "irad_demo.png"}  # of a source distribution, of `irad demo`


def build(kind: str, source: Path, output: Path) -> Path:
    """A distribution that the build backend makes of a folder: no network, nothing left behind in this one."""
    code = f"import sys; from setuptools import build_meta; build_meta.build_{kind}(sys.argv[1])"
    done = subprocess.run([sys.executable, "-c", code, str(output)], cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    [built] = output.glob("irad-*")
    return built


def files(root: Path) -> set[str]:
    """All files and links."""
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_symlink() or path.is_file()}


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of it, for a build leaves files behind."""
    copy: Path = tmp_path_factory.mktemp("repository")
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, copy / folder, symlinks=True, ignore=GENERATED)
    for file in (".gitignore", *(p.name for p in ROOT.iterdir() if p.is_file() and p.name[0] != ".")):
        if file not in NOT_OURS:
            shutil.copy(ROOT / file, copy / file)
    return copy


@pytest.fixture(scope="module")
def unpacked(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked."""
    folder, copy = tmp_path_factory.mktemp("unpacked"), tmp_path_factory.mktemp("sources") / "irad"
    shutil.copytree(repository, copy, symlinks=True)
    with tarfile.open(build("sdist", copy, tmp_path_factory.mktemp("sdist"))) as archive:
        archive.extractall(folder, filter="data")
    [top] = folder.iterdir()
    return top


@pytest.fixture(scope="module")
def wheel_contents(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Names in a wheel that is made of the source distribution."""
    with zipfile.ZipFile(build("wheel", unpacked, tmp_path_factory.mktemp("wheel"))) as archive:
        return set(archive.namelist())


def test_the_source_distribution_holds_the_whole_repository(repository: Path, unpacked: Path):
    wanted = files(repository)
    assert {"CONTRIBUTING.md", "docs/contracts.md", "tests/conftest.py", "noxfile.py", ".ci/run"} <= wanted
    assert "irad/passes" in wanted
    assert wanted - files(unpacked) == set()


def test_the_tests_of_the_source_distribution_run(unpacked: Path):
    assert os.readlink(unpacked / "irad" / "passes") == "../passes"
    some = ("tests/test_layers.py", "tests/ir/test_cfg.py")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *some]
    environment = {**os.environ, "PYTHONPATH": str(unpacked)}
    done = subprocess.run(command, cwd=unpacked, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout


def test_the_wheel_holds_every_module(wheel_contents: set[str]):
    wanted = set().union(*(files_of(folder) for folder in ("irad", *LINKED)))
    assert {"irad/__init__.py", "irad/py.typed", "irad/passes/__init__.py", "irad/rules/__init__.py"} <= wanted
    assert wanted - wheel_contents == set()


def test_the_wheel_holds_nothing_else(wheel_contents: set[str]):
    tops = {name.split("/")[0] for name in wheel_contents}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"irad"}


def test_the_wheel_holds_the_licence(wheel_contents: set[str]):
    assert any(name.endswith("LICENSE") for name in wheel_contents)
