"""Functions that the rules of checkpointed functions and loops call, written for the types of a call; and refusals."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.core import types
from numba.core.types import Type
from numba.np.numpy_support import as_dtype

from irad.api.checkpointing.random_state import put_random_state, random_state
from irad.api.checkpointing.values import FILE, Leaf, copied, leaves_of, pulled_call, structured
from irad.errors import SignatureError, SourceLocation, UnsupportedError
from irad.frontend.generated import function_from
from irad.frontend.inner import inner_jitable, inner_overload
from irad.frontend.numba.messages import described
from irad.frontend.numba.target import typing_context
from irad.frontend.structures.identity import overlaps
from irad.options import Options

# Steps in compiled code: ``state = step(state, *arguments)``, or the same in place.
#
# A step that returns nothing changes the arrays of its state. One that returns a state is given arrays of the loop's
# own, so it may overwrite them, too.


def started(step: Any, state: Any, arguments: Any) -> Any:
    """The state with which a loop begins."""
    raise NotImplementedError


def advanced(step: Any, state: Any, arguments: Any) -> Any:
    """The state after a step."""
    raise NotImplementedError


def finished(step: Any, state: Any, arguments: Any) -> Any:
    """The result of the loop: arrays of its own, if anything."""
    raise NotImplementedError


def _started_typed(step: Any, state: Any, arguments: Any) -> Any:
    result = result_of(step, state, arguments)
    _check_state(step.dispatcher.py_func, state, result)
    if result == types.none:
        return lambda step, state, arguments: state
    return lambda step, state, arguments: copied(state)


def _advanced_typed(step: Any, state: Any, arguments: Any) -> Any:
    if result_of(step, state, arguments) != types.none:
        return lambda step, state, arguments: step(state, *arguments)

    def in_place(step, state, arguments):  # type: ignore[no-untyped-def]
        step(state, *arguments)
        return state

    return in_place


def _finished_typed(step: Any, state: Any, arguments: Any) -> Any:
    if result_of(step, state, arguments) == types.none:
        return lambda step, state, arguments: None
    return lambda step, state, arguments: copied(state)


def result_of(step: Any, state: Type, arguments: Any) -> Any:
    """The type of a step's result."""
    return typing_context().resolve_function_type(step, (state, *arguments.types), {}).return_type


def _check_state(function: Any, state: Type, result: Any) -> None:
    """Checks that a step can follow another.

    Raises:
        SignatureError: its result is not a state like the one it is given.
    """
    name, place = function.__qualname__, SourceLocation.of(function)
    for leaf in leaves_of(state):
        is_array = _is_plain_array(leaf.type)
        if not is_array and not isinstance(leaf.type, types.Number | types.Boolean):
            raise SignatureError(
                f"the state of a checkpointed loop of {name} holds {described(leaf.type)}",
                "let the state hold numbers, arrays of numbers and tuples of these; pass the rest as further arguments",
                "snapshots are copies of the state, and the memory of an object would not be copied",
                place,
            )
        if result == types.none and not is_array:
            raise SignatureError(
                f"{name} returns nothing, and the state of its loop holds {described(leaf.type)}",
                f"(a) let {name} return the new state or (b) pass numbers that stay the same as further arguments",
                "a step that returns nothing changes the arrays of its state; it cannot change a number",
                place,
            )
    if result != types.none and _invariant(state) != _invariant(result):
        raise SignatureError(
            f"{name} is given a state that is {described(state)} and returns {described(result)}",
            "let it return a state of the type that it is given: the same tuples, dtypes and dimensions",
            "the result of a step is the state of the next one",
            place,
        )


def _is_plain_array(numba_type: Type) -> bool:
    return isinstance(numba_type, types.Array) and isinstance(numba_type.dtype, types.Number | types.Boolean)


def _invariant(numba_type: Type) -> object:
    """The part of the state that stays the same from step to step; how arrays lie in memory may change."""
    if isinstance(numba_type, types.BaseTuple):
        return getattr(numba_type, "instance_class", None), tuple(map(_invariant, numba_type.types))
    return (numba_type.dtype, numba_type.ndim) if isinstance(numba_type, types.Array) else types.unliteral(numba_type)


inner_overload(started, strict=False)(_started_typed)
inner_overload(advanced, strict=False)(_advanced_typed)
inner_overload(finished, strict=False)(_finished_typed)


# What cannot be checkpointed is refused when the rule is compiled.


