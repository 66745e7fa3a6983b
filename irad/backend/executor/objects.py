"""Symbols that object code needs: LLVM's JIT ends the process where one is not defined."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

_ELF: Final = b"\x7fELF\x02\x01"  # of 64 bits, little-endian
_SYMBOL_TABLE: Final = 2
_SECTION: Final = struct.Struct("<IIQQQQIIQQ")
_SYMBOL: Final = struct.Struct("<IBBHQQ")


def undefined_symbols(code: bytes) -> list[str]:
    """Names that an ELF object refers to and does not define; none of an object in another format."""
    if not code.startswith(_ELF):
        return []
    [offset] = struct.unpack_from("<Q", code, 0x28)
    size, count = struct.unpack_from("<HH", code, 0x3A)
    sections = [_SECTION.unpack_from(code, offset + number * size) for number in range(count)]
    tables = [section for section in sections if section[1] == _SYMBOL_TABLE]
    return [name for table in tables for name in _undefined(code, table, sections[table[6]][4])]


def _undefined(code: bytes, table: tuple[int, ...], strings: int) -> Iterator[str]:
    start, size = table[4], table[5]
    for position in range(start + _SYMBOL.size, start + size, _SYMBOL.size):  # the first one is empty
        name, _, _, section, _, _ = _SYMBOL.unpack_from(code, position)
        if section == 0:
            end = code.index(b"\0", strings + name)
            yield code[strings + name : end].decode()
