"""A progress bar for what turns out to take longer than a second."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Column

_PATIENCE: Final = 1.0
_COUNT: Final = 13  # columns: "123456/123456"

Report = Callable[[str, int, int], None]


def _bar(console: Console) -> Progress:
    """What is going on, a bar, how much is done: where there is little room the count stays whole."""
    count = MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=_COUNT))
    columns = (TextColumn("{task.description}"), BarColumn(), count)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def progress(task: str) -> Iterator[Report]:
    """Gives a function to be called with what is being done, how much is done and how much there is.

    The bar appears on the terminal's standard error when a second has gone by, and disappears in the end.
    """
    console = Console(stderr=True)
    bar = _bar(console)
    started = time.monotonic()
    shown = bar.add_task(task)

    def report(what: str, done: int, total: int) -> None:
        if time.monotonic() - started > _PATIENCE and not bar.live.is_started:
            bar.start()
        bar.update(shown, description=f"{task}: {what}", completed=done, total=total)

    try:
        yield report
    finally:
        bar.stop()
