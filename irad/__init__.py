"""irad: reverse-mode automatic differentiation of what Numba compiles, on LLVM IR.

The public names load on first use, so that ``import irad.ir`` does not start Numba.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irad import rules, testing
    from irad.api.annotate import (
        Active,
        Const,
        Duplicated,
        DuplicatedNoNeed,
        MixedDuplicated,
        Reverse,
        ReverseWithPrimal,
    )
    from irad.api.autodiff import autodiff
    from irad.api.check import CheckReport, check
    from irad.api.grad import grad, value_and_grad, value_and_grad_into
    from irad.api.jit import jit
    from irad.api.shadow import shadow_like
    from irad.api.tape import TapeReport, tape_report
    from irad.api.vjp import vjp
    from irad.errors import (
        ActivityError,
        BackendError,
        BoundsError,
        ChangedBufferError,
        ChangedBufferWarning,
        ChangedProgramError,
        InternalError,
        IradError,
        NonFiniteError,
        NoRuleError,
        ParseError,
        PlanError,
        RuleError,
        SignatureError,
        TapeLimitError,
        TieWarning,
        UnsupportedError,
        UnsupportedProgram,
        UntestedVersionWarning,
    )
    from irad.options import Options
    from irad.report.inspection import Inspection, inspect

__version__ = "0.1.0"

__all__ = [
    "Active",
    "ActivityError",
    "BackendError",
    "BoundsError",
    "ChangedBufferError",
    "ChangedBufferWarning",
    "ChangedProgramError",
    "CheckReport",
    "Const",
    "Duplicated",
    "DuplicatedNoNeed",
    "Inspection",
    "InternalError",
    "IradError",
    "MixedDuplicated",
    "NoRuleError",
    "NonFiniteError",
    "Options",
    "ParseError",
    "PlanError",
    "Reverse",
    "ReverseWithPrimal",
    "RuleError",
    "SignatureError",
    "TapeLimitError",
    "TapeReport",
    "TieWarning",
    "UnsupportedError",
    "UnsupportedProgram",
    "UntestedVersionWarning",
    "__version__",
    "autodiff",
    "check",
    "grad",
    "inspect",
    "jit",
    "rules",
    "shadow_like",
    "tape_report",
    "testing",
    "value_and_grad",
    "value_and_grad_into",
    "vjp",
]

_PACKAGES = ("rules", "testing")


def _home(name: str) -> str:
    if name == "Options":
        return "irad.options"
    if name in ("Inspection", "inspect"):
        return "irad.report.inspection"
    return "irad.errors" if name.endswith(("Error", "Program", "Warning")) else "irad.api"


_MODULES = ("rules", "testing")


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return import_module(f"irad.{name}")
    if name not in __all__:
        raise AttributeError(f"module 'irad' has no attribute {name!r}", name=name, obj=sys.modules[__name__])
    if name in _PACKAGES:
        return import_module(f"irad.{name}")
    home = _home(name)
    if home == "irad.api":
        import_module("irad.backend.machine").check_machine()  # before anything that is made for such machines
        import_module("irad.backend.compat").check_versions()
    value: object = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
