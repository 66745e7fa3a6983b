"""A GPU that is a stand-in: its driver runs kernels on the executor, its memory is that of the host."""

from __future__ import annotations

from typing import Any

import pytest

from irad.backend.cuda.ptx import LaunchBounds
from irad.cuda.devices import current, driver, gpu
from tests.cuda.host.fake_driver import FakeLibrary


class Foreign:
    """An array of some library, of which only the interface is known; its memory is the host's."""

    def __init__(self, array: Any) -> None:
        self.array = array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return {**self.array.__array_interface__, "version": 3}


class _Interface:
    """What Numba would make of an array's interface."""

    def __init__(self, view: Any, keeps: Any) -> None:
        self.keeps = view, keeps
        self.__cuda_array_interface__ = view.__cuda_array_interface__


def install(monkeypatch: pytest.MonkeyPatch) -> FakeLibrary:
    """Puts it in the place of the GPU of this machine."""
    found = FakeLibrary()
    device = gpu.GpuDevice(driver.Driver(found))
    compile_ptx = gpu.compile_ptx

    def compiled(module: Any, architecture: str, *, bounds: LaunchBounds) -> str:
        assert architecture == "sm_80"
        found.loaded = module
        return compile_ptx(module, architecture, bounds=bounds)

    monkeypatch.setattr(gpu, "compile_ptx", compiled)
    monkeypatch.setattr(gpu.GpuDevice, "array", lambda self, view, keeps=None: _Interface(view, keeps))
    monkeypatch.setattr(current, "gpu", lambda: device)
    return found
