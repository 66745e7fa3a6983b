"""Checks that a module's symbols can be found before its code is loaded.

LLVM's JIT leaves an unknown symbol at address zero, and the first call of it ends the process. So every declared symbol
must be defined by the process (``libm``, Python, llvmlite's table of added symbols), by Numba's loaded code or by its
runtime; otherwise the program is refused, naming the symbol.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import llvmlite.binding as llvm

from irad.errors import BackendError


def check_symbols(module: Any, is_loaded: Callable[[str], bool]) -> None:
    """Refuses a module that declares a symbol that is not defined anywhere.

    Args:
        module: an llvmlite module.
        is_loaded: whether the JIT knows a symbol that the process does not.

    Raises:
        BackendError: names the symbols.
    """
    check_names(declared_symbols(module), is_loaded)


def check_names(names: Iterable[str], is_loaded: Callable[[str], bool]) -> None:
    """Refuses code that calls functions by these names if one of them is not defined anywhere.

    Raises:
        BackendError: names the symbols.
    """
    missing = [name for name in names if not llvm.address_of_symbol(name) and not is_loaded(name)]
    if missing:
        raise BackendError(
            f"there is no definition of {', '.join(missing)}",
            "(a) load the library that defines it: llvmlite.binding.load_library_permanently or (b) register its "
            "address: llvmlite.binding.add_symbol",
            "the function calls compiled code by that name, and no loaded library defines it",
        )


def declared_symbols(module: Any) -> list[str]:
    """Functions and variables that a module uses and does not define, LLVM's intrinsics aside."""
    names = [function.name for function in module.functions if function.is_declaration]
    names += [variable.name for variable in module.global_variables if variable.is_declaration]
    return [name for name in names if not name.startswith("llvm.")]
