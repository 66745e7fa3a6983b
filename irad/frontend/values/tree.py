"""Content of a value of a Numba type: one tree, down to numbers, arrays and what has no derivative.

Each node knows its first LLVM parameter, the way to it through tuples, and its place in memory. Numba flattens a tuple
into its elements, a complex number into its two parts and an array into meminfo, parent, number of items, item size,
data pointer, shape and strides: so parameters are counted. A type within itself (linked lists, trees) ends in
`UnknownContent`.

An object is a *reference* to memory: of a jitclass instance to its fields; of a `StructRef` and a reflected list to the
header of an allocation, which has the address of the fields or items; of a typed list or dictionary to a struct of
Numba's C code.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, TypeAlias, assert_never, cast

from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types

from irad.frontend.values.layouts import (
    COMPLEX,
    FLOATS,
    INACTIVE_TYPES,
    bytes_before_items,
    holds_floats,
    part_offsets,
    size_of_element,
    width_of,
)
from irad.records import dataclass

# Offsets of an array's LLVM parameters from its first one.
MEMINFO, PARENT, ITEM_COUNT, ITEM_SIZE, DATA, SHAPE = range(6)
DATA_OF_OPTIONAL, FLAG_OF_OPTIONAL = range(2)  # what a value that may be None consists of
BEHIND_MEMINFO: Final = 1  # where the data pointer of an instance or a typed container is

_WORD: Final = 8


class LeafKind(enum.Enum):
    """Meaning of a value that is not a tuple for a derivative."""

    INERT = "inert"
    NUMBER = "number"  # a float or complex number, passed by value
    OPTIONAL = "optional"  # a number or None: a number, and whether there is one
    ARRAY = "array"
    RECORD = "record"  # passed by a pointer
    LIST = "list"  # of numbers, reflected or typed
    OBJECT = "object"  # another list, a dictionary or an instance: memory that points to other memory

    @property
    def has_cotangent(self) -> bool:
        """True if the derivative is a number."""
        return self in (LeafKind.NUMBER, LeafKind.OPTIONAL)

    @property
    def has_memory(self) -> bool:
        """True if it is memory that is the caller's and of fixed size, so that the caller can give a shadow."""
        return self in (LeafKind.ARRAY, LeafKind.RECORD)

    @property
    def is_reference(self) -> bool:
        """True if it points to memory that may change size, or to other memory."""
        return self in (LeafKind.LIST, LeafKind.OBJECT)


@dataclass(frozen=True)
class Content:
    """Content of a value.

    Attributes:
        type: its Numba type.
        index: its first LLVM parameter, where it is passed to a function.
        path: the way to it through nested tuples.
        offset: bytes from the beginning of the tuple, instance or optional value that it is a part of.
    """

    type: Any
    index: int = 0
    path: tuple[int, ...] = ()
    offset: int = 0

    @property
    def kind(self) -> LeafKind:
        """Meaning for a derivative."""
        return _kind(self)

    @property
    def is_array(self) -> bool:
        """True if it is an array, of whatever elements."""
        return isinstance(self, ArrayContent)

    @property
    def has_memory(self) -> bool:
        """True if it is an array or record, of whatever elements."""
        return isinstance(self, ArrayContent | RecordContent)

    @property
    def element(self) -> Any:
        """Type of what its memory holds: the elements' type of an array, the type of a record."""
        return self.type.dtype if self.is_array else self.type

    @property
    def data_index(self) -> int:
        """LLVM parameter of the pointer to its memory."""
        match self:
            case ArrayContent():
                return self.index + DATA
            case InstanceContent() | ListContent() | DictionaryContent() if not is_headed(self):
                return self.index + BEHIND_MEMINFO
            case _:
                return self.index

    @property
    def number(self) -> Any:
        """The type of the number that it is or may be."""
        return self.inside.type if isinstance(self, OptionalContent) else self.type

    @property
    def float_count(self) -> int:
        """Number of floats of a number; they are its first LLVM parameters."""
        return 2 if self.number in COMPLEX else 1

    def parts_at(self, builder: IRBuilder, place: Value) -> list[Any]:
        """Pointers to the floats of a number that lies at ``place``, in the order of the LLVM parameters."""
        if self.float_count == 1:
            return [place]
        return [cgutils.gep_inbounds(builder, place, 0, i) for i in range(self.float_count)]


