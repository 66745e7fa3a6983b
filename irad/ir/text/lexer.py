"""Text to tokens: one regular expression over the whole text, tokens are plain strings.

Things that irad keeps as text are one token each: attributes with arguments (`captures(none)`), metadata nodes
(`!{!1, !2}`, `!DILocation(…)`), debug records (`#dbg_value(…)`), use-list orders and summary lines. So are the common
flat types (`[4 x i64]`, `{ ptr, i64 }`), which the parser then looks up instead of taking them apart.
Positions are not stored: an error looks for its own by reading the text again (`position_of`).
"""

from __future__ import annotations

import re
from typing import Final

BODY_END: Final = "\n}"
END: Final = "\0"


def _nested(opening: str, closing: str, depth: int) -> str:
    """A pattern for balanced brackets; quoted strings inside may hold anything."""
    inner = rf'[^{opening}{closing}"]|"[^"]*"'
    pattern = rf"\{opening}(?:{inner})*\{closing}"
    for _ in range(depth):
        pattern = rf"\{opening}(?:{inner}|{pattern})*\{closing}"
    return pattern


_ATOM: Final = r"(?:i[0-9]+|ptr(?: addrspace\([0-9]+\))?|double|float)"
_VECTOR: Final = rf"<(?:vscale x )?[0-9]+ x {_ATOM}>"
_ARRAY: Final = rf"\[[0-9]+ x {_ATOM}\]"
_FIELD: Final = rf"(?:{_ATOM}|{_ARRAY}|{_VECTOR})"
_FLAT_STRUCT: Final = rf"\{{ {_FIELD}(?:, {_FIELD})* \}}"
_INNER: Final = rf"(?:{_FIELD}|{_FLAT_STRUCT})"
_STRUCT: Final = rf"\{{ {_INNER}(?:, {_INNER})* \}}"
_PARENTHESES: Final = _nested("(", ")", 5)
_BRACES: Final = _nested("{", "}", 3)

_WORD: Final = "-A-Za-z0-9_$."

# Order matters: the common tokens first. Blanks after a token are eaten here: cheaper than to fail on each of them.
_TOKEN: Final = re.compile(
    "(?:("
    + "|".join(
        (
            r",",
            rf"[%@][{_WORD}]+",
            r"c\"[^\"]*\"",
            r"ptr addrspace\([0-9]+\)",
            r"uselistorder(?:_bb)? [^\n]*",
            r"\$\"[^\"]*\"",
            rf"[{_WORD}+]+(?::|{_PARENTHESES})?",
            r"[=()]",
            rf"![{_WORD}\\]+(?:{_PARENTHESES})?",
            r"\n\}",
            r"!\"[^\"]*\"",
            rf"!{_BRACES}",
            r"[%@]?\"[^\"]*\":?",
            _STRUCT,
            _ARRAY,
            _VECTOR,
            rf"\#[A-Za-z0-9_]+(?:{_PARENTHESES})?",
            r"\^[0-9]+ = [^\n]*",
            r"[^\s;]",
        )
    )
    + ")|;[^\n]*) *"
)


def tokenize(text: str) -> list[str]:
    """The tokens of an LLVM text, comments left out, ended by two `END`."""
    return [*filter(None, _TOKEN.findall(text)), END, END]


def position_of(text: str, index: int) -> tuple[int, int]:
    """Line and column, from 1, of a token; of the end of the text where there is no such token."""
    offset = len(text)
    for match in _TOKEN.finditer(text):
        if not match[1]:  # a comment
            continue
        if index == 0:
            offset = match.start() + (1 if match[1] == BODY_END else 0)
            break
        index -= 1
    return text.count("\n", 0, offset) + 1, offset - text.rfind("\n", 0, offset)
