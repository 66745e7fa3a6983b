"""The containers of Python, the standard library and NumPy.

Sets are inactive: their members are found by their values. So are instances of classes that state no fields.
"""

from __future__ import annotations

import copy
import dataclasses
import types
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from irad.data.recursive.kinds import INACTIVE, Container, Inactive, Member, add_family, set_kind
from irad.data.recursive.vectors import identity_of_array, of_arrays, zeros_in_place_of

_MISSING: Final = object()


def _index(key: Any) -> str:
    return f"[{key!r}]"


def _attribute(key: Any) -> str:
    return f".{key}"


def _store_item(holder: Any, key: Any, value: Any) -> None:
    holder[key] = value


# --- tuples, lists, dictionaries --------------------------------------------------------------------------------------


def _tuple_like(value: tuple[Any, ...], items: list[Any]) -> tuple[Any, ...]:
    return type(value)._make(items) if hasattr(value, "_make") else type(value)(items)


def _list_like(value: Any, items: list[Any]) -> Any:
    return type(value)(items) if items else value.copy()  # a typed list keeps its type so


def _dictionary_like(value: Any, items: list[Any]) -> Any:
    if not items:
        return value.copy()
    made = type(value)()
    for key, item in zip(value, items, strict=True):
        made[key] = item
    return made


TUPLE: Final = Container(enumerate, _index, built=_tuple_like, is_mutable=lambda value: False)
NAMED_TUPLE: Final = dataclasses.replace(
    TUPLE,
    members=lambda value: zip(value._fields, value, strict=True),
    way=_attribute,
)
LIST: Final = Container(enumerate, _index, copied=copy.copy, store=_store_item, built=_list_like)
DICTIONARY: Final = Container(
    lambda value: list(value.items()), _index, copied=copy.copy, store=_store_item, built=_dictionary_like
)

OTHER_LIST: Final = dataclasses.replace(LIST, copied=lambda value: value.copy())
OTHER_DICTIONARY: Final = dataclasses.replace(DICTIONARY, copied=lambda value: value.copy())


def _of_abstract_class(cls: type) -> Container | None:
    """Sequences and mappings of other libraries, those of `numba.typed` among them."""
    if issubclass(cls, list | dict | bytearray) or not hasattr(cls, "copy"):
        return None
    if issubclass(cls, MutableSequence):
        return OTHER_LIST
    return OTHER_DICTIONARY if issubclass(cls, MutableMapping) else None


# --- instances --------------------------------------------------------------------------------------------------------


def with_fields(names: Callable[[Any], tuple[str, ...]], copied: Callable[[Any], Any], *, mutable: bool) -> Container:
    """The kind of instances whose fields are known; those that were never assigned are left out.

    Args:
        names: of the fields of an instance.
        copied: a shallow copy of an instance.
        mutable: whether users may assign to fields.
    """

    def members(value: Any) -> Iterator[Member]:
        found = ((name, getattr(value, name, _MISSING)) for name in names(value))
        return ((name, member) for name, member in found if member is not _MISSING)

    def built(value: Any, items: list[Any]) -> Any:
        made = copied(value)
        for (name, _), item in zip(members(value), items, strict=True):
            object.__setattr__(made, name, item)  # it may be frozen
        return made

    store = setattr if mutable else object.__setattr__  # a copy is still being made when it is stored to
    is_mutable = (lambda value: True) if mutable else (lambda value: False)
    return Container(members, _attribute, copied, store, built, is_mutable, names)


def _of_stated_fields(cls: type) -> Container | None:
    """Dataclasses and classes of attrs, which is asked by its own protocol, so that it needs not be installed."""
    if dataclasses.is_dataclass(cls):
        fields = tuple(field.name for field in dataclasses.fields(cls))
        is_frozen = cls.__dataclass_params__.frozen  # type: ignore[attr-defined]
    elif (attributes := getattr(cls, "__attrs_attrs__", None)) is not None:
        fields = tuple(attribute.name for attribute in attributes)
        is_frozen = getattr(cls.__setattr__, "__name__", "") == "_frozen_setattrs"
    else:
        return None
    return with_fields(lambda value: fields, _copier_without_caches(cls), mutable=not is_frozen)


