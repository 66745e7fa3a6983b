"""Does machine code that Numba made earlier belong to the program as it is now?

Method  Numba compiles the function once more; the optimised LLVM code of both is compared without names. It does not
        depend on the process or on the order of hashes, so code from the disk can be compared, too.
Limit   which of several functions that call each other LLVM inlines depends on which was compiled first. Of these only
        the constants are compared.
"""

from __future__ import annotations

import re
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from numba.core import config
from numba.core.ccallback import CFunc
from numba.core.compiler import CompileResult
from numba.core.registry import CPUDispatcher
from numba.np.ufunc.ufuncbuilder import UFuncDispatcher

from irad.frontend.frozen.numba_flags import DEFAULT, inherited, under

_NAMES = re.compile(r'[%@]"[^"]*"|[%@][\w.$-]+|[!#]\d+|;.*')
_LABEL = re.compile(r'^(?:"[^"]*"|[\w.$-]+):')
_PICKLE_SIZE = re.compile(r"(?<=i32 )\d+")
_FLOAT = re.compile(r"\b(?:double|float) (-?\d[\d.e+-]*|0x[0-9A-F]+)|, (-?\d+\.\d[\d.e+-]*|0x[0-9A-F]+)")
_ARRAY = ".const.array.data"
_CIRCLE = ".numba.unresolved$"


_levels: weakref.WeakKeyDictionary[object, tuple[object, object]] = weakref.WeakKeyDictionary()


def note_level(compiled: CompileResult) -> None:
    """Notes how far LLVM optimised a specialisation that Numba has just compiled: ``NUMBA_OPT`` may change."""
    _levels[compiled.library] = config.OPT, config.LOOP_VECTORIZE


@contextmanager
def _level_of(compiled: CompileResult | None) -> Iterator[None]:
    before = config.OPT, config.LOOP_VECTORIZE
    library = getattr(compiled, "library", None)
    config.OPT, config.LOOP_VECTORIZE = before if library is None else _levels.get(library, before)
    try:
        yield
    finally:
        config.OPT, config.LOOP_VECTORIZE = before


def compiled_anew(owner: object, compiled: CompileResult | None) -> object:
    """Numba's compile result of a specialisation, made once more, and optimised as that was.

    Call it where Numba's own compiler is in place. What the function calls is compiled if it is not yet.

    Args:
        owner: the dispatcher, or that of a ufunc, or a ``numba.cfunc`` function.
        compiled: the specialisation; a ``numba.cfunc`` function has one only.
    """
    with _level_of(compiled), under(DEFAULT if compiled is None else inherited(compiled)):
        return _compiled_anew(owner, compiled)


def _compiled_anew(owner: object, compiled: CompileResult | None) -> object:
    if isinstance(owner, CFunc):
        signature, options = owner._sig, owner._compiler.targetoptions
        callback = CFunc(owner._pyfunc, (signature.args, signature.return_type), owner._compiler.locals, options)
        callback.compile()
        return callback
    assert compiled is not None
    signature = compiled.signature
    if isinstance(owner, UFuncDispatcher):
        anew = UFuncDispatcher(owner.py_func, owner.locals, owner.targetoptions)
        return anew.compile(signature)
    assert isinstance(owner, CPUDispatcher)
    result = None if owner._can_compile else signature.return_type
    with owner._compiling_counter:
        found = owner._compiler.compile(tuple(signature.args), result)
    owner.targetctx.remove_user_function(found.entry_point)
    return found


def library_of(callback: Any) -> object:
    """The code library of a ``numba.cfunc`` function."""
    return callback._library


def is_same_code(left: Any, right: Any) -> bool:
    """Whether two libraries of Numba hold the same functions, whatever these are called."""
    mine, its = (str(library._get_module_for_linking()) for library in (left, right))
    if list(_bodies(mine)) == list(_bodies(its)):
        return True
    return (_CIRCLE in mine or _CIRCLE in its) and _constants(mine) == _constants(its)


def _constants(text: str) -> set[str]:
    """The floating-point numbers and constant arrays in a module's text."""
    arrays = {_NAMES.sub("", line) for line in text.splitlines() if line.startswith("@") and _ARRAY in line}
    return arrays.union(*_FLOAT.findall(text))


def _bodies(text: str) -> Iterator[str]:
    """The text of each function and of each constant array, without names and in an order that does not need them."""
    found: list[str] = []
    lines: list[str] | None = None
    for line in text.splitlines():
        if line.startswith("define"):
            lines = []
        if lines is not None:
            if "@numba_unpickle(" in line:
                line = _PICKLE_SIZE.sub("", line)
            lines.append(_LABEL.sub(":", _NAMES.sub("", line)))
            if line == "}":
                found.append("\n".join(lines))
                lines = None
        elif _ARRAY in line:
            found.append(_NAMES.sub("", line))
    yield from sorted(found)
