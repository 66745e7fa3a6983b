"""Rules in the style of JAX: pure functions of values, tangents and cotangents, as the functions of a rule here.

Input   ``jvp(primals, tangents) -> (value, tangent)``, or ``forward(*primals) -> (value, residuals)`` with
        ``backward(residuals, cotangent) -> cotangents``; arguments without a derivative come first, if there are any.
Output  the functions of a rule, by their kind.
Method  arguments and cotangents that carry no derivative are zeros for these functions. What `forward` keeps is copied,
        since arrays may change in place. Cotangents of arrays are added to their shadows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Final

import numpy as np
from numba.core import types
from numba.extending import overload, register_jitable
from numba.np.numpy_support import as_dtype

from irad.errors import RuleError
from irad.frontend.custom.rule_arguments import AugmentedReturn, ConstArgument, annotation_of, is_active
from irad.frontend.custom.rules_from_partials import kept_value, tuple_like, zero_shadow, zero_tangent
from irad.frontend.generated import function_from
from irad.frontend.numba.messages import described
from irad.frontend.structures.identity import overlaps


def tangent_functions(
    rule: Callable[..., Any], count: int, constants: Collection[int], file: str
) -> dict[str, Callable[..., Any]]:
    """The functions of a rule by its tangent.

    Args:
        rule: called as ``rule(*constants, primals, tangents)``.
        count: number of arguments of the function.
        constants: positions of those that have no derivative.
        file: name of the file in tracebacks.
    """
    names, fixed, varied = parted(count, constants)
    lines = [f"def forward(config{given(names)}):", *(f"    check_constant({name})" for name in fixed)]
    for name in varied:
        lines += [
            f"    if is_active({name}):",
            f"        d{name} = filled({name}.tangent, {name}.value)",
            "    else:",
            f"        d{name} = zero_tangent({name}.value)",
        ]
    tangents = f"({''.join(f'd{name}, ' for name in varied)})"
    lines.append(f"    return rule({_listed(fixed)}({_listed(varied)}), {tangents})")
    scope = {
        "rule": rule,
        "is_active": is_active,
        "filled": filled,
        "zero_tangent": zero_tangent,
        "check_constant": check_constant,
    }
    return {"forward": function_from("forward", "\n".join(lines) + "\n", file, scope)}


def cotangent_functions(
    forward: Callable[..., Any], backward: Callable[..., Any], count: int, constants: Collection[int], file: str
) -> dict[str, Callable[..., Any]]:
    """The functions of a rule by its two sweeps.

    Args:
        forward: called with all arguments.
        backward: called as ``backward(*constants, residuals, cotangent)``.
        count: number of arguments of the function.
        constants: positions of those that have no derivative.
        file: name of the file in tracebacks.
    """
    names, fixed, varied = parted(count, constants)
    kept = "".join(f"tape[2][{i}], " for i in range(len(fixed)))
    arguments = f"({''.join(f'{name}, ' for name in varied)})"
    reverse = (
        f"def reverse(config, cotangent, tape{given(names)}):\n"
        + "".join(f"    check_constant({name})\n" for name in fixed)
        + "    if config.has_cotangent:\n"
        f"        found = spread(rule({kept}tape[0], filled(cotangent, tape[1])), {arguments})\n"
        "    else:\n"
        f"        found = nothing({arguments})\n"
        f"    return ({aligned(names, fixed)})\n"
    )
    back = {"rule": backward, "spread": spread, "filled": filled, "nothing": nothing, "check_constant": check_constant}
    return {
        "augmented_primal": augmented_from(
            names,
            f"result, kept = rule({_listed(names)})",
            f"kept_value(kept), zeros_of_parts(result), kept_value(({_listed(fixed)}))",
            file,
            {"rule": forward},
        ),
        "reverse": function_from("reverse", reverse, file, back),
    }


def augmented_from(names: Sequence[str], call: str, tape: str, file: str, scope: dict[str, Any]) -> Callable[..., Any]:
    """The augmented primal of a rule.

    Args:
        names: of the arguments.
        call: the statement that computes ``result``.
        tape: the expression of what is kept.
        file: name of the file in tracebacks.
        scope: names that ``call`` uses.
    """
    source = (
        f"def augmented(config{given(names)}):\n"
        f"    {call}\n"
        f"    check_new(result, ({_listed(names)}))\n"
        f"    tape = {tape}\n"
        "    if config.needs_shadow:\n"
        "        return AugmentedReturn(result, zero_shadow(result), tape)\n"
        "    return AugmentedReturn(result, None, tape)\n"
    )
    known = {
        "check_new": check_new,
        "kept_value": kept_value,
        "zero_shadow": zero_shadow,
        "zeros_of_parts": zeros_of_parts,
        "AugmentedReturn": AugmentedReturn,
    }
    return function_from("augmented", source, file, {**known, **scope})


def aligned(names: Sequence[str], fixed: Collection[str]) -> str:
    """The items that a reverse returns: those of ``found`` for arguments with a derivative, None for the fixed ones."""
    places = iter(range(len(names)))
    return "".join("None, " if name in fixed else f"found[{next(places)}], " for name in names)


def parted(count: int, constants: Collection[int]) -> tuple[list[str], list[str], list[str]]:
    """Names for all arguments, for those without a derivative, and for the others."""
    names = [f"x{i}" for i in range(count)]
    return names, [names[i] for i in constants], [name for i, name in enumerate(names) if i not in constants]


def given(names: Sequence[str]) -> str:
    """The arguments as parameters after the first."""
    return "".join(f", {name}" for name in names)


def _listed(names: Sequence[str]) -> str:
    return "".join(f"{name}.value, " for name in names)


def check_constant(argument: object) -> Any:
    """Raises `RuleError` if an argument that the rule says is constant carries a derivative."""
    raise NotImplementedError("called in compiled code only")


def filled(derivative: object, like: object) -> Any:
    """A tangent or cotangent with zeros for None, where ``like`` is a value, or zeros, with the same structure."""
    raise NotImplementedError("called in compiled code only")


def zeros_of_parts(value: object) -> Any:
    """Zeros for the parts of a tuple, which may lack a cotangent one by one; None for anything else."""
    raise NotImplementedError("called in compiled code only")


def of_type(tangent: object, like: object) -> Any:
    """A tangent in the precision of a value with the same structure."""
    raise NotImplementedError("called in compiled code only")


def check_new(result: object, arguments: object) -> Any:
    """Raises `RuleError` if an array in a result lies in the memory of one in the arguments."""
    raise NotImplementedError("called in compiled code only")


def spread(cotangents: object, arguments: object) -> Any:
    """Cotangents as the reverse of a rule returns them; those of arrays are added to their shadows."""
    raise NotImplementedError("called in compiled code only")


def nothing(arguments: object) -> Any:
    """Result of the reverse of a rule if the value has no cotangent."""
    raise NotImplementedError("called in compiled code only")


def delivered(cotangent: object, argument: object) -> Any:
    """The cotangent of one argument as the reverse of a rule returns it."""
    raise NotImplementedError("called in compiled code only")


@overload(check_constant)
def _check_constant_typed(argument):  # type: ignore[no-untyped-def]
    if annotation_of(argument) is not ConstArgument:
        raise RuleError(
            f"an argument among nondiff_argnums, {described(argument.types[0])}, carries a derivative",
            "(a) leave it out of nondiff_argnums, and give its tangent or cotangent in the rule or (b) pass "
            "irad.stop_gradient(x), if its derivative is not wanted",
            "a rule has no derivative with respect to what nondiff_argnums names, and it would be lost",
        )
    return lambda argument: None


@overload(filled)
def _filled_typed(derivative, like):  # type: ignore[no-untyped-def]
    if derivative == types.none:
        return lambda derivative, like: zero_tangent(like)
    if not isinstance(derivative, types.BaseTuple) or not isinstance(like, types.BaseTuple):
        return lambda derivative, like: derivative
    items, scope = tuple_like(like, "filled(derivative[{0}], like[{0}])")
    source = f"def parts(derivative, like):\n    return {items}\n"
    return function_from("parts", source, "irad.custom_jvp", {"filled": filled, **scope})


@overload(of_type)
def _of_type_typed(tangent, like):  # type: ignore[no-untyped-def]
    if isinstance(tangent, types.BaseTuple) and isinstance(like, types.BaseTuple) and len(tangent) == len(like):
        items, scope = tuple_like(tangent, "of_type(tangent[{0}], like[{0}])")
        source = f"def parts(tangent, like):\n    return {items}\n"
        return function_from("parts", source, "irad.custom_jvp", {"of_type": of_type, **scope})
    if isinstance(tangent, types.Array) and isinstance(like, types.Array) and tangent.dtype != like.dtype:
        return lambda tangent, like: tangent.astype(like.dtype)
    if isinstance(tangent, types.Number) and isinstance(like, types.Number) and tangent != like:
        scalar = as_dtype(like).type
        return lambda tangent, like: scalar(tangent)
    return lambda tangent, like: tangent


@overload(zeros_of_parts)
def _zeros_of_parts_typed(value):  # type: ignore[no-untyped-def]
    return (lambda value: zero_tangent(value)) if isinstance(value, types.BaseTuple) else (lambda value: None)


@overload(check_new)
def _check_new_typed(result, arguments):  # type: ignore[no-untyped-def]
    if isinstance(result, types.BaseTuple):
        return _for_parts("check_new(result, arguments)", "check_new(result[{0}], arguments)", len(result))
    if isinstance(arguments, types.BaseTuple):
        return _for_parts("check_new(result, arguments)", "check_new(result, arguments[{0}])", len(arguments))
    if isinstance(result, types.Array) and isinstance(arguments, types.Array):
        return _check_apart
    return lambda result, arguments: None


def _for_parts(head: str, call: str, count: int) -> Any:
    calls = "".join(f"    {call.format(i)}\n" for i in range(count))
    return function_from(
        "parts", f"def parts{head[head.index('(') :]}:\n{calls}    return None\n", "irad.custom_vjp", _SELF
    )


def _check_apart(result, arguments):  # type: ignore[no-untyped-def]
    if overlaps(result, arguments):
        raise RuleError(
            "a function with a rule from irad.custom_vjp returns memory of one of its arguments",
            "return a copy of it",
            "an array and its copy have different cotangents, and the rule has one for what is returned",
        )


_SELF: Final = {"check_new": check_new}


@overload(spread)
def _spread_typed(cotangents, arguments):  # type: ignore[no-untyped-def]
    if not isinstance(cotangents, types.BaseTuple) or len(cotangents) != len(arguments):
        raise RuleError(
            f"the backward function of a rule returns {described(cotangents)} for {len(arguments)} arguments",
            "return a tuple with one cotangent for each argument, None where there is none",
            "each argument has its own cotangent",
        )
    return _over(arguments, "spread(cotangents, arguments)", "delivered(cotangents[{0}], arguments[{0}])")


@overload(nothing)
def _nothing_typed(arguments):  # type: ignore[no-untyped-def]
    return _over(arguments, "nothing(arguments)", "delivered(None, arguments[{0}])")


def _over(arguments: Any, head: str, item: str) -> Any:
    items = "".join(f"{item.format(i)}, " for i in range(len(arguments)))
    name = head.partition("(")[0]
    return function_from(name, f"def {head}:\n    return ({items})\n", "irad.custom_vjp", {"delivered": delivered})


@overload(delivered)
def _delivered_typed(cotangent, argument):  # type: ignore[no-untyped-def]
    if annotation_of(argument) is ConstArgument:
        return lambda cotangent, argument: None
    lines: list[str] = []
    scope: dict[str, Any] = {"added": added, "zero_tangent": zero_tangent}
    returned = _delivery(argument.types[0], cotangent, (), argument.active, lines, scope)
    source = "".join(["def delivered(cotangent, argument):\n", *lines, f"    return {returned}\n"])
    return function_from("delivered", source, "irad.custom_vjp", scope)


def _delivery(
    value: Any,
    cotangent: Any,
    path: tuple[int, ...],
    active: Collection[tuple[int, ...]],
    lines: list[str],
    scope: dict[str, Any],
) -> str:
    """Expression of what the reverse returns for a part of an argument; lines that add to shadows are appended.

    Args:
        value: type of the part.
        cotangent: type of its cotangent.
        path: the way to it through tuples.
        active: ways to the parts of the argument that carry a derivative.
        lines: of the function.
        scope: takes the names that the expression uses.
    """
    if not any(each[: len(path)] == path for each in active):
        return "None"
    place, is_absent = "".join(f"[{i}]" for i in path), cotangent == types.none
    if isinstance(value, types.BaseTuple):
        if not is_absent and not (isinstance(cotangent, types.BaseTuple) and len(cotangent) == len(value)):
            raise _misfit(cotangent, value, "return a tuple with a cotangent for each item, None where there is none")
        items = [
            _delivery(item, cotangent if is_absent else cotangent[i], (*path, i), active, lines, scope)
            for i, item in enumerate(value)
        ]
        return "None" if set(items) == {"None"} else f"{_class_of(value, scope)}({''.join(f'{i}, ' for i in items)})"
    if isinstance(value, types.Number):
        return f"zero_tangent(argument.value{place})" if is_absent else f"cotangent{place}"
    if not isinstance(value, types.Array):
        raise RuleError(
            f"a rule from irad.custom_vjp is used for an argument of the type {value}, which takes part",
            "write the rule with irad.rules.augmented_primal and irad.rules.reverse",
            "irad can pass back the cotangents of numbers, arrays and tuples of these only",
        )
    if not is_absent:
        if not isinstance(cotangent, types.Array) or cotangent.ndim != value.ndim:
            raise _misfit(cotangent, value, "return an array of the shape of the argument")
        lines.append(f"    added(cotangent{place}, argument.shadow{place})\n")
    return "None"


def _class_of(value: types.BaseTuple, scope: dict[str, Any]) -> str:
    """Name of the class of a named tuple, which is put into the scope; nothing for other tuples."""
    if not isinstance(value, types.BaseNamedTuple):
        return ""
    name = f"class{len(scope)}"
    scope[name] = value.instance_class
    return name


def _misfit(cotangent: Any, value: Any, remedy: str) -> RuleError:
    return RuleError(
        f"the backward function of a rule returns {described(cotangent)} for {described(value)}",
        remedy,
        "a cotangent has the structure of its argument",
    )


@register_jitable
def added(cotangent, shadow):  # type: ignore[no-untyped-def]
    """Adds the cotangent of an array to its shadow."""
    if cotangent.shape != shadow.shape:
        raise RuleError(
            "the backward function of a rule returns a cotangent whose shape differs from that of its argument",
            "return an array of the shape of the argument",
            "a cotangent has the structure of its argument",
        )
    for index in np.ndindex(shadow.shape):
        shadow[index] += cotangent[index]
