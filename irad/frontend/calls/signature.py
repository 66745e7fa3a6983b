"""Does a task fit the types of a call? Every misfit is a `SignatureError` that names the argument and the remedy."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Set
from typing import Any

from numba.core import types
from numba.core.dispatcher import Dispatcher

from irad.errors import SignatureError, UnsupportedError
from irad.frontend.calls.task import Role, Seed, Task
from irad.frontend.numba import internals
from irad.frontend.numba.messages import described, location_of
from irad.frontend.packing.packed import have_parts_alike, structure_of, way_through
from irad.frontend.values import abi, layouts, tree
from irad.frontend.values.abi import Argument
from irad.frontend.values.gradients import gradient_of_content, is_copied_list, may_be_shadow, may_be_tangent
from irad.frontend.values.tree import Content, LeafKind, may_hold_floats, unknown_part

_NO_CHANGE = (
    "derivatives are taken with respect to floating-point numbers; integers, strings and None do not vary continuously"
)


def check_representable(function: Any, argument_types: tuple[Any, ...]) -> None:
    """Checks that compiled code can hold the arguments of a call.

    Raises:
        UnsupportedError: it cannot hold one.
    """
    for name, numba_type in zip(inspect.signature(function).parameters, argument_types, strict=True):
        if not layouts.is_representable(numba_type):
            raise UnsupportedError(
                f"argument {name} of {function.__qualname__} is {described(numba_type)}, which Numba cannot compile",
                f"pass numbers of a supported type: {name}.astype(np.float32)",
                "Numba knows this type, but has no arithmetic for it",
                location_of(function),
                focus=name,
            )


def check_arguments(
    dispatcher: Dispatcher, arguments: tuple[Argument, ...], task: Task, *, may_be_none: bool = False
) -> None:
    """Checks the differentiated arguments of a call.

    Args:
        dispatcher: the function.
        arguments: those that the caller gives, or those that the function takes.
        task: description of the derivative.
        may_be_none: whether None is fine: the function may take a number or None.

    Raises:
        SignatureError: a position that does not exist, or an argument without derivative.
        UnsupportedError: an argument whose derivative irad does not know how to represent.
    """
    for position, role in task.roles:
        if position >= len(arguments):
            raise SignatureError(
                f"{name_of(dispatcher)} has no argument {position}: the call has {len(arguments)} arguments",
                f"use positions from 0 to {len(arguments) - 1} in argnums",
                "positions count from 0, and each value collected by a star argument has its own",
                location_of(dispatcher.py_func),
            )
        argument = arguments[position]
        for leaf in argument.leaves:
            _check_leaf(dispatcher, argument, leaf)
        _check_role(dispatcher, argument, role)
        if may_be_none and argument.type == types.none:
            continue
        if role is not Role.CONST and not any(leaf.kind is not LeafKind.INERT for leaf in argument.leaves):
            raise _without_derivative(dispatcher, argument)


def _check_leaf(dispatcher: Dispatcher, argument: Argument, leaf: Content) -> None:
    if not _is_refused(leaf):
        return
    part = unknown_part(leaf)
    raise UnsupportedError(
        f"{argument} of {name_of(dispatcher)} is {described(leaf.type)}, whose gradient irad cannot represent"
        + (f": it holds {part}" if part else ""),
        f"(a) pass its floats as an array or a tuple or (b) {_LEAVE_OUT}",
        "a gradient has an entry for each float, and irad cannot tell where the floats are here",
        location_of(dispatcher.py_func),
        focus=argument.name,
    )


def _is_refused(leaf: Content) -> bool:
    return leaf.kind is LeafKind.INERT and may_hold_floats(leaf)


def _check_role(dispatcher: Dispatcher, argument: Argument, role: Role) -> None:
    """`irad.autodiff`'s annotations: a number travels by value, an array or record by its memory."""
    kinds = {leaf.kind for leaf in argument.leaves}
    if role is Role.ACTIVE and any(kind.has_memory for kind in kinds):
        raise SignatureError(
            f"{argument} of {name_of(dispatcher)} is {described(argument.type)}; irad.Active is for numbers",
            f"(a) {_duplicated(argument, kinds)} or (b) irad.Const({argument.name}), if its derivative is not wanted",
            "the derivative of an array is added to its shadow, an array of the same shape that is passed with it",
            location_of(dispatcher.py_func),
            focus=argument.name,
        )
    if role is Role.SHADOW and any(kind.has_cotangent for kind in kinds):
        raise SignatureError(
            f"{argument} of {name_of(dispatcher)} is {described(argument.type)}; irad.Duplicated is for arrays",
            f"(a) {_by_value(argument, kinds)} or (b) irad.Const({argument.name}), if its derivative is not wanted",
            "a number has no memory that its derivative could be added to; its derivative is returned",
            location_of(dispatcher.py_func),
            focus=argument.name,
        )


