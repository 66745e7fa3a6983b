"""``dataclass`` as in the standard library, with methods that all classes share.

``dataclasses.dataclass`` compiles the methods of each class from source text, which was half of the time of ``import
irad; irad.grad``: irad has three hundred such classes. Here only ``__init__`` is compiled, and what ``frozen`` adds.
Classes of the public interface are made by the standard library: tools for documentation know them by it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any


def _made(cls: type, *, eq: bool = True, repr: bool = True, frozen: bool = False, **parameters: bool) -> Any:
    written = vars(cls)
    made: Any = dataclasses.dataclass(eq=False, repr=False, frozen=frozen, **parameters)(cls)
    if repr and "__repr__" not in written:
        made.__repr__ = _repr
    if eq:
        values = _values_of(made)
        if "__eq__" not in written:
            made.__eq__ = _equality(values)
        if written.get("__hash__") is None:
            made.__hash__ = _hash(values) if frozen else None
    return made


@recursive_repr()
def _repr(self: Any) -> str:
    shown = ", ".join(f"{each.name}={getattr(self, each.name)!r}" for each in dataclasses.fields(self) if each.repr)
    return f"{type(self).__qualname__}({shown})"


def _equality(values: Callable[[object], object]) -> Callable[[object, object], bool]:
    def equal(self: object, other: object) -> bool:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hash(values: Callable[[object], object]) -> Callable[[object], int]:
    def hash_of_values(self: object) -> int:
        return hash(values(self))

    return hash_of_values


def _values_of(cls: Any) -> Callable[[object], object]:
    """A function of an instance that gives its fields, without those that are not compared."""
    names = [each.name for each in dataclasses.fields(cls) if each.compare]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda self: tuple(getattr(self, name) for name in names)  # of one name attrgetter would give no tuple


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(cls=None, /, **parameters):
        """Makes a class a dataclass. ``order``, ``unsafe_hash`` and ``field(hash=…)`` are not there."""
        return _made(cls, **parameters) if cls is not None else lambda cls: _made(cls, **parameters)
