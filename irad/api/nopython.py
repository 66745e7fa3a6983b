"""``irad.grad(f)`` written inside compiled code, where ``f`` is a function that Numba knows at compile time.

Numba types the call as the derivative's dispatcher; nothing is left of it at run time. Each function that compiled code
may call says so where it is defined.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from numba.core import types
from numba.extending import overload

from irad.api.selection import Selection, selected_if_any
from irad.errors import SignatureError, SourceLocation
from irad.frontend.generated import function_from
from irad.frontend.numba.messages import described
from irad.frontend.offered import PlainFunctionType, check_launched_by_irad, give_model, offer, original_of


def literal(value: Any, name: str) -> Any:
    """The constant passed as an argument of the call, from Numba's type of a literal or from the default itself.

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

    def typed(f: Any, given: tuple[object, ...]) -> Callable[..., Any]:
        constants = {name: literal(value, name) for name, value in zip(rest, given, strict=True)}
        scope = {"derivative": maker(function_behind(f), **constants)}
        return function_from(name, f"def {name}({listed}):\n    return derivative\n", f"irad.{name}", scope)

    source = f"def typing({listed}):\n    return typed({first}, ({''.join(each + ', ' for each in rest)}))\n"
    offer(maker, function_from("typing", source, f"irad.{name}", {"typed": typed}))


# A call of a maker that takes values, such as `irad.vjp`: the function's arguments, and options between them.
# Numba takes the parameters of a call from the function that takes its place, which is therefore written for the call.

MOST_ARGUMENTS: Final = 24
"""The most arguments that a call may pass to the function, each a parameter: device code has no star arguments."""


class CallSite:
    """The call.

    Attributes:
        first: the type of its first argument: the function, unless a mode precedes that.
        positional: the types of the function's arguments that are passed by position.
        named: the types of those that are passed by name.
        passed: the arguments as the function is called with them.
        values: these, each followed by a comma, in the order of ``positional`` and ``named``.

    Args:
        function: the public function.
        first: as above.
        args: the types of the positional arguments after that.
        keywords: those of all keyword arguments.

    Raises:
        SignatureError: the call passes `irad.Options`.
    """

    def __init__(
        self, function: Callable[..., Any], first: Any, args: tuple[Any, ...], keywords: Mapping[str, Any]
    ) -> None:
        name = function.__name__
        if keywords.get("options", types.none) != types.none:
            raise SignatureError(
                f"irad.{name} inside compiled code is given options",
                f"(a) leave them to the environment (IRAD_PLAN, IRAD_STRICT, …) or (b) call irad.{name} from Python",
                "the derivative is created when the caller is compiled",
                SourceLocation.here(),
            )
        self._name, self._keywords, self.first = name, keywords, first
        self.positional = tuple(map(types.unliteral, args))
        parameters = inspect.signature(function).parameters.values()
        ours = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
        self.named = {each: types.unliteral(kind) for each, kind in keywords.items() if each not in ours}
        self._places = [f"irad_given{i}" for i in range(len(args))]
        self.passed = ", ".join([*self._places, *(f"{each}={each}" for each in self.named)])
        self.values = "".join(f"{each}, " for each in [*self._places, *self.named])

    @property
    def has_aux(self) -> bool:
        """Value of the option ``has_aux``."""
        return bool(self.option("has_aux"))

    def selected(self, function: Any) -> Selection | None:
        """Arguments with respect to which a function is differentiated; None: all that have a derivative.

        Raises:
            SignatureError: it has no such arguments.
        """
        return selected_if_any(function, self.option("argnums"), self.option("argnames"))

    def option(self, name: str) -> Any:
        """An option; None if the call does not give it.

        Raises:
            SignatureError: it is not a literal.
        """
        return literal(self._keywords.get(name), name)

    def function(self, body: str, scope: Mapping[str, object]) -> Callable[..., Any]:
        """The function that takes the place of the call, with the lines of its body."""
        parameters = ", ".join(["irad_f", *self._places, *self._keywords])
        return function_from(self._name, f"def {self._name}({parameters}):\n{body}", f"irad.{self._name}", scope)


def offer_call(
    function: Callable[..., Any],
    typed: Callable[[CallSite], Callable[..., Any]],
    *,
    on_device: Callable[..., Any] | None = None,
) -> None:
    """Lets compiled code call a maker that takes the arguments of a function.

    Args:
        function: the maker.
        typed: from a call to the function of Python that Numba compiles in its place.
        on_device: as `offer` takes it.
    """

    def typing(first: Any, /, *args: Any, **keywords: Any) -> Callable[..., Any]:
        return typed(CallSite(function, first, args, keywords))

    name, own = next(iter(inspect.signature(function).parameters)), inspect.signature(typing)
    first, *others = own.parameters.values()
    named = own.replace(parameters=[first.replace(name=name), *others])
    typing.__signature__ = named  # type: ignore[attr-defined]  # Numba's message names what a call lacks
    if on_device is None:
        overload(function, prefer_literal=True, strict=False)(typing)
    else:
        offer(function, typing, on_device=on_device)
