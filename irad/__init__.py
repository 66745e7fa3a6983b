"""irad: automatic differentiation of what Numba compiles, on LLVM IR.

The public names stand in the stub beside this file, and load on first use, so that ``import irad.ir`` does not start
Numba, and the first gradient does not load Jacobians.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

from irad.lazy import offer

__version__ = "0.2.0"

_IN_COMPILED_CODE = {
    "irad.api.annotations": "irad.api.autodiff",
    "irad.api.structures.functions": "irad.api.structures.compiled",
    "irad.api.structures.space": "irad.api.structures.compiled",
}
"""Modules, and the modules that tell Numba how compiled code calls their functions; other modules do so themselves."""


def _loaded(home: str) -> None:
    """Lets compiled code call the functions of a module, from now on."""
    if home in _IN_COMPILED_CODE:
        import_module(_IN_COMPILED_CODE[home])
    if "irad.frontend.numba.target" in sys.modules:
        from irad.frontend.numba.target import refresh_if_compiling  # loads Numba, which `irad.errors` does not need

        refresh_if_compiling()  # Numba may have asked for the name itself, as it types a function


_HERE = Path(__file__).parent
_NAMES = offer(__name__, _HERE, _loaded)
for _package in ("rules", "data"):  # what users find there is defined in irad.api, above these packages
    offer(f"{__name__}.{_package}", _HERE / _package, _loaded)
__all__ = sorted([*_NAMES.origins, "__version__"])
__dir__ = _NAMES.listed


def __getattr__(name: str) -> object:
    if _NAMES.origins.get(name, "").startswith(("irad.api.", "irad.c_library.", "irad.report.")):
        from irad.backend import compat, machine

        machine.check_machine()  # before anything that is made for such machines
        compat.check_versions()
    return _NAMES.load(name)
