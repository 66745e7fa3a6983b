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

    Its text has up to four parts: the problem, the place in your source, the reason and the remedy. Errors can be
    pickled, so a pool of processes passes them on.

    Attributes:
        problem: what is wrong, in one sentence.
        remedy: what to do about it; alternatives are "(a) … or (b) …".
        reason: why it is wrong, in terms of Python; None where the problem says it.
        location: the place in your source, with ``file``, ``line`` (from 1) and ``function``; None if there is none.
        detail: the operation at that place, in terms of Python; None if there is none.
        focus: the words of the source line that are marked; None if there are none.
        callers: where the function at that place was called from, innermost first, if it was inlined.
        llvm: the LLVM instruction concerned; None unless ``IRAD_ERRORS=llvm`` asks for it.
        instruction: for irad's own use.
        memory: for irad's own use.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def successor(n):
        ...     return n + 1
        >>> try:
        ...     irad.grad(successor)(3)
        ... except irad.IradError as error:
        ...     print(type(error).__name__)
        ...     print(error.problem)
        SignatureError
        argument 0 (n) of successor is an int64, which has no derivative
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
    """LLVM's text has a construct that irad does not know.

    No version of LLVM that irad supports is known to print such text; please report it with the function.

    Attributes:
        line: the line in LLVM's text, from 1.
        column: the column in that line, from 1.

    Examples:
        >>> from irad.ir.text.parser import parse_module
        >>> parse_module("define void @f() { ? }")
        Traceback (most recent call last):
        ...
        irad.ParseError: expected an instruction or label, found '?' (line 1, column 20 of the LLVM text)
        ...
    """

    def __init__(self, problem: str, line: int, column: int) -> None:
        self.line, self.column = line, column
        super().__init__(
            f"{problem} (line {line}, column {column} of the LLVM text)",
            "report it with the function: this version of LLVM prints something that irad cannot read",
        )


class UnsupportedError(IradError):
    """The function has a construct that irad cannot differentiate; the location is that of the construct.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def angle(concentration):
        ...     return np.random.vonmises(0.0, concentration)
        >>> irad.grad(angle)(2.0)
        Traceback (most recent call last):
        ...
        irad.UnsupportedError: irad has no derivative of a von Mises draw with respect to its concentration
        ...
    """


class SignatureError(IradError):
    """A call does not fit: the arguments, an annotation, a shadow, a cotangent or an option.

    It is raised before the function runs.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def successor(n):
        ...     return n + 1
        >>> irad.grad(successor)(3)
        Traceback (most recent call last):
        ...
        irad.SignatureError: argument 0 (n) of successor is an int64, which has no derivative
        ...
    """


class ActivityError(IradError):
    """A derivative would be lost: an active value is stored in memory that is constant or unknown to irad.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def square(x, work):
        ...     work[0] = x
        ...     return work[0] * x
        >>> irad.autodiff(irad.Reverse, square, irad.Active(2.0), irad.Const(np.zeros(1)))
        Traceback (most recent call last):
        ...
        irad.ActivityError: an active value is stored in the memory of argument 'work', which was passed as constant
        ...
    """


class NoRuleError(UnsupportedError):
    """The function calls code that irad does not see and that has no rule.

    Examples:
        >>> import irad
        >>> from numba import njit, types
        >>> density = types.ExternalFunction("density", types.float64(types.float64))  # of a C library
        >>> @njit
        ... def drag(speed):
        ...     return density(speed) * speed**2
        >>> irad.grad(drag)(3.0)
        Traceback (most recent call last):
        ...
        irad.NoRuleError: no derivative rule for a call to density
        ...
    """


class RuleError(IradError):
    """A rule that you wrote contradicts itself, another rule, or the function that it is for.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def square(x):
        ...     return x * x
        >>> irad.rules.easy_rule(square, lambda x: 2.0 * x, lambda x: 0.0)
        Traceback (most recent call last):
        ...
        irad.RuleError: square takes 1 argument and is given 2 partial derivatives
        ...
    """


