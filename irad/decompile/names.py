"""Names as a user knows them: of functions, of the source's variables, and new ones."""

from __future__ import annotations

import ast
import keyword
import linecache
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Final

# Numba's mangled symbols demangled, LLVM's parameters as Python's.

PARALLEL_LOOP: Final = "parallel_loop"
"""The names of the functions that Numba makes from the bodies of parallel loops."""

_SYMBOL: Final = re.compile(r"(?:__gufunc__\.)?_ZN[\w$]+")
_RULED: Final = re.compile(r"irad\.ruled\.\d+")  # what stands for the calls of a function with a rule
_ESCAPE: Final = re.compile(r"_([0-9a-f]{2})")
_SPECIAL: Final = re.compile(r"_3c\w+_3e")  # <locals>, <lambda>
_LETTERS: Final = re.compile(r"(?:_[89a-f][0-9a-f])+")  # UTF-8 of what is not ASCII
_PARAMETER: Final = re.compile(r"(?:arg\.)([A-Za-z_]\w*)((?:\.\d+)*)")
_BUILTIN: Final = {
    "v": "none", "b": "bool", "a": "int8", "h": "uint8", "s": "int16", "t": "uint16", "i": "int32", "j": "uint32",
    "l": "int64", "m": "uint64", "x": "int64", "y": "uint64", "f": "float32", "d": "float64", "c": "char",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Demangled:
    """Parts of a mangled symbol.

    Attributes:
        path: module, classes, function.
        types: of the parameters, as Numba spells them; empty where they are not known.
        rest: suffix of the mangled name, such as `.irad0.reverse`.
    """

    path: tuple[str, ...]
    types: tuple[str, ...]
    rest: str = ""

    @property
    def name(self) -> str:
        """The function, with its class if it is a method. Numba mangles modules and classes alike."""
        first, rest = self.path[0], self.path[1:]
        if first in ("NumbaEnv", "cpython") and rest:  # the environment and the wrapper of one
            return f"{first}.{Demangled(rest, self.types).name}"
        if self.path[-1].startswith("__numba_parfor_gufunc"):
            return PARALLEL_LOOP
        modules = [n for n in range(1, len(self.path)) if ".".join(self.path[:n]) in sys.modules]
        parts = self.path[max(modules, default=1) :] or self.path
        if "<locals>" in parts:
            parts = parts[len(parts) - parts[::-1].index("<locals>") :]
        return ".".join(parts)

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.types)}){self.rest}"


def demangle(symbol: str) -> Demangled | None:
    """Parts of a symbol that Numba made; None for others."""
    match = _SYMBOL.match(symbol)
    if match is None or match.start() != 0:
        return None
    reader = _Reader(match[0], match[0].index("_ZN") + 3)
    path = reader.path()
    if not path:
        return None
    types = reader.types()
    return Demangled(tuple(path), tuple(types), symbol[match.end() :])


def _letters(match: re.Match[str]) -> str:
    """Escaped letters, or the same again where it is not UTF-8 but part of a name, as in `latent_capacity`."""
    try:
        return bytes.fromhex(match[0].replace("_", "")).decode()
    except UnicodeDecodeError:
        return match[0]


class _Reader:
    """Reads the Itanium mangling as Numba writes it (`numba.core.itanium_mangler`)."""

    def __init__(self, text: str, position: int) -> None:
        self.text, self.position = text, position

    def path(self) -> list[str] | None:
        """The parts of a nested name, up to its E; tags are skipped."""
        parts: list[str] = []
        while self.position < len(self.text):
            head = self.text[self.position]
            if head == "E":
                self.position += 1
                return parts
            tagged = head == "B"
            self.position += tagged
            word = self.word(is_name=True)
            if word is None:
                return None
            if not tagged:
                parts += word.split(".")
        return None

    def word(self, *, is_name: bool = False) -> str | None:
        """A word after its length, unescaped; with ``is_name``, a name of Python's, which may hold `_3d`."""
        digits = re.compile(r"\d+").match(self.text, self.position)
        if digits is None:
            return None
        size = int(digits[0])
        start = digits.end()
        raw = self.text[start : start + size]
        if len(raw) < size or not size:
            return None
        self.position = start + size
        if is_name and _SPECIAL.fullmatch(raw) is None:
            return _LETTERS.sub(_letters, raw)
        return _ESCAPE.sub(lambda m: chr(int(m[1], 16)), raw)

    def types(self) -> list[str]:
        """Types up to the end, or to where they cannot be read any more."""
        found: list[str] = []
        while self.position < len(self.text):
            one = self.type()
            if one is None:
                return []
            found.append(one)
        return found

    def type(self) -> str | None:
        """One type or template argument."""
        head = self.text[self.position]
        if head == "L":
            literal = re.compile(r"L[a-z](n?\d+)E").match(self.text, self.position)
            if literal is None:
                return None
            self.position = literal.end()
            return literal[1].replace("n", "-")
        if head in _BUILTIN:
            self.position += 1
            return _BUILTIN[head]
        word = self.word()
        if word is None:
            return None
        if self.text[self.position : self.position + 1] != "I":
            return word
        self.position += 1
        inside: list[str] = []
        while self.text[self.position : self.position + 1] not in ("E", ""):
            part = self.type()
            if part is None:
                return None
            inside.append(part)
        self.position += 1
        return _spelled(word, inside)


