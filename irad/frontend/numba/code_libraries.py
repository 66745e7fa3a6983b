"""Numba's code libraries and compile results, made by hand around LLVM modules.

With `numba.private` and `numba.raw_target` this is all that touches Numba's private parts.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from numba.core import codegen
from numba.core.codegen import CodeLibrary
from numba.core.compiler import StateDict
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys

from irad.frontend.numba.raw_target import RawLibrary
from irad.frontend.numba.target import engine, target_context


class LinkedLibrary(codegen.JITCodeLibrary):
    """Code that is only linked into other libraries: they optimise it, and only their code becomes machine code."""

    def finalize(self) -> None:
        """Links what it calls."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


def only_link(state: StateDict) -> None:
    """Has a compilation, before its lowering, make a `LinkedLibrary`, and no entry point."""
    state.library = LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
    state.flags.no_compile = True


def new_library(name: str) -> CodeLibrary:
    """An empty code library of the context in force: a raw one inside a shadow compile."""
    context = target_context()
    rtsys.initialize(context)  # done already, unless Numba has compiled nothing so far
    library = context.codegen().create_library(name)
    library.enable_object_caching()
    return library


def finish_library(library: CodeLibrary, module: llvm.ModuleRef, shared: llvm.ModuleRef) -> None:
    """Puts a module into a library and generates its code.

    Args:
        library: from `new_library`, wrappers already added.
        module: the llvmlite module; given away.
        shared: what callers link and inline; given away.
    """
    if isinstance(library, RawLibrary):
        library.add_llvm_module(module)
        return
    library.add_llvm_module(module)
    library.add_linking_library(rtsys.library)
    library._shared_module = shared
    library.finalize()


def set_environments(library: Any, environments: tuple[Any, ...]) -> None:
    """Fills the environment globals of a library's code and keeps the environments alive with it."""
    library.environments = environments
    if isinstance(library, RawLibrary):
        return
    present = {variable.name for variable in library._final_module.global_variables}
    for environment in environments:
        if environment.env_name in present:
            library.codegen.set_env(environment.env_name, environment)


def is_loaded_symbol(name: str) -> bool:
    """Whether code of Numba that is already loaded, or its runtime, defines a symbol."""
    if engine().is_symbol_defined(name):
        return True
    return any(function.name == name for function in rtsys.library.get_defined_functions())


def forget_overloads(derivative: Dispatcher) -> None:
    """Drops what a dispatcher has compiled."""
    derivative._reset_overloads()
