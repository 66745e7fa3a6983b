"""The arguments of `irad.autodiff` and `irad.split`: a mode, and an annotation for each argument, with its shadow."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from irad.errors import HERE, SignatureError, SourceLocation
from irad.frontend.calls.raising import public
from irad.frontend.calls.task import AutodiffAnnotation, Role
from irad.frontend.offered import refuse_in_compiled_code
from irad.message import with_article


@dataclass(frozen=True, slots=True, eq=False)
class Const(AutodiffAnnotation):
    """A constant: there is no derivative with respect to it, and none flows through it.

    An array that is passed as a constant is a promise that no active value is stored in it; see `irad.Cache`.
    `irad.Constant` is another name for it.

    Args:
        value: the argument: anything that the function takes.

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
"""Another name for `irad.Const`.

Examples:
    >>> import irad
    >>> irad.Constant is irad.Const
    True
"""


@dataclass(frozen=True, slots=True, eq=False)
class Cache(AutodiffAnnotation):
    """Workspace: memory that the function writes before it reads, and whose contents nobody else needs.

    Active values may be stored in it: irad creates a shadow for it and releases that after the call. Its contents
    before the call are constant. An array that is passed as `irad.Const`, by contrast, must not receive active values.

    Args:
        value: an array, record, list, dictionary or instance, or a tuple of these.

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
    """A number, or a tuple of numbers, whose derivative is returned; for reverse mode.

    Args:
        value: a float or complex number, or a tuple that holds some.

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
    """An argument with its shadow: memory of the same structure that holds the derivative.

    In reverse mode the shadow holds, on entry, the cotangent of the final contents of the argument; on return, that of
    the initial contents. If the function only reads the argument, its derivative is added to the shadow. In forward
    mode the shadow holds the tangent: on entry that of the initial contents, on return that of the final contents.

    Args:
        value: an array, record, list, dictionary or instance, or a tuple of these; in forward mode also a number.
        shadow: its shadow, of the same type, shape and strides: of an array, `irad.shadow_like` makes one; of lists,
            dictionaries and instances, `irad.data.make_zero` does. In forward mode those of lists, dictionaries and
            instances are only read; the shadow of a number is its tangent.

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

    In forward mode:

        >>> x, x_tangent = np.array([1.0, 2.0]), np.ones(2)
        >>> irad.autodiff(irad.Forward, square_all, irad.Duplicated(x, x_tangent))
        >>> x, x_tangent
        (array([1., 4.]), array([2., 4.]))
    """

    value: Any
    shadow: Any


@dataclass(frozen=True, slots=True, eq=False)
class DuplicatedNoNeed(AutodiffAnnotation):
    """An argument with its shadow, as `irad.Duplicated`, whose final contents the caller does not need.

    The contents are unspecified after the call. The rules of functions need not compute them.

    Args:
        value: the argument, as in `irad.Duplicated`.
        shadow: its shadow, as in `irad.Duplicated`.

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
    structure of the tuple, with the arrays of the shadow and the derivatives of the floats.

    Args:
        value: a tuple of numbers and arrays, which may be nested.
        shadow: a tuple of the same structure; its numbers are not read.

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
    """An argument with several shadows: derivatives in several directions, for one run of the function.

    All arguments that are not constant have the same number of shadows. In reverse mode the shadows must not overlap.

    Args:
        value: the argument, as in `irad.Duplicated`.
        shadow: a tuple of shadows, one for each direction.

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
    """An argument with several shadows, as `irad.BatchDuplicated`, whose final contents the caller does not need.

    Args:
        value: the argument, as in `irad.Duplicated`.
        shadow: a tuple of shadows, one for each direction.

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
    """A tuple of floats and arrays with several shadows, one for each direction, as `irad.MixedDuplicated` has one.

    The result is a tuple with the derivatives in each direction.

    Args:
        value: a tuple of numbers and arrays, which may be nested.
        shadow: a tuple of shadows of the same structure, one for each direction.

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

