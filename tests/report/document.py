"""docs/inspector.md with what the commands in it print; `scripts/make_inspector_doc.py` writes it.

After each `$ irad …` in a console block comes its output. A comment `<!-- lines 3-9 -->` in front of the block leaves
the other lines out, marked by `…`.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from click.testing import CliRunner

from irad.cli import main

ROOT = Path(__file__).parents[2]
PATH = ROOT / "docs" / "inspector.md"
_BLOCK = re.compile(r"(?:<!-- lines (\d+)-(\d+) -->\n)?```console\n\$ irad (.*?)\n(.*?)```\n", re.S)


def document(text: str) -> str:
    """The document with what the commands print now; the working directory must be the root of the repository."""
    return _BLOCK.sub(_block, text)


def _block(block: re.Match[str]) -> str:
    first, last, command, _ = block.groups()
    lines, head = _output(command), ""
    if first is not None:
        head = f"<!-- lines {first}-{last} -->\n"
        before, behind = int(first) > 1, int(last) < len(lines)
        lines = [*["…"] * before, *lines[int(first) - 1 : int(last)], *["…"] * behind]
    return "\n".join([f"{head}```console", f"$ irad {command}", *lines, "```"]) + "\n"


def _output(command: str) -> list[str]:
    result = CliRunner().invoke(main, shlex.split(command))
    assert result.exit_code == 0, f"irad {command}: {result.output}"
    return result.output.replace(f"{ROOT}/", "").rstrip("\n").split("\n")
