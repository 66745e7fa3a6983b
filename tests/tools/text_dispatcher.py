"""Dispatchers whose specialisations are made from LLVM text: what shows that text is all there is to a program."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba.core import compiler, dispatcher, funcdesc, types, utils
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import Environment
from numba.core.registry import CPUDispatcher, cpu_target

from irad.errors import BackendError
from irad.frontend.numba.library import finish, new_library, parse

_serial = itertools.count(1)


@dataclass(frozen=True)
class Generated:
    """A program to be made callable.

    Attributes:
        text: scalar LLVM text; the entry follows Numba's calling convention for ``signature``.
        entry: the symbol of the entry in the text.
        signature: Numba's signature.
        environments: objects of the environment globals in the text.
        alive: whatever must live as long as the code does.
    """

    text: str
    entry: str
    signature: Any
    environments: tuple[Any, ...] = ()
    alive: tuple[Any, ...] = ()


class TextDispatcher(CPUDispatcher):
    """A dispatcher whose specialisations are made from LLVM text.

    Callable from Python and from njit code like any other; ``generate`` is called once for each tuple of argument
    types.
    """

    def __init__(
        self, py_func: Callable[..., Any], generate: Callable[[tuple[Any, ...]], Generated], options: dict[str, Any]
    ) -> None:
        super().__init__(py_func, targetoptions={**options, "nopython": True})
        self._generate = generate
        self._compiler = TextCompiler(py_func, self.targetoptions, self._build)

    def _build(self, compiler: Any, arguments: tuple[Any, ...]) -> Any:
        generated = self._generate(arguments)
        if is_generator(generated.signature.return_type):
            raise BackendError(
                f"{self.py_func.__name__} returns a generator, whose steps cannot be called from outside",
                "iterate over the generator in a compiled function and return what it yields",
                "its body runs only when the caller iterates, after the call has returned",
            )

        def library_of(descriptor: Any, wrap: Callable[[Any], None]) -> tuple[Any, tuple[Any, ...]]:
            module = parse(generated.text)
            module.get_function(generated.entry).name = descriptor.mangled_name
            library = new_library(descriptor.mangled_name)
            wrap(library)
            finish(library, descriptor.mangled_name, module, generated.environments)
            library.alive = generated.alive
            return library, generated.environments

        name = f"{self.py_func.__name__}.irad{next(_serial)}"
        return compile_result(self.py_func, name, compiler.targetoptions, generated.signature, library_of)


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


def _has_cfunc_wrapper(signature: Any) -> bool:
    """Numba's own condition for a wrapper that makes a function a first-class value."""
    unsupported = any(isinstance(argument, types.Omitted | types.Generator) for argument in signature.args)
    return not unsupported and not isinstance(signature.return_type, types.Optional | types.Generator)


def is_generator(numba_type: Any) -> bool:
    """Whether values of a type are generators."""
    return isinstance(numba_type, types.Generator)
