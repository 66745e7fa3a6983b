"""The state of Numba's random generators, in compiled code: what runs again has to draw the same numbers.

Numba has one generator for `np.random` and one for `random`, both for each thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numba
import numpy as np
from llvmlite.ir import IRBuilder, Value
from numba.core import types
from numba.core.types import Type
from numba.core.typing import Signature
from numba.cpython.randomimpl import get_state_ptr, rnd_state_t
from numba.extending import intrinsic, overload

from irad.errors import SourceLocation, UnsupportedError
from irad.frontend.numba import internals
from irad.frontend.numba.target import typing_context

_DRAWING: Final = frozenset({"numba_get_np_random_state", "numba_get_py_random_state"})
_PARALLEL: Final = "numba_parallel_for"


def random_state(f: Any, arguments: Any) -> Any:
    """The state of the generators, if a function draws numbers when it is called with such arguments; else None."""
    raise NotImplementedError


def put_random_state(state: Any) -> None:
    """Gives the generators a state that they had."""
    raise NotImplementedError


def _random_state_typed(f: Any, arguments: Any) -> Any:
    if not _draws(f.dispatcher, arguments.types):
        return lambda f, arguments: None

    def kept(f, arguments):  # type: ignore[no-untyped-def]
        for_numpy, for_python, size = _generators()
        return np.concatenate((numba.carray(for_numpy, size, np.uint8), numba.carray(for_python, size, np.uint8)))

    return kept


def _put_random_state_typed(state: Any) -> Any:
    if state == types.none:
        return lambda state: None

    def put(state):  # type: ignore[no-untyped-def]
        for_numpy, for_python, size = _generators()
        numba.carray(for_numpy, size, np.uint8)[:] = state[:size]
        numba.carray(for_python, size, np.uint8)[:] = state[size:]

    return put


@intrinsic
def _generators(context):  # type: ignore[no-untyped-def]
    """Addresses of the states of the generators of `np.random` and `random`, and their size in bytes."""
    pointer = types.voidptr

    def lower(context: Any, builder: IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
        places = [
            builder.bitcast(get_state_ptr(context, builder, name), context.get_value_type(pointer))
            for name in ("np", "py")
        ]
        size = context.get_constant(types.intp, context.get_abi_sizeof(rnd_state_t))
        found: Value = context.make_tuple(builder, signature.return_type, [*places, size])
        return found

    return types.Tuple((pointer, pointer, types.intp))(), lower


def _draws(dispatcher: Any, argument_types: tuple[Type, ...]) -> bool:
    """True if the code of a function, and of what it calls, uses a generator.

    Raises:
        UnsupportedError: it does so in several threads.
    """
    signature = typing_context().resolve_function_type(types.Dispatcher(dispatcher), argument_types, {})
    library = dispatcher.overloads[signature.args].library
    called = {function.name for function in internals.module_for_linking(library).functions if function.is_declaration}
    if called.isdisjoint(_DRAWING):
        return False
    if _PARALLEL in called:
        name = dispatcher.py_func.__qualname__
        raise UnsupportedError(
            f"{name}, which is checkpointed, runs in parallel and draws random numbers",
            f"draw the numbers first and pass them to {name}, or leave out parallel=True",
            "each thread has its own generator, whose state is not known when it is recomputed",
            SourceLocation.of(dispatcher.py_func),
        )
    return True


overload(random_state, strict=False)(_random_state_typed)
overload(put_random_state, strict=False)(_put_random_state_typed)
