"""Sweep marks: debug locations that say which sweep an instruction belongs to.

Input   finished pairs.
Output  the same; locations in reverse sweeps have column `REVERSE`. Lines, scopes and code stay as they are.
Method  Numba gives all locations column 1, so the column is free. LLVM keeps it through inlining and vectorising, and
        makes it 0 where it merges instructions of both sweeps. So a profile can tell the sweeps apart.

    !18 = !DILocation(line: 27, column: 1, scope: !15)      →  !92 = !DILocation(line: 27, column: 2, scope: !15)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from irad.ir.module import Function, Module

REVERSE: Final = 2
"""The column of locations in reverse sweeps."""

_COLUMN: Final = re.compile(r"\bcolumn: \d+")


def mark_reverse_sweeps(module: Module, functions: Iterable[Function]) -> None:
    """Gives the instructions of some functions locations of their own."""
    copies: dict[str, str] = {}
    for function in functions:
        for inst in function.instructions():
            node = inst.metadata.get("dbg")
            if node is not None and node[1:].isdecimal():
                if node not in copies:
                    copies[node] = _copy(module, node)
                inst.metadata = {**inst.metadata, "dbg": copies[node]}


def _copy(module: Module, node: str) -> str:
    """The number of the same location in the other column; the node itself where that is not known."""
    known = module.metadata.get(int(node[1:]))
    if known is None or _COLUMN.search(known.text) is None:
        return node
    return module.shared_metadata(_COLUMN.sub(f"column: {REVERSE}", known.text, count=1))
