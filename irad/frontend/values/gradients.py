"""Types of gradients: the structure of the value, None where there is no derivative."""

from __future__ import annotations

from collections import namedtuple
from functools import cache
from typing import Any, assert_never, cast

from numba.core import types

from irad.frontend.numba.boxing import OwnedRecord
from irad.frontend.packing.packed import have_parts_alike, structure_of
from irad.frontend.values import tree
from irad.frontend.values.layouts import COMPLEX, mapped, tuple_type
from irad.frontend.values.tree import content_of


def gradient_type(numba_type: types.Type) -> Any:
    """The type of the gradient with respect to an argument of a type."""
    return mapped(numba_type, _gradient_of_leaf)


def _gradient_of_leaf(numba_type: types.Type) -> Any:
    content = content_of(numba_type)
    return types.none if content.kind is tree.LeafKind.INERT else gradient_of_content(content)


def tangent_type(return_type: types.Type) -> Any:
    """The type of the tangent of a returned value: where that, or a part, may be None, so may its tangent."""
    return mapped(return_type, _tangent_of_leaf)


def _tangent_of_leaf(numba_type: types.Type) -> Any:
    if not isinstance(numba_type, types.Optional):
        return _gradient_of_leaf(numba_type)
    inside = tangent_type(numba_type.type)
    return inside if inside == types.none else types.Optional(inside)


def gradient_of_content(content: tree.Content) -> Any:
    """The type of the gradient of a value or a part of one."""
    if not tree.has_derivative(content):
        return types.none
    known = cast("tree.AnyContent", content)
    match known:
        case tree.NumberContent() | tree.OptionalContent():
            return known.type
        case tree.ArrayContent():
            return types.Array(known.type.dtype, known.type.ndim, known.type.layout)
        case tree.RecordContent():
            return OwnedRecord(known.type)
        case tree.TupleContent():
            return tuple_type(known.type, tuple(map(gradient_of_content, known.parts)))
        case tree.InstanceContent():
            if is_mirrored(known):
                return known.type
            made = _tuple_class(_class_name(known.type), known.names)
            items = tuple(map(gradient_of_content, known.parts))
            if all(item == items[0] for item in items):
                return types.NamedUniTuple(items[0], len(items), made)
            return types.NamedTuple(items, made)
        case tree.ListContent():
            item = gradient_of_content(known.item)
            return types.ListType(item) if known.is_typed else types.List(item, reflected=True)
        case tree.DictionaryContent():
            return types.DictType(known.type.key_type, gradient_of_content(known.value))
        case tree.ConstantContent() | tree.UnknownContent():
            return types.none
        case _:
            assert_never(known)


def may_be_shadow(content: tree.Content, given: Any) -> bool:
    """True if a value of a Numba type may be memory for the derivative with respect to some content."""
    if not tree.has_derivative(content):
        return True
    known, its = cast("tree.AnyContent", content), content_of(given)
    match known:
        case tree.ArrayContent():
            return may_be_tangent(known, given) and bool(given.mutable)
        case tree.TupleContent() if isinstance(its, tree.TupleContent):
            return len(its.parts) == len(known.parts) and all(
                may_be_shadow(part, item.type) for part, item in zip(known.parts, its.parts, strict=True)
            )
        case tree.ListContent() if isinstance(its, tree.ListContent):
            return its.is_typed == known.is_typed and may_be_shadow(known.item, its.item.type)
        case tree.DictionaryContent() if isinstance(its, tree.DictionaryContent):
            return bool(its.key.type == known.key.type) and may_be_shadow(known.value, its.value.type)
        case _:
            return bool(given == known.type)


def is_copied_list(numba_type: types.Type) -> bool:
    """True if values of a type are lists whose numbers Numba copies when they come from Python."""
    return isinstance(numba_type, types.List) and any(
        isinstance(leaf, tree.NumberContent) for leaf in tree.leaves(content_of(numba_type.dtype))
    )