def _duplicated(argument: Argument, kinds: set[LeafKind]) -> str:
    name = argument.name
    if isinstance(argument.type, types.BaseTuple):
        kind = "MixedDuplicated" if any(kind.has_cotangent for kind in kinds) else "Duplicated"
        what = "a tuple of shadows" if structure_of(argument.type) is None else f"irad.data.make_zero({name}) as shadow"
        return f"irad.{kind}({name}, shadow), with {what}"
    return f"irad.Duplicated({name}, np.zeros_like({name}))"


def _by_value(argument: Argument, kinds: set[LeafKind]) -> str:
    if any(kind.has_memory for kind in kinds):
        return f"irad.MixedDuplicated({argument.name}, shadow), for what holds floats and arrays,"
    return f"irad.Active({argument.name})"


_LEAVE_OUT = "do not differentiate with respect to it: leave it out of argnums, or mark it irad.Const in irad.autodiff"


def may_have_derivative(argument: Argument) -> bool:
    """True if an argument holds floats in any form, those that irad refuses included."""
    return any(leaf.kind is not LeafKind.INERT or _is_refused(leaf) for leaf in argument.leaves)


def without_derivative(dispatcher: Dispatcher, arguments: tuple[Argument, ...]) -> SignatureError:
    """The error of a call none of whose arguments has a derivative."""
    return SignatureError(
        f"no argument of {name_of(dispatcher)} has a derivative: "
        + (", ".join(f"{a.name} is {described(a.type)}" for a in arguments) or "it has none"),
        "pass a float or an array of floats",
        _NO_CHANGE,
        location_of(dispatcher.py_func),
    )


def _without_derivative(dispatcher: Dispatcher, argument: Argument) -> SignatureError:
    kind = argument.type
    remedy, reason = _LEAVE_OUT, _NO_CHANGE
    if {kind, getattr(kind, "dtype", None)} & layouts.INACTIVE_TYPES:
        reason = "its type was declared inactive with irad.rules.inactive_type"
    elif isinstance(kind, types.Boolean | types.Integer) and not internals.takes_new_types(dispatcher):
        remedy = f"(a) make it float64 in the signature that {name_of(dispatcher)} is declared with or (b) {remedy}"
    elif isinstance(kind, types.Boolean | types.Integer):
        remedy = f"(a) pass a float, for example {_float_example(kind)}, or (b) {remedy}"
    elif isinstance(kind, types.Array):
        remedy = f"(a) pass an array of floats: {argument.name}.astype(float), or (b) {remedy}"
    return SignatureError(
        f"{argument} of {name_of(dispatcher)} is {described(kind)}, which has no derivative",
        remedy,
        reason,
        location_of(dispatcher.py_func),
        focus=argument.name,
    )


def _float_example(kind: Any) -> str:
    return "1.0 instead of True" if isinstance(kind, types.Boolean) else "3.0 instead of 3"


def check_return(dispatcher: Any, return_type: Any, task: Task) -> None:
    """Checks that the return value can have the cotangent that the task gives it.

    Raises:
        SignatureError: the value has no derivative, or needs a seed.
    """
    if task.has_aux:
        is_pair = isinstance(return_type, types.BaseTuple) and len(return_type.types) == 2
        if not is_pair:
            raise without_aux(dispatcher, return_type)
        return_type = return_type.types[0]
    if task.seed is Seed.ONE and not isinstance(return_type, types.Float):
        raise _not_a_float(dispatcher, return_type)
    leaves = tree.returned_leaves(return_type)
    if task.seed is Seed.GIVEN and all(leaf.kind is LeafKind.INERT for leaf in leaves):
        raise _not_a_float(dispatcher, return_type)


def without_aux(dispatcher: Dispatcher, return_type: types.Type) -> SignatureError:
    """The error of ``has_aux=True`` for a function that does not return a pair."""
    return SignatureError(
        f"{name_of(dispatcher)} returns {described(return_type)}; with has_aux=True it must return (value, aux)",
        "(a) return a tuple of the value to differentiate and anything else or (b) omit has_aux=True",
        "has_aux=True means that the function returns an auxiliary output after the value to differentiate",
        location_of(dispatcher.py_func),
    )


