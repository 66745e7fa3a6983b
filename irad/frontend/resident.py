"""The run-time support in a process: what is inlined travels with its callers, the rest is loaded with the first.

Input   names of support functions, which generated code is going to call.
Output  machine code of them and of what they call, and text for those that LLVM is to inline.
Method  Each function is compiled once, when the first code that calls it is made. All of them together would cost more
        than everything else that a process's first gradient does, and most programs call a fifth of them: no lanes, no
        shadows of containers, no workspace.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils

from irad.backend.runtime import support
from irad.backend.runtime.text import read
from irad.frontend.numba.private import compiler_lock

_LOADED: Final[dict[str, Any]] = {}
"""The Numba library with the code of each function that is loaded; they live as long as the process."""


def load(names: Iterable[str]) -> None:
    """Loads support functions and what they call, as far as that is not done; other names are passed over."""
    with compiler_lock():
        new = [name for name in compiled_of(names) if name not in _LOADED]
        if new:
            _prepare(new)
            _LOADED.update(dict.fromkeys(new, _built(new)))


def load_stored(names: Sequence[str], library_of: Callable[[Sequence[str], Callable[[], Any]], Any]) -> None:
    """Loads support functions whose code may be stored, as far as that is not done.

    Args:
        names: by `compiled_of`.
        library_of: gives a library with the code of some of them, by a function that builds it.
    """
    with compiler_lock():
        new = [name for name in names if name not in _LOADED]
        if new:
            _prepare(new)
            _LOADED.update(dict.fromkeys(new, library_of(new, lambda: _built(new))))


def compiled_of(names: Iterable[str]) -> list[str]:
    """The support functions by some names, and those that they call, that are not inlined."""
    reached = support.support().reached(names)
    return [name for name, function in reached.items() if not function.is_inlined]


def _prepare(names: Sequence[str]) -> None:
    support.install()
    if any(name.startswith("irad.mpi") for name in names):
        from irad.frontend.numba import mpi  # few programs communicate

        mpi.install()


def _built(names: Sequence[str]) -> Any:
    """A library with the code of some functions."""
    from irad.frontend.numba.library import build_support  # what compiles: code from disk does without

    whole = support.support()
    texts = [each.exported if name in names else each.for_callers for name, each in whole.reached(names).items()]
    return build_support(f"irad.runtime.{names[0]}", whole.module_of(texts), ())


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
