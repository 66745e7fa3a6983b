"""Facts about the lines of a source file: which loops they are in, and which functions."""

from __future__ import annotations

import ast
import linecache
import re
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from io import StringIO
from keyword import kwlist
from tokenize import NAME, TokenError, generate_tokens
from typing import Final

from irad.records import dataclass

_WORDS: Final = frozenset(kwlist)
_ASSIGNMENT: Final = re.compile(r"\s*([A-Za-z_]\w*)\s*(?::[^=]*)?=(?!=)")


@dataclass(frozen=True, slots=True)
class LoopStatement:
    """A ``for``, a ``while``, or one of the loops of a comprehension.

    Attributes:
        line: where it begins.
        head_end: the last line of its head, up to the colon.
        end: its last line.
        variable: of a ``for`` over one variable its name, else "".
    """

    line: int
    head_end: int
    end: int
    variable: str = ""

    def contains(self, line: int) -> bool:
        """True if a line is in it."""
        return self.line <= line <= self.end

    def has_head(self, line: int) -> bool:
        """True if a line is in its head."""
        return self.line <= line <= self.head_end


@dataclass(frozen=True, slots=True)
class _Outline:
    loops: tuple[LoopStatement, ...]
    functions: dict[str, list[range]]


def loop_statements(file: str) -> tuple[LoopStatement, ...]:
    """The loops of a file, outer before inner; none where it cannot be read."""
    return _outline("".join(linecache.getlines(file))).loops


def assigned_variable(file: str, line: int) -> str | None:
    """The variable that an assignment on a line is to; None where the line cannot be read, or has none."""
    found = _ASSIGNMENT.match(linecache.getline(file, line))
    return found and found[1]


def loop_variable(file: str, line: int) -> str | None:
    """The variable of the only loop that begins on a line; None where it has none, or several."""
    names = {loop.variable for loop in loop_statements(file) if loop.line == line}
    return names.pop() or None if len(names) == 1 else None


def holds_line(file: str, function: str, line: int) -> bool:
    """True if a line may be one of a function; only a file that defines the function elsewhere rules that out."""
    spans = _outline("".join(linecache.getlines(file))).functions.get(function.rpartition(".")[2])
    return spans is None or any(line in span for span in spans)


def names_in(line: str) -> frozenset[str]:
    """The variables and functions that a line of Python names; attributes, strings and comments are none."""
    found, before = set[str](), ""
    with suppress(TokenError):  # the line of a statement that goes on
        for token in generate_tokens(StringIO(line.strip()).readline):
            if token.type == NAME and before != ".":
                found.add(token.string)
            before = token.string
    return frozenset(found - _WORDS)


def function_at(file: str, line: int) -> str:
    """The name of the innermost ``def`` that a line is in; empty where there is none, or the file cannot be read."""
    functions = _outline("".join(linecache.getlines(file))).functions
    around = [(len(span), name) for name, spans in functions.items() for span in spans if line in span]
    return min(around)[1] if around else ""


@lru_cache(maxsize=64)
def _outline(text: str) -> _Outline:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):  # it has changed since, or it is not Python
        return _Outline((), {})
    functions: dict[str, list[range]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            functions.setdefault(node.name, []).append(range(first, (node.end_lineno or node.lineno) + 1))
    return _Outline(tuple(sorted(_loops(tree), key=lambda loop: (loop.line, -loop.end))), functions)


def _loops(tree: ast.AST) -> Iterator[LoopStatement]:
    for node in ast.walk(tree):
        match node:
            case ast.For(iter=head) | ast.While(test=head):
                name = node.target.id if isinstance(node, ast.For) and isinstance(node.target, ast.Name) else ""
                yield LoopStatement(node.lineno, head.end_lineno or node.lineno, node.end_lineno or node.lineno, name)
            case (
                ast.ListComp(generators=loops)
                | ast.SetComp(generators=loops)
                | ast.GeneratorExp(generators=loops)
                | ast.DictComp(generators=loops)
            ):
                for each in loops:
                    head = each.iter
                    yield LoopStatement(head.lineno, head.end_lineno or head.lineno, node.end_lineno or node.lineno)
            case _:
                pass
