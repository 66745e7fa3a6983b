"""From LLVM text back to code that Numba can call, link and inline.

Input   scalar LLVM text of a whole program, as `numba.cpu` yields it and as irad's passes write it.
Output  a Numba code library, or a dispatcher around one.
Method  Numba's own library class: it links the runtime, optimises with vectorising, loads the code. What *callers* of
        the library link is the scalar text, so that they can inline it and optimise it together with their own code.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as llvm
from numba.core.registry import CPUDispatcher

from irad.backend.link import check_symbols
from irad.errors import BackendError
from irad.frontend.numba import code_libraries, private
from irad.options import errors_show_llvm

_serial = itertools.count(1)


@dataclass(frozen=True)
class Generated:
    """A program to be made callable.

    Attributes:
        text: scalar LLVM text; the entry follows Numba's calling convention for ``signature``.
        entry: the symbol of the entry in the text.
        signature: Numba's signature.
        environments: objects behind the environment globals in the text.
        alive: whatever must live as long as the code does.
    """

    text: str
    entry: str
    signature: Any
    environments: tuple[Any, ...] = ()
    alive: tuple[Any, ...] = ()


def build_library(name: str, text: str, environments: tuple[Any, ...]) -> Any:
    """A finished Numba code library of LLVM text.

    It may be given to ``context.active_code_library.add_linking_library`` by an ``@intrinsic``; a caller can then
    inline the text's functions, and does so where they are marked ``alwaysinline``.

    Args:
        name: the library's name, for listings.
        text: a whole program: all that it calls is in it, in Numba's runtime or in the process.
        environments: objects behind its environment globals; they live as long as the library.

    Raises:
        BackendError: LLVM refuses the text, or a symbol has no definition.
    """
    with private.compiler_lock(), private.shadow().suspended():
        return _finish(code_libraries.new_library(name), name, parse(text), environments)


def parse(text: str) -> Any:
    """The llvmlite module of a text.

    Raises:
        BackendError: LLVM refuses it.
    """
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        refused = BackendError(
            "LLVM rejects the generated code",
            "report it with the function that caused it, and with what IRAD_ERRORS=llvm shows",
            "this is a fault in irad or in this version of LLVM",
        )
        refused.llvm = str(error) if errors_show_llvm() else None
        raise refused from error
    return module


def _finish(library: Any, name: str, module: Any, environments: tuple[Any, ...]) -> Any:
    """Checks a module, and loads it as the code of a library."""
    module.name = name
    check_symbols(module, code_libraries.is_loaded_symbol)
    shared = module.clone()
    for function in shared.functions:
        if not function.is_declaration and function.linkage == llvm.Linkage.external:
            function.linkage = "linkonce_odr"
    code_libraries.finish_library(library, module, shared)
    code_libraries.set_environments(library, environments)
    return library


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
        self._compiler = code_libraries.TextCompiler(py_func, self.targetoptions, self._build)

    def _build(self, compiler: Any, arguments: tuple[Any, ...]) -> Any:
        generated = self._generate(arguments)
        if code_libraries.is_generator(generated.signature.return_type):
            raise BackendError(
                f"{self.py_func.__name__} returns a generator, whose steps cannot be called from outside",
                "iterate over the generator in a compiled function and return what it yields",
                "its body runs only when the caller iterates, after the call has returned",
            )

        def library_of(descriptor: Any, wrap: Callable[[Any], None]) -> tuple[Any, tuple[Any, ...]]:
            module = parse(generated.text)
            module.get_function(generated.entry).name = descriptor.mangled_name
            library = code_libraries.new_library(descriptor.mangled_name)
            wrap(library)
            _finish(library, descriptor.mangled_name, module, generated.environments)
            library.alive = generated.alive
            return library, generated.environments

        name = f"{self.py_func.__name__}.irad{next(_serial)}"
        return code_libraries.compile_result(
            self.py_func, name, compiler.targetoptions, generated.signature, library_of
        )
