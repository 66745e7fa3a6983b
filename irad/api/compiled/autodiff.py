"""``irad.autodiff(irad.Reverse, f, …)`` written inside compiled code, and the annotations and modes that it takes.

An annotation is a named tuple there, a mode is a type of its own.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping
from typing import Any, Final

from numba.core import types
from numba.core.datamodel import models

from irad.api.annotations import (
    BATCHES,
    ROLES,
    Active,
    Annotation,
    AutodiffMode,
    Cache,
    Const,
    Duplicated,
    DuplicatedNoNeed,
    MixedDuplicated,
)
from irad.api.autodiff import autodiff, autodiff_of
from irad.api.functions import primal_of
from irad.api.nopython import function_behind
from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.task import Seed
from irad.frontend.generated import function_from
from irad.frontend.numba.messages import described
from irad.frontend.offered import offer, offer_type

_ALONE: Final = (Const, Cache, Active)
_WITH_SHADOW: Final = (Duplicated, DuplicatedNoNeed, MixedDuplicated, *BATCHES)
_HELD: Final[dict[type, Any]] = {
    **{kind: namedtuple(kind.__name__, ["value"]) for kind in _ALONE},
    **{kind: namedtuple(kind.__name__, ["value", "shadow"]) for kind in _WITH_SHADOW},
}
_KINDS: Final = {held: kind for kind, held in _HELD.items()}


class ModeType(types.Type):
    """The type of a mode, one for each: which it is must be known when the caller is compiled."""

    def __init__(self, mode: AutodiffMode) -> None:
        self.mode = mode
        super().__init__(name=repr(mode))


offer_type(ModeType, models.OpaqueModel, values=(AutodiffMode, ModeType))


def annotation_of(numba_type: Any) -> Annotation | None:
    """An annotation with types in place of what it annotates, for the type of one; None for any other type."""
    kind = _KINDS.get(getattr(numba_type, "instance_class", None))
    return None if kind is None else kind(*numba_type.types)


def annotation_class_of(numba_type: Any) -> Any:
    """The class that an annotation is of, for its type or that of the class itself; else a `Described`."""
    if isinstance(numba_type, types.Function) and numba_type.typing_key in _HELD:
        return numba_type.typing_key
    found = annotation_of(numba_type)
    return Described(numba_type) if found is None else type(found)


class Described:
    """Stands for an argument without annotation in the error about it."""

    def __init__(self, numba_type: Any) -> None:
        self.numba_type = numba_type

    def __repr__(self) -> str:
        return described(self.numba_type)


def _register(kind: type) -> None:
    held = _HELD[kind]
    if kind in _ALONE:
        offer(kind, lambda value: lambda value: held(value), literals=False)
    else:
        offer(kind, lambda value, shadow: lambda value, shadow: held(value, shadow), literals=False)


for _kind in _HELD:
    _register(_kind)


# The call.

MOST_ARGUMENTS: Final = 24
_NAMES: Final = tuple(f"a{i}" for i in range(MOST_ARGUMENTS))
_PARAMETERS: Final = f"mode, f, {', '.join(f'{name}=_absent' for name in _NAMES)}, seed=_default, options=None"
_ABSENT: Final = "irad: no argument"
_DEFAULT: Final = "irad: the default seed"


def typed(mode: Any, f: Any, arguments: tuple[Any, ...], seed: Any, options: Any) -> Callable[..., Any]:
    """What a call does, as Python code that Numba compiles, for the types of its arguments.

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
    defaults = {"_absent": _ABSENT, "_default": _DEFAULT}
    return function_from(name, f"def {name}({_PARAMETERS}):\n{body}", "irad.autodiff", {**scope, **defaults})


def _misfit(problem: str, remedy: str) -> SignatureError:
    return SignatureError(
        problem, remedy, "the derivative is created when the caller is compiled", SourceLocation.here()
    )


_TYPING: Final = f"    return typed(mode, f, ({', '.join(_NAMES)}), seed, options)\n"
offer(autodiff, _function("typing", _TYPING, {"typed": typed}))
