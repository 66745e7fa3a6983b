"""Writes docs/support.md from the catalogue in tests/support, which `pytest tests/support` checks."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.table import PATH, table

if __name__ == "__main__":
    PATH.write_text(table())
