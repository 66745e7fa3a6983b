"""What objects hold: class instances, lists and dictionaries, down to their numbers and arrays.

Input   a Numba type.
Output  `Content`: a tree of what lies in the memory of a value of that type, with byte offsets; the type of its
        gradient; what the engine must know of the memory that it leads to.
Limit   types that lead back to themselves (linked lists, trees) have no finite tree.

An object is a *reference* to memory: of a jitclass instance to its fields; of a `StructRef` and a reflected list to the
header of an allocation, which has the address of the fields or items; of a typed list or dictionary to a struct of
Numba's C code.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

from llvmlite import ir

from irad.driver import MemoryType
from irad.frontend.memory.layouts import (
    COMPLEX,
    FLOATS,
    HEADER_DATA,
    HEADER_SIZE,
    INACTIVE_TYPES,
    bytes_before_items,
    fields_of_llvm,
    holds_floats,
    memory_of_element,
    size_of_element,
    tuple_type,
)
from irad.frontend.numba.target import target_context
from irad.frontend.numba.untyped import types

ARRAY_DATA: Final = 32  # where an array's struct has the address of its elements
_WORD: Final = 8
_CONSTANTS: Final = (
    *(types.Integer, types.Boolean, types.NPDatetime, types.NPTimedelta),
    *(types.UnicodeType, types.Bytes, types.CharSeq, types.UnicodeCharSeq),
    *(types.NoneType, types.Dispatcher),
)
_INTEGERS: Final = MemoryType(_WORD, ((0, "i64"),))
_PART_1, _PART_2 = 0, 8  # how rules name the parts of typed lists and dictionaries: items, size; keys, values


@dataclass(frozen=True)
class Constant:
    """A value without a derivative that leads to nothing that can change."""

    type: Any


@dataclass(frozen=True)
class Number:
    """A float or complex number."""

    type: Any


@dataclass(frozen=True)
class ArrayContent:
    """An array, of whatever elements."""

    type: Any


@dataclass(frozen=True)
class TupleContent:
    """A tuple; ``parts`` with their byte offsets."""

    type: Any
    parts: tuple[tuple[int, Content], ...]


@dataclass(frozen=True)
class Instance:
    """An instance of a jitclass or a `StructRef`.

    Attributes:
        type: its Numba type.
        names: of its fields.
        parts: its fields, by byte offset.
        size: bytes of its fields.
    """

    type: Any
    names: tuple[str, ...]
    parts: tuple[tuple[int, Content], ...]
    size: int


@dataclass(frozen=True)
class ListContent:
    """A reflected or typed list; ``stride`` bytes from item to item, the first behind ``prefix`` bytes."""

    type: Any
    item: Content
    stride: int
    prefix: int


@dataclass(frozen=True)
class Dictionary:
    """A typed dictionary; in its memory a value comes ``value_at`` bytes behind its key."""

    type: Any
    value: Content
    key_size: int
    value_at: int
    value_size: int


Reference: TypeAlias = Instance | ListContent | Dictionary
Content: TypeAlias = Constant | Number | ArrayContent | TupleContent | Instance | ListContent | Dictionary


class UnknownContentError(Exception):
    """A part of a type that may change, or hold numbers, in a way that is not known here."""


# --- from types -------------------------------------------------------------------------------------------------------


@cache
def content_of(numba_type: Any) -> Content:
    """What a value of a type holds.

    Raises:
        UnknownContentError: that is not known, or without end.
    """
    return _content(numba_type, ())


def is_object(numba_type: Any) -> bool:
    """Whether values of a type are references to memory that leads to numbers."""
    if not _is_reference(numba_type):
        return False
    try:
        return has_derivative(content_of(numba_type))
    except UnknownContentError:
        return False


def unknown_part(numba_type: Any) -> str | None:
    """In words: the part of an object that keeps it from having a gradient, if there is one."""
    if _is_reference(numba_type):
        try:
            content_of(numba_type)
        except UnknownContentError as error:
            return str(error)
    return None


def _is_reference(numba_type: Any) -> bool:
    kinds = types.ClassInstanceType | types.StructRef | types.List | types.ListType | types.DictType
    return isinstance(numba_type, kinds)


def _content(numba_type: Any, around: tuple[Any, ...]) -> Content:
    if numba_type in around:
        raise UnknownContentError(f"a {numba_type} in a {numba_type}")
    inside = (*around, numba_type)
    match numba_type:
        case types.Array():
            return ArrayContent(numba_type)
        case types.BaseTuple():
            found = tuple(_content(item, inside) for item in numba_type.types)
            return TupleContent(numba_type, _placed(numba_type, found))
        case types.ClassInstanceType():
            return _instance(numba_type, dict(numba_type.struct), inside)
        case types.StructRef():
            return _instance(numba_type, dict(numba_type.field_dict), inside)
        case types.List() | types.ListType():
            prefix = bytes_before_items(numba_type) if isinstance(numba_type, types.List) else 0
            return ListContent(
                numba_type, _content(numba_type.dtype, inside), size_of_element(numba_type.dtype), prefix
            )
        case types.DictType():
            return _dictionary(numba_type, inside)
        case _ if numba_type in FLOATS or numba_type in COMPLEX:
            return Number(numba_type)
        case _ if _is_constant(numba_type):
            return Constant(numba_type)
        case _:
            raise UnknownContentError(f"a {numba_type}")


def _instance(numba_type: Any, fields: dict[str, Any], inside: tuple[Any, ...]) -> Instance:
    payload = numba_type.get_data_type()
    found = tuple(_field(name, field, inside) for name, field in fields.items())
    return Instance(numba_type, tuple(fields), _placed(payload, found), size_of_element(payload))


def _field(name: str, numba_type: Any, inside: tuple[Any, ...]) -> Content:
    try:
        return _content(numba_type, inside)
    except UnknownContentError as error:
        raise UnknownContentError(f"{error} in the field {name}") from None


def _dictionary(numba_type: Any, inside: tuple[Any, ...]) -> Dictionary:
    key = _content(numba_type.key_type, inside)
    if not is_plain(key):
        raise UnknownContentError(f"a key that is a {numba_type.key_type}")
    key_size = size_of_element(numba_type.key_type)
    value = _content(numba_type.value_type, inside)
    raised = -(-key_size // _WORD) * _WORD
    return Dictionary(numba_type, value, key_size, raised, size_of_element(numba_type.value_type))


def _placed(struct: Any, found: tuple[Content, ...]) -> tuple[tuple[int, Content], ...]:
    """Contents at the places that the parts of a struct or tuple have."""
    context = target_context()
    llvm_type = context.get_data_type(struct)
    return tuple((_offset_in(context.target_data, llvm_type, i), content) for i, content in enumerate(found))


def _offset_in(target: Any, llvm_type: Any, number: int) -> int:
    if isinstance(llvm_type, ir.BaseStructType):
        return int(llvm_type.get_element_offset(target, number))
    return number * int(llvm_type.element.get_abi_size(target))


def _is_constant(numba_type: Any) -> bool:
    """Whether a value is known to have no derivative, and to lead to nothing that changes."""
    if isinstance(numba_type, types.EnumMember):
        return _is_constant(numba_type.dtype)
    return isinstance(numba_type, _CONSTANTS)


# --- questions --------------------------------------------------------------------------------------------------------


def children(content: Content) -> Iterator[Content]:
    """The contents directly inside."""
    match content:
        case TupleContent() | Instance():
            yield from (part for _, part in content.parts)
        case ListContent():
            yield content.item
        case Dictionary():
            yield content.value
        case Constant() | Number() | ArrayContent():
            pass


def has_derivative(content: Content) -> bool:
    """Whether there are numbers or arrays of numbers in it."""
    if content.type in INACTIVE_TYPES:
        return False
    match content:
        case Number():
            return True
        case ArrayContent():
            return holds_floats(content.type.dtype)
        case _:
            return any(map(has_derivative, children(content)))


def is_plain(content: Content) -> bool:
    """Whether it leads to no memory that can change."""
    match content:
        case Constant() | Number():
            return True
        case TupleContent():
            return all(map(is_plain, children(content)))
        case _:
            return False


def is_headed(reference: Reference) -> bool:
    """Whether a reference leads to the header of an allocation."""
    return isinstance(reference.type, types.List | types.StructRef)


def pointer_at(reference: Reference) -> int:
    """The position of the address in the value of a reference: it comes first, or after that of the header."""
    return 0 if is_headed(reference) else _WORD


# --- gradients --------------------------------------------------------------------------------------------------------


def gradient_of_content(content: Content) -> Any:
    """The type of a gradient: None where there is no derivative, a named tuple for an instance."""
    if not has_derivative(content):
        return types.none
    match content:
        case Number():
            return content.type
        case ArrayContent():
            return types.Array(content.type.dtype, content.type.ndim, content.type.layout)
        case TupleContent():
            return tuple_type(content.type, tuple(map(gradient_of_content, children(content))))
        case Instance():
            made = _tuple_class(_class_name(content.type), content.names)
            items = tuple(map(gradient_of_content, children(content)))
            if all(item == items[0] for item in items):
                return types.NamedUniTuple(items[0], len(items), made)
            return types.NamedTuple(items, made)
        case ListContent():
            item = gradient_of_content(content.item)
            is_typed = isinstance(content.type, types.ListType)
            return types.ListType(item) if is_typed else types.List(item, reflected=True)
        case Dictionary():
            return types.DictType(content.type.key_type, gradient_of_content(content.value))
        case Constant():
            return types.none


def _class_name(numba_type: Any) -> str:
    if isinstance(numba_type, types.ClassInstanceType):
        return str(numba_type.class_type.class_name)
    return type(numba_type).__name__


@cache
def _tuple_class(name: str, fields: tuple[str, ...]) -> Any:
    """The named tuple of a class: fields are called as they are, without underscores in front."""
    return namedtuple(name, [field.lstrip("_") for field in fields], rename=True)


# --- for the engine ---------------------------------------------------------------------------------------------------


def memory_behind(reference: Reference) -> MemoryType:
    """What the address in a reference leads to."""
    match reference:
        case Instance():
            fields = MemoryType(
                reference.size,
                _fields(reference.type.get_data_type()),
                declared=_of_parts(reference.parts, 0),
                single=True,
            )
            return _header(fields) if is_headed(reference) else fields
        case ListContent():
            items = MemoryType(
                reference.stride,
                _fields(reference.type.dtype),
                declared=_pointees(reference.item, 0),
                integer_prefix=reference.prefix,
            )
            return _header(items) if is_headed(reference) else _struct(items, _INTEGERS)
        case Dictionary():
            keys = MemoryType(reference.key_size, _fields(reference.type.key_type))
            value_type = reference.type.value_type
            values = MemoryType(reference.value_size, _fields(value_type), declared=_pointees(reference.value, 0))
            return _struct(keys, values)


def _header(data: MemoryType) -> MemoryType:
    return MemoryType(HEADER_SIZE, (), declared=((HEADER_DATA, data),), single=True)


def _struct(*parts: MemoryType) -> MemoryType:
    declared = tuple(zip((_PART_1, _PART_2), parts, strict=True))
    return MemoryType(2 * _WORD, (), declared=declared, single=True)


def _fields(numba_type: Any) -> tuple[tuple[int, str], ...]:
    return tuple(fields_of_llvm(target_context().get_data_type(numba_type), 0))


def _pointees(content: Content, start: int) -> tuple[tuple[int, MemoryType], ...]:
    """Where in memory that holds a content there are addresses of other memory."""
    match content:
        case ArrayContent():
            return ((start + ARRAY_DATA, memory_of_element(content.type.dtype) or MemoryType(_WORD, ())),)
        case TupleContent():
            return _of_parts(content.parts, start)
        case Instance() | ListContent() | Dictionary():
            return ((start + pointer_at(content), memory_behind(content)),)
        case Constant() | Number():
            return ()


def _of_parts(parts: tuple[tuple[int, Content], ...], start: int) -> tuple[tuple[int, MemoryType], ...]:
    return tuple(found for offset, part in parts for found in _pointees(part, start + offset))
