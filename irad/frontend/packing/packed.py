"""Structures of Python as named tuples, which stand for them in compiled code.

There is a class of such tuples for each kind of structure with its keys. Nothing has to be unpacked: *called*, the
class gives the structure, and Numba calls it for a tuple that leaves compiled code.
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import inspect
import itertools
import json
import re
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cache
from operator import attrgetter
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
from numba.core import types
from numba.extending import typeof_impl

from irad.data.recursive.kinds import NAMED_TUPLE, Container, add_family, kind_of_type, when_changed
from irad.errors import HERE, SignatureError
from irad.message import with_article

# The classes of the tuples.
#
# Each is an attribute of this module, under a name that says which one it is, in every process: Numba
# pickles types beside the code that it caches on disk. These names are part of those files.

Maker: TypeAlias = Callable[..., Any]

_PREFIX: Final = "structure_"
_NAME: Final = re.compile(r"\b(\w+?)_[0-9a-f]{12}(?=\()")
_classes: Final[dict[str, type[Structure]]] = {}


class Structure(tuple[Any, ...]):
    """A tuple that stands for a structure; each class derived from this is for one owner and its keys.

    Attributes:
        owner: the class of the structure.
        keys: keys of its parts: those of a dictionary, names of attributes, or indices.
    """

    owner: ClassVar[type]
    keys: ClassVar[tuple[Any, ...]]
    _fields: ClassVar[tuple[str, ...]]
    irad_ways: ClassVar[tuple[str, ...]]  # to the parts, as Python writes them

    @classmethod
    def _make(cls, items: Iterable[Any]) -> Structure:
        return tuple.__new__(cls, items)

    def _asdict(self) -> dict[str, Any]:  # makes it a named tuple to Numba
        return dict(zip(self._fields, self, strict=True))


_AS_CONTAINER: Final = dataclasses.replace(
    NAMED_TUPLE, members=lambda value: zip(value.irad_ways, value, strict=True), way=lambda key: key
)
add_family(lambda cls: _AS_CONTAINER if issubclass(cls, Structure) else None)


def structure_of(numba_type: Any) -> type[Structure] | None:
    """The class of a packed structure, from its Numba type; None for other types."""
    cls = getattr(numba_type, "instance_class", None)
    return cls if isinstance(cls, type) and issubclass(cls, Structure) else None


def have_parts_alike(one: Any, other: Any) -> bool:
    """True if the parts of two tuples, given as Numba types, belong together place by place.

    Where both stand for structures, parts in one place have to have one key: equal dictionaries may have their keys in
    different orders.
    """
    mine, others = structure_of(one), structure_of(other)
    return len(one.types) == len(other.types) and (mine is None or others is None or mine.keys == others.keys)


def ways_of(tuple_type: types.BaseTuple) -> list[str]:
    """Each part of a tuple, or of the structure that it stands for, in the words of Python."""
    if (packed := structure_of(tuple_type)) is not None:
        return list(packed.irad_ways)
    if isinstance(tuple_type, types.BaseNamedTuple):
        return [f".{name}" for name in tuple_type.fields]
    return [f"[{i}]" for i in range(len(tuple_type.types))]


def way_through(numba_type: Any, path: Iterable[int]) -> str:
    """A part of a value in the words of Python, for the places of tuples on the way to it."""
    written = ""
    for step in path:
        if isinstance(numba_type, types.Optional):  # a step to what may be None
            numba_type = numba_type.type
        elif isinstance(numba_type, types.BaseTuple):
            written += ways_of(numba_type)[step]
            numba_type = numba_type.types[step]
    return written


def shown_structure(cls: type[Structure]) -> str:
    """A structure in a sentence: "a dict with the keys 'a', 'b'"."""
    name = with_article(cls.owner.__name__)
    if issubclass(cls.owner, list):
        return f"{name} of {len(cls.keys)}"
    found = "the keys" if issubclass(cls.owner, dict) else "the attributes"
    return f"{name} with {found} {', '.join(map(repr, cls.keys))}" if cls.keys else f"an empty {cls.owner.__name__}"


@cache
def class_for(owner: Any, keys: tuple[Any, ...]) -> type[Structure]:
    """The class for one kind of structure with its keys.

    Raises:
        SignatureError: the keys of a dictionary are not strings.
    """
    if issubclass(owner, dict):
        _check_keys(keys)
    is_instance = not issubclass(owner, dict | list)
    fields = keys if is_instance else tuple(f"item{number}" for number in range(len(keys)))
    ways = tuple(f".{key}" if is_instance else f"[{key!r}]" for key in keys)
    known = {"owner": owner, "keys": keys, "_fields": fields, "irad_ways": ways}
    stored = _free_name(owner, keys)
    # a name that no other class of tuples has, and part of the symbols of code in Numba's cache
    digest = hashlib.sha256(stored.encode()).hexdigest()[:12]
    name = re.sub(r"\W", "_", f"{owner.__name__}_{digest}")
    made = type(name, (Structure,), {"__slots__": (), "__new__": _maker(owner, keys), **known})
    made.__module__, made.__qualname__ = __name__, stored
    _classes[stored] = made
    parameters = [inspect.Parameter(field, inspect.Parameter.POSITIONAL_OR_KEYWORD) for field in fields]
    made.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # how compiled code makes one
    return made


_BUILT_IN: Final[tuple[Any, ...]] = (dict, OrderedDict, defaultdict, list)
_MAKERS: Final = {(base.__new__, base.__init__) for base in _BUILT_IN}


def remade_class(cls: Any) -> Any:
    """The class of what stands in the place of a dictionary or list: its own, if that is made as Python's are.

    Otherwise it is the next one that is.
    """
    return next(each for each in cls.__mro__ if (each.__new__, each.__init__) in _MAKERS)


def shown_names(text: str) -> str:
    """Types in a text of Numba's, with the names of the owners for those of the classes here."""
    return _NAME.sub(r"\1", text)


