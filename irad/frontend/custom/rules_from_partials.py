"""Rules from partial derivatives: the functions of a rule, written around the partials of a user.

Input   a function that Numba can call, and for each argument a function that gives the partial derivative, or None.
Output  the augmented primal, the reverse and the forward of the rule.
Method  the augmented primal calls the function and keeps its arguments, copied where their memory may change. The
        reverse contracts each partial with the cotangent (`contract`), by the shapes of result and argument; the
        forward multiplies it by the tangents (`pushed`), in all directions at once.

    result    argument    partial
    number    number      number
    number    array       array of the argument's shape
    array     number      array of the result's shape
    array     array       array of the result's shape followed by the argument's: the Jacobian; or of the shape that
                          both have: its diagonal
    tuple     any         a tuple of these, one for each part of the result

Zero times anything is zero, so a cotangent or a tangent of zero never meets an infinite partial.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any

import numpy as np
from numba.core import types
from numba.core.types import Type
from numba.extending import overload, register_jitable
from numba.np.numpy_support import as_dtype

from irad.errors import RuleError
from irad.frontend.custom.catalogue import is_known, location_of, name_of
from irad.frontend.custom.rule_arguments import (
    ActiveArgument,
    AugmentedReturn,
    DuplicatedArgument,
    annotation_of,
    in_lanes,
    is_active,
)
from irad.frontend.generated import function_from
from irad.frontend.values import layouts

# Partials contracted with a cotangent.
#
# The cotangent of a complex number is d/dRe + i·d/dIm of a real loss: that of an argument is the cotangent of
# the result times the conjugate partial.


def contract(cotangent: object, partial: object, argument: object) -> Any:
    """The cotangent of an active argument: of a number it is returned, of an array it is added to the shadow.

    ``None`` for the cotangent: no derivative with respect to this argument.
    """
    raise NotImplementedError("called in compiled code only")


def kept_value(value: object) -> Any:
    """A value whose memory nothing else changes: arrays and lists of numbers are copied."""
    raise NotImplementedError("called in compiled code only")


def zero_shadow(value: object) -> Any:
    """The shadow of a value: zeros for arrays, None for numbers; for compiled rules.

    Args:
        value: the result of the augmented primal: a number, an array or a tuple of these.

    Returns:
        A new shadow with the structure of the value.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.rules import AugmentedReturn, zero_shadow
        >>> from numba import njit
        >>> @njit
        ... def halves(x):
        ...     return 0.5 * x, 2
        >>> @irad.rules.augmented_primal(halves)
        ... def halves_augmented(config, x):
        ...     result = halves(x.value)
        ...     return AugmentedReturn(result, zero_shadow(result), None)
        >>> @irad.rules.reverse(halves)
        ... def halves_reverse(config, cotangent, tape, x):
        ...     x.shadow[:] += 0.5 * cotangent[0]
        ...     return (None,)
        >>> irad.grad(lambda x: halves(x)[0].sum())(np.ones(2))
        array([0.5, 0.5])
    """
    raise NotImplementedError("called in compiled code only")


@overload(kept_value)
def _kept_value_typed(value):  # type: ignore[no-untyped-def]
    if isinstance(value, types.List | types.ListType):
        return lambda value: value.copy()
    return _by_parts(value, kept_value, lambda value: value.copy(), lambda value: value)


@overload(zero_shadow)
def _zero_shadow_typed(value):  # type: ignore[no-untyped-def]
    return _by_parts(value, zero_shadow, lambda value: np.zeros_like(value), lambda value: None)


def _by_parts(value: object, function: object, of_array: object, of_other: object) -> Any:
    if isinstance(value, types.Array):
        return of_array
    if not isinstance(value, types.BaseTuple):
        return of_other
    items = "".join(f"function(value[{i}]), " for i in range(len(value)))
    is_named = function is kept_value and isinstance(value, types.BaseNamedTuple)
    source = f"def parts(value):\n    return {'make' if is_named else ''}({items})\n"
    scope = {"function": function, "make": getattr(value, "instance_class", None)}
    return function_from("parts", source, "irad.rules.easy_rule", scope)


@register_jitable
def _times_cotangent(cotangent, partial):  # type: ignore[no-untyped-def]
    """The product; zero if the cotangent is, and the slope of the product only where the partial is not a number."""
    product = cotangent * np.conj(partial)
    if product != product and cotangent == 0:
        return cotangent * 0.0
    return product


@register_jitable
def real(number):  # type: ignore[no-untyped-def]
    """The part of a product that is the derivative of a real number."""
    return np.real(number)


@register_jitable
def whole(number):  # type: ignore[no-untyped-def]
    """The part of a product that is the derivative of a complex number: all of it."""
    return number


@overload(contract)
def _contract_typed(cotangent, partial, argument):  # type: ignore[no-untyped-def]
    kind = annotation_of(argument)
    if kind not in (ActiveArgument, DuplicatedArgument) or isinstance(argument.types[0], types.BaseTuple):
        raise RuleError(
            f"an easy rule is used for an argument of the type {argument.types[0]}",
            "write the rule with irad.rules.augmented_primal and irad.rules.reverse",
            "irad can multiply a cotangent by a partial derivative only for numbers and arrays",
        )
    into_number = kind is ActiveArgument
    zero, part = (0j, whole) if argument.types[0] in layouts.COMPLEX else (0.0, real)
    if cotangent == types.none:
        return _nothing(zero if into_number else None)
    if isinstance(cotangent, types.BaseTuple):
        return _contract_parts(cotangent, partial, argument, into_number)
    ranks = (rank(cotangent), rank(partial), rank(argument.types[0]))
    match ranks:
        case (0, 0, 0):
            return _product(part)
        case (n, m, 0) if n == m:
            return _contract_summed(zero, part)
        case (0, m, k) if m == k:
            return _contract_scaled
        case (n, m, k) if m == n + k:
            return _contract_jacobian
        case (n, m, k) if n == m == k:
            return _contract_diagonal
        case _:
            raise misfit_of_partial(ranks)


def misfit_of_partial(ranks: tuple[int, int, int]) -> RuleError:
    """The error for a partial of the wrong dimension; those of the result, the partial and the argument are given."""
    return RuleError(
        f"a partial derivative of an easy rule has {ranks[1]} dimensions; the result has {ranks[0]}, the argument "
        f"{ranks[2]}",
        "return a number where both are numbers, the Jacobian (axes of the result, then of the argument), or its "
        "diagonal",
        "the cotangent of the argument is the cotangent of the result times the partial derivative",
    )


def misfit_of_parts(partial: object, result: types.BaseTuple) -> RuleError:
    """The error for a partial that has not a part for each part of the result."""
    return RuleError(
        f"a partial derivative of an easy rule is a {partial}; the function returns {len(result)} values",
        "return a tuple with one entry for each",
        "each value has its own derivative with respect to the argument",
    )


def rank(numba_type: Type) -> int:
    """The dimension of an array; 0 of a number."""
    return numba_type.ndim if isinstance(numba_type, types.Array) else 0


def _contract_parts(cotangent: Any, partial: object, argument: object, into_number: bool) -> Any:
    """Contracts each part of a tuple; parts without derivative are left out."""
    if not isinstance(partial, types.BaseTuple) or len(partial) != len(cotangent):
        raise misfit_of_parts(partial, cotangent)
    live = [i for i, item in enumerate(cotangent) if item != types.none and partial[i] != types.none]
    calls = [f"contract(cotangent[{i}], partial[{i}], argument)" for i in live]
    if into_number:
        body = f"    return {' + '.join(calls) or 'contract(None, None, argument)'}\n"
    else:
        body = "".join(f"    {call}\n" for call in calls) + "    return None\n"
    source = f"def parts(cotangent, partial, argument):\n{body}"
    return function_from("parts", source, "irad.rules.easy_rule", {"contract": contract})


def _nothing(zero: object) -> Any:
    return lambda cotangent, partial, argument: zero


def _contract_summed(zero: object, part: Any) -> Any:
    def summed(cotangent, partial, argument):  # type: ignore[no-untyped-def]
        total = zero
        for index in np.ndindex(cotangent.shape):
            total += part(_times_cotangent(cotangent[index], partial[index]))
        return total

    return summed


def _product(part: Any) -> Any:
    return lambda cotangent, partial, argument: part(_times_cotangent(cotangent, partial))


def _contract_scaled(cotangent, partial, argument):  # type: ignore[no-untyped-def]
    shadow = argument.shadow
    for index in np.ndindex(shadow.shape):
        shadow[index] += _onto(_times_cotangent(cotangent, partial[index]), shadow)


def _contract_diagonal(cotangent, partial, argument):  # type: ignore[no-untyped-def]
    shadow = argument.shadow
    for index in np.ndindex(shadow.shape):
        shadow[index] += _onto(_times_cotangent(cotangent[index], partial[index]), shadow)


def _contract_jacobian(cotangent, partial, argument):  # type: ignore[no-untyped-def]
    shadow = argument.shadow
    for row in np.ndindex(cotangent.shape):
        for column in np.ndindex(shadow.shape):
            shadow[column] += _onto(_times_cotangent(cotangent[row], partial[row + column]), shadow)


def _onto(number: object, shadow: object) -> Any:
    """A number as it is added to a shadow: its real part if the shadow is real."""
    raise NotImplementedError("called in compiled code only")


@overload(_onto)
def _onto_typed(number, shadow):  # type: ignore[no-untyped-def]
    if shadow.dtype in layouts.FLOATS and number in layouts.COMPLEX:
        return lambda number, shadow: number.real
    return lambda number, shadow: number


# Partials multiplied by a tangent: the transpose of `contract`.
#
# The tangent of a real result is the real part of the product.


def zero_tangent(value: object) -> Any:
    """The tangent of a constant: zeros for numbers and arrays of numbers, None for anything without a derivative."""
    raise NotImplementedError("called in compiled code only")


def pushed(total: object, partial: object, tangent: object) -> Any:
    """A tangent of a result, with the contribution of one argument's tangent; arrays are added to in place."""
    raise NotImplementedError("called in compiled code only")


