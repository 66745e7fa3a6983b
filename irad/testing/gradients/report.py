"""Report of a check of gradients: figures by argument, text to read, and the error that says what is wrong."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from math import isfinite, isnan
from typing import Any, Final, Literal

from irad.errors import IradError, SourceLocation
from irad.report.shown import notebook
from irad.report.shown.amounts import wrapped_text

COLUMNS: Final = ("argument", "checked", "difference/allowed", "accuracy", "worst", "got", "expected", "verdict")
_WIDTH: Final = 80  # columns of a terminal
NO_FLOATS: Final = "no argument holds floats, or no result depends on them"


class Verdict(enum.Enum):
    """The outcome of a check: ``RIGHT``, ``UNDECIDED`` or ``WRONG``.

    Examples:
        >>> from irad.testing import Verdict, gradcheck
        >>> from numba import njit
        >>> @njit
        ... def square(x):
        ...     return x * x
        >>> gradcheck(square, 3.0).verdict is Verdict.RIGHT
        True
        >>> [verdict.value for verdict in Verdict]
        ['right', 'undecided', 'wrong']
    """

    RIGHT = "right"
    UNDECIDED = "undecided"
    WRONG = "wrong"

    @property
    def weight(self) -> int:
        """Severity: of several verdicts the worst counts."""
        return list(Verdict).index(self)


_MOODS: Final[dict[Verdict, Literal["good", "bad", "open"]]] = {
    Verdict.RIGHT: "good",
    Verdict.UNDECIDED: "open",
    Verdict.WRONG: "bad",
}


@dataclass(frozen=True, slots=True)
class ArgumentReport:
    """The check of the gradient with respect to one argument; part of an `irad.testing.GradcheckReport`.

    Attributes:
        position: position of the argument.
        name: name of the parameter.
        kind: type of the argument.
        size: number of its floats.
        checked: number of comparisons.
        method: the source of the expected numbers.
        verdict: the verdict on everything that was compared.
        ratio: the largest difference as a multiple of the allowed one: at most 1 if right.
        accuracy: the allowed difference, relative to the largest derivative, or to the sizes of its terms if they
            cancel: the check does not see smaller errors.
        worst: the float, or the random direction, with the largest difference.
        got: irad's derivative there.
        expected: the derivative of the plain function there.
        allowed: the allowed difference there.
        reason: why it is wrong or undecided; empty if right.
        kinks: floats at which the function has a kink; irad's derivative lies between those of both sides, or is wrong.
        confidence: for random directions, the errors that they would have missed.

    Examples:
        >>> import numpy as np
        >>> from irad.testing import gradcheck
        >>> from numba import njit
        >>> @njit
        ... def weighted(x, weight):
        ...     return weight * np.sum(x * x)
        >>> [(each.name, each.size, each.verdict.value) for each in gradcheck(weighted, np.ones(3), 2.0).arguments]
        [('x', 3, 'right'), ('weight', 1, 'right')]
    """

    position: int
    name: str
    kind: str
    size: int
    checked: int
    method: str
    verdict: Verdict
    ratio: float
    accuracy: float
    worst: str
    got: float
    expected: float
    allowed: float
    reason: str = ""
    kinks: tuple[str, ...] = ()
    confidence: str = ""


@dataclass(frozen=True, slots=True)
class GradcheckReport:
    """The result of `irad.testing.gradcheck`; ``print`` shows it as a table.

    Attributes:
        function: the qualified name of the function.
        location: the place of its definition, with ``file`` and ``line``.
        arguments: an `irad.testing.ArgumentReport` for each differentiated argument, the worst over all points, modes
            and cotangents.
        points: number of points that were checked.
        skipped: random points that were left out, with reasons.
        not_checked: arguments that have a derivative but hold no numbers that could be varied.
        primal: the fault of the value or the memory that comes with the derivative; empty if there is none.
        unsteady: the reason why the values are not determined by the arguments; empty if they are.
        hidden_zero: the place where zero times infinity counted as zero, which may be why a number is wrong; empty if
            there is none.

    Examples:
        >>> from irad.testing import gradcheck
        >>> from numba import njit
        >>> @njit
        ... def hinge(x):
        ...     return max(x, 0.0)
        >>> report = gradcheck(hinge, 0.0, raises=False)
        >>> report.right, report.verdict.value, report.worst.kinks
        (True, 'right', ('x',))
        >>> len(report.remarks()), report.to_dict()["points"]
        (1, 1)
    """

    function: str
    location: SourceLocation
    arguments: tuple[ArgumentReport, ...]
    points: int = 1
    skipped: tuple[str, ...] = ()
    not_checked: tuple[str, ...] = ()
    primal: str = ""
    unsteady: str = ""
    hidden_zero: str = ""

    @property
    def verdict(self) -> Verdict:
        """The worst of all verdicts."""
        if self.primal:
            return Verdict.WRONG
        if self.unsteady:
            return Verdict.UNDECIDED
        return max((a.verdict for a in self.arguments), key=lambda v: v.weight, default=Verdict.UNDECIDED)

    @property
    def right(self) -> bool:
        """True if everything that was compared is right."""
        return self.verdict is Verdict.RIGHT

    @property
    def worst(self) -> ArgumentReport:
        """The argument with the worst verdict, of these the one with the largest difference."""
        return max(self.arguments, key=badness)

    def to_dict(self) -> dict[str, Any]:
        """Everything, for JSON: infinite and undefined numbers as text."""
        listed = [{k: _plain(v) for k, v in asdict(a).items()} for a in self.arguments]
        return {
            "function": self.function,
            "file": self.location.file,
            "line": self.location.line,
            "verdict": self.verdict.value,
            "points": self.points,
            "skipped": list(self.skipped),
            "not_checked": list(self.not_checked),
            "primal": self.primal,
            "unsteady": self.unsteady,
            "hidden_zero": self.hidden_zero,
            "arguments": listed,
        }

    def __str__(self) -> str:
        head = f"{self.function}: gradient {self.verdict.value}, {self.points} point{'s' * (self.points > 1)}"
        remarks = (line for remark in self.remarks() for line in wrapped_text(remark, _WIDTH))
        return "\n".join([head, f"  at  {self.location}", *self._table(), *remarks])

    def _table(self) -> Iterator[str]:
        """The arguments in lines that a terminal has room for; where each is worst stands below it."""
        shown = [
            COLUMNS.index(column) for column in ("argument", "checked", "difference/allowed", "accuracy", "verdict")
        ]
        listed = [cells(argument) for argument in self.arguments]
        rows = [tuple(row[i] for i in shown) for row in (COLUMNS, *listed)]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        widths[0] = min(widths[0], _WIDTH - sum(widths[1:]) - 2 * len(widths[1:]))
        for row, worst in zip(rows, (None, *listed), strict=True):
            if len(row[0]) > widths[0]:
                yield from wrapped_text(row[0], _WIDTH)
                row = ("", *row[1:])
            yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            if worst is not None and worst[4]:
                yield from wrapped_text(f"  worst at {worst[4]}: got {worst[5]}, expected {worst[6]}", _WIDTH)

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        verdict = f"The gradient of {self.function} is {self.verdict.value}"
        points = f"{self.points} point{'s' * (self.points > 1)}"
        mood = _MOODS[self.verdict]
        rows = map(cells, self.arguments)
        return notebook.result(f"{verdict} ({points})", mood, str(self.location), COLUMNS, rows, self.remarks())

    def remarks(self) -> list[str]:
        """Remarks that do not fit the table, one sentence each."""
        found = [text for text in (self.primal, self.unsteady, self.hidden_zero) if text]
        if not self.arguments and not found and not self.not_checked:
            found.append(f"there is nothing to check: {NO_FLOATS}")
        for argument in self.arguments:
            kinks = kinks_text(argument.kinks) if argument.kinks else ""
            told = (argument.reason, kinks, argument.confidence)
            found += [f"{argument.name}: {text}" for text in told if text]
        found += [f"not checked: {each}" for each in self.not_checked]
        return found + [f"left out: {each}" for each in self.skipped]


def cells(argument: ArgumentReport) -> tuple[str, ...]:
    """An argument as a line of a table with `COLUMNS`."""
    counted = f"all {argument.size}" if not argument.confidence else f"{argument.checked} directions"
    return (
        f"{argument.name}: {argument.kind}",
        counted,
        short(argument.ratio),
        short(argument.accuracy),
        argument.worst,
        f"{argument.got:.12g}",
        f"{argument.expected:.12g}",
        argument.verdict.value,
    )


def short(number: float) -> str:
    """A figure whose magnitude matters; a dash if there is none."""
    if isnan(number):
        return "–"
    return f"{number:.1e}" if number and not 0.01 <= abs(number) < 1000 else f"{number:.2g}"


def kinks_text(kinks: Sequence[str]) -> str:
    """Words for the floats that lie on a kink."""
    listed = ", ".join(kinks[:3]) + (f" and {len(kinks) - 3} more" if len(kinks) > 3 else "")
    return (
        f"a kink at this point in {listed}: the derivatives of the two sides differ, and irad returns one between them"
    )


def badness(argument: ArgumentReport) -> tuple[int, float]:
    """For the order of arguments from right to wrong."""
    return argument.verdict.weight, argument.ratio if isfinite(argument.ratio) else float("inf")


def merged(reports: Sequence[ArgumentReport]) -> ArgumentReport:
    """Several checks of one argument as one: the worst, with all comparisons and all kinks."""
    worst = max(reports, key=badness)
    if worst.verdict is not Verdict.RIGHT:  # of several failures the first: that at the given point
        worst = next(report for report in reports if report.verdict is worst.verdict)
    kinks = tuple(dict.fromkeys(kink for report in reports for kink in report.kinks))
    most = max(report.accuracy for report in reports)
    return replace(worst, checked=sum(report.checked for report in reports), kinks=kinks, accuracy=most)


def _plain(value: Any) -> Any:
    if isinstance(value, Verdict):
        return value.value
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return list(value) if isinstance(value, tuple) else value


class GradcheckError(IradError, AssertionError):
    """A gradient is wrong, or cannot be checked there; raised by `irad.testing.gradcheck`.

    It is also an `AssertionError`.

    Attributes:
        report: the `irad.testing.GradcheckReport`.

    Examples:
        >>> import irad
        >>> from irad.testing import gradcheck
        >>> from numba import njit
        >>> @njit
        ... def square(x):
        ...     return x * x
        >>> _ = irad.rules.easy_rule(square, lambda x: 3.0 * x)  # wrong
        >>> gradcheck(square, 2.0)
        Traceback (most recent call last):
        ...
        irad.testing.gradients.report.GradcheckError: the gradient of square with respect to x is wrong: got 6, ...
        ...
    """

    def __init__(self, report: GradcheckReport) -> None:
        self.report = report
        problem, remedy = _words(report)
        super().__init__(problem, remedy, location=report.location, detail=_detail(report))


def _words(report: GradcheckReport) -> tuple[str, str]:
    name = report.function
    if report.primal:
        return f"the derivative of {name} does not run the function as a plain call does: {report.primal}", _REPORT_IT
    if report.unsteady:
        return f"the gradient of {name} cannot be checked: {report.unsteady}", "seed the generator inside the function"
    if not report.arguments:
        return (
            f"there is nothing to check in {name}: {'; '.join(report.not_checked) or NO_FLOATS}",
            "pass floats, or arrays, records, tuples or lists of floats, to a function that returns floats",
        )
    worst = report.worst
    where = worst.worst or worst.name
    if report.verdict is Verdict.WRONG:
        return f"the gradient of {name} with respect to {where} is wrong: {_difference(worst)}", _REPORT_IT
    return f"the gradient of {name} with respect to {where} cannot be checked: {worst.reason}", (
        "check at a point (a) away from kinks, jumps and ends of the domain, or (b) given with `domain`; "
        "(c) set `atol` or `rtol` to the accuracy that you need"
    )


_REPORT_IT = (
    "if it uses a rule of your own, correct it (irad.testing.check_rule finds it); otherwise report it with the "
    "function"
)


def _difference(worst: ArgumentReport) -> str:
    return f"got {worst.got:.13g}, expected {worst.expected:.13g} ± {short(worst.allowed)}"


def _detail(report: GradcheckReport) -> str | None:
    if not report.arguments or report.primal or report.unsteady:
        return None
    worst = report.worst
    return f"argument {worst.position}, {worst.name}: {worst.kind}; {worst.method}" + (
        f"; {worst.reason}" if worst.reason and report.verdict is Verdict.WRONG else ""
    )
