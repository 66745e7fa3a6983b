"""The installed packages that provide `numba.cuda`."""

from __future__ import annotations

import importlib

from numba.core import config

from irad.errors import BackendError
from irad.versions import install

_REMEDY = f"(a) {install('cuda13')}, or with older drivers {install('cuda12')}, or (b) see what irad doctor finds"


def check_packages() -> None:
    """Checks that kernels can be compiled: the simulator has no compiler.

    Raises:
        BackendError: `numba.cuda` cannot be imported, or is the simulator.
    """
    if config.ENABLE_CUDASIM:
        raise BackendError(
            "Numba simulates CUDA in this process",
            "unset NUMBA_ENABLE_CUDASIM; irad.cuda.executor() runs kernels without a GPU, too",
            "the simulator runs kernels as Python, and irad differentiates only compiled code",
        )
    try:
        importlib.import_module("numba.cuda")
    except Exception as error:  # a package looks for libraries as it is imported, and fails in its own ways
        raise BackendError(
            f"numba.cuda cannot be imported: {error}",
            _REMEDY,
            "kernels are compiled with Numba's CUDA target, which is a part of Numba or the package numba-cuda",
        ) from error
