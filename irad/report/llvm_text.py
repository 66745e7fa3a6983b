"""LLVM text as the lines of a stage: source line of each, names demangled, what few readers want to see marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from irad.decompile.naming.symbols import Namer
from irad.ir.debug_info import DebugInfo
from irad.ir.module import Function, MetadataNode, Module
from irad.ir.text.printer import print_lines
from irad.report.model import TextLine
from irad.report.source import UserSource

_NODE: Final = re.compile(r"^!(\d+) = (distinct )?(.*)$", re.M)
_DEBUG: Final = re.compile(r"!dbg (![0-9]+)")
_ATTACHMENT: Final = re.compile(r",? ![A-Za-z_.][\w.]* ![0-9]+")
_GROUP: Final = re.compile(r" #[0-9]+(?=$|,| \{$)")
_COMMENT: Final = re.compile(r"\s+; preds = .*$")
_DEFINED: Final = re.compile(r'^  (%(?:"[^"]*"|[-\w.$]+)) = ')
_SYMBOL: Final = re.compile(r'^define [^@]*@(?:"([^"]+)"|([^\s(]+))\(')

_OUTSIDE: Final = (
    "!",
    "attributes #",
    "source_filename",
    "target ",
    "; ModuleID",
    "declare",
    "; Function Attrs",
    "@",
    "$",
)
_CALLS: Final = re.compile(
    r"@(?:NRT_incref|NRT_decref|llvm\.dbg\.|llvm\.lifetime\.|llvm\.assume|llvm\.experimental\.noalias\.scope\.decl)"
)
SUPPORT: Final = re.compile(r"(?:_ZN7cpython|cpython\.|cfunc\.|NRT_|irad\.(?!.*\.irad\d)|numba_|nrt_)")
"""Symbols of wrappers and run-time support, which are not part of the derivative."""


def metadata_of(text: str) -> Module:
    """A module with nothing but the metadata of one that LLVM printed."""
    module = Module()
    module.metadata = {int(m[1]): MetadataNode(m[3], bool(m[2])) for m in _NODE.finditer(text)}
    return module


def lines_of_text(text: str, source: UserSource, namer: Namer) -> tuple[TextLine, ...]:
    """The lines of a module that LLVM printed."""
    return tuple(_lines(text.splitlines(), DebugInfo(metadata_of(text)), source, namer))


def _lines(texts: Iterable[str], info: DebugInfo, source: UserSource, namer: Namer) -> Iterator[TextLine]:
    in_support = False
    for raw in texts:
        symbol = _SYMBOL.match(raw)
        if symbol is not None:
            in_support = SUPPORT.match(symbol[1] or symbol[2]) is not None
        node = _DEBUG.search(raw)
        places = [frame.place for frame in info.frames_of(node[1])] if node is not None else []
        yield _line(raw, source.line_of(places), namer, hidden=in_support)
        if raw == "}":
            in_support = False


def lines_of_functions(
    functions: Iterable[Function], info: DebugInfo, source: UserSource, namer: Namer
) -> tuple[TextLine, ...]:
    """The lines of functions of irad's own."""
    found: list[TextLine] = []
    for function in functions:
        for printed in print_lines(function)[0]:
            inst = printed.instruction
            line = source.line_of(info.inline_chain(inst)) if inst is not None else None
            found.append(_line(printed.text, line, namer, hidden=False))
        found.append(TextLine(""))
    return tuple(found)


def _line(raw: str, line: int | None, namer: Namer, *, hidden: bool) -> TextLine:
    text = tidy(raw, namer)
    defined = _DEFINED.match(raw)
    return TextLine(
        text,
        line,
        defined[1] if defined is not None else None,
        hidden or is_noise(raw),
        raw if raw != text else None,
    )


def tidy(raw: str, namer: Namer) -> str:
    """A line of LLVM text without metadata and with short names."""
    return namer.shorten(_COMMENT.sub("", _GROUP.sub("", _ATTACHMENT.sub("", raw)))).rstrip()


def is_noise(raw: str) -> bool:
    """Whether a line of LLVM text says nothing about what is computed."""
    stripped = raw.strip()
    if raw.startswith(_OUTSIDE) or stripped.startswith("#dbg_"):
        return True
    return _CALLS.search(raw) is not None
