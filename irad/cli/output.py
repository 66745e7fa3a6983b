"""Output for the user: colours and a pager on a terminal, plain into files and pipes; progress bars."""

from __future__ import annotations

import io
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.syntax import Syntax
from rich.table import Column
from rich.text import Text

from irad.compiling import quietly
from irad.report.shown.amounts import parts_of_code

# A progress bar for what turns out to take longer than a second.

_PATIENCE: Final = 1.0
_COUNT: Final = 13  # columns: "123456/123456"

Report = Callable[[str, int, int], None]


def _bar(console: Console) -> Progress:
    """Progress line: the task, a bar, how much is done; where there is little room the count stays whole."""
    count = MofNCompleteColumn(table_column=Column(no_wrap=True, min_width=_COUNT))
    columns = (TextColumn("{task.description}"), BarColumn(), count)
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


@contextmanager
def progress(task: str) -> Iterator[Report]:
    """Yields a function to be called with the current step, the amount done and the total amount.

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


_THEME = "ansi_dark"
_GUTTER = 8  # columns in front of a stage
_NARROWEST = 32  # columns for the stage itself


@contextmanager
def working(message: str) -> Iterator[None]:
    """A spinner on the terminal while something takes its time; nothing where the output is not a terminal."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with quietly(), console.status(message, spinner="dots"):
        yield


def highlight(lines: Iterable[str], language: str) -> list[Text]:
    """Lines with the colours of a language; ``text`` has none."""
    texts = list(lines)
    if language == "text":
        return [Text(line) for line in texts]
    coloured = Syntax("", language, theme=_THEME, background_color="default").highlight("\n".join(texts))
    split = list(coloured.split("\n", allow_blank=True))
    return split[: len(texts)]


def gutter(numbers: Iterable[int | None], lines: Iterable[Text], width: int | None = None) -> list[Text]:
    """Lines with the number of the source line in front of each; longer ones go on below, beside the gutter.

    Args:
        numbers: of the source lines; None where there is none.
        lines: text next to it.
        width: number of columns; None: as many as the lines take.
    """
    found = list[Text]()
    for number, line in zip(numbers, lines, strict=True):
        parts, indent = [(0, len(line))], 0
        if width is not None:
            parts, indent = parts_of_code(line.plain, max(width - _GUTTER, _NARROWEST))
        for start, end in parts:
            shown = f"{number:>5} " if number is not None and start == 0 else " " * 6
            found.append(Text.assemble((shown, "dim"), ("│ ", "dim"), " " * indent * (start > 0), line[start:end]))
    return found


def is_terminal() -> bool:
    """True if standard output is one; it may also have been closed."""
    stream: TextIO | None = sys.stdout
    return stream is not None and stream.isatty()


def columns() -> int:
    """Width of the overview: that of the terminal, else 100 columns."""
    return shutil.get_terminal_size().columns if is_terminal() else 100


def write(file: Path, text: str) -> None:
    """Writes a file.

    Raises:
        click.FileError: it cannot be written.
    """
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise click.FileError(str(file), str(error.strerror)) from None


def show(lines: Iterable[Text], *, file: Path | None, color: bool | None, pager: bool) -> None:
    """Writes lines to a file, or to the terminal, in a pager where they are more than fit.

    Args:
        lines: the text.
        file: where to; None for standard output.
        color: whether with colours; None: on a terminal.
        pager: whether a pager may be used.
    """
    texts = list(lines)
    if file is not None:
        write(file, "".join(f"{line.plain}\n" for line in texts))
        return
    on_terminal = is_terminal()
    coloured = (on_terminal and not Console().no_color) if color is None else color
    rendered = _rendered(texts) if coloured else "".join(f"{line.plain}\n" for line in texts)
    if pager and on_terminal and len(texts) >= shutil.get_terminal_size().lines:
        click.echo_via_pager(rendered, color=coloured)
    else:
        click.echo(rendered, nl=False, color=coloured)


def _rendered(lines: Iterable[Text]) -> str:
    buffer = io.StringIO()
    console = Console(file=buffer, force_terminal=True, color_system="standard", width=10_000, legacy_windows=False)
    for line in lines:
        console.print(line, soft_wrap=True, highlight=False, markup=False)
    return buffer.getvalue()
