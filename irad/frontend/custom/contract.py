"""Contracts partial derivatives with a cotangent, for `easy`: njit code for all shapes of results and arguments.

Zero times anything is zero, so a cotangent of zero never meets an infinite partial. The cotangent of a complex number
is d/dRe + i·d/dIm of a real loss: that of an argument is the cotangent of the result times the conjugate partial.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types
from numba.core.types import Type
from numba.extending import overload, register_jitable

from irad.errors import RuleError
from irad.frontend.custom.annotated import ActiveArgument, DuplicatedArgument, annotation_of
from irad.frontend.generated import function_from
from irad.frontend.values import layouts


def contract(cotangent: object, partial: object, argument: object) -> Any:
    """The cotangent of an active argument: of a number it is returned, of an array it is added to the shadow.

    ``None`` for the cotangent: no derivative with respect to this argument.
    """
    raise NotImplementedError("called in compiled code only")


def kept_value(value: object) -> Any:
    """A value whose memory nothing else changes: arrays and lists of numbers are copied."""
    raise NotImplementedError("called in compiled code only")


def zero_shadow(value: object) -> Any:
    """The shadow of a value: zeros for arrays, None for what has no memory; for compiled rules.

    Args:
        value: what the augmented primal returns: a number, an array or a tuple of these.

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
def _times(cotangent, partial):  # type: ignore[no-untyped-def]
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
    """That of a complex number: all of it."""
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
        return _of_parts(cotangent, partial, argument, into_number)
    ranks = (rank(cotangent), rank(partial), rank(argument.types[0]))
    match ranks:
        case (0, 0, 0):
            return _product(part)
        case (n, m, 0) if n == m:
            return _summed(zero, part)
        case (0, m, k) if m == k:
            return _scaled
        case (n, m, k) if m == n + k:
            return _jacobian
        case (n, m, k) if n == m == k:
            return _diagonal
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


def _of_parts(cotangent: Any, partial: object, argument: object, into_number: bool) -> Any:
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


def _summed(zero: object, part: Any) -> Any:
    def summed(cotangent, partial, argument):  # type: ignore[no-untyped-def]
        total = zero
        for index in np.ndindex(cotangent.shape):
            total += part(_times(cotangent[index], partial[index]))
        return total

    return summed


def _product(part: Any) -> Any:
    return lambda cotangent, partial, argument: part(_times(cotangent, partial))


def _scaled(cotangent, partial, argument):  # type: ignore[no-untyped-def]
    shadow = argument.shadow
    for index in np.ndindex(shadow.shape):
        shadow[index] += _onto(_times(cotangent, partial[index]), shadow)


def _diagonal(cotangent, partial, argument):  # type: ignore[no-untyped-def]
    shadow = argument.shadow
    for index in np.ndindex(shadow.shape):
        shadow[index] += _onto(_times(cotangent[index], partial[index]), shadow)


def _jacobian(cotangent, partial, argument):  # type: ignore[no-untyped-def]
    shadow = argument.shadow
    for row in np.ndindex(cotangent.shape):
        for column in np.ndindex(shadow.shape):
            shadow[column] += _onto(_times(cotangent[row], partial[row + column]), shadow)


def _onto(number: object, shadow: object) -> Any:
    """A number as it is added to a shadow: its real part where the shadow is real."""
    raise NotImplementedError("called in compiled code only")


@overload(_onto)
def _onto_typed(number, shadow):  # type: ignore[no-untyped-def]
    if shadow.dtype in layouts.FLOATS and number in layouts.COMPLEX:
        return lambda number, shadow: number.real
    return lambda number, shadow: number
