"""From a Numba type to the tree of what its values hold.

Input   a Numba type, the LLVM parameter at which its value begins.
Output  `Content`.
Method  Numba flattens a tuple into its elements, a complex number into its two parts and an array into meminfo,
        parent, number of items, item size, data pointer, shape and strides: so parameters are counted.
Limit   what leads back to its own kind (linked lists, trees) ends in `UnknownContent`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from numba.core import types

from irad.frontend.values import tree
from irad.frontend.values.layouts import COMPLEX, FLOATS, part_offsets, width_of

_CONSTANTS: Final = (
    *(types.Integer, types.Boolean, types.NPDatetime, types.NPTimedelta),
    *(types.UnicodeType, types.Bytes, types.CharSeq, types.UnicodeCharSeq),
    *(types.NoneType, types.Dispatcher),
)


def kind_of(numba_type: Any) -> tree.LeafKind:
    """What a value of a type means for a derivative."""
    return content_of(numba_type).kind


def returned_leaves(return_type: Any) -> Iterator[tree.Content]:
    """The leaves of a returned value, of what may be None what it may be."""
    yield from (leaf for leaf, _ in _returned(content_of(return_type), ()))


def returned_references(return_type: Any) -> dict[tree.Reference, tuple[tuple[int, ...], ...]]:
    """The lists, dictionaries and instances with derivatives in a returned value.

    Each has the paths to the flags that tell whether it is there.
    """
    found = _returned(content_of(return_type), ())
    return {
        leaf: flags
        for leaf, flags in found
        if isinstance(leaf, tree.InstanceContent | tree.ListContent | tree.DictionaryContent) and leaf.kind.is_reference
    }


def _returned(
    content: tree.Content, flags: tuple[tuple[int, ...], ...]
) -> Iterator[tuple[tree.Content, tuple[tuple[int, ...], ...]]]:
    match content:
        case tree.TupleContent():
            for part in content.parts:
                yield from _returned(part, flags)
        case tree.OptionalContent():
            yield from _returned(content.inside, (*flags, (*content.path, tree.FLAG_OF_OPTIONAL)))
        case _:
            yield content, flags


def content_of(numba_type: Any) -> tree.Content:
    """What a value of a type holds."""
    return _content(numba_type, None, (), ())


def passed(numba_type: Any, index: int = 0) -> tree.Content:
    """What a value of a type holds that is passed from an LLVM parameter on."""
    return _content(numba_type, index, (), ())


def _content(numba_type: Any, index: int | None, path: tuple[int, ...], around: tuple[Any, ...]) -> tree.Content:
    at: Any = (numba_type, index or 0, path)
    if numba_type in around:
        return tree.UnknownContent(*at, described=f"a {numba_type} in a {numba_type}")
    inside = (*around, numba_type)
    match numba_type:
        case types.Array():
            return tree.ArrayContent(*at)
        case types.Record():
            return tree.RecordContent(*at)
        case types.Optional():
            return tree.OptionalContent(
                *at, inside=_content(numba_type.type, index, (*path, tree.DATA_OF_OPTIONAL), inside)
            )
        case types.BaseTuple():
            return tree.TupleContent(*at, parts=_laid_out(numba_type, tuple(_items(numba_type, index, path, inside))))
        case types.ClassInstanceType():
            return _instance(at, dict(numba_type.struct), inside)
        case types.StructRef():
            return _instance(at, dict(numba_type.field_dict), inside)
        case types.List() | types.ListType():
            return tree.ListContent(*at, item=_held(numba_type.dtype, inside))
        case types.DictType():
            key, value = _held(numba_type.key_type, inside), _held(numba_type.value_type, inside)
            return tree.DictionaryContent(*at, key=key, value=value)
        case types.Set():
            return tree.UnknownContent(*at, described=f"a {numba_type}", parts=(_held(numba_type.dtype, inside),))
        case _ if numba_type in FLOATS or numba_type in COMPLEX:
            return tree.NumberContent(*at)
        case _ if _is_constant(numba_type):
            return tree.ConstantContent(*at)
        case _:
            return tree.UnknownContent(*at, described=f"a {numba_type}")


def _held(numba_type: Any, around: tuple[Any, ...]) -> tree.Content:
    """What lies in memory that a reference leads to."""
    return _content(numba_type, None, (), around)


def _items(
    numba_type: Any, index: int | None, path: tuple[int, ...], around: tuple[Any, ...]
) -> Iterator[tree.Content]:
    for i, item in enumerate(numba_type.types):
        yield _content(item, index, (*path, i), around)
        index = None if index is None else index + width_of(item)


def _instance(at: Any, fields: dict[str, Any], around: tuple[Any, ...]) -> tree.InstanceContent:
    found = tuple(_held(field, around) for field in fields.values())
    return tree.InstanceContent(*at, names=tuple(fields), parts=_laid_out(at[0].get_data_type(), found))


def _laid_out(struct: Any, parts: tuple[tree.Content, ...]) -> tuple[tree.Content, ...]:
    """Parts with their places, if Numba knows them; where the parts of something unknown are does not matter."""
    if any(map(_is_unknown, parts)):
        return parts
    return tuple(replace(part, offset=offset) for part, offset in zip(parts, part_offsets(struct), strict=True))


def _is_unknown(content: tree.Content) -> bool:
    return isinstance(content, tree.UnknownContent) or any(map(_is_unknown, tree.children(content)))


def _is_constant(numba_type: Any) -> bool:
    if isinstance(numba_type, types.EnumMember):
        return _is_constant(numba_type.dtype)
    return isinstance(numba_type, _CONSTANTS)
