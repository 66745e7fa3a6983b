"""`autodiff`: the derivative of any function, each argument annotated."""

from __future__ import annotations

import dataclasses
from collections import namedtuple
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from numba.core import types
from numba.core.datamodel import models
from numba.core.registry import CPUDispatcher
from numba.core.types import Type

from irad.api.annotations import (
    BATCHES,
    FORWARD_ROLES,
    NO_NEED,
    ROLES,
    WITHOUT_SHADOW,
    Active,
    Annotation,
    AutodiffMode,
    BatchDuplicated,
    BatchDuplicatedNoNeed,
    BatchMixedDuplicated,
    Cache,
    Const,
    Duplicated,
    DuplicatedNoNeed,
    MixedDuplicated,
    active_in_forward_mode,
    has_one_direction,
    in_order,
    shadows_of,
    width_of,
)
from irad.api.functions import check_options, options_or_default, primal_of, remembered
from irad.api.makers import MAKERS, derivative_of, maker
from irad.api.nopython import MOST_ARGUMENTS, function_behind
from irad.api.selection import callee_of
from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.dispatcher import DerivativeDispatcher
from irad.frontend.calls.lanes import no_directions
from irad.frontend.calls.task import Returns, Role, Seed, Task
from irad.frontend.generated import function_from
from irad.frontend.numba.messages import described, location_of
from irad.frontend.offered import offer, offer_type
from irad.frontend.packing.packed import is_structure
from irad.frontend.packing.shadows import Shadows, argument_names
from irad.options import Options
from irad.passes.mode import forward_mode, reverse_mode


class _Default:
    """The seed that was not given."""

    def __repr__(self) -> str:
        return "1 for a float"


_DEFAULT: Final = _Default()
_LONGEST_REPR: Final = 30
_RETURNING: Final[dict[type, type]] = {
    Duplicated: MixedDuplicated,
    DuplicatedNoNeed: MixedDuplicated,
    BatchDuplicated: BatchMixedDuplicated,
    BatchDuplicatedNoNeed: BatchMixedDuplicated,
}
"""The annotation of a structure with numbers, whose shadow is written to by Python."""


@maker
def autodiff(
    mode: AutodiffMode,
    f: Callable[..., Any],
    *arguments: Annotation,
    seed: Any = _DEFAULT,
    options: Options | None = None,
    **named: Annotation,
) -> Any:
    """Runs a function and its derivative, treating each argument as its annotation says.

    Args:
        mode: `irad.Reverse` or `irad.ReverseWithPrimal`, `irad.Forward` or `irad.ForwardWithPrimal`.
        f: the function, as in `irad.grad`; it may return anything.
        arguments: an annotated argument for each parameter: `irad.Const`, `irad.Cache`, `irad.Active`,
            `irad.Duplicated`, `irad.DuplicatedNoNeed` or `irad.MixedDuplicated`; for several directions at once
            `irad.BatchDuplicated`, `irad.BatchDuplicatedNoNeed` or `irad.BatchMixedDuplicated`.
        seed: in reverse mode, the cotangent of the return value, with its structure and None for parts without one. The
            default is 1 for a float; arrays and tuples need one. ``seed=None``: the value has no cotangent. For several
            directions a tuple with one for each, 1 by default.
        options: how the derivative is created; see `irad.Options`.
        named: annotated arguments by the name of their parameter; not in compiled code.

    Returns:
        In reverse mode, a tuple with one entry per argument, in the order of the parameters: the derivative for
        ``Active`` and ``MixedDuplicated``, None for the others; `irad.ReverseWithPrimal` gives ``(that tuple, value)``.
        In forward mode, the tangent of the value in the direction that the shadows hold, with None for parts without a
        derivative; `irad.ForwardWithPrimal` gives ``(tangent, value)``. For several directions each derivative is a
        tuple with one for each.

    Raises:
        SignatureError: an annotation, a shadow or the seed does not fit. Nothing has run then, unless the seed has a
            different shape from the returned array.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def weighted(x, weight):
        ...     return weight * np.sum(x)
        >>> x, x_shadow = np.array([1.0, 2.0]), np.zeros(2)
        >>> irad.autodiff(irad.Reverse, weighted, irad.Duplicated(x, x_shadow), irad.Active(3.0))
        (None, 3.0)
        >>> x_shadow
        array([3., 3.])
    """
    _check_mode(mode)
    primal, leading = callee_of(f)
    check_options(options)
    arguments = in_order(primal.py_func, (*map(Const, leading), *arguments), named)
    shadows = None
    if not mode.is_forward and any(map(_is_structure_with_shadow, arguments)):
        shadows, arguments = _with_numbers_returned(primal, arguments)
    kinds = tuple(map(type, arguments))
    source = Seed.ONE if seed is _DEFAULT else Seed.NONE if seed is None else Seed.GIVEN
    key = (mode, kinds, source, options, width_of(arguments))
    derivative = remembered(primal, key, lambda: autodiff_of(primal, mode, arguments, source, options))
    extras = [a.shadow for a in arguments if not isinstance(a, WITHOUT_SHADOW)]
    if source is Seed.GIVEN:
        extras.append(seed)
    found = derivative(*extras, *[a.value for a in arguments])
    if mode.is_forward:
        return found
    gradients, *value = found if mode.has_primal else (found,)
    remaining = iter(gradients)
    aligned = tuple(next(remaining) if ROLES[kind].is_returned else None for kind in kinds)
    if shadows is not None:
        aligned = _with_numbers_added(shadows, arguments, aligned)
    aligned = aligned[len(leading) :]
    return (aligned, value[0]) if value else aligned


