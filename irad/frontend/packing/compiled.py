"""Packed structures in compiled code: parts by key, found when the function is compiled."""

from __future__ import annotations

import operator
from typing import Any

from numba.core import errors, types
from numba.extending import overload, overload_method

from irad.frontend.generated import function_from
from irad.frontend.packing.packed import Structure


def _keys(numba_type: Any) -> tuple[str, ...] | None:
    """The keys of a packed dictionary."""
    cls = getattr(numba_type, "instance_class", None)
    if isinstance(cls, type) and issubclass(cls, Structure) and issubclass(cls.owner, dict):
        return cls.keys
    return None


def _position(keys: tuple[str, ...], key: Any) -> int | None:
    """Which part a key is that is written in the function; None if that is known only when it runs."""
    if not isinstance(key, types.StringLiteral):
        return None
    if key.literal_value not in keys:
        raise errors.TypingError(f"there is no key {key.literal_value!r}: the keys are {', '.join(map(repr, keys))}")
    return keys.index(key.literal_value)


@overload(operator.getitem, strict=False)
def _item(structure: Any, key: Any) -> Any:
    keys = _keys(structure)
    if keys is None or not isinstance(key, types.StringLiteral | types.UnicodeType):
        return None
    number = _position(keys, key)
    return None if number is None else lambda structure, key: structure[number]


@overload(operator.contains, strict=False)
def _contains(structure: Any, key: Any) -> Any:
    keys = _keys(structure)
    if keys is None or not isinstance(key, types.StringLiteral):
        return None
    found = key.literal_value in keys
    return lambda structure, key: found


for _tuple_type in (types.NamedTuple, types.NamedUniTuple):

    @overload_method(_tuple_type, "keys", strict=False)
    def _all_keys(structure: Any) -> Any:
        keys = _keys(structure)
        return None if keys is None else lambda structure: keys

    @overload_method(_tuple_type, "values", strict=False)
    def _all_values(structure: Any) -> Any:
        return None if _keys(structure) is None else _tuple_of("structure[{0}]", _keys(structure))

    @overload_method(_tuple_type, "items", strict=False)
    def _all_items(structure: Any) -> Any:
        return None if _keys(structure) is None else _tuple_of("(keys[{0}], structure[{0}])", _keys(structure))


def _tuple_of(item: str, keys: tuple[str, ...] | None) -> Any:
    """A function of a structure that returns a tuple with an item for each key."""
    items = "".join(f"{item.format(number)}, " for number in range(len(keys or ())))
    return function_from("items", f"def items(structure):\n    return ({items})\n", "structure", {"keys": keys})
