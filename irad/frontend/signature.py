"""Does a task fit the types of a call? Every misfit is a `SignatureError` that names the argument and the remedy."""

from __future__ import annotations

import inspect
from typing import Any

from irad.errors import SignatureError, UnsupportedError
from irad.frontend import abi, layouts
from irad.frontend.abi import Argument, Leaf, LeafKind
from irad.frontend.annotations import Role, Seed, Task
from irad.frontend.numba_cpu import location_of
from irad.frontend.numba_untyped import types
from irad.frontend.object_types import unknown_part


def check_representable(function: Any, argument_types: tuple[Any, ...]) -> None:
    """Checks that compiled code can hold the arguments of a call.

    Raises:
        UnsupportedError: it cannot hold one.
    """
    for name, numba_type in zip(inspect.signature(function).parameters, argument_types, strict=True):
        if not abi.is_representable(numba_type):
            raise UnsupportedError(
                f"argument {name} of {function.__qualname__} is a {numba_type}, which Numba cannot compile",
                f"pass a type that it knows, as {name}.astype(np.float32) gives one",
                location=location_of(function),
            )


def check_arguments(dispatcher: Any, arguments: tuple[Argument, ...], task: Task, *, may_be_none: bool = False) -> None:
    """Checks the differentiated arguments of a call.

    Args:
        dispatcher: the function.
        arguments: those that the caller gives, or those that the function takes.
        task: what is differentiated.
        may_be_none: whether None is fine: the function may take a number or None.

    Raises:
        SignatureError: a position that does not exist, or an argument without derivative.
        UnsupportedError: an argument whose derivative irad does not know how to represent.
    """
    for position, role in task.roles:
        if position >= len(arguments):
            raise SignatureError(
                f"{_name(dispatcher)} has no argument {position}: the call has {len(arguments)} arguments",
                "name positions of the call, counted from 0",
                location=location_of(dispatcher.py_func),
            )
        argument = arguments[position]
        for leaf in argument.leaves:
            _check_leaf(dispatcher, argument, leaf)
        _check_role(dispatcher, argument, role)
        if may_be_none and argument.type == types.none:
            continue
        if role is not Role.CONST and not any(leaf.kind is not LeafKind.INERT for leaf in argument.leaves):
            raise _without_derivative(dispatcher, argument)


def _check_leaf(dispatcher: Any, argument: Argument, leaf: Leaf) -> None:
    if not _is_refused(leaf):
        return
    part = unknown_part(leaf.type)
    raise UnsupportedError(
        f"{argument} of {_name(dispatcher)} is a {leaf.type}, whose gradient irad cannot represent"
        + (f": it holds {part}" if part else ""),
        "(a) pass its floats as arrays or tuples or (b) leave it out of what is differentiated",
        location=location_of(dispatcher.py_func),
    )


def _is_refused(leaf: Leaf) -> bool:
    return leaf.kind is LeafKind.INERT and may_hold_floats(leaf.element)


def may_hold_floats(numba_type: Any) -> bool:
    """Whether there may be numbers in a value of a type that is no array or record."""
    match numba_type:
        case types.List() | types.ListType() | types.Set() | types.Array():
            return may_hold_floats(numba_type.dtype)
        case types.DictType():
            return any(map(may_hold_floats, (numba_type.key_type, numba_type.value_type)))
        case types.BaseTuple():
            return any(map(may_hold_floats, numba_type.types))
        case types.Optional():
            return may_hold_floats(numba_type.type)
        case types.ClassInstanceType():
            return any(map(may_hold_floats, numba_type.struct.values()))
        case types.StructRef():
            return any(map(may_hold_floats, numba_type.field_dict.values()))
        case _:
            return layouts.holds_floats(numba_type)


