"""What of CUDA is on this machine, what it is for, and how to get what is missing."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from irad.backend.cuda.toolkit import find_libdevice, find_tool
from irad.errors import BackendError
from irad.report.installation.probe import Fact, State, imported, loads, version_of
from irad.versions import NUMBA_CUDA, install, numbers_of, spelled

GROUP: Final = "CUDA"
_CUPY: Final = ("cupy", "cupy-cuda12x", "cupy-cuda13x")
_EXTRA: Final = f"{install('cuda13')}, or with drivers older than 580 {install('cuda12')}"
_ON_THE_CPU: Final = "kernels and their derivatives run on the CPU, inside irad.cuda.executor()"


def cuda_facts() -> Iterator[Fact]:
    """The driver, the packages, the parts of the toolkit that irad calls; without a driver none of it is missing."""
    has_driver = loads("libcuda.so.1")
    if has_driver:
        yield Fact(GROUP, "driver", _driver_and_devices())
    else:
        yield Fact(GROUP, "driver", "none (no libcuda.so.1)", State.NOTE, f"{_ON_THE_CPU}; for a GPU: {_EXTRA}")
    yield _numba_cuda()
    cupy = ", ".join(f"{name} {version}" for name in _CUPY if (version := version_of(name)) is not None)
    for what, value, purpose in (
        ("CuPy", cupy, "arrays on the GPU, if you use its own"),
        ("libdevice", _found(find_libdevice), "mathematical functions in kernels on a GPU"),
        ("ptxas", _found(lambda: find_tool("ptxas")), "`irad inspect` counts registers with it"),
    ):
        if value:
            yield Fact(GROUP, what, value)
        elif has_driver:
            yield Fact(GROUP, what, "not found", State.MISSING, f"{purpose}: {_EXTRA}")
        else:
            yield Fact(GROUP, what, "not found", State.NOTE)


def _numba_cuda() -> Fact:
    """Which package `numba.cuda` is, and whether it can be imported."""
    version = version_of("numba-cuda")
    name = f"numba-cuda {version}" if version else "Numba's own"
    module, failure = imported("numba.cuda")
    if module is None:
        return Fact(GROUP, "numba.cuda", f"{name}: {failure}", State.MISSING, f"kernels are written with it: {_EXTRA}")
    if version and numbers_of(version) < NUMBA_CUDA:
        needed = spelled(NUMBA_CUDA)
        remedy = f"pip install 'numba-cuda>={needed}'"
        return Fact(GROUP, "numba.cuda", f"{name}, older than {needed}", State.MISSING, remedy)
    return Fact(GROUP, "numba.cuda", name)


def _found(find: Callable[[], Path]) -> str:
    """Where a part of the toolkit is; empty where it is missing."""
    try:
        return str(find())
    except BackendError:
        return ""


def _driver_and_devices() -> str:
    """Version and devices, as the driver itself says."""
    driver = ctypes.CDLL("libcuda.so.1")
    version, devices = ctypes.c_int(), ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    text = f"for CUDA {version.value // 1000}.{version.value % 1000 // 10}"
    status = driver.cuInit(0)
    if status:
        return f"{text}, no device can be used (cuInit gives {status})"
    driver.cuDeviceGetCount(ctypes.byref(devices))
    return f"{text}, {devices.value} devices{_device_names()}"


def _device_names() -> str:
    program = shutil.which("nvidia-smi")
    if program is None:
        return ""
    query = [program, "--query-gpu=name,driver_version", "--format=csv,noheader"]
    done = subprocess.run(query, capture_output=True, text=True, timeout=20, check=False)
    return f": {'; '.join(done.stdout.strip().splitlines())}" if done.returncode == 0 else ""
