"""Where NVIDIA's tools are on this machine: libdevice and ptxas.

Looked for in this order: the directory that the environment names (``CUDA_HOME``, ``CUDA_PATH``), NVIDIA's packages
from PyPI, a conda environment, the path, the usual place. Nothing of them is imported.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from irad.errors import BackendError

_VARIABLES: Final = ("CUDA_HOME", "CUDA_PATH")
_USUAL: Final = Path("/usr/local/cuda")
_LIBDEVICE: Final = "nvvm/libdevice/libdevice.10.bc"
_WHEELS: Final = ("cu13", "cu12", "cuda_nvcc")
"""Folders of the namespace package ``nvidia`` that look like a toolkit."""


def find_libdevice() -> Path:
    """NVIDIA's library of mathematics, LLVM bitcode.

    Raises:
        BackendError: it is not there; says what to install.
    """
    for root in _roots():
        if (found := root / _LIBDEVICE).is_file():
            return found
    raise _missing("libdevice, NVIDIA's library of mathematical functions,", "nvidia-nvvm")


def find_tool(name: str) -> Path:
    """A program of the toolkit.

    Args:
        name: ``ptxas``, ``nvdisasm``.

    Raises:
        BackendError: it is not there; says what to install.
    """
    for root in _roots():
        if os.access(found := root / "bin" / name, os.X_OK):
            return found
    if on_path := shutil.which(name):
        return Path(on_path)
    raise _missing(f"the program {name}", {"nvdisasm": "nvidia-cuda-nvdisasm"}.get(name, "nvidia-cuda-nvcc"))


def _roots() -> Iterator[Path]:
    """Directories that look like an installed toolkit."""
    yield from (Path(found) for variable in _VARIABLES if (found := os.environ.get(variable)))
    if (package := find_spec("nvidia")) is not None and package.submodule_search_locations is not None:
        for place in package.submodule_search_locations:
            yield from (Path(place) / folder for folder in _WHEELS)
    yield Path(sys.prefix)  # where conda's packages are
    yield _USUAL


def _missing(what: str, package: str) -> BackendError:
    return BackendError(
        f"{what} is not on this machine",
        f"(a) pip install {package}, or (b) install the CUDA toolkit and let CUDA_HOME name its directory",
        "PTX is made without it only for kernels that call no mathematical function"
        if package == "nvidia-nvvm"
        else None,
    )
