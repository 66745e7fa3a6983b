"""Errors that compiled code raises where structures are not alike, or do not share the same."""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import overload, register_jitable

from irad.errors import HERE, SignatureError
from irad.frontend.structures.memory import as_type


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
