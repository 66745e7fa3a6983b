"""Writes docs/rules.md from the registry of built-in rules; `pytest tests/rules` checks that it is current."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.rules.table import PATH, table

if __name__ == "__main__":
    PATH.write_text(table(), encoding="utf-8")
