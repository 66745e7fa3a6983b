"""Facts of a report: plain data, no LLVM, no Numba, so that text, JSON and HTML are made from the same facts.

`irad.report.collect` fills it, `irad.report.shown.text`, `.html` and the command line only show it.

A *line number* is of the user's source. Facts about a value carry the places of the instruction, innermost first, as
`DebugInfo.inline_chain` gives them; `place` is the innermost one that lies in the user's own files.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from irad.errors import SourceLocation


class Stage(enum.StrEnum):
    """Stages of a function on its way to its derivative, in order."""

    PYTHON = "python"
    NUMBA_IR = "numba-ir"
    LLVM = "llvm"
    PREPARED = "prepared"
    TYPES = "types"
    ACTIVITY = "activity"
    PLAN = "plan"
    TAPE = "tape"
    ADJOINT_PYTHON = "adjoint-python"
    ADJOINT = "adjoint"
    OPTIMIZED = "optimized"
    ASM = "asm"
    PTX = "ptx"


class Storage(enum.StrEnum):
    """Place of a saved value."""

    FRAME = "frame"  # outside loops, once per call
    SLAB = "slab"  # in a counted loop: an array per value
    RECORD = "record"  # in another loop: a record per iteration
    KEPT = "kept"  # as much as the program asks for: shadows of arrays that it makes, what rules keep


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of a stage.

    Attributes:
        text: without its end.
        line: the line of the user's source that it comes from; None where unknown or from a library.
        value: name of the value it is about, as in `ValueFacts.name`; None where there is none.
        is_noise: reference counts, debug records and the like, which a reader may want to hide.
        raw: the line as the compiler has it, with metadata and mangled names, where that differs from ``text``.
    """

    text: str
    line: int | None = None
    value: str | None = None
    is_noise: bool = False
    raw: str | None = None


@dataclass(frozen=True, slots=True)
class StageText:
    """One stage of the whole program. ``language`` is the lexer's name: python, llvm, nasm, ptx or text."""

    stage: Stage
    language: str
    lines: tuple[TextLine, ...]


@dataclass(frozen=True, slots=True)
class ValueFacts:
    """One value of a function of the prepared program, and what was decided about it. Stores and calls count as values.

    Attributes:
        name: with its ``%``; empty for what has no value, a store for one.
        type: LLVM's type, as text.
        operation: the instruction in words of the source where there are some: "load of x[i]", "call of exp".
        places: where in the source, innermost first.
        is_active: whether a cotangent is kept for it (a number), or a shadow (a pointer).
        activity: why it is active or constant.
        memory: memory that a pointer may point to; for a load, whether it stays unchanged. Empty for other values.
        plan: saved, recomputed or not needed, and why, with the cost that decided.
        is_saved: whether it is on the tape.
        rule: symbol or name of the rule that differentiates it, for calls.
        rule_origin: where that rule is written.
        operands: names of the values it is computed from, in this function.
        variables: the Python variables that it is a value of.
        source: its form in the source: a variable, or an operation with its line.
    """

    name: str
    type: str
    operation: str
    places: tuple[SourceLocation, ...]
    is_active: bool
    activity: str
    memory: tuple[str, ...] = ()
    plan: str = ""
    is_saved: bool = False
    rule: str | None = None
    rule_origin: SourceLocation | None = None
    operands: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    source: str = ""


@dataclass(frozen=True, slots=True)
class TapeEntry:
    """One value on the tape, or something else there: links, alignment, shadows of what the function allocates.

    Attributes:
        value: its name in the program; "" for what is not a value.
        type: type of the value.
        bytes: of one slot; None for as many as the program asks for.
        storage: where the slots are.
        loops: source lines of the loops around, outermost first: a slot for each iteration of all of them.
        place: the user's line that computes it.
        why: why it is saved and not recomputed.
        name: its name in the source.
        slots: number of times it was saved in the measured call; None without a measured call.
        total: bytes in that call.
        sites: the numbers of the places in the program that allocate it.
    """

    value: str
    type: str
    bytes: int | None
    storage: Storage
    loops: tuple[int, ...]
    place: SourceLocation | None
    why: str
    name: str = ""
    slots: int | None = None
    total: int | None = None
    sites: tuple[int, ...] = ()

    @property
    def line(self) -> int | None:
        """The line to be said beside its name: None where the name says it already, or none is known."""
        return None if self.place is None or self.name.endswith(f" line {self.place.line}") else self.place.line