def _not_a_float(dispatcher: Dispatcher, return_type: types.Type) -> SignatureError:
    name = dispatcher.py_func.__name__
    leaves = list(tree.returned_leaves(return_type))
    seeded = f"supply the cotangent of the value: irad.vjp({name}, …) or irad.autodiff(irad.Reverse, {name}, …, seed=…)"
    what, reason = (
        "which is not a single float",
        "a gradient belongs to a single float; for several floats, irad must know their weights",
    )
    if return_type in layouts.COMPLEX:
        reason = "the real and the imaginary part each have a gradient, and irad cannot know which is meant"
        remedy = f"(a) return a float, for instance the real part or abs(…) ** 2, or (b) {seeded}"
        remedy += " or (c) irad.jacobian, with a convention for complex numbers"
    elif any(leaf.kind is not LeafKind.INERT for leaf in leaves):
        remedy = f"(a) {seeded} or (b) return a single float, for instance a sum"
        if isinstance(return_type, types.BaseTuple) and leaves[0].path == (0,) and leaves[0].type in layouts.FLOATS:
            remedy += " or (c) has_aux=True if only the first part is to be differentiated"
    elif return_type == types.none:
        what, reason = "which has no derivative", "what the function writes to its arguments is not a return value"
        remedy = (
            f"(a) return a float or (b) supply the cotangents of the arrays it writes: irad.vjp({name}, …), or "
            f"irad.autodiff(irad.Reverse, {name}, …, seed=None) with irad.Duplicated(x, dx)"
        )
    elif isinstance(return_type, types.Generator):
        what, reason = (
            "which has no derivative",
            "its body runs only when the caller iterates, after the call has returned",
        )
        remedy = "iterate over the generator in a compiled function, and differentiate that"
    else:
        what, reason = "which has no derivative", "it does not vary continuously with the arguments"
        remedy = "return a float"
    return SignatureError(
        f"{name_of(dispatcher)} returns {described(return_type)}, {what}",
        remedy,
        reason,
        location_of(dispatcher.py_func),
    )


_MEMORY = "memory given for the derivative"
_GIVEN = {Role.TANGENT: "tangent"}


def check_destination(
    dispatcher: Dispatcher, argument: Argument, role: Role, destination: Any, written: Set[tuple[int, ...]]
) -> None:
    """Checks the type of the memory that the caller gives for the derivative of an argument.

    A tangent may be read-only, except at the paths of what the function writes to.

    Raises:
        SignatureError: its structure, dtype or number of dimensions is not that of the argument.
    """
    mine, given = list(argument.leaves), list(_parts_like(argument.type, destination, ()))
    is_alike = [leaf.path for leaf in mine] == [path for path, _ in given]
    if not is_alike or any(_is_tuple(each[1]) and not mine[i].kind.is_reference for i, each in enumerate(given)):
        raise SignatureError(
            f"the {_GIVEN.get(role, _MEMORY)} of {argument} of {name_of(dispatcher)} is {described(destination)}, "
            f"the argument is {described(argument.type)}",
            "pass a tuple for a tuple, an array for an array, and the same keys in the same order",
            "a derivative has the structure of its argument",
            location_of(dispatcher.py_func),
            focus=argument.name,
        )
    for leaf, (_, target) in zip(mine, given, strict=True):
        _check_target(
            dispatcher,
            argument,
            role,
            leaf,
            tree.content_of(target),
            role is Role.TANGENT and leaf.path not in written,
        )


def check_written_back(dispatcher: Dispatcher, argument: Argument, given: Any, *, is_in_tuple: bool) -> None:
    """Checks that lists of Python show the numbers that are written to them.

    Args:
        dispatcher: the function.
        argument: of it.
        given: the type of the memory for its derivative.
        is_in_tuple: whether that is a part of a tuple, or a part of a tape.

    Raises:
        SignatureError: there is one of which Numba makes a copy.
    """
    for path, part in _parts_like(argument.type, given, ()):
        if (is_in_tuple or path) and is_copied_list(part):
            raise SignatureError(
                f"the memory given for the derivative with respect to {argument} of {name_of(dispatcher)} is a Python "
                "list of numbers, in a tuple or on a tape",
                "pass numba.typed.List, for the argument as well",
                "Numba copies such lists, and copies them back only if they are arguments themselves",
                location_of(dispatcher.py_func),
                focus=argument.name,
            )


