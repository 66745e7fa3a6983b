"""irad's errors: one root, one format.

Every error says what is wrong (``problem``), where (``location``, a place in the user's source, shown with its line),
why (``reason``) and what to do (``remedy``). `irad.message` lays that out. LLVM text is shown where it was asked for
(``IRAD_ERRORS=llvm``).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final, Literal, ParamSpec, TypeVar

from irad.message import definition_line, excerpt, labelled, remedies, source_line

MAX_LINES: Final = 25
"""No message is longer, unless LLVM text was asked for."""
_MAX_CALLERS: Final = 3
HERE: Final = "here"
"""For errors that compiled code raises: the place is the line of Python code that runs at that time."""
_OWN: Final = ("irad", "numba")
_P = ParamSpec("_P")
_R = TypeVar("_R")


@dataclass(frozen=True, slots=True)
class SourceLocation:
    """A place in a source file. ``line`` counts from 1; 0 means unknown."""

    file: str
    line: int
    function: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f" in {self.function}" if self.function else "")

    @classmethod
    def of(cls, function: Callable[..., object]) -> SourceLocation | None:
        """The place of a Python function, the line of its ``def``; None for what is not written in Python."""
        function = getattr(function, "py_func", function)
        code = getattr(inspect.unwrap(function), "__code__", None)
        if code is None:
            return None
        line = definition_line(code.co_filename, code.co_firstlineno)
        return cls(code.co_filename, line, getattr(function, "__qualname__", code.co_qualname))

    @classmethod
    def here(cls) -> SourceLocation | None:
        """The line of the user's Python code that is being run; None where irad was started by its command line."""
        frame: FrameType | None = sys._getframe()
        while frame is not None and _package_of(frame) in _OWN:
            frame = frame.f_back
        if frame is None or _package_of(frame) == "click":
            return None
        return cls(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def without_source(function: Callable[_P, _R], name: str) -> Callable[_P, _R]:
    """The function itself; tracebacks show ``File "<irad>", in name`` where they would show a line of irad's source."""
    function.__code__ = function.__code__.replace(co_filename="<irad>", co_name=name)
    return function


class IradError(Exception):
    """Root of every error that irad raises on purpose.

    Attributes:
        problem: one sentence, what is wrong.
        remedy: what the user can do; alternatives are "(a) … or (b) …".
        reason: why that is wrong, in terms of Python; None where the problem says it.
        location: where in the user's source, or None.
        detail: the operation there, in Python terms, or None.
        focus: words of the source line to mark, or None.
        callers: where the function that the location is in was called from, innermost first, if it was inlined.
        llvm: the LLVM text that is concerned, if it was asked for.
        instruction: the instruction of the program that is concerned, until the driver has turned it into a location.
        memory: the memory of the program that is concerned, while it is looked for everything that is wrong.
    """

    def __init__(
        self,
        problem: str,
        remedy: str,
        reason: str | None = None,
        location: SourceLocation | Literal["here"] | None = None,
        detail: str | None = None,
        focus: str | None = None,
    ) -> None:
        self.problem, self.remedy, self.reason = problem, remedy, reason
        self.location = SourceLocation.here() if location == HERE else location
        self.detail, self.focus = detail, focus
        self.callers: tuple[SourceLocation, ...] = ()
        self.llvm: str | None = None
        self.instruction: object | None = None
        self.memory: object | None = None
        super().__init__(problem)

    __module__ = "irad"  # the name that users write is the name that tracebacks show

    def __init_subclass__(cls) -> None:
        if cls.__module__ == __name__:
            cls.__module__ = "irad"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield self.problem
        source = ""
        if self.location is not None:
            yield f"  at  {self.location}"
            source = source_line(self.location.file, self.location.line)
            yield from excerpt(source, self.focus)
        for caller in self.callers[:_MAX_CALLERS]:
            yield f"      called from {caller}"
            yield from excerpt(source_line(caller.file, caller.line), None)
        if self.detail and self.detail != source:
            yield from labelled("in", self.detail)
        if self.reason:
            yield from labelled("why", self.reason)
        yield from remedies(self.remedy)
        if self.llvm:
            yield from (f"  llvm {line}" for line in self.llvm.splitlines())

    def __reduce__(self) -> tuple[Any, ...]:
        """A pool of processes hands errors on. The instruction is left out: it refers to the whole program."""
        return _restored, (type(self), self.args, {**self.__dict__, "instruction": None, "memory": None})


def _restored(kind: type[IradError], args: tuple[Any, ...], state: dict[str, Any]) -> IradError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(state)
    return error


class ParseError(IradError):
    """Text that is not LLVM IR as irad knows it; ``line`` and ``column`` count from 1."""

    def __init__(self, problem: str, line: int, column: int) -> None:
        self.line, self.column = line, column
        super().__init__(
            f"{problem} (line {line}, column {column} of the LLVM text)",
            "report it with the function: this version of LLVM prints something that irad cannot read",
        )


class UnsupportedError(IradError):
    """A construct that irad cannot differentiate."""


class SignatureError(IradError):
    """Wrong annotation, argument count, shadow or seed."""


class ActivityError(IradError):
    """A derivative would be lost: an active value is stored in constant memory, or in memory of unknown origin."""


class NoRuleError(UnsupportedError):
    """A call to a function that has neither a body that irad sees nor a rule."""


class RuleError(IradError):
    """A rule that contradicts itself or another one."""


class PlanError(IradError):
    """A needed value can be neither saved nor recomputed."""


class BackendError(IradError):
    """Numba cannot compile the function, or LLVM or Numba rejected what irad generated."""


class InternalError(IradError):
    """A fault in irad itself."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem, "report it with the function that caused it")


class NonFiniteError(IradError):
    """Debug mode: a value or a derivative is NaN or infinite. The location is where it began.

    Attributes:
        sweep: "value" or "derivative": what was being computed when it began; "argument" if it was passed in.
        result: what is NaN or infinite at the end, in words.
        operation: what began it, with the values that it was computed from; "" if it was passed in.
        loops: for each loop around it, outermost first, its place and the number of the iteration, from 0; of a
            parallel loop the value of its variable.
    """

    def __init__(
        self,
        problem: str,
        remedy: str,
        reason: str,
        *,
        sweep: str,
        result: str,
        operation: str = "",
        loops: Sequence[tuple[SourceLocation | None, int]] = (),
        location: SourceLocation | None = None,
        detail: str | None = None,
    ) -> None:
        super().__init__(problem, remedy, reason, location, detail)
        self.sweep, self.result, self.operation, self.loops = sweep, result, operation, tuple(loops)


class ChangedBufferError(IradError):
    """Debug mode: memory that a rule may read in the pullback has changed since the forward sweep."""


class ChangedProgramError(IradError):
    """Numba's machine code of a function computes with other values of globals than the function would now."""


class TapeLimitError(IradError, MemoryError):
    """A call needs more tape than ``Options.max_tape_bytes`` allows. The location is the line that saves most."""


class UsedTapeError(IradError):
    """The tape of `irad.split` was reversed already, or is being reversed by another thread."""


class BoundsError(IradError, IndexError):
    """With ``Options(boundscheck=True)``: an index is out of bounds. The location is that of the access.

    Made by compiled code when it raises.

    Attributes:
        array: the name of the array, "" where it has none.
        axis: of the array; -1 where that is not known.
        index: as it was written, negative ones included.
        size: how many elements the array has along that axis.
    """

    def __init__(self, file: str, line: int, function: str, array: str, axis: int, index: int, size: int) -> None:
        self.array, self.axis, self.index, self.size = array, axis, index, size
        along = f" along axis {axis}" if axis >= 0 else ""
        name = array or "the array"
        super().__init__(
            f"index {index} is out of bounds: {name} has {size} element{'s' * (size != 1)}{along}",
            "correct the index, or the range of the loop that it comes from",
            "unchecked, the access reads memory that is not the array's, and its derivative writes to such memory",
            SourceLocation(file, line, function) if file else HERE,
            focus=array or None,
        )
        self.args = file, line, function, array, axis, index, size


class KernelError(IradError):
    """A fault of a CUDA kernel, found while it ran on the CPU."""


class BarrierError(KernelError):
    """Threads of a block wait for each other for ever, or wait at different barriers."""


class KernelBoundsError(KernelError, IndexError):
    """A kernel accesses memory that is in none of its arrays."""


class RaceError(KernelError):
    """Two threads access the same memory, at least one writes, and nothing says which is first.

    Attributes:
        threads: their indices in their blocks.
        blocks: the indices of these.
        locations: the lines of the two accesses; None where unknown.
        address: the first byte that both access.
    """

    def __init__(
        self,
        problem: str,
        remedy: str,
        reason: str,
        *,
        threads: tuple[tuple[int, int, int], tuple[int, int, int]],
        blocks: tuple[tuple[int, int, int], tuple[int, int, int]],
        locations: tuple[SourceLocation | None, SourceLocation | None],
        address: int,
        detail: str,
    ) -> None:
        super().__init__(problem, remedy, reason, locations[0], detail)
        self.threads, self.blocks, self.locations, self.address = threads, blocks, locations, address


class TieWarning(UserWarning):
    """Debug mode: a branch, a minimum or a kink was decided by active values that are equal."""


class NonFiniteWarning(UserWarning):
    """A zero cotangent won over an infinite slope, and is zero only because the slope of something else is zero there.

    If the function is smooth at that point, its derivative may be another number: that of ``(s**(1/3))**3`` at zero is
    one.
    """


class ChangedBufferWarning(UserWarning):
    """Debug mode: an argument was changed between `irad.vjp` and its pullback, which belongs to the old contents."""


class IntegrationWarning(UserWarning):
    """The error of an integral that Python asked for is greater than the tolerances; compiled code raises instead."""


class UntestedVersionWarning(UserWarning):
    """irad was not tested with this version of Numba or Python; given once, when irad is first used."""


class UnsupportedProgram(UnsupportedError):
    """Several unsupported constructs of one program, listed in ``errors``.

    Attributes:
        errors: one for each.
        is_cut: whether the text stops after `MAX_LINES`, since `irad.check` shows the rest.
    """

    def __init__(self, errors: Sequence[IradError]) -> None:
        self.errors, self.is_cut = tuple(errors), True
        super().__init__(
            "the function has several constructs that irad cannot differentiate", "change each as described below"
        )

    def __str__(self) -> str:
        listed = list(dict.fromkeys(str(e) for e in self.errors))
        if len(listed) == 1:
            return listed[0]
        shown = [f"{self.problem} ({len(listed)})"]
        room = MAX_LINES - 3  # the heading, and below a line that says how many are left out
        for number, text in enumerate(listed):
            room -= text.count("\n") + 2
            if self.is_cut and room < 0 and number > 0 and not any(e.llvm for e in self.errors):
                shown.append(f"… and {len(listed) - number} more: print(irad.check(f, *args)) lists them all")
                break
            shown.append(text)
        return "\n\n".join(shown)