def _is_structure_with_shadow(argument: Any) -> bool:
    return type(argument) in _RETURNING and is_structure(argument.value)


def _with_numbers_returned(primal: CPUDispatcher, arguments: tuple[Any, ...]) -> tuple[Shadows, tuple[Any, ...]]:
    """The shadows of structures, and annotations with which the derivatives with respect to numbers are returned."""
    shadows, found, names = Shadows(), list(arguments), argument_names(primal.py_func, len(arguments))
    for position, argument in enumerate(arguments):
        if not _is_structure_with_shadow(argument):
            continue
        if shadows.open(position, names[position], argument.value, shadows_of(argument)):
            found[position] = _RETURNING[type(argument)](argument.value, argument.shadow)
    shadows.check()
    return shadows, tuple(found)


def _with_numbers_added(shadows: Shadows, arguments: tuple[Any, ...], derivatives: tuple[Any, ...]) -> tuple[Any, ...]:
    """Adds the derivatives with respect to numbers to the shadows that hold them; the others are left."""
    left = list(derivatives)
    for position in shadows.numbers:
        if left[position] is not None:
            is_batch = type(arguments[position]) in BATCHES
            found = left[position] if is_batch else (left[position],)
            shadows.add(position, arguments[position].value, found)
            left[position] = None
    return tuple(left)


def _check_mode(mode: Any) -> None:
    if isinstance(mode, AutodiffMode) and not mode.is_split:
        return
    if isinstance(mode, AutodiffMode):
        raise SignatureError(
            f"irad.autodiff is given {mode!r}, whose sweeps are called separately",
            f"(a) augmented, reverse = irad.split({mode!r}, f, …) or (b) irad.autodiff({mode(split=False)!r}, f, …)",
            "irad.autodiff runs both sweeps in one call",
        )
    is_function = callable(mode) and not isinstance(mode, type)
    given = f"the function {getattr(mode, '__name__', mode)}" if is_function else repr(mode)
    call = f"irad.autodiff(irad.Reverse, {getattr(mode, '__name__', 'f') if is_function else 'f'}, …)"
    raise SignatureError(
        f"the first argument of irad.autodiff is {given}, which is not a mode",
        f"(a) {call} or (b) irad.ReverseWithPrimal in place of irad.Reverse, which also returns the value, or "
        "(c) irad.Forward or irad.ForwardWithPrimal, for the derivative in a direction",
        "the order is irad.autodiff(mode, function, arguments…)",
    )


def _shortened(argument: Any) -> str:
    text = " ".join(repr(argument).split())
    return text if len(text) <= _LONGEST_REPR else f"a {type(argument).__name__}"


