"""Symbols of a module: the attributes of a function with those of its groups, and what a constant names."""

from __future__ import annotations

from collections.abc import Iterator

from irad.ir.module import Function, Module
from irad.ir.values import GlobalAlias, GlobalVariable, Value, parts_of

# The attributes of functions, with those of their groups.


def expanded(function: Function, module: Module) -> frozenset[str]:
    """The attributes of a function, those of its group included."""
    return frozenset(w for word in function.attributes for w in module.attribute_groups.get(word, (word,)))


# Which functions and global variables a constant names.


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
