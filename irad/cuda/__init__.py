"""Derivatives of CUDA kernels, and kernels without a GPU. See README.md.

The public names stand in the stub beside this file, and load on first use; `numba.cuda` is imported then.
"""

from __future__ import annotations

import sys
from pathlib import Path

from irad.lazy import LazyNames
from irad.options import uses_cuda_executor

_NAMES = LazyNames(__name__, Path(__file__).with_suffix(".pyi"))
__all__ = sorted(_NAMES.origins)
__dir__ = _NAMES.listed


def __getattr__(name: str) -> object:
    if name in _NAMES.origins:
        _install()
    return _NAMES.load(name)


def _install() -> None:
    from irad.cuda import interception  # imports numba.cuda, which takes half a second

    interception.install()


if uses_cuda_executor() or "numba.cuda" in sys.modules:
    _install()  # kernels with signatures may come next, which Numba would compile for a device
