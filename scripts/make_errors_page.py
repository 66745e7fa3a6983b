"""Writes what irad says of the wrong programs of tests/errors, and docs/errors.md; `pytest tests/errors` compares."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.errors.catalogue import normalised, outcome, programs
from tests.errors.page import PAGE, page

if __name__ == "__main__":
    for program in programs():
        program.golden.parent.mkdir(parents=True, exist_ok=True)
        program.golden.write_text(normalised(str(outcome(program)[1])) + "\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
