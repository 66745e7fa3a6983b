"""`irad check`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from math import inf
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from irad.cli.output import progress, working
from irad.errors import IradError

if TYPE_CHECKING:
    from irad.report.results import CheckReport
    from irad.testing.gradients.report import GradcheckReport
    from irad.testing.gradients.weak_points import WeakPoint

_EXAMPLES = """\b
Examples:
  irad check model.py:loss --args 'np.linspace(0.1, 2, 50), 3.0'
  irad check package.model:loss --sig 'float64[::1], float64' --points 10
  irad check model.py:loss --args 'np.ones(3), 0.5' --domain rate=0:1 --wrt x
  irad check model.py:kernel --args 'np.ones(8), np.zeros(8)' --launch '2, 4'

\b
Exit status:
  0  the gradient is right; for a kernel without --launch, it can be
     differentiated
  1  it is wrong or cannot be checked at that point, or the function cannot be
     differentiated
  2  the command line is invalid
"""
_COLUMNS = (
    "difference / allowed: how far the gradient is from the expected number, as a multiple of what rounding explains; "
    "up to 1 is right\naccuracy: a relative error smaller than this would not be seen"
)
_STYLES = {"right": "green", "wrong": "bold red", "undecided": "yellow"}


@click.command(epilog=_EXAMPLES)
@click.argument("target", metavar="MODULE_OR_FILE:FUNCTION")
@click.option(
    "--args", "expression", metavar="PYTHON", help="Arguments of one call, a Python expression: the point to check."
)
@click.option(
    "--sig",
    "signature",
    metavar="TYPES",
    help="Numba types of the arguments instead; their values are random, floats from 0.5 to 2.",
)
@click.option(
    "--launch",
    metavar="BLOCKS, THREADS",
    help="For a CUDA kernel: grid of the launch, on the executor, that is checked.",
)
@click.option(
    "--points", default=3, show_default=True, type=click.IntRange(1), help="Number of points: this one and random ones."
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Seed of all random numbers.")
@click.option(
    "--wrt", metavar="NAMES", help="Arguments to differentiate with respect to: 'x,w'. By default all that hold floats."
)
@click.option("--argnums", metavar="NUMBERS", help="The same by position, from 0: '0,2'.")
@click.option(
    "--domain", "domains", metavar="NAME=LOW:HIGH", multiple=True, help="Range of the numbers of an argument."
)
@click.option(
    "--rtol", type=float, help="Relative difference that is allowed; by default the smallest that can be detected."
)
@click.option(
    "--probe/--no-probe", default=True, show_default=True, help="Search for kinks, overflow and ends of domains."
)
@click.option("--json", "as_json", is_flag=True, help="Write JSON instead of tables.")
def check(
    target: str,
    expression: str | None,
    signature: str | None,
    launch: str | None,
    points: int,
    seed: int,
    wrt: str | None,
    argnums: str | None,
    domains: tuple[str, ...],
    rtol: float | None,
    probe: bool,
    as_json: bool,
) -> None:
    """Report what cannot be differentiated, verify the gradient, find weak points.

    First it lists everything in the function that irad cannot differentiate, without running it. Then it compares
    the gradient with finite differences and complex steps, which use only values of the function, at the given point
    and at random points within 10 per cent of it. Then it searches for kinks nearby, ends of the domain and overflow:
    it calls the function with scaled arguments, up to very large and very small ones. For a CUDA kernel it describes
    how the derivative works; the kernel is launched on the CPU, no GPU is needed.
    """
    from irad.api.functions import kernel_of  # this and the next load Numba
    from irad.cli.target import arguments_of, launch_of, load_function, positions_of

    if rtol is not None and not 0.0 <= rtol < inf:
        raise click.UsageError(f"--rtol {rtol}: give a number, 0 or more")
    function, module = load_function(target)
    given = arguments_of(function, module, expression, signature)
    kernel = kernel_of(function)
    positions = positions_of(function if kernel is None else kernel.py_func, wrt, argnums)
    launched = launch_of(kernel, launch, module)
    subject, kind = (function, _Session) if kernel is None else (launched, _KernelSession)
    session = kind(subject, given, positions, seed)
    supported = session.supported()
    if not supported.supported or (kernel is not None and launch is None):
        _finish(as_json, supported, None, ())
    ranges = _ranges(function, domains)
    gradient = session.gradient(points, ranges, rtol)
    finds = probe and kernel is None and not gradient.primal and not gradient.unsteady
    weak = session.weak_points() if finds else ()
    _finish(as_json, supported, gradient, weak)


class _Session:
    """The steps of a check, each with its sign of life on the terminal."""

    def __init__(self, function: Any, given: tuple[Any, ...], positions: tuple[int, ...] | None, seed: int) -> None:
        from irad.testing.samples import samples

        self._primal, self._given, self._positions, self._seed = self._of(function), given, positions, seed
        self._values = samples(given, seed)

    def _of(self, function: Any) -> Any:
        from irad.api.functions import primal_of

        return primal_of(function)

    def supported(self) -> CheckReport:
        """Everything that is not supported."""
        import irad

        with working("looking for what cannot be differentiated"):
            return irad.check(self._primal, *self._given, argnums=self._positions)

    def gradient(self, points: int, ranges: dict[int, tuple[Any, Any]], rtol: float | None) -> GradcheckReport:
        """The comparison with the truth."""
        from irad.testing import gradcheck

        self._run_once()
        with progress("checking the gradient") as report:
            return gradcheck(
                self._primal,
                *self._values,
                argnums=self._positions,
                points=points,
                domain=ranges,
                rtol=rtol,
                seed=self._seed,
                raises=False,
                progress=report,
            )

    def weak_points(self) -> tuple[WeakPoint, ...]:
        """Points at which the derivative would break."""
        from irad.testing.gradients.input import CheckedFunction
        from irad.testing.gradients.trial import Trial
        from irad.testing.gradients.weak_points import weak_points

        subject = CheckedFunction(self._primal, self._values, self._positions, {})
        trial = Trial(subject.primal, subject.values, subject.active, unit=True)
        with progress("looking for weak points (--no-probe leaves this out)") as report:
            return weak_points(trial, subject.names, report)

    def _run_once(self) -> None:
        from irad.cli.target import raised
        from irad.data.copies import copied

        try:
            with working("compiling"):
                self._primal(*copied(self._values))
        except IradError:
            raise
        except Exception as error:  # of the user's function: it is shown in a line
            made_up = any(value is not given for value, given in zip(self._values, self._given, strict=True))
            hint = ": these values were made up from types" if made_up else ""
            raise raised(self._primal, error, f"give --args with a point where it runs{hint}") from None


class _KernelSession(_Session):
    """Checks of a kernel with the configuration of a launch; without one, only what is supported is asked for."""

    def _of(self, function: Any) -> Any:
        return function

    def _run_once(self) -> None:
        from irad.api.functions import launched_of
        from irad.cli.target import raised
        from irad.data.copies import copied
        from irad.testing.gradients.kernels import KernelProgram

        launched = launched_of(self._primal)
        assert launched is not None, "the gradient is checked of launches"
        try:
            with working("compiling"):
                KernelProgram(launched)(*copied(self._values), finds_faults=True)
        except IradError:
            raise
        except Exception as error:  # of Numba, which compiles the kernel: it is shown in a line
            raise raised(launched.kernel, error, "give --args and --launch with which the kernel runs") from None


def _ranges(function: Any, texts: Sequence[str]) -> dict[int, tuple[Any, Any]]:
    from irad.cli.target import positions_of

    found = {}
    for text in texts:
        name, equals, limits = text.partition("=")
        low, colon, high = limits.partition(":")
        try:
            pair = (float(low) if low.strip() else None, float(high) if high.strip() else None)
        except ValueError:
            pair = None
        if not (equals and colon and pair):
            raise click.UsageError(f"--domain {text!r}: write NAME=LOW:HIGH, as rate=0:1 or x=0:")
        if not (-inf if pair[0] is None else pair[0]) <= (inf if pair[1] is None else pair[1]):
            raise click.UsageError(f"--domain {text!r}: no number lies in that range")
        for position in positions_of(function, name.strip(), None) or ():
            found[position] = pair
    return found


def _finish(as_json: bool, supported: CheckReport, gradient: GradcheckReport | None, weak: Sequence[WeakPoint]) -> None:
    """Shows what was found, and ends the process with status 1 unless all is right."""
    right = supported.supported and (gradient.right if gradient is not None else bool(supported.plan))
    if as_json:
        click.echo(json.dumps(_as_dict(right, supported, gradient, weak), indent=2))
    else:
        _show(Console(), supported, gradient, weak)
    if not right:
        raise SystemExit(1)
    raise SystemExit(0)


def _as_dict(
    right: bool, supported: CheckReport, gradient: GradcheckReport | None, weak: Sequence[WeakPoint]
) -> dict[str, Any]:
    problems = [
        {
            "problem": each.problem,
            "file": each.location.file if each.location else None,
            "line": each.location.line if each.location else None,
            "detail": each.detail,
            "remedy": each.remedy,
        }
        for each in supported.problems
    ]
    return {
        "right": right,
        "function": supported.function,
        "arguments": [{"name": name, "type": kind} for name, kind in supported.arguments],
        "unsupported": problems,
        "plan": list(supported.plan),
        "gradient": None if gradient is None else gradient.to_dict(),
        "weak_points": [asdict(each) for each in weak],
    }


def _show(
    console: Console, supported: CheckReport, gradient: GradcheckReport | None, weak: Sequence[WeakPoint]
) -> None:
    console.print(Text(str(supported)), soft_wrap=True)  # messages have lines of their own
    if gradient is None:
        if supported.plan:
            console.print(Text("\nGive --launch 'BLOCKS, THREADS' to have the gradient checked."))
        return
    console.print()
    console.print(_gradient_table(gradient))
    for each in gradient.arguments:
        if each.verdict.value == "wrong":
            console.print(Text(f"  {each.worst}: got {each.got:.13g}, expected {each.expected:.13g}"), soft_wrap=True)
    for remark in gradient.remarks():
        console.print(Text(f"  {remark}"), soft_wrap=True)
    if weak:
        console.print()
        console.print(_weak_table(weak))
    console.print()
    console.print(_conclusion(gradient, weak))


def _gradient_table(gradient: GradcheckReport) -> Table:
    from irad.testing.gradients.report import short

    points = f"{gradient.points} point{'s' * (gradient.points > 1)}"
    table = Table(
        title=f"gradient against the function's values, at {points}",
        title_justify="left",
        caption=_COLUMNS,
        caption_justify="left",
    )
    for column in ("argument", "verdict", "difference / allowed", "accuracy", "worst at", "checked against"):
        table.add_column(column, overflow="fold")
    for each in gradient.arguments:
        verdict = Text(each.verdict.value, style=_STYLES[each.verdict.value])
        name = f"{each.name}: {each.kind}"
        table.add_row(name, verdict, short(each.ratio), short(each.accuracy), each.worst, each.method)
    return table


def _weak_table(weak: Sequence[WeakPoint]) -> Table:
    table = Table(title="where it would break", title_justify="left")
    for column in ("argument", "where", "what happens"):
        table.add_column(column, overflow="fold")  # the default cuts names off
    for each in weak:
        table.add_row(each.argument, each.where, each.what)
    return table


def _conclusion(gradient: GradcheckReport, weak: Sequence[WeakPoint]) -> Text:
    verdict = gradient.verdict.value
    words = {
        "right": "The gradient is right here.",
        "wrong": "The gradient is WRONG: do not use it. "
        + (
            "See docs/contracts.md, zeros."
            if gradient.hidden_zero
            else "Report it, unless a rule of your own takes part."
        ),
        "undecided": "The gradient could not be checked here; give another point, or --domain.",
    }
    text = Text(words[verdict], style=_STYLES[verdict])
    if verdict == "right" and weak:
        text.append(" The table shows where it would not be.", style="default")
    return text
