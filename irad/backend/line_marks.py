"""Marks in machine code that record which source line is running, for a thread that samples them.

Input   an optimised module as text, the source line of each debug location.
Output  the same module, with stores of the line's number to one word of memory.
Method  A store precedes the first instruction of a line wherever another line, or an unknown one, may have
        run before (one forward data-flow problem for each function). A call leaves the mark of what it called, so
        after a call the caller's mark is restored. An instruction without a line belongs to the line that ran before.
Limit   The text is not optimised again, so the marks disturb no optimisation; what they cost is a store for each
        change of line.

    %y = fmul double %x, %x, !dbg !7      store volatile i32 12, ptr inttoptr (i64 … to ptr)
                                      →   %y = fmul double %x, %x, !dbg !7
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Alloca, Call, CallSite, Instruction, Phi, Terminator
from irad.ir.module import Block, Function
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.values import ConstantExpression, Value, const_int

OUTSIDE: Final = -1
"""The mark while Python runs, or what turns Python's objects to Numba's values."""

NO_LINE: Final = 0
"""The mark of what belongs to the derivative and to no line: shadows, memory of the tape."""

_PYTHON: Final = ("cpython.", "cfunc.", "_ZN7cpython")

_UNKNOWN: Final = -2
"""What is running where several lines may have run before."""

LineOf = Callable[[Instruction], int | None]


def with_marks(text: str, line_of: Callable[[str], int | None], word: int) -> str:
    """The text of a module with marks.

    Args:
        text: as LLVM prints it.
        line_of: the source line of a debug location (`!7`), None for none.
        word: address of an aligned 32-bit word, to which the marks go.
    """

    def line(inst: Instruction) -> int | None:
        location = inst.metadata.get("dbg")
        return None if location is None else line_of(location)

    module = parse_module(text)
    place = ConstantExpression(types.PTR, None, "inttoptr", (const_int(types.I64, word),))
    functions = set(module.defined_functions())
    located = {each for each in functions if any(line(inst) is not None for inst in each.instructions())}
    outer = _callers(located, {each: _callees(each) for each in functions})
    for function in located:
        _mark(function, line, place, functions - located - outer)
    for function in outer:
        _mark_outside(function, place, located | outer)
    return print_module(module)


def _callee(inst: Instruction) -> Value | None:
    return inst.callee if isinstance(inst, CallSite) else None


def _callees(function: Function) -> set[Value]:
    return {callee for inst in function.instructions() if (callee := _callee(inst)) is not None}


def _callers(located: Set[Function], calls: Mapping[Function, set[Value]]) -> set[Function]:
    """Functions without lines that call, directly or not, functions with lines."""
    found: set[Function] = set()
    pending = True
    while pending:
        marked = located | found
        more = {function for function, callees in calls.items() if function not in marked and callees & marked}
        found |= more
        pending = bool(more)
    return found


def _mark_outside(function: Function, place: Value, marked: Set[Function]) -> None:
    """A function without lines: its own mark at its head and after each call that changes it."""
    mark = OUTSIDE if (function.name or "").startswith(_PYTHON) else NO_LINE
    first = next(inst for inst in function.entry.instructions if not isinstance(inst, Phi | Alloca))
    behind = [inst for inst in function.instructions() if _callee(inst) in marked and _may_be_followed(inst)]
    _store(Builder.before(first), mark, place)
    for inst in behind:
        _store(Builder.after(inst), mark, place)


def _mark(function: Function, line_of: LineOf, place: Value, quiet: Set[Function]) -> None:
    """A function with lines. ``quiet`` are functions that leave the mark as it is."""
    for block, mark in _flow(function, line_of).items():
        for inst in list(block.instructions):
            line = line_of(inst) if _may_be_marked(inst) else None
            if line is not None and line != mark:
                _store(Builder.before(inst), line, place)
                mark = line
            if mark != _UNKNOWN and _may_change(inst, quiet):
                _store(Builder.after(inst), mark, place)


def _may_change(inst: Instruction, quiet: Set[Function]) -> bool:
    callee = _callee(inst)
    if callee is None or callee in quiet or not _may_be_followed(inst):
        return False
    return not (isinstance(callee, Function) and (callee.name or "").startswith("llvm."))


def _may_be_followed(inst: Instruction) -> bool:
    """Whether something may stand between a call and what follows it."""
    return isinstance(inst, Call) and inst.tail != "musttail"


def _flow(function: Function, line_of: LineOf) -> dict[Block, int]:
    """The mark at the head of each block; `_UNKNOWN` where ways with different marks meet, and at the entry."""
    last = {block: _last_line(block, line_of) for block in function.blocks}
    predecessors: dict[Block, list[Block]] = {block: [] for block in function.blocks}
    for block in function.blocks:
        for target in block.terminator.targets:
            predecessors[target].append(block)
    before: dict[Block, int | None] = dict.fromkeys(function.blocks)
    before[function.entry] = _UNKNOWN
    changed = True
    while changed:  # ends, as a mark only goes from None to a line to `_UNKNOWN`
        changed = False
        for block in function.blocks:
            ways = {before[p] if last[p] is None else last[p] for p in predecessors[block]}
            met = _meet({*ways, before[block]})
            changed |= met != before[block]
            before[block] = met
    return {block: _UNKNOWN if mark is None else mark for block, mark in before.items()}


def _meet(ways: set[int | None]) -> int | None:
    known = ways - {None}
    return _UNKNOWN if len(known) > 1 else next(iter(known), None)


def _last_line(block: Block, line_of: LineOf) -> int | None:
    lines = (line_of(inst) for inst in reversed(block.instructions) if _may_be_marked(inst))
    return next((line for line in lines if line is not None), None)


def _may_be_marked(inst: Instruction) -> bool:
    return not isinstance(inst, Phi | Terminator)


def _store(build: Builder, mark: int, place: Value) -> None:
    build.store(const_int(types.I32, mark), place, align=4).volatile = True
