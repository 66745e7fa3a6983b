"""The cache of a dispatcher on disk, in the place of Numba's own.

Numba asks it for a specialisation before it compiles, and gives it what it has compiled. Whatever cannot be stored, or
is not found, is compiled as usual; the reason is logged under the name ``irad.cache``.
"""

from __future__ import annotations

import inspect
import logging
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from numba.core import sigutils
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher

from irad.frontend.custom import catalogue, rule_plugins
from irad.frontend.disk import locks, stored
from irad.frontend.disk.dependencies import Read, codes_in
from irad.frontend.disk.fingerprint import CannotStore, Fingerprint, fingerprint_of
from irad.frontend.disk.locks import EntryLock
from irad.frontend.disk.stored import is_stored
from irad.frontend.frozen import history
from irad.frontend.frozen.history import Made
from irad.frontend.frozen.inherited_options import comparable
from irad.frontend.frozen.values import Place, Snapshot, has_names, is_of_library, token
from irad.frontend.numba import internals, private
from irad.frontend.numba.patches import watch

# Is what this process compiled earlier what the fingerprint says: the same values, the same options?
#
# A fingerprint says what names stand for at present, and what another process would make of the program.
# Code that was compiled before a name changed, or under the options of another caller, is linked as it
# is. Where the two differ, nothing is read from disk and nothing is written to it.


def check_frozen(found: Fingerprint, *, is_compiled: bool) -> None:
    """Checks what was compiled of the functions of a fingerprint.

    Args:
        found: the fingerprint.
        is_compiled: whether its own program is among that, of which the options are as in any other process.

    Raises:
        CannotStore: something was compiled otherwise, or whether it was is not known.
    """
    for dispatcher in found.dispatchers:
        if not is_of_library(dispatcher.py_func.__module__):
            _check_unnoted(dispatcher, found)
    reads: dict[tuple[str, str, str], list[Read]] = {}
    for read in found.reads:
        reads.setdefault((read.kind, read.name, read.function.__code__.co_filename), []).append(read)
    lines = {read.function: _lines_of(read.function) for read in found.reads}
    for function, owner, made in _compilations(found):
        name = function.__qualname__
        if made.code is not function.__code__:
            raise CannotStore(f"{name} was compiled before its code was replaced")
        for place, tokens in made.tokens.items():
            its = [
                read
                for read in reads.get((place.kind, place.name, place.file), ())
                if place.line in lines[read.function]
            ]
            mine = [read for read in its if read.function is function] or its
            if mine and not tokens <= {token(read.value, content=True) for read in mine}:
                raise CannotStore(f"{name} was compiled before {place} changed")
        expected = found.options.expected.get(owner)  # None: of a derivative
        if not is_compiled and expected and expected != {comparable(made.options)}:
            raise CannotStore(f"{name} was compiled under the options of another caller")


def note_loaded(function: Any, compiled: Any, found: Fingerprint) -> None:
    """Notes what a specialisation from disk was compiled with: it holds the code of what it calls."""
    tokens: dict[Place, frozenset[object]] = {}
    for read in found.reads:
        code = read.function.__code__
        place = Place(read.kind, read.name, code.co_filename, code.co_firstlineno)
        tokens[place] = tokens.get(place, frozenset()) | {token(read.value, content=True)}
    history.note(function, compiled, tokens)


def _compilations(found: Fingerprint) -> Iterator[tuple[Any, Any, Made]]:
    """Compilations of the functions that were followed, or of functions within one of these, which comes second."""
    owners = {id(code): each for each in found.functions for code in codes_in(each.__code__)}
    for function, made in history.compilations():
        owner = function if function in found.functions else owners.get(id(function.__code__))
        if owner is function or (owner is not None and owner.__code__ is not function.__code__):
            yield function, owner, made


def _check_unnoted(dispatcher: Dispatcher, found: Fingerprint) -> None:
    """Refuses code that was compiled before irad was used, or is from Numba's cache, unless nothing can differ."""
    mine = [read for read in found.reads if read.function is dispatcher.py_func]
    name = dispatcher.py_func.__qualname__
    for compiled in dispatcher.overloads.values():
        if is_stored(compiled) or history.is_noted(dispatcher.py_func, compiled.library):
            continue
        if not has_names(compiled.type_annotation):
            if mine or not _is_of_one_file(dispatcher, found):
                raise CannotStore(f"machine code of {name} is from Numba's cache, and with which values is not known")
            continue
        snapshot = Snapshot(compiled.type_annotation)
        if snapshot.loose:
            raise CannotStore(f"{name} was compiled before irad was used, and with which values is not known")
        history.note(dispatcher.py_func, compiled, snapshot.tokens)


def _is_of_one_file(dispatcher: Dispatcher, found: Fingerprint) -> bool:
    """True if Numba, which looks at the file of a function, would have noticed all changes."""
    files = {each.__code__.co_filename for each in found.functions if not is_of_library(each.__module__)}
    return files <= {dispatcher.py_func.__code__.co_filename}


def _lines_of(function: Any) -> range:
    lines = [line for code in codes_in(function.__code__) for *_, line in code.co_lines() if line]
    return range(function.__code__.co_firstlineno, max(lines, default=0) + 1)


_LOG: Final = logging.getLogger("irad.cache")
_loaded: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