def _copier_without_caches(cls: type) -> Callable[[Any], Any]:
    """What `functools.cached_property` has computed from the fields is not copied: there will be others."""
    cached = {name for base in cls.__mro__ for name, each in vars(base).items() if isinstance(each, cached_property)}

    def copied(value: Any) -> Any:
        made = copy.copy(value)
        for name in cached & vars(made).keys():
            del vars(made)[name]
        return made

    return copied if cached else copy.copy


# --- closures ---------------------------------------------------------------------------------------------------------


def _cell_members(cell: types.CellType) -> Iterator[Member]:
    try:
        yield "cell_contents", cell.cell_contents
    except ValueError:  # it has none yet
        return


def _copied_cell(cell: types.CellType) -> types.CellType:
    return types.CellType(*(contents for _, contents in _cell_members(cell)))


def _closure_members(function: types.FunctionType) -> Iterator[Member]:
    return zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)


def _function_like(function: types.FunctionType, cells: list[Any]) -> types.FunctionType:
    made = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, tuple(cells)
    )
    for attribute in ("__kwdefaults__", "__annotations__", "__module__", "__qualname__"):
        setattr(made, attribute, getattr(function, attribute))
    made.__dict__.update(function.__dict__)
    return made


CELL: Final = Container(_cell_members, _attribute, copied=_copied_cell, store=setattr)
CLOSURE: Final = Container(_closure_members, _attribute, built=_function_like, is_mutable=lambda value: False)


def _of_function(function: types.FunctionType) -> Container | Inactive:
    return CLOSURE if function.__closure__ else INACTIVE


# --- arrays that are not vectors --------------------------------------------------------------------------------------


def _object_members(array: NDArray[Any]) -> Iterator[Member]:
    return ((index, array[index]) for index in np.ndindex(array.shape))


def _field_views(records: Any) -> Iterator[Member]:
    array = np.asarray(records)  # of one record an array without axes, over the same memory
    return ((name, array[name]) for name in array.dtype.names or () if not array.dtype[name].hasobject)


def _cleared_records(records: Any) -> Any:
    """Zeros in place of all members: new memory is not touched before it is needed."""
    made = np.zeros((), records.dtype)
    if isinstance(records, np.ndarray):
        made = zeros_in_place_of(records).view(type(records))
    for name in records.dtype.names:
        if records.dtype[name].hasobject:
            made[name] = records[name]
    return made if isinstance(records, np.ndarray) else made[()]


def _is_writable(records: Any) -> bool:
    return bool(records.flags.writeable)


OBJECTS: Final = Container(
    _object_members,
    lambda key: _index(key[0] if len(key) == 1 else key),
    copied=copy.copy,
    store=_store_item,
    is_mutable=_is_writable,
    identity=identity_of_array,
)
RECORDS: Final = Container(
    _field_views,
    _index,
    copied=_cleared_records,
    is_mutable=_is_writable,
    is_memory=True,
    identity=identity_of_array,
)


for _cls, _kind in (
    (tuple, TUPLE),
    (list, LIST),
    (dict, DICTIONARY),
    (types.SimpleNamespace, with_fields(lambda value: tuple(vars(value)), copy.copy, mutable=True)),
    (types.CellType, CELL),
):
    set_kind(_cls, _kind)
set_kind(types.FunctionType, _of_function)
set_kind(np.ndarray, of_arrays(OBJECTS, RECORDS))
set_kind(np.void, of_arrays(OBJECTS, RECORDS))
add_family(_of_abstract_class)
add_family(_of_stated_fields)
add_family(lambda cls: NAMED_TUPLE if issubclass(cls, tuple) and hasattr(cls, "_fields") else None)
