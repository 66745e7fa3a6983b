"""Content of a piece of memory, byte by byte."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from irad.records import dataclass

_SIZES: Final = {"half": 2, "float": 4, "double": 8}
"""Bytes of numbers that can carry a derivative."""


@dataclass(frozen=True, slots=True)
class MemoryType:
    """A pattern of ``stride`` bytes that repeats.

    ``fields`` are (byte offset, LLVM type text) in ascending order: "double", "float", "ptr", "i64", "i8", …. Bytes
    that no field covers are padding.

    Attributes:
        behind: for each byte offset where a pointer is stored what it points to, None where that is not known; offset
            None is anywhere. After a prefix they repeat, as the items of a list do. Without any, pointers among the
            fields may point anywhere.
        integer_prefix: number of bytes in front of the pattern that hold integers.
        is_header: the memory is the header of an allocation; the one pointer in it points to the start of the data.
        declared: the same as ``behind`` by the bytes of a pattern, for memory that an argument of the entry points to;
            no other pointer there points to anything that changes.
        single: the pattern does not repeat, and a pointer to such memory points to its start.
    """

    stride: int
    fields: tuple[tuple[int, str], ...]
    behind: tuple[tuple[int | None, MemoryType | None], ...] = ()
    integer_prefix: int = 0
    is_header: bool = False
    declared: tuple[tuple[int, MemoryType], ...] = ()
    single: bool = False

    def pattern(self) -> MemoryType | None:
        """Pattern that repeats from the first byte, without the objects it points to; None if integers come before."""
        if self.integer_prefix:
            return None
        if not self.declared and not self.single:
            return self
        fields = {offset: "ptr" for offset, _ in self.declared} | dict(self.fields)
        return replace(self, fields=tuple(sorted(fields.items())), declared=(), single=False)

    def floats(self) -> tuple[tuple[int, str], ...]:
        """The fields that can carry a derivative."""
        return tuple((offset, text) for offset, text in self.fields if text in _SIZES)

    def holds_unknown_pointers(self) -> bool:
        """True if it has pointers of which nothing is known."""
        return not self.behind and any(text == "ptr" for _, text in self.fields)

    def seen_from(self, offset: int) -> MemoryType | None:
        """The pattern as a pointer to a byte of it sees it; None where that is inside a number."""
        fields = [((start - offset) % self.stride, text) for start, text in self.fields]
        if any(start + _SIZES.get(text, 1) > self.stride for start, text in fields):
            return None
        return replace(self, fields=tuple(sorted(fields)))

    def floats_within(self, size: int) -> tuple[tuple[int, str], ...]:
        """The numbers in ``size`` bytes from the start of the pattern, which repeats; those at the end that fit in."""
        starts = range(0, size, self.stride)
        found = [(start + offset, text) for start in starts for offset, text in self.floats()]
        return tuple((offset, text) for offset, text in found if offset + _SIZES[text] <= size)

    def lone_float(self) -> str | None:
        """The float type when the memory holds nothing else, without gaps."""
        if len(self.fields) == 1:
            (offset, text) = self.fields[0]
            if offset == 0 and _SIZES.get(text) == self.stride:
                return text
            return None
        kinds = {text for _, text in self.fields}
        if len(kinds) != 1 or not kinds <= set(_SIZES):
            return None
        (kind,) = kinds
        size = _SIZES[kind]
        offsets = [offset for offset, _ in self.fields]
        return kind if offsets == list(range(0, self.stride, size)) else None
