"""Writes what `irad COMMAND --help` prints into docs/reference/tools.md; tests/docs/test_reference.py compares."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from click.testing import CliRunner

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from irad.cli import main  # noqa: E402  # found by the path above

PAGE = ROOT / "docs" / "reference" / "tools.md"
SECTION = re.compile(r"(### `irad ?(\w*)`\n(?:.*\n)*?```text\n)(?:.*\n)*?(```\n)")


def with_help(page: str) -> str:
    """The page with the help of each command in the block below its heading."""

    def section(match: re.Match[str]) -> str:
        command = [match[2]] if match[2] else []
        done = CliRunner().invoke(main, [*command, "--help"], prog_name="irad", terminal_width=80)
        return match[1] + "\n".join(line.rstrip() for line in done.output.splitlines()) + "\n" + match[3]

    return SECTION.sub(section, page)


if __name__ == "__main__":
    PAGE.write_text(with_help(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