@register_jitable
def zero_in_lane(lane, value):  # type: ignore[no-untyped-def]
    """A zero tangent for a direction."""
    return zero_tangent(value)


@register_jitable
def pushed_in_lane(lane, totals, partial, tangents):  # type: ignore[no-untyped-def]
    """A tangent of a result in one of several directions, with the contribution of one argument."""
    return pushed(totals[lane], partial, tangents[lane])


def tuple_like(like: types.BaseTuple, item: str) -> tuple[str, dict[str, Any]]:
    """A tuple of as many items, a named tuple for such, as an expression with the names that it needs.

    Args:
        like: says how many, and the class.
        item: an expression with ``{0}`` for the index.
    """
    items = "".join(f"{item.format(i)}, " for i in range(len(like)))
    cls = getattr(like, "instance_class", None)
    return (f"({items})", {}) if cls is None else (f"made({items})", {"made": cls})


@overload(zero_tangent)
def _zero_tangent_typed(value):  # type: ignore[no-untyped-def]
    if isinstance(value, types.BaseTuple):
        items, scope = tuple_like(value, "zero_tangent(value[{0}])")
        source = f"def parts(value):\n    return {items}\n"
        return function_from("parts", source, "irad.rules.easy_rule", {"zero_tangent": zero_tangent, **scope})
    number = value.dtype if isinstance(value, types.Array) else value
    if number not in layouts.FLOATS and number not in layouts.COMPLEX:
        return lambda value: None
    if isinstance(value, types.Array):
        return lambda value: np.zeros_like(value)
    zero = as_dtype(value).type(0)
    return lambda value: zero


