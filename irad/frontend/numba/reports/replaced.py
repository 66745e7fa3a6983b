"""A specialisation of a dispatcher that runs other machine code for a while.

Numba keeps machine code for the life of the process, and calls it through a table in the dispatcher. So code that is
wanted for a moment is loaded next to it, in an engine of its own, and the table is refilled before and after.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
from numba.core import types
from numba.core.dispatcher import Dispatcher

from irad.backend.link import check_symbols, declared_symbols
from irad.frontend.numba.library import is_loaded_symbol, parse
from irad.frontend.numba.target import engine, new_machine, target_context

_ENVIRONMENT = "_ZN08NumbaEnv"


def kinds_of(dispatcher: Dispatcher, values: tuple[object, ...]) -> tuple[Any, ...]:
    """The specialisation that a call with positional arguments runs, as the types it is filed under."""
    _, kinds = dispatcher.fold_argument_types(tuple(map(dispatcher.typeof_pyval, values)), {})
    return tuple(  # the star's are filed as plain tuples
        types.BaseTuple.from_types(kind.types) if isinstance(kind, types.StarArgTuple | types.StarArgUniTuple) else kind
        for kind in kinds
    )


@contextmanager
def replaced_code(dispatcher: Dispatcher, kinds: tuple[object, ...], rewrite: Callable[[str], str]) -> Iterator[None]:
    """While open, calls of a compiled specialisation run other code.

    Args:
        dispatcher: a derivative.
        kinds: the types of the specialisation; it must have been compiled.
        rewrite: makes the LLVM text of the other code out of the optimised text of what is there. It is compiled as it
            stands, without LLVM's pipeline.

    Raises:
        BackendError: LLVM refuses the text.
    """
    compiled = dispatcher.overloads[kinds]
    loaded = _Loaded(rewrite(compiled.library.get_llvm_str()))
    entry = target_context().get_executable(loaded, compiled.fndesc, compiled.environment)
    try:
        _fill(dispatcher, {kinds: entry})
        yield
    finally:
        _fill(dispatcher, {})


def _fill(dispatcher: Dispatcher, entries: dict[tuple[Any, ...], Any]) -> None:
    dispatcher._clear()
    for kinds, compiled in dispatcher.overloads.items():
        codes = [kind._code for kind in kinds]
        dispatcher._insert(codes, entries.get(kinds, compiled.entry_point), compiled.objectmode)


class _Loaded:
    """Stands for a code library of Numba where an entry point is made of it."""

    def __init__(self, text: str) -> None:
        numba_engine = engine()
        module = parse(text)
        check_symbols(module, is_loaded_symbol)
        environments = [v.name for v in module.global_variables if v.name.startswith(_ENVIRONMENT)]
        elsewhere = [name for name in declared_symbols(module) if not llvm.address_of_symbol(name)]
        self._engine = llvm.create_mcjit_compiler(module, new_machine())
        for name in elsewhere:
            self._engine.add_global_mapping(module.get_function(name), numba_engine.get_function_address(name))
        self._engine.finalize_object()
        for name in environments:
            self._word(name).value = ctypes.c_void_p.from_address(numba_engine.get_global_value_address(name)).value
        self.codegen = self

    def get_pointer_to_function(self, name: str) -> int:
        """As Numba's library."""
        return int(self._engine.get_function_address(name))

    def set_env(self, name: str, environment: object) -> None:
        """As Numba's code generator."""
        self._word(name).value = id(environment)

    def _word(self, name: str) -> ctypes.c_void_p:
        return ctypes.c_void_p.from_address(self._engine.get_global_value_address(name))
