"""Is a program that irad lowered the one that Numba compiled?

Numba freezes globals, closure cells and what modules hold when it compiles a function; irad lowers the function again,
later. Where Numba kept the values, they are followed (`numba_follow`). What is left is found here: `stale` before a
program is used, `has_changed` when Numba compiles a function of which there already is a derivative.
"""

from __future__ import annotations

import inspect
import logging
import weakref
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any, Final

from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher

from irad.errors import ChangedProgramError, SourceLocation
from irad.frontend.frozen import history, numba_compare
from irad.frontend.frozen.numba_flags import inherited
from irad.frontend.frozen.numba_follow import Reads
from irad.frontend.frozen.numba_names import Frozen, Snapshot, has_names, is_of_library
from irad.frontend.numba.internals import library_of_callback, with_all_linked

Recompile = Callable[[object, CompileResult | None], Any]
"""Has Numba compile a specialisation of a dispatcher once more: `irad.frontend.numba.private.compiled_by_numba`."""

_LOG: Final = logging.getLogger("irad.cache")
_FREEZES: Final = (
    "Numba copies what global names, attributes of modules and global arrays hold into the machine code when it "
    "compiles a function, and a derivative made now would be that of another program"
)


class Lowered:
    """What a function was lowered from, for comparison with what Numba compiled.

    Attributes:
        key: of the specialisation, in the table of its dispatcher.
        snapshot: what was frozen.
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
        """Whether Numba froze other values, which it kept, or took other options from a caller."""
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
        """Whether Numba makes the same code of a specialisation now."""
        return numba_compare.is_same_code(compiled.library, recompile(self._owner(), compiled).library)

    def _settled(self, compiled: CompileResult, recompile: Recompile, replace: Callable[[Any], None]) -> CompileResult:
        """A specialisation that came from the disk, or one that Numba compiles now in its place.

        The latter where nothing tells that it is another program, but LLVM has optimised it in a way that cannot be
        repeated here: with ``NUMBA_OPT=0`` what a function calls was not inlined, and here that is optimised already.

        Raises:
            ChangedProgramError: it computes with other numbers, or calls other functions.
        """
        owner = self._owner()
        assert owner is not None
        may_be_same = False
        for _ in chain((None,), numba_compare.at_other_levels(compiled)):
            anew = recompile(owner, compiled)
            if numba_compare.is_same_code(compiled.library, anew.library):
                return compiled
            may_be_same = may_be_same or numba_compare.may_be_same_program(compiled.library, anew.library)
        if not may_be_same:
            raise self._cached_error()
        _LOG.info("%s is compiled again: its code on the disk was optimised otherwise", self.function().__qualname__)
        replace(owner)
        found: CompileResult = vars(owner)["overloads"][self.key]
        return found

    def _check_callback(self, recompile: Recompile) -> None:
        library = library_of_callback(self.callback)
        names = sorted({*self.snapshot.loose, *(f"{kind} {name}" for kind, name, _ in self._reads)})
        if not names or self._verified() is library:
            return
        anew = recompile(self.callback, None)
        if not numba_compare.is_same_code(library, library_of_callback(anew)):
            raise self._error(names, "make it again, by numba.cfunc")
        self._verified = weakref.ref(library)

    def has_changed(self, compiled: CompileResult, recompile: Recompile) -> bool:
        """Whether a specialisation that Numba has just compiled, or loaded, is another program than the lowering."""
        if self._is_library:
            return False
        if self._options != inherited(compiled):
            return True
        if has_names(compiled.type_annotation):
            differs = self.snapshot.differs_from(Snapshot(compiled.type_annotation))
            return differs or bool(self._unknown(compiled.type_annotation))
        anew = recompile(self._owner(), compiled)
        is_same = numba_compare.is_same_code(compiled.library, anew.library)
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
        again = again or f"compile it again, and then what calls it: {function.__name__}.recompile()"
        names = changed[0] if len(changed) == 1 else f"{', '.join(changed[:-1])} or {changed[-1]}"
        return ChangedProgramError(
            f"{function.__qualname__} was compiled before {names} changed, and still computes with what it was",
            f"(a) {again} or (b) pass what changes as an argument",
            _FREEZES,
            SourceLocation.of(function),
        )

    def _cached_error(self) -> ChangedProgramError:
        function = self.function()
        return ChangedProgramError(
            f"the machine code of {function.__qualname__} on the disk is that of another program: something that it "
            "reads or calls has changed since it was compiled",
            f"compile it again, and then what calls it: {function.__name__}.recompile()",
            "Numba looks only at the file of a function when it loads machine code from its cache (cache=True): it "
            "does not see changes of other files, nor of what globals hold",
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
            f"{function.__qualname__} was compiled before {other.__qualname__} was compiled again, and still calls "
            "what that was",
            f"compile it again, too: {function.__name__}.recompile()",
            "Numba puts the code of what a function calls into its machine code, and a derivative made now would be "
            "that of another program",
            SourceLocation.of(function),
        )


def lowered_of(libraries: Iterable[object]) -> list[Lowered]:
    """What the functions of libraries were lowered from, as far as Numba's dispatchers made them."""
    found = (getattr(library, "lowered", None) for library in libraries)
    return [lowered for lowered in found if lowered is not None]
