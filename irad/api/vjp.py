"""`vjp`: the value of a function now, its derivative for any cotangent later.

In compiled code that is differentiated itself the pullback runs its function again. A tape has no derivative: it lies
in memory that outlives the call. The pullback keeps copies of the arguments instead, and runs both sweeps for each
cotangent. As long as every run of the function does the same, so does that.

    value, pullback = irad.vjp(f, x)         kept = (x.copy(),); value = f(x)
    pullback(c)                              sweeps_of_f(c, *kept)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import combinations
from typing import Any, Final, Literal, overload

from numba import typeof
from numba.core import types
from numba.core.registry import CPUDispatcher
from numba.extending import register_model

from irad.api.closures import (
    ClosureModel,
    ClosureType,
    PullbackType,
    Tape,
    closure_maker,
    direction,
    entries,
    pullback_maker,
    tape_type,
    type_of_call,
)
from irad.api.functions import check_options, options_or_default, primal_of, remembered
from irad.api.jit import A, R, jit
from irad.api.makers import MAKERS, derivative_of, is_usual, maker
from irad.api.nopython import MOST_ARGUMENTS, CallSite, function_behind, literal, offer_call
from irad.api.selection import Selection, callee_of, selected_if_any
from irad.api.specialised import share_memory
from irad.debug.seal import Seal
from irad.errors import IradError, SignatureError, UnsupportedError, without_source
from irad.frontend.calls.dispatcher import DerivativeDispatcher, parameter_names
from irad.frontend.calls.raising import leaving
from irad.frontend.calls.separate_dispatcher import AugmentedDispatcher, Separate, task_for
from irad.frontend.calls.separate_sweeps import check_final
from irad.frontend.calls.signature import may_have_derivative, without_aux, without_derivative
from irad.frontend.calls.task import Role, Seed, Task
from irad.frontend.calls.typed_call import derivation_to_differentiate
from irad.frontend.custom.rules_from_partials import kept_value
from irad.frontend.derivation import Derivation
from irad.frontend.generated import function_from
from irad.frontend.numba import private
from irad.frontend.numba.boxing import with_numpy_numbers
from irad.frontend.numba.messages import described, location_of
from irad.frontend.numba.target import typing_context
from irad.frontend.values import abi
from irad.frontend.values.abi import arguments_of
from irad.frontend.values.tree import LeafKind
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
            `irad.vjp` was given argnums or argnames, the entry of that argument, or a tuple of those of several.

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
        return found[self._argnums] if isinstance(self._argnums, int) else tuple([found[i] for i in self._argnums])

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


@maker
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
    """Runs a function and saves the values that its reverse sweep needs.

    All arguments with floats are differentiated, or those that ``argnums`` or ``argnames`` names; ints, strings and the
    like are constants. Arrays that the function writes to are written, as in a plain call. If the function returns a
    value, the cotangent of their final contents is zero. If it returns nothing, the pullback takes that cotangent: a
    tuple with an array for each array argument that is written, and None for any other argument.

    Args:
        f: the function, as in `irad.grad`; it may return anything, or nothing.
        args: its arguments.
        has_aux: ``f`` returns ``(value, aux)``; the pullback takes the cotangent of ``value``.
        argnums: a position, or a tuple of positions: the pullback then returns the cotangent of that argument, or a
            tuple of those of several, instead of an entry for each. The others are constants, which makes the tape
            smaller.
        argnames: in place of ``argnums``, the name of the parameter, or a tuple of names.
        options: how the derivative is created; see `irad.Options`. In compiled code those of the environment apply.
        keywords: further arguments of the function, by name.

    Returns:
        ``(value, pullback)``; with ``has_aux``, ``(value, pullback, aux)``. The pullback takes a cotangent with the
        structure of the value and returns a tuple with the cotangent of each argument, in new memory.

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

    def find() -> tuple[AugmentedDispatcher, int | tuple[int, ...] | None]:
        wanted = selected_if_any(f, argnums, argnames)
        found = augmented_of(primal, options, None if wanted is None else wanted.positions)
        return found, None if wanted is None else wanted.argnums

    if options is None and is_usual(f, 0 if argnums is None else argnums, argnames):
        sweep, returned = remembered(primal, ("sweep", argnums), find)
    else:
        sweep, returned = find()
    value, tape = _run(sweep, (*leading, *args), keywords)
    pullback = Pullback(tape, returned, len(leading), has_aux=has_aux)
    if not has_aux:
        return value, pullback
    if not isinstance(value, tuple) or len(value) != 2:
        raise without_aux(primal, typeof(value))
    return value[0], pullback, value[1]