def is_mirrored(instance: tree.InstanceContent) -> bool:
    """True if the gradient of an instance is one, too, with the values of the fields that have no derivative.

    It is a named tuple for a `StructRef`, and where gradients of fields are not values of these: where None stands for
    the integer of a tuple, say.
    """
    if not isinstance(instance.type, types.ClassInstanceType):
        return False
    return all(_is_of_its_type(part) for part in instance.parts if tree.has_derivative(part))


def noted_fields(instance: tree.InstanceContent) -> tuple[tree.Content, ...]:
    """The fields whose values are those of the gradient, too."""
    return tuple(part for part in instance.parts if is_mirrored(instance) and not tree.has_derivative(part))


def _is_of_its_type(content: tree.Content) -> bool:
    """True if the gradient of a part of an instance can take the place of that."""
    if isinstance(content, tree.InstanceContent):
        return is_mirrored(content)
    return tree.has_derivative(content) and all(map(_is_of_its_type, tree.children(content)))


def may_be_cotangent(content: tree.Content, given: Any) -> bool:
    """True if a value of a Numba type may be the cotangent of some content that is returned.

    A list that Python gives in a structure is packed, and still stands for a list.
    """
    if isinstance(content, tree.ListContent) and not content.is_typed and is_packed_list(given):
        return all(may_be_cotangent(content.item, item) for item in given.types)
    return may_be_tangent(content, given)


def is_packed_list(numba_type: types.Type) -> bool:
    """True if a type is that of a tuple which stands for a list."""
    packed = structure_of(numba_type)
    return packed is not None and issubclass(packed.owner, list)


def may_be_tangent(content: tree.Content, given: Any) -> bool:
    """True if a value of a Numba type may be the tangent of some content."""
    if given == types.none or not tree.has_derivative(content):
        return bool(given == types.none)
    known = cast("tree.AnyContent", content)
    match known:
        case tree.NumberContent():
            is_complex = known.type in COMPLEX and isinstance(given, types.Complex)
            return is_complex or isinstance(given, types.Float | types.Integer)
        case tree.ArrayContent():
            mine = (known.type.dtype, known.type.ndim)
            return isinstance(given, types.Array) and (given.dtype, given.ndim) == mine
        case tree.InstanceContent() if given == known.type:
            return is_mirrored(known)
        case tree.TupleContent() | tree.InstanceContent():
            if not isinstance(given, types.BaseTuple) or len(given.types) != len(known.parts):
                return False
            if isinstance(known, tree.TupleContent) and not have_parts_alike(known.type, given):
                return False
            return all(map(may_be_tangent, known.parts, given.types))
        case tree.ListContent():
            is_list = isinstance(given, types.ListType if known.is_typed else types.List)
            return is_list and _may_be_tangents(known.item, given.dtype)
        case tree.DictionaryContent():
            is_dictionary = isinstance(given, types.DictType) and given.key_type == known.key.type
            return is_dictionary and _may_be_tangents(known.value, given.value_type)
        case tree.ConstantContent() | tree.OptionalContent() | tree.RecordContent() | tree.UnknownContent():
            return False
        case _:
            assert_never(known)


def _may_be_tangents(content: tree.Content, given: Any) -> bool:
    """True if values of a type may be the tangents of what a container holds; numbers have its type."""
    return bool(given == content.type) if isinstance(content, tree.NumberContent) else may_be_tangent(content, given)


def _class_name(numba_type: types.Type) -> str:
    if isinstance(numba_type, types.ClassInstanceType):
        return str(numba_type.class_type.class_name)
    return type(numba_type).__name__


@cache
def _tuple_class(name: str, fields: tuple[str, ...]) -> Any:
    """The named tuple of a class: fields are called as they are, without underscores in front."""
    return namedtuple(name, [field.lstrip("_") for field in fields], rename=True)


def owned_type(return_type: types.Type) -> Any:
    """The type of a returned value where a derivative returns it among other things."""
    return OwnedRecord(return_type) if isinstance(return_type, types.Record) else return_type