def _spelled(word: str, inside: list[str]) -> str:
    """A type with arguments; arrays as Numba's signatures have them."""
    if word == "Array" and len(inside) >= 3:
        axes = {"C": [":"] * (int(inside[1]) - 1) + ["::1"], "F": ["::1"] + [":"] * (int(inside[1]) - 1)}
        return f"{inside[0]}[{', '.join(axes.get(inside[2], [':'] * int(inside[1])))}]"
    return f"{word}({', '.join(inside)})"


class Namer:
    """Short names for the symbols of one program, each for one symbol only.

    Args:
        symbols: symbols of the program.
        ruled: by symbol the names of functions with rules, of which the program has a stand-in only.
    """

    def __init__(self, symbols: Iterable[str], ruled: Mapping[str, str] | None = None) -> None:
        self._names: dict[str, str] = {}
        self._ruled = dict(ruled or {})
        bare = dict.fromkeys(match[0] for symbol in symbols if (match := _SYMBOL.match(symbol)) is not None)
        found = {symbol: known for symbol in bare if (known := demangle(symbol)) is not None}
        shared = Counter(known.name for known in found.values())
        for symbol, known in found.items():
            self._add(symbol, known.name if shared[known.name] == 1 else str(known), known)

    @staticmethod
    def of_text(*texts: str) -> Namer:
        """For all symbols in texts."""
        return Namer(match[0] for text in texts for match in _SYMBOL.finditer(text))

    def name(self, symbol: str) -> str:
        """The short name of a symbol; the symbol itself if it is not mangled."""
        stand_in = _RULED.match(symbol)
        if stand_in is not None:
            return self._ruled.get(stand_in[0], stand_in[0]) + symbol[stand_in.end() :]
        match = _SYMBOL.match(symbol)
        return symbol if match is None else self._short(match[0]) + symbol[match.end() :]

    def shorten(self, text: str) -> str:
        """A text with its symbols replaced."""
        if self._ruled and "irad.ruled." in text:
            text = _RULED.sub(lambda match: self._ruled.get(match[0], match[0]), text)
        return _SYMBOL.sub(lambda match: self._short(match[0]), text) if "_ZN" in text else text

    def _short(self, symbol: str) -> str:
        """The name of a symbol; LLVM names blocks after functions that it has inlined, so new ones may turn up."""
        known = None if symbol in self._names else demangle(symbol)
        if known is not None:
            self._add(symbol, known.name, known)
        return self._names.get(symbol, symbol)

    def _add(self, symbol: str, name: str, known: Demangled) -> None:
        used = set(self._names.values())
        serial = 1
        while name in used:
            serial += 1
            name = f"{known.name}#{serial}"
        self._names[symbol] = name


def python_name(llvm_name: str) -> str:
    """The Python name of a parameter: `arg.x.4` is a part of `x`; other names stay as they are."""
    match = _PARAMETER.fullmatch(llvm_name)
    return match[1] if match is not None else llvm_name


# Names of variables: those of the user's source where LLVM or the line of an assignment tells them.

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
        """True if a line is one of its head or body."""
        return self.first <= line <= self.last


@dataclass(frozen=True, slots=True)
class SourceNames:
    """Names and loops in the lines of a file.

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
        """Names in the text of a file; none if it is not Python."""
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
    """Names that the lines of a file assign."""
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
        """The wanted name, with a number appended if it is taken."""
        candidate, number = wanted, 1
        while candidate in self.taken or keyword.iskeyword(candidate):
            number += 1
            candidate = f"{wanted}_{number}"
        self.taken.add(candidate)
        return candidate

    def new_family(self, wanted: str, ends: Iterable[str]) -> str:
        """A name that is new alone and with each of the ends appended, as are the cotangents of all these names."""
        ends = ("", *ends)
        candidate, number = wanted, 1
        while not self.taken.isdisjoint(family := {f"{candidate}{e}{bar}" for e in ends for bar in ("", "_bar")}):
            number += 1
            candidate = f"{wanted}_{number}"
        self.taken |= family
        return candidate
