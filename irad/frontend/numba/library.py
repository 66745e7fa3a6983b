"""From LLVM text back to code that Numba can call, link and inline.

Input   scalar LLVM text of a whole program, as `numba.cpu` yields it and as irad's passes write it.
Output  a Numba code library.
Method  Numba's own library class: it links the runtime, optimises with vectorising, loads the code. What *callers* of
        the library link is the scalar text, so that they can inline it and optimise it together with their own code.
"""

from __future__ import annotations

from typing import Any, Final

import llvmlite.binding as llvm
from numba.core.codegen import CodeLibrary

from irad.backend.link import check_symbols
from irad.backend.toolchain import Toolchain
from irad.errors import BackendError
from irad.frontend.numba import code_libraries, private, target
from irad.options import errors_show_llvm


def build_library(name: str, text: str, environments: tuple[object, ...]) -> object:
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
        return finish(code_libraries.new_library(name), name, parse(text), environments)


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


def finish(library: CodeLibrary, name: str, module: Any, environments: tuple[object, ...]) -> Any:
    """Checks a module, and loads it as the code of a library, which is returned."""
    module.name = name
    check_symbols(module, code_libraries.is_loaded_symbol)
    shared = module.clone()
    for function in shared.functions:
        if not function.is_declaration and function.linkage == llvm.Linkage.external:
            function.linkage = "linkonce_odr"
    code_libraries.finish_library(library, module, shared)
    code_libraries.set_environments(library, environments)
    return library


CPU: Final = Toolchain(
    machine=target.machine,
    features=target.features,
    foreign_spaces=frozenset({256, 257, 258, 270, 271, 272}),  # x86: behind gs, fs and ss; pointers of other sizes
    is_loaded=code_libraries.is_loaded_symbol,
    build=build_library,
)
"""The processor that Python runs on, as Numba compiles for it."""