class PlanError(IradError):
    """The reverse sweep needs a value that can be neither saved nor recomputed: a fault of irad's, please report it.

    No program is known to raise it. ``irad.Options(plan="save_all")`` may get around it.

    Examples:
        >>> import irad
        >>> issubclass(irad.PlanError, irad.IradError)
        True
    """


class BackendError(IradError):
    """Numba cannot compile the function, or LLVM or Numba rejects the derivative.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def scaled(x):
        ...     return facter * x
        >>> irad.grad(scaled)(3.0)
        Traceback (most recent call last):
        ...
        irad.BackendError: Numba cannot compile scaled: the name facter is not defined
        ...
    """


class InternalError(IradError):
    """irad met a state that its own code rules out: a fault of irad's, please report it.

    Its traceback is shown in full, unlike that of other errors.

    Examples:
        >>> import irad
        >>> print(irad.InternalError("invalid IR in @loss"))  # no program is known to raise it
        invalid IR in @loss
          do  report it with the function that caused it
    """

    def __init__(self, problem: str) -> None:
        super().__init__(problem, "report it with the function that caused it")


class NonFiniteError(IradError):
    """With ``Options(debug=True)``: a value or a derivative is NaN or infinite. The location is where that began.

    Attributes:
        sweep: what was being computed at that place: "value" or "derivative"; "argument" if it was passed in.
        result: the value or derivative that is NaN or infinite in the end, in words.
        operation: the operation that first gave NaN or infinity, with its operands; "" if it was passed in.
        loops: for each loop around that place, outermost first, its location and the number of the iteration, from 0;
            for a parallel loop, the value of the loop variable.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def root(x):
        ...     return np.sqrt(x)
        >>> try:
        ...     irad.grad(root, options=irad.Options(debug=True))(0.0)
        ... except irad.NonFiniteError as error:
        ...     print(error.sweep)
        ...     print(error.operation)
        derivative
        0.5 / 0.0 = inf, in the derivative of sqrt
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
    """With ``Options(debug=True)``: memory that the reverse sweep reads has changed since the forward sweep.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def energy(x):
        ...     return np.sum(x * x)
        >>> unchanged = irad.ReverseSplit(modified=())  # a promise
        >>> augmented, reverse = irad.split(unchanged, energy, irad.Duplicated, options=irad.Options(debug=True))
        >>> x = np.ones(2)
        >>> tape = augmented(irad.Duplicated(x, np.zeros(2)))
        >>> x[0] = 5.0
        >>> reverse(tape)
        Traceback (most recent call last):
        ...
        irad.ChangedBufferError: the argument x was changed between the two sweeps of energy, although modified ...
    """


class ChangedProgramError(IradError):
    """A compiled function computes with old values of its globals, or with an old version of a function it calls.

    Numba freezes both when it compiles. A derivative made now would be that of another program.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def inner(x):
        ...     return scale * x
        >>> @njit
        ... def outer(x):
        ...     return inner(x) * x
        >>> scale = 2.0
        >>> outer(1.5)
        4.5
        >>> scale = 3.0
        >>> inner.recompile()
        >>> irad.grad(outer)(1.5)
        Traceback (most recent call last):
        ...
        irad.ChangedProgramError: outer was compiled before inner was recompiled, and still calls the old version
        ...
    """


class TapeLimitError(IradError, MemoryError):
    """A call needs more tape than ``Options.max_tape_bytes`` allows. The location is the line that saves most.

    It is also a `MemoryError`.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def iterated(x, n):
        ...     for _ in range(n):
        ...         x = np.sin(x)
        ...     return x
        >>> irad.grad(iterated, options=irad.Options(max_tape_bytes=1000))(0.5, 1000)
        Traceback (most recent call last):
        ...
        irad.TapeLimitError: the tape of iterated takes at least ... bytes (...), but max_tape_bytes is 1000 bytes; ...
    """


class UsedTapeError(IradError):
    """The tape of `irad.split` has already been reversed, or another thread is reversing it.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def square(x):
        ...     return x * x
        >>> augmented, reverse = irad.split(irad.ReverseSplit, square, irad.Active)
        >>> tape = augmented(irad.Active(3.0))
        >>> reverse(tape)
        (6.0,)
        >>> reverse(tape)
        Traceback (most recent call last):
        ...
        irad.UsedTapeError: the tape has already been reversed
        ...
    """


class BoundsError(IradError, IndexError):
    """With ``Options(boundscheck=True)``: an index is out of bounds. The location is that of the access.

    It is also an `IndexError`. Compiled code raises it.

    Attributes:
        array: the name of the array; "" if it has none.
        axis: the axis of the array, from 0; -1 if it is not known.
        index: the index as it was written, perhaps negative.
        size: the number of elements along that axis.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def last(x):
        ...     return x[x.size]
        >>> irad.grad(last, options=irad.Options(boundscheck=True))(np.ones(2))
        Traceback (most recent call last):
        ...
        irad.BoundsError: index 2 is out of bounds: x has 2 elements along axis 0
        ...
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
    """Root of the faults of CUDA kernels that `irad.cuda.executor` finds while it runs them on the CPU.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import cuda
        >>> @cuda.jit
        ... def total(x, out):
        ...     i = cuda.grid(1)
        ...     if i < x.size:
        ...         out[0] += x[i]
        >>> with irad.cuda.executor(races=True):
        ...     try:
        ...         total[1, 32](np.ones(2), np.zeros(1))
        ...     except irad.KernelError as error:
        ...         print(error.problem)
        total has a race on element 0 of out
    """


