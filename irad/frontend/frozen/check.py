"""Is a program that irad lowered the one that Numba compiled?

Numba freezes globals, closure cells and what modules hold when it compiles a function; irad lowers the function again,
later. Where Numba kept the values, they are followed (`numba_follow`). What is left is found here: `stale` before a
program is used, `has_changed` when Numba compiles a function of which there already is a derivative.
"""

from __future__ import annotations

import inspect
import logging
import re
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from itertools import chain, product
from typing import Any, Final

from numba.core import config
from numba.core.ccallback import CFunc
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher
from numba.np.ufunc.ufuncbuilder import UFuncDispatcher

from irad.errors import ChangedProgramError, SourceLocation
from irad.frontend.frozen import history
from irad.frontend.frozen.inherited_options import DEFAULT, inherited, stated, under
from irad.frontend.frozen.values import Frozen, Reads, Snapshot, has_names, is_of_library
from irad.frontend.numba import internals
from irad.frontend.numba.internals import library_of_callback, with_all_linked

# Comparison of machine code: does what Numba compiled earlier belong to the program as it is now?
#
# Method  Numba compiles the function once more; the optimised LLVM code of both is compared without the
#         names that Numba makes up. It does not depend on the process or on the order of hashes, so code
#         from disk can be compared, too.
# Copies  code from disk brings its own copy of what it calls. The copies of a function count as one,
#         and their lines may be in any order: LLVM has optimised them a different number of times.
# Limit   which of several functions that call each other LLVM inlines depends on which was compiled
#         first. Of these only the constants are compared.

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
    """Each level at which LLVM may have optimised code from disk; `compiled_anew` meanwhile takes that one."""
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
    """True if two libraries of Numba hold the same functions, whatever Numba calls these."""
    mine, its = (str(internals.module_for_linking(library)) for library in (left, right))
    copied = _copied(mine) | _copied(its)
    if _bodies(mine, copied) == _bodies(its, copied):
        return True
    return (_CIRCLE in mine or _CIRCLE in its) and _constants(mine) == _constants(its)


