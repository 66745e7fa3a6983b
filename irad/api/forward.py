"""`jvp` and `pushforward`: forward mode.

A pushforward is a Numba dispatcher, as gradients are: compiled for each combination of argument types, callable from
Python and from compiled code, where it is inlined.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from numba.core import types

from irad.api.functions import options_or_default, remembered
from irad.api.nopython import function_behind, literal, offer_maker
from irad.api.selection import Selection, callee_of, chosen, selected
from irad.errors import SignatureError, SourceLocation
from irad.frontend.calls.definition import Definition
from irad.frontend.calls.dispatcher import DerivativeDispatcher, intrinsic_call, make_wrapper, parameter_names
from irad.frontend.calls.raising import public
from irad.frontend.calls.result_types import python_type
from irad.frontend.calls.retry import part_at, speculating
from irad.frontend.calls.task import Returns, Role, Seed, Task
from irad.frontend.derivation import derivation_of
from irad.frontend.generated import function_from
from irad.frontend.numba.cpu import location_of
from irad.frontend.numba.messages import described
from irad.frontend.offered import offer
from irad.message import with_article
from irad.options import Options
from irad.passes.mode import DEPENDENCE_MODE, FORWARD_MODE, Algebra, Mode, forward_mode


@public
def pushforward(
    f: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """The value of a function together with its derivative in a direction.

    The result takes the arguments of ``f``, and ``tangents`` after the last of those that are differentiated:
    ``(x, tangents, *rest)`` for ``argnums=0``, ``(x, y, (x_tangent, y_tangent), *rest)`` for ``argnums=(0, 1)``. It
    returns ``(value, tangent)``. ``tangents`` has the structure of the argument ``argnums``: a number for a number, an
    array of the same dtype and shape for an array, a tuple for a tuple, for lists, dictionaries and instances what
    `irad.grad` returns for them; of several arguments it is a tuple with an entry for each. The tangent has the same
    structure for the value, with None for parts that have no derivative. All other arguments are constants.

    If ``f`` writes to an array among ``argnums``, its tangent array is overwritten as well: it holds the tangent of the
    array's new content. Tangents that are not overwritten may be any arrays, the arguments themselves among them. Those
    of lists, dictionaries and instances are only read; None in their place stands for zeros.

    Args:
        f: the function, as in `irad.grad`; it may return anything, or nothing.
        argnums: the position of the argument, or a tuple of positions; negative positions count from the end.
        has_aux: ``f`` returns ``(value, aux)``; only ``value`` has a tangent; the result is ``(value, tangent, aux)``.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        A callable that returns ``(value, tangent)``, or ``(value, tangent, aux)`` with ``has_aux``. Arguments up to the
        direction cannot be left out, even if ``f`` has defaults for them.

    Raises:
        SignatureError: ``f`` is not a function that Numba compiles, or has no argument at that position.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import njit
        >>> @njit
        ... def powers(x, exponent=2):
        ...     return x**exponent
        >>> irad.pushforward(powers)(np.array([3.0, 5.0]), np.array([1.0, 0.0]))
        (array([ 9., 25.]), array([6., 0.]))
        >>> irad.pushforward(powers)(np.array([3.0, 5.0]), np.array([1.0, 0.0]), 3)
        (array([ 27., 125.]), array([27.,  0.]))
    """
    return _pushforward(f, chosen(f, argnums, argnames), None, bool(has_aux), options)


def batched_pushforward(
    f: Callable[..., Any],
    argnums: int | Sequence[int],
    width: int,
    has_aux: bool = False,
    *,
    options: Options | None = None,
    shows_zeros: bool = False,
) -> Any:
    """As `pushforward`, in ``width`` directions beside one run of the function.

    The result is called as ``(directions, *args)``, with a tuple of as many tangents, each as `pushforward` takes them,
    and returns ``(value, tuple of tangents)``, and what `pushforward` returns with ``has_aux``. It can be called in
    compiled code. ``shows_zeros`` is that of its `Task`.

    Raises:
        SignatureError: as `pushforward`.
    """
    return _pushforward(f, argnums, width, has_aux, options, is_showing=shows_zeros)


def dependence(
    f: Callable[..., Any], argnums: int | Sequence[int], has_aux: bool = False, *, options: Options | None = None
) -> Any:
    """As `batched_pushforward` of width 1, with sets of inputs as tangents; see `irad.passes.forward.dependence`.

    The lowest `SET_SIZE` bits of a tangent are a set; the tangent of the value is the union of those that it depends on
    along the branches that are taken.

    Raises:
        SignatureError: as `pushforward`; where it is called, NoRuleError: dependence is not known of a callee.
    """
    wanted, options = selected(f, argnums), options_or_default(options)
    options = replace(options, debug=False)  # the bits of a set may be those of a NaN
    rebuild = (dependence, (wanted.primal, wanted.argnums, has_aux))
    return directional(
        "dependence", wanted, options, rebuild, mode=DEPENDENCE_MODE, has_aux=has_aux, tangents_first=True
    )


def _pushforward(
    f: Callable[..., Any],
    argnums: int | Sequence[int],
    width: int | None,
    has_aux: bool,
    options: Options | None,
    *,
    is_showing: bool = False,
) -> Any:
    wanted, options = selected(f, argnums), options_or_default(options)
    rebuild = (_pushforward, (wanted.primal, wanted.argnums, width, has_aux, options))
    if width is None:
        primal, argnums = wanted.primal, wanted.argnums
        plain = primal if options.speculates else None

        def shows_zeros(watched: bool) -> Any:
            shown = replace(options, debug=watched, cache=False)
            return _pushforward(primal, argnums, None, has_aux, shown, is_showing=True)

        tellers = () if is_showing else (plain, shows_zeros)
        return directional("pushforward", wanted, options, rebuild, *tellers, has_aux=has_aux, is_showing=is_showing)
    return directional(
        "pushforward",
        wanted,
        options,
        rebuild,
        mode=forward_mode(width),
        has_aux=has_aux,
        tangents_first=True,
        is_showing=is_showing,
    )


def directional(
    kind: str,
    wanted: Selection,
    options: Options,
    rebuild: tuple[Any, ...],
    plain: Any = None,
    shows_zeros: Callable[[bool], DerivativeDispatcher] | None = None,
    *,
    mode: Mode | None = None,
    returns: Returns = Returns.VALUE_AND_GRADIENT,
    has_aux: bool = False,
    tangents_first: bool = False,
    kept: Collection[int] = (),
    is_showing: bool = False,
) -> Any:
    """A callable that takes the arguments of a function, and tangents after the last that is differentiated.

    Args:
        kind: the name of the public function that makes it.
        wanted: the function, and with respect to what it is differentiated.
        options: how the derivative is made.
        rebuild: how pickle makes it again.
        plain: the same function, of which zeros are not strong: where no result is NaN, calls from Python use that.
        shows_zeros: as `DerivativeDispatcher` takes it.
        mode: of whose lanes the tangents, or coefficients, are given and returned in tuples; None: one, by itself.
        returns: what it returns; the tangent of the value stands for the gradient.
        has_aux: as in `pushforward`.
        tangents_first: it takes the tangents before all arguments, as generated code passes them.
        kept: positions of arguments whose tangents are not overwritten, whatever the function writes to.
        is_showing: `Task.shows_zeros`.
    """
    primal = wanted.primal
    task = Task(
        roles=tuple((position, Role.TANGENT) for position in wanted.positions),
        seed=Seed.NONE,
        returns=returns,
        has_aux=has_aux,
        single=wanted.single,
        lends_shadows=True,
        options=options,
        mode=mode or FORWARD_MODE,
        is_batched=mode is not None,
        kept=frozenset(kept),
        shows_zeros=is_showing,
    )
    key = (kind, task, tangents_first)

    def build(plain: Any) -> DerivativeDispatcher:
        certain = None if plain is None else partial(build, None)
        return _build(kind, primal, task, rebuild, plain, certain, shows_zeros, tangents_first=tangents_first)

    found = remembered(primal, key, lambda: build(plain))
    return wanted.bound(found, leading=int(tangents_first))


def _build(
    kind: str,
    primal: Any,
    task: Task,
    rebuild: tuple[Any, ...],
    plain: Any,
    certain: Callable[[], DerivativeDispatcher] | None,
    shows_zeros: Callable[[bool], DerivativeDispatcher] | None,
    *,
    tangents_first: bool,
) -> DerivativeDispatcher:
    function = primal.py_func
    names = parameter_names(function)
    call = intrinsic_call(primal, task, names, has_targets=True, has_seed=False)
    if plain is not None:
        call, task = _speculating(plain, task, names, call), replace(task, speculates=True)
    tangents = "series" if task.mode.algebra is Algebra.TAYLOR else "vector" if kind.startswith("hvp") else "tangents"
    tangents = tangents if tangents not in names else f"irad_{tangents}"
    given = "({direction},)" if task.single else "{direction}"
    if task.is_batched and not task.single and task.mode.algebra is not Algebra.TAYLOR:
        # a tuple for each argument, of what is given for each direction
        lanes = range(task.mode.width)
        columns = ("".join(f"{{direction}}[{lane}][{i}], " for lane in lanes) for i in range(len(task.roles)))
        given = f"({''.join(f'({column}), ' for column in columns)})"
    body = f"irad_call({{arguments}}, {given})"
    if tangents_first:
        wrapper = make_wrapper(kind, function, [tangents], body.replace("{direction}", tangents), call)
    else:
        wrapper = make_wrapper(kind, function, [], body, call, (tangents, max(position for position, _ in task.roles)))
    return DerivativeDispatcher(
        wrapper, call, primal, kind, rebuild, python_type(task), task, certain=certain, shows_zeros=shows_zeros
    )


def _speculating(plain: Any, task: Task, names: Sequence[str], certain: Definition) -> Definition:
    task = replace(task, options=replace(task.options, zero_times_infinity="nan"))

    def repeats(given: tuple[Any, ...]) -> bool:
        return derivation_of(plain, given[: len(names)], task).may_have_zeros_that_are_not_strong

    call = intrinsic_call(plain, task, names, has_targets=True, has_seed=False)
    with_value = task.returns is Returns.VALUE_AND_GRADIENT
    is_alone = task.returns is Returns.GRADIENT and not task.has_aux
    where = part_at(*([1] if with_value else [] if is_alone else [0]))
    return speculating([*names, "irad_targets"], call, certain, repeats, where)


@public
def jvp(
    f: Callable[..., Any],
    args: Sequence[Any],
    tangents: Any,
    has_aux: bool = False,
    *,
    argnums: int | Sequence[int] | None = None,
    argnames: str | Sequence[str] | None = None,
    options: Options | None = None,
) -> Any:
    """The value of a function and its derivative in a direction: a product of the Jacobian and a vector.

    If ``f`` writes to an array, the array that was passed as its tangent is overwritten as well: it holds the tangent
    of the new content of the array. Pass a copy of a direction that is to be used again.

    Args:
        f: the function, as in `irad.pushforward`.
        args: its arguments.
        tangents: the direction: for each argument its tangent, None for a constant; with ``argnums`` or ``argnames``
            the tangent of that argument alone, or a tuple of those of several.
        has_aux: ``f`` returns ``(value, aux)``, and only ``value`` has a tangent.
        argnums: the positions of the arguments that have a tangent, as in `irad.pushforward`.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative is created; see `irad.Options`.

    Returns:
        ``(value, tangent)``; with ``has_aux``, ``(value, tangent, aux)``.

    Raises:
        SignatureError: there are not as many tangents as arguments, all are None, or one does not fit its argument.

    Examples:
        >>> import irad
        >>> from numba import njit
        >>> @njit
        ... def area(width, height):
        ...     return width * height
        >>> irad.jvp(area, (3.0, 4.0), (1.0, 0.0))
        (12.0, 4.0)
        >>> irad.jvp(area, (3.0, 4.0), (None, 1.0))
        (12.0, 3.0)
        >>> irad.jvp(area, (3.0, 4.0), 1.0, argnames="height")
        (12.0, 3.0)
    """
    _check_sequence(f, "args", args)
    argnums = chosen(f, argnums, argnames, None)
    if argnums is None:
        _check_sequence(f, "tangents", tangents)
    if argnums is not None:
        push = pushforward(f, argnums, has_aux, options=options)
        return push(*with_direction(args, selected(f, argnums).own_positions, tangents))
    argnums = directions(f, len(args), tangents)
    push = pushforward(f, argnums, has_aux, options=options)
    return push(*with_direction(args, argnums, tuple(tangents[i] for i in argnums)))


def _check_sequence(f: Callable[..., Any], name: str, given: Any) -> None:
    if isinstance(given, tuple | list):
        return
    function = callee_of(f)[0].py_func
    raise SignatureError(
        f"the {name} of irad.jvp({function.__qualname__}, …) are {with_article(type(given).__name__)}, not a tuple",
        "pass a tuple with one entry for each argument, also of one: irad.jvp(f, (x,), (dx,))",
        "irad.jvp takes the arguments of the function together, and their tangents",
        location_of(function),
    )


def with_direction(args: Sequence[Any], positions: Sequence[int], direction: Any) -> tuple[Any, ...]:
    """The arguments of a call of `pushforward`: the direction follows the last argument that is differentiated."""
    after = max(positions) + 1
    return *args[:after], direction, *args[after:]


def written_with_direction(args: str, positions: Sequence[int], direction: str) -> str:
    """The same as code, of the arguments in a tuple; Numba needs each argument in front of a star by itself."""
    after = max(positions) + 1
    return "".join(f"{args}[{i}], " for i in range(after)) + f"{direction}, *{args}[{after}:]"


def directions(f: Callable[..., Any], count: int, tangents: Sequence[Any]) -> tuple[int, ...]:
    """The positions of the tangents that are not None.

    Raises:
        SignatureError: there are more or fewer tangents than the ``count`` arguments of a call, or all are None.
    """
    argnums = tuple(i for i, tangent in enumerate(tangents) if tangent is not None)
    if len(tangents) == count and argnums:
        return argnums
    raise SignatureError(
        f"{getattr(f, '__qualname__', repr(f))} is called with {count} arguments and {len(tangents)} tangents, of "
        f"which {len(argnums)} are not None",
        "pass one tangent for each argument, None for constants, and at least one that is not None",
        "a derivative is taken in a direction, which the tangents give",
        location_of(callee_of(f)[0].py_func),
    )


def _jvp_typed(
    f: Any, args: Any, tangents: Any, has_aux: Any = False, argnums: Any = None, argnames: Any = None
) -> Callable[..., Any]:
    """How Numba types a call of `jvp`: which tangents are None is known then."""
    function, aux = function_behind(f), literal(has_aux, "has_aux")
    where = chosen(function, literal(argnums, "argnums"), literal(argnames, "argnames"), None)
    if where is not None:
        return _pushed(function, where, aux, selected(function, where).positions, "tangents")
    for name, value in (("args", args), ("tangents", tangents)):
        if not isinstance(value, types.BaseTuple):
            raise SignatureError(
                f"{name} of irad.jvp inside compiled code is {described(value)}",
                "write a tuple: irad.jvp(f, (x,), (x_tangent,))",
                "which arguments have a tangent is decided when the function is compiled",
                SourceLocation.here(),
            )
    given = directions(function, len(args.types), [None if each == types.none else each for each in tangents.types])
    return _pushed(function, given, aux, given, f"({''.join(f'tangents[{i}], ' for i in given)})")


def _pushed(
    function: Any, argnums: int | Sequence[int], has_aux: bool, positions: Sequence[int], direction: str
) -> Callable[..., Any]:
    """What a call of `jvp` does."""
    parameters = "f, args, tangents, has_aux=False, argnums=None, argnames=None"
    call = written_with_direction("args", positions, direction)
    body = f"def jvp({parameters}):\n    return push({call})\n"
    return function_from("jvp", body, "irad.jvp", {"push": pushforward(function, argnums, has_aux)})


offer(jvp, _jvp_typed)
offer_maker(pushforward)
