"""Reports on derivatives: what the tool did to a function, and why. See README.md.

The public names load on first use, so that the model of a report can be had without Numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from irad.report.inspection import Inspection, inspect

__all__ = ["Inspection", "inspect"]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'irad.report' has no attribute {name!r}")
    return getattr(import_module("irad.report.inspection"), name)
