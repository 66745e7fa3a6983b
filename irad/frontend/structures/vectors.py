"""Operations on one vector in compiled code: a number, or an array of numbers of whatever layout and axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numba.core import types
from numba.extending import overload, register_jitable

from irad.errors import HERE, SignatureError
from irad.frontend.generated import function_from
from irad.frontend.structures.identity import as_type, misfit, overlaps, same

FILE: Final = "irad.data"
SQUARE: Final = "{0}.real * {0}.real + {0}.imag * {0}.imag"
"""The squared absolute value of a complex number."""


def _elementwise(
    name: str, parameters: str, statement: str, *, before: str = "pass", result: str = "None", in_order: bool = False
) -> Any:
    """A function of arrays of one shape, which compiled code can call.

    Args:
        name: name of the function in other code.
        parameters: its parameters; those that are not arrays begin with an underscore.
        statement: statement for the elements, which have the names of the arrays: ``a`` is ``{a}``.
        before: a statement in front of the loop.
        result: the result.
        in_order: whether the elements are taken in the order of C, rather than as they lie in memory.
    """
    every = parameters.split(", ")
    names = [each for each in every if not each.startswith("_")]

    def stub(*arguments: Any) -> Any:
        raise NotImplementedError

    stub.__name__ = name

    def written(*kinds: Any) -> Callable[..., Any]:
        lines = [f"def elementwise({parameters}):", f"    {before}"]
        if kinds[0].ndim == 0:
            lines.append("    " + statement.format(**{name: f"{name}[()]" for name in names}))
        elif flat := _flat(kinds, in_order=in_order):
            lines += [f"    flat_{name} = {flat.format(name)}" for name in names]
            lines.append(f"    for i in range(flat_{names[0]}.size):")
            lines.append("        " + statement.format(**{name: f"flat_{name}[i]" for name in names}))
        else:
            lines.append(f"    for index in np.ndindex({names[0]}.shape):")
            lines.append("        " + statement.format(**{name: f"{name}[index]" for name in names}))
        lines.append(f"    return {result}")
        return function_from("elementwise", "\n".join(lines) + "\n", FILE, {"np": np, "apart": apart})

    typing = f"def typed({parameters}):\n    return written({', '.join(names)})\n"
    overload(stub, strict=False)(function_from("typed", typing, FILE, {"written": written}))
    return stub


def _flat(kinds: tuple[Any, ...], *, in_order: bool) -> str | None:
    """The expression of an array with one axis over the same memory, if there is one for all of some types."""
    layouts = {kind.layout for kind in kinds}
    if kinds[0].ndim == 1:
        return "{0}"
    known = {"C": "{0}.ravel()"} if in_order else {"C": "{0}.ravel()", "F": "{0}.T.ravel()"}
    return known.get(layouts.pop()) if len(layouts) == 1 else None


def apart(source: Any, target: Any) -> Any:
    """An array that is read element by element while another one is written: a copy of it, where the two overlap."""
    raise NotImplementedError


@overload(apart, strict=False)
def _apart_typed(source: Any, target: Any) -> Any:
    if source.ndim == 0:
        return lambda source, target: source

    def apart(source, target):  # type: ignore[no-untyped-def]
        if overlaps(source, target) and not same(source, target):
            return as_type(copied(source), source_type)
        return source

    source_type = source
    return apart


_APART: Final = "b = apart(b, a)"
clear = _elementwise("clear", "a", "{a} = 0")
assign = _elementwise("assign", "a, b", "{a} = {b}", before=_APART)
add = _elementwise("add", "a, b", "{a} += {b}", before=_APART)
subtract = _elementwise("subtract", "a, b", "{a} -= {b}", before=_APART)
multiply = _elementwise("multiply", "a, _factor", "{a} *= _factor")
divide = _elementwise("divide", "a, _divisor", "{a} /= _divisor")
add_multiple = _elementwise("add_multiple", "a, b, _factor", "{a} += _factor * {b}", before=_APART)

of_reals = _elementwise("of_reals", "a, b", "total += {a} * {b}", before="total = 0.0", result="total")
of_complex = _elementwise("of_complex", "a, b", "total += np.conj({a}) * {b}", before="total = 0j", result="total")
squares_of_reals = _elementwise("squares_of_reals", "a", "total += {a} * {a}", before="total = 0.0", result="total")
squares_of_complex = _elementwise(
    "squares_of_complex", "a", f"total += {SQUARE.format('{a}')}", before="total = 0.0", result="total"
)


def zeros(array: Any) -> Any:
    """Zeros in the shape of an array, in the order of C unless it is in that of Fortran."""
    return np.zeros_like(array)


overload(zeros, strict=False)(lambda array: lambda array: np.zeros_like(array))


def copied(array: Any) -> Any:
    """A copy, as `zeros` makes arrays."""
    raise NotImplementedError


@overload(copied, strict=False)
def _copied_typed(array: Any) -> Any:
    if array.layout == "C" or array.ndim == 0:
        return lambda array: array.copy()

    def copy(array):  # type: ignore[no-untyped-def]
        made = np.empty_like(array)
        for index in np.ndindex(array.shape):
            made[index] = array[index]
        return made

    return copy


def fitted(found: Any, like: Any) -> Any:
    """The result of a mapped function for an array, as an array of the same type in memory of its own."""
    raise NotImplementedError


@overload(fitted, strict=False)
def _fitted_typed(found: Any, like: Any) -> Any:
    is_scalar = like.ndim == 0 and isinstance(found, types.Number)
    if not is_scalar and not (isinstance(found, types.Array) and found.ndim == like.ndim):
        raise misfit(found, like)
    of = found if is_scalar else found.dtype
    if isinstance(of, types.Complex) and not isinstance(like.dtype, types.Complex):
        raise misfit(found, like)
    if is_scalar:
        return _filled
    wanted = "F" if like.layout == "F" else "C"
    if found.dtype == like.dtype and found.layout == wanted and found.mutable:
        return _checked
    return _converted


def _filled(found, like):  # type: ignore[no-untyped-def]
    made = np.empty_like(like)
    made[()] = found
    return made


def _checked(found, like):  # type: ignore[no-untyped-def]
    check_shape(found, like)
    return found


def _converted(found, like):  # type: ignore[no-untyped-def]
    check_shape(found, like)
    made = np.empty_like(like)
    assign(made, found)
    return made


def write(target: Any, found: Any) -> None:
    """Overwrites an array with what a function returns for it."""
    raise NotImplementedError


@overload(write, strict=False)
def _write_typed(target: Any, found: Any) -> Any:
    def write(target, found):  # type: ignore[no-untyped-def]
        assign(target, fitted(found, target))

    return write


def check_shape(array: Any, like: Any) -> None:
    """Refuses arrays of different shapes, which are in the same place of structures."""
    raise NotImplementedError


@overload(check_shape, strict=False)
def _check_shape_typed(array: Any, like: Any) -> Any:
    def check(array, like):  # type: ignore[no-untyped-def]
        if array.shape != like.shape:
            raise SignatureError(
                "the structures differ: arrays at the same place have different shapes",
                "pass structures of the same form, such as those made by irad.data.make_zero and irad.data.copy",
                "a function of several structures is called with their values at the same place",
                HERE,
            )

    return check


# --- flat arrays ------------------------------------------------------------------------------------------------------


def length(vector: Any) -> int:
    """Number of doubles of a vector."""
    raise NotImplementedError


@overload(length, strict=False)
def _length_typed(vector: Any) -> Any:
    if isinstance(vector, types.Array):
        width = 2 if isinstance(vector.dtype, types.Complex) else 1
        return lambda vector: width * vector.size
    width = 2 if isinstance(vector, types.Complex) else 1
    return lambda vector: width


read = _elementwise("read", "a, _out, _at", "_out[_at] = {a}; _at += 1", in_order=True)
read_complex = _elementwise(
    "read_complex", "a, _out, _at", "_out[_at] = {a}.real; _out[_at + 1] = {a}.imag; _at += 2", in_order=True
)
refill = _elementwise("refill", "a, _source, _at", "{a} = _source[_at]; _at += 1", in_order=True)
refill_complex = _elementwise(
    "refill_complex", "a, _source, _at", "{a} = complex(_source[_at], _source[_at + 1]); _at += 2", in_order=True
)


@register_jitable
def refilled(like, source, at):  # type: ignore[no-untyped-def]
    """A new array with elements from a flat one."""
    made = np.empty_like(like)
    refill(made, source, at)
    return made


@register_jitable
def refilled_complex(like, source, at):  # type: ignore[no-untyped-def]
    """A new array of complex numbers with elements from a flat array."""
    made = np.empty_like(like)
    refill_complex(made, source, at)
    return made


def several(found: Any, like: Any) -> Any:
    """`fitted` for each of several results."""
    raise NotImplementedError


@overload(several, strict=False)
def _several_typed(found: Any, like: Any) -> Any:
    if not isinstance(found, types.BaseTuple):
        raise misfit(found, like)
    items = "".join(f"fitted(found[{i}], like), " for i in range(len(found)))
    return function_from("several", f"def several(found, like):\n    return ({items})\n", FILE, {"fitted": fitted})
