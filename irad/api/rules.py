"""Rules that users write, for functions that irad should not or cannot differentiate itself. See docs/custom_rules.md.

Everything here is also a name of ``irad.rules``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from irad.errors import RuleError
from irad.frontend.custom import catalogue
from irad.frontend.custom.annotated import AugmentedReturn, RuleConfig, is_active

__all__ = [
    "AugmentedReturn",
    "RuleConfig",
    "augmented_primal",
    "forward",
    "is_active",
    "remove",
    "reverse",
]

_Function = TypeVar("_Function", bound=Callable[..., Any])


def augmented_primal(f: Any) -> Callable[[_Function], _Function]:
    """Registers the augmented primal of a function: what runs in its place in the forward sweep.

    The decorated function takes ``(config, *arguments)``. Each argument has a ``value``; one of memory that takes part
    in the derivative also a ``shadow``. It returns ``AugmentedReturn(primal, shadow, tape)``.

    Args:
        f: a Python function (the rule is then for everything that is compiled from it), a function decorated with
            ``njit``, or a library function that Numba knows, such as ``np.linalg.solve``.
    """
    return _registering(f, "augmented_primal")


def reverse(f: Any) -> Callable[[_Function], _Function]:
    """Registers the reverse of a function: what runs in the reverse sweep.

    The decorated function takes ``(config, cotangent, tape, *arguments)``: the cotangent of the value (of arrays in it,
    the shadow that the augmented primal returned), the tape, and the arguments as the augmented primal had them. It
    returns a tuple with the cotangent of each argument that is a number and takes part; None for the others, to whose
    shadows it adds.

    Args:
        f: as for `augmented_primal`.
    """
    return _registering(f, "reverse")


def forward(f: Any) -> Callable[[_Function], _Function]:
    """Registers the rule of a function for forward mode, which irad does not have yet."""
    return _registering(f, "forward")


def remove(f: Any) -> None:
    """Takes back all that was registered for a function."""
    catalogue.remove(f)


def _registering(target: Any, kind: str) -> Callable[[_Function], _Function]:
    if not callable(target):
        raise RuleError(
            f"{target!r} is no function and cannot have a rule", "name the function: @irad.rules.reverse(f)"
        )

    def register(function: _Function) -> _Function:
        if not callable(function):
            raise RuleError(f"{function!r} is no function", f"decorate a function with irad.rules.{kind}(…)")
        catalogue.register(target).parts[kind] = function
        return function

    return register
