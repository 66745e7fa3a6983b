"""Names as a user knows them: Numba's mangled symbols demangled, LLVM's parameters as Python's.

_ZN8__main__6energyB2v1B62c8t…E5ArrayIdLi1E1C7mutable7alignedEd.irad0.reverse     energy.irad0.reverse
%arg.x.4                                                                          x
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

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
    """What a mangled symbol says.

    Attributes:
        path: module, classes, function.
        types: of the parameters, as Numba spells them; empty where they cannot be told.
        rest: what follows the mangled name, as `.irad0.reverse`.
    """

    path: tuple[str, ...]
    types: tuple[str, ...]
    rest: str = ""

    @property
    def name(self) -> str:
        """The function, with its class where it is a method. Numba writes modules and classes alike."""
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
    """What a symbol that Numba made says; None where it is none."""
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
        """What has its length in front, unescaped; ``is_name`` where it is a name of Python's, which may hold `_3d`."""
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
        symbols: of the program.
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
        """The short name of a symbol; the symbol itself where it is not mangled."""
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