def check_arguments(
    function: Any, values: Sequence[Type], written: Sequence[bool], overwritten: Sequence[bool], *, of_loop: bool
) -> None:
    """Checks that a function can run again with the same arguments.

    Args:
        function: the function, or the step of a loop.
        values: the types of the arguments; of a step those after the state.
        written: whether it may write to their memory.
        overwritten: whether their memory may change afterwards.
        of_loop: whether it is a step that must not write to arrays.

    Raises:
        UnsupportedError: it changes what is not copied.
    """
    name, place = function.__qualname__, SourceLocation.of(function)
    for value, is_written, is_overwritten in zip(values, written, overwritten, strict=True):
        for leaf in leaves_of(value):
            if isinstance(leaf.type, types.NumPyRandomGeneratorType):
                raise UnsupportedError(
                    f"{name}, which is checkpointed, is passed a random generator",
                    f"(a) draw with np.random in {name} or (b) draw first and pass the numbers to {name}",
                    "it is recomputed in the reverse sweep, and would then draw other numbers",
                    place,
                )
            is_array = isinstance(leaf.type, types.Array)
            if of_loop and is_written and is_array:
                raise UnsupportedError(
                    f"{name}, the step of a checkpointed loop, may write to an array that is not part of the state",
                    f"(a) make the array part of the state or (b) let {name} create its work array itself",
                    "the step is recomputed from a snapshot of the state alone; other memory may have changed by then",
                    place,
                )
            if (is_written or is_overwritten) and not (is_array or leaf.is_immutable):
                raise UnsupportedError(
                    f"{name}, which is checkpointed, is passed {described(leaf.type)} that may change",
                    f"pass {name} arrays and numbers in its place",
                    "it is recomputed in the reverse sweep, and irad copies only arrays",
                    place,
                )


def check_result(function: Any, result: Type, returned: Sequence[bool]) -> None:
    """Checks that a function makes the arrays that it returns.

    Raises:
        UnsupportedError: they may be those of an argument.
    """
    if any(returned) and arrays_of(result, ""):
        raise UnsupportedError(
            returns_argument(function),
            f"let {function.__qualname__} return a copy",
            "when it is recomputed, its result must be a new array",
            SourceLocation.of(function),
        )


def returns_argument(function: Any) -> str:
    """Problem of a function that may return one of its arguments."""
    return f"{function.__qualname__}, which is checkpointed, may return an array that it was passed, or a view of it"


def arrays_of(numba_type: Type, root: str) -> list[str]:
    """The expressions of the arrays in a value."""
    return [leaf.text for leaf in leaves_of(numba_type, root) if isinstance(leaf.type, types.Array)]


def pairs_of_arrays(one: tuple[Type, str], other: tuple[Type, str]) -> str:
    """The arguments of calls of `overlaps` for all arrays of two values."""
    return " or ".join(f"overlaps({a}, {b})" for a, b in itertools.product(arrays_of(*one), arrays_of(*other)))


@inner_jitable
def differs(one, other):  # type: ignore[no-untyped-def]
    """True if two arrays of one shape hold different numbers; NaN is not different from NaN."""
    for index in np.ndindex(one.shape):
        if one[index] != other[index] and (one[index] == one[index] or other[index] == other[index]):
            return True
    return False


# The rules.


def saved(config: Any, f: Any, values: Any, first: Any) -> Any:
    """The arguments of a rule from a position on, as the reverse needs them: arrays that change are copied."""
    raise NotImplementedError


def is_new(config: Any, f: Any, values: Any, result: Any) -> None:
    """Nothing, unless a function returns arrays that it was passed."""
    raise NotImplementedError


def are_kept(config: Any, step: Any, held: Any, arguments: Any) -> None:
    """Nothing, unless a step has written to arrays that are not part of the state."""
    raise NotImplementedError


def run_again(config: Any, f: Any, cotangent: Any, tape: Any, arguments: Any) -> Any:
    """Runs a function again with a tape, and pulls the cotangent of its value back, for the reverse of its rule."""
    raise NotImplementedError


def run_back(config: Any, step: Any, recovered: Any, cotangent: Any, tape: Any, state: Any, arguments: Any) -> Any:
    """Reverses the steps of a loop; returns the cotangents of the state and the arguments, as its rule does."""
    raise NotImplementedError


def _saved_typed(config: Any, f: Any, values: Any, first: Any) -> Any:
    known, start = config.config, first.literal_value
    written, overwritten = (flags[start : start + len(values)] for flags in (known.written, known.overwritten))
    check_arguments(f.dispatcher.py_func, values.types, written, overwritten, of_loop=start > 0 and known.is_seen)
    changes = [one or other for one, other in zip(written, overwritten, strict=True)]
    items = "".join(f"copied(values[{i}]), " if each else f"values[{i}], " for i, each in enumerate(changes))
    source = f"def saved(config, f, values, first):\n    return ({items})\n"
    return function_from("saved", source, FILE, {"copied": copied})