def _parts_like(numba_type: Any, given: Any, path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Any]]:
    """The parts of the object given for a value, with their paths, as far as both are tuples."""
    if _is_tuple(numba_type) and _is_tuple(given) and have_parts_alike(numba_type, given):
        for i, (item, part) in enumerate(zip(numba_type.types, given.types, strict=True)):
            yield from _parts_like(item, part, (*path, i))
    else:
        yield path, given


def _is_tuple(numba_type: types.Type) -> bool:
    return isinstance(numba_type, types.BaseTuple)


def _check_target(
    dispatcher: Dispatcher, argument: Argument, role: Role, leaf: Content, target: Content, is_only_read: bool
) -> None:
    wanted = _wanted(role, leaf, is_only_read)
    if wanted is None:
        return
    if leaf.kind is LeafKind.RECORD:
        good = target.type == leaf.type
    elif leaf.kind.is_reference:
        fits = may_be_tangent if role is Role.TANGENT else may_be_shadow
        good = fits(abi.reference_of(leaf), target.type)
    elif leaf.kind.has_cotangent and role is Role.TANGENT:
        good = _is_tangent(leaf, target.type)
    else:
        good = target.is_array and target.element == leaf.element and (is_only_read or target.type.mutable)
    if leaf.is_array:
        good = good and target.type.ndim == leaf.type.ndim
    if not good:
        way = way_through(argument.type, leaf.path)
        raise SignatureError(
            f"{argument}{way} of {name_of(dispatcher)} is {described(leaf.type)}; "
            f"the {_GIVEN.get(role, 'memory given for its derivative')} is {described(target.type)}",
            f"pass {wanted}",
            _reason(role, leaf),
            location_of(dispatcher.py_func),
            focus=argument.name,
        )


def _is_tangent(leaf: Content, given: Any) -> bool:
    """True if a value may be the tangent of a number; None is zero."""
    numbers = (types.Float, types.Integer, types.NoneType)
    return isinstance(given, numbers) or (leaf.number in layouts.COMPLEX and isinstance(given, types.Complex))


def _wanted(role: Role, leaf: Content, is_only_read: bool) -> str | None:
    if leaf.kind.has_cotangent and role is Role.TANGENT:
        return f"a number: {'1.0 + 0.0j' if leaf.number in layouts.COMPLEX else '1.0'}"
    if leaf.kind.is_reference and role is not Role.TANGENT:
        return f"a value of the same type: irad.data.make_zero(…) of the argument, {described(leaf.type)}"
    if leaf.kind is LeafKind.LIST:
        return f"a list of the same type and length, {described(leaf.type)}"
    if leaf.kind is LeafKind.OBJECT:
        return f"what has the structure of a gradient by irad.grad: {described(gradient_of_content(leaf))}"
    if leaf.kind is LeafKind.ARRAY:
        example = "ones_like" if role is Role.TANGENT else "zeros_like"
        return (
            f"{'an' if is_only_read else 'a writeable'} array of the same dtype and shape: np.{example}(…) of the "
            "argument"
        )
    if leaf.kind is LeafKind.RECORD:
        return "a record of the same dtype"
    if leaf.kind is LeafKind.NUMBER and role is Role.INTO:
        return f"an array of one {leaf.type}: np.zeros(1, np.{leaf.type})"
    return None


def _reason(role: Role, leaf: Content) -> str:
    if leaf.kind.is_reference and role is not Role.TANGENT:
        return "the derivative is written to the memory that is passed, which has a place for each number"
    if leaf.kind.is_reference:
        return "a tangent has an entry for each number of its argument"
    if leaf.kind is LeafKind.NUMBER and role is Role.TANGENT:
        return "a tangent is a small change of its argument, and so of the same type"
    if leaf.kind is LeafKind.NUMBER:
        return "the derivative is written to the memory that is passed; a number cannot be written to"
    return (
        "the derivative has the dtype and the dimensions of its argument, and is written to the memory that is passed"
    )


def name_of(dispatcher: Any) -> str:
    """The name of a function; of a derivative, that of the user's function."""
    while hasattr(dispatcher, "primal"):
        dispatcher = dispatcher.primal
    name: str = dispatcher.py_func.__qualname__
    return name
