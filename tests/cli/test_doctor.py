"""`irad doctor` tells what is there, what is missing, and fails where irad cannot work."""

from __future__ import annotations

import importlib
import importlib.metadata
import io
import json
import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

import irad
from irad.cli import main
from irad.cli.doctor import _show
from irad.report import doctor, doctor as environment
from irad.report.doctor import Fact, State, facts
from irad.versions import install


def test_the_table_names_what_matters(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "200")
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 0
    for words in ("irad", "llvmlite", "LLVM", "CPU features", "SVML", "cython_blas", "layer omp", "driver", "cache"):
        assert words in done.output
    assert "a derivative compiles and is right" in done.output
    assert done.output.rstrip().endswith("irad works here.")


@pytest.mark.parametrize("width", range(30, 120, 5))
def test_commands_are_not_broken(width: int):
    """They are copied from the terminal."""
    remedies = (
        ("layer tbb", "the layer that several Python threads may use at once: pip install tbb"),
        ("numba", "pip install 'numba>=0.65'"),
        ("SVML", "exp, sin, … in loops are computed number by number without it: pip install intel-cmplr-lib-rt"),
        ("driver", f"for a GPU: {install('cuda13')}, or with older drivers {install('cuda12')}"),
    )
    facts = [Fact("", what, "not installed", State.MISSING, remedy) for what, remedy in remedies]
    text = io.StringIO()
    _show(Console(file=text, width=width), facts)
    lines = [line.strip() for line in text.getvalue().splitlines()]
    for command in ("pip install tbb", "pip install 'numba>=0.65'"):
        assert any(line.endswith(command) for line in lines)
    assert any(line.endswith("pip install intel-cmplr-lib-rt") for line in lines)
    assert any(install("cuda13") in line for line in lines)
    assert any(line.endswith(install("cuda12")) for line in lines)
    assert max(map(len, lines)) <= max(width, len(install("cuda12")) + 2)


def test_the_table_has_room_on_a_terminal(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = CliRunner().invoke(main, ["doctor"]).output.splitlines()
    assert max(map(len, lines)) <= 80
    assert any("scipy.linalg.cython_blas" in line for line in lines)


def test_json():
    done = CliRunner().invoke(main, ["doctor", "--json"])
    assert done.exit_code == 0
    found = json.loads(done.output)
    assert found["healthy"] is True
    assert "Linux" in found["platforms"]
    by_name = {fact["what"]: fact for fact in found["facts"]}
    assert by_name["numba"]["value"] == importlib.metadata.version("numba")
    assert by_name["numba"]["state"] == "ok"


def hide(monkeypatch: pytest.MonkeyPatch, *modules: str) -> None:
    """Make modules and distributions as if they were not installed."""
    honest_import, honest_version = importlib.import_module, importlib.metadata.version

    def import_module(name: str) -> Any:
        if name in modules:
            raise ModuleNotFoundError(f"No module named {name!r}")
        return honest_import(name)

    def version(name: str) -> str:
        if name in modules:
            raise importlib.metadata.PackageNotFoundError(name)
        return honest_version(name)

    monkeypatch.setattr(environment.importlib, "import_module", import_module)
    monkeypatch.setattr(environment.importlib.metadata, "version", version)


def test_what_is_optional_is_missing_with_its_remedy(monkeypatch: pytest.MonkeyPatch):
    hide(monkeypatch, "scipy", "scipy.linalg.cython_blas", "numba.np.ufunc.omppool")
    done = CliRunner().invoke(main, ["doctor", "--json"])
    assert done.exit_code == 0
    by_name = {fact["what"]: fact for fact in json.loads(done.output)["facts"]}
    for name, remedy in (
        ("scipy", "pip install scipy"),
        ("scipy.linalg.cython_blas", "pip install scipy"),
        ("layer omp", "apt install libgomp1"),
    ):
        assert by_name[name]["state"] == "missing"
        assert remedy in by_name[name]["remedy"]


def test_without_numba_irad_is_broken(monkeypatch: pytest.MonkeyPatch):
    hide(monkeypatch, "numba", "numba.core.config")
    monkeypatch.setattr(irad, "grad", SimpleNamespace, raising=False)
    done = CliRunner().invoke(main, ["doctor"])
    assert done.exit_code == 1
    assert "pip install 'numba>=0.65'" in done.output
    assert "to fix before irad works" in done.output


def test_an_old_version_is_broken(monkeypatch: pytest.MonkeyPatch):
    honest = importlib.metadata.version
    monkeypatch.setattr(environment.importlib.metadata, "version", lambda n: "0.59.1" if n == "numba" else honest(n))
    [numba] = [fact for fact in facts() if fact.what == "numba"]
    assert (numba.state, numba.value) == (State.BROKEN, "0.59.1, older than 0.65")


@pytest.mark.parametrize(("package", "version"), [("numba", "0.99.0"), ("python", "3.99.1")])
def test_a_version_that_was_not_tested_is_noted(monkeypatch: pytest.MonkeyPatch, package: str, version: str):
    honest = importlib.metadata.version
    monkeypatch.setattr(environment.importlib.metadata, "version", lambda n: version if n == package else honest(n))
    if package == "python":
        monkeypatch.setattr(environment.platform, "python_version", lambda: version)
    [fact] = [fact for fact in environment._versions() if fact.what.lower() == package]
    assert (fact.state, version in fact.value) == (State.NOTE, True)
    assert fact.value.endswith("not tested")
    assert fact.remedy.startswith("irad was tested with ")


def test_a_wrong_derivative_is_broken(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(irad, "grad", lambda f: lambda x: 11.0, raising=False)
    done = CliRunner().invoke(main, ["doctor", "--json"])
    assert done.exit_code == 1
    [test] = [fact for fact in json.loads(done.output)["facts"] if fact["what"] == "self-test"]
    assert test["state"] == "broken"
    assert test["value"] == "d/dx x³ at 2 is 11.0, not 12"


@pytest.mark.parametrize(("platform", "order"), [("win32", "little"), ("linux", "big")])
def test_platforms_that_are_not_supported(monkeypatch: pytest.MonkeyPatch, platform: str, order: str):
    monkeypatch.setattr(environment, "sys", SimpleNamespace(platform=platform, byteorder=order))
    [fact] = [fact for fact in environment._platform() if fact.what == "platform"]
    assert fact.state is State.BROKEN
    assert "Windows is not supported" in fact.remedy


def test_a_cache_folder_and_its_size(monkeypatch: pytest.MonkeyPatch, tmp_path: Any):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "f.nbc").write_bytes(b"x" * 1_500_000)
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path))
    (tmp_path / "irad.f.irad").write_bytes(b"x" * 200_000)
    monkeypatch.delenv("IRAD_CACHE", raising=False)
    folder, numba, irad = environment._cache()
    assert str(tmp_path) in folder.value
    assert numba.value.startswith("1.5 MB in 1 files")
    assert "0.2 MB in 1 files" in irad.value
    assert "on request" in irad.value
    monkeypatch.setenv("IRAD_CACHE", "1")
    *_, irad = environment._cache()
    assert "on for all" in irad.value


