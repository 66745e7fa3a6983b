"""Rules that users write, for functions that irad should not or cannot differentiate itself. See docs/custom_rules.md.

Everything here is also a name of ``irad.rules``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any, TypeVar

import numpy as np
from numba.np.numpy_support import from_dtype

from irad.api.jit import jit
from irad.api.stateful import build_rule, close, workspace
from irad.errors import RuleError
from irad.frontend import layouts
from irad.frontend.custom import catalogue
from irad.frontend.custom.annotated import AugmentedReturn, RuleConfig, is_active, is_needed
from irad.frontend.custom.easy import Partial, easy_functions
from irad.frontend.custom.pools import Workspace, pools_for
from irad.frontend.custom.stateful import StatefulRule
from irad.frontend.custom.stop import stop_gradient, within_autodiff
from irad.frontend.custom.symbols import arity_of, target_of
from irad.frontend.numba_untyped import types
from irad.frontend.raising import public

__all__ = [
    "AugmentedReturn",
    "RuleConfig",
    "StatefulRule",
    "Workspace",
    "augmented_primal",
    "build_rule",
    "close",
    "easy_rule",
    "forward",
    "ignore_derivatives",
    "inactive",
    "inactive_arg",
    "inactive_type",
    "is_active",
    "is_needed",
    "noinline",
    "remove",
    "reverse",
    "stop_gradient",
    "within_autodiff",
    "workspace",
]

ignore_derivatives = stop_gradient

_Function = TypeVar("_Function", bound=Callable[..., Any])


@public
def augmented_primal(f: Any) -> Callable[[_Function], _Function]:
    """Registers the augmented primal of a function: what runs in its place in the forward sweep.

    The decorated function takes ``(config, *arguments)``. Each argument has a ``value``; one of memory that takes part
    in the derivative also a ``shadow``. It returns ``AugmentedReturn(primal, shadow, tape)``.

    Args:
        f: a Python function (the rule is then for everything that is compiled from it), a function decorated with
            ``njit``, a library function that Numba knows, such as ``np.linalg.solve``; a C function (of ctypes, cffi,
            ``types.ExternalFunction``); or the LLVM symbol of a function or an intrinsic. Of C functions the rule gets
            numbers, and pointers as ``void*``.
    """
    return _registering(f, "augmented_primal")


@public
def reverse(f: Any, *, restores: bool = False) -> Callable[[_Function], _Function]:
    """Registers the reverse of a function: what runs in the reverse sweep.

    The decorated function takes ``(config, cotangent, tape, *arguments)``: the cotangent of the value (of arrays in it,
    the shadow that the augmented primal returned), the tape, and the arguments as the augmented primal had them. It
    returns a tuple with the cotangent of each argument that is a number and takes part; None for the others, to whose
    shadows it adds.

    Args:
        f: as for `augmented_primal`.
        restores: the reverse may put back what ``f`` overwrote. irad then reads nothing that ``f`` has written again in
            the reverse sweep, which may run several times.
    """
    return _registering(f, "reverse", restores=restores)


@public
def forward(f: Any) -> Callable[[_Function], _Function]:
    """Registers the rule of a function for forward mode, which irad does not have yet; reverse mode is not changed.

    The decorated function takes ``(config, *arguments)``.

    Raises:
        RuleError: it takes another number of arguments.
    """
    register = _registering(f, "forward")

    @public
    def register_forward(function: _Function) -> _Function:
        try:
            inspect.signature(function).bind(None, *([None] * _arity(f)))
        except TypeError as error:
            raise RuleError(
                f"the forward of the rule of {catalogue.name_of(target_of(f))} cannot be called with "
                f"{1 + _arity(f)} arguments: {error}",
                "let it take (config, annotated arguments…)",
                "it is called with the configuration, and each argument of the function",
                catalogue.place_of(function),
            ) from error
        return register(function)

    return register_forward


@public
def easy_rule(f: _Function, *partials: Partial) -> _Function:
    """Gives a function a rule by its partial derivatives.

    Args:
        f: as for `augmented_primal`; its arguments are numbers and arrays, its value too, or a tuple of these.
        partials: one for each argument: a function of the arguments, or of these and the value; a number; None where
            there is no derivative. It gives a number where value and argument are numbers; an array of the other's
            shape where one is an array; the Jacobian (the axes of the value, then those of the argument) or, in the
            shape that both have, its diagonal where both are. A tuple of these if the value is a tuple.

    Returns:
        The function.

    Raises:
        RuleError: the number of partials, or of their arguments, is wrong.
    """
    arity = _arity(f)
    if len(partials) != arity:
        raise RuleError(
            f"{catalogue.name_of(f)} takes {arity} arguments and is given {len(partials)} partial derivatives",
            "give one for each argument, None where there is no derivative",
            "an argument without partial derivative would silently count as constant",
            catalogue.place_of(f),
        )
    augmented, back = easy_functions(_compiled(f), partials, _compiled, arity)
    with catalogue.edited(target_of(f)) as rule:
        rule.parts.update(augmented_primal=augmented, reverse=back)
    return f


@public
def inactive(f: _Function, why: str = "declared inactive") -> _Function:
    """Declares that no derivative flows through a function: what it returns and writes is constant.

    The function is called in the forward sweep, once. Usable as a decorator.
    """
    with catalogue.edited(target_of(f)) as rule:
        rule.inactive = why
    return f


@public
def inactive_arg(f: _Function, *arguments: int | str) -> _Function:
    """Declares that no derivative flows through some arguments of a function: positions, or names.

    The function is differentiated otherwise as any. Usable with `functools.partial` as a decorator.

    Raises:
        RuleError: the function has no such argument, or is a C function.
    """
    if isinstance(target_of(f), str):
        raise RuleError(
            f"{catalogue.name_of(target_of(f))} is a C function, of which irad differentiates nothing",
            "(a) irad.rules.easy_rule with None for these arguments or (b) irad.rules.augmented_primal and reverse",
            "the other arguments have no derivative either, as long as it has no rule",
        )
    names = list(inspect.signature(getattr(f, "py_func", f)).parameters)
    for argument in arguments:
        if argument not in names and not (isinstance(argument, int) and 0 <= argument < len(names)):
            raise RuleError(
                f"{catalogue.name_of(f)} has no argument {argument!r}",
                f"name one of {', '.join(names)}, or its position",
                "arguments are named as the function names them, or by position, counted from 0",
                catalogue.place_of(f),
            )
    found = frozenset(names.index(a) if isinstance(a, str) else a for a in arguments)
    with catalogue.edited(target_of(f)) as rule:
        rule.inactive_arguments |= found
    return f


@public
def inactive_type(T: Any) -> Any:
    """Declares that arguments of a type carry no derivative.

    Args:
        T: a Numba type, a jitclass, or a structured dtype.

    Returns:
        ``T``.

    Raises:
        RuleError: it is no type that Numba knows.
    """
    if isinstance(T, types.Type):
        found = T
    elif hasattr(T, "class_type"):
        found = T.class_type.instance_type
    else:
        try:
            found = from_dtype(np.dtype(T))
        except (TypeError, NotImplementedError) as error:
            raise RuleError(
                f"{T!r} is no type that Numba knows",
                "(a) give a Numba type or (b) a jitclass or (c) a structured dtype",
                "compiled code has arguments of Numba's types only",
            ) from error
    layouts.INACTIVE_TYPES.add(found)
    catalogue.changed("")
    return T


@public
def noinline(f: _Function) -> _Function:
    """Has a function stay a call in programs that are differentiated, with a derivative of its own.

    For large functions that are called from many places. Usable as a decorator.
    """
    with catalogue.edited(target_of(f)) as rule:
        rule.noinline = True
    return f


@public
def remove(f: Any) -> None:
    """Takes back all that was registered for a function, and releases the workspace of its rule."""
    target = target_of(f)
    catalogue.remove(target)
    for pool in pools_for(target):
        pool.close()


def _arity(f: Any) -> int:
    arity = arity_of(f)
    if arity is not None:
        return arity
    try:
        return len(inspect.signature(getattr(f, "py_func", f)).parameters)
    except (TypeError, ValueError) as error:
        raise RuleError(
            f"the number of arguments of {f!r} is not known",
            "write its rule with irad.rules.augmented_primal and irad.rules.reverse",
            "an easy rule has a partial derivative for each argument",
        ) from error


def _compiled(f: Any) -> Any:
    """What compiled code can call in the place of a function; library functions stay what they are."""
    return jit(f) if isinstance(f, FunctionType) else f


def _registering(f: Any, kind: str, *, restores: bool | None = None) -> Callable[[_Function], _Function]:
    target = target_of(f)

    @public
    def register(function: _Function) -> _Function:
        if not callable(function):
            raise RuleError(
                f"{function!r} is no function",
                f"decorate a function with irad.rules.{kind}(…)",
                "a rule is code that runs in the derivative",
            )
        with catalogue.edited(target) as rule:
            rule.parts[kind] = function
            if restores is not None:
                rule.restores = restores
        return function

    return register