def autodiff_of(
    primal: CPUDispatcher,
    mode: AutodiffMode,
    arguments: tuple[Any, ...],
    seed: Seed,
    options: Options | None,
    is_linear: bool = False,
) -> DerivativeDispatcher:
    """The compiled callable that `autodiff` calls: it takes shadows, the seed if one is given, then the arguments.

    With ``is_linear``, a function that is not linear in its active arguments is refused.

    Raises:
        SignatureError: an argument has no annotation, or one that does not go with the mode.
    """
    for position, argument in enumerate(arguments):
        if type(argument) not in FORWARD_ROLES.keys() | ROLES.keys():
            raise SignatureError(
                f"argument {position} of {primal.py_func.__qualname__} has no annotation: {_shortened(argument)}",
                "(a) irad.Const(x), for a constant, or (b) irad.Active(x), for a number, or (c) irad.Duplicated(a, "
                "da), "
                "for an array with its shadow, or (d) irad.MixedDuplicated(x, dx), for a tuple of both",
                "the annotation of an argument says whether it has a derivative, and where that goes",
                location_of(primal.py_func),
            )
    if mode.is_forward:
        _check_forward(primal, arguments, seed)
    width = check_width(primal, arguments, is_forward=mode.is_forward)
    kinds = tuple(map(type, arguments))
    task = annotated_task(mode, kinds, FORWARD_ROLES if mode.is_forward else ROLES, options_or_default(options))
    task = replace(
        task,
        seed=Seed.NONE if mode.is_forward else seed,
        mode=(forward_mode if mode.is_forward else reverse_mode)(width or 1),
        is_batched=width is not None,
        lent=frozenset(i for i, kind in enumerate(kinds) if kind is Cache),
        is_linear=is_linear,
    )
    rebuild = (autodiff_of, (primal, mode, arguments, seed, options, is_linear))
    return derivative_of(MAKERS["autodiff"], primal, task, rebuild)


def annotated_task(mode: AutodiffMode, kinds: tuple[type, ...], roles: Mapping[type, Role], options: Options) -> Task:
    """The task for annotated arguments.

    Args:
        mode: the requested mode.
        kinds: the classes of the annotations.
        roles: meaning of each of these.
        options: options of the derivative.
    """
    return Task(
        roles=tuple((i, roles[kind]) for i, kind in enumerate(kinds) if roles[kind] is not Role.CONST),
        returns=Returns.GRADIENT_AND_VALUE if mode.has_primal else Returns.GRADIENT,
        options=options,
        unneeded=frozenset(i for i, kind in enumerate(kinds) if kind in NO_NEED),
    )


def _check_forward(primal: CPUDispatcher, arguments: tuple[Any, ...], seed: Seed) -> None:
    """Checks that the annotations, and the seed, are of forward mode."""
    name = primal.py_func.__qualname__
    for position, argument in enumerate(arguments):
        if isinstance(argument, Active):
            raise active_in_forward_mode(
                f"argument {position} of {name}",
                "in forward mode the derivative is that of the value, in the direction that the tangents give",
                location_of(primal.py_func),
            )
    if seed is not Seed.ONE:
        raise SignatureError(
            f"{name} is given a seed in forward mode",
            "leave the seed out; the direction is given by the tangents: irad.Duplicated(x, dx)",
            "a seed is the cotangent of the value, which reverse mode starts from",
            location_of(primal.py_func),
        )


def check_width(primal: CPUDispatcher, arguments: tuple[Any, ...], *, is_forward: bool) -> int | None:
    """Number of directions of a call's annotations; None if none of them is a batch.

    Raises:
        SignatureError: that is not known, or some have one direction only.
    """
    width = width_of(arguments)
    if width == 0:
        raise no_directions(primal)
    check_batches(primal, tuple(map(type, arguments)), is_forward=is_forward)
    return width


def check_batches(primal: CPUDispatcher, kinds: tuple[type, ...], *, is_forward: bool) -> bool:
    """True if some annotations of a call are batches.

    Raises:
        SignatureError: others have one direction only.
    """
    if not any(kind in BATCHES for kind in kinds):
        return False
    if any(map(has_one_direction, kinds)):
        what = "tangents" if is_forward else "shadows"
        raise SignatureError(
            f"some arguments of {primal.py_func.__qualname__} have {what} in several directions, others in one",
            "use irad.BatchDuplicated for each of them, with zeros where a direction leaves an argument as it is",
            f"a direction consists of the {what} of all arguments",
            location_of(primal.py_func),
        )
    return True


# In compiled code an annotation is a named tuple, a mode is a type of its own.

_HELD: Final[dict[Any, Any]] = {
    kind: namedtuple(kind.__name__, [field.name for field in dataclasses.fields(kind)]) for kind in ROLES
}
_KINDS: Final = {held: kind for kind, held in _HELD.items()}


class ModeType(types.Type):
    """The type of a mode, one for each: which it is must be known when the caller is compiled."""

    def __init__(self, mode: AutodiffMode) -> None:
        self.mode = mode
        super().__init__(name=repr(mode))


offer_type(ModeType, models.OpaqueModel, values=(AutodiffMode, ModeType))


def annotation_of(numba_type: Any) -> Annotation | None:
    """The annotation of a Numba type, with types in place of values; None for types of anything else."""
    kind = _KINDS.get(getattr(numba_type, "instance_class", None))
    return None if kind is None else kind(*numba_type.types)


