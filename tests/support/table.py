"""The table of `docs/support.md`, written from the catalogue."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.support import containers, language, numpy_arrays, numpy_functions, numpy_ufuncs, randomness, scalars
from tests.support.entries import Entry, Group, Outcome

PATH: Final = Path(__file__).parents[2] / "docs" / "support.md"

GROUPS: Final = (
    *language.GROUPS,
    *scalars.GROUPS,
    *containers.GROUPS,
    *numpy_functions.GROUPS,
    *numpy_ufuncs.GROUPS,
    *numpy_arrays.GROUPS,
    *randomness.GROUPS,
)

_HEAD: Final = """# What irad differentiates

Everything Numba can compile, and how irad handles it. Written by `scripts/make_support_table.py` from the catalogue in
`tests/support`, whose every line is tested; do not edit.

- **yes**: a derivative flows through it, checked against finite differences.
- **constant**: its value has no derivative (an index, a truth value, a string) or is taken as having none. It may be used;
  the code around it is differentiated, which is checked.
- **refused**: an error says so before anything runs, with file, line and a way out, which is checked. It may still be
  used where no derivative flows through it.

[Contracts](contracts.md) states the conventions at kinks, [limits](limits.md) what is refused in whole programs.
"""


def table() -> str:
    """The text of the page."""
    return "\n".join((_HEAD, _summary(), *(_section(group) for group in GROUPS)))


def _summary() -> str:
    count = Counter(entry.outcome for group in GROUPS for entry in group.entries for _ in entry.names)
    listed = ", ".join(f"{count[outcome]} {outcome.value}" for outcome in Outcome if count[outcome])
    return f"{sum(count.values())} entries: {listed}.\n"


def _section(group: Group) -> str:
    rows = [row for entry in group.entries for row in _rows(entry)]
    note = [group.note, ""] if group.note else []
    return "\n".join((f"## {group.title}", "", *note, "| | derivative | |", "| --- | --- | --- |", *rows, ""))


def _rows(entry: Entry) -> Iterator[str]:
    for name in entry.names:
        yield f"| {f'`{name}`' if '.' in name or '[' in name else name} | {entry.outcome.value} | {_remark(entry)} |"


def _remark(entry: Entry) -> str:
    why = ""
    if entry.outcome is Outcome.REFUSED:
        why = f"no derivative rule for a call to `{entry.why}`" if entry.why.startswith("numba_") else entry.why
    return "; ".join(text for text in (why, entry.note) if text)
