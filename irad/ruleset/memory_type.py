"""What a piece of memory holds, byte by byte."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Data:
    """What the header of an allocation leads to: memory of numbers, without pointers.

    ``pointer`` is the byte of the header where its address stands; its first ``integer_prefix`` bytes hold integers.
    """

    pointer: int
    integer_prefix: int


@dataclass(frozen=True, slots=True)
class MemoryType:
    """A pattern of ``stride`` bytes that repeats.

    ``fields`` are (byte offset, LLVM type text) in ascending order: "double", "float", "ptr", "i64", "i8", …. Bytes
    that no field covers are padding. ``data``: the memory is a header, and holds no other pointer.

    ``pointees`` says of memory that leads to other memory where: the bytes of a pattern where pointers stand, and what
    they lead to; no other pointer there leads to anything that changes. ``single``: the pattern does not repeat, and
    who points to such memory points to its start. ``integer_prefix``: bytes of integers before the first pattern.
    """

    stride: int
    fields: tuple[tuple[int, str], ...]
    data: Data | None = None
    pointees: tuple[tuple[int, MemoryType], ...] = ()
    single: bool = False
    integer_prefix: int = 0

    def pattern(self) -> MemoryType | None:
        """What repeats from the first byte on, without what it leads to; None where integers stand before."""
        if self.integer_prefix:
            return None
        return replace(self, pointees=(), single=False) if self.pointees or self.single else self

    def floats(self) -> tuple[tuple[int, str], ...]:
        """The fields that can carry a derivative."""
        return tuple((offset, text) for offset, text in self.fields if text in ("float", "double"))

    def lone_float(self) -> str | None:
        """The float type when the memory holds nothing else, without gaps."""
        sizes = {"float": 4, "double": 8}
        if len(self.fields) == 1:
            (offset, text) = self.fields[0]
            if offset == 0 and sizes.get(text) == self.stride:
                return text
            return None
        kinds = {text for _, text in self.fields}
        if len(kinds) != 1 or not kinds <= set(sizes):
            return None
        (kind,) = kinds
        size = sizes[kind]
        offsets = [offset for offset, _ in self.fields]
        return kind if offsets == list(range(0, self.stride, size)) else None
