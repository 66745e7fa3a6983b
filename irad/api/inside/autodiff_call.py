"""``irad.autodiff(irad.Reverse, f, …)`` written inside compiled code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from numba.core import types

from irad.api.annotate import ROLES
from irad.api.autodiff import autodiff, autodiff_of
from irad.api.functions import primal_of
from irad.api.inside.annotated import Described, ModeType, annotation_of
from irad.api.nopython import function_behind
from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.task import Seed
from irad.frontend.generated import function_from
from irad.frontend.numba.messages import described
from irad.frontend.offered import offer

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