class DiskCache(internals.CacheOfDispatcher):
    """Specialisations of one dispatcher.

    Attributes:
        keeps_derivatives: whether the derivatives of such a function are kept, too.
        folder: where they are; None where there is no such place.
        in_use: the fingerprints of derivatives that were loaded.

    Args:
        dispatcher: a function, or a derivative.
        identity: for a derivative, the identity of its source; a function is identified by its code.
    """

    keeps_derivatives: Final = True

    def __init__(self, dispatcher: Dispatcher, identity: object = None) -> None:
        # Before anything is compiled: stored code must never meet other code of the same name.
        stored.number_apart()
        self._dispatcher, self._identity = weakref.ref(dispatcher), identity
        function = dispatcher.py_func if identity is None else inspect.unwrap(innermost(dispatcher).py_func)
        self._name = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"
        self.folder: Path | None = stored.folder_of(function)
        self.in_use: dict[Any, Fingerprint] = {}
        self._before: dict[Any, Fingerprint] = {}
        self._locks: dict[Any, EntryLock] = {}

    @property
    def cache_path(self) -> str | None:
        """The folder, for Numba's statistics."""
        return None if self.folder is None else str(self.folder)

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """The specialisation for a signature, if it is stored, or another process has it stored before long."""
        key = sigutils.normalize_signature(sig)[0]
        self._before.pop(key, None)
        # Code is lowered here to be read as text, which a stored specialisation has not.
        if private.shadow().is_here():
            return None
        # Rules decide what code a derivative has, so those of plug-ins are part of the fingerprint.
        rule_plugins.load()
        found = self._fingerprint(key, is_compiled=False)
        if found is None or self.folder is None:
            return None
        self._before[key] = found
        path = self._path(self.folder, key, found)
        content = stored.read(path)
        if content is None:
            lock = locks.lock_of(path)
            if lock is None:
                content = stored.read(path)
            else:
                self._locks[key] = lock
        both = None if content is None else stored.loaded(content, target_context, self.folder, found.dispatchers)
        if both is None:
            _LOG.debug("%s: not stored for %s", self._name, key)
            return None
        compiled, beside = both
        self._before.pop(key)
        self._note(key, compiled, found, beside)
        _LOG.debug("%s: loaded for %s", self._name, key)
        return compiled

    def save_overload(self, sig: Any, data: CompileResult) -> None:
        """Stores a new specialisation, if that can be."""
        key = sigutils.normalize_signature(sig)[0]
        before = self._before.pop(key, None)
        found = None if before is None else self._fingerprint(key, is_compiled=True)
        if before is None or found is None or self.folder is None:
            return
        from irad.frontend.disk.dumped import dumped  # what compiles: a process that only loads does without

        try:
            if found.digest != before.digest:
                raise CannotStore("what it depends on changed while it was compiled")
            derivative: Any = None if self._identity is None else self._dispatcher()
            beside = None if derivative is None else derivative.kept_beside(key)
            is_written = stored.write(self._path(self.folder, key, found), dumped(data, found, beside))
        except CannotStore as reason:
            self._tell(reason)
            return
        if is_written and key in self._locks:
            self._locks.pop(key).release(is_stored=True)
        _LOG.debug("%s: %s for %s", self._name, "stored" if is_written else "cannot be written", key)

    def end(self, sig: Any) -> None:
        """Ends a compilation that may have failed, or may not have been stored: no other process waits for it."""
        lock = self._locks.pop(sigutils.normalize_signature(sig)[0], None)
        if lock is not None:
            lock.release(is_stored=False)

    def enable(self) -> None:
        """Numba's; there is nothing to switch."""

    def disable(self) -> None:
        """Numba's; there is nothing to switch."""

    def flush(self) -> None:
        """Does nothing: fingerprints find what has to be recompiled, so Numba need not empty its index."""

    def _fingerprint(self, argument_types: Any, *, is_compiled: bool) -> Fingerprint | None:
        dispatcher = self._dispatcher()
        try:
            if self.folder is None:
                raise CannotStore("its functions come from no file, or there is no folder that can be written to")
            found = fingerprint_of(dispatcher, self._identity, argument_types)
            check_frozen(found, is_compiled=is_compiled)
        except CannotStore as reason:
            self._tell(reason)
            return None
        return found

    def _path(self, folder: Path, argument_types: Any, found: Fingerprint) -> Path:
        return stored.path_in(folder, self._name, str(argument_types), found.digest)

    def _note(self, key: Any, compiled: CompileResult, found: Fingerprint, beside: Any) -> None:
        """Lets a loaded derivative be forgotten when a rule, or a frozen value, turns out to be another."""
        dispatcher: Any = self._dispatcher()
        if dispatcher is not None:
            note_loaded(dispatcher.py_func, compiled, found)
        if self._identity is None or dispatcher is None:
            return
        dispatcher.take_loaded(key, compiled.signature.return_type, beside)
        catalogue.note_use(dispatcher, found.functions)
        self.in_use[key] = found
        _loaded.add(dispatcher)

    def is_outdated(self, compiled: Any) -> bool:
        """True if a specialisation that was loaded is that of another program now, if a function is a part of it."""
        return any(
            compiled in found.dispatchers and self._digest(key) != found.digest for key, found in self.in_use.items()
        )

    def _digest(self, key: Any) -> str | None:
        try:
            return fingerprint_of(self._dispatcher(), self._identity, key).digest
        except CannotStore:
            return None

    def _tell(self, reason: CannotStore) -> None:
        _LOG.debug("%s is compiled in each process: %s", self._name, reason)


def innermost(dispatcher: Dispatcher) -> Any:
    """The function that a derivative, of whatever order, is of."""
    while hasattr(dispatcher, "primal"):
        dispatcher = dispatcher.primal
    return dispatcher


def _note_specialisation(dispatcher: Dispatcher, compiled: CompileResult) -> None:
    """Forgets derivatives from disk, if Numba now compiles one of their functions with other values."""
    for derivative in list(_loaded):
        if derivative is not dispatcher and internals.cache_of(derivative).is_outdated(dispatcher):
            _loaded.discard(derivative)
            internals.cache_of(derivative).in_use.clear()
            derivative.forget()


watch(_note_specialisation)