def _run(sweep: AugmentedDispatcher, args: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, Tape]:
    number, value, state, shadows = sweep(*args, **keywords)
    seal = None
    if sweep.options.debug:
        function = sweep.primal.py_func
        given = inspect.signature(function).bind(*args, **keywords).arguments
        rules = sweep.specialisations[int(number)].has_rules
        seal = Seal(function.__qualname__, location_of(function), list(given.items()), value, rules)
    return value, Tape(sweep, number, state, shadows, (args, keywords, value), seal)


def augmented_of(
    f: Callable[..., Any],
    options: Options | None,
    argnums: tuple[int, ...] | None = None,
    width: int | None = None,
    *,
    shows_zeros: bool = False,
) -> AugmentedDispatcher:
    """The compiled forward sweep of `vjp`, with respect to some arguments, or to all that have derivatives.

    ``shows_zeros`` is that of its `Task`.

    Its pullback takes a tuple of ``width`` cotangents, if given, and returns as many derivatives for each argument.
    """
    primal = primal_of(f)
    argnums = None if argnums is None else tuple(sorted(argnums))

    def build() -> AugmentedDispatcher:
        chosen = options_or_default(options)
        sweeps = Separate(
            MAKERS["vjp"].name,
            partial(task_for, options=chosen, argnums=argnums, shows_zeros=shows_zeros),
            writes_seeded=True,
            otherwise=partial(task_for, options=chosen) if argnums is not None else None,
            width=width,
            active=None if argnums is None else frozenset(argnums),
        )
        return AugmentedDispatcher(primal, sweeps, chosen, (augmented_of, (f, options, argnums, width)), shows_zeros)

    return remembered(primal, ("vjp", options, argnums, width, shows_zeros), build)


# In compiled code.

# Pullbacks that run their function again.

_FILE: Final = "irad.vjp"
_PROBLEM, _REMEDY, _REASON = (
    "two arguments of a function that writes to one of them overlap, where its pullback is differentiated",
    "pass copies: x.copy()",
    "the pullback runs the function again, at copies of its arguments, which do not overlap",
)


