"""`irad bench`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from irad.cli.output import progress, write
from irad.errors import IradError

if TYPE_CHECKING:
    from irad.benchmark.compare import Change
    from irad.benchmark.measure import Figures

_EXAMPLES = """\b
Examples:
  irad bench model.py:loss --args 'np.linspace(0.1, 2, 50), 3.0'
  irad bench model.py:loss --args 'np.ones(9), 0.5' --hand model.py:by_hand
  irad bench model.py:loss --args 'np.ones(9), 0.5' -o before.json
  irad bench model.py:loss --args 'np.ones(9), 0.5' --compare before.json

\b
Exit status:
  0  measured
  1  the gradient is wrong or cannot be checked at that point, or a figure is
     worse than in --compare
  2  the command line is invalid
"""


@click.command(epilog=_EXAMPLES)
@click.argument("target", metavar="MODULE_OR_FILE:FUNCTION")
@click.option(
    "--args", "expression", metavar="PYTHON", required=True, help="Arguments of the calls, a Python expression."
)
@click.option(
    "--hand",
    metavar="MODULE_OR_FILE:FUNCTION",
    help="Gradient written by hand, which returns the same as irad.value_and_grad.",
)
@click.option(
    "--wrt", metavar="NAMES", help="Arguments to differentiate with respect to: 'x,w'. By default all that hold floats."
)
@click.option("--argnums", metavar="NUMBERS", help="The same by position, from 0: '0,2'.")
@click.option(
    "--rounds", default=31, show_default=True, type=click.IntRange(3), help="Number of samples of each function."
)
@click.option(
    "--compare",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Earlier result, as JSON, to compare with.",
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON instead of a table.")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Also write the JSON to this file."
)
def bench(
    target: str,
    expression: str,
    hand: str | None,
    wrt: str | None,
    argnums: str | None,
    rounds: int,
    compare: Path | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Measure the cost of a gradient, relative to the function and to a gradient written by hand.

    The gradient is checked first: with finite differences, with forward mode, and with the gradient by hand. Times are
    CPU times of the calling thread; the functions take turns. Run nothing else on the machine in the meantime.
    """
    from irad.benchmark.compare import changes, figures_of, spread_of
    from irad.benchmark.measure import measure  # this and the next load Numba
    from irad.cli.target import arguments_of, load_function, positions_of

    old = None if compare is None else _read(compare)
    function, module = load_function(target)
    args = arguments_of(function, module, expression, None)
    by_hand = None if hand is None else load_function(hand)[0]
    positions = positions_of(function, wrt, argnums)
    with progress("measuring") as report:
        try:
            found = measure(function, args, positions, by_hand, rounds, report)
        except (IradError, AssertionError):
            raise
        except Exception as error:  # of the user's functions: it is shown in a line
            raise _raised(target, error) from None
    result = found.to_dict()
    compared = [] if old is None else changes(figures_of(old), figures_of(result), spread_of(old) + spread_of(result))
    text = json.dumps(result | {"compared": [_as_dict(each) for each in compared]}, indent=2)
    if output is not None:
        write(output, f"{text}\n")
    if as_json:
        click.echo(text)
    else:
        _show(Console(), found, compared)
    raise SystemExit(any(each.is_regression for each in compared))


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise click.UsageError(f"--compare {path}: this is not JSON: {error}") from None
    if not isinstance(found, dict) or "ratio" not in found:
        raise click.UsageError(f"--compare {path}: this is not a result of irad bench --json")
    return found


def _raised(target: str, error: Exception) -> IradError:
    return IradError(
        f"measuring {target} raises {type(error).__name__}: {error}",
        "give --args with which the function and the gradient by hand run",
        "what raises is not timed",
    )


def _as_dict(change: Change) -> dict[str, Any]:
    return {"figure": change.figure, "old": change.old, "new": change.new, "regression": change.is_regression}


def _show(console: Console, found: Figures, compared: list[Change]) -> None:
    console.print(_table(found))
    console.print(Text(_remarks(found)), soft_wrap=True)
    for change in compared:
        style = "bold red" if change.is_regression else "green"
        console.print(Text(f"{'worse' if change.is_regression else 'good '}  {change}", style), soft_wrap=True)


def _table(found: Figures) -> Table:
    from irad.report.shown.amounts import format_bytes

    table = Table(
        title=f"{found.function}, gradient with respect to {', '.join(found.wrt)}; {found.rounds} rounds",
        title_justify="left",
    )
    for heading in ("", "time of a call", "gradient ÷ this", "spread", "compile time", "empty call", "peak memory"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, seconds in found.seconds.items():
        ratio, peak = found.ratio(name), found.peak_bytes[name]
        table.add_row(
            name,
            _time(seconds),
            "" if name == "gradient" else f"{ratio:.2f}",
            f"{found.spread[name]:.0%}",
            _time(found.compile_seconds.get(name)),
            _time(found.overhead_seconds.get(name)),
            "–" if peak is None else format_bytes(peak),
        )
    return table


def _remarks(found: Figures) -> str:
    from irad.report.shown.amounts import format_bytes

    errors = ", ".join(f"{name} to {error:.0e}" for name, error in found.errors.items())
    lines = [f"tape: {format_bytes(found.tape_bytes)}", f"checked with {errors}"]
    if max(found.spread.values()) > 0.1:
        lines.append("the machine was busy: a spread above 10% makes times rough")
    return "\n".join(lines)


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-9:.3g} ns"