ROLES: Final[dict[type, Role]] = {
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
FORWARD_ROLES: Final[dict[type, Role]] = {
    kind: Role.TANGENT if role.has_destination else role for kind, role in ROLES.items() if kind is not Active
}
NO_NEED: Final = (DuplicatedNoNeed, BatchDuplicatedNoNeed)
BATCHES: Final = (BatchDuplicated, BatchDuplicatedNoNeed, BatchMixedDuplicated)
WITHOUT_SHADOW: Final = (Const, Cache, Active)


def annotation_for(*, numbers: bool, memory: bool, is_batch: bool = False) -> type:
    """The annotation of an argument that takes part in reverse mode, by whether it holds numbers, and memory."""
    if not memory:
        return Active
    if is_batch:
        return BatchMixedDuplicated if numbers else BatchDuplicated
    return MixedDuplicated if numbers else Duplicated


def shadows_of(annotation: Any) -> tuple[Any, ...]:
    """The shadows of an argument, one for each direction; empty if it has none."""
    if isinstance(annotation, WITHOUT_SHADOW):
        return ()
    return tuple(annotation.shadow) if isinstance(annotation, BATCHES) else (annotation.shadow,)


def has_one_direction(kind: type) -> bool:
    """True if an annotation is not for several directions at once: it has one shadow."""
    return kind not in BATCHES and kind not in WITHOUT_SHADOW


def active_in_forward_mode(argument: str, reason: str, location: SourceLocation | None = None) -> SignatureError:
    """The error of an argument that is `Active` in forward mode."""
    return SignatureError(
        f"{argument} is irad.Active, which is for reverse mode",
        "give a number its tangent: irad.Duplicated(x, 1.0)",
        reason,
        location,
    )


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
    """Number of directions of a call's annotations: 0 if it is not known, None if none of them is a batch."""
    for argument in arguments:
        if isinstance(argument, BATCHES):
            shadows = getattr(argument.shadow, "types", argument.shadow)  # in compiled code their types are known
            return len(shadows) if isinstance(shadows, tuple) else 0
    return None


# Shadows.


@public
def shadow_like(array: Any) -> Any:
    """A new array of zeros with the shape, dtype and strides of another: a shadow for `irad.Duplicated`.

    ``np.zeros_like`` gives contiguous arrays, but a shadow has the strides of its array: that of a view (sliced,
    reversed, transposed, broadcast, a sliding window) skips and repeats elements in the same places.

    Args:
        array: a NumPy array of any dtype and strides.

    Returns:
        A new, writable array of the same shape, dtype and strides. It takes as many bytes as lie between the first and
        the last byte of ``array``.

    Raises:
        SignatureError: the argument is not a NumPy array.

    If arrays share memory and are written to, their shadows must share memory in the same way: make a shadow of the
    array that they are views of, and take the same views of it.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> view = np.arange(6.0)[::-2]
        >>> irad.shadow_like(view).strides == view.strides
        True
    """
    if not isinstance(array, np.ndarray):
        raise SignatureError(
            f"irad.shadow_like takes a NumPy array, not {with_article(type(array).__name__)}",
            "pass a NumPy array; the derivative with respect to a number is returned: irad.Active(x)",
            "a shadow is memory that holds the derivative with respect to other memory",
            HERE,
        )
    if array.size == 0 or array.flags.c_contiguous or array.flags.f_contiguous:
        order: Any = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        return np.zeros(array.shape, array.dtype, order)
    reaches = [(length - 1) * stride for length, stride in zip(array.shape, array.strides, strict=True)]
    before = -sum(reach for reach in reaches if reach < 0)
    behind = sum(reach for reach in reaches if reach > 0) + array.itemsize
    memory = np.zeros(before + behind, np.uint8)
    return np.ndarray(array.shape, array.dtype, memory, before, array.strides)


refuse_in_compiled_code(
    shadow_like,
    "(a) np.zeros_like(x), where x is contiguous or (b) create the shadow in Python and pass it as an argument",
)


# Modes, and how one is made of another.

_UNCHANGED: Any = object()


@dataclass(frozen=True, slots=True, repr=False)
class AutodiffMode:
    """The derivative that `irad.autodiff` or `irad.split` computes.

    Modes are immutable. Equal modes are interchangeable, also as keys of dictionaries, and they can be pickled. Calling
    one gives the mode with other modifiers: ``irad.Reverse(primal=True)`` is `irad.ReverseWithPrimal`.

    Attributes:
        is_forward: whether tangents are propagated from arguments to results; otherwise cotangents from results to
            arguments.
        has_primal: whether the value of the function is returned, too.
        is_split: whether the two sweeps of reverse mode are called separately, with `irad.split`.
        modified: for a split mode, the positions of the arguments whose memory the caller may change between the
            sweeps, in ascending order; None for any of them.
        repeatable: for a split mode, whether a tape may be reversed more than once.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def square(x):
        ...     return x * x
        >>> irad.autodiff(irad.Reverse, square, irad.Active(3.0))
        (6.0,)
        >>> irad.autodiff(irad.ReverseWithPrimal, square, irad.Active(3.0))
        ((6.0,), 9.0)
        >>> irad.autodiff(irad.Forward, square, irad.Duplicated(3.0, 1.0))
        6.0
        >>> irad.autodiff(irad.ForwardWithPrimal, square, irad.Duplicated(3.0, 1.0))
        (6.0, 9.0)
        >>> irad.ReverseSplit(primal=True, modified=(0,))
        irad.ReverseSplitWithPrimal(modified=(0,))
    """

    is_forward: bool = False
    has_primal: bool = False
    is_split: bool = False
    modified: tuple[int, ...] | None = None
    repeatable: bool = False

    def __post_init__(self) -> None:
        if self.modified is not None:
            object.__setattr__(self, "modified", _modified_positions(self.modified))
        if self.is_forward and self.is_split:
            raise SignatureError(
                "forward mode cannot be split",
                "(a) irad.ReverseSplit or (b) irad.Forward",
                "forward mode has one sweep",
            )
        if not self.is_split and (self.modified is not None or self.repeatable):
            raise SignatureError(
                f"{self._name} has no modifiers modified and repeatable",
                "irad.ReverseSplit(modified=…, repeatable=…), for irad.split",
                "they say what happens between two sweeps that are called separately",
            )

    def __call__(
        self,
        *,
        primal: bool = _UNCHANGED,
        split: bool = _UNCHANGED,
        modified: Iterable[int] | None = _UNCHANGED,
        repeatable: bool = _UNCHANGED,
    ) -> AutodiffMode:
        """A copy of the mode with the given settings replaced.

        Args:
            primal: whether the value is returned, too.
            split: whether the sweeps are called separately; False drops the other modifiers of split modes.
            modified: positions of the arguments whose memory may change between the sweeps; None: any of them. That
                the others stay as the forward sweep left them is the caller's promise: it makes the tape smaller.
            repeatable: whether a tape may be reversed more than once; it lives until the last reference is gone.

        Raises:
            SignatureError: the mode has no such modifier, or ``modified`` holds something else than positions.
        """
        given: dict[str, Any] = {
            "has_primal": primal,
            "is_split": split,
            "modified": modified,
            "repeatable": repeatable,
        }
        combined: dict[str, Any] = {"modified": None, "repeatable": False} if split is False else {}
        return replace(self, **combined, **{name: each for name, each in given.items() if each is not _UNCHANGED})

    @property
    def _name(self) -> str:
        return (
            f"irad.{'Forward' if self.is_forward else 'Reverse'}{'Split' * self.is_split}"
            f"{'WithPrimal' * self.has_primal}"
        )

    def __repr__(self) -> str:
        modifiers = [f"modified={self.modified}"] if self.modified is not None else []
        modifiers += ["repeatable=True"] if self.repeatable else []
        return f"{self._name}({', '.join(modifiers)})" if modifiers else self._name


def _modified_positions(given: Any) -> tuple[int, ...]:
    try:
        found = tuple(given)
    except TypeError:
        found = (given,)
    if all(type(each) is int and each >= 0 for each in found):
        return tuple(sorted(set(found)))
    raise SignatureError(
        f"modified={given!r} does not hold positions of arguments",
        "name the arguments by position, counted from 0: modified=(0, 2)",
        "modified says which arguments may change between the two sweeps",
    )


Reverse = AutodiffMode()
"""Reverse mode: `irad.autodiff` returns derivatives with respect to arguments and adds to shadows.

Examples:
    >>> import irad
    >>> from numba import njit
    >>> @njit
    ... def square(x):
    ...     return x * x
    >>> irad.autodiff(irad.Reverse, square, irad.Active(3.0))
    (6.0,)
"""
ReverseWithPrimal = Reverse(primal=True)
"""Reverse mode, with the value of the function: `irad.autodiff` returns ``(derivatives, value)``.

Examples:
    >>> import irad
    >>> from numba import njit
    >>> @njit
    ... def square(x):
    ...     return x * x
    >>> irad.autodiff(irad.ReverseWithPrimal, square, irad.Active(3.0))
    ((6.0,), 9.0)
"""
ReverseSplit = Reverse(split=True)
"""Reverse mode for `irad.split`, which makes a callable for each of the two sweeps.

Examples:
    >>> import irad
    >>> from numba import njit
    >>> @njit
    ... def square(x):
    ...     return x * x
    >>> augmented, reverse = irad.split(irad.ReverseSplit, square, irad.Active)
    >>> reverse(augmented(irad.Active(3.0)))
    (6.0,)

Calling it gives the mode with modifiers: ``modified``, the positions of the arguments that may change between the
sweeps (any by default), and ``repeatable``, whether a tape may be reversed more than once:

    >>> irad.ReverseSplit(modified=(0,), repeatable=True)
    irad.ReverseSplit(modified=(0,), repeatable=True)
"""
ReverseSplitWithPrimal = ReverseSplit(primal=True)
"""Reverse mode for `irad.split`, with the value of the function: the forward sweep returns ``(tape, value)``.

Examples:
    >>> import irad
    >>> from numba import njit
    >>> @njit
    ... def square(x):
    ...     return x * x
    >>> augmented, reverse = irad.split(irad.ReverseSplitWithPrimal, square, irad.Active)
    >>> tape, value = augmented(irad.Active(3.0))
    >>> value, reverse(tape)
    (9.0, (6.0,))
"""
Forward = AutodiffMode(is_forward=True)
"""Forward mode: `irad.autodiff` returns the tangent of the value, in the direction that the shadows hold.

Examples:
    >>> import irad
    >>> from numba import njit
    >>> @njit
    ... def square(x):
    ...     return x * x
    >>> irad.autodiff(irad.Forward, square, irad.Duplicated(3.0, 1.0))
    6.0
"""
ForwardWithPrimal = Forward(primal=True)
"""Forward mode, with the value of the function: `irad.autodiff` returns ``(tangent, value)``.

Examples:
    >>> import irad
    >>> from numba import njit
    >>> @njit
    ... def square(x):
    ...     return x * x
    >>> irad.autodiff(irad.ForwardWithPrimal, square, irad.Duplicated(3.0, 1.0))
    (6.0, 9.0)
"""
