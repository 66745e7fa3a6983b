"""The three folders are one package: links exist; the sdist holds the repository, the wheel every module, and it works.

It is installed into an environment of its own and used there, from another folder, where no compiler is found. Nothing
comes from the network: Numba and the other requirements are those of the tests.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from irad import __version__
from irad.versions import EXTRAS, install

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


FOLDERS = (".ci", ".github", "bench", "docs", "irad", *LINKED, "scripts", "tests")
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
def sources(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another copy, to build in."""
    copy = tmp_path_factory.mktemp("sources") / "irad"
    return Path(shutil.copytree(repository, copy, symlinks=True))


@pytest.fixture(scope="module")
def unpacked(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution, unpacked."""
    folder = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(build("sdist", sources, tmp_path_factory.mktemp("sdist"))) as archive:
        archive.extractall(folder, filter="data")
    [top] = folder.iterdir()
    return top


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel that is made of the source distribution."""
    return build("wheel", unpacked, tmp_path_factory.mktemp("wheel"))


def contents(wheel: Path) -> dict[str, int]:
    """Names in a wheel, with check sums."""
    with zipfile.ZipFile(wheel) as archive:
        return {entry.filename: entry.CRC for entry in archive.infolist()}


@pytest.fixture(scope="module")
def wheel_contents(wheel: Path) -> set[str]:
    return set(contents(wheel))


def test_the_source_distribution_holds_the_whole_repository(repository: Path, unpacked: Path):
    wanted = files(repository)
    assert {
        "CONTRIBUTING.md",
        "docs/contracts.md",
        "tests/conftest.py",
        "noxfile.py",
        ".ci/run",
        "SECURITY.md",
        "CITATION.cff",
    } <= wanted
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


def test_the_wheel_of_the_repository_is_the_same(sources: Path, wheel: Path, tmp_path: Path):
    assert contents(build("wheel", sources, tmp_path)) == contents(wheel)


def test_the_wheel_holds_nothing_else(wheel_contents: set[str]):
    tops = {name.split("/")[0] for name in wheel_contents}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"irad"}


def test_the_wheel_holds_the_licence(wheel_contents: set[str]):
    assert any(name.endswith("LICENSE") for name in wheel_contents)


# The wheel, installed.

MODEL = """
import irad

@irad.jit(cache=True)
def energy(x, stiffness):
    total = 0.0
    for i in range(x.size - 1):
        stretch = x[i + 1] - x[i]
        if stretch > 0.0:
            total += 0.5 * stiffness * stretch**2
    return total
"""
PROGRAM = """
import pathlib, sys
import numpy as np
import irad, model

slope = irad.grad(model.energy)
assert slope(np.array([0.0, 1.0, 3.0, 2.0]), 2.0).tolist() == [-2.0, -2.0, 4.0, 0.0]
print(pathlib.Path(irad.__file__).parent)
print(sum(slope.stats.cache_hits.values()), "irad.rules.builtin" in sys.modules)
"""
EXPORT = """
import irad, model

signature = "(float64[::1], float64)"
irad.export(irad.grad(model.energy), signature, "energy.o", name="energy")
try:
    irad.export(irad.grad(model.energy), signature, "libenergy.so", name="energy")
except irad.BackendError as error:
    print(error.problem)
"""


def pip(environment: Path, *arguments: str) -> str:
    """Output of pip, that of the tests, which installs into another environment, from the disk."""
    command = (sys.executable, "-m", "pip", "--isolated", "--disable-pip-version-check")
    options = ("--python", str(environment / "bin" / "python"), "install", "--no-index", "--no-compile")
    done = subprocess.run([*command, *options, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with the wheel, and programs; what irad requires is found where the tests have it."""
    if find_spec("pip") is None:
        pytest.skip("no pip in the environment of the tests")
    folder: Path = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    pip(folder, "--no-deps", str(wheel))
    specs = (find_spec(name) for name in ("click", "jinja2", "llvmlite", "numba", "numpy", "rich"))
    homes = {str(Path(spec.origin).parents[1]) for spec in specs if spec is not None and spec.origin is not None}
    [packages] = folder.glob("lib/python*/site-packages")
    (packages / "requirements.pth").write_text("\n".join(sorted(homes)))
    for name, text in {"model.py": MODEL, "program.py": PROGRAM, "export.py": EXPORT}.items():
        (folder / name).write_text(text)
    (folder / "no_programs").mkdir()
    return folder


def run(environment: Path, program: str, *arguments: str) -> str:
    """Output of a program of the environment, where no other one is found and no setting of the tests holds."""
    settings = {name: value for name, value in os.environ.items() if not name.startswith(("IRAD_", "NUMBA_", "PYTHON"))}
    settings |= {"PATH": str(environment / "no_programs"), "COLUMNS": "80"}
    command = [environment / "bin" / program, *arguments]
    done = subprocess.run(command, cwd=environment, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_wheel_works_where_there_is_no_compiler(environment: Path):
    assert run(environment, "irad", "--version") == f"irad, version {__version__}\n"
    [installed] = environment.glob("lib/python*/site-packages/irad")
    assert not (installed / "passes").is_symlink()
    assert run(environment, "python", "program.py").splitlines() == [str(installed), "0 True"]
    assert run(environment, "python", "program.py").splitlines() == [str(installed), "1 False"]


def test_the_tools_of_the_wheel_work_where_there_is_no_compiler(environment: Path):
    assert "irad works here." in run(environment, "irad", "doctor")
    arguments = ("--args", "np.ones(4), 2.0", "--html", "report.html")
    run(environment, "irad", "inspect", "model.py:energy", *arguments)
    assert "stretch = x[i + 1] - x[i]" in (environment / "report.html").read_text(encoding="utf-8")
    assert run(environment, "python", "export.py").startswith("there is no linker")
    assert (environment / "energy.o").stat().st_size > 0


def stand_ins(requirements: list[Requirement], folder: Path) -> None:
    """Writes empty wheels of packages, of the oldest versions that are asked for."""
    extras = "".join(f"Provides-Extra: {extra}\n" for each in requirements for extra in each.extras)
    for each in requirements:
        version = next(iter(each.specifier)).version
        stem = f"{each.name.replace('-', '_')}-{version}"
        with zipfile.ZipFile(folder / f"{stem}-py3-none-any.whl", "w") as archive:
            written = f"Metadata-Version: 2.1\nName: {each.name}\nVersion: {version}\n{extras}"
            archive.writestr(f"{stem}.dist-info/METADATA", written)
            archive.writestr(
                f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            )
            archive.writestr(f"{stem}.dist-info/RECORD", "")


def test_extras_and_the_commands_of_messages_install_what_is_missing(environment: Path, unpacked: Path, tmp_path: Path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [Requirement(each) for extra in EXTRAS for each in project["optional-dependencies"][extra]]
    stand_ins(wanted, tmp_path)
    dry = ("--dry-run", "--find-links", str(tmp_path))
    extras = f"[{','.join(EXTRAS)}]"
    by_extra = pip(environment, *dry, f"irad{extras}")  # irad itself is found installed
    by_command = pip(environment, *dry, *(name for extra in EXTRAS for name in shlex.split(install(extra))[2:]))
    by_folder = pip(environment, *dry, "--no-build-isolation", f"{unpacked}{extras}")
    for output in (by_extra, by_command, by_folder):
        told = output.replace("Would install ", "already satisfied: ")
        assert [each.name for each in wanted if each.name not in told] == []
    assert f"irad-{__version__}" in by_folder.splitlines()[-1]
