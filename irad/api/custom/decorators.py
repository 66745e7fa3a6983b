"""`custom_jvp` and `custom_vjp`: rules of pure functions in the style of JAX."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar, overload

from numba.core.registry import CPUDispatcher

from irad.api.custom.transposes import transposed_functions
from irad.api.jit import InspectableDispatcher, jit
from irad.api.selection import check_positions, chosen
from irad.errors import RuleError
from irad.frontend.calls.raising import public
from irad.frontend.custom import catalogue
from irad.frontend.custom.rules_from_pure_functions import cotangent_functions, tangent_functions
from irad.frontend.numba import internals

_Function = TypeVar("_Function", bound=Callable[..., Any])


class RuledDispatcher(InspectableDispatcher):
    """A compiled function whose derivative is given by `defjvp` and `defvjp`.

    Attributes:
        constants: positions of the arguments that have no derivative.
        has_vjp: True if a rule for reverse mode was given; otherwise it is the transpose of that for forward mode.
    """

    constants: tuple[int, ...] = ()
    has_vjp: bool = False

    def defjvp(self, jvp: _Function) -> _Function:
        """Gives the rule for forward mode; usable as a decorator.

        Args:
            jvp: called as ``jvp(primals, tangents)``, with a tuple for each; returns ``(value, tangent)``. Arguments
                that ``nondiff_argnums`` names are not among these and precede them.

        Raises:
            RuleError: it takes other arguments.
        """
        _check_call(self, jvp, len(self.constants) + 2, self._behind_constants("primals, tangents"))
        rule, settings = _compiled(jvp), (self._count(), self.constants, self._file("jvp"))
        self._define(tangent_functions(rule, *settings))
        if not self.has_vjp:
            self._define(transposed_functions(self, rule, *settings))
        return jvp

    def defvjp(self, forward: Callable[..., Any], backward: Callable[..., Any]) -> None:
        """Gives the rule for reverse mode.

        Args:
            forward: called with the arguments; returns ``(value, residuals)``, of any type that Numba compiles.
            backward: called as ``backward(residuals, cotangent)``; returns a tuple with the cotangent of each argument.
                Arguments that ``nondiff_argnums`` names precede these and have no cotangent.

        Raises:
            RuleError: one takes other arguments.
        """
        _check_call(self, forward, self._count(), str(inspect.signature(self.py_func)))
        _check_call(self, backward, len(self.constants) + 2, self._behind_constants("residuals, cotangent"))
        functions = _compiled(forward), _compiled(backward)
        self.has_vjp = True
        self._define(cotangent_functions(*functions, self._count(), self.constants, self._file("vjp")))

    def __reduce__(self) -> tuple[Any, ...]:
        """Parts of the function for pickle, its rules among them."""
        return _unpickled, (super().__reduce__(), self.constants)

    def _define(self, parts: dict[str, Callable[..., Any]]) -> None:
        with catalogue.edited(self) as rule:
            rule.parts.update(parts)

    def _behind_constants(self, parameters: str) -> str:
        names = list(inspect.signature(self.py_func).parameters)
        return f"({''.join(f'{names[i]}, ' for i in self.constants)}{parameters})"

    def _count(self) -> int:
        return len(inspect.signature(self.py_func).parameters)

    def _file(self, kind: str) -> str:
        return f"irad.custom_{kind} of {self.py_func.__qualname__}"


@overload
def custom_jvp(
    f: Callable[..., Any],
    *,
    nondiff_argnums: int | Sequence[int] = (),
    nondiff_argnames: str | Sequence[str] | None = None,
) -> RuledDispatcher: ...


@overload
def custom_jvp(
    f: None = None,
    *,
    nondiff_argnums: int | Sequence[int] = (),
    nondiff_argnames: str | Sequence[str] | None = None,
) -> Callable[[Callable[..., Any]], RuledDispatcher]: ...


@public
def custom_jvp(
    f: Callable[..., Any] | None = None,
    *,
    nondiff_argnums: int | Sequence[int] = (),
    nondiff_argnames: str | Sequence[str] | None = None,
) -> Any:
    """Gives a function a derivative of its own, by a rule for its tangent, as ``jax.custom_jvp`` does.

    The result has a method ``defjvp``, which takes the rule: ``jvp(primals, tangents)`` returns ``(value, tangent)``,
    the tangent with the structure of the value. The tangent of a constant argument is zero (None for integers and the
    like). The function and the rule change none of their arguments.

    The body of the function is no longer differentiated. Reverse mode transposes the rule, which has to be linear in
    the tangents for that; a rule that compares tangents or multiplies them by each other is refused. With ``defvjp``,
    as in `irad.custom_vjp`, reverse mode has a rule of its own.

    Args:
        f: a plain Python function, which is compiled as by `irad.jit`, or one compiled by ``numba.njit``. If it is left
            out, the result is a decorator: ``@irad.custom_jvp(nondiff_argnums=1)``.
        nondiff_argnums: position, or positions, of arguments without a derivative: functions, sizes, settings. The rule
            takes their values first. A call in which one carries a derivative is refused.
        nondiff_argnames: in place of ``nondiff_argnums``, the name of the parameter, or a tuple of names.

    Returns:
        The compiled function, with the methods ``defjvp`` and ``defvjp``.

    Raises:
        RuleError: ``f`` is not a function, or takes star arguments.
        SignatureError: it has no such parameters.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> @irad.custom_jvp
        ... def log1pexp(x):
        ...     return np.log(1.0 + np.exp(x))
        >>> @log1pexp.defjvp
        ... def log1pexp_jvp(primals, tangents):
        ...     (x,), (x_dot,) = primals, tangents
        ...     return log1pexp(x), (1.0 - 1.0 / (1.0 + np.exp(x))) * x_dot
        >>> irad.jvp(lambda x: 2.0 * log1pexp(x), (0.0,), (1.0,))[1]
        1.0
        >>> irad.grad(lambda x: 2.0 * log1pexp(x))(0.0)
        1.0
    """
    return _ruled_later(f, "custom_jvp", nondiff_argnums, nondiff_argnames)


@overload
def custom_vjp(
    f: Callable[..., Any],
    *,
    nondiff_argnums: int | Sequence[int] = (),
    nondiff_argnames: str | Sequence[str] | None = None,
) -> RuledDispatcher: ...


@overload
def custom_vjp(
    f: None = None,
    *,
    nondiff_argnums: int | Sequence[int] = (),
    nondiff_argnames: str | Sequence[str] | None = None,
) -> Callable[[Callable[..., Any]], RuledDispatcher]: ...


@public
def custom_vjp(
    f: Callable[..., Any] | None = None,
    *,
    nondiff_argnums: int | Sequence[int] = (),
    nondiff_argnames: str | Sequence[str] | None = None,
) -> Any:
    """Gives a function a derivative of its own in reverse mode, as ``jax.custom_vjp`` does.

    The result has a method ``defvjp``, which takes two functions: ``forward(*args)`` returns ``(value, residuals)``,
    and ``backward(residuals, cotangent)`` a tuple with the cotangent of each argument, None where there is none. The
    cotangent has the structure of the value. The functions change none of their arguments.

    Arrays among the residuals are copied. The body of the function is no longer differentiated: forward mode refuses it
    unless ``defjvp`` gives a rule for that, as in `irad.custom_jvp`. Arguments with a derivative are numbers, arrays
    and tuples of these, whose cotangents are tuples; for others, and for functions that write to their arguments, use
    `irad.rules.augmented_primal` and `irad.rules.reverse`.

    Args:
        f: the function, as in `irad.custom_jvp`.
        nondiff_argnums: position, or positions, of arguments without a derivative; ``backward`` takes their values
            first, and returns no cotangents for them.
        nondiff_argnames: in place of ``nondiff_argnums``, the name of the parameter, or a tuple of names.

    Returns:
        The compiled function, with the methods ``defvjp`` and ``defjvp``.

    Raises:
        RuleError: ``f`` is not a function, or takes star arguments.
        SignatureError: it has no such parameters.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> @irad.custom_vjp
        ... def clipped(x, bound):
        ...     return x
        >>> clipped.defvjp(
        ...     lambda x, bound: (x, bound),
        ...     lambda bound, cotangent: (max(-bound, min(bound, cotangent)), None),
        ... )
        >>> irad.grad(lambda x: clipped(x, 1.0) ** 2)(5.0)
        1.0
        >>> @irad.custom_vjp(nondiff_argnums=1)
        ... def limited(x, bound):
        ...     return x
        >>> limited.defvjp(
        ...     lambda x, bound: (x, None),
        ...     lambda bound, residuals, cotangent: (max(-bound, min(bound, cotangent)),),
        ... )
        >>> irad.grad(lambda x: limited(x, 1.0) ** 2)(5.0)
        1.0
    """
    return _ruled_later(f, "custom_vjp", nondiff_argnums, nondiff_argnames)


def _ruled_later(f: Any, kind: str, argnums: int | Sequence[int], argnames: str | Sequence[str] | None) -> Any:
    """The function with the means to give it rules; a decorator, if there is no function yet."""
    return (
        partial(_ruled, kind=kind, argnums=argnums, argnames=argnames)
        if f is None
        else _ruled(f, kind, argnums, argnames)
    )


def _ruled(f: Any, kind: str, argnums: int | Sequence[int], argnames: str | Sequence[str] | None) -> RuledDispatcher:
    parameters = inspect.signature(getattr(f, "py_func", f)).parameters.values() if callable(f) else None
    if parameters is None or any(each.kind is each.VAR_POSITIONAL for each in parameters):
        raise RuleError(
            f"irad.{kind} is given {catalogue.name_of(f)}, which "
            + ("is not a function" if parameters is None else "takes star arguments"),
            f"decorate a function with a fixed number of arguments: @irad.{kind}",
            "the rule has a tangent or cotangent for each argument",
            catalogue.location_of(f) if callable(f) else None,
        )
    dispatcher: Any = f if isinstance(f, CPUDispatcher) else jit(f)
    wanted = chosen(dispatcher, argnums, argnames, ())
    constants = check_positions(dispatcher, wanted) if wanted != () else ()
    internals.become(dispatcher, RuledDispatcher)
    dispatcher.constants = constants
    with catalogue.edited(dispatcher) as rule:
        rule.is_total = True
    ruled: RuledDispatcher = dispatcher
    return ruled


def _unpickled(reduced: tuple[Any, ...], constants: tuple[int, ...]) -> RuledDispatcher:
    rebuild, args = reduced
    made: RuledDispatcher = rebuild(*args)
    made.constants = constants
    return made


def _check_call(f: Any, function: Any, count: int, wanted: str) -> None:
    try:
        inspect.signature(getattr(function, "py_func", function)).bind(*([None] * count))
    except TypeError as error:
        raise RuleError(
            f"the rule for {f.py_func.__qualname__} cannot be called with {count} arguments: {error}",
            f"let it take {wanted}",
            "irad calls it with these arguments",
            catalogue.location_of(function) if callable(function) else None,
        ) from None


def _compiled(function: Any) -> Any:
    return function if isinstance(function, CPUDispatcher) else jit(function)
