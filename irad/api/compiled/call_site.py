"""A call of `irad.vjp` and the like, as compiled code has it: the function's arguments, and options between them.

Numba takes the parameters of a call from the function that takes its place, which is therefore written for the call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from numba.core import types

from irad.api.nopython import literal
from irad.errors import SignatureError, SourceLocation
from irad.frontend.generated import function_from

_OPTIONS: Final = ("has_aux", "argnums", "argnames")


class CallSite:
    """The call.

    Attributes:
        positional: the types of the function's arguments that are passed by position.
        named: the types of those that are passed by name.
        passed: the arguments as the function is called with them.
        values: these, each followed by a comma, in the order of ``positional`` and ``named``.

    Args:
        name: of the public function.
        args: the types of the positional arguments behind the function.
        keywords: those of all keyword arguments.

    Raises:
        SignatureError: the call passes `irad.Options`.
    """

    def __init__(self, name: str, args: tuple[Any, ...], keywords: Mapping[str, Any]) -> None:
        if keywords.get("options", types.none) != types.none:
            raise SignatureError(
                f"irad.{name} inside compiled code is given options",
                f"(a) leave them to the environment (IRAD_PLAN, IRAD_STRICT, …) or (b) call irad.{name} from Python",
                "the derivative is created when the caller is compiled",
                SourceLocation.here(),
            )
        self._name, self._keywords = name, keywords
        self.positional = tuple(map(types.unliteral, args))
        ours = (*_OPTIONS, "options")
        self.named = {each: types.unliteral(kind) for each, kind in keywords.items() if each not in ours}
        self._places = [f"irad_given{i}" for i in range(len(args))]
        self.passed = ", ".join([*self._places, *(f"{each}={each}" for each in self.named)])
        self.values = "".join(f"{each}, " for each in [*self._places, *self.named])

    def option(self, name: str) -> Any:
        """An option, None where the call does not give it.

        Raises:
            SignatureError: it is not a literal.
        """
        return literal(self._keywords.get(name), name)

    def function(self, body: str, scope: Mapping[str, object]) -> Callable[..., Any]:
        """The function that takes the place of the call, with the lines of its body."""
        parameters = ", ".join(["irad_f", *self._places, *self._keywords])
        return function_from(self._name, f"def {self._name}({parameters}):\n{body}", f"irad.{self._name}", scope)
