"""Spelling of names and strings in LLVM text: escapes, quotes, sigils.

LLVM names are bytes; here they are `str` in UTF-8 with `surrogateescape`, so every byte string has one spelling.
"""

from __future__ import annotations

import re
from typing import Final

_ESCAPE: Final = re.compile(rb"\\([0-9A-Fa-f]{2}|\\)")
_UNPRINTABLE: Final = re.compile(rb'[^ -~]|["\\]')
_PLAIN: Final = re.compile(r"[-A-Za-z._][-A-Za-z._0-9]*")
_PLAIN_METADATA: Final = re.compile(r"[-A-Za-z$._][-A-Za-z$._0-9]*")
_UNPRINTABLE_METADATA: Final = re.compile(rb"^[^-A-Za-z$._]|[^-A-Za-z$._0-9]")


def unescape_bytes(text: str) -> bytes:
    r"""Bytes that the inside of a quoted string denotes: `\0A` is one byte, a doubled backslash one backslash."""
    raw = text.encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(_byte, raw) if b"\\" in raw else raw


def _byte(match: re.Match[bytes]) -> bytes:
    code = match[1]
    return code if code == b"\\" else bytes((int(code, 16),))


def escape_bytes(data: bytes) -> str:
    """The inside of a quoted string, as LLVM prints it."""
    return _UNPRINTABLE.sub(_escaped_byte, data).decode("ascii")


def _escaped_byte(match: re.Match[bytes]) -> bytes:
    return b"\\\\" if match[0] == b"\\" else b"\\%02X" % match[0][0]


def unescape(text: str) -> str:
    """A name or string from the inside of its quotes."""
    return unescape_bytes(text).decode("utf-8", "surrogateescape") if "\\" in text else text


def escape(name: str) -> str:
    """The inside of the quotes of a name or string."""
    return escape_bytes(name.encode("utf-8", "surrogateescape"))


def spell_name(name: str) -> str:
    """A name without sigil, in quotes only where LLVM needs them (`%"5"` is a name, `%5` a number)."""
    return name if _PLAIN.fullmatch(name) else f'"{escape(name)}"'


def spell_metadata_name(name: str) -> str:
    """The name of a named metadata node, which has escapes but no quotes."""
    if _PLAIN_METADATA.fullmatch(name):
        return name
    raw = name.encode("utf-8", "surrogateescape")
    return _UNPRINTABLE_METADATA.sub(lambda m: b"\\%02X" % m[0][0], raw).decode("ascii")


def name_key(token: str) -> str:
    """One key for all spellings of a name: `%x` for `%"x"`; names that need quotes and numbers stay apart."""
    if token[1:2] != '"':
        return token
    name = unescape(token[2:-1])
    return token[0] + (name if _PLAIN_METADATA.fullmatch(name) else f'"{escape(name)}"')


def name_of_key(key: str) -> str | None:
    """The raw name that a key belongs to; None if it is a number."""
    if key[1:2] == '"':
        return unescape(key[2:-1])
    return None if key[1:].isdecimal() else key[1:]
