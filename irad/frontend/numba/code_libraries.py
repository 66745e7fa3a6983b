"""Numba's code libraries and compile results, made by hand around LLVM modules.

With `numba.private` and `numba.raw_target` this is all that touches Numba's private parts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import codegen, compiler, funcdesc, types, utils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import Environment
from numba.core.runtime import rtsys

from irad.frontend.numba.raw_target import RawLibrary
from irad.frontend.numba.untyped import cpu_target, dispatcher


class LinkedLibrary(codegen.JITCodeLibrary):
    """Code that is only linked into other libraries: they optimise it, and only their code becomes machine code."""

    def finalize(self) -> None:
        """Links what it calls."""
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._finalized = True


def only_link(state: Any) -> None:
    """Has a compilation, before its lowering, make a `LinkedLibrary`, and no entry point."""
    state.library = LinkedLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
    state.flags.no_compile = True


def new_library(name: str) -> Any:
    """An empty code library of the context in force: a raw one inside a shadow compile."""
    context = cpu_target.target_context
    rtsys.initialize(context)  # done already, unless Numba has compiled nothing so far
    library = context.codegen().create_library(name)
    library.enable_object_caching()
    return library


def finish_library(library: Any, module: Any, shared: Any) -> None:
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
    if cpu_target.target_context.codegen()._engine.is_symbol_defined(name):
        return True
    return any(function.name == name for function in rtsys.library.get_defined_functions())


class TextCompiler(dispatcher._FunctionCompiler):
    """A dispatcher's compiler that takes its code from a callback."""

    def __init__(self, py_func: Any, options: dict[str, Any], build: Callable[[Any, tuple[Any, ...]], Any]) -> None:
        super().__init__(py_func, cpu_target, options, {}, compiler.Compiler)
        self._build = build

    def compile(self, args: Any, return_type: Any) -> Any:
        """Numba's compile result for argument types."""
        with global_compiler_lock:
            return self._build(self, tuple(args))


def compile_result(
    py_func: Any,
    symbol_name: str,
    options: dict[str, Any],
    signature: Any,
    build: Callable[[Any, Any], tuple[Any, ...]],
) -> Any:
    """A compile result as Numba's own pipeline makes it, around a library that ``build`` makes.

    Args:
        py_func: gives names of arguments, module and globals.
        symbol_name: makes the mangled name; unique in the process.
        options: of the dispatcher.
        signature: Numba's.
        build: (descriptor, wrap) → (library, environments); it calls ``wrap(library)`` before finishing the library.
    """
    context = cpu_target.target_context
    descriptor = funcdesc.FunctionDescriptor(
        native=True,
        modname=py_func.__module__,
        global_dict=py_func.__globals__,
        qualname=symbol_name,
        unique_name=symbol_name,
        doc=py_func.__doc__ or "",
        typemap=None,
        calltypes=None,
        restype=signature.return_type,
        args=list(utils.pysignature(py_func).parameters),
        kws=(),
        mangler=context.mangler,
        argtypes=tuple(signature.args),
        abi_tags=["irad"],
    )
    environment = Environment.from_fndesc(descriptor)
    flags = compiler.Flags()
    cpu_target.options.parse_as_flags(flags, options)
    subtarget = compiler._make_subtarget(context, flags).subtarget(fndesc=descriptor, environment=environment)

    def wrap(library: Any) -> None:
        with subtarget.push_code_library(library):
            subtarget.create_cpython_wrapper(
                library, descriptor, environment, call_helper=None, release_gil=bool(flags.release_gil)
            )
            if _has_cfunc_wrapper(signature):
                subtarget.create_cfunc_wrapper(library, descriptor, environment, call_helper=None)

    library, environments = build(descriptor, wrap)
    entry = context.get_executable(library, descriptor, environment)
    context.insert_user_function(entry, descriptor, [library])
    return compiler.compile_result(
        typing_context=cpu_target.typing_context,
        target_context=context,
        entry_point=entry,
        typing_error=None,
        type_annotation="",
        library=library,
        call_helper=None,
        signature=signature,
        objectmode=False,
        lifted=(),
        fndesc=descriptor,
        environment=environment,
        metadata={},
        reload_init=[],
        referenced_envs=list(environments),
    )


def forget_overloads(derivative: Any) -> None:
    """Drops what a dispatcher has compiled."""
    derivative._reset_overloads()


def is_generator(numba_type: Any) -> bool:
    """Whether values of a type are generators."""
    return isinstance(numba_type, types.Generator)


def _has_cfunc_wrapper(signature: Any) -> bool:
    """Numba's own condition for a wrapper that makes a function a first-class value."""
    unsupported = any(isinstance(argument, types.Omitted | types.Generator) for argument in signature.args)
    return not unsupported and not isinstance(signature.return_type, types.Optional | types.Generator)
