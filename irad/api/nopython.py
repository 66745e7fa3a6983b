"""``irad.grad(f)`` written inside compiled code, where ``f`` is a function that Numba knows at compile time.

Numba types the call as the derivative's dispatcher; nothing is left of it at run time. Each function that compiled code
may call says so where it is defined, or in `irad.api.compiled` where there is more to say.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from numba.core import types

from irad.errors import SignatureError, SourceLocation
from irad.frontend.generated import function_from
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


def offer_maker(maker: Callable[..., Any]) -> None:
    """Lets compiled code call a function that makes a derivative; all that it is given must be known by then.

    Args:
        maker: of a function, and parameters which are literals in compiled code; ``options`` cannot be given there.
    """
    parameters = [each for each in inspect.signature(maker).parameters.values() if each.name != "options"]
    listed = ", ".join(
        each.name if each.default is each.empty else f"{each.name}={each.default!r}" for each in parameters
    )
    name, first, *rest = maker.__name__, *(each.name for each in parameters)

    def typed(f: Any, given: tuple[Any, ...]) -> Callable[..., Any]:
        constants = {name: literal(value, name) for name, value in zip(rest, given, strict=True)}
        scope = {"derivative": maker(function_behind(f), **constants)}
        return function_from(name, f"def {name}({listed}):\n    return derivative\n", f"irad.{name}", scope)

    source = f"def typing({listed}):\n    return typed({first}, ({''.join(each + ', ' for each in rest)}))\n"
    offer(maker, function_from("typing", source, f"irad.{name}", {"typed": typed}))
