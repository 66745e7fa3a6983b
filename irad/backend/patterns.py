"""Patterns that read LLVM's text while a program is compiled.

Each of these looks at the whole program and mostly finds that nothing has to be done. A pattern takes a fifth of the
time that the parser of `irad.ir` takes. Other patterns over LLVM's text, and why they are there: README.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from irad.passes.subscripts.dimensions import DIMENSION

_DEFINITION: Final = re.compile(
    r'^define [^@\n]*@(?:"(?P<quoted>[^"]+)"|(?P<plain>[^\s(]+))\((?P<body>.*?)^}', re.MULTILINE | re.DOTALL
)
_CALLEE: Final = re.compile(r'\bcall [^@\n]*@(?:"([^"]+)"|([^\s(]+))\(')
_VECTOR: Final = re.compile(r"<\d+ x (?:double|float)>")
_REMAINDER: Final = re.compile(r" [su]rem i64 [^,]+, %")
_SECOND: Final = re.compile(r" getelementptr (?:inbounds )?i8, ptr %[^,]+, i64 [48]\b")
_FEW: Final = re.compile(r" icmp (?:samesign )?s[lg]t i64 %[^,]+, (?:[2-9]|[1-6]\d)\b")
_STATE: Final = re.compile(r" phi i64 [^\n]*\[ (?:[2-9]|[1-6]\d), ")
_THROUGH_POINTER: Final = re.compile(r'^[^;@\n]*\bcall [^@\n]* %(?:"[^"\n]*"|[^\s(]+)\(', re.MULTILINE)


def call_graph(text: str) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Callees of each function, once for each call, and its number of lines."""
    calls: dict[str, list[str]] = {}
    sizes: dict[str, int] = {}
    for match in _DEFINITION.finditer(text):
        name = match["quoted"] or match["plain"]
        calls[name] = [quoted or plain for quoted, plain in _CALLEE.findall(match["body"])]
        sizes[name] = match["body"].count("\n")
    return calls, sizes


def calls_through_pointers(text: str) -> bool:
    """True if a value is called, rather than a function by its name."""
    return _THROUGH_POINTER.search(text) is not None


def may_allocate_few_bytes(text: str, symbols: Collection[str]) -> bool:
    """True if one of some functions is called with a number of three digits at most, or one that is not known."""
    return any(re.search(rf"@{symbol}\(i64 (?:noundef )?(?:\d{{1,3}}|%[^,)]+)[,)]", text) for symbol in symbols)


def takes_remainders(text: str) -> bool:
    """True if a number is divided by one that is not known, for the remainder."""
    return _REMAINDER.search(text) is not None


def suggests_shapes(text: str, symbols: Collection[str]) -> bool:
    """True if a length may be compared with a number from 2 on, or elements of arrays accessed by constants.

    Of rows, or of arrays that are made by one of some functions.
    """
    has_arrays = any(re.search(rf"@{symbol}\(i64 (?:noundef )?%", text) for symbol in (DIMENSION, *symbols))
    if has_arrays and (_SECOND.search(text) or _STATE.search(text)):
        return True
    return _FEW.search(text) is not None


def has_vectors(text: str) -> bool:
    """True if there are vectors of floats in a program."""
    return _VECTOR.search(text) is not None