def cuda_by_name() -> dict[str, Fact]:
    return {fact.what: fact for fact in doctor.cuda_facts()}


def no_toolkit(*_: str) -> Any:
    raise irad.BackendError("it is not on this machine", "install it", "it is needed")


def test_without_a_driver_nothing_of_cuda_is_missing(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "loads", lambda library: False)
    monkeypatch.setattr(doctor, "find_libdevice", no_toolkit)
    monkeypatch.setattr(doctor, "find_tool", no_toolkit)
    monkeypatch.setattr(doctor, "version_of", lambda package: None)
    found = cuda_by_name()
    assert {found[what].state for what in ("driver", "CuPy", "libdevice", "ptxas")} == {State.NOTE}
    assert "irad.cuda.executor()" in found["driver"].remedy
    assert (found["numba.cuda"].value, found["numba.cuda"].state) == ("Numba's own", State.GOOD)


def test_with_a_driver_what_is_missing_has_a_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "loads", lambda library: True)
    monkeypatch.setattr(doctor, "_driver_and_devices", lambda: "for CUDA 13.0, 1 devices")
    monkeypatch.setattr(doctor, "find_libdevice", no_toolkit)
    monkeypatch.setattr(doctor, "find_tool", lambda name: f"/opt/{name}")
    monkeypatch.setattr(doctor, "version_of", {"cupy-cuda12x": "13.6.0"}.get)
    found = cuda_by_name()
    assert (found["driver"].state, found["CuPy"].value) == (State.GOOD, "cupy-cuda12x 13.6.0")
    assert (found["ptxas"].value, found["ptxas"].state) == ("/opt/ptxas", State.GOOD)
    assert found["libdevice"].state is State.MISSING
    assert "pip install cupy-cuda13x 'numba-cuda[cu13]' nvidia-cuda-nvcc" in found["libdevice"].remedy


def test_numba_cuda_that_is_old_or_cannot_be_imported(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(doctor, "version_of", {"numba-cuda": "0.19.0"}.get)
    assert cuda_by_name()["numba.cuda"].value == "numba-cuda 0.19.0, older than 0.24"

    def fails(name: str) -> Any:
        raise RuntimeError("libcudart.so was not found")

    monkeypatch.setattr(importlib, "import_module", fails)
    fact = cuda_by_name()["numba.cuda"]
    assert fact.state is State.MISSING
    assert "libcudart.so was not found" in fact.value


def test_help_does_not_start_numba():
    code = (
        "import sys\nfrom irad.cli import main\n"
        "try:\n    main(['doctor', '--help'])\nexcept SystemExit:\n    sys.exit('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "irad doctor --json" in done.stdout
