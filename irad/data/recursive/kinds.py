"""Kinds of Python values for the recursion: a vector, a container, or inactive; and the registration of types.

The kind of a value follows from its type, and for arrays from the dtype. A type that is not registered has the kind of
the nearest class that it is derived from; one that has none is inactive.
"""

from __future__ import annotations

import copy
import dataclasses
import types
from collections.abc import Callable, Iterable, Iterator, MutableMapping, MutableSequence, Sequence
from dataclasses import field
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, ClassVar, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from irad.data.recursive.fold import Treatment
from irad.errors import HERE, SignatureError
from irad.records import dataclass

Member: TypeAlias = tuple[Any, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """The kind of values that are vectors by themselves: numbers, arrays, and types that are registered as such.

    Attributes:
        zero: the zero of the space that a value is in.
        dot: the sum of the products of conjugated elements of one value and elements of another.
        read: the elements of a value as a flat array of doubles; a complex number is two of them.
        refilled: a value like another one, with elements from a flat array of doubles.
        length: number of doubles that `read` returns.
        assign: ``assign(target, source)`` overwrites the elements of a value; None where values are immutable.
        is_writable: whether `assign` may be called for a value.
        takes_ufuncs: whether the functions of NumPy take values, also as ``out``.
        identity: equal for values that are one thing: an object's id, or where its memory is.
    """

    zero: Callable[[Any], Any]
    dot: Callable[[Any, Any], Any]
    read: Callable[[Any], NDArray[np.float64]]
    refilled: Callable[[Any, NDArray[np.float64]], Any]
    length: Callable[[Any], int]
    assign: Callable[[Any, Any], None] | None = None
    is_writable: Callable[[Any], bool] = lambda value: True
    takes_ufuncs: bool = False
    identity: Callable[[Any], Any] = id
    treatment: ClassVar[Treatment] = Treatment.VECTOR

    def may_assign(self, value: Any) -> bool:
        """True if a value is storage that can be overwritten."""
        return self.assign is not None and self.is_writable(value)


@dataclass(frozen=True, slots=True, eq=False)
class Container:
    """The kind of values that hold other values.

    The recursion makes one that can be filled as a shallow copy, in which members are replaced; one that cannot is
    built around all of its members.

    Attributes:
        members: key and value of each member that there is; two values of one structure have the same keys.
        way: path to a member in Python syntax: ``[3]``, ``.weights``.
        copied: a copy that holds the same members; None where values are built.
        store: replaces the member at a key.
        built: a value like another one with other members, in the order of `members`, maybe of other types.
        is_mutable: whether users may replace members of a value.
        attributes: the names and the values of the attributes of an instance; None for other containers.
        is_memory: whether members are views of the memory of a value, so that what is written to them is stored.
        identity: as for a vector.
        makes_members: whether members are Python objects that are made whenever they are asked for: their ids say
            nothing afterwards.
        treatment: how the replacement for a value is made; it follows from the rest.
    """

    members: Callable[[Any], Iterable[Member]]
    way: Callable[[Any], str]
    copied: Callable[[Any], Any] | None = None
    store: Callable[[Any, Any, Any], None] | None = None
    built: Callable[[Any, list[Any]], Any] | None = None
    is_mutable: Callable[[Any], bool] = lambda value: True
    attributes: Callable[[Any], tuple[tuple[str, ...], Sequence[Any]]] | None = None
    is_memory: bool = False
    identity: Callable[[Any], Any] = id
    makes_members: bool = False
    treatment: Treatment = field(init=False)

    def __post_init__(self) -> None:
        treatment = Treatment.BUILT if self.copied is None else Treatment.FILLED
        object.__setattr__(self, "treatment", Treatment.VIEWED if self.is_memory else treatment)


@dataclass(frozen=True, slots=True, eq=False)
class Inactive:
    """The kind of values that no derivative is with respect to."""

    treatment: ClassVar[Treatment] = Treatment.KEPT


INACTIVE: Final = Inactive()
Kind: TypeAlias = Vector | Container | Inactive
Chooser: TypeAlias = Callable[[Any], Kind]
"""Chooses the kind of a value where that depends on more than its type."""

_registered: Final[dict[type, Kind | Chooser]] = {}
_found: Final[dict[type, Kind | Chooser]] = {}
_families: Final[list[Callable[[type], Kind | Chooser | None]]] = []
_listeners: Final[list[Callable[[], None]]] = [_found.clear]


def kind_of(value: Any) -> Kind:
    """The kind of a value."""
    kind = kind_of_type(type(value))
    return kind if isinstance(kind, Vector | Container | Inactive) else kind(value)


def kind_of_type(cls: type) -> Kind | Chooser:
    """The kind of the values of a type, or a function that gives that of each."""
    return _found.get(cls) or _look_up(cls)


def _look_up(cls: type) -> Kind | Chooser:
    found = _of_class(cls)
    _found[cls] = found
    return found


def _of_class(cls: type) -> Kind | Chooser:
    if cls in _registered:
        return _registered[cls]
    for family in _families:
        if (kind := family(cls)) is not None:
            return kind
    return next((_registered[base] for base in cls.__mro__ if base in _registered), INACTIVE)


def set_kind(cls: type, kind: Kind | Chooser) -> None:
    """States the kind of the values of a class, and of those of its subclasses that have none of their own."""
    _registered[cls] = kind
    _forget_found()


def add_family(family: Callable[[type], Kind | Chooser | None]) -> None:
    """States kinds of classes that have no common base: of a dataclass, say.

    A class that is registered comes first, then the family that was stated last.
    """
    _families.insert(0, family)
    _forget_found()


def forget_kind(cls: type) -> None:
    """Takes back what `set_kind` was called with."""
    if cls not in _registered:
        raise SignatureError(
            f"{cls.__qualname__} is not registered",
            "pass the registered class, not a subclass",
            "a registration belongs to one class and also covers its subclasses",
            HERE,
        )
    del _registered[cls]
    _forget_found()


def when_changed(forget: Callable[[], None]) -> None:
    """Has a function called whenever the kind of a class may have changed."""
    _listeners.append(forget)


def _forget_found() -> None:
    for forget in _listeners:
        forget()


# Vectors: numbers and arrays.


def _read(value: Any) -> NDArray[np.float64]:
    array = np.asarray(value)
    if array.dtype.kind == "c":
        return array.astype(np.complex128).ravel().view(np.float64)
    return array.astype(np.float64).ravel()


def _elements(like: NDArray[Any], doubles: NDArray[np.float64]) -> NDArray[Any]:
    elements = doubles.view(np.complex128) if like.dtype.kind == "c" else doubles
    return elements.reshape(like.shape)


def _length(value: Any) -> int:
    return int(np.size(value)) * (2 if np.iscomplexobj(value) else 1)


def _refilled_number(value: Any, doubles: NDArray[np.float64]) -> Any:
    if np.iscomplexobj(value):
        return type(value)(complex(*doubles.tolist()))
    return type(value)(doubles[0])


def _refilled_array(value: NDArray[Any], doubles: NDArray[np.float64]) -> NDArray[Any]:
    result = _zeros(value)
    result[...] = _elements(value, doubles)
    return result


def laid_out_like(array: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Zeros in the shape of an array and in a layout that Numba gives the same type."""
    if array.flags.c_contiguous:
        return np.zeros(array.shape, dtype)
    if array.flags.f_contiguous:
        return np.zeros(array.shape, dtype, order="F")
    return np.zeros((*array.shape[:-1], 2 * array.shape[-1]), dtype)[..., ::2]


def zeros_in_place_of(array: NDArray[Any]) -> NDArray[Any]:
    """Zeros with the strides of an array, as a shadow has to have them; apart where elements of the array overlap."""
    spans = [(n - 1) * stride for n, stride in zip(array.shape, array.strides, strict=True)]
    length = sum(map(abs, spans)) + array.itemsize
    if array.flags.forc or length < array.nbytes:
        return laid_out_like(array, array.dtype)
    memory = np.zeros(length, np.uint8)  # of which only those pages are there that are written to
    return np.ndarray(array.shape, array.dtype, memory.data, -sum(span for span in spans if span < 0), array.strides)


def _zeros(like: NDArray[Any]) -> NDArray[Any]:
    """Memory of zeros is not touched before it is needed, unlike that of `numpy.zeros_like`."""
    return zeros_in_place_of(like) if type(like) is np.ndarray else np.zeros_like(like)


def _inner(x: Any, y: Any) -> Any:
    x, y = np.asarray(x), np.asarray(y)  # those of subclasses have products of their own
    if x.flags.c_contiguous and y.flags.c_contiguous:
        return np.vdot(x, y)
    axes = list(range(x.ndim))
    return np.einsum(x.conj() if x.dtype.kind == "c" else x, axes, y, axes, [])  # copies nothing that is real


def identity_of_array(array: Any) -> Any:
    """Memory of the elements: views of the same ones are one thing. Other arrays are identified by their id."""
    base = array.base
    if base is None:
        return id(array)
    place = _place(array)
    return id(base) if isinstance(base, np.ndarray) and place == _place(base) else place


def _place(array: NDArray[Any]) -> Any:
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def _assign(target: NDArray[Any], source: Any) -> None:
    target[...] = source


NUMBER: Final = Vector(
    zero=lambda value: type(value)(0),
    dot=lambda x, y: x.conjugate() * y,
    read=_read,
    refilled=_refilled_number,
    length=_length,
)
ARRAY: Final = Vector(
    zero=_zeros,
    dot=_inner,
    read=_read,
    refilled=_refilled_array,
    length=_length,
    assign=_assign,
    is_writable=lambda value: bool(value.flags.writeable),
    takes_ufuncs=True,
    identity=identity_of_array,
)


def of_arrays(objects: Kind, records: Kind) -> Chooser:
    """The kind of an array by its dtype.

    Args:
        objects: that of an array of Python objects.
        records: that of an array of records, or of one record.
    """

    def choose(value: Any) -> Kind:
        dtype = value.dtype
        if dtype.kind in "fc":
            return ARRAY
        if dtype.names is not None:
            return records
        return objects if dtype.kind == "O" else INACTIVE

    return choose


for _number in (float, complex, np.floating, np.complexfloating):
    set_kind(_number, NUMBER)


# Containers of Python, the standard library and NumPy.
#
# Sets are inactive: their members are found by their values. So are instances of classes that state no fields.


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
        names: names of the fields of an instance.
        copied: a shallow copy of an instance.
        mutable: whether users may assign to fields.
    """

    def attributes(value: Any) -> tuple[tuple[str, ...], Sequence[Any]]:
        stated = names(value)
        try:
            return stated, _getter(stated)(value)
        except AttributeError:  # some were never assigned
            assigned = tuple(name for name in stated if hasattr(value, name))
            return assigned, _getter(assigned)(value)

    def members(value: Any) -> Iterator[Member]:
        return zip(*attributes(value), strict=True)

    def built(value: Any, items: list[Any]) -> Any:
        made = copied(value)
        for (name, _), item in zip(members(value), items, strict=True):
            object.__setattr__(made, name, item)  # it may be frozen
        return made

    store = setattr if mutable else object.__setattr__  # a copy is still being made when it is stored to
    is_mutable = (lambda value: True) if mutable else (lambda value: False)
    return Container(members, _attribute, copied, store, built, is_mutable, attributes)


@cache
def _getter(names: tuple[str, ...]) -> Callable[[Any], Sequence[Any]]:
    """A function of an instance that returns its attributes of these names."""
    if len(names) > 1 and not any("." in name for name in names):  # a dot would name an attribute of an attribute
        return attrgetter(*names)
    return lambda value: [getattr(value, name) for name in names]


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
    """Copier that leaves out what `functools.cached_property` has computed from the fields, which change."""
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
