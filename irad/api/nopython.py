"""``irad.grad(f)`` written inside compiled code, where ``f`` is a function that Numba knows at compile time.

Numba types the call as the derivative's dispatcher; nothing is left of it at run time. Each function that compiled code
may call says so where it is defined, or in `irad.api.compiled` where there is more to say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types

from irad.errors import SignatureError, SourceLocation
from irad.frontend.numba.messages import described
from irad.frontend.offered import PlainFunctionType, check_launched_by_irad, give_model, offer, original_of


def literal(value: Any, name: str) -> Any:
    """The constant behind an argument of the call: Numba's type of a literal, or the default itself.

    Raises:
        SignatureError: it is not known when Numba compiles.
    """
    if isinstance(value, types.Omitted):
        return value.value
    if value == types.none:
        return None
    if isinstance(value, types.Literal):
        return value.literal_value
    if isinstance(value, types.BaseTuple):
        return tuple(literal(item, name) for item in value.types)
    if isinstance(value, types.Type):
        raise SignatureError(
            f"{name} of a derivative inside compiled code is {described(value)} whose value is known only at run time",
            f"(a) write {name} as a literal or (b) create a derivative for each value outside: df = irad.grad(f, …)",
            "the derivative is created when the function is compiled",
            SourceLocation.here(),
        )
    return value


def function_behind(f: Any) -> Any:
    """The Python object that the type of a function belongs to."""
    if isinstance(f, types.Dispatcher):
        check_launched_by_irad(f.dispatcher.py_func.__qualname__)
        give_model(type(f))
        return original_of(f.dispatcher)
    if isinstance(f, PlainFunctionType):
        return f.function
    raise SignatureError(
        f"compiled code asks for the derivative of {described(f)}",
        "pass a function decorated with irad.jit or numba.njit",
        "compiled code can only use compiled functions",
        SourceLocation.here(),
    )


def offer_maker(derive: Callable[..., Any]) -> None:
    """Lets compiled code call `grad`, or a function with the same parameters."""

    def typed(f: Any, argnums: Any = 0, has_aux: Any = False, argnames: Any = None) -> Callable[..., Any]:
        numbers, aux = literal(argnums, "argnums"), literal(has_aux, "has_aux")
        derivative = derive(function_behind(f), numbers, aux, argnames=literal(argnames, "argnames"))
        return lambda f, argnums=0, has_aux=False, argnames=None: derivative

    offer(derive, typed)