class BarrierError(KernelError):
    """Threads of a block wait for each other forever, or wait at different barriers.

    Examples:
        >>> import irad
        >>> from numba import cuda
        >>> @cuda.jit
        ... def stuck():
        ...     if cuda.threadIdx.x == 0:
        ...         cuda.syncthreads()
        ...     else:
        ...         cuda.syncwarp()
        >>> with irad.cuda.executor():
        ...     stuck[1, 2]()
        Traceback (most recent call last):
        ...
        irad.BarrierError: threads of block (0, 0, 0) of stuck wait for each other forever
        ...
    """


class KernelBoundsError(KernelError, IndexError):
    """With ``irad.cuda.executor(races=True)``: a kernel accesses memory that is in none of its arrays.

    It is also an `IndexError`.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import cuda
        >>> @cuda.jit
        ... def shift(x):
        ...     i = cuda.grid(1)
        ...     x[i] = x[i + 1]
        >>> with irad.cuda.executor(races=True):
        ...     shift[1, 2](np.ones(2))
        Traceback (most recent call last):
        ...
        irad.KernelBoundsError: shift accesses memory that is in none of its arrays: element 2 of x, which has 2
        ...
    """


class RaceError(KernelError):
    """Two threads access the same memory in no defined order, and at least one writes.

    It is raised inside ``irad.cuda.executor(races=True)``. The location is that of the first access.

    Attributes:
        threads: the indices (x, y, z) of the two threads in their blocks.
        blocks: the indices (x, y, z) of these blocks.
        locations: the lines of the two accesses; None for one that is unknown.
        address: the first byte that both access.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import cuda
        >>> @cuda.jit
        ... def total(x, out):
        ...     i = cuda.grid(1)
        ...     if i < x.size:
        ...         out[0] += x[i]  # cuda.atomic.add(out, 0, x[i]) would be right
        >>> with irad.cuda.executor(races=True):
        ...     try:
        ...         total[1, 32](np.ones(2), np.zeros(1))
        ...     except irad.RaceError as error:
        ...         print(error.threads)
        ((0, 0, 0), (1, 0, 0))
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
    """With ``Options(debug=True)``: two equal active values decided a branch, a minimum or a kink.

    The derivative is that of the side that was taken.

    Examples:
        >>> import irad
        >>> import warnings
        >>> from numba import njit
        >>> @njit
        ... def larger(x, y):
        ...     return max(x, y)
        >>> with warnings.catch_warnings(action="error"):
        ...     irad.grad(larger, options=irad.Options(debug=True))(1.0, 1.0)
        Traceback (most recent call last):
        ...
        irad.errors.TieWarning: equal numbers decided a branch: 1.0 > 1.0; the derivative is that of the side ...
    """


class NonFiniteWarning(UserWarning):
    """With ``Options(debug=True)``: a derivative is zero only because zero times infinity counts as zero.

    If the function is smooth at that point, its derivative may be another number: that of ``(s**(1/3))**3`` at zero is
    one.

    Examples:
        >>> import irad
        >>> import warnings
        >>> from numba import njit
        >>> @njit
        ... def identity(s):
        ...     return (s ** (1 / 3)) ** 3
        >>> with warnings.catch_warnings(action="error"):
        ...     irad.grad(identity, options=irad.Options(debug=True))(0.0)
        Traceback (most recent call last):
        ...
        irad.errors.NonFiniteWarning: in a derivative of identity, zero times infinity was taken as zero: ...
    """


class ChangedBufferWarning(UserWarning):
    """With ``Options(debug=True)``: an argument was changed between `irad.vjp` and its pullback.

    The pullback still gives the derivative at the old contents.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> import warnings
        >>> from numba import njit
        >>> @njit
        ... def energy(x):
        ...     return np.sum(x * x)
        >>> x = np.ones(2)
        >>> value, pullback = irad.vjp(energy, x, options=irad.Options(debug=True))
        >>> x[0] = 5.0
        >>> with warnings.catch_warnings(action="error"):
        ...     pullback(1.0)
        Traceback (most recent call last):
        ...
        irad.errors.ChangedBufferWarning: the argument x was changed between irad.vjp and the pullback, ...
    """


class IntegrationWarning(UserWarning):
    """The error of an integral is larger than the tolerances; raised as a `ValueError` in compiled code.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> import warnings
        >>> from irad.integrate import quad
        >>> from numba import njit
        >>> @njit
        ... def wild(x):
        ...     return np.sin(1.0 / x) / x
        >>> with warnings.catch_warnings(action="error"):
        ...     quad(wild, 0.0, 1.0, limit=2)
        Traceback (most recent call last):
        ...
        irad.errors.IntegrationWarning: an integral is less precise than epsabs and epsrel require: ...
    """


class UntestedVersionWarning(UserWarning):
    """irad was not tested with this version of Numba or Python; given once, when irad is first used.

    Examples:
        >>> import irad
        >>> import warnings
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore", irad.UntestedVersionWarning)  # after gradients were checked
        ...     irad.grad(lambda x: x * x)(3.0)
        6.0
    """


class UnsupportedProgram(UnsupportedError):
    """The function has several constructs that irad cannot differentiate.

    Attributes:
        errors: an error for each construct.
        is_cut: whether the text leaves some out to stay short; `irad.check` shows them all.

    Examples:
        >>> import irad
        >>> from numba import njit, types
        >>> density = types.ExternalFunction("density", types.float64(types.float64))  # of a C library
        >>> viscosity = types.ExternalFunction("viscosity", types.float64(types.float64))
        >>> @njit
        ... def drag(speed):
        ...     return density(speed) * speed**2 + viscosity(speed) * speed
        >>> try:
        ...     irad.grad(drag)(3.0)
        ... except irad.UnsupportedProgram as program:
        ...     for error in program.errors:
        ...         print(error.problem)
        no derivative rule for a call to density
        no derivative rule for a call to viscosity
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