@dataclass(frozen=True)
class ConstantContent(Content):
    """Has no derivative and points to nothing that can change."""


@dataclass(frozen=True)
class NumberContent(Content):
    """A float or complex number."""


@dataclass(frozen=True)
class ArrayContent(Content):
    """An array, of whatever elements."""


@dataclass(frozen=True)
class RecordContent(Content):
    """A record, whatever its fields."""


@dataclass(frozen=True, kw_only=True)
class OptionalContent(Content):
    """Content that is ``inside`` or None."""

    inside: Content


@dataclass(frozen=True, kw_only=True)
class TupleContent(Content):
    """A tuple."""

    parts: tuple[Content, ...]


@dataclass(frozen=True, kw_only=True)
class InstanceContent(Content):
    """An instance of a jitclass or a `StructRef`, with the names of its fields."""

    names: tuple[str, ...]
    parts: tuple[Content, ...]

    @property
    def size(self) -> int:
        """Bytes of its fields."""
        return size_of_element(self.type.get_data_type())


@dataclass(frozen=True, kw_only=True)
class ListContent(Content):
    """A reflected or typed list."""

    item: Content

    @property
    def is_typed(self) -> bool:
        """True if it is a list of `numba.typed`."""
        return isinstance(self.type, types.ListType)

    @property
    def stride(self) -> int:
        """Bytes from item to item."""
        return size_of_element(self.type.dtype)

    @property
    def prefix(self) -> int:
        """Bytes in front of the first item."""
        return 0 if self.is_typed else bytes_before_items(self.type)


