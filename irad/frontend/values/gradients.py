"""Types of gradients: the structure of the value, None where there is no derivative."""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import Any, assert_never, cast

from numba.core import types

from irad.frontend.numba.boxing import OwnedRecord
from irad.frontend.values.build import content_of
from irad.frontend.values.layouts import mapped, tuple_type
from irad.frontend.values.tree import (
    AnyContent,
    ArrayContent,
    ConstantContent,
    Content,
    DictionaryContent,
    InstanceContent,
    LeafKind,
    ListContent,
    NumberContent,
    OptionalContent,
    RecordContent,
    TupleContent,
    UnknownContent,
    has_derivative,
)


def gradient_type(numba_type: Any) -> Any:
    """The type of the gradient with respect to an argument of a type."""
    return mapped(numba_type, _gradient_of_leaf)


def _gradient_of_leaf(numba_type: Any) -> Any:
    content = content_of(numba_type)
    return types.none if content.kind is LeafKind.INERT else gradient_of_content(content)


def gradient_of_content(content: Content) -> Any:
    """The type of the gradient of a value or a part of one; a named tuple for an instance."""
    if not has_derivative(content):
        return types.none
    known = cast("AnyContent", content)
    match known:
        case NumberContent() | OptionalContent():
            return known.type
        case ArrayContent():
            return types.Array(known.type.dtype, known.type.ndim, known.type.layout)
        case RecordContent():
            return OwnedRecord(known.type)
        case TupleContent():
            return tuple_type(known.type, tuple(map(gradient_of_content, known.parts)))
        case InstanceContent():
            made = _tuple_class(_class_name(known.type), known.names)
            items = tuple(map(gradient_of_content, known.parts))
            if all(item == items[0] for item in items):
                return types.NamedUniTuple(items[0], len(items), made)
            return types.NamedTuple(items, made)
        case ListContent():
            item = gradient_of_content(known.item)
            return types.ListType(item) if known.is_typed else types.List(item, reflected=True)
        case DictionaryContent():
            return types.DictType(known.type.key_type, gradient_of_content(known.value))
        case ConstantContent() | UnknownContent():
            return types.none
        case _:
            assert_never(known)


def _class_name(numba_type: Any) -> str:
    if isinstance(numba_type, types.ClassInstanceType):
        return str(numba_type.class_type.class_name)
    return type(numba_type).__name__


@cache
def _tuple_class(name: str, fields: tuple[str, ...]) -> Any:
    """The named tuple of a class: fields are called as they are, without underscores in front."""
    return namedtuple(name, [field.lstrip("_") for field in fields], rename=True)


def owned_type(return_type: Any) -> Any:
    """The type of a returned value where a derivative returns it among other things."""
    return OwnedRecord(return_type) if isinstance(return_type, types.Record) else return_type
