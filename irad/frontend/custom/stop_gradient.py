"""Values cut off from differentiation, and the question whether a derivative is being made; both inside njit code.

In code that is compiled to be run, a number cut off is the number itself. In code that is compiled to be differentiated
it goes through a function that the engine knows to carry no derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import numpy as np
from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import types
from numba.core.base import BaseContext
from numba.core.typing import Signature
from numba.extending import intrinsic, overload

from irad.data.structure import mapped
from irad.errors import SignatureError
from irad.frontend.custom.ruled_calls import stopped_number
from irad.frontend.generated import function_from
from irad.frontend.numba.messages import described
from irad.frontend.numba.raw_target import RawContext
from irad.frontend.numba.target import refresh_if_compiling
from irad.frontend.offered import for_derivatives
from irad.frontend.values import layouts, tree

_Value = TypeVar("_Value")


def stop_gradient(value: _Value) -> _Value:
    """The value as a constant: no derivative flows through it.

    It works in Python and in compiled code, and in both modes. `irad.ignore_derivatives` is another name for it.

    Args:
        value: a number, an array, or a structure of these; parts without a derivative, such as integers, stay as they
            are.

    Returns:
        The value. Arrays and lists in it are copies, in plain calls too, so that the program is the same whether it is
        differentiated or not.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def loss(x):
        ...     return x * irad.stop_gradient(x)
        >>> irad.grad(loss)(3.0)
        3.0
    """
    return cast("_Value", mapped(lambda each: each.copy() if isinstance(each, np.ndarray) else each, value))


ignore_derivatives = stop_gradient
"""Another name for `irad.stop_gradient`.

Examples:
    >>> import irad
    >>> irad.ignore_derivatives is irad.stop_gradient
    True
"""


def within_autodiff() -> bool:
    """True in code that is being differentiated.

    It is a constant when code is compiled, so only one side of a branch on it is compiled.

    Returns:
        True in compiled code of which a derivative is made; False in other compiled code and in Python.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def loss(x):
        ...     return 3.0 * x if irad.within_autodiff() else 2.0 * x
        >>> loss(1.0), irad.grad(loss)(1.0)
        (2.0, 3.0)
    """
    return False


def _differentiates(context: BaseContext) -> bool:
    return isinstance(context, RawContext) and not context.form.only_runs


@intrinsic
def _within(context):  # type: ignore[no-untyped-def]
    def lower(context: BaseContext, builder: IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
        return ir.Constant(ir.IntType(1), _differentiates(context))

    return types.boolean(), lower


@overload(within_autodiff)
def _within_autodiff_typed():  # type: ignore[no-untyped-def]
    return lambda: _within()


@intrinsic
def _stop(context, number):  # type: ignore[no-untyped-def]
    def lower(context: BaseContext, builder: IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
        (value,) = values
        if not _differentiates(context) and not for_derivatives(context):
            return value
        if number in layouts.COMPLEX:
            for part in range(2):
                stopped = stopped_number(builder, builder.extract_value(value, part))
                value = builder.insert_value(value, stopped, part)
            return value
        return stopped_number(builder, value)

    return number(number), lower


@overload(stop_gradient)
def _stop_gradient_typed(value):  # type: ignore[no-untyped-def]
    if value in (*layouts.FLOATS, *layouts.COMPLEX):
        return lambda value: _stop(value)
    if isinstance(value, types.BaseTuple):
        return _of_tuple(value)
    if isinstance(value, types.Array):
        return _of_array(value)
    if isinstance(value, types.List):
        return lambda value: [stop_gradient(item) for item in value]
    if isinstance(value, types.ListType):
        return _of_typed_list
    if tree.kind_of(value) is tree.LeafKind.INERT:
        return lambda value: value
    raise SignatureError(
        f"stop_gradient is given {described(value)}",
        "pass only the parts that matter: numbers, arrays, tuples and lists of these",
        "it returns a copy, and the memory of an object would not be copied",
    )


def _of_array(array: types.Array) -> Any:
    if array.dtype not in (*layouts.FLOATS, *layouts.COMPLEX):
        return lambda value: value.copy()

    def copied(value):  # type: ignore[no-untyped-def]
        result = np.empty(value.shape, value.dtype)
        for index in np.ndindex(value.shape):
            result[index] = _stop(value[index])
        return result

    return copied


def _of_typed_list(value):  # type: ignore[no-untyped-def]
    copied = value.copy()
    for i in range(len(value)):
        copied[i] = stop_gradient(value[i])
    return copied


def _of_tuple(numba_type: types.BaseTuple) -> Any:
    items = "".join(f"stop(value[{i}]), " for i in range(len(numba_type)))
    made = f"make({items})" if isinstance(numba_type, types.BaseNamedTuple) else f"({items})"
    scope = {"stop": stop_gradient, "make": getattr(numba_type, "instance_class", None)}
    return function_from("stopped", f"def stopped(value):\n    return {made}\n", "irad.stop_gradient", scope)


refresh_if_compiling()  # the first use of irad.rules may be inside the function that Numba is typing
