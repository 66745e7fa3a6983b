"""LLVM text that takes the place of Python and Numba, beside `support.runtime_text`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from irad.backend.runtime.support import file_text
from irad.runtime_layouts import PAIRS

STOP_SYMBOL: Final = "irad.end_process"
UNWIND_STATUS: Final = 3  # what `STOP_SYMBOL` is given where an exception leaves a differentiated function


def standalone_text(tables: Iterable[str] = ()) -> str:
    """LLVM text of what the run-time support takes from its process.

    Args:
        tables: symbols of the tables of pairs that calls through pointers ask; a call that asks one ends the process.
    """
    table = f"hidden global %{PAIRS.name} {{ ptr null, ptr @irad.no_pair }}"
    return "\n".join((PAIRS.text, file_text("standalone"), *(f"@{name} = {table}" for name in sorted(set(tables))), ""))
