"""The steps of a checkpointed loop in compiled code: ``state = step(state, *arguments)``, or the same in place.

A step that returns nothing changes the arrays of its state. One that returns a state is given arrays of the loop's own,
so it may overwrite them, too.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.core.types import Type
from numba.extending import overload

from irad.api.checkpointing.values import copied, leaves_of
from irad.errors import SignatureError, SourceLocation
from irad.frontend.numba.messages import described
from irad.frontend.numba.target import typing_context


def started(step: Any, state: Any, arguments: Any) -> Any:
    """The state with which a loop begins."""
    raise NotImplementedError


def advanced(step: Any, state: Any, arguments: Any) -> Any:
    """The state after a step."""
    raise NotImplementedError


def finished(step: Any, state: Any, arguments: Any) -> Any:
    """What the loop returns: arrays of its own, if anything."""
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
    """The type of what a step returns."""
    return typing_context().resolve_function_type(step, (state, *arguments.types), {}).return_type


def _check_state(function: Any, state: Type, result: Any) -> None:
    """Checks that a step can follow another.

    Raises:
        SignatureError: what it returns is not a state like the one it is given.
    """
    name, place = function.__qualname__, SourceLocation.of(function)
    for leaf in leaves_of(state):
        is_array = _is_plain_array(leaf.type)
        if not is_array and not isinstance(leaf.type, types.Number | types.Boolean):
            raise SignatureError(
                f"the state of a checkpointed loop of {name} holds {described(leaf.type)}",
                "let the state hold numbers, arrays of numbers and tuples of these; pass the rest as further arguments",
                "snapshots are copies of the state, and memory behind an object would not be copied",
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
            "what a step returns is the state of the next",
            place,
        )


def _is_plain_array(numba_type: Type) -> bool:
    return isinstance(numba_type, types.Array) and isinstance(numba_type.dtype, types.Number | types.Boolean)


def _invariant(numba_type: Any) -> object:
    """What stays the same from step to step; how arrays lie in memory may change."""
    if isinstance(numba_type, types.BaseTuple):
        return getattr(numba_type, "instance_class", None), tuple(map(_invariant, numba_type.types))
    return (numba_type.dtype, numba_type.ndim) if isinstance(numba_type, types.Array) else types.unliteral(numba_type)


overload(started, strict=False)(_started_typed)
overload(advanced, strict=False)(_advanced_typed)
overload(finished, strict=False)(_finished_typed)