def _check_role(dispatcher: Any, argument: Argument, role: Role) -> None:
    """`irad.autodiff`'s annotations: a number travels by value, an array or record by its memory."""
    kinds = {leaf.kind for leaf in argument.leaves}
    if role is Role.ACTIVE and any(kind.has_memory for kind in kinds):
        raise SignatureError(
            f"{argument} of {_name(dispatcher)} is a {argument.type}; irad.Active is for numbers",
            f"(a) irad.Duplicated({argument.name}, np.zeros_like({argument.name})), or irad.MixedDuplicated for a "
            "tuple of floats and arrays, or (b) irad.Const",
            location=location_of(dispatcher.py_func),
        )
    if role.has_destination and LeafKind.LIST in kinds:
        raise SignatureError(
            f"{argument} of {_name(dispatcher)} is a {argument.type}; a list may change its length, so its derivative "
            "cannot be given a place",
            "(a) irad.grad, irad.value_and_grad, irad.vjp or irad.Active, which return a new list, or (b) irad.Const "
            "or (c) pass an array",
            location=location_of(dispatcher.py_func),
        )
    if role.has_destination and LeafKind.OBJECT in kinds:
        raise SignatureError(
            f"{argument} of {_name(dispatcher)} is a {argument.type}; irad takes no shadow of an object: the function "
            "may change what it leads to",
            "(a) irad.grad, irad.value_and_grad, irad.vjp or irad.Active, which return its gradient, or "
            "(b) irad.Const or (c) pass its arrays",
            location=location_of(dispatcher.py_func),
        )
    if role is Role.SHADOW and any(kind.has_cotangent for kind in kinds):
        raise SignatureError(
            f"{argument} of {_name(dispatcher)} is a {argument.type}; irad.Duplicated is for arrays and records",
            f"(a) irad.Active({argument.name}), or irad.MixedDuplicated for a tuple of floats and arrays, "
            "or (b) irad.Const",
            location=location_of(dispatcher.py_func),
        )


def may_have_derivative(argument: Argument) -> bool:
    """Whether an argument holds floats in any form, those that irad refuses included."""
    return any(leaf.kind is not LeafKind.INERT or _is_refused(leaf) for leaf in argument.leaves)


def without_derivative(dispatcher: Any, arguments: tuple[Argument, ...]) -> SignatureError:
    """The error of a call none of whose arguments has a derivative."""
    return SignatureError(
        f"no argument of {_name(dispatcher)} has a derivative: "
        + (", ".join(str(a.type) for a in arguments) or "there is none"),
        "pass floats or arrays of floats",
        location=location_of(dispatcher.py_func),
    )


def _without_derivative(dispatcher: Any, argument: Argument) -> SignatureError:
    kind = argument.type
    remedy = "leave it out of what is differentiated"
    if isinstance(kind, types.Boolean | types.Integer):
        remedy = f"(a) pass a float, as in {_float_example(kind)}, or (b) {remedy}"
    elif isinstance(kind, types.Array):
        remedy = f"(a) pass an array of floats, as {argument.name}.astype(float) gives one, or (b) {remedy}"
    return SignatureError(
        f"{argument} of {_name(dispatcher)} is a {kind}, which has no derivative",
        remedy,
        location=location_of(dispatcher.py_func),
    )


def _float_example(kind: Any) -> str:
    return "1.0 in place of True" if isinstance(kind, types.Boolean) else "3.0 in place of 3"


def check_return(dispatcher: Any, return_type: Any, task: Task) -> None:
    """Checks that the return value can have the cotangent that the task gives it.

    Raises:
        SignatureError: the value has no derivative, or needs a seed.
    """
    if task.has_aux:
        is_pair = isinstance(return_type, types.BaseTuple) and len(return_type.types) == 2
        if not is_pair:
            raise SignatureError(
                f"{_name(dispatcher)} returns {return_type}; with has_aux=True it must return (value, aux)",
                "return a tuple of the value to differentiate and anything else",
                location=location_of(dispatcher.py_func),
            )
        return_type = return_type.types[0]
    if task.seed is Seed.ONE and not isinstance(return_type, types.Float):
        raise _not_a_float(dispatcher, return_type)
    without = (LeafKind.INERT, LeafKind.LIST, LeafKind.OBJECT, LeafKind.OPTIONAL)
    if task.seed is Seed.GIVEN and all(leaf.kind in without for leaf in abi.leaves_of(return_type)):
        raise _not_a_float(dispatcher, return_type)


