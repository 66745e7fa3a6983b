"""`irad doctor`."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby
from typing import Final

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from irad.report.doctor import SUPPORTED, Fact, State, facts

_STYLES = {State.GOOD: "green", State.NOTE: "dim", State.MISSING: "yellow", State.BROKEN: "bold red"}


_NAMED: Final = r"(?:'[^']*'|[\w.\[\]-]+)"
_COMMAND: Final = re.compile(rf"\b(?:pip|apt) install {_NAMED}(?: (?:'[^']*'|\w+(?:-\w+)+))*")
_UNBROKEN: Final = "\N{NO-BREAK SPACE}"

_EXAMPLES = """\b
Examples:
  irad doctor
  irad doctor --json > doctor.json     for a bug report
"""


@click.command(epilog=_EXAMPLES)
@click.option("--json", "as_json", is_flag=True, help="Write JSON instead of a table.")
def doctor(as_json: bool) -> None:
    """Examine the installation: versions, CPU, libraries, CUDA, caches; what is missing, and how to install it.

    The exit status is 1 if something that irad needs is broken.
    """
    console = Console()
    with console.status("looking"):
        found = tuple(facts())
    broken = [fact for fact in found if fact.state is State.BROKEN]
    if as_json:
        listed = [asdict(fact) | {"state": fact.state.value} for fact in found]
        click.echo(json.dumps({"healthy": not broken, "platforms": SUPPORTED, "facts": listed}, indent=2))
    else:
        _show(console, found)
    if broken:
        raise SystemExit(1)


def _show(console: Console, found: Sequence[Fact]) -> None:
    table = Table(title="irad doctor", title_justify="left")
    for column in ("what", "found", ""):  # groups have no column of their own: there is not much room on terminals
        table.add_column(column, overflow="fold")
    for group, facts_of_group in groupby(found, key=lambda fact: fact.group):
        table.add_row(Text(group, style="bold"))
        for fact in facts_of_group:
            state = Text(fact.state.value, style=_STYLES[fact.state])
            table.add_row(Text(f"  {fact.what}"), Text(fact.value), state)
        table.add_section()
    console.print(table)
    wanting = [fact for fact in found if fact.remedy and fact.state is not State.GOOD]
    for fact in sorted(wanting, key=lambda fact: fact.state is not State.BROKEN):
        for line in _remedy(fact, console.width):
            console.print(line, soft_wrap=True)
    broken = sum(fact.state is State.BROKEN for fact in found)
    console.print("irad works here." if not broken else f"{broken} thing{'s' * (broken > 1)} to fix before irad works.")


def _remedy(fact: Fact, width: int) -> Iterator[Text]:
    """Remedy of a fact, in lines of ``width`` columns; a command stays on one line, to be copied."""
    commands_whole = _COMMAND.sub(lambda command: command[0].replace(" ", _UNBROKEN), fact.remedy)
    lines = textwrap.wrap(
        f"{fact.what}: {commands_whole}", width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
    )
    for number, line in enumerate(lines):
        text = Text(line.replace(_UNBROKEN, " "))
        if number == 0:
            text.stylize(_STYLES[fact.state], 0, len(fact.what))
        yield text
