"""The name in a module that was probably meant."""

from __future__ import annotations

import difflib
import sys
from typing import Final

_SHORT: Final = {"numpy": "np"}


def called(module: str) -> str:
    """What users call a module: ``np`` for numpy."""
    top, dot, rest = module.partition(".")
    return f"{_SHORT.get(top, top)}{dot}{rest}"


def correction(module: str, name: str) -> str:
    """A remedy for a name that a module does not have."""
    public = [each for each in dir(sys.modules.get(module)) if not each.startswith("_")]
    close = difflib.get_close_matches(name, public, n=1)
    return f"correct the name: did you mean {called(module)}.{close[0]}?" if close else "correct the name"
