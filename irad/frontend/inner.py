"""Inner functions: compiled code of irad's libraries that nothing but compiled code calls.

Numba gives each function machine code of its own, and each that calls it optimises it once more: with ten levels of
helpers most of a first call is LLVM. An inner function is typed and lowered, and otherwise left to its callers, so it
is optimised where Python calls something.
"""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable
from typing import Any, Final

from numba import njit
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager
from numba.core.untyped_passes import RewriteSemanticConstants
from numba.extending import overload

from irad.frontend.generated import function_from
from irad.frontend.numba import internals
from irad.frontend.numba.library import LinkIntoCallers


class _InnerCompiler(CompilerBase):
    """Numba's compiler, without what comes after lowering."""

    def define_pipelines(self) -> list[PassManager]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.add_pass_after(LinkIntoCallers, RewriteSemanticConstants)
        manager.finalize()
        return [manager]


_NO_ENTRY: Final = {"nopython": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


class _InnerDispatcher(internals.EntrylessDispatcher):
    """An inner function that may have rules, or be called by name; from Python by way of another function."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _ALL[id(self)] = self

    def specialisation_for(self, *args: Any, **kws: Any) -> Callable[..., Any]:
        """A function that calls it, for Python."""
        found: Callable[..., Any] | None = self.__dict__.get(_CALLER)
        if found is None:
            names = ", ".join(inspect.signature(self.py_func).parameters)
            source = f"def call({names}):\n    return irad_callee({names})\n"
            call = function_from("call", source, "irad inner", {"irad_callee": self})
            call.__defaults__ = self.py_func.__defaults__
            found = self.__dict__[_CALLER] = njit(call)
        return found


_CALLER: Final = "_irad_caller_from_python"
_ALL: Final[weakref.WeakValueDictionary[int, _InnerDispatcher]] = weakref.WeakValueDictionary()


def inner_at(address: int) -> Any:
    """The inner function at an address; None if there is none."""
    return _ALL.get(address)


def inner_njit(function: Any = None, **options: Any) -> Any:
    """Decorates an inner function, like `numba.njit`: it can have rules, and be passed to functions.

    Args:
        function: it.
        options: of `numba.njit`.
    """
    if function is None:
        return lambda function: inner_njit(function, **options)
    return _InnerDispatcher(function, targetoptions={**_NO_ENTRY, **options}, pipeline_class=_InnerCompiler)


def inner_jitable(function: Any = None, **options: Any) -> Any:
    """Decorates an inner function, like `numba.extending.register_jitable`: Python calls it as it is."""
    if function is None:
        return lambda function: inner_jitable(function, **options)
    inner_overload(function, strict=False, **options)(lambda *_, **__: function)
    return function


def inner_overload(function: Any, *, strict: bool = True, prefer_literal: bool = False, **options: Any) -> Any:
    """Decorates what says how compiled code calls a function, like `numba.extending.overload`: that is inner code.

    Args:
        function: the called function.
        strict: as of Numba's.
        prefer_literal: as of Numba's.
        options: of `numba.njit`.
    """
    made = {**_NO_ENTRY, "pipeline_class": _InnerCompiler, **options}
    return overload(function, jit_options=made, strict=strict, prefer_literal=prefer_literal)
