"""Lengths in the call from Python that has a derivative compiled.

What Numba compiles is for arrays of any size. Where that is a handful, such as the number of axes of points in space,
loops over it cost more to control than to compute, and the arrays in them have to be memory. The call for which code is
made says how many there are, so `passes.prepare.shape_specialisation` can make a version for that number; any other
call takes the version for all numbers.

The arguments get here past Numba's compiler, which knows types only: hence the context variable.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import numpy as np
from numba.core.dispatcher import Dispatcher, OmittedArg
from numba.core.types import Type

_LONGEST: Final = 8
_LARGE: Final = 256
"""From this number of elements on, or for such an integer, a call is taken to be a real one, not a first try."""

_call: ContextVar[tuple[Sequence[Dispatcher], Mapping[str, Any]] | None] = ContextVar("irad_call", default=None)


@contextmanager
def observing(dispatchers: Sequence[Dispatcher], values: Mapping[str, Any]) -> Iterator[None]:
    """Compiles for a call.

    Args:
        dispatchers: the functions that are called with the arguments.
        values: the arguments, by the names of parameters; those that a star collects are one tuple.
    """
    token = _call.set((dispatchers, values))
    try:
        yield
    finally:
        _call.reset(token)


def observed_lengths(dispatcher: Dispatcher, argument_types: tuple[Type, ...]) -> dict[int, int]:
    """The short lengths of arrays in the present call of a function, by LLVM parameter.

    Args:
        dispatcher: the function.
        argument_types: the types that it is compiled for.
    """
    dispatchers, values = _call.get() or ((), {})
    if not any(each is dispatcher for each in dispatchers) or not tell_lengths(tuple(values.values())):
        return {}
    from irad.frontend.values.abi import arguments_of  # the engine: a derivative from disk does without

    found = dict[int, int]()
    for argument in arguments_of(dispatcher.py_func, argument_types):
        leaves = list(_leaves(_value_of(argument.name, values)))
        if len(leaves) == len(argument.leaves):
            for leaf, value in zip(argument.leaves, leaves, strict=True):
                if leaf.is_array and isinstance(value, np.ndarray):
                    lengths = enumerate(value.shape, leaf.data_index + 1)
                    found |= {index: n for index, n in lengths if 0 < n <= _LONGEST}
    return found


def tell_lengths(values: tuple[Any, ...]) -> bool:
    """True if there are short lengths among the arguments of a call, and it is a real one, not a first try."""
    leaves = list(_leaves(values))
    is_real = any(map(_is_large, leaves))
    return is_real and any(0 < n <= _LONGEST for each in leaves if isinstance(each, np.ndarray) for n in each.shape)


def _value_of(name: str, values: Mapping[str, Any]) -> Any:
    """The value of an argument; ``name[i]`` is one that a star collects."""
    parameter, _, index = name.partition("[")
    value = values.get(parameter)
    return value[int(index[:-1])] if index and isinstance(value, tuple) else value


def _leaves(value: Any) -> Iterator[Any]:
    """The parts of a value that are not tuples."""
    match value:
        case tuple():
            for each in value:
                yield from _leaves(each)
        case OmittedArg():
            yield from _leaves(value.value)
        case _:
            yield value


def _is_large(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.size >= _LARGE
    return isinstance(value, int | np.integer) and bool(value >= _LARGE)
