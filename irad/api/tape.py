"""`tape_report`: how much memory the tape of one call takes, measured by value and by line."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from irad.api.functions import check_options, options_or_default, primal_of
from irad.api.grad import grad
from irad.api.kernels import is_kernel, launched_of, no_configuration
from irad.api.positions import chosen
from irad.api.separate.split import AugmentedSweep
from irad.api.separate.vjp import vjp
from irad.debug.tape import TapeUse, by_line, shown
from irad.errors import SourceLocation
from irad.frontend.calls.watch_hooks import measured
from irad.options import Options
from irad.report.shown import notebook
from irad.report.shown.amounts import format_bytes, wrapped_code

_MOST_LINES = 20
_WIDTH = 80
_BELOW = 18  # columns in front of a line of the source that stands below its place


@dataclass(frozen=True, slots=True)
class TapeReport:
    """The memory that the tape of one call took.

    Attributes:
        function: qualified name.
        uses: by value, the largest first.
        derivative: which one was called: ``irad.grad``, ``irad.vjp`` or ``irad.split``.

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
        """Bytes, rounding for alignment aside."""
        return sum(use.bytes for use in self.uses)

    def lines(self) -> tuple[tuple[SourceLocation, int], ...]:
        """Bytes by line of the source, the largest first; what has no line is left out."""
        places = {(u.location.file, u.location.line): u.location for u in self.uses if u.location is not None}
        return tuple((places[key], count) for key, count in by_line(self.uses).items())

    def __str__(self) -> str:
        rows = [f"tape of {self.function} in {self.derivative}: {shown(self.total)}"]
        lines = self.lines()
        rows += _rows(lines[:_MOST_LINES])
        if len(lines) > _MOST_LINES:
            rows.append(f"  … and {len(lines) - _MOST_LINES} lines more")
        rest = self.total - sum(count for _, count in lines)
        if rest:
            rows.append(f"  {rest:>14}  without a line")
        return "\n".join(rows)

    def _repr_html_(self) -> str:
        """What notebooks show: the bytes of each line."""
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


def tape_report(
    f: Callable[..., Any],
    *args: Any,
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> TapeReport:
    """Calls a derivative and measures its tape.

    Args:
        f: the function, as in `irad.grad`, or the augmented sweep that `irad.split` gives, or a CUDA kernel with the
            configuration of a launch, as ``kernel[blocks, threads]`` or ``irad.cuda.grad(kernel)[blocks, threads]``.
        args: its arguments, annotated where the sweep wants that; arrays that ``f`` writes to are written. A kernel
            runs on the executor, on copies.
        argnums: positions, as of `irad.grad`, of a function that returns a float; None: the forward sweep of `irad.vjp`
            is measured, which saves more, since arguments may change before the pullback runs. Of a kernel None means
            all arguments that hold floats.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative is created.

    Returns:
        The report. Values that are computed once per call are in the frame, those of counted loops in slabs, those of
        other loops in records.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def chain(x, n):
        ...     for _ in range(n):
        ...         x = np.sin(x)
        ...     return x
        >>> irad.tape_report(chain, 0.5, 1000).total >= 8000
        True
    """
    check_options(options)
    launched = launched_of(f)
    if launched is not None:
        from irad.cuda.reports.tape import kernel_tape_report  # imports numba.cuda

        positions = chosen(launched.kernel.py_func, argnums, argnames, None)
        return kernel_tape_report(launched, args, positions, options)
    if is_kernel(f):
        raise no_configuration(f, "irad.tape_report")
    if isinstance(f, AugmentedSweep):
        measured_sweep = f.with_options(replace(f.sweep.options, measure_tape=True))
        measured_sweep(*args)
        found = measured()
        return TapeReport(f.sweep.primal.py_func.__qualname__, found.uses() if found is not None else (), "irad.split")
    measuring = replace(options_or_default(options), measure_tape=True)
    primal = primal_of(f)
    argnums = chosen(f, argnums, argnames, None)
    if argnums is None:
        vjp(f, *args, options=measuring)
    else:
        grad(f, argnums, options=measuring)(*args)
    found = measured()
    measured_by = "irad.vjp" if argnums is None else "irad.grad"
    return TapeReport(primal.py_func.__qualname__, found.uses() if found is not None else (), measured_by)


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
