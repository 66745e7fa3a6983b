"""What all compiled code depends on: versions, the sources of irad, the processor, settings."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from numba.core import config

from irad.backend import vector_math
from irad.frontend.numba.target import target_context

_FORMAT: Final = 1
_PACKAGES: Final = ("numba", "llvmlite", "numpy")
_SETTINGS: Final = (
    "OPT",
    "LOOP_VECTORIZE",
    "SLP_VECTORIZE",
    "BOUNDSCHECK",
    "DEBUGINFO_DEFAULT",
    "USING_SVML",
    "ENABLE_AVX",
    "LLVM_REFPRUNE_PASS",
    "LLVM_REFPRUNE_FLAGS",
    "THREADING_LAYER",
    "DEBUG_NRT",
    "NRT_STATS",
)


def surroundings() -> tuple[str, ...]:
    """Texts that are equal where the same function is compiled to the same code."""
    settings = (f"{name}={getattr(config, name, None)}" for name in _SETTINGS)
    variables = (f"{name}={os.environ[name]}" for name in sorted(os.environ) if name.startswith("IRAD_"))
    mine = (each for each in variables if not each.startswith(("IRAD_CACHE=", "IRAD_ERRORS=")))
    codegen: Any = target_context().codegen()
    vectors = f"vector_math={vector_math.is_loaded()}"
    return (*_versions(), *map(str, codegen.magic_tuple()), vectors, *settings, *mine)


def digest_of(words: Iterable[str]) -> str:
    """A digest of a list of texts."""
    return hashlib.sha256("\0".join(f"{len(word)}:{word}" for word in words).encode()).hexdigest()


@cache
def _versions() -> tuple[str, ...]:
    packages = (f"{name} {sys.modules[name].__version__}" for name in _PACKAGES)
    return (str(_FORMAT), sys.version, *packages, f"scipy {_version_of_scipy()}", _stamp_of_irad())


def _version_of_scipy() -> str:
    """By its metadata, a few milliseconds; to import it would take a quarter of a second."""
    try:
        return version("scipy")
    except PackageNotFoundError:
        return "none"


def _stamp_of_irad() -> str:
    """Names, sizes and times of irad's files: a changed pass or rule changes it, whatever the version says."""
    found = hashlib.sha256()
    folders = [str(Path(__file__).parents[2])]
    for folder in folders:  # grows
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda each: each.name):
                if entry.is_dir():
                    folders += [entry.path] if entry.name != "__pycache__" else []
                elif entry.name.endswith((".py", ".ll")):
                    status = entry.stat()
                    found.update(f"{entry.name} {status.st_size} {status.st_mtime_ns};".encode())
    return found.hexdigest()
