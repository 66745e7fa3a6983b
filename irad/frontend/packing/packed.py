"""From a structure of Python to the named tuple that stands for it in compiled code.

Nothing has to be unpacked: the class of such a tuple, called by Numba, makes the structure.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numba.extending import typeof_impl

from irad.data.recursive import containers as containers  # registers them
from irad.data.recursive.kinds import Container, kind_of_type, when_changed
from irad.errors import HERE, SignatureError
from irad.frontend.packing.classes import class_for, remade_class
from irad.message import with_article

_PLAIN: Final = frozenset({np.ndarray, float, int, bool, complex, str, type(None), np.float64, np.float32, np.int64})


def is_packed_type(cls: Any) -> bool:
    """Whether Numba can be given values of a type only as packed."""
    return cls not in _PLAIN and (issubclass(cls, dict) or _fields_of(cls) is not None)


def is_structure(value: Any) -> bool:
    """Whether a value has to be packed, or a part of it."""
    cls = type(value)
    if cls in _PLAIN:
        return False
    if isinstance(value, list):
        return any(map(is_structure, value)) or len(set(map(_kind_of_item, value))) > 1
    return any(map(is_structure, value)) if isinstance(value, tuple) else is_packed_type(cls)


def _kind_of_item(item: Any) -> Any:
    """Equal for items of a list that Numba gives one type."""
    key = type_key(item)
    return type(item) if key is None else key


def packed(value: Any) -> Any:
    """What stands for a value in compiled code: the value itself, if Numba knows such.

    Raises:
        SignatureError: the keys of a dictionary are not strings, or a structure holds itself.
    """
    try:
        return _packed(value) if is_structure(value) else value
    except RecursionError:
        raise SignatureError(
            f"{with_article(type(value).__name__)} of parameters holds itself",
            "pass it without what leads back to it",
            "in compiled code a structure is a named tuple, which has an end",
            HERE,
        ) from None


def _packed(value: Any) -> Any:
    return _packer_of(value.__class__)(value)


def _items(values: Any) -> list[Any]:
    return [value if type(value) in _PLAIN else _packed(value) for value in values]


# --- ways to pack -----------------------------------------------------------------------------------------------------


@cache
def _packer_of(cls: Any) -> Callable[[Any], Any]:
    """How values of a type are packed that are, or are in, a structure."""
    if issubclass(cls, dict):
        owner = remade_class(cls)
        return lambda value: tuple.__new__(class_for(owner, tuple(value)), _items(value.values()))
    if issubclass(cls, list):
        owner = remade_class(cls)
        return lambda value: tuple.__new__(class_for(owner, tuple(range(len(value)))), _items(value))
    if issubclass(cls, tuple):
        return lambda value: tuple.__new__(cls, _items(value))
    names = None if cls in _PLAIN else _fields_of(cls)
    return (lambda value: value) if names is None else _instance_packer(cls, names)


def _instance_packer(cls: type, names: Callable[[Any], tuple[str, ...]]) -> Callable[[Any], Any]:
    def pack(value: Any) -> Any:
        fields = names(value)
        try:
            items = _getter(fields)(value)
        except AttributeError:  # some were never assigned
            fields = tuple(name for name in fields if hasattr(value, name))
            items = _getter(fields)(value)
        return tuple.__new__(class_for(cls, fields), _items(items))

    return pack


@cache
def _getter(names: tuple[str, ...]) -> Callable[[Any], Any]:
    """A function of an instance that returns its attributes of these names as a sequence."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda value: [getattr(value, name) for name in names]


@cache
def _fields_of(cls: Any) -> Callable[[Any], tuple[str, ...]] | None:
    """The names of the attributes of a value, for instances that Numba does not know."""
    kind = kind_of_type(cls)
    return kind.fields if isinstance(kind, Container) and not _is_known_to_numba(cls) else None


def _is_known_to_numba(cls: Any) -> bool:
    """Whether Numba, or an extension of it, says which type the instances of a class have."""
    return hasattr(cls, "_numba_type_") or typeof_impl.dispatch(cls) is not typeof_impl.dispatch(object)


when_changed(_packer_of.cache_clear)
when_changed(_fields_of.cache_clear)


def type_key(value: Any) -> Any:
    """Equal for values that have one Numba type, None where that is not known: quicker than asking Numba."""
    cls = type(value)
    if cls is np.ndarray:
        flags = value.flags
        return value.dtype, value.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable, flags.aligned
    if cls is int and value.bit_length() > 63:
        return None
    if isinstance(value, tuple):
        items = tuple(map(type_key, value))
        return None if None in items else (cls, items)
    return cls if cls in _PLAIN else None