@dataclass(frozen=True, slots=True)
class FunctionReport:
    """One function of the program in one variant: a node of the call graph.

    Attributes:
        symbol: LLVM's name of the primal.
        name: demangled, as Python names it.
        variant: how it is differentiated, in words: "with respect to x; result active".
        augmented, reverse: the names of the pair, as the stages show them.
        place: where it is defined in Python; None where unknown.
        calls: indices into `Report.functions`, one per call site.
        values: in program order.
        tape: largest first.
        is_lane: whether it is one thread's part of a parallel loop.
    """

    symbol: str
    name: str
    variant: str
    augmented: str
    reverse: str
    place: SourceLocation | None
    calls: tuple[int, ...]
    values: tuple[ValueFacts, ...]
    tape: tuple[TapeEntry, ...]
    is_lane: bool = False


@dataclass(frozen=True, slots=True)
class LineFacts:
    """One line of the user's source, summed up over all values that come from it."""

    line: int
    text: str
    active: tuple[str, ...]  # Python variables that are active here
    constant: tuple[str, ...]
    saved_per_call: int  # bytes outside loops
    saved_per_iteration: int  # bytes in each iteration of the innermost loop
    rules: tuple[str, ...]
    saved: int | None = None  # bytes in the call that was measured, of all that has this line
    keeps: bool = False  # further memory is kept: as much as the program asks for
    share_of_time: float | None = None  # of the gradient, 0…1, when it was profiled
    reverse_share: float | None = None  # the part of that which the reverse sweep takes


@dataclass(frozen=True, slots=True)
class Times:
    """Durations of a profiled call.

    Attributes:
        seconds: of the derivative, both sweeps.
        primal_seconds: primal seconds of the plain function.
        reverse_share: share of the reverse sweep in the time of the sweeps, 0…1.
    """

    seconds: float
    primal_seconds: float
    reverse_share: float

    @property
    def ratio(self) -> float:
        """Time of the derivative as a multiple of the plain function's."""
        return self.seconds / self.primal_seconds


@dataclass(frozen=True, slots=True)
class KernelCode:
    """Needs of a kernel's derivative, and of the kernel itself, on a GPU, as ptxas counts them.

    Attributes:
        arch: the GPU.
        registers, primal_registers: of a thread.
        stack: bytes of local memory of a thread.
        spilled: bytes that are moved because there are too few registers.
        largest_block: threads of a block for which that holds.
        spilled_beyond: the same in the largest blocks of the GPU, for which fewer registers are used.
        shared, primal_shared: bytes of static shared memory of a block.
    """

    arch: str
    registers: int
    primal_registers: int
    stack: int
    spilled: int
    largest_block: int
    spilled_beyond: int
    shared: int
    primal_shared: int


@dataclass(frozen=True, slots=True)
class Addition:
    """Way in which a kernel's derivative adds to one shadow, or to the derivative of one number.

    Attributes:
        memory: the array or number.
        how: "plainly", "by atomic operations", or "by one atomic operation for each block".
        why: so.
        lines: that read it in the kernel.
    """

    memory: str
    how: str
    why: str
    lines: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A construct for which the function is not differentiated.

    Attributes:
        problem: the problem, in one sentence.
        text: the whole error: where, why, what to do.
        line: the line of the report's source that it is on or is called from; None where that is not known.
    """

    problem: str
    text: str
    line: int | None


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that can be shown of one derivative.

    Attributes:
        function: qualified name.
        place: where it is defined.
        signature: Numba's, as text.
        options: of the derivation, as text.
        functions: the entry first.
        lines: lines of the entry's source.
        stages: those that were asked for.
        note: why no call was measured, where one should have been.
        times: of a call, when it was profiled.
        refusals: why the function is not differentiated; then there are no functions, and only the stages before the
            analyses.
        code: of a kernel, what its derivative needs of each GPU.
        additions: of a kernel, how its derivative adds to shadows.
    """

    function: str
    place: SourceLocation
    signature: str
    options: str
    functions: tuple[FunctionReport, ...]
    lines: tuple[LineFacts, ...]
    stages: Mapping[Stage, StageText]
    note: str = ""
    times: Times | None = None
    refusals: tuple[Refusal, ...] = ()
    code: tuple[KernelCode, ...] = ()
    additions: tuple[Addition, ...] = ()

    @property
    def tape(self) -> Iterator[tuple[int, TapeEntry]]:
        """Everything on the tape, each with the index of its function."""
        return ((number, entry) for number, function in enumerate(self.functions) for entry in function.tape)

    def line_finder(self) -> Callable[[Iterable[SourceLocation | None]], int | None]:
        """Finder of the line of the report's source that is innermost among places."""
        shown = frozenset(facts.line for facts in self.lines)
        return lambda places: next(
            (p.line for p in places if p is not None and p.file == self.place.file and p.line in shown), None
        )
