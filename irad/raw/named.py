"""Which functions and global variables a constant names."""

from __future__ import annotations

from collections.abc import Iterator

from irad.ir.module import Function
from irad.ir.values import GlobalAlias, GlobalVariable, Value, parts_of


def named_by(value: Value) -> Iterator[Function | GlobalVariable]:
    """The constants that the value is, or that occur in its expression, structure or alias, in order."""
    match value:
        case Function() | GlobalVariable():
            yield value
        case GlobalAlias(target=Value() as target):
            yield from named_by(target)
        case _:
            for part in parts_of(value):
                yield from named_by(part)