@register_jitable
def _times_tangent(tangent, partial):  # type: ignore[no-untyped-def]
    """The product; zero if the tangent is, and the slope of the product only where the partial is not a number."""
    product = tangent * partial
    if product != product and tangent == 0:
        return tangent * 0.0
    return product


@overload(pushed)
def _pushed_typed(total, partial, tangent):  # type: ignore[no-untyped-def]
    if total == types.none:
        return lambda total, partial, tangent: None
    if isinstance(total, types.BaseTuple):
        return _push_parts(total, partial)
    part = whole if (total.dtype if isinstance(total, types.Array) else total) in layouts.COMPLEX else real
    ranks = (rank(total), rank(partial), rank(tangent))
    match ranks:
        case (0, 0, 0):
            return lambda total, partial, tangent: total + part(_times_tangent(tangent, partial))
        case (n, m, 0) if n == m:
            return _push_scaled(part)
        case (0, m, k) if m == k:
            return _push_summed(part)
        case (n, m, k) if m == n + k:
            return _push_jacobian(part)
        case (n, m, k) if n == m == k:
            return _push_diagonal(part)
        case _:
            raise misfit_of_partial(ranks)


def _push_parts(total: Any, partial: object) -> Any:
    """Adds to the tangent of each part of a tuple that has a partial."""
    if not isinstance(partial, types.BaseTuple) or len(partial) != len(total):
        raise misfit_of_parts(partial, total)
    calls = [
        f"total[{i}]" if partial[i] == types.none else f"pushed(total[{i}], partial[{i}], tangent)"
        for i in range(len(total))
    ]
    source = f"def parts(total, partial, tangent):\n    return ({''.join(f'{call}, ' for call in calls)})\n"
    return function_from("parts", source, "irad.rules.easy_rule", {"pushed": pushed})