# --- classes by name --------------------------------------------------------------------------------------------------


def _free_name(owner: Any, keys: tuple[Any, ...]) -> str:
    """A free name for a class in this module; classes made by one function share a name and are numbered.

    Which of them has which number does not matter for cached code: that depends on the keys alone.
    """
    for number in itertools.count():
        spelled = json.dumps([owner.__module__, owner.__qualname__, keys, number])
        name = _PREFIX + spelled.encode().hex()
        if name not in _classes:
            break
    return name


def __getattr__(name: str) -> Any:
    if not name.startswith(_PREFIX):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name not in _classes:
        module, owner, keys, _ = json.loads(bytes.fromhex(name.removeprefix(_PREFIX)))
        with suppress(ImportError, AttributeError, TypeError):  # a class that is gone, or not made yet
            class_for(attrgetter(owner)(importlib.import_module(module)), tuple(keys))
    return _classes.get(name) or type(name, (Structure,), {})  # one for which nothing is called


# --- from parts to structures -----------------------------------------------------------------------------------------


def _check_keys(keys: tuple[Any, ...]) -> None:
    for key in keys:
        if not isinstance(key, str):
            raise SignatureError(
                f"a dictionary of parameters has the key {key!r}, {with_article(type(key).__name__)}",
                "(a) use strings as keys or (b) pass a numba.typed.Dict, with keys of one type and values of one type",
                "in compiled code keys are looked up when the function is compiled",
                HERE,
            )


def _maker(owner: type, keys: tuple[Any, ...]) -> Maker:
    """The function by which the class of a tuple makes the structure of its parts."""
    if issubclass(owner, defaultdict):
        return lambda cls, *items: owner(None, zip(keys, items, strict=True))
    if issubclass(owner, dict):
        return lambda cls, *items: owner(zip(keys, items, strict=True))
    if issubclass(owner, list):
        return lambda cls, *items: owner(items)

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


# From a structure of Python to the tuple.

_PLAIN: Final = frozenset({np.ndarray, float, int, bool, complex, str, type(None), np.float64, np.float32, np.int64})


def is_packed_type(cls: Any) -> bool:
    """True if Numba can be given values of a type only as packed."""
    return cls not in _PLAIN and (issubclass(cls, dict) or _attributes_of(cls) is not None)


def is_structure(value: Any) -> bool:
    """True if a value has to be packed, or a part of it."""
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
    """The tuple that stands for a value in compiled code; the value itself, if Numba knows its type.

    Raises:
        SignatureError: the keys of a dictionary are not strings, or a structure holds itself.
    """
    try:
        return _packer_of(value.__class__)(value) if is_structure(value) else value
    except RecursionError:
        raise SignatureError(
            f"{with_article(type(value).__name__)} of parameters contains itself",
            "pass it without the reference back to it",
            "in compiled code a structure is a named tuple, which must be finite",
            HERE,
        ) from None


def _items(values: Any) -> list[Any]:
    return [value if type(value) in _PLAIN else _packer_of(value.__class__)(value) for value in values]


# --- ways to pack -----------------------------------------------------------------------------------------------------


@cache
def _packer_of(cls: Any) -> Callable[[Any], Any]:
    """Packing function for values of a type that are, or are in, a structure."""
    if issubclass(cls, dict):
        owner = remade_class(cls)
        return lambda value: tuple.__new__(class_for(owner, tuple(value)), _items(value.values()))
    if issubclass(cls, list):
        owner = remade_class(cls)
        return lambda value: tuple.__new__(class_for(owner, tuple(range(len(value)))), _items(value))
    if issubclass(cls, tuple):
        return lambda value: tuple.__new__(cls, _items(value))
    attributes = None if cls in _PLAIN else _attributes_of(cls)
    if attributes is None:
        return lambda value: value

    def pack(value: Any) -> Any:
        names, values = attributes(value)
        return tuple.__new__(class_for(cls, names), _items(values))

    return pack


@cache
def _attributes_of(cls: Any) -> Callable[[Any], tuple[tuple[str, ...], Sequence[Any]]] | None:
    """A function that gives the attributes of a value, for instances that Numba does not know."""
    kind = kind_of_type(cls)
    return kind.attributes if isinstance(kind, Container) and not _is_known_to_numba(cls) else None


def _is_known_to_numba(cls: Any) -> bool:
    """True if Numba, or an extension of it, says which type the instances of a class have."""
    return hasattr(cls, "_numba_type_") or typeof_impl.dispatch(cls) is not typeof_impl.dispatch(object)


when_changed(_packer_of.cache_clear)
when_changed(_attributes_of.cache_clear)


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
