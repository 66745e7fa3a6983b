"""One process: cases of the catalogues in tests/programs, checked with guard pages around all memory.

    python -m tests.robustness.guarded test_arrays:sums test_calls:helper-1

prints a line of JSON before and after each case, so that who reads along knows which one ended the process.
"""

from __future__ import annotations

import importlib
import json
import sys
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.tools import guard
from tests.tools.catalogue import Case

ROOT: Final = Path(__file__).parents[2]


def cases(module: str) -> Iterator[Case]:
    """The catalogue of a file in tests/programs; none has two cases of one name."""
    yield from getattr(importlib.import_module(f"tests.programs.{module}"), "PROGRAMS", ())


def modules() -> list[str]:
    """The files with catalogues."""
    programs = ROOT / "tests" / "programs"
    return sorted(".".join(path.relative_to(programs).with_suffix("").parts) for path in programs.rglob("test_*.py"))


def main(*names: str) -> None:
    """Check the cases of these names."""
    warnings.simplefilter("ignore")
    guard.install()
    for name in names:
        module, _, wanted = name.partition(":")
        case = next(case for case in cases(module) if case.name == wanted)
        print(json.dumps({"begun": name}), flush=True)
        try:
            case.check()
            outcome = ""
        except Exception:  # whatever goes wrong is the outcome
            outcome = traceback.format_exc()
        print(json.dumps({"ended": name, "outcome": outcome}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
