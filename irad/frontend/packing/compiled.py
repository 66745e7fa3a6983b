"""Packed structures in compiled code: parts by key, found when the function is compiled."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numba.core import errors, types
from numba.core.typing.templates import infer_getattr, make_overload_method_template
from numba.extending import overload

from irad.frontend.generated import function_from
from irad.frontend.packing.packed import structure_of


def _keys(numba_type: Any) -> tuple[str, ...] | None:
    """The keys of a packed dictionary."""
    cls = structure_of(numba_type)
    return cls.keys if cls is not None and issubclass(cls.owner, dict) else None


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


def _all_keys(structure: Any) -> Any:
    keys = _keys(structure)
    return lambda structure: keys


def _all_values(structure: Any) -> Any:
    return _tuple_of("structure[{0}]", _keys(structure))


def _all_items(structure: Any) -> Any:
    return _tuple_of("(keys[{0}], structure[{0}])", _keys(structure))


def _tuple_of(item: str, keys: tuple[str, ...] | None) -> Any:
    """A function of a structure that returns a tuple with an item for each key."""
    items = "".join(f"{item.format(number)}, " for number in range(len(keys or ())))
    return function_from("items", f"def items(structure):\n    return ({items})\n", "structure", {"keys": keys})


def _add_method(tuple_type: type, name: str, function: Callable[..., Any]) -> None:
    """Gives packed dictionaries a method; `overload_method` would hide the fields of that name of all named tuples."""
    template: Any = make_overload_method_template(tuple_type, name, function, inline="never", strict=False)

    class OfDictionaries(template):
        def _resolve(self, typ: Any, attr: str) -> Any:
            return None if _keys(typ) is None else super()._resolve(typ, attr)

    infer_getattr(OfDictionaries)


for _name, _method in (("keys", _all_keys), ("values", _all_values), ("items", _all_items)):
    overload(_method, strict=False)(_method)
    for _tuple_type in (types.NamedTuple, types.NamedUniTuple):
        _add_method(_tuple_type, _name, _method)