class _WritingPullbackType(ClosureType):
    """The type of a pullback of a function that returns nothing: it takes cotangents of written arrays."""

    def __init__(self, apply: Any, kept: Any, arguments: tuple[abi.Argument, ...]) -> None:
        self._arguments = arguments
        super().__init__("pullback", apply, kept)

    def get_call_type(self, context: Any, args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        """Numba's hook when the pullback is called."""
        if len(args) == 1:
            check_final(self.apply.py_func.__name__, self._arguments, args[0])
        return super().get_call_type(context, args, kws)


register_model(_WritingPullbackType)(ClosureModel)


def rerunning(call: CallSite, primal: CPUDispatcher, wanted: Selection | None, *, has_aux: bool) -> Callable[..., Any]:
    """Python code of a call of `irad.vjp`, which Numba compiles, for the types of its arguments.

    Args:
        call: with its arguments.
        primal: the dispatcher of the function.
        wanted: with respect to what it is differentiated; None: all arguments that have a derivative.
        has_aux: the function returns a pair, of which the first is differentiated.

    Raises:
        SignatureError: no argument has a derivative.
        UnsupportedError: an argument cannot be copied, or the function does something else when it runs again.
    """
    options = options_or_default(None)
    found = typing_context().resolve_function_type(types.Dispatcher(primal), call.positional, call.named)
    taken = tuple(typeof(each.value) if isinstance(each, types.Omitted) else each for each in found.args)
    task = task_for(primal, taken, options, None if wanted is None else wanted.positions)
    arguments = abi.arguments_of(primal.py_func, taken)
    writes_only = task.seed is Seed.NONE
    row = MAKERS["vjp"]
    task = _task(task, primal, arguments) if writes_only else row.task((i for i, _ in task.roles), options)
    if has_aux and (not isinstance(found.return_type, types.BaseTuple) or len(found.return_type) != 2):
        raise without_aux(primal, found.return_type)
    derivation = derivation_to_differentiate(primal, taken, task)
    _check(primal, derivation)
    given = (*call.positional, *call.named.values())
    kept = types.BaseTuple.from_types(tuple(type_of_call(kept_value, each) for each in given))
    apply = jit(_apply(call, primal, task, len(arguments), None if wanted is None else wanted.argnums, has_aux=has_aux))
    kind = _WritingPullbackType(apply, kept, arguments) if writes_only else ClosureType("pullback", apply, kept)
    checks = "".join(
        f"    if share_memory({one}, {other}):\n        refuse()\n" for one, other in _pairs(derivation, call, primal)
    )
    body = (
        f"    irad_all = ({call.values})\n"
        f"{checks}"
        "    pullback = make(kept_value(irad_all))\n"
        f"    value = primal({call.passed})\n"
        f"    return {'value[0], pullback, value[1]' if has_aux else 'value, pullback'}\n"
    )
    scope = {"kept_value": kept_value, "primal": primal, "make": closure_maker(kind)}
    return call.function(body, {**scope, "share_memory": share_memory, "refuse": _refuse})


@jit
def _refuse():  # type: ignore[no-untyped-def]
    raise SignatureError(_PROBLEM, _REMEDY, _REASON)


def _task(task: Task, primal: CPUDispatcher, arguments: tuple[abi.Argument, ...]) -> Task:
    """The task of a function that returns nothing: shadows of its arrays start as the cotangents of their content."""
    positions = {position for position, _ in task.roles}
    for argument in arguments:
        if argument.position in positions and isinstance(argument.type, types.BaseTuple):
            raise UnsupportedError(
                f"the pullback of {primal.py_func.__qualname__} is differentiated, and {argument} is a tuple",
                "pass its parts one by one",
                "if a function returns nothing, each array needs its own shadow",
                location_of(primal.py_func),
            )
    roles = (
        (a.position, Role.SHADOW if isinstance(a.type, types.Array) else Role.GRADIENT)
        for a in arguments
        if a.position in positions
    )
    return Task(tuple(roles), Seed.NONE, options=task.options)


def _check(primal: CPUDispatcher, derivation: Derivation) -> None:
    """Checks that the function may run again, at copies of its arguments."""
    name, place = primal.py_func.__qualname__, location_of(primal.py_func)
    for argument in derivation.arguments:
        if any(leaf.kind in (LeafKind.OBJECT, LeafKind.RECORD) for leaf in argument.leaves):
            raise UnsupportedError(
                f"the pullback of {name} is differentiated, and {argument} is {described(argument.type)}, which cannot "
                "be copied",
                f"(a) irad.value_and_grad({name}, …) in place of irad.vjp or (b) pass its numbers as arrays",
                "a pullback that is differentiated reruns its function, on copies of the arguments",
                place,
            )
    if not derivation.repeats:
        raise UnsupportedError(
            f"the pullback of {name} is differentiated, and {name} has side effects",
            f"(a) irad.value_and_grad({name}, …) in place of irad.vjp or (b) draw random numbers outside of {name}",
            "a pullback that is differentiated reruns its function, and this function draws random numbers, or "
            "changes memory that is not an argument",
            place,
        )


def _place(call: CallSite, primal: CPUDispatcher, position: int) -> int | None:
    """Position of an argument among those that the call passes; None if it is a default."""
    if position < len(call.positional):
        return position
    named = list(call.named)
    name = parameter_names(primal.py_func)[position]
    return len(call.positional) + named.index(name) if name in named else None


def _pairs(derivation: Derivation, call: CallSite, primal: CPUDispatcher) -> Iterator[tuple[str, str]]:
    """Arrays that must not overlap: those of which one is written."""
    arrays = [
        (f"irad_all[{place}]{''.join(f'[{step}]' for step in leaf.path)}", leaf.data_index)
        for a in derivation.arguments
        for leaf in a.leaves
        if leaf.is_array and (place := _place(call, primal, a.position)) is not None
    ]
    written = derivation.compiled.written
    return ((one, other) for (one, i), (other, j) in combinations(arrays, 2) if i in written or j in written)


def _apply(
    call: CallSite,
    primal: CPUDispatcher,
    task: Task,
    count: int,
    argnums: int | tuple[int, ...] | None,
    *,
    has_aux: bool,
) -> Callable[..., Any]:
    """The function that a pullback calls: both sweeps, and an entry for each argument, or for those asked for."""
    shadows = task.destinations
    items = {i: f"s{i}" for i in shadows}
    items |= {i: f"found[{place}]" for place, i in enumerate(task.returned)}  # in the order of argnums
    result = entries(lambda i: items.get(i, "None"), range(count) if argnums is None else argnums)
    made = "".join(f"    s{i} = direction(cotangent[{i}], kept[{_place(call, primal, i)}])\n" for i in shadows)
    seed = "(cotangent, None)" if has_aux else "cotangent"
    leading = [f"s{i}" for i in shadows] if task.seed is Seed.NONE else [seed]
    names = [*[""] * len(call.positional), *(f"{name}=" for name in call.named)]
    passed = [f"{name}again[{i}]" for i, name in enumerate(names)]
    source = (
        "def apply(kept, cotangent):\n"
        f"{made}"
        "    again = kept_value(kept)\n"
        f"    found = derivative({', '.join([*leading, *passed])})\n"
        f"    return {result}\n"
    )
    scope = {"derivative": sweeps(primal, task), "direction": direction, "kept_value": kept_value}
    apply = function_from("apply", source, _FILE, scope)
    apply.__name__ = primal.py_func.__qualname__
    return apply


def sweeps(primal: CPUDispatcher, task: Task) -> DerivativeDispatcher:
    """Both sweeps as a function of the shadows or the cotangent, and the arguments."""
    return derivative_of(MAKERS["vjp"], primal, task, (_no_pickle, ()), boxed_as=with_numpy_numbers)


def _no_pickle() -> None:
    raise TypeError("the code of a pullback cannot be pickled")


# The call.


def _typed(call: CallSite) -> Callable[..., Any]:
    """Python code of a call, which Numba compiles, for the types of its arguments."""
    primal = primal_of(function_behind(call.first))
    wanted, has_aux = call.selected(primal), call.has_aux
    if private.shadow().refuses_pullbacks:
        return rerunning(call, primal, wanted, has_aux=has_aux)
    sweep = augmented_of(primal, None, None if wanted is None else wanted.positions)
    tape = tape_type(sweep, (), call.positional, call.named)
    value = tape.alive.types[-1]
    if has_aux and (not isinstance(value, types.BaseTuple) or len(value) != 2):
        raise without_aux(primal, value)
    make = pullback_maker(PullbackType(tape, None if wanted is None else wanted.argnums, has_aux=has_aux))
    returned = "value[0], pullback, value[1]" if has_aux else "value, pullback"
    body = (
        f"    _number, value, state, shadows = sweep({call.passed})\n"
        f"    pullback = make(state, shadows, ({call.values}value))\n"
        f"    return {returned}\n"
    )
    return call.function(body, {"sweep": sweep, "make": make})


def _on_device(
    make: Callable[..., Any], f: Any, args: tuple[Any, ...], has_aux: Any, argnums: Any, argnames: Any
) -> Callable[..., Any]:
    """`vjp` in device code, which has no memory for a tape: the pullback runs the function again."""
    primal, with_aux = primal_of(function_behind(f)), bool(literal(has_aux, "has_aux"))
    given = tuple(types.unliteral(each) for each in args if isinstance(each, types.Type))
    wanted = selected_if_any(primal, literal(argnums, "argnums"), literal(argnames, "argnames"))
    arguments = arguments_of(primal.py_func, given)
    if wanted is None:
        positions = tuple(each.position for each in arguments if may_have_derivative(each))
    else:
        positions = wanted.positions
    if not positions:
        raise without_derivative(primal, arguments)
    task = MAKERS["vjp"].task(positions, options_or_default(None))
    items = {position: f"found[{i}]" for i, position in enumerate(positions)}
    result = entries(lambda i: items.get(i, "None"), range(len(given)) if wanted is None else wanted.argnums)
    seed = "(cotangent, None)" if with_aux else "cotangent"
    source = f"def pullback(kept, cotangent):\n    found = derivative({seed}, *kept)\n    return {result}\n"
    apply = make(function_from("pullback", source, "irad.vjp", {"derivative": sweeps(primal, task)}), {})
    kind = ClosureType("pullback", apply, types.BaseTuple.from_types(given))
    names = "".join(f"a{i}, " for i in range(len(given)))
    result = f"value[0], make(({names})), value[1]" if with_aux else f"value, make(({names}))"
    source = f"def vjp(f, {', '.join(_NAMES)}, {_MORE}):\n    value = primal({names})\n    return {result}\n"
    return function_from("vjp", source, "irad.vjp", {"primal": primal, "make": closure_maker(kind)})


_NAMES: Final = tuple(f"a{i}" for i in range(MOST_ARGUMENTS))
_MORE: Final = "has_aux, argnums, argnames"
_DEFAULTS: Final = "has_aux=False, argnums=None, argnames=None"
_SOURCE: Final = (
    f"def typing(make, f, {', '.join(f'{each}=_absent' for each in _NAMES)}, {_DEFAULTS}):\n"
    f"    return typed(make, f, ({', '.join(_NAMES)}), {_MORE})\n"
)
offer_call(
    vjp, _typed, on_device=function_from("typing", _SOURCE, "irad.vjp", {"typed": _on_device, "_absent": "irad: none"})
)
