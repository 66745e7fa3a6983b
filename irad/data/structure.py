"""What Python values hold, by name, and the same structure around other contents.

A *structure* is a tuple, list or dictionary, typed or not, or an instance whose class states its fields, such as a
dataclass: it can be rebuilt around other members. Instances of compiled classes hold members, too, but are not rebuilt.
"""

from __future__ import annotations

import array
import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any, Final

from irad.data.recursive import containers as containers  # registers them
from irad.data.recursive.kinds import Container, kind_of

_DEEPEST: Final = 16  # how far objects are looked into: they may hold themselves
_TEXT: Final = (str, bytes, bytearray, array.array)


def is_structure(value: object) -> bool:
    """Whether a value is a tuple, list or dictionary, or an instance of a class that states its fields."""
    if isinstance(value, tuple | MutableSequence | MutableMapping):
        return not isinstance(value, _TEXT)
    return _stated_fields(value) is not None


def _stated_fields(value: Any) -> tuple[str, ...] | None:
    kind = kind_of(value)
    if not isinstance(kind, Container) or kind.fields is None or hasattr(value, "_numba_type_"):
        return None
    return kind.fields(value)


def members(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, with the way to it: ``.weights``, ``[3]``; nothing for numbers, arrays and text."""
    if isinstance(value, _TEXT):
        return
    if isinstance(value, tuple) and (ways := getattr(value, "_ways", None)) is not None:
        yield from zip(ways, value, strict=True)
    elif isinstance(value, tuple) and (fields := getattr(value, "_fields", None)) is not None:
        yield from ((f".{name}", item) for name, item in zip(fields, value, strict=True))
    elif isinstance(value, Mapping):
        yield from ((f"[{key!r}]", value[key]) for key in list(value))
    elif isinstance(value, Sequence):
        yield from ((f"[{index}]", item) for index, item in enumerate(value))
    else:
        names = _stated_fields(value) or _fields_of_instance(value)
        yield from ((f".{name}", getattr(value, name, None)) for name in names)


def _fields_of_instance(value: Any) -> tuple[str, ...]:
    """Of a jitclass all fields; of a structref those that its class shows to Python."""
    numba_type = getattr(value, "_numba_type_", None)
    fields: Mapping[str, Any] = getattr(numba_type, "struct", None) or getattr(numba_type, "field_dict", {})
    return tuple(fields)


def pieces(value: Any, path: str = "", depth: int = _DEEPEST) -> Iterator[tuple[str, Any]]:
    """What an object is made of in the end, instances included, with the way to each number, array and text."""
    holds_nothing = True
    for way, item in members(value):
        holds_nothing = False
        if depth > 0:
            yield from pieces(item, path + way, depth - 1)
    if holds_nothing and not is_structure(value):
        yield path, value


def flattened(value: Any, kinds: type = object) -> Iterator[Any]:
    """What a value is made of that is not a structure, left to right; structures of other kinds stay whole."""
    if not (isinstance(value, kinds) and is_structure(value)):
        yield value
        return
    for _, item in members(value):
        yield from flattened(item, kinds)


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
    """A structure of the same type and keys with other members."""
    match value:
        case tuple():
            make: Any = getattr(value, "_make", tuple)
            return make(items)
        case MutableSequence() | MutableMapping() if not len(value):
            return value.copy()  # type: ignore[union-attr]  # a typed container keeps its type so
        case MutableMapping():
            made = type(value)()
            for key, item in zip(value, items, strict=True):
                made[key] = item
            return made
        case MutableSequence():
            return type(value)(items)  # type: ignore[call-arg]  # as lists do
        case _:
            made = copy.copy(value)
            for name, item in zip(_stated_fields(value) or (), items, strict=True):
                object.__setattr__(made, name, item)  # it may be frozen
            return made
