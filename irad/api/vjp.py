"""`vjp`: the value of a function now, its derivative for any cotangent later."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, overload

from numba import typeof

from irad.api.functions import check_options, options_or_default, primal_of, remembered
from irad.api.jit import A, R
from irad.api.selection import callee_of, chosen, selected
from irad.api.tape import Tape
from irad.debug.seal import Seal
from irad.errors import IradError, without_source
from irad.frontend.calls.raising import leaving, public
from irad.frontend.calls.separate_dispatcher import AugmentedDispatcher, Separate, task_for
from irad.frontend.calls.signature import without_aux
from irad.frontend.numba.cpu import location_of
from irad.options import Options


class Pullback:
    """Maps a cotangent of a function's value to the cotangents of its arguments.

    It may be called repeatedly, in any thread, long after the forward sweep, and after the arguments were overwritten.
    It keeps the memory that the forward sweep saved until it is garbage-collected.
    """

    __slots__ = ("__weakref__", "_argnums", "_has_aux", "_skipped", "_tape")

    def __init__(self, tape: Tape, argnums: int | tuple[int, ...] | None, skipped: int, *, has_aux: bool) -> None:
        self._tape, self._argnums, self._skipped, self._has_aux = tape, argnums, skipped, has_aux

    def __call__(self, cotangent: Any) -> Any:
        """The cotangents of the arguments.

        Args:
            cotangent: of the value as it was returned, with its structure; None where a part has none.

        Returns:
            A tuple with one entry for each argument, with its structure; None where there is no derivative. If
            `irad.vjp` was told argnums or argnames, the entry of that argument, or a tuple of those of several.

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
        if self._argnums is None:
            return found[self._skipped :] if self._skipped else found
        return found[self._argnums] if isinstance(self._argnums, int) else tuple(found[i] for i in self._argnums)

    def __repr__(self) -> str:
        return f"<pullback of {self._tape.function}>"


without_source(Pullback.__call__, "pullback")


@overload
def vjp(
    f: Callable[..., R],
    /,
    *args: Any,
    has_aux: Literal[False] = False,
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
    **keywords: Any,
) -> tuple[R, Pullback]: ...


@overload
def vjp(
    f: Callable[..., tuple[R, A]],
    /,
    *args: Any,
    has_aux: Literal[True],
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
    **keywords: Any,
) -> tuple[R, Pullback, A]: ...


@public
def vjp(
    f: Callable[..., Any],
    /,
    *args: Any,
    has_aux: bool = False,
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
    **keywords: Any,
) -> Any:
    """Runs a function and saves what its reverse sweep needs.

    All arguments with floats are differentiated, or those that ``argnums`` or ``argnames`` names; ints, strings and the
    like are constants. Arrays that the function
    writes to are written, as in a plain call. If the function returns a value, the cotangent of their final content is
    zero. If it returns nothing, the pullback takes that cotangent: a tuple with an entry for each argument, which is
    an array for an array that is written, and None for any other argument.

    Args:
        f: the function, as in `irad.grad`; it may return anything, or nothing.
        args: its arguments.
        has_aux: ``f`` returns ``(value, aux)``; the pullback takes the cotangent of ``value``.
        argnums: a position, or a tuple of positions; the pullback then returns the cotangent of that argument, or a
            tuple of those of several, in place of an entry for each. The others are constants, which makes the tape
            smaller.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative is created; see `irad.Options`. In compiled code those of the environment apply.
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
        >>> @njit
        ... def scaled(x, factor):
        ...     return factor * x.sum()
        >>> value, pullback = irad.vjp(scaled, np.array([1.0, 3.0]), factor=2.0, argnames="factor")
        >>> pullback(1.0)
        4.0
    """
    check_options(options)
    primal, leading = callee_of(f)
    argnums = chosen(f, argnums, argnames, None)
    wanted = None if argnums is None else selected(f, argnums)
    sweep = augmented_of(primal, options, None if wanted is None else wanted.positions)
    value, tape = _run(sweep, (*leading, *args), keywords)
    pullback = Pullback(tape, None if wanted is None else wanted.argnums, len(leading), has_aux=has_aux)
    if not has_aux:
        return value, pullback
    if not isinstance(value, tuple) or len(value) != 2:
        raise without_aux(primal, typeof(value))
    return value[0], pullback, value[1]


def _run(sweep: AugmentedDispatcher, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, Tape]:
    number, value, state, shadows = sweep(*args, **keywords)
    function = sweep.primal.py_func
    given = inspect.signature(function).bind(*args, **keywords).arguments
    seal = None
    if sweep.options.debug:
        rules = sweep.specialisations[int(number)].has_rules
        seal = Seal(function.__qualname__, location_of(function), list(given.items()), value, rules)
    return value, Tape(sweep, number, state, shadows, (given, value), seal)


def augmented_of(
    f: Callable[..., Any],
    options: Options | None,
    argnums: tuple[int, ...] | None = None,
    width: int | None = None,
    *,
    shows_zeros: bool = False,
) -> AugmentedDispatcher:
    """The compiled forward sweep behind `vjp`, with respect to some arguments, or to all that have derivatives.

    ``shows_zeros`` is that of its `Task`.

    With a width its pullback takes a tuple of so many cotangents, and returns as many derivatives for each argument.
    """
    primal = primal_of(f)
    argnums = None if argnums is None else tuple(sorted(argnums))

    def build() -> AugmentedDispatcher:
        chosen = options_or_default(options)
        sweeps = Separate(
            "vjp",
            partial(task_for, options=chosen, argnums=argnums, shows_zeros=shows_zeros),
            writes_seeded=True,
            otherwise=partial(task_for, options=chosen) if argnums is not None else None,
            width=width,
        )
        return AugmentedDispatcher(primal, sweeps, chosen, (augmented_of, (f, options, argnums, width)))

    return remembered(primal, ("vjp", options, argnums, width, shows_zeros), build)