def may_be_same_program(left: Any, right: Any) -> bool:
    """True if two libraries compute with the same numbers, and call the same functions of other libraries.

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


Recompile = Callable[[object, CompileResult | None], Any]
"""Has Numba compile a specialisation of a dispatcher once more: `irad.frontend.numba.private.compiled_by_numba`."""

_LOG: Final = logging.getLogger("irad.cache")
_FREEZES: Final = (
    "Numba compiles the values of globals, attributes of modules and global arrays into the machine code, so a "
    "derivative made now would belong to a different program"
)


class Lowered:
    """Sources that a function was lowered from, for comparison with what Numba compiled.

    Attributes:
        key: of the specialisation, in the table of its dispatcher.
        snapshot: the frozen values.
        callback: the ``numba.cfunc`` function that was lowered, of which Numba keeps the code only.
        is_implementation: whether the function implements an overload, for which Numba compiles it once and for all.

    Args:
        owner: the dispatcher.
        key: as above.
        made: the compile result of the lowering.
        reads: the names of data that were read; an annotation leaves out what Numba has optimised away.
    """

    def __init__(self, owner: Dispatcher, key: object, made: CompileResult, reads: Reads) -> None:
        self._owner, self.key, self._reads = weakref.ref(owner), key, reads
        self._options = inherited(made)
        self.snapshot = Snapshot(made.type_annotation)
        self._is_library = is_of_library(owner.py_func.__module__)
        if not self._is_library:
            history.note(owner.py_func, made, self.snapshot.tokens)
        self._verified: Callable[[], object] = lambda: None
        self.callback: Any = None
        self.is_implementation = False

    def compiled(self) -> CompileResult | None:
        """The specialisation as Numba compiled it, or None; functions of libraries are not looked at."""
        owner = self._owner()
        if owner is None or self._is_library:
            return None
        found: CompileResult | None = vars(owner)["overloads"].get(self.key)
        return found

    def is_outdated(self) -> bool:
        """True if Numba froze other values, which it kept, or took other options from a caller."""
        compiled = self.compiled()
        return compiled is not None and (
            self._options != inherited(compiled) or bool(self.snapshot.changed_since(compiled.type_annotation))
        )

    def check(self, recompile: Recompile, replace: Callable[[Any], None]) -> None:
        """Checks that Numba froze the same values.

        Args:
            recompile: as above.
            replace: has Numba compile the specialisations of a dispatcher once more, in place of those that it has.

        Raises:
            ChangedProgramError: it did not.
        """
        if self.callback is not None:
            self._check_callback(recompile)
            return
        compiled = self.compiled()
        if compiled is None or self._verified() is compiled.library:
            return
        if changed := self.snapshot.changed_since(compiled.type_annotation):
            raise self._error([str(place) for place in changed])
        is_recorded = has_names(compiled.type_annotation)
        loose = [*self.snapshot.loose, *self._unknown(compiled.type_annotation)]
        if is_recorded and loose and not self._is_same(compiled, recompile):
            raise self._error(loose)
        if not is_recorded:
            compiled = self._settled(compiled, recompile, replace)
        self._verified = weakref.ref(compiled.library)

    def _is_same(self, compiled: CompileResult, recompile: Recompile) -> bool:
        """True if Numba makes the same code of a specialisation now."""
        return is_same_code(compiled.library, recompile(self._owner(), compiled).library)

    def _settled(self, compiled: CompileResult, recompile: Recompile, replace: Callable[[Any], None]) -> CompileResult:
        """A specialisation that came from disk, or one that Numba compiles now in its place.

        The latter where nothing tells that it is another program, but LLVM has optimised it in a way that cannot be
        repeated here: with ``NUMBA_OPT=0`` what a function calls was not inlined, and here that is optimised already.

        Raises:
            ChangedProgramError: it computes with other numbers, or calls other functions.
        """
        owner = self._owner()
        assert owner is not None
        may_be_same = False
        for _ in chain((None,), at_other_levels(compiled)):
            anew = recompile(owner, compiled)
            if is_same_code(compiled.library, anew.library):
                return compiled
            may_be_same = may_be_same or may_be_same_program(compiled.library, anew.library)
        if not may_be_same:
            raise self._cached_error()
        _LOG.info("%s is compiled again: its code on disk was optimised otherwise", self.function().__qualname__)
        replace(owner)
        found: CompileResult = vars(owner)["overloads"][self.key]
        return found

    def _check_callback(self, recompile: Recompile) -> None:
        library = library_of_callback(self.callback)
        names = sorted({*self.snapshot.loose, *(f"{kind} {name}" for kind, name, _ in self._reads)})
        if not names or self._verified() is library:
            return
        anew = recompile(self.callback, None)
        if not is_same_code(library, library_of_callback(anew)):
            raise self._error(names, "make it again, by numba.cfunc")
        self._verified = weakref.ref(library)

    def has_changed(self, compiled: CompileResult, recompile: Recompile) -> bool:
        """True if a specialisation that Numba has just compiled, or loaded, is another program than the lowering."""
        if self._is_library:
            return False
        if self._options != inherited(compiled):
            return True
        if has_names(compiled.type_annotation):
            differs = self.snapshot.differs_from(Snapshot(compiled.type_annotation))
            return differs or bool(self._unknown(compiled.type_annotation))
        anew = recompile(self._owner(), compiled)
        is_same = is_same_code(compiled.library, anew.library)
        return not is_same or self.snapshot.differs_from(Snapshot(anew.type_annotation))

    def _unknown(self, annotation: object) -> list[str]:
        """Names that were read, of which an annotation does not say what they stood for."""
        frozen = Frozen(annotation)
        return sorted({f"{kind} {name}" for kind, name, code in self._reads if frozen.find(kind, name, code) is None})

    def function(self) -> Callable[..., Any]:
        """The Python function."""
        owner = self._owner()
        assert owner is not None
        found: Callable[..., Any] = inspect.unwrap(owner.py_func)
        return found

    def _error(self, changed: list[str], again: str | None = None) -> ChangedProgramError:
        function = self.function()
        if self.is_implementation:
            again = "change it before the first call: Numba compiles what implements an overload once in a process"
        again = again or f"recompile it, and then its callers: {function.__name__}.recompile()"
        names = changed[0] if len(changed) == 1 else f"{', '.join(changed[:-1])} or {changed[-1]}"
        return ChangedProgramError(
            f"{function.__qualname__} was compiled before {names} changed, and still uses the old value",
            f"(a) {again} or (b) pass what changes as an argument",
            _FREEZES,
            SourceLocation.of(function),
        )

    def _cached_error(self) -> ChangedProgramError:
        function = self.function()
        return ChangedProgramError(
            f"the machine code of {function.__qualname__} on disk is out of date: something that it reads or calls "
            "has changed since it was compiled",
            f"recompile it, and then its callers: {function.__name__}.recompile()",
            "when Numba loads machine code from its cache (cache=True), it checks only the file of the function, not "
            "other files and not the values of globals",
            SourceLocation.of(function),
        )


def check_links(caller: Any) -> None:
    """Checks that a function was compiled with the code that its callees have now.

    Args:
        caller: a library with what it was lowered from.

    Raises:
        ChangedProgramError: a callee was compiled again since.
    """
    mine = caller.lowered.compiled()
    linked = [] if mine is None else with_all_linked(mine.library)
    for callee in lowered_of(caller.callees):
        its = callee.compiled()
        if its is None or its.library in linked or its.library.name not in {each.name for each in linked}:
            continue
        function, other = caller.lowered.function(), callee.function()
        raise ChangedProgramError(
            f"{function.__qualname__} was compiled before {other.__qualname__} was recompiled, and still calls the "
            "old version",
            f"recompile it as well: {function.__name__}.recompile()",
            "the machine code of a function includes that of the functions it calls, so a derivative made now would "
            "belong to a different program",
            SourceLocation.of(function),
        )


def lowered_of(libraries: Iterable[object]) -> list[Lowered]:
    """Sources that functions of libraries were lowered from, as far as Numba's dispatchers made them."""
    found = (getattr(library, "lowered", None) for library in libraries)
    return [lowered for lowered in found if lowered is not None]
