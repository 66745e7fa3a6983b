"""The examples of the guides: where they are, how they run, what they print.

An example is a block of Python followed by a block of text, which is what it prints. A block whose first line is a
comment with a file name (`# model.py`) is that file for the blocks after it on the same page.
"""

from __future__ import annotations

import contextlib
import io
import re
import runpy
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
GUIDES = (
    "README.md",
    "docs/README.md",
    "docs/tutorial.md",
    *sorted(
        str(path.relative_to(ROOT))
        for folder in ("how_to", "use_with", "coming_from")
        for path in (ROOT / "docs" / folder).iterdir()
    ),
    "docs/custom_rules.md",
    "docs/testing_gradients.md",
    "docs/numerical_trust.md",
)
PARTNERS = {
    "docs/use_with/dask.md": "distributed",
    "docs/use_with/ipopt.md": "cyipopt",
    "docs/use_with/jax.md": "jax",
    "docs/use_with/mpi.md": "numba_mpi",
    "docs/use_with/pymc.md": "pymc",
    "docs/use_with/pytorch.md": "torch",
}  # pages whose examples need an extra
EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n+(?:prints\n+)?```text\n(?P<output>.*?)```", re.DOTALL)
_FILE = re.compile(r"# (\w+)\.py\n")


@dataclass(frozen=True, slots=True)
class Example:
    """One example; ``files`` are those of the page that it may import."""

    guide: str
    number: int
    code: str
    output: str
    files: tuple[tuple[str, str], ...]

    def run(self, folder: Path) -> str:
        """Runs it as a script in a folder; returns what it printed."""
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.names(folder)
        return printed.getvalue()

    def names(self, folder: Path) -> dict[str, Any]:
        """Runs it as a script in a folder; returns the names that it leaves."""
        for name, text in self.files:
            (folder / f"{name}.py").write_text(text, encoding="utf-8")
            sys.modules.pop(name, None)
        script = folder / "example.py"
        script.write_text(self.code, encoding="utf-8")
        sys.path.insert(0, str(folder))
        try:
            return runpy.run_path(str(script), run_name="__main__")
        finally:
            sys.path.remove(str(folder))
            for name, _ in self.files:
                sys.modules.pop(name, None)


def examples_of(guide: str) -> list[Example]:
    """The examples of a page, in order."""
    found: list[Example] = []
    files: dict[str, str] = {}
    for number, match in enumerate(EXAMPLE.finditer((ROOT / guide).read_text(encoding="utf-8")), 1):
        code = match["code"]
        found.append(Example(guide, number, code, match["output"], tuple(files.items())))
        named = _FILE.match(code)
        if named is not None:
            files[named[1]] = code
    return found


def with_outputs(guide: str, folder: Path) -> str:
    """The text of a page with what its examples print now."""
    outputs = iter([example.run(folder) for example in examples_of(guide)])

    def replaced(match: re.Match[str]) -> str:
        start, end = match.span("output")
        return match[0][: start - match.start()] + next(outputs) + match[0][end - match.start() :]

    return EXAMPLE.sub(replaced, (ROOT / guide).read_text(encoding="utf-8"))
