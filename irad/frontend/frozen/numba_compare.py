"""Does machine code that Numba made earlier belong to the program as it is now?

Method  Numba compiles the function once more; the optimised LLVM code of both is compared without the names that Numba
        makes up. It does not depend on the process or on the order of hashes, so code from the disk can be compared,
        too.
Copies  code from the disk brings its own copy of what it calls. The copies of a function count as one, and their lines
        may be in any order: LLVM has optimised them a different number of times.
Limit   which of several functions that call each other LLVM inlines depends on which was compiled first. Of these only
        the constants are compared.
"""

from __future__ import annotations

import re
import weakref
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from itertools import product
from typing import Any

from numba.core import config
from numba.core.ccallback import CFunc
from numba.core.compiler import CompileResult
from numba.core.registry import CPUDispatcher
from numba.np.ufunc.ufuncbuilder import UFuncDispatcher

from irad.frontend.frozen.numba_flags import DEFAULT, inherited, stated, under
from irad.frontend.frozen.numba_names import has_names
from irad.frontend.numba import internals

_NAMES = re.compile(r'[%@]"[^"]*"|[%@][\w.$-]+|[!#]\d+|;.*')
_HEAD = re.compile(r'^(define|declare) [^@]*(@"[^"]*"|@[\w.$-]+)', re.MULTILINE)
_MADE_UP = re.compile(r"""_ZN|#|^@"?\.""")
_OF_PROCESS = re.compile(r"B\d+v\d+|(?<=_23)[0-9a-f]+(?=_3c)")
_LABEL = re.compile(r'^(?:"[^"]*"|[\w.$-]+):')
_PICKLE_SIZE = re.compile(r"(?<=i32 )\d+")
_FLOAT = re.compile(r"\b(?:double|float) (-?\d[\d.e+-]*|0x[0-9A-F]+)|, (-?\d+\.\d[\d.e+-]*|0x[0-9A-F]+)")
_ARRAY = ".const.array.data"
_OF_COMPILERS = ("llvm.", "NRT_", "Py", "_Py", "numba_", "mem", "str")
_ELEMENTARY = re.compile(r"llvm\.(a?(?:sin|cos|tan)h?|exp|exp2|exp10|log|log2|log10|pow|powi)\.")
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


def at_other_levels(compiled: CompileResult) -> Iterator[None]:
    """Each level at which LLVM may have optimised code from the disk; `compiled_anew` meanwhile takes that one."""
    before = _levels.get(compiled.library)
    try:
        for level in product(map(type(config.OPT), (3, 2, 1, 0, "max")), (1, 0)):
            _levels[compiled.library] = level
            yield
    finally:
        _levels.pop(compiled.library)
        if before is not None:
            _levels[compiled.library] = before


def _compiled_anew(owner: object, compiled: CompileResult | None) -> object:
    if isinstance(owner, CFunc):
        signature = internals.signature_of_callback(owner)
        options, variables = internals.options_of_callback(owner)
        callback = CFunc(owner.__wrapped__, (signature.args, signature.return_type), variables, options)
        callback.compile()
        return callback
    assert compiled is not None
    signature = compiled.signature
    if isinstance(owner, UFuncDispatcher):
        anew = UFuncDispatcher(owner.py_func, owner.locals, owner.targetoptions)
        return anew.compile(signature)
    assert isinstance(owner, CPUDispatcher)
    result = None if internals.takes_new_types(owner) else signature.return_type
    compiler = internals.compiler_of(owner)
    if not has_names(compiled.type_annotation):
        compiler = copy(compiler)
        compiler.targetoptions = {**compiler.targetoptions, **stated(compiled)}
    with internals.while_compiling(owner):
        found = compiler.compile(tuple(signature.args), result)
    owner.targetctx.remove_user_function(found.entry_point)
    return found


def is_same_code(left: Any, right: Any) -> bool:
    """Whether two libraries of Numba hold the same functions, whatever Numba calls these."""
    mine, its = (str(internals.module_for_linking(library)) for library in (left, right))
    copied = _copied(mine) | _copied(its)
    if _bodies(mine, copied) == _bodies(its, copied):
        return True
    return (_CIRCLE in mine or _CIRCLE in its) and _constants(mine) == _constants(its)


def may_be_same_program(left: Any, right: Any) -> bool:
    """Whether two libraries compute with the same numbers, and call the same functions of other libraries.

    That is all that can be compared where LLVM has optimised them in different ways.
    """
    mine, its = (str(internals.module_for_linking(library)) for library in (left, right))
    return _constants(mine) == _constants(its) and _called(mine) == _called(its)


def _called(text: str) -> set[str]:
    """The functions of other libraries that a module calls, by name; those of LLVM and Numba come with optimisation."""
    names = {name.strip('@"') for kind, name in _HEAD.findall(text) if kind == "declare" and not _MADE_UP.search(name)}
    functions = {found[1] for name in names if (found := _ELEMENTARY.match(name))}  # of numbers and of vectors
    return functions | {name for name in names if not name.startswith(_OF_COMPILERS)}


def _constants(text: str) -> set[str]:
    """The floating-point numbers and constant arrays in a module's text."""
    arrays = {_NAMES.sub("", line) for line in text.splitlines() if line.startswith("@") and _ARRAY in line}
    return arrays.union(*_FLOAT.findall(text))


def _copied(text: str) -> set[str]:
    """The functions of which there are several copies, by the part of the name that is the same in every process."""
    names = Counter(_OF_PROCESS.sub("", name) for kind, name in _HEAD.findall(text) if kind == "define")
    return {name for name, count in names.items() if count > 1}


def _bodies(text: str, copied: set[str]) -> set[str]:
    """The text of each function and of each constant array; of the names only those of functions from outside."""
    outside = {name for kind, name in _HEAD.findall(text) if kind == "declare" and not _MADE_UP.search(name)}

    def nameless(line: str) -> str:
        return _NAMES.sub(lambda name: name[0] if name[0] in outside else "", line)

    found = set[str]()
    lines: list[str] | None = None
    is_copied = False
    for line in text.splitlines():
        if head := _HEAD.match(line):
            lines, is_copied = ([] if head[1] == "define" else None), _OF_PROCESS.sub("", head[2]) in copied
        if lines is not None:
            if "@numba_unpickle(" in line:
                line = _PICKLE_SIZE.sub("", line)
            lines.append(_LABEL.sub(":", nameless(line)).rstrip())  # a comment stands right of a label, however wide
            if line == "}":
                found.add("\n".join(sorted(lines) if is_copied else lines))
                lines = None
        elif _ARRAY in line:
            found.add(nameless(line))
    return found