def _is_new_typed(config: Any, f: Any, values: Any, result: Any) -> Any:
    function = f.dispatcher.py_func
    if config.config.is_seen:
        check_result(function, result, config.config.returned)
        return lambda config, f, values, result: None
    found = pairs_of_arrays((values, "values"), (result, "result"))
    problem = f"{returns_argument(function)}: return a copy"
    return _raising("is_new(config, f, values, result)", found, problem, {"overlaps": overlaps})


def _are_kept_typed(config: Any, step: Any, held: Any, arguments: Any) -> Any:
    if config.config.is_seen:
        return lambda config, step, held, arguments: None
    pairs = zip(arrays_of(held, "held"), arrays_of(arguments, "arguments"), strict=True)
    name = step.dispatcher.py_func.__qualname__
    problem = f"{name}, the step of a checkpointed loop, writes to an array that is not part of the state"
    found = " or ".join(f"differs({one}, {other})" for one, other in pairs)
    return _raising("are_kept(config, step, held, arguments)", found, problem, {"differs": differs})


def _raising(head: str, condition: str, problem: str, scope: dict[str, Any]) -> Any:
    """A function that raises an exception on a condition, which may be empty."""
    body = f"    if {condition}:\n        raise ValueError({problem!r})\n" if condition else "    return\n"
    return function_from(head.partition("(")[0], f"def {head}:\n{body}", FILE, scope)


def _run_again_typed(config: Any, f: Any, cotangent: Any, tape: Any, arguments: Any) -> Any:
    scope: dict[str, Any] = {"copied": copied, "random_state": random_state, "put_random_state": put_random_state}
    values, known = tape[0], config.config
    # the tape stays as it is for the next run of a pullback
    again = [f"copied(tape[0][{i}])" if written else f"tape[0][{i}]" for i, written in enumerate(known.written)]
    given = _Given(values, arguments, "values")
    seed = None if cotangent == types.none else "cotangent"
    call, active = pulled_call(f.dispatcher, given.values, given.shadows, given.numbers, seed, scope, known.options)
    found = {leaf: f"found[{i}]" for i, leaf in enumerate(active)}
    source = (
        "def run_again(config, f, cotangent, tape, arguments):\n"
        f"    values = ({''.join(f'{each}, ' for each in again)})\n"
        "    drawing = random_state(f, values)\n"
        "    put_random_state(tape[1])\n"
        f"    found = {call}\n"
        "    put_random_state(drawing)\n"
        f"    return {given.returned(found, scope)}\n"
    )
    return function_from("run_again", source, FILE, scope)


def _run_back_typed(
    config: Any, step: Any, recovered: Any, cotangent: Any, tape: Any, state: Any, arguments: Any
) -> Any:
    snapshots, *_, held = tape
    return _RunBack(step, cotangent, snapshots.dtype[0], held, state, arguments, config.config.options).function()


class _Given:
    """The arguments of a call in the reverse of a rule: their values, and the parts that take part.

    Attributes:
        values: the type of each, and its leaves.
        shadows: the expressions of the shadows of arrays that take part.
        numbers: those that take part.
    """

    def __init__(self, held: Any, annotated: Any, root: str) -> None:
        self.values = [(held[i], leaves_of(held[i], f"{root}[{i}]")) for i in range(len(held))]
        self.shadows: dict[Leaf, str] = {}
        self.numbers: list[Leaf] = []
        for i, (_, leaves) in enumerate(self.values):
            for leaf in (leaf for leaf in leaves if leaf.path in annotated[i].active):
                if leaf.is_number:
                    self.numbers.append(leaf)
                else:
                    self.shadows[leaf] = leaf.of(f"arguments[{i}].shadow")

    def returned(self, found: dict[Leaf, str], scope: dict[str, Any]) -> str:
        """The expression that the reverse returns: the cotangents of numbers, None for the rest."""
        items = (structured(t, iter([found.get(x, "None") for x in leaves]), scope) for t, leaves in self.values)
        return f"({''.join(f'{item}, ' for item in items)})"


@inner_jitable
def _add(array, more):  # type: ignore[no-untyped-def]
    array += more


@inner_jitable
def _put(array, content):  # type: ignore[no-untyped-def]
    array[...] = content


