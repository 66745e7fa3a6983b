"""How `irad.autodiff` is told what each argument is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.task import AutodiffAnnotation, Role


@dataclass(frozen=True, slots=True, eq=False)
class Const(AutodiffAnnotation):
    """A constant: no derivative with respect to it, and none flows through it.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def product(x, factor):
        ...     return x * factor
        >>> irad.autodiff(irad.Reverse, product, irad.Active(2.0), irad.Const(5.0))
        (5.0, None)
    """

    value: Any


Constant = Const


@dataclass(frozen=True, slots=True, eq=False)
class Cache(AutodiffAnnotation):
    """Workspace: memory that the function writes before it reads, and whose content matters to nobody else.

    Active values may pass through it; irad makes a shadow for it, and drops it after the call. What it holds before is
    constant. An array that is passed as `Const`, on the other hand, is a promise that no active value is stored there.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def total(x, work):
        ...     work[:] = x * x
        ...     return work.sum()
        >>> x, x_shadow = np.array([1.0, 2.0]), np.zeros(2)
        >>> irad.autodiff(irad.Reverse, total, irad.Duplicated(x, x_shadow), irad.Cache(np.empty(2)))
        (None, None)
        >>> x_shadow
        array([2., 4.])
    """

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Active(AutodiffAnnotation):
    """A number, or a tuple of numbers; its derivative is returned.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def area(sides):
        ...     return sides[0] * sides[1]
        >>> irad.autodiff(irad.Reverse, area, irad.Active((2.0, 3.0)))
        ((3.0, 2.0),)
    """

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Duplicated(AutodiffAnnotation):
    """An array, record, list, dictionary or instance, or a tuple of these, with its shadow.

    In forward mode it may be a number as well, with its tangent. In reverse mode, on entry the shadow holds the
    cotangent of the array's final contents; on return, that of its initial contents. The derivative of an array that
    the function only reads is added to its shadow. `irad.data.make_zero` makes shadows of lists, dictionaries and
    instances; in forward mode they are only read.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def square_all(x):
        ...     x[:] = x * x
        >>> x, x_shadow = np.array([1.0, 2.0]), np.ones(2)
        >>> irad.autodiff(irad.Reverse, square_all, irad.Duplicated(x, x_shadow), seed=None)
        (None,)
        >>> x, x_shadow
        (array([1., 4.]), array([2., 4.]))

    In forward mode the shadow holds the tangent of the array: on entry of its initial, on return of its final contents.

        >>> x, x_tangent = np.array([1.0, 2.0]), np.ones(2)
        >>> irad.autodiff(irad.Forward, square_all, irad.Duplicated(x, x_tangent))
        >>> x, x_tangent
        (array([1., 4.]), array([2., 4.]))
    """

    value: Any
    shadow: Any


@dataclass(frozen=True, slots=True, eq=False)
class DuplicatedNoNeed(AutodiffAnnotation):
    """Like `Duplicated`, for an array whose contents the caller does not need afterwards.

    What the array holds afterwards is unspecified. Functions with a rule need not compute it.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def squares(x, out):
        ...     out[:] = x * x
        >>> x, x_shadow = np.array([1.0, 2.0]), np.zeros(2)
        >>> out, out_shadow = np.empty(2), np.ones(2)
        >>> read, written = irad.Duplicated(x, x_shadow), irad.DuplicatedNoNeed(out, out_shadow)
        >>> irad.autodiff(irad.Reverse, squares, read, written, seed=None)
        (None, None)
        >>> x_shadow
        array([2., 4.])
    """

    value: Any
    shadow: Any


@dataclass(frozen=True, slots=True, eq=False)
class MixedDuplicated(AutodiffAnnotation):
    """A tuple of floats and arrays, with a shadow of the same structure.

    The derivatives of arrays are added to the arrays of the shadow; those of floats are returned. The result has the
    structure of the value, with the shadow's arrays and the derivatives of the floats.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def scaled_sum(model):
        ...     scale, weights = model
        ...     return scale * weights.sum()
        >>> model, shadow = (3.0, np.array([1.0, 2.0])), (0.0, np.zeros(2))
        >>> irad.autodiff(irad.Reverse, scaled_sum, irad.MixedDuplicated(model, shadow))
        ((3.0, array([3., 3.])),)
    """

    value: Any
    shadow: Any


@dataclass(frozen=True, slots=True, eq=False)
class BatchDuplicated(AutodiffAnnotation):
    """As `Duplicated`, with a tuple of shadows: derivatives in several directions, for one run of the function.

    All arguments that are not constant have as many. In reverse mode the shadows must not overlap.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def area(sides):
        ...     return sides[0] * sides[1]
        >>> sides = np.array([2.0, 3.0])
        >>> directions = np.array([1.0, 0.0]), np.array([0.0, 1.0])
        >>> irad.autodiff(irad.Forward, area, irad.BatchDuplicated(sides, directions))
        (3.0, 2.0)

    In reverse mode a direction is a cotangent of the results:

        >>> @njit
        ... def sum_and_product(x):
        ...     return x.sum(), x.prod()
        >>> shadows = np.zeros(2), np.zeros(2)
        >>> seeds = (1.0, 0.0), (0.0, 1.0)
        >>> irad.autodiff(irad.Reverse, sum_and_product, irad.BatchDuplicated(sides, shadows), seed=seeds)
        (None,)
        >>> shadows
        (array([1., 1.]), array([3., 2.]))
    """

    value: Any
    shadow: Any


@dataclass(frozen=True, slots=True, eq=False)
class BatchDuplicatedNoNeed(AutodiffAnnotation):
    """Like `BatchDuplicated`, for an array whose contents the caller does not need afterwards.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def squares(x, out):
        ...     out[:] = x * x
        >>> x, out = np.array([1.0, 2.0]), np.empty(2)
        >>> first, second = np.zeros(2), np.zeros(2)
        >>> read = irad.BatchDuplicated(x, (np.array([1.0, 0.0]), np.array([0.0, 1.0])))
        >>> irad.autodiff(irad.Forward, squares, read, irad.BatchDuplicatedNoNeed(out, (first, second)))
        (None, None)
        >>> first, second
        (array([2., 0.]), array([0., 4.]))
    """

    value: Any
    shadow: Any


@dataclass(frozen=True, slots=True, eq=False)
class BatchMixedDuplicated(AutodiffAnnotation):
    """As `MixedDuplicated`, with a tuple of shadows, one for each direction; the result has a tuple of derivatives.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def scaled(model):
        ...     scale, weights = model
        ...     return scale * weights.sum(), scale
        >>> model, shadows = (3.0, np.ones(2)), ((0.0, np.zeros(2)), (0.0, np.zeros(2)))
        >>> seeds = (1.0, 0.0), (0.0, 1.0)
        >>> irad.autodiff(irad.Reverse, scaled, irad.BatchMixedDuplicated(model, shadows), seed=seeds)
        (((2.0, array([3., 3.])), (1.0, array([0., 0.]))),)
    """

    value: Any
    shadow: Any


Annotation = (
    Const
    | Cache
    | Active
    | Duplicated
    | DuplicatedNoNeed
    | MixedDuplicated
    | BatchDuplicated
    | BatchDuplicatedNoNeed
    | BatchMixedDuplicated
)

ROLES: dict[type, Role] = {
    Const: Role.CONST,
    Cache: Role.CONST,
    Active: Role.ACTIVE,
    Duplicated: Role.SHADOW,
    DuplicatedNoNeed: Role.SHADOW,
    MixedDuplicated: Role.MIXED,
    BatchDuplicated: Role.SHADOW,
    BatchDuplicatedNoNeed: Role.SHADOW,
    BatchMixedDuplicated: Role.MIXED,
}
FORWARD_ROLES: dict[type, Role] = {
    Const: Role.CONST,
    Cache: Role.CONST,
    Duplicated: Role.TANGENT,
    DuplicatedNoNeed: Role.TANGENT,
    MixedDuplicated: Role.TANGENT,
    BatchDuplicated: Role.TANGENT,
    BatchDuplicatedNoNeed: Role.TANGENT,
    BatchMixedDuplicated: Role.TANGENT,
}
NO_NEED: Final = (DuplicatedNoNeed, BatchDuplicatedNoNeed)
BATCHES: Final = (BatchDuplicated, BatchDuplicatedNoNeed, BatchMixedDuplicated)


def in_order(function: Callable[..., Any], given: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
    """The annotations of a call in the order of the function's parameters.

    A parameter that has a default and is passed over stands for a constant.

    Args:
        function: a Python function.
        given: the annotations by position.
        named: those by name.

    Raises:
        SignatureError: the function has no such parameters.
    """
    if not named:
        return tuple(given)
    signature = inspect.signature(function)
    try:
        bound = signature.bind(*given, **named)
    except TypeError as misfit:
        raise SignatureError(
            f"{function.__qualname__} cannot be called with these annotated arguments: {misfit}",
            f"annotate the arguments of {function.__qualname__}{signature}",
            "arguments are annotated by position or by the name of their parameter",
            SourceLocation.of(function),
        ) from None
    last = max(list(signature.parameters).index(name) for name in bound.arguments)
    found: list[Any] = []
    for parameter in list(signature.parameters.values())[: last + 1]:
        if parameter.kind is parameter.VAR_POSITIONAL:
            found.extend(bound.arguments.get(parameter.name, ()))
        else:
            found.append(bound.arguments.get(parameter.name, Const(parameter.default)))
    return tuple(found)


def width_of(arguments: tuple[Any, ...]) -> int | None:
    """How many directions the annotations of a call have, 0 where that cannot be told; None where none is a batch."""
    for argument in arguments:
        if isinstance(argument, BATCHES):
            shadows = getattr(argument.shadow, "types", argument.shadow)  # in compiled code their types are known
            return len(shadows) if isinstance(shadows, tuple) else 0
    return None
