"""The name in a module that was probably meant."""

from __future__ import annotations

import difflib
import sys
from types import BuiltinFunctionType
from typing import Final

_SHORT: Final = {"numpy": "np"}


def called(module: str) -> str:
    """What users call a module: ``np`` for numpy."""
    top, dot, rest = module.partition(".")
    return f"{_SHORT.get(top, top)}{dot}{rest}"


def spelled(function: object) -> str:
    """What users write for a function: ``np.sin``, ``math.sin``, ``f``."""
    name = str(getattr(function, "__name__", "f"))
    if getattr(sys.modules.get("numpy"), name, None) is function:
        return f"np.{name}"
    module = str(getattr(function, "__module__", None) or "").lstrip("_")
    is_library = isinstance(function, BuiltinFunctionType) and module != "builtins" and "." not in module
    return f"{module}.{name}" if is_library and module else name


def correction(module: str, name: str) -> str:
    """A remedy for a name that a module does not have."""
    public = [each for each in dir(sys.modules.get(module)) if not each.startswith("_")]
    close = difflib.get_close_matches(name, public, n=1)
    return f"correct the name: did you mean {called(module)}.{close[0]}?" if close else "correct the name"
