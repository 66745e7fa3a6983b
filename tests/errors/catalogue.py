"""The wrong programs, one file each, and what irad says of them.

A program has `wrong()`, which raises, and `mended()`, the same after the remedies, which does not. Many also have
`CHECKED`: the function, its arguments and ``argnums`` for which `irad.check` has to say the same.
"""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType

import irad

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
GOLDEN = HERE / "golden"


@dataclass(frozen=True)
class Program:
    """A wrong program: `kind` is its folder, `name` its file."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.name}"

    @property
    def path(self) -> Path:
        """The file of the program."""
        return PROGRAMS / self.kind / f"{self.name}.py"

    @property
    def golden(self) -> Path:
        """The file of what irad says."""
        return GOLDEN / self.kind / f"{self.name}.txt"

    def load(self) -> ModuleType:
        """The program as a fresh module."""
        spec = importlib.util.spec_from_file_location(self.name, self.path)
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[self.name] = importlib.util.module_from_spec(spec)  # Numba looks for it in recursions
        spec.loader.exec_module(module)
        return module


@cache
def outcome(program: Program) -> tuple[ModuleType, irad.IradError]:
    """The program, which has run, and what it raised."""
    module = program.load()
    try:
        module.wrong()
    except irad.IradError as error:
        return module, error
    raise AssertionError(f"{program} raises nothing")


def normalised(text: str) -> str:
    """A message without what differs from one machine to the other."""
    for kind in kinds():
        text = text.replace(f"{PROGRAMS / kind}/", "")
    return text


def kinds() -> list[str]:
    """The folders of programs, from what is met first to what is met last."""
    return ["calls", "activity", "unsupported", "compiler", "rules", "platform"]


def programs() -> list[Program]:
    """All wrong programs."""
    return [Program(kind, path.stem) for kind in kinds() for path in sorted((PROGRAMS / kind).glob("*.py"))]
