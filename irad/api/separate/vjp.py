"""`vjp`: the value of a function now, its derivative for any cotangent later."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, Literal, overload

from numba import typeof

from irad.api.bound import bound_method
from irad.api.functions import check_options, options_or_default, primal_of, remembered
from irad.api.separate.tape import Tape
from irad.api.typed import A, R
from irad.debug.seal import Seal
from irad.errors import IradError, without_source
from irad.frontend.calls.raising import leaving, public
from irad.frontend.calls.separate.dispatcher import AugmentedDispatcher, Separate, task_for
from irad.frontend.calls.signature import without_aux
from irad.frontend.numba.cpu import location_of
from irad.options import Options


class Pullback:
    """Maps a cotangent of a function's value to the cotangents of its arguments.

    It may be called repeatedly, in any thread, long after the forward sweep, and after the arguments were overwritten.
    It keeps the memory that the forward sweep saved until it is garbage-collected.
    """

    __slots__ = ("__weakref__", "_has_aux", "_skipped", "_tape")

    def __init__(self, tape: Tape) -> None:
        self._tape, self._skipped, self._has_aux = tape, 0, False

    def __call__(self, cotangent: Any) -> Any:
        """The cotangents of the arguments.

        Args:
            cotangent: of the value, with its structure; None where a part has none.

        Returns:
            A tuple with one entry for each argument, with its structure; None where there is no derivative.

        Raises:
            SignatureError: the structure, dtype or shape of the cotangent differs from that of the value.
            NonFiniteError: in debug mode, a cotangent is NaN or infinite.
            ChangedBufferError: in debug mode, a rule reads memory that was changed since.
        """
        cotangent = (cotangent, None) if self._has_aux else cotangent
        try:
            found = self._tape.reverse(cotangent)
        except IradError as error:
            __tracebackhide__ = True  # says IPython and pytest
            raise leaving(error)  # noqa: B904
        return found[self._skipped :] if self._skipped else found

    def without_aux(self) -> Pullback:
        """The same pullback, which from now on takes the cotangent of the first of the two values only."""
        self._has_aux = True
        return self

    def without_first(self) -> Pullback:
        """The same pullback, which from now on leaves out the first argument: the instance of a method."""
        self._skipped = 1
        return self

    def __repr__(self) -> str:
        return f"<pullback of {self._tape.function}>"


without_source(Pullback.__call__, "pullback")


@overload
def vjp(
    f: Callable[..., R],
    /,
    *args: Any,
    has_aux: Literal[False] = False,
    options: Options | None = None,
    **keywords: Any,
) -> tuple[R, Pullback]: ...


@overload
def vjp(
    f: Callable[..., tuple[R, A]],
    /,
    *args: Any,
    has_aux: Literal[True],
    options: Options | None = None,
    **keywords: Any,
) -> tuple[R, Pullback, A]: ...


@public
def vjp(
    f: Callable[..., Any], /, *args: Any, has_aux: bool = False, options: Options | None = None, **keywords: Any
) -> Any:
    """Runs a function and saves what its reverse sweep needs.

    All arguments with floats are differentiated; ints, strings and the like are constants. Arrays that the function
    writes to are written, as in a plain call. If the function returns a value, the cotangent of their final content is
    zero. If it returns nothing, the pullback takes that cotangent: a tuple with an entry for each argument, which is
    an array for an array that is written, and None for any other argument.

    Args:
        f: the function, as in `irad.grad`; it may return floats, arrays and tuples of these, or nothing.
        args: its arguments.
        has_aux: ``f`` returns ``(value, aux)``; the pullback takes the cotangent of ``value``. In compiled code, leave
            it out and give the pullback ``(cotangent, None)``.
        options: how the derivative is created; see `irad.Options`.
        keywords: further arguments of the function, by name.

    Returns:
        ``(value, pullback)``; with ``has_aux``, ``(value, pullback, aux)``.

    Raises:
        SignatureError: no argument has a derivative, or the function has no such arguments.
        TapeLimitError: the tape would take more than the options allow.
        NonFiniteError: in debug mode, the value is NaN or infinite.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def squares(x):
        ...     return x * x
        >>> value, pullback = irad.vjp(squares, np.array([1.0, 3.0]))
        >>> value
        array([1., 9.])
        >>> pullback(np.array([1.0, 0.0]))
        (array([2., 0.]),)
    """
    check_options(options)
    method = bound_method(f)
    if method is None:
        value, pullback = _run(augmented_of(f, options), args, keywords)
    else:
        value, pullback = _run(augmented_of(method.function, options), (method.instance, *args), keywords)
        pullback = pullback.without_first()
    if not has_aux:
        return value, pullback
    if not isinstance(value, tuple) or len(value) != 2:
        raise without_aux(primal_of(f if method is None else method.function), typeof(value))
    return value[0], pullback.without_aux(), value[1]


def _run(forward: AugmentedDispatcher, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, Pullback]:
    number, value, state, shadows = forward(*args, **keywords)
    function = forward.primal.py_func
    given = inspect.signature(function).bind(*args, **keywords).arguments
    seal = None
    if forward.options.debug:
        rules = forward.specialisations[int(number)].has_rules
        seal = Seal(function.__qualname__, location_of(function), list(given.items()), value, rules)
    return value, Pullback(Tape(forward, number, state, shadows, (given, value), seal))


def augmented_of(
    f: Callable[..., Any], options: Options | None, argnums: tuple[int, ...] | None = None
) -> AugmentedDispatcher:
    """The compiled forward sweep behind `vjp`, with respect to some arguments, or to all that have derivatives."""
    primal = primal_of(f)

    def build() -> AugmentedDispatcher:
        chosen = options_or_default(options)
        sweeps = Separate(
            "vjp",
            partial(task_for, options=chosen, argnums=argnums),
            writes_seeded=True,
            otherwise=partial(task_for, options=chosen) if argnums is not None else None,
        )
        return AugmentedDispatcher(primal, sweeps, chosen, (augmented_of, (f, options, argnums)))

    return remembered(primal, ("vjp", options, argnums), build)
