"""Names of variables: those of the user's source where LLVM or the line of an assignment tells them."""

from __future__ import annotations

import ast
import keyword
import linecache
import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache

# What LLVM's passes and Numba's and irad's code generators call values; nobody's variables.
_FOREIGN = frozenset([
    "spec", "exitcond", "common", "field", "or", "and", "data", "indvars", "loop", "umax", "smax", "umin",
    "smin", "not", "cmp", "sext", "zext", "tmp", "cond", "from", "last", "iteration", "begin", "callee", "slab",
    "iv", "lcssa", "brmerge", "sub", "add", "mul", "retptr", "excinfo", "arg", "mem", "ptr", "size", "split",
    "call", "if", "for", "while", "sink", "lr", "narrow", "conv", "lhs", "rhs", "inc", "dec", "div", "rem",
    "shl", "lshr", "ashr", "xor", "trunc", "sel", "bc", "phi", "ret",
])  # fmt: skip
_SOURCE_NAME = re.compile(r"(?:arg\.)?([A-Za-z_][A-Za-z_0-9]*)(?:\.\d+)*(?:\..*)?$")


@dataclass(frozen=True, slots=True)
class SourceLoop:
    """A `for` of the source: its lines, and the variable that counts its iterations, if one does."""

    first: int
    last: int
    variable: str | None

    def contains(self, line: int) -> bool:
        """Whether a line is one of its head or body."""
        return self.first <= line <= self.last


@dataclass(frozen=True, slots=True)
class SourceNames:
    """What a file says about its lines.

    Attributes:
        assigned: line → the one variable that the statement there assigns.
        loops: line → the loop that begins there.
        functions: first and last line of each function, and all names in it.
    """

    assigned: Mapping[int, str] = field(default_factory=dict)
    loops: Mapping[int, SourceLoop] = field(default_factory=dict)
    functions: tuple[tuple[int, int, frozenset[str]], ...] = ()

    @staticmethod
    def of(source: str) -> SourceNames:
        """Of a file; nothing is known about what is not Python."""
        try:
            tree = ast.parse(source)
        except SyntaxError:
            return SourceNames()
        assigned: dict[int, str] = {}
        loops: dict[int, SourceLoop] = {}
        functions: list[tuple[int, int, frozenset[str]]] = []
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=found)]) | ast.AugAssign(target=ast.Name(id=found)):
                    assigned[node.lineno] = found
                case ast.For():
                    counter, element = _targets(node)
                    loops[node.lineno] = SourceLoop(node.lineno, node.end_lineno or node.lineno, counter)
                    if element is not None:
                        assigned[node.lineno] = element
                case ast.FunctionDef():
                    functions.append((node.lineno, node.end_lineno or node.lineno, _names_in(node)))
                case _:
                    pass
        return SourceNames(assigned, loops, tuple(functions))

    def known_at(self, line: int) -> frozenset[str]:
        """The names in the functions around a line."""
        return frozenset().union(*(names for first, last, names in self.functions if first <= line <= last))


def _targets(loop: ast.For) -> tuple[str | None, str | None]:
    """The variable that counts the iterations of a `for`, and the one that is an element."""
    function = loop.iter.func if isinstance(loop.iter, ast.Call) else None
    called = function.id if isinstance(function, ast.Name) else getattr(function, "attr", None)
    match loop.target:
        case ast.Name(id=found):
            return (found, None) if called in ("range", "prange") else (None, found)
        case ast.Tuple(elts=[ast.Name(id=counter), ast.Name(id=element)]) if called == "enumerate":
            return counter, element
        case _:
            return None, None


def _names_in(function: ast.FunctionDef) -> frozenset[str]:
    nodes = list(ast.walk(function))
    return frozenset(
        [n.id for n in nodes if isinstance(n, ast.Name)] + [n.arg for n in nodes if isinstance(n, ast.arg)]
    )


@cache
def source_names(file: str) -> SourceNames:
    """What the lines of a file assign."""
    return SourceNames.of("".join(linecache.getlines(file)))


def source_name(llvm_name: str | None, known: Collection[str]) -> str | None:
    """`total.2.082` is `total`; `.176` and `exitcond.not` are nobody's.

    Args:
        known: the names in the source; if there are none, everything that LLVM or Numba does not make is one.
    """
    found = _SOURCE_NAME.match(llvm_name or "")
    if found is None:
        return None
    name = found[1]
    if known:
        return name if name in known else None
    is_foreign = name in _FOREIGN or re.fullmatch(r"B\d+|_?_?B\d+.*|_ZN.*", name) or keyword.iskeyword(name)
    return None if is_foreign else name


@dataclass(eq=False, slots=True)
class FreshNames:
    """Hands out names, each once."""

    taken: set[str] = field(default_factory=set)

    def new(self, wanted: str) -> str:
        """The name, or with a number behind it."""
        candidate, number = wanted, 1
        while candidate in self.taken or keyword.iskeyword(candidate):
            number += 1
            candidate = f"{wanted}_{number}"
        self.taken.add(candidate)
        return candidate

    def new_family(self, wanted: str, ends: Iterable[str]) -> str:
        """A name that is new together with each end behind it, and the cotangents of all these."""
        ends = ("", *ends)
        candidate, number = wanted, 1
        while not self.taken.isdisjoint(family := {f"{candidate}{e}{bar}" for e in ends for bar in ("", "_bar")}):
            number += 1
            candidate = f"{wanted}_{number}"
        self.taken |= family
        return candidate
