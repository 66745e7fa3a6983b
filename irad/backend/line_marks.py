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

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

OUTSIDE: Final = -1
"""The mark while Python runs, or what turns Python's objects to Numba's values."""

NO_LINE: Final = 0
"""The mark of what belongs to the derivative and to no line: shadows, memory of the tape."""

_NAME: Final = r'(?:"[^"]*"|[-\w.$]+)'
_DEFINITION: Final = re.compile(rf"^define .*?@({_NAME})\(")
_LABEL: Final = re.compile(rf"^({_NAME}):")
_TARGET: Final = re.compile(rf"\blabel %({_NAME})")
_OPERATION: Final = re.compile(rf"^  (?:%{_NAME} = )?(?:(?:tail|notail|musttail) )?([a-z]\w*)")
_CALLEE: Final = re.compile(rf"\bcall [^@]*@({_NAME})\(")
_LOCATION: Final = re.compile(r"!dbg (![0-9]+)")
_TERMINATORS: Final = frozenset({"br", "switch", "ret", "unreachable", "indirectbr", "resume"})
_PYTHON: Final = ("cpython.", "cfunc.", "_ZN7cpython")

_UNKNOWN: Final = -2
"""What is running where several lines may have run before."""


@dataclass(slots=True)
class _Block:
    name: str
    lines: list[str] = field(default_factory=list)
    predecessors: list[str] = field(default_factory=list)


def with_marks(text: str, line_of: Callable[[str], int | None], word: int) -> str:
    """The text of a module with marks.

    Args:
        text: as LLVM prints it.
        line_of: the source line of a debug location (`!7`), None for none.
        word: address of an aligned 32-bit word, to which the marks go.
    """
    lines = text.split("\n")
    functions = dict(_functions(lines))
    located = {name for name, span in functions.items() if _has_lines(lines[slice(*span)], line_of)}
    outer = _callers(located, {name: _callees(lines[slice(*span)]) for name, span in functions.items()})
    result: list[str] = []
    end = 0
    for name, (start, stop) in functions.items():
        result += lines[end:start]
        body = lines[start:stop]
        if name in located:
            body = list(_marked(body, line_of, word, frozenset(functions) - located - outer))
        elif name in outer:
            body = list(_outside_lines(body, _resting(name), word, located | outer))
        result += body
        end = stop
    return "\n".join(result + lines[end:])


def _functions(lines: list[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Names of the functions, and where between their first and last line their bodies are."""
    name, start = "", 0
    for i, line in enumerate(lines):
        definition = _DEFINITION.match(line)
        if definition is not None:
            name, start = definition[1].strip('"'), i + 1
        elif line == "}":
            yield name, (start, i)


def _has_lines(body: Iterable[str], line_of: Callable[[str], int | None]) -> bool:
    return any(_line(text, line_of) is not None for text in body)


def _line(text: str, line_of: Callable[[str], int | None]) -> int | None:
    location = _LOCATION.search(text)
    return None if location is None else line_of(location[1])


def _callees(body: Iterable[str]) -> set[str]:
    return {callee[1].strip('"') for text in body if (callee := _CALLEE.search(text)) is not None}


def _callers(located: set[str], calls: Mapping[str, set[str]]) -> set[str]:
    """Functions without lines that call, directly or not, functions with lines."""
    found: set[str] = set()
    pending = True
    while pending:
        more = {name for name, callees in calls.items() if name not in located | found and callees & (located | found)}
        found |= more
        pending = bool(more)
    return found


def _resting(name: str) -> int:
    return OUTSIDE if name.startswith(_PYTHON) else NO_LINE


def _outside_lines(body: list[str], mark: int, word: int, marked: set[str]) -> Iterator[str]:
    """A function without lines: its own mark at its head and after each call that changes it."""
    is_due = True
    for text in body:
        operation = _operation(text)
        if is_due and operation not in (None, "phi", "alloca"):
            yield _store(mark, word)
            is_due = False
        yield text
        callee = _CALLEE.search(text)
        if callee is not None and callee[1].strip('"') in marked and "musttail " not in text:
            yield _store(mark, word)


def _marked(body: list[str], line_of: Callable[[str], int | None], word: int, quiet: frozenset[str]) -> Iterator[str]:
    """A function with lines. ``quiet`` are functions that leave the mark as it is."""
    blocks = _blocks(body)
    before = _flow(blocks, line_of)
    for block in blocks:
        mark = before[block.name]
        for text in block.lines:
            operation = _operation(text)
            line = _line(text, line_of) if _may_be_marked(operation) else None
            if line is not None and line != mark:
                yield _store(line, word)
                mark = line
            yield text
            if operation == "call" and mark != _UNKNOWN and _may_change(text, quiet):
                yield _store(mark, word)


def _may_change(call: str, quiet: frozenset[str]) -> bool:
    callee = _CALLEE.search(call)
    name = "" if callee is None else callee[1].strip('"')
    return name not in quiet and not name.startswith("llvm.") and "musttail " not in call


def _blocks(body: list[str]) -> list[_Block]:
    blocks = [_Block("")]
    for text in body:
        label = _LABEL.match(text)
        if label is not None:
            blocks.append(_Block(label[1].strip('"')))
        blocks[-1].lines.append(text)
    by_name = {block.name: block for block in blocks}
    for block in blocks:
        for text in block.lines:
            for target in _TARGET.findall(text):
                by_name[target.strip('"')].predecessors.append(block.name)
    entry = next(block for block in blocks if any(_operation(text) for text in block.lines))
    entry.predecessors = [""] if entry.name else []  # what stands before a named entry is empty
    return blocks


def _flow(blocks: list[_Block], line_of: Callable[[str], int | None]) -> dict[str, int]:
    """The mark at the head of each block; `_UNKNOWN` where ways with different marks meet."""
    last = {block.name: _last_line(block, line_of) for block in blocks}
    before: dict[str, int | None] = {block.name: None for block in blocks}
    before[""] = _UNKNOWN
    changed = True
    while changed:  # ends, as a mark only goes from None to a line to `_UNKNOWN`
        changed = False
        for block in blocks:
            ways = {before[p] if last[p] is None else last[p] for p in block.predecessors}
            met = _meet({*ways, before[block.name]})
            changed |= met != before[block.name]
            before[block.name] = met
    return {name: _UNKNOWN if mark is None else mark for name, mark in before.items()}


def _meet(ways: set[int | None]) -> int | None:
    known = ways - {None}
    return _UNKNOWN if len(known) > 1 else next(iter(known), None)


def _last_line(block: _Block, line_of: Callable[[str], int | None]) -> int | None:
    lines = (_line(text, line_of) for text in block.lines if _may_be_marked(_operation(text)))
    return next((line for line in reversed(list(lines)) if line is not None), None)


def _operation(text: str) -> str | None:
    match = _OPERATION.match(text)
    return None if match is None else match[1]


def _may_be_marked(operation: str | None) -> bool:
    return operation is not None and operation != "phi" and operation not in _TERMINATORS


def _store(mark: int, word: int) -> str:
    return f"  store volatile i32 {mark}, ptr inttoptr (i64 {word} to ptr), align 4"