def _push_scaled(part: Any) -> Any:
    def scaled(total, partial, tangent):  # type: ignore[no-untyped-def]
        for index in np.ndindex(total.shape):
            total[index] += part(_times_tangent(tangent, partial[index]))
        return total

    return scaled


def _push_summed(part: Any) -> Any:
    def summed(total, partial, tangent):  # type: ignore[no-untyped-def]
        for index in np.ndindex(tangent.shape):
            total += part(_times_tangent(tangent[index], partial[index]))
        return total

    return summed


def _push_jacobian(part: Any) -> Any:
    def jacobian(total, partial, tangent):  # type: ignore[no-untyped-def]
        for row in np.ndindex(total.shape):
            for column in np.ndindex(tangent.shape):
                total[row] += part(_times_tangent(tangent[column], partial[row + column]))
        return total

    return jacobian


def _push_diagonal(part: Any) -> Any:
    def diagonal(total, partial, tangent):  # type: ignore[no-untyped-def]
        for index in np.ndindex(total.shape):
            total[index] += part(_times_tangent(tangent[index], partial[index]))
        return total

    return diagonal


# The functions of a rule.

Partial = Callable[..., Any] | float | None


def easy_functions(
    f: object, partials: Sequence[Partial], compiled: Callable[[Callable[..., Any]], Any], arity: int
) -> dict[str, Callable[..., Any]]:
    """The functions of a rule, by their kind.

    Args:
        f: the function with the rule.
        partials: one for each argument: a function of the arguments, or of these and the result; a number; None.
        compiled: makes a dispatcher of a Python function.
        arity: number of arguments.

    Raises:
        RuleError: a partial takes another number of arguments.
    """
    wanted = slopes(f, partials, compiled, arity)
    needs_result = any(with_result for _, _, with_result in wanted)
    names = [f"x{i}" for i in range(arity)]
    scope = {
        "f": _primal(f, compiled, names),
        "AugmentedReturn": AugmentedReturn,
        "is_active": is_active,
        "contract": contract,
        "kept_value": kept_value,
        "zero_shadow": zero_shadow,
        "in_lanes": in_lanes,
        "pushed_in_lane": pushed_in_lane,
        "zero_in_lane": zero_in_lane,
        **{f"partial{i}": function for i, function, _ in wanted},
    }
    file = f"irad.rules.easy_rule for {name_of(f)}"
    augmented = function_from("augmented", _augmented_source(names, needs_result), file, scope)
    forward = function_from("forward", _forward_source(names, wanted), file, scope)
    for each in (augmented, forward):
        each.calls_primal = True  # type: ignore[attr-defined]
    reverse = function_from("reverse", _reverse_source(names, wanted), file, scope)
    return {"augmented_primal": augmented, "reverse": reverse, "forward": forward}


def slopes(
    f: object, partials: Sequence[Partial], compiled: Callable[[Callable[..., Any]], Any], arity: int
) -> list[tuple[int, object, bool]]:
    """For each argument with a partial: its number, the function that gives it, and whether that takes the result.

    Args and errors as for `easy_functions`.
    """
    return [(i, *_callable(f, partial, arity, compiled)) for i, partial in enumerate(partials) if partial is not None]


def _primal(f: object, compiled: Callable[[Callable[..., object]], object], names: Sequence[str]) -> object:
    """The function as a rule calls it: the overload that Numba has, else the Python function compiled.

    That shows when the rule is compiled: overloads may come after rules.
    """
    if not isinstance(f, FunctionType):
        return f
    listing = ", ".join(names)
    file = f"irad.rules.easy_rule for {name_of(f)}"
    primal = function_from("primal", f"def primal({listing}):\n    raise NotImplementedError\n", file, {})
    source = (
        f"def typed({listing}):\n"
        f"    called = f if is_known(f) else own\n"
        f"    return lambda {listing}: called({listing})\n"
    )
    overload(primal)(function_from("typed", source, file, {"f": f, "own": compiled(f), "is_known": is_known}))
    return primal


