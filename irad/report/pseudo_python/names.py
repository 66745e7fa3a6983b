"""Names of variables: those of the user's source where LLVM or the line of an assignment tells them."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

# What LLVM's passes and Numba's and irad's code generators call values; nobody's variables.
_FOREIGN = frozenset(
    [
        "spec",
        "exitcond",
        "common",
        "field",
        "or",
        "and",
        "data",
        "indvars",
        "loop",
        "umax",
        "smax",
        "umin",
        "smin",
        "not",
        "cmp",
        "sext",
        "zext",
        "tmp",
        "cond",
        "from",
        "last",
        "iteration",
        "begin",
        "callee",
        "slab",
        "iv",
        "lcssa",
        "brmerge",
        "sub",
        "add",
        "mul",
        "retptr",
        "excinfo",
        "arg",
        "mem",
        "ptr",
        "size",
        "split",
        "call",
        "if",
        "for",
        "while",
        "sink",
        "lr",
        "narrow",
        "conv",
        "lhs",
        "rhs",
        "inc",
        "dec",
        "div",
        "rem",
        "shl",
        "lshr",
        "ashr",
        "xor",
        "trunc",
        "sel",
        "bc",
        "phi",
        "ret",
    ]
)
_SOURCE_NAME = re.compile(r"(?:arg\.)?([A-Za-z_][A-Za-z_0-9]*)(?:\.\d+)*(?:\..*)?$")


@dataclass(frozen=True, slots=True)
class SourceNames:
    """What the user's source says about its lines.

    Attributes:
        assigned: line → the one variable that the statement there assigns.
        loops: line → the variable of the loop that begins there.
        texts: the lines.
    """

    assigned: Mapping[int, str] = field(default_factory=dict)
    loops: Mapping[int, str] = field(default_factory=dict)
    texts: Mapping[int, str] = field(default_factory=dict)

    @staticmethod
    def of(lines: list[str], first: int) -> SourceNames:
        """Of a function whose source begins at a line."""
        texts = {first + i: line.rstrip() for i, line in enumerate(lines)}
        source = "".join(lines)
        try:
            tree = ast.parse(_dedented(source))
        except SyntaxError:
            return SourceNames(texts=texts)
        assigned: dict[int, str] = {}
        loops: dict[int, str] = {}
        for node in ast.walk(tree):
            match node:
                case ast.Assign(targets=[ast.Name(id=found)]) | ast.AugAssign(target=ast.Name(id=found)):
                    assigned[first + node.lineno - 1] = found
                case ast.For(target=ast.Name(id=found)):
                    loops[first + node.lineno - 1] = found
                case _:
                    pass
        return SourceNames(assigned, loops, texts)


def _dedented(source: str) -> str:
    import textwrap

    return textwrap.dedent(source)


def source_name(llvm_name: str | None) -> str | None:
    """`total.2.082` is `total`; `.176` and `exitcond.not` are nobody's."""
    found = _SOURCE_NAME.match(llvm_name or "")
    if found is None:
        return None
    name = found[1]
    if name in _FOREIGN or re.fullmatch(r"B\d+|_?_?B\d+.*|_ZN.*", name) or keyword.iskeyword(name):
        return None
    return re.sub(r"\d+$", "", name) if name.startswith("indvars") else name


@dataclass(eq=False, slots=True)
class Namer:
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
