"""irad: automatic differentiation of what Numba compiles, on LLVM IR.

The public names stand in the stub beside this file, and load on first use, so that ``import irad.ir`` does not start
Numba.
"""

from __future__ import annotations

from pathlib import Path

from irad.lazy import offer

__version__ = "0.1.0"

_HERE = Path(__file__).parent
_NAMES = offer(__name__, _HERE)
for _package in ("rules", "data"):  # what users find there is defined in irad.api, above these packages
    offer(f"{__name__}.{_package}", _HERE / _package)
__all__ = sorted([*_NAMES.homes, "__version__"])
__dir__ = _NAMES.listed


def __getattr__(name: str) -> object:
    if _NAMES.homes.get(name, "").startswith(("irad.api.", "irad.report.")):
        from irad.backend import compat, machine

        machine.check_machine()  # before anything that is made for such machines
        compat.check_versions()
    return _NAMES.load(name)
