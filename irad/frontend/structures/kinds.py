"""Structures that a function is compiled for: their vectors, what of them can be changed, and whether they agree.

What types tell follows from the tree over a type, `irad.frontend.values.tree`, and is refused when the function is
compiled; what only values tell is checked by compiled code.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, assert_never, cast

from numba.core import types
from numba.extending import overload, register_jitable

from irad.errors import HERE, SignatureError
from irad.frontend.numba.messages import described
from irad.frontend.packing.packed import ways_of
from irad.frontend.structures.identity import as_type
from irad.frontend.values import tree
from irad.frontend.values.tree import content_of

_KNOWN = (types.BaseTuple, types.ClassInstanceType, types.StructRef, types.List, types.ListType, types.DictType)


def is_records(content: tree.Content) -> bool:
    """Whether it is a record or an array of records."""
    return content.has_memory and isinstance(content.element, types.Record)


def fields_of(content: tree.Content) -> Iterator[tuple[str, tree.Content]]:
    """Of a record the values of its fields, of an array of records the arrays over them."""
    axes = content.type.ndim if content.is_array else 0
    for name, field in content.element.fields.items():
        if isinstance(field.type, types.NestedArray):
            yield name, content_of(types.Array(field.type.dtype, axes + field.type.ndim, "A"))
        else:
            yield name, content_of(types.Array(field.type, axes, "A") if axes else field.type)


def parts_of(content: tree.Content) -> list[tuple[str, str, tree.Content]]:
    """The parts of a tuple, an instance, a record or an array of records: in code, to users, what they are."""
    if is_records(content):
        return [(f"[{name!r}]", f"[{name!r}]", field) for name, field in fields_of(content)]
    match content:
        case tree.InstanceContent():
            return [(f".{name}", f".{name}", part) for name, part in zip(content.names, content.parts, strict=True)]
        case tree.TupleContent():
            shown = ways_of(content.type)
            return [(f"[{i}]", shown[i], part) for i, part in enumerate(content.parts)]
        case _:
            return []


def inside_of(content: tree.Content) -> list[tuple[str, tree.Content]]:
    """All that is directly in a container, with the way to it as users write it."""
    match content:
        case tree.OptionalContent():
            return [("", content.inside)]
        case tree.ListContent():
            return [("[i]", content.item)]
        case tree.DictionaryContent():
            return [("[key]", content.value)]
        case _:
            return [(shown, part) for _, shown, part in parts_of(content)]


def vectors(content: tree.Content, way: str = "") -> Iterator[tuple[str, tree.Content]]:
    """The numbers and arrays in a structure, with the ways to them."""
    if not tree.has_derivative(content):
        return
    inside = inside_of(content)
    if not inside:
        yield way, content
    for shown, part in inside:
        yield from vectors(part, way + shown)


def has_identity(content: tree.Content) -> bool:
    """Whether it is one object wherever it is found."""
    known = cast("tree.AnyContent", content)
    match known:
        case (
            tree.ArrayContent() | tree.RecordContent() | tree.InstanceContent() | tree.ListContent()
            | tree.DictionaryContent()
        ):  # fmt: skip
            return True
        case tree.NumberContent() | tree.OptionalContent() | tree.TupleContent():
            return False
        case tree.ConstantContent() | tree.UnknownContent():
            return False
        case _:
            assert_never(known)


def is_storage(content: tree.Content) -> bool:
    """Whether all vectors in it can be overwritten without another value in its place."""
    if not tree.has_derivative(content):
        return True
    if isinstance(content, tree.ArrayContent):
        return bool(content.type.mutable)
    if isinstance(content, tree.TupleContent | tree.OptionalContent):
        return all(map(is_storage, tree.children(content)))
    return has_identity(content)


# --- refusals ---------------------------------------------------------------------------------------------------------


def check_known(content: tree.Content, name: str, way: str = "") -> None:
    """Refuses structures that lead back to their own type: their end is not known when a function is compiled.

    Raises:
        SignatureError: it is such a structure, or holds a `StructRef`, which is inactive in Python.
    """
    if isinstance(content.type, types.StructRef):
        raise SignatureError(
            f"compiled code passes {described(content.type)} at {way or 'the top'} to {name}",
            "pass its fields in a tuple: (x.weights, x.bias)",
            "of compiled classes irad.data knows jitclasses",
            HERE,
        )
    if isinstance(content, tree.UnknownContent) and isinstance(content.type, (*_KNOWN, types.DeferredType)):
        raise SignatureError(
            f"compiled code passes a structure that leads back to its own type at {way or 'the top'} to {name}",
            f"call {name} from Python, or pass the parts of the structure",
            "in compiled code the parts of a structure are found when the function is compiled",
            HERE,
        )
    for shown, part in inside_of(content):
        check_known(part, name, way + shown)


def check_alike(first: tree.Content, other: tree.Content, way: str = "") -> None:
    """Refuses a structure that is not like the first one.

    Raises:
        SignatureError: the structures differ.
    """
    if not tree.has_derivative(first):
        return
    mine, its = inside_of(first), inside_of(other)
    if _differ(first, other) or [shown for shown, _ in mine] != [shown for shown, _ in its]:
        raise SignatureError(
            f"the structures differ: the values at {way or 'the top'} are {described(first.type)} "
            f"and {described(other.type)}",
            "pass structures that are alike, such as those made by irad.data.make_zero and irad.data.copy",
            "a function of several structures is called with what they hold at the same place",
            HERE,
        )
    for (shown, part), (_, its_part) in zip(mine, its, strict=True):
        check_alike(part, its_part, way + shown)


def _differ(first: tree.Content, other: tree.Content) -> bool:
    if type(first) is not type(other):
        return True
    if isinstance(first, tree.ArrayContent):
        return bool((first.type.dtype, first.type.ndim) != (other.type.dtype, other.type.ndim))
    if isinstance(first, tree.TupleContent):
        classes = [getattr(each.type, "instance_class", None) for each in (first, other)]
        return classes[0] is not classes[1]
    return has_identity(first) and first.type != other.type


def check_storage(content: tree.Content, name: str, way: str = "") -> None:
    """Refuses a structure in which a vector cannot be overwritten, since nothing that can be changed holds it.

    Raises:
        SignatureError: it is such a structure.
    """
    if is_storage(content):
        return
    if isinstance(content, tree.TupleContent | tree.OptionalContent):
        for shown, part in inside_of(content):
            check_storage(part, name, way + shown)
        return
    raise SignatureError(
        f"{name} in compiled code: {described(content.type)} at {way or 'the top'} cannot be overwritten",
        "(a) put it in an array, a list or a jitclass instance or (b) use what irad.data.recursive_map_into returns",
        "numbers, tuples and read-only arrays cannot be changed, and nothing that holds it can be given another",
        HERE,
    )


def check_new(content: tree.Content, name: str, way: str = "") -> None:
    """Refuses a structure that cannot be made anew.

    Raises:
        SignatureError: there is a single record in it.
    """
    if not tree.has_derivative(content):
        return
    if isinstance(content, tree.RecordContent):
        raise SignatureError(
            f"{name} in compiled code: a new record would be needed for that at {way or 'the top'}",
            "pass an array of one record in its place: records[i : i + 1]",
            "in compiled code a record is a place in an array and has no memory of its own",
            HERE,
        )
    for shown, part in [] if is_records(content) else inside_of(content):
        check_new(part, name, way + shown)


# Errors that compiled code raises where structures are not alike, or do not share the same objects.


@register_jitable
def check_members(are_alike):  # type: ignore[no-untyped-def]
    """Refuses structures that hold different members, or arrays of different shapes."""
    if not are_alike:
        raise SignatureError(
            "the structures differ: at one place they hold different members, or arrays of different shapes",
            "pass structures that are alike, such as those made by irad.data.make_zero and irad.data.copy",
            "a function of several structures is called with what they hold at the same place",
            HERE,
        )


@register_jitable
def check_input(is_repeated, is_repeated_there):  # type: ignore[no-untyped-def]
    """Refuses another input that holds two objects where the first one holds one."""
    if is_repeated and not is_repeated_there:
        raise SignatureError(
            "the first input holds one object at two places, where another structure holds two",
            "pass structures that share what the first one shares, such as copies made by irad.data.copy",
            "each object becomes one object of the result, which has one value",
            HERE,
        )


@register_jitable
def check_output(is_repeated, is_repeated_there):  # type: ignore[no-untyped-def]
    """Refuses an output that shares more than the first input does."""
    check_input(is_repeated, is_repeated_there)
    if is_repeated_there and not is_repeated:
        raise SignatureError(
            "an output holds one object at two places, where the first input holds two",
            "pass an output that shares no more than the input does, such as irad.data.make_zero(input)",
            "one object cannot hold two results",
            HERE,
        )


@register_jitable
def check_read(is_repeated, is_shared):  # type: ignore[no-untyped-def]
    """Refuses an output that is read, or is overwritten, at another place."""
    if is_shared and not is_repeated:
        raise SignatureError(
            "what an output holds at one place is read, or overwritten once more, at another place",
            "pass a copy of the input, made by irad.data.copy",
            "it would be overwritten before it is read",
            HERE,
        )


@register_jitable
def check_length(is_right):  # type: ignore[no-untyped-def]
    """Refuses a flat array that has another length than a structure."""
    if not is_right:
        raise SignatureError(
            "the vector has more or fewer elements than the structure",
            "pass a vector with as many elements as irad.data.to_vec returns of the structure",
            "a complex number is two elements; what is shared counts once",
            HERE,
        )


def in_layout_of(made: Any, like: Any, wanted: Any) -> Any:
    """What was made of an object, where the same object is found as one of another type: only layouts differ."""
    raise NotImplementedError


@overload(in_layout_of, strict=False)
def _in_layout_of_typed(made: Any, like: Any, wanted: Any) -> Any:
    target = wanted.instance_type
    if not isinstance(made, types.Array) or made.layout == target.layout or target.layout == "A":
        return lambda made, like, wanted: as_type(made, wanted)

    def checked(made, like, wanted):  # type: ignore[no-untyped-def]
        if made.strides != like.strides:
            raise SignatureError(
                "one array is found as two of different types, one of them in the order of Fortran",
                "copy one of the two: np.asfortranarray(x)",
                "each object becomes one object of the result, in one order",
                HERE,
            )
        return as_type(made, wanted)

    return checked
