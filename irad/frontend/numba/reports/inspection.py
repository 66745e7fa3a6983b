"""What Numba made from a function on the way to irad's program, and from the derivative: for reports only.

Nothing here is on the way to a derivative. Numba's front end runs again, since the program does not keep what it found.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from numba.core.dispatcher import Dispatcher
from numba.core.types import Type

from irad.frontend.custom import rule_plugins, ruled_calls
from irad.frontend.numba import private
from irad.frontend.numba.cpu import NumbaProgram, linked_text, load_program
from irad.frontend.numba.type_inference import TypedIR, typed_ir


@dataclass(frozen=True, slots=True)
class TypedFunction:
    """Numba's typed IR of one function.

    Attributes:
        symbol: of its code.
        function: the Python function.
    """

    symbol: str
    function: Callable[..., Any]
    ir: TypedIR


def typed_functions(
    dispatcher: Dispatcher, argument_types: tuple[Type, ...], wanted: Callable[[str], bool]
) -> Iterator[TypedFunction]:
    """Numba's typed IR of a function and of those that it calls, the function itself first.

    Args:
        dispatcher: the function.
        argument_types: Numba types, one per parameter.
        wanted: which files of called functions are of interest.
    """
    program = _program(dispatcher, argument_types)
    calls = {program.entry: (dispatcher.py_func, program.signature)} | program.python_functions
    for symbol, (function, signature) in calls.items():
        code = getattr(inspect.unwrap(function), "__code__", None)
        if code is None or not (symbol == program.entry or wanted(code.co_filename)):
            continue
        with private.compiler_lock(), private.shadow().active():
            typed = typed_ir(dispatcher, function, signature)
        if typed is not None:
            yield TypedFunction(symbol, function, typed)


def program_of(dispatcher: Dispatcher, argument_types: tuple[Type, ...]) -> NumbaProgram:
    """The program that irad reads.

    Raises:
        BackendError: Numba cannot compile it.
    """
    with private.compiler_lock():
        rule_plugins.load()
        return _program(dispatcher, argument_types)


def raw_text(dispatcher: Dispatcher, argument_types: tuple[Type, ...]) -> str:
    """All of the program's LLVM text as Numba lowers it, linked, before any optimisation.

    Raises:
        BackendError: Numba cannot compile it.
    """
    with private.compiler_lock():
        rule_plugins.load()
        return linked_text(ruled_calls.caller_of(dispatcher), argument_types)


def _program(dispatcher: Dispatcher, argument_types: tuple[Type, ...]) -> NumbaProgram:
    return load_program(ruled_calls.caller_of(dispatcher), argument_types)
