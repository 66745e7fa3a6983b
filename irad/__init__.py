"""irad: reverse-mode automatic differentiation of what Numba compiles, on LLVM IR.

The public names stand in the stub beside this file, and load on first use, so that ``import irad.ir`` does not start
Numba.
"""

from __future__ import annotations

from importlib import import_module

from irad.lazy import LazyNames

__version__ = "0.1.0"

_NAMES = LazyNames(__name__, __file__)
__all__ = sorted([*_NAMES.homes, "__version__"])
__dir__ = _NAMES.listed


def __getattr__(name: str) -> object:
    if _NAMES.homes.get(name, "").startswith("irad.api."):
        import_module("irad.backend.machine").check_machine()  # before anything that is made for such machines
        import_module("irad.backend.compat").check_versions()
    return _NAMES.load(name)
