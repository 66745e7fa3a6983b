"""Contents of Python values by name, and structures rebuilt around other contents.

A *structure* is a tuple, list or dictionary, typed or not, or an instance whose class states its fields, such as a
dataclass: it can be rebuilt around other members. Instances of compiled classes hold members, too, but are not rebuilt.
What is a container, and of what, is stated in `irad.data.recursive`. In contrast to the recursion there, this is a walk
through a tree: what is held twice is met twice, and integers, text and None are met as well.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from irad.data.recursive.kinds import Container, kind_of

_DEEPEST: Final = 16  # how far objects are looked into: they may hold themselves


def is_structure(value: object) -> bool:
    """True if a value is a tuple, list or dictionary, or an instance of a class that states its fields."""
    return container_of(value) is not None


def container_of(value: Any, *, or_records: bool = False) -> Container | None:
    """The kind of a structure, or of records if asked for; None for what is neither."""
    kind = kind_of(value)
    if not isinstance(kind, Container) or isinstance(value, types.FunctionType):
        return None
    if kind.built is None:
        return kind if or_records and kind.is_memory else None
    return kind


def _fields_of_instance(value: Any) -> tuple[str, ...]:
    """Fields of a compiled instance: all of a jitclass, of a structref those that its class shows to Python."""
    numba_type = getattr(value, "_numba_type_", None)
    fields: Mapping[str, Any] = getattr(numba_type, "struct", None) or getattr(numba_type, "field_dict", {})
    return tuple(fields)


def members(value: Any) -> Iterator[tuple[str, Any]]:
    """Members of an object, with the way to each: ``.weights``, ``[3]``; nothing for numbers, arrays and text."""
    return _members(value, container_of(value))


def _members(value: Any, kind: Container | None) -> Iterator[tuple[str, Any]]:
    if kind is not None:
        yield from ((kind.way(key), item) for key, item in kind.members(value))
    else:
        yield from ((f".{name}", getattr(value, name, None)) for name in _fields_of_instance(value))


def pieces(value: Any, path: str = "", depth: int = _DEEPEST) -> Iterator[tuple[str, Any]]:
    """Numbers, arrays and texts in an object, with the way to each.

    Instances are looked into; records are taken as their fields, views of their memory.
    """
    parts = list(_members(value, container_of(value, or_records=True)))
    for way, item in parts if depth > 0 else ():
        yield from pieces(item, path + way, depth - 1)
    if not parts and not is_structure(value):
        yield path, value


def flattened(value: Any, kinds: type = object) -> Iterator[Any]:
    """Parts of a value that are not structures, left to right; structures of other kinds stay whole."""
    if not (isinstance(value, kinds) and is_structure(value)):
        yield value
        return
    for _, item in members(value):
        yield from flattened(item, kinds)


def paired(one: Any, other: Any) -> Iterator[tuple[Any, Any]]:
    """The parts of two values at the same places, left to right; values of different structures whole."""
    if is_structure(one) and is_structure(other):
        mine, others = dict(members(one)), dict(members(other))
        if list(mine) == list(others):
            for part in zip(mine.values(), others.values(), strict=True):
                yield from paired(*part)
            return
    yield one, other


def mapped(function: Callable[..., Any], value: Any, *others: Any) -> Any:
    """The structure of ``value`` around what ``function`` makes of each part that is not a structure.

    Args:
        function: of one such part, and of those at the same places in ``others``.
        value: gives the structure.
        others: have the same structure, or more members at places where ``value`` has none.
    """
    if not is_structure(value):
        return function(value, *others)
    columns = [[item for _, item in members(each)] for each in (value, *others)]
    return rebuilt(value, [mapped(function, *parts) for parts in zip(*columns, strict=True)])


def rebuilt(value: Any, items: Iterable[Any]) -> Any:
    """A structure of the same type and keys with other members, which may have other types."""
    kind = container_of(value)
    assert kind is not None
    assert kind.built is not None
    return kind.built(value, list(items))
