"""`irad inspect`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from irad.cli.output import columns, gutter, highlight, is_terminal, show, working, write
from irad.errors import IradError
from irad.options import Options
from irad.report.model import Report, Stage

if TYPE_CHECKING:
    from irad.report.inspection import AnyCollector

_STAGES = click.Choice([stage.value for stage in Stage])
_EXAMPLES = """\b
Examples:
  irad inspect model.py:loss --args 'np.ones(10), 2.0'
  irad inspect package.model:loss --sig 'float64[::1], float64' --stage plan
  irad inspect model.py:loss --sig 'float64[::1], float64' --explain 13
  irad inspect model.py:loss --sig 'float64[::1], float64' --explain tape
  irad inspect model.py:loss --sig 'float64[::1]' --diff adjoint optimized
  irad inspect model.py:loss --args 'np.ones(10)' --stage adjoint --as python
  irad inspect model.py:loss --args 'np.ones(10)' --json -o report.json
  irad inspect model.py:loss --args 'np.ones(10)' --html report.html --profile
"""


@click.command(epilog=_EXAMPLES)
@click.argument("target", metavar="MODULE_OR_FILE:FUNCTION")
@click.option(
    "--args",
    "expression",
    metavar="PYTHON",
    help="Arguments of one call, a Python expression; the call measures the tape.",
)
@click.option(
    "--sig", "signature", metavar="TYPES", help="Numba types of the arguments instead: 'float64[::1], float64'."
)
@click.option(
    "--stage",
    "stages",
    type=_STAGES,
    multiple=True,
    metavar="STAGE",
    help=f"Stage to show: {', '.join(Stage)}. May be given several times.",
)
@click.option("--as", "form", type=click.Choice(["llvm", "python"]), help="Form of --stage adjoint: LLVM IR or Python.")
@click.option(
    "--diff",
    "pair",
    type=_STAGES,
    nargs=2,
    default=None,
    metavar="A B",
    help="Show the differences from stage A to stage B.",
)
@click.option(
    "--explain",
    "questions",
    metavar="LINE|VALUE|VARIABLE|tape",
    multiple=True,
    help="Show why it is active, saved or recomputed.",
)
@click.option(
    "--wrt", metavar="NAMES", help="Arguments to differentiate with respect to: 'x,w'. By default all that hold floats."
)
@click.option("--argnums", metavar="NUMBERS", help="The same by position, from 0: '0,2'.")
@click.option(
    "--plan", type=click.Choice(["default", "save_all"]), help="Save a minimum of values, or all that are needed."
)
@click.option("--strict/--no-strict", default=None, help="Keep the order of all sums of the adjoint.")
@click.option("--noise/--no-noise", help="Also show metadata, reference counts, wrappers and mangled names.")
@click.option("--lines/--no-lines", default=True, help="Put the number of the source line in front of each line.")
@click.option("--json", "as_json", is_flag=True, help="Write all facts, and the stages given, as JSON.")
@click.option(
    "--html", type=click.Path(path_type=Path, dir_okay=False), help="Write a report with everything: one HTML page."
)
@click.option("--profile", is_flag=True, help="Also run the derivative: the report shows the time of each line.")
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), help="Write to this file.")
@click.option("--color/--no-color", default=None, help="Use colours; by default on a terminal.")
@click.option(
    "--pager/--no-pager", default=True, show_default=True, help="Page output that is longer than the terminal."
)
def inspect(
    target: str,
    expression: str | None,
    signature: str | None,
    stages: tuple[str, ...],
    form: str | None,
    pair: tuple[str, str] | None,
    questions: tuple[str, ...],
    wrt: str | None,
    argnums: str | None,
    plan: str | None,
    strict: bool | None,
    noise: bool,
    lines: bool,
    as_json: bool,
    html: Path | None,
    profile: bool,
    output: Path | None,
    color: bool | None,
    pager: bool,
) -> None:
    """Show the derivative of a function stage by stage, with reasons.

    Without --stage, --diff, --explain, --json and --html it shows an overview: the source, with the active and saved
    values on each line, and the tape. With --args the derivative is called once, on copies of the arguments, to measure
    the tape; with --sig nothing is run.
    """
    for option, file in (("-o", output), ("--html", html)):
        if file is not None and not file.parent.is_dir():
            raise click.UsageError(f"{option} {file}: there is no folder {file.parent}")
    if html and (stages or questions or as_json or pair or output):
        raise click.UsageError("--html takes neither --stage, --diff, --explain nor --json, and names its own file")
    if profile and not (html and expression):
        raise click.UsageError("--profile goes with --html, and with --args: it runs the derivative")
    if pair and (stages or questions or as_json):
        raise click.UsageError("--diff goes with neither --stage nor --explain nor --json")
    if form is not None and (stages != (Stage.ADJOINT.value,) or questions or as_json):
        raise click.UsageError(f"--as {form} goes with --stage adjoint alone")
    with working("compiling"):
        collector = _collector(target, expression, signature, (wrt, argnums), _options(plan, strict))
        wanted = tuple(map(Stage, stages))
        if html:
            found = _html(collector, html, profile)
        elif pair:
            found = _difference(collector, Stage(pair[0]), Stage(pair[1]), noise)
        elif form == "python":
            found = highlight(collector.adjoint_as_python().lines, "python")
        elif as_json:
            found = _json(collector, wanted, questions)
        else:
            width = columns() if is_terminal() and output is None else None
            found = _texts(collector, wanted, questions, noise, lines, width)
    show(found, file=output, color=color, pager=pager)


def _options(plan: str | None, strict: bool | None) -> Options | None:
    """Options of the command line, over those of the environment; None if it has none."""
    if plan is None and strict is None:
        return None
    chosen = Options.from_environment()
    return replace(
        chosen,
        plan="save_all" if (plan or chosen.plan) == "save_all" else "default",
        strict=chosen.strict if strict is None else strict,
    )


def _collector(
    target: str,
    expression: str | None,
    signature: str | None,
    positions: tuple[str | None, str | None],
    options: Options | None,
) -> AnyCollector:
    from irad.api.functions import kernel_of
    from irad.cli.target import arguments_of, load_function, positions_of  # these load Numba
    from irad.frontend.calls.dispatcher import DerivativeDispatcher
    from irad.report.inspection import collector_of

    function, module = load_function(target)
    args = arguments_of(function, module, expression, signature)
    primal = function.primal if isinstance(function, DerivativeDispatcher) else function
    kernel = kernel_of(function)
    primal = primal if kernel is None else kernel.py_func
    return collector_of(function, args, positions_of(primal, *positions), options)


def _difference(collector: AnyCollector, before: Stage, after: Stage, noise: bool) -> list[Text]:
    from irad.report.shown.text import difference

    found = collector.report((before, after)).stages
    return highlight(difference(found[before], found[after], noise=noise), "diff")


def _html(collector: AnyCollector, file: Path, profile: bool) -> list[Text]:

    from irad.report.html import render
    from irad.report.shown.amounts import format_bytes

    try:
        report = collector.report(collector.stages, measures=True)
    except IradError as error:
        write(file, render(collector.refused(error)))
        click.echo(f"{file}: why the function is refused, its source, and the stages before the analyses", err=True)
        raise
    page = render(_profiled(collector, report) if profile else report)
    write(file, page)
    return [Text(f"{file}: {format_bytes(len(page.encode()))}")]


def _profiled(collector: AnyCollector, report: Report) -> Report:
    from irad.cli.target import raised

    try:
        return collector.profile.applied_to(report)
    except IradError:
        raise
    except Exception as error:  # of the user's function: it is shown in a line
        raise raised(collector.subject.primal, error, "give --args with a point where it runs") from None


def _json(collector: AnyCollector, stages: tuple[Stage, ...], questions: Sequence[str]) -> list[Text]:
    from irad.report.shown.text import explain, to_json

    report = collector.report(stages, measures=True)
    answers = {question: explain(_with_facts(collector, report), question) for question in questions}
    return highlight(to_json(report, **({"explanations": answers} if questions else {})).split("\n"), "json")


def _texts(
    collector: AnyCollector,
    stages: tuple[Stage, ...],
    questions: Sequence[str],
    noise: bool,
    numbered: bool,
    width: int | None,
) -> list[Text]:
    from irad.report.shown.amounts import wrapped_code
    from irad.report.shown.text import explain, overview, shown_lines

    report = collector.report(stages, measures=bool(questions) or not stages)
    if not stages and not questions:
        return [Text(line) for line in overview(report, columns()).rstrip("\n").split("\n")]
    parts = len(stages) + len(questions)
    lines: list[Text] = []
    for stage, found in report.stages.items():
        shown = shown_lines(found, noise=noise)
        texts = highlight((line.text for line in shown), found.language)
        lines += _heading(stage.value, parts)
        lines += gutter((line.line for line in shown), texts, width) if numbered else texts
    for question in questions:
        lines += _heading(f"why: {question}", parts)
        answer = explain(_with_facts(collector, report), question).split("\n")
        lines += [Text(part) for line in answer for part in (wrapped_code(line, width) if width else (line,))]
    return lines


def _with_facts(collector: AnyCollector, report: Report) -> Report:
    """The report itself, unless only stages were asked for that need no derivative."""
    return report if report.functions else collector.report((), measures=True)


def _heading(title: str, parts: int) -> list[Text]:
    return [Text(f"──── {title}", "bold")] if parts > 1 else []
