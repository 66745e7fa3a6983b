"""Writes what the examples of a guide print below them: python scripts/make_outputs.py docs/tutorial.md …"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from tests.guides import GUIDES, with_outputs  # noqa: E402  # found by the path above

for guide in sys.argv[1:] or GUIDES:
    with tempfile.TemporaryDirectory() as folder:
        (ROOT / guide).write_text(with_outputs(guide, Path(folder)), encoding="utf-8")