@dataclass(frozen=True, kw_only=True)
class DictionaryContent(Content):
    """A typed dictionary."""

    key: Content
    value: Content

    @property
    def key_size(self) -> int:
        """Bytes of a key."""
        return size_of_element(self.type.key_type)

    @property
    def value_at(self) -> int:
        """Bytes from a key to its value."""
        return -(-self.key_size // _WORD) * _WORD

    @property
    def value_size(self) -> int:
        """Bytes of a value."""
        return size_of_element(self.type.value_type)


@dataclass(frozen=True, kw_only=True)
class UnknownContent(Content):
    """Content that irad does not know, as messages name it, and the parts of it that are known."""

    described: str
    parts: tuple[Content, ...] = ()


Reference: TypeAlias = InstanceContent | ListContent | DictionaryContent
AnyContent: TypeAlias = (
    ConstantContent | NumberContent | ArrayContent | RecordContent | OptionalContent | TupleContent | InstanceContent
    | ListContent | DictionaryContent | UnknownContent
)  # fmt: skip


# --- questions --------------------------------------------------------------------------------------------------------


def children(content: Content) -> tuple[Content, ...]:
    """The contents directly inside that may have derivatives; keys have none."""
    known = cast("AnyContent", content)
    match known:
        case TupleContent() | InstanceContent() | UnknownContent():
            return known.parts
        case OptionalContent():
            return (known.inside,)
        case ListContent():
            return (known.item,)
        case DictionaryContent():
            return (known.value,)
        case ConstantContent() | NumberContent() | ArrayContent() | RecordContent():
            return ()
        case _:
            assert_never(known)


def leaves(content: Content) -> Iterator[Content]:
    """The parts that are not tuples, in the order of the LLVM parameters."""
    if isinstance(content, TupleContent):
        for part in content.parts:
            yield from leaves(part)
    else:
        yield content


def has_derivative(content: Content) -> bool:
    """True if there are numbers or arrays of numbers in it."""
    if content.type in INACTIVE_TYPES:
        return False
    known = cast("AnyContent", content)
    match known:
        case NumberContent():
            return True
        case ArrayContent() | RecordContent():
            return holds_floats(known.element)
        case ConstantContent() | UnknownContent():
            return False
        case OptionalContent() | TupleContent() | InstanceContent() | ListContent() | DictionaryContent():
            return any(map(has_derivative, children(known)))
        case _:
            assert_never(known)


def may_hold_floats(content: Content) -> bool:
    """True if there may be numbers in it that irad does not find, as keys or in what it does not know."""
    if content.type in INACTIVE_TYPES:
        return False
    within = (content.key, content.value) if isinstance(content, DictionaryContent) else children(content)
    return any(map(may_hold_floats, within)) or has_derivative(content)


def _kind(content: Content) -> LeafKind:
    if not has_derivative(content):
        return LeafKind.INERT
    known = cast("AnyContent", content)
    match known:
        case NumberContent():
            return LeafKind.NUMBER
        case OptionalContent(inside=NumberContent()):
            return LeafKind.OPTIONAL
        case ArrayContent():
            return LeafKind.ARRAY
        case RecordContent():
            return LeafKind.RECORD
        case ListContent(item=NumberContent()):
            return LeafKind.LIST
        case InstanceContent() | ListContent() | DictionaryContent():
            return LeafKind.OBJECT if unknown_part(known) is None else LeafKind.INERT
        case ConstantContent() | OptionalContent() | TupleContent() | UnknownContent():
            return LeafKind.INERT
        case _:
            assert_never(known)


def unknown_part(content: Content) -> str | None:
    """In words: the part of an object that keeps it from having a gradient, if there is one."""
    is_reference = isinstance(content, InstanceContent | ListContent | DictionaryContent)
    return _unknown(content) if is_reference else None


def _unknown(content: Content) -> str | None:
    match content:
        case UnknownContent():
            return content.described
        case OptionalContent() | RecordContent():
            return f"a {content.type}"
        case InstanceContent():
            for name, part in zip(content.names, content.parts, strict=True):
                if found := _unknown(part):
                    return f"{found} in the field {name}"
            return None
        case DictionaryContent() if found := _unknown(content.key):
            return found
        case DictionaryContent() if not is_plain(content.key):
            return f"a key that is a {content.key.type}"
        case _:
            return next(filter(None, map(_unknown, children(content))), None)


def is_plain(content: Content) -> bool:
    """True if it points to no memory that can change."""
    known = cast("AnyContent", content)
    match known:
        case ConstantContent() | NumberContent():
            return True
        case TupleContent():
            return all(map(is_plain, known.parts))
        case (
            ArrayContent() | RecordContent() | OptionalContent() | InstanceContent() | ListContent()
            | DictionaryContent() | UnknownContent()
        ):  # fmt: skip
            return False
        case _:
            assert_never(known)


def is_headed(reference: Content) -> bool:
    """True if a reference points to the header of an allocation."""
    return isinstance(reference.type, types.List | types.StructRef)


def pointer_at(reference: Reference) -> int:
    """The position of the address in the value of a reference: it comes first, or after that of the header."""
    return 0 if is_headed(reference) else _WORD


# --- from a Numba type to its tree ------------------------------------------------------------------------------------

_CONSTANTS: Final = (
    *(types.Integer, types.Boolean, types.NPDatetime, types.NPTimedelta),
    *(types.UnicodeType, types.Bytes, types.CharSeq, types.UnicodeCharSeq),
    *(types.NoneType, types.Dispatcher),
)


def kind_of(numba_type: types.Type) -> LeafKind:
    """Meaning of a value of a type for a derivative."""
    return content_of(numba_type).kind


def returned_leaves(return_type: types.Type) -> Iterator[Content]:
    """The leaves of a returned value, of what may be None what it may be."""
    yield from (leaf for leaf, _ in _returned(content_of(return_type), ()))


def returned_references(return_type: types.Type) -> dict[Reference, tuple[tuple[int, ...], ...]]:
    """The lists, dictionaries and instances with derivatives in a returned value.

    Each has the paths to the flags that tell whether it is there.
    """
    found = _returned(content_of(return_type), ())
    return {
        leaf: flags
        for leaf, flags in found
        if isinstance(leaf, InstanceContent | ListContent | DictionaryContent) and leaf.kind.is_reference
    }


def _returned(
    content: Content, flags: tuple[tuple[int, ...], ...]
) -> Iterator[tuple[Content, tuple[tuple[int, ...], ...]]]:
    match content:
        case TupleContent():
            for part in content.parts:
                yield from _returned(part, flags)
        case OptionalContent():
            yield from _returned(content.inside, (*flags, (*content.path, FLAG_OF_OPTIONAL)))
        case _:
            yield content, flags


def content_of(numba_type: types.Type) -> Content:
    """Content of a value of a type."""
    return _content(numba_type, None, (), ())


def passed(numba_type: types.Type, index: int = 0) -> Content:
    """Content of a value of a type that is passed from an LLVM parameter on."""
    return _content(numba_type, index, (), ())


def _content(numba_type: types.Type, index: int | None, path: tuple[int, ...], around: tuple[Any, ...]) -> Content:
    at: Any = (numba_type, index or 0, path)
    if numba_type in around:
        return UnknownContent(*at, described=f"a {numba_type} in a {numba_type}")
    inside = (*around, numba_type)
    match numba_type:
        case types.Array():
            return ArrayContent(*at)
        case types.Record():
            return RecordContent(*at)
        case types.Optional():
            return OptionalContent(*at, inside=_content(numba_type.type, index, (*path, DATA_OF_OPTIONAL), inside))
        case types.BaseTuple():
            return TupleContent(*at, parts=_laid_out(numba_type, tuple(_items(numba_type, index, path, inside))))
        case types.ClassInstanceType():
            return _instance(at, dict(numba_type.struct), inside)
        case types.StructRef():
            return _instance(at, dict(numba_type.field_dict), inside)
        case types.List() | types.ListType():
            return ListContent(*at, item=_held(numba_type.dtype, inside))
        case types.DictType():
            key, value = _held(numba_type.key_type, inside), _held(numba_type.value_type, inside)
            return DictionaryContent(*at, key=key, value=value)
        case types.Set():
            return UnknownContent(*at, described=f"a {numba_type}", parts=(_held(numba_type.dtype, inside),))
        case _ if numba_type in FLOATS or numba_type in COMPLEX:
            return NumberContent(*at)
        case _ if _is_constant(numba_type):
            return ConstantContent(*at)
        case _:
            return UnknownContent(*at, described=f"a {numba_type}")


def _held(numba_type: types.Type, around: tuple[Any, ...]) -> Content:
    """Content of the memory that a reference points to."""
    return _content(numba_type, None, (), around)


def _items(numba_type: Any, index: int | None, path: tuple[int, ...], around: tuple[Any, ...]) -> Iterator[Content]:
    for i, item in enumerate(numba_type.types):
        yield _content(item, index, (*path, i), around)
        index = None if index is None else index + width_of(item)


def _instance(at: Any, fields: dict[str, Any], around: tuple[Any, ...]) -> InstanceContent:
    found = tuple(_held(field, around) for field in fields.values())
    return InstanceContent(*at, names=tuple(fields), parts=_laid_out(at[0].get_data_type(), found))


def _laid_out(struct: Any, parts: tuple[Content, ...]) -> tuple[Content, ...]:
    """Parts with their places, if Numba knows them; where the parts of something unknown are does not matter."""
    if any(map(_is_unknown, parts)):
        return parts
    return tuple(replace(part, offset=offset) for part, offset in zip(parts, part_offsets(struct), strict=True))


def _is_unknown(content: Content) -> bool:
    return isinstance(content, UnknownContent) or any(map(_is_unknown, children(content)))


def _is_constant(numba_type: types.Type) -> bool:
    if isinstance(numba_type, types.EnumMember):
        return _is_constant(numba_type.dtype)
    return isinstance(numba_type, _CONSTANTS)
