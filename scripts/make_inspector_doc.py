"""Writes the output of the commands in docs/inspector.md; `pytest tests/report` checks that it is current."""

from __future__ import annotations

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.report.document import PATH, ROOT, document

if __name__ == "__main__":
    os.chdir(ROOT)
    PATH.write_text(document(PATH.read_text(encoding="utf-8")), encoding="utf-8")