class _RunBack:
    """Writes the reverse of a loop. All floats of the state take part: they may come to depend on an argument."""

    def __init__(
        self, step: Any, cotangent: Any, state: Type, held: Any, annotated: Any, arguments: Any, options: Options
    ) -> None:
        self.step, self.cotangent, self.annotated, self.options = step, cotangent, annotated, options
        self.result = result_of(step, state, held)
        self.in_place = self.result == types.none
        self.state, self.leaves = state, leaves_of(state, "current")
        self.moving = [leaf for leaf in self.leaves if leaf.is_number or leaf.is_array]
        self.given = _Given(held, arguments, "held")
        self.scope: dict[str, Any] = {"zeros_like": np.zeros_like, "copied": copied, "add": _add, "put": _put}
        self.scope |= {"random_state": random_state, "put_random_state": put_random_state}

    def function(self) -> Any:
        """The function, for `run_back`."""
        lines = ["snapshots, used, places, free, steps, held = tape", *self.beginning(), *self.sums()]
        if self.in_place or self.cotangent != types.none:
            lines += ["initial, _ = snapshots[0]", "drawing = random_state(step, (initial, *held))"]
            lines += ["for index in range(steps - 1, -1, -1):", *(f"    {line}" for line in self.one_step())]
            lines += ["put_random_state(drawing)"]
        lines += self.end()
        head = "def run_back(config, step, recovered, cotangent, tape, state, arguments):\n"
        return function_from("run_back", head + "".join(f"    {line}\n" for line in lines), FILE, self.scope)

    def beginning(self) -> list[str]:
        """The cotangent of the state after the last step: ``c0`` and so on."""
        lines = []
        for i, leaf in enumerate(self.moving):
            if not self.in_place:
                source = leaf.of("cotangent") if self.cotangent != types.none else self.zero(leaf)
            elif leaf.path in self.annotated.active:
                source = f"copied({leaf.of('state.shadow')})"
            else:
                source = self.zero(leaf)
            lines.append(f"c{i} = {source}")
        return lines

    def zero(self, leaf: Leaf) -> str:
        """The expression of a zero cotangent."""
        if leaf.is_array:
            return f"zeros_like({leaf.of('snapshots[0][0]')})"
        name = f"zero_{leaf.type}"
        self.scope[name] = as_dtype(leaf.type).type(0)
        return name

    def sums(self) -> list[str]:
        """The cotangents of the numbers among the arguments: ``a0`` and so on."""
        return [f"a{i} = {self.zero(leaf)}" for i, leaf in enumerate(self.given.numbers)]

    def one_step(self) -> list[str]:
        """The reverse of a step."""
        cotangents = {leaf: f"c{i}" for i, leaf in enumerate(self.moving)}
        sums = dict(zip(self.given.numbers, self.sums_names(), strict=True))
        shadows = {leaf: c if self.in_place else f"b{c}" for leaf, c in cotangents.items() if leaf.is_array}
        numbers = [leaf for leaf in self.moving if leaf.is_number]
        call, active = pulled_call(
            self.step.dispatcher,
            [(self.state, self.leaves), *self.given.values],
            shadows | self.given.shadows,
            [*numbers, *self.given.numbers],
            self.seed(cotangents, list(sums.values())),
            self.scope,
            self.options,
            self.given.numbers,
            has_value=not self.in_place,
        )
        lines = ["current = recovered(step, index, snapshots, used, places, free, held)"]
        if not self.in_place:
            lines += [f"{shadow} = zeros_like({leaf.text})" for leaf, shadow in shadows.items()]
        lines.append(f"found = {call}")
        lines += [f"{(cotangents | sums)[leaf]} = found[{i}]" for i, leaf in enumerate(active)]
        return lines if self.in_place else [*lines, *(f"{cotangents[leaf]} = {s}" for leaf, s in shadows.items())]

    def sums_names(self) -> list[str]:
        """The variables of `sums`."""
        return [f"a{i}" for i in range(len(self.given.numbers))]

    def seed(self, cotangents: dict[Leaf, str], sums: list[str]) -> str | None:
        """The cotangent of a step's result, and with it those of the numbers that the step passes on."""
        if self.in_place:
            return f"({', '.join(sums)},)" if sums else None
        value = structured(self.result, iter([cotangents.get(leaf, "None") for leaf in self.leaves]), self.scope)
        return f"({', '.join([value, *sums])})" if sums else value

    def end(self) -> list[str]:
        """Code that delivers the cotangents once all steps are reversed."""
        lines, found = [], {}
        for i, leaf in enumerate(self.moving):
            if leaf.path in self.annotated.active:
                if leaf.is_number:
                    found[leaf] = f"c{i}"
                else:
                    lines.append(f"{'put' if self.in_place else 'add'}({leaf.of('state.shadow')}, c{i})")
        of_state = structured(self.state, iter([found.get(leaf, "None") for leaf in self.leaves]), self.scope)
        sums = dict(zip(self.given.numbers, self.sums_names(), strict=True))
        return [*lines, f"return ({of_state}, *{self.given.returned(sums, self.scope)})"]


inner_overload(saved, strict=False, prefer_literal=True)(_saved_typed)
inner_overload(is_new, strict=False)(_is_new_typed)
inner_overload(are_kept, strict=False)(_are_kept_typed)
inner_overload(run_again, strict=False)(_run_again_typed)
inner_overload(run_back, strict=False)(_run_back_typed)
