"""Structures that a function is compiled for: their vectors, what of them can be changed, and whether they agree.

What types tell follows from the tree over a type, `irad.frontend.values.tree`, and is refused when the function is
compiled; what only values tell is checked by compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, assert_never, cast

from numba.core import types
from numba.extending import overload, register_jitable

from irad.data.recursive.fold import Treatment
from irad.errors import HERE, SignatureError
from irad.frontend.numba.messages import described
from irad.frontend.packing.packed import ways_of
from irad.frontend.structures.identity import as_type
from irad.frontend.values import tree
from irad.frontend.values.tree import content_of
from irad.records import dataclass

_KNOWN = (types.BaseTuple, types.ClassInstanceType, types.StructRef, types.List, types.ListType, types.DictType)


@dataclass(frozen=True)
class Member:
    """A part of a structure: the way to it in code, the way as users write it, and what it is."""

    code: str
    way: str
    content: tree.Content


@dataclass(frozen=True, eq=False)
class Kind:
    """Code that takes a value apart and makes it again in compiled code, as `irad.data.recursive.kinds` does in Python.

    In code, ``{0}`` is a value, ``{1}`` its counterpart in another structure.

    Attributes:
        treatment: how the replacement for a value is made.
        members: parts of a value; one stands for all those that a loop goes through.
        copied: a copy that members are stored to, of what is filled.
        loop: the keys of members; "" where members are written out.
        counterpart: statements that check what types do not tell about a counterpart.
        is_object: whether a value is one object wherever it is found.
        is_mutable: whether members of a value, or the elements of an array, may be replaced.
    """

    treatment: Treatment
    members: Callable[[Any], list[Member]] = lambda content: []
    copied: str = ""
    loop: str = ""
    counterpart: tuple[str, ...] = ()
    is_object: bool = False
    is_mutable: Callable[[Any], bool] = lambda content: False


def _always(content: tree.Content) -> bool:
    return True


def _may_be_written(array: tree.ArrayContent) -> bool:
    return bool(array.type.mutable)


def _parts_of_tuple(content: tree.TupleContent) -> list[Member]:
    ways = ways_of(content.type)
    return [Member(f"[{i}]", ways[i], part) for i, part in enumerate(content.parts)]


def _attributes(content: tree.InstanceContent) -> list[Member]:
    return [Member(f".{name}", f".{name}", part) for name, part in zip(content.names, content.parts, strict=True)]


def _fields(content: tree.Content) -> list[Member]:
    """The fields of a record as values, those of an array of records as arrays over them."""
    axes = content.type.ndim if content.is_array else 0
    found = []
    for name, field in content.element.fields.items():
        if isinstance(field.type, types.NestedArray):
            kind: Any = types.Array(field.type.dtype, axes + field.type.ndim, "A")
        else:
            kind = types.Array(field.type, axes, "A") if axes else field.type
        found.append(Member(f"[{name!r}]", f"[{name!r}]", content_of(kind)))
    return found


_SHAPE: Final = "check_members({1}.shape == {0}.shape)"
_LENGTH: Final = "check_members(len({1}) == len({0}))"

INACTIVE: Final = Kind(Treatment.KEPT)
NUMBER: Final = Kind(Treatment.VECTOR)
ARRAY: Final = Kind(Treatment.VECTOR, counterpart=(_SHAPE,), is_object=True, is_mutable=_may_be_written)
RECORDS: Final = Kind(Treatment.VIEWED, _fields, counterpart=(_SHAPE,), is_object=True, is_mutable=_may_be_written)
RECORD: Final = Kind(Treatment.VIEWED, _fields, is_object=True, is_mutable=_always)
TUPLE: Final = Kind(Treatment.BUILT, _parts_of_tuple)
OPTIONAL: Final = Kind(Treatment.BUILT, lambda content: [Member("", "", content.inside)])
INSTANCE: Final = Kind(Treatment.FILLED, _attributes, "copied_instance({0})", is_object=True, is_mutable=_always)
LIST: Final = Kind(
    Treatment.FILLED,
    lambda content: [Member("[i]", "[i]", content.item)],
    "{0}.copy()",
    "range(len({0}))",
    (_LENGTH,),
    is_object=True,
    is_mutable=_always,
)
DICTIONARY: Final = Kind(
    Treatment.FILLED,
    lambda content: [Member("[key]", "[key]", content.value)],
    "{0}.copy()",
    "{0}",
    (_LENGTH, "for each in {0}: check_members(each in {1})"),
    is_object=True,
    is_mutable=_always,
)


def kind_of(content: tree.Content) -> Kind:
    """The kind by which values of a type are taken apart."""
    known = cast("tree.AnyContent", content)
    match known:
        case tree.ArrayContent():
            return RECORDS if isinstance(known.element, types.Record) else ARRAY
        case tree.RecordContent():
            return RECORD
        case tree.InstanceContent():
            return INSTANCE
        case tree.ListContent():
            return LIST
        case tree.DictionaryContent():
            return DICTIONARY
        case tree.TupleContent():
            return TUPLE
        case tree.OptionalContent():
            return OPTIONAL
        case tree.NumberContent():
            return NUMBER
        case tree.ConstantContent() | tree.UnknownContent():
            return INACTIVE
        case _:
            assert_never(known)


def members_of(content: tree.Content) -> list[Member]:
    """The parts that are directly in a structure; none of a vector."""
    return kind_of(content).members(content)


def vectors(content: tree.Content) -> Iterator[tree.Content]:
    """The numbers and arrays in a structure."""
    if not tree.has_derivative(content):
        return
    members = members_of(content)
    if not members:
        yield content
    for member in members:
        yield from vectors(member.content)


def is_storage(content: tree.Content) -> bool:
    """True if all vectors in it can be overwritten without another value in its place."""
    if not tree.has_derivative(content):
        return True
    kind = kind_of(content)
    if kind.is_object:
        return kind.is_mutable(content)
    members = kind.members(content)
    return bool(members) and all(is_storage(member.content) for member in members)


# --- refusals ---------------------------------------------------------------------------------------------------------


def check_known(content: tree.Content, name: str, way: str = "") -> None:
    """Refuses structures that contain their own type: their end is not known when a function is compiled.

    Raises:
        SignatureError: it is such a structure, or holds a `StructRef`, which is inactive in Python.
    """
    if isinstance(content.type, types.StructRef):
        raise SignatureError(
            f"compiled code passes {described(content.type)} at {way or 'the top'} to {name}",
            "pass its fields in a tuple: (x.weights, x.bias)",
            "the only compiled classes that irad.data supports are jitclasses",
            HERE,
        )
    if isinstance(content, tree.UnknownContent) and isinstance(content.type, (*_KNOWN, types.DeferredType)):
        raise SignatureError(
            f"compiled code passes a structure that contains its own type at {way or 'the top'} to {name}",
            f"call {name} from Python, or pass the parts of the structure",
            "in compiled code the parts of a structure are found when the function is compiled",
            HERE,
        )
    for member in members_of(content):
        check_known(member.content, name, way + member.way)


def check_alike(first: tree.Content, other: tree.Content, way: str = "") -> None:
    """Refuses a structure that is not like the first one.

    Raises:
        SignatureError: the structures differ.
    """
    if not tree.has_derivative(first):
        return
    mine, its = members_of(first), members_of(other)
    if _differ(first, other) or [member.way for member in mine] != [member.way for member in its]:
        raise SignatureError(
            f"the structures differ: the values at {way or 'the top'} are {described(first.type)} "
            f"and {described(other.type)}",
            "pass structures of the same form, such as those made by irad.data.make_zero and irad.data.copy",
            "a function of several structures is called with their values at the same place",
            HERE,
        )
    for one, two in zip(mine, its, strict=True):
        check_alike(one.content, two.content, way + one.way)


def _differ(first: tree.Content, other: tree.Content) -> bool:
    if type(first) is not type(other):
        return True
    if isinstance(first, tree.ArrayContent):
        return bool((first.type.dtype, first.type.ndim) != (other.type.dtype, other.type.ndim))
    if isinstance(first, tree.TupleContent):
        classes = [getattr(each.type, "instance_class", None) for each in (first, other)]
        return classes[0] is not classes[1]
    return kind_of(first).is_object and first.type != other.type


def check_storage(content: tree.Content, name: str, way: str = "") -> None:
    """Refuses a structure in which a vector cannot be overwritten, since nothing that can be changed holds it.

    Raises:
        SignatureError: it is such a structure.
    """
    if is_storage(content):
        return
    members = members_of(content)
    if members and not kind_of(content).is_object:
        for member in members:
            check_storage(member.content, name, way + member.way)
        return
    raise SignatureError(
        f"{name} in compiled code: {described(content.type)} at {way or 'the top'} cannot be overwritten",
        "(a) put it in an array, a list or a jitclass instance or (b) use what irad.data.recursive_map_into returns",
        "numbers, tuples and read-only arrays are immutable, and no mutable object holds this one",
        HERE,
    )


def check_new(content: tree.Content, name: str, way: str = "") -> None:
    """Refuses a structure that compiled code cannot create.

    Raises:
        SignatureError: there is a single record in it.
    """
    if not tree.has_derivative(content):
        return
    if isinstance(content, tree.RecordContent):
        raise SignatureError(
            f"{name} in compiled code: a new record would be needed at {way or 'the top'}",
            "pass an array of one record in its place: records[i : i + 1]",
            "in compiled code a record is a place in an array and has no memory of its own",
            HERE,
        )
    for member in [] if kind_of(content).treatment is Treatment.VIEWED else members_of(content):
        check_new(member.content, name, way + member.way)


# Errors that compiled code raises where structures are not alike, or do not share the same objects.


@register_jitable
def check_members(are_alike):  # type: ignore[no-untyped-def]
    """Refuses structures that hold different members, or arrays of different shapes."""
    if not are_alike:
        raise SignatureError(
            "the structures differ: at one place they hold different members, or arrays of different shapes",
            "pass structures of the same form, such as those made by irad.data.make_zero and irad.data.copy",
            "a function of several structures is called with their values at the same place",
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
            "an object of an output is read, or overwritten again, at another place",
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
            "pass a vector as long as irad.data.to_vec(structure)",
            "a complex number counts as two elements; shared elements count once",
            HERE,
        )


def in_layout_of(made: Any, like: Any, wanted: Any) -> Any:
    """The result for an object that is found a second time, as one of a type with another layout."""
    raise NotImplementedError


@overload(in_layout_of, strict=False)
def _in_layout_of_typed(made: Any, like: Any, wanted: Any) -> Any:
    target = wanted.instance_type
    if not isinstance(made, types.Array) or made.layout == target.layout or target.layout == "A":
        return lambda made, like, wanted: as_type(made, wanted)

    def checked(made, like, wanted):  # type: ignore[no-untyped-def]
        if made.strides != like.strides:
            raise SignatureError(
                "one array appears with two types, one of them in Fortran order",
                "copy one of the two: np.asfortranarray(x)",
                "each object becomes one object of the result, in one order",
                HERE,
            )
        return as_type(made, wanted)

    return checked
