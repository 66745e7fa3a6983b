"""Results of `irad.check` and `irad.tape_report`."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass, field

from irad.debug.tape import TapeUse, by_line, shown
from irad.errors import IradError, SourceLocation
from irad.frontend.numba.messages import readable
from irad.report.shown import notebook
from irad.report.shown.amounts import format_bytes, wrapped_code, wrapped_text

_MOST_LINES = 20
_WIDTH = 80
_BELOW = 18  # columns in front of a line of the source that stands below its place


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The result of `irad.check`; ``print`` shows it as text.

    Attributes:
        function: the qualified name of the function.
        location: the place of its definition, with ``file`` and ``line``.
        arguments: name and Numba type of each parameter.
        positions: positions of the arguments with respect to which it is differentiated.
        problems: an error for each construct that irad cannot differentiate, with its place and a remedy.
        plan: for a CUDA kernel, how its derivative works: how it adds to shadows and why, where threads wait for each
            other, what is on the tape.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def power(x, n):
        ...     return x**n
        >>> report = irad.check(power, 2.0, 3)
        >>> report.supported, report.arguments, report.positions
        (True, (('x', 'float64'), ('n', 'int64')), (0,))
    """

    function: str
    location: SourceLocation
    arguments: tuple[tuple[str, str], ...]
    positions: tuple[int, ...]
    problems: tuple[IradError, ...] = field(default=())
    plan: tuple[str, ...] = field(default=())

    @property
    def supported(self) -> bool:
        """True if irad differentiates the function at arguments of these types."""
        return not self.problems

    def __str__(self) -> str:
        head = f"{self._signature()}\n  at  {self.location.file}:{self.location.line}"
        if self.supported:
            said = f"irad differentiates it with respect to {self._differentiated()}{':' if self.plan else '.'}"
            return "\n  - ".join(("\n".join((head, *wrapped_text(said, _WIDTH))), *self.plan))
        count = len(self.problems)
        verdict = f"irad does not differentiate it: {count} problem{'s' * (count > 1)}."
        return "\n\n".join((f"{head}\n{verdict}", *map(str, self.problems)))

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        parameters = ", ".join(f"{name}: {readable(str(kind))}" for name, kind in self.arguments)
        place = f"{self.function}({parameters}), {self.location.file}:{self.location.line}"
        if self.supported:
            verdict = f"irad differentiates {self.function} with respect to {self._differentiated()}"
            return notebook.result(verdict, "good", place, remarks=self.plan)
        count = len(self.problems)
        verdict = f"irad does not differentiate {self.function}: {count} problem{'s' * (count > 1)}"
        return notebook.result(verdict, "bad", place, remarks=map(str, self.problems))

    def _signature(self) -> str:
        """The parameters with their types: on one line if a terminal has room, else on one each."""
        parameters = [f"{name}: {readable(str(kind))}" for name, kind in self.arguments]
        line = f"{self.function}({', '.join(parameters)})"
        if len(line) <= _WIDTH:
            return line
        listed = (part for parameter in parameters for part in wrapped_text(f"    {parameter},", _WIDTH))
        return "\n".join((f"{self.function}(", *listed, ")"))

    def _differentiated(self) -> str:
        names = [name for name, _ in self.arguments]
        last = len(names) - 1  # star arguments have positions of their own after the last name
        *most, final = dict.fromkeys(names[min(position, last)] for position in self.positions)
        return f"{', '.join(most)} and {final}" if most else final


@dataclass(frozen=True, slots=True)
class TapeReport:
    """The memory that the tape of one call took; the result of `irad.tape_report`. ``print`` shows it as text.

    Attributes:
        function: the qualified name of the function.
        uses: the saved values with their bytes, the largest first.
        derivative: the derivative that was called: ``irad.grad``, ``irad.vjp`` or ``irad.split``.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def logistic(x, n):
        ...     for _ in range(n):
        ...         x = 3.7 * x * (1.0 - x)
        ...     return x
        >>> report = irad.tape_report(logistic, 0.3, 100, argnums=0)
        >>> report.total >= 8 * 100
        True
        >>> place, size = report.lines()[0]
        >>> size >= 8 * 100
        True
    """

    function: str
    uses: tuple[TapeUse, ...]
    derivative: str

    @property
    def total(self) -> int:
        """Bytes of all saved values, without padding for alignment."""
        return sum(use.bytes for use in self.uses)

    def lines(self) -> tuple[tuple[SourceLocation, int], ...]:
        """Bytes by line of the source.

        Returns:
            Pairs of a place, with ``file`` and ``line``, and its bytes, the largest first. Values without a line are
            left out.
        """
        places = {(u.location.file, u.location.line): u.location for u in self.uses if u.location is not None}
        return tuple((places[key], count) for key, count in by_line(self.uses).items())

    def __str__(self) -> str:
        rows = wrapped_text(f"tape of {self.function} in {self.derivative}: {shown(self.total)}", _WIDTH)
        lines = self.lines()
        rows += _rows(lines[:_MOST_LINES])
        if len(lines) > _MOST_LINES:
            rows.append(f"  … and {len(lines) - _MOST_LINES} lines more")
        rest = self.total - sum(count for _, count in lines)
        if rest:
            rows.append(f"  {rest:>14}  without a line")
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        """HTML for notebooks: the bytes of each line."""
        return self._html()

    def _html(self, more: Sequence[str] = ()) -> str:
        lines = self.lines()
        most = max((count for _, count in lines), default=1)
        rows: list[tuple[str | notebook.NumberCell, ...]] = [
            (
                notebook.NumberCell(format_bytes(count), count / most),
                notebook.NumberCell(str(place.line)),
                f"`{linecache.getline(place.file, place.line).strip()}`",
            )
            for place, count in lines[:_MOST_LINES]
        ]
        remarks = [f"… and {len(lines) - _MOST_LINES} lines more"] if len(lines) > _MOST_LINES else []
        rest = self.total - sum(count for _, count in lines)
        if rest:
            rows.append((notebook.NumberCell(format_bytes(rest)), notebook.NumberCell(""), "without a line"))
        verdict = f"The tape of {self.function} in {self.derivative} takes {shown(self.total)}"
        return notebook.result(verdict, "plain", head=("saved", "line", "source"), rows=rows, remarks=[*remarks, *more])


def _rows(lines: Sequence[tuple[SourceLocation, int]]) -> list[str]:
    """The bytes of each line, its place and its source: beside the place where all fit, else below."""
    heads = [f"  {count:>14}  {place.file}:{place.line}" for place, count in lines]
    sources = [linecache.getline(place.file, place.line).strip() for place, _ in lines]
    beside = [f"{head}  {source}".rstrip() for head, source in zip(heads, sources, strict=True)]
    if max(map(len, beside), default=0) <= _WIDTH:
        return beside
    indent = " " * _BELOW
    below = [wrapped_code(source, _WIDTH - _BELOW) for source in sources]
    return [row for head, parts in zip(heads, below, strict=True) for row in (head, *(indent + part for part in parts))]
