"""What Python objects hold: entries of tuples, lists and dictionaries, fields of instances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

DEEPEST: Final = 16
"""How far objects are looked into: they may hold themselves."""


def members(value: Any) -> Iterator[tuple[str, Any]]:
    """What an object holds, with the way to it: ``.weights``, ``[3]``; nothing for numbers, arrays and text."""
    names: tuple[str, ...] | None = getattr(value, "_fields", None)
    if isinstance(value, str | bytes):
        return
    if isinstance(value, tuple) and names is not None:
        yield from ((f".{name}", item) for name, item in zip(names, value, strict=True))
    elif isinstance(value, Mapping):
        yield from ((f"[{key!r}]", value[key]) for key in list(value))
    elif isinstance(value, Sequence):
        yield from ((f"[{index}]", item) for index, item in enumerate(value))
    else:
        yield from ((f".{name}", getattr(value, name, None)) for name in _fields_of_instance(value))


def _fields_of_instance(value: Any) -> tuple[str, ...]:
    """Of a jitclass all fields; of a structref those that its class shows to Python."""
    numba_type = getattr(value, "_numba_type_", None)
    fields: Mapping[str, Any] = getattr(numba_type, "struct", None) or getattr(numba_type, "field_dict", {})
    return tuple(fields)
