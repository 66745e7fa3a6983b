"""The run-time support in a process: what is inlined travels with its callers, the rest is loaded with the first.

Input   names of support functions, which generated code is going to call.
Output  machine code of them and of what they call, and text for those that LLVM is to inline.
Method  Each function is compiled once, when the first code that calls it is made. All of them together would cost more
        than everything else that a process's first gradient does, and most programs call a fifth of them: no lanes, no
        shadows of containers, no workspace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils

from irad.backend.runtime import support
from irad.backend.runtime.text import read
from irad.frontend.numba import mpi
from irad.frontend.numba.library import CPU
from irad.frontend.numba.private import compiler_lock

_LOADED: Final[dict[str, Any]] = {}
"""The Numba library with the code of each function that is loaded; they live as long as the process."""


def load(names: Iterable[str], build: Callable[[str, str, tuple[object, ...]], Any] = CPU.build) -> None:
    """Loads support functions and what they call, as far as that is not done; other names are passed over.

    Args:
        names: of functions.
        build: makes a library of LLVM text, as the toolchain does.
    """
    with compiler_lock():
        support.install()
        whole = support.support()
        reached = whole.reached(names)
        new = [name for name, function in reached.items() if not function.is_inlined and name not in _LOADED]
        if not new:
            return
        if any(name.startswith("irad.mpi") for name in new):
            mpi.install()
        texts = [each.exported if name in new else each.for_callers for name, each in reached.items()]
        library = build(f"irad.runtime.{new[0]}", whole.module_of(texts), ())
        _LOADED.update(dict.fromkeys(new, library))


def is_loaded() -> bool:
    """True if some support function has been loaded; until then its text may be replaced."""
    return bool(_LOADED)


def address_of(name: str) -> int:
    """The address of a support function that is not inlined, loaded if need be."""
    load([name])
    address: int = _LOADED[name].get_pointer_to_function(name)
    return address


def declared(module: Any, name: str, result: Any, parameters: Iterable[Any]) -> Any:
    """A support function, loaded if need be, in a module of llvmlite that is going to call it."""
    load([name])
    return cgutils.get_or_insert_function(module, ir.FunctionType(result, list(parameters)), name)


def call(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Emits a call of a support function, loaded if need be."""
    return builder.call(declared(builder.module, name, result, [each.type for each in arguments]), arguments)


def named_in(text: str) -> frozenset[str]:
    """The names of support functions in LLVM text."""
    return support.support().named_in(text)


def program_text(names: Iterable[str]) -> str:
    """The text of those of the support functions by these names that can be differentiated, and of what these call."""
    reached = read(support.FOLDER, *support.DIFFERENTIABLE).reached(names)
    return support.support().module_of(function.text for function in reached.values())


def inline_text(names: Iterable[str]) -> str:
    """The text of those of the support functions by these names that are inlined, and of what they need there."""
    whole = support.support()
    reached = whole.reached(names, lambda function: function.is_inlined)
    return whole.module_of(function.for_callers for function in reached.values())
