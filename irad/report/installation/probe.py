"""What looking at an installation finds, and how it is looked at without taking a package for granted."""

from __future__ import annotations

import ctypes
import enum
import importlib
import importlib.metadata
from dataclasses import dataclass
from types import ModuleType
from typing import Any


class State(enum.Enum):
    """What a fact means for irad."""

    GOOD = "ok"
    NOTE = "note"
    MISSING = "missing"
    BROKEN = "broken"


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that was looked at.

    Attributes:
        group: what it belongs to.
        what: its name.
        value: what was found.
        state: `State.MISSING` for something that irad does not need, `State.BROKEN` for something that it does.
        remedy: how to get or mend it; for a note what it means.
    """

    group: str
    what: str
    value: str
    state: State = State.GOOD
    remedy: str = ""


def imported(name: str) -> tuple[Any, str]:
    """A module, or None and why it cannot be imported."""
    try:
        found: ModuleType | None = importlib.import_module(name)
    except (
        Exception
    ) as error:  # of packages that look for libraries as they are imported: whatever it is, it is the finding
        return None, str(error)
    return found, ""


def loads(library: str) -> bool:
    """Whether a shared library is found."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def version_of(distribution: str) -> str | None:
    """The version of an installed distribution, None where it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None
