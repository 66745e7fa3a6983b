"""The attributes of functions, with those of their groups."""

from __future__ import annotations

from irad.ir.module import Function, Module


def expanded(function: Function, module: Module) -> frozenset[str]:
    """The attributes of a function, those of its group included."""
    return frozenset(w for word in function.attributes for w in module.attribute_groups.get(word, (word,)))