def annotation_class_of(numba_type: Type) -> Any:
    """The class that an annotation is of, for its type or that of the class itself; else a `Described`."""
    if isinstance(numba_type, types.Function) and numba_type.typing_key in _HELD:
        return numba_type.typing_key
    found = annotation_of(numba_type)
    return Described(numba_type) if found is None else type(found)


class Described:
    """Stands for an argument without annotation in the error about it."""

    def __init__(self, numba_type: Type) -> None:
        self.numba_type = numba_type

    def __repr__(self) -> str:
        return described(self.numba_type)


def _register(kind: type) -> None:
    held = _HELD[kind]
    if kind in WITHOUT_SHADOW:
        offer(kind, lambda value: lambda value: held(value), literals=False)
    else:
        offer(kind, lambda value, shadow: lambda value, shadow: held(value, shadow), literals=False)


for _kind in _HELD:
    _register(_kind)


# The call.

_NAMES: Final = tuple(f"a{i}" for i in range(MOST_ARGUMENTS))
_PARAMETERS: Final = f"mode, f, {', '.join(f'{name}=_absent' for name in _NAMES)}, seed=_default, options=None"
_ABSENT: Final = "irad: no argument"
_DEFAULT_IN_CODE: Final = "irad: the default seed"


def autodiff_typed(mode: Any, f: Any, arguments: tuple[Any, ...], seed: Any, options: Any) -> Callable[..., Any]:
    """Python code of a call, which Numba compiles, for the types of its arguments.

    Raises:
        SignatureError: that does not fit.
    """
    if not isinstance(mode, ModeType):
        raise _misfit(
            f"the first argument of irad.autodiff is {described(mode)}, which is not a mode",
            "write irad.Reverse, irad.ReverseWithPrimal, irad.Forward or irad.ForwardWithPrimal there: "
            "irad.autodiff(irad.Reverse, f, …)",
        )
    if options is not None:
        raise _misfit(
            "irad.autodiff inside compiled code is given options",
            "leave the options to the environment (IRAD_PLAN, IRAD_STRICT, …), or create the derivative outside: "
            "irad.value_and_grad(f, …, options=…)",
        )
    given = tuple(each for each in arguments if isinstance(each, types.Type))
    return _lowered(mode, function_behind(f), given, seed if isinstance(seed, types.Type) else None)


def _lowered(mode: Any, function: Any, arguments: tuple[Any, ...], seed: Any) -> Callable[..., Any]:
    annotations = tuple(annotation_of(each) or Described(each) for each in arguments)
    source = Seed.ONE if seed is None else Seed.NONE if seed == types.none else Seed.GIVEN
    derivative = autodiff_of(primal_of(function), mode.mode, annotations, source, None)
    kinds = [type(each) for each in annotations]
    shadows = [f"{name}.shadow" for name, kind in zip(_NAMES, kinds, strict=False) if hasattr(kind, "shadow")]
    seeds = ["seed"] if source is Seed.GIVEN else []
    values = [f"{name}.value" for name, _ in zip(_NAMES, kinds, strict=False)]
    call = f"derivative({', '.join([*shadows, *seeds, *values])})"
    if mode.mode.is_forward:
        return _function("autodiff", f"    return {call}\n", {"derivative": derivative})
    with_value = mode.mode.has_primal
    gradients = "found[0]" if with_value else "found"
    numbers = iter(range(len(kinds)))
    items = [f"{gradients}[{next(numbers)}]" if ROLES[kind].is_returned else "None" for kind in kinds]
    aligned = f"({''.join(item + ', ' for item in items)})"
    result = f"({aligned}, found[1])" if with_value else aligned
    body = f"    found = {call}\n    return {result}\n"
    return _function("autodiff", body, {"derivative": derivative})


def _function(name: str, body: str, scope: Mapping[str, object]) -> Callable[..., Any]:
    """A function with the parameters of `irad.autodiff`, written out: Numba takes those of a call from them."""
    defaults = {"_absent": _ABSENT, "_default": _DEFAULT_IN_CODE}
    return function_from(name, f"def {name}({_PARAMETERS}):\n{body}", "irad.autodiff", {**scope, **defaults})


def _misfit(problem: str, remedy: str) -> SignatureError:
    return SignatureError(
        problem, remedy, "the derivative is created when the caller is compiled", SourceLocation.here()
    )


_TYPING: Final = f"    return typed(mode, f, ({', '.join(_NAMES)}), seed, options)\n"
offer(autodiff, _function("typing", _TYPING, {"typed": autodiff_typed}))
