"""NVIDIA's tools are found where they are installed, and their absence says what to install."""

from __future__ import annotations

import pytest

from irad.backend.cuda import toolkit
from irad.errors import BackendError


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """A machine without NVIDIA's software."""
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(toolkit, "find_spec", lambda name: None)
    monkeypatch.setattr(toolkit.sys, "prefix", str(tmp_path / "python"))
    monkeypatch.setattr(toolkit, "_USUAL", tmp_path / "usual")
    return tmp_path


def install(path):
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("variable", ["CUDA_HOME", "CUDA_PATH"])
def test_the_environment_is_asked_first(bare, monkeypatch, variable):
    install(bare / "usual/bin/ptxas")
    wanted = install(bare / "mine/bin/ptxas")
    monkeypatch.setenv(variable, str(bare / "mine"))
    assert toolkit.find_tool("ptxas") == wanted


@pytest.mark.parametrize("place", ["usual", "python"])
def test_usual_places(bare, place):
    wanted = install(bare / place / "nvvm/libdevice/libdevice.10.bc")
    assert toolkit.find_libdevice() == wanted


def test_the_path(bare, monkeypatch):
    wanted = install(bare / "tools/ptxas")
    monkeypatch.setenv("PATH", str(wanted.parent))
    assert toolkit.find_tool("ptxas") == wanted


def test_a_file_that_cannot_be_run_is_no_tool(bare):
    install(bare / "usual/bin/ptxas").chmod(0o644)
    with pytest.raises(BackendError, match="ptxas is not on this machine"):
        toolkit.find_tool("ptxas")


@pytest.mark.parametrize(
    ("look", "package"),
    [
        (toolkit.find_libdevice, "nvidia-nvvm"),
        (lambda: toolkit.find_tool("ptxas"), "nvidia-cuda-nvcc"),
        (lambda: toolkit.find_tool("nvdisasm"), "nvidia-cuda-nvdisasm"),
    ],
)
def test_what_is_missing_says_what_to_install(bare, look, package):
    with pytest.raises(BackendError, match=rf"(?s)is not on this machine.*pip install {package}"):
        look()