def _augmented_source(names: list[str], needs_result: bool) -> str:
    lines = [f"def augmented(config, {', '.join(names)}):"]
    lines.append(f"    result = f({', '.join(f'{name}.value' for name in names)})")
    for i, name in enumerate(names):
        lines += [
            f"    if config.overwritten[{i}]:",
            f"        kept{i} = kept_value({name}.value)",
            "    else:",
            f"        kept{i} = {name}.value",
        ]
    kept = "".join(f"kept{i}, " for i in range(len(names)))
    lines += [
        f"    tape = ({kept}{'kept_value(result)' if needs_result else 'None'},)",
        "    if config.needs_shadow:",
        "        return AugmentedReturn(result, zero_shadow(result), tape)",
        "    return AugmentedReturn(result, None, tape)",
    ]
    return "\n".join(lines) + "\n"


def _reverse_source(names: list[str], wanted: Sequence[tuple[int, object, bool]]) -> str:
    lines = [f"def reverse(config, cotangent, tape, {', '.join(names)}):"]
    values = [f"tape[{i}]" for i in range(len(names))]
    given = {i: (function, with_result) for i, function, with_result in wanted}
    for i, name in enumerate(names):
        lines.append(f"    if is_active({name}):")
        if i in given:
            listing = ", ".join([*values, *([f"tape[{len(names)}]"] if given[i][1] else [])])
            lines.append(f"        by{i} = contract(cotangent, partial{i}({listing}), {name})")
        else:
            lines.append(f"        by{i} = contract(None, None, {name})")
        lines += ["    else:", f"        by{i} = None"]
    lines.append(f"    return ({''.join(f'by{i}, ' for i in range(len(names)))})")
    return "\n".join(lines) + "\n"


def _forward_source(names: list[str], wanted: Sequence[tuple[int, object, bool]]) -> str:
    values = [f"{name}.value" for name in names]
    lines = [f"def forward(config, {', '.join(names)}):", f"    result = f({', '.join(values)})"]
    lines += ["    if not config.needs_shadow:", "        return result, None"]
    lines.append("    tangents = in_lanes(config, zero_in_lane, result)")
    for i, _, with_result in wanted:
        listing = ", ".join([*values, *(["result"] if with_result else [])])
        lines.append(f"    if is_active(x{i}):")
        lines.append(f"        slope{i} = partial{i}({listing})")
        lines.append(f"        tangents = in_lanes(config, pushed_in_lane, tangents, slope{i}, x{i}.tangent)")
    return "\n".join([*lines, "    return result, tangents"]) + "\n"


def _callable(
    f: object, partial: object, arity: int, compiled: Callable[[Callable[..., object]], object]
) -> tuple[object, bool]:
    """A dispatcher of a partial, and whether it wants the result."""
    if not callable(partial):
        if isinstance(partial, bool) or not isinstance(partial, int | float | complex):
            raise RuleError(
                f"a partial derivative of {name_of(f)} is {partial!r}",
                "pass a function, a number or None for each argument",
                "it is called with the arguments, or is a constant factor",
            )
        return compiled(_constant(partial, arity)), False
    function = getattr(partial, "py_func", partial)
    try:
        count = len(inspect.signature(function).parameters)
    except ValueError:  # a function of NumPy's, say
        count = arity
    if count not in (arity, arity + 1):
        raise RuleError(
            f"a partial derivative of {name_of(f)} takes {count} arguments: expected {arity}, or {arity + 1} with the "
            "result last",
            f"write it as a function of the arguments of {name_of(f)}",
            "it is called with all arguments, since it may depend on any of them",
            location_of(partial),
        )
    return partial if hasattr(partial, "py_func") else compiled(partial), count == arity + 1


def _constant(value: object, arity: int) -> Callable[..., object]:
    names = ", ".join(f"x{i}" for i in range(arity))
    source = f"def constant({names}):\n    return value\n"
    return function_from("constant", source, "irad.rules.easy_rule", {"value": value})
