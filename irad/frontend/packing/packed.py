"""From a structure of Python to the named tuple that stands for it in compiled code, and back.

The class of such a tuple is that of one kind of structure with its keys. *Called*, it gives the structure: Numba calls
it for a tuple that leaves compiled code. So nothing has to be unpacked; tuples for compiled code are made by `packed`.
"""

from __future__ import annotations

import inspect
import itertools
import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
from numba.extending import typeof_impl

from irad.data.recursive import containers as containers  # registers them
from irad.data.recursive.kinds import Container, kind_of_type, when_changed
from irad.errors import HERE, SignatureError
from irad.message import with_article

Maker: TypeAlias = Callable[..., Any]

_PLAIN: Final = frozenset({np.ndarray, float, int, bool, complex, str, type(None), np.float64, np.float32, np.int64})


class Structure(tuple[Any, ...]):
    """A tuple that stands for a structure; each class derived from this is for one owner and its keys.

    Attributes:
        owner: the class of the structure.
        keys: what its parts are found by: those of a dictionary, names of attributes, or indices.
    """

    owner: ClassVar[type]
    keys: ClassVar[tuple[Any, ...]]
    _fields: ClassVar[tuple[str, ...]]
    _ways: ClassVar[tuple[str, ...]]  # to the parts, as Python writes them

    @classmethod
    def _make(cls, items: Iterable[Any]) -> Structure:
        return tuple.__new__(cls, items)

    def _asdict(self) -> dict[str, Any]:  # makes it a named tuple to Numba
        return dict(zip(self._fields, self, strict=True))


def structure_of(numba_type: Any) -> type[Structure] | None:
    """The class of a packed structure, from its Numba type; None for other types."""
    cls = getattr(numba_type, "instance_class", None)
    return cls if isinstance(cls, type) and issubclass(cls, Structure) else None


def have_parts_alike(one: Any, other: Any) -> bool:
    """Whether the parts of two tuples, given as Numba types, belong together place by place.

    Where both stand for structures, parts in one place have to have one key: equal dictionaries may have their keys in
    different orders.
    """
    mine, others = structure_of(one), structure_of(other)
    return len(one.types) == len(other.types) and (mine is None or others is None or mine.keys == others.keys)


def is_packed_type(cls: Any) -> bool:
    """Whether Numba can be given values of a type only as packed."""
    return cls not in _PLAIN and (issubclass(cls, dict) or _fields_of(cls) is not None)


def shown_structure(cls: type[Structure]) -> str:
    """A structure in a sentence: "a dict with the keys 'a', 'b'"."""
    name = with_article(cls.owner.__name__)
    if issubclass(cls.owner, list):
        return f"{name} of {len(cls.keys)}"
    found = "the keys" if issubclass(cls.owner, dict) else "the attributes"
    return f"{name} with {found} {', '.join(map(repr, cls.keys))}" if cls.keys else f"an empty {cls.owner.__name__}"


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
        owner = OrderedDict if issubclass(cls, OrderedDict) else dict
        return lambda value: tuple.__new__(_class_for(owner, tuple(value)), _items(value.values()))
    if issubclass(cls, list):
        return lambda value: tuple.__new__(_class_for(cls, tuple(range(len(value)))), _items(value))
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
        return tuple.__new__(_class_for(cls, fields), _items(items))

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


# --- classes of tuples ------------------------------------------------------------------------------------------------

_owners_of_names: Final[dict[str, tuple[Any, tuple[Any, ...]]]] = {}


@cache
def _class_for(owner: Any, keys: tuple[Any, ...]) -> type[Structure]:
    if issubclass(owner, dict):
        _check_keys(keys)
    is_instance = not issubclass(owner, dict | list)
    fields = keys if is_instance else tuple(f"item{number}" for number in range(len(keys)))
    name = _name_for(owner, keys)
    ways = tuple(f".{key}" if is_instance else f"[{key!r}]" for key in keys)
    known = {"owner": owner, "keys": keys, "_fields": fields, "_ways": ways}
    made = type(name, (Structure,), {"__slots__": (), "__new__": _maker(owner, keys), **known})
    parameters = [inspect.Parameter(field, inspect.Parameter.POSITIONAL_OR_KEYWORD) for field in fields]
    made.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # how compiled code makes one
    return made


def _name_for(owner: Any, keys: tuple[Any, ...]) -> str:
    """A name that no other class of tuples has: Numba tells them apart by it, and writes it in code for loops."""
    is_instance = not issubclass(owner, dict | list)
    shown = owner.__name__ if is_instance else re.sub(r"\W", "_", "_".join([owner.__name__, *map(str, keys)]))
    for number in itertools.count(1):
        name = shown if number == 1 else f"{shown}_{number}"
        if _owners_of_names.setdefault(name, (owner, keys)) == (owner, keys):
            break
    return name


def _check_keys(keys: tuple[Any, ...]) -> None:
    for key in keys:
        if not isinstance(key, str):
            raise SignatureError(
                f"a dictionary of parameters has the key {key!r}, {with_article(type(key).__name__)}",
                "(a) use strings as keys or (b) pass a numba.typed.Dict, with keys of one type and values of one type",
                "in compiled code a part is found by its key when the function is compiled",
                HERE,
            )


def _maker(owner: type, keys: tuple[Any, ...]) -> Maker:
    """What the class of a tuple makes of parts: the structure."""
    if issubclass(owner, dict):
        return lambda cls, *items: owner(zip(keys, items, strict=True))
    if issubclass(owner, list):
        return lambda cls, *items: list(items)

    def instance(cls: type, *items: Any) -> Any:
        made = _new(owner)
        for name, item in zip(keys, items, strict=True):
            object.__setattr__(made, name, item)  # it may be frozen
        return made

    return instance


def _new(cls: Any) -> Any:
    """An instance without fields."""
    try:
        return object.__new__(cls)
    except TypeError:  # of a class in C, an exception say
        return cls.__new__(cls)


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