def _not_a_float(dispatcher: Any, return_type: Any) -> SignatureError:
    leaves = list(abi.leaves_of(return_type))
    if return_type in layouts.COMPLEX:
        remedy = (
            "(a) return a float, the real part or abs(…) ** 2 for instance, or (b) give the cotangent of the value: "
            "irad.vjp(f, …) or irad.autodiff(irad.Reverse, f, …, seed=…)"
        )
    elif any(leaf.kind is not LeafKind.INERT for leaf in leaves):
        remedy = (
            "(a) give the cotangent of the value: irad.vjp(f, …) or irad.autodiff(irad.Reverse, f, …, seed=…) "
            "or (b) return one float, a sum for instance"
        )
        if isinstance(return_type, types.BaseTuple) and leaves[0].path == (0,) and leaves[0].type in layouts.FLOATS:
            remedy += " or (c) has_aux=True when only the first part is to be differentiated"
    elif return_type == types.none:
        remedy = (
            "(a) return a float or (b) for a function that writes to its arguments: "
            "irad.autodiff(irad.Reverse, f, …, seed=None) with irad.Duplicated(x, dx)"
        )
    else:
        remedy = "return a float"
    return SignatureError(
        f"{_name(dispatcher)} returns {return_type}, "
        + ("which is no single float" if "seed" in remedy and return_type != types.none else "which has no derivative"),
        remedy,
        location=location_of(dispatcher.py_func),
    )


def check_destination(dispatcher: Any, argument: Argument, role: Role, destination: Any) -> None:
    """Checks the type of the memory that the caller gives for the derivative of an argument.

    Raises:
        SignatureError: its structure, dtype or number of dimensions is not that of the argument.
    """
    mine, theirs = list(argument.leaves), list(abi.leaves_of(destination))
    if [leaf.path for leaf in mine] != [leaf.path for leaf in theirs]:
        raise SignatureError(
            f"what is given for the derivative of {argument} of {_name(dispatcher)} is a {destination}, "
            f"the argument is a {argument.type}",
            "give the structure of the argument",
            location=location_of(dispatcher.py_func),
        )
    for leaf, target in zip(mine, theirs, strict=True):
        _check_target(dispatcher, argument, role, leaf, target)


def _check_target(dispatcher: Any, argument: Argument, role: Role, leaf: Leaf, target: Leaf) -> None:
    wanted = _wanted(role, leaf)
    if wanted is None:
        return
    if leaf.kind is LeafKind.RECORD:
        good = target.type == leaf.type
    else:
        good = target.is_array and target.element == leaf.element and target.type.mutable
    if leaf.is_array:
        good = good and target.type.ndim == leaf.type.ndim
    if not good:
        at = "".join(f"[{i}]" for i in leaf.path)
        raise SignatureError(
            f"{argument}{at} of {_name(dispatcher)} is a {leaf.type}; "
            f"what is given for its derivative is a {target.type}",
            f"give {wanted}",
            location=location_of(dispatcher.py_func),
        )


def _wanted(role: Role, leaf: Leaf) -> str | None:
    if leaf.kind is LeafKind.ARRAY:
        return "a writeable array of the same dtype and shape"
    if leaf.kind is LeafKind.RECORD:
        return "a record of the same dtype"
    if leaf.kind is LeafKind.NUMBER and role is Role.INTO:
        return f"a writeable array of one {leaf.type}: a number cannot be overwritten"
    return None


def _name(dispatcher: Any) -> str:
    name: str = dispatcher.py_func.__qualname__
    return name
