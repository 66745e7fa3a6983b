"""Differences between the versions of Numba and llvmlite that irad runs with: the one place for branches by version.

`irad.versions` says which those are. What only looks different in LLVM's text needs no branch: `irad.ir.text.keywords`
lists the words of all versions, `irad.frontend.numba.fixups` brings what Numba lowers into one form.
"""

from __future__ import annotations

import os
import platform
import re
import warnings
from collections.abc import Collection
from functools import cache
from importlib import import_module
from typing import Any, Final

import llvmlite
import llvmlite.binding as llvm
import numba

from irad.errors import UntestedVersionWarning
from irad.versions import numbers_of, tested, untested

RUNNING: Final = f"Numba {numba.__version__}"
_MARKS_FUNCTIONS: Final = numbers_of(llvmlite.__version__) >= (0, 48)
_HEAD: Final = re.compile(r'^define [^@\n]*@(?:"(?P<quoted>[^"\n]+)"|(?P<plain>[^\s("]+))(?=\()', re.MULTILINE)
_COROUTINE_END: Final = """
declare void @llvm.coro.end(ptr, i1, token)
define void @f(ptr %handle) {
  call void @llvm.coro.end(ptr %handle, i1 false, token none)
  ret void
}
"""
_ADDRESS_WORD: Final = re.compile(r" (?:local_)?unnamed_addr\b")


@cache
def check_versions(numba_version: str = numba.__version__, python_version: str = platform.python_version()) -> None:
    """Warns of versions that irad was not tested with, once in a process.

    The warning is attributed to the user's line that named something of irad first (`irad.__getattr__`).

    Args:
        numba_version: as Numba spells it.
        python_version: as Python spells it.
    """
    if found := untested(numba_version, python_version):
        warnings.warn(
            f"irad was tested with {tested()}, not with {' and '.join(found)}: functions may be refused for no good "
            "reason. Check gradients with irad.testing.gradcheck, or install a version that was tested",
            UntestedVersionWarning,
            stacklevel=3,
        )


def with_attribute(module: Any, names: Collection[str], attribute: str) -> Any:
    """A module with an attribute on some of its functions.

    llvmlite before 0.48 would attach it to the function's result, where it means nothing.

    Args:
        module: of llvmlite; given away.
        names: symbols of functions that it defines.
        attribute: a word such as ``noinline``.
    """
    if not names:
        return module
    if not _MARKS_FUNCTIONS:
        return llvm.parse_assembly(text_with_attribute(str(module), names, attribute))
    for name in names:
        module.get_function(name).add_function_attribute(attribute)
    return module


@cache
def ends_coroutine_with_void() -> bool:
    """True if ``llvm.coro.end`` gives nothing; before LLVM 22 it gave a truth value."""
    try:
        llvm.parse_assembly(_COROUTINE_END).verify()
    except RuntimeError:
        return False
    return True


def text_with_attribute(text: str, names: Collection[str], attribute: str) -> str:
    """Text of a module, with an attribute added to the functions of these names."""
    parts, done = list[str](), 0
    for head in _HEAD.finditer(text):
        if (head["quoted"] or head["plain"]) in names:
            end = _end_of_parameters(text, head.end())
            address = _ADDRESS_WORD.match(text, end)
            end = address.end() if address else end
            parts += text[done:end], f" {attribute}"
            done = end
    return "".join((*parts, text[done:]))


def _end_of_parameters(text: str, start: int) -> int:
    """Position after the parenthesis that closes the one at ``start``."""
    depth = 0
    for found in re.compile(r'[()]|"[^"\n]*"').finditer(text, start):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    raise AssertionError("LLVM closes its parentheses")


def numba_module(name: str) -> Any:
    """A module of Numba; what `numba.cuda` shares with the CPU has another name where numba-cuda has no copy of it."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        if name not in _SHARED_WITH_CUDA:
            raise
        return import_module(_SHARED_WITH_CUDA[name])


_SHARED_WITH_CUDA: Final = {
    "numba.cuda.cgutils": "numba.core.cgutils",
    "numba.cuda.cpython.numbers": "numba.cpython.numbers",
    "numba.cuda.core.callconv": "numba.core.callconv",
}


def cuda_compiles_one_argument() -> bool:
    """True if `numba.cuda` compiles functions of any number of arguments, as `max` is from Numba 0.66 on, for one."""
    origin = str(import_module("numba.cuda").__file__)
    return origin.startswith(os.path.dirname(numba.__file__) + os.sep) and hasattr(
        import_module("numba.cpython.builtins"), "ol_max"
    )


def cuda_kernel(compiler: Any, compiled: Any, function: Any, debug: bool) -> tuple[Any, str]:
    """The library and the symbol of a kernel that Numba's CUDA target compiled.

    Numba's own target, which Numba has up to 0.68, puts a kernel around the compiled function; the package numba-cuda
    makes the function itself the kernel.

    Args:
        compiler: the module `numba.cuda.compiler`.
        compiled: Numba's compile result.
        function: of Python.
    """
    prepare = getattr(compiled.target_context, "prepare_cuda_kernel", None)
    if prepare is not None:
        code = function.__code__
        place = code.co_filename, code.co_firstlineno
        library, kernel = prepare(compiled.library, compiled.fndesc, debug, True, {}, *place)
        return library, kernel.name
    symbol = compiled.fndesc.llvm_func_name
    compiler.kernel_fixup(compiled.library.get_function(symbol), debug)
    return compiled.library, symbol
