"""What cannot be checkpointed is refused when the rule is compiled."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numba.core import types
from numba.core.types import Type
from numba.extending import register_jitable

from irad.api.checkpointing.values import leaves_of
from irad.errors import SourceLocation, UnsupportedError
from irad.frontend.numba.messages import described


def check_arguments(
    function: Any, values: Sequence[Type], written: Sequence[bool], overwritten: Sequence[bool], *, of_loop: bool
) -> None:
    """Checks that a function can run again with the same arguments.

    Args:
        function: the function, or the step of a loop.
        values: the types of the arguments; of a step those behind the state.
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
                    "it runs again in the reverse sweep, and would draw other numbers",
                    place,
                )
            is_array = isinstance(leaf.type, types.Array)
            if of_loop and is_written and is_array:
                raise UnsupportedError(
                    f"{name}, the step of a checkpointed loop, may write to an array that is not part of the state",
                    f"(a) make the array part of the state or (b) let {name} make the array that it works in",
                    "the step runs again from a snapshot of the state, and nothing else is as it was",
                    place,
                )
            if (is_written or is_overwritten) and not (is_array or leaf.is_immutable):
                raise UnsupportedError(
                    f"{name}, which is checkpointed, is passed {described(leaf.type)} that may change",
                    f"pass {name} arrays and numbers in its place",
                    "it runs again in the reverse sweep, and irad keeps copies only of arrays",
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
            "its value is known by new arrays when it runs again",
            SourceLocation.of(function),
        )


def returns_argument(function: Any) -> str:
    """What is wrong with a function that returns what it was passed."""
    return f"{function.__qualname__}, which is checkpointed, may return an array that it was passed, or a view of it"


def arrays_of(numba_type: Type, root: str) -> list[str]:
    """The expressions of the arrays in a value."""
    return [leaf.text for leaf in leaves_of(numba_type, root) if isinstance(leaf.type, types.Array)]


def pairs_of_arrays(one: tuple[Type, str], other: tuple[Type, str]) -> str:
    """The arguments of calls of `overlaps` for all arrays of two values."""
    return " or ".join(f"overlaps({a}, {b})" for a, b in itertools.product(arrays_of(*one), arrays_of(*other)))


@register_jitable
def differs(one, other):  # type: ignore[no-untyped-def]
    """Whether two arrays of one shape hold different numbers; NaN is not different from NaN."""
    for index in np.ndindex(one.shape):
        if one[index] != other[index] and (one[index] == one[index] or other[index] == other[index]):
            return True
    return False
