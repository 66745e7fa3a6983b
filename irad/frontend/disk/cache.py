"""The cache of a dispatcher on disk, in the place of Numba's own.

Numba asks it for a specialisation before it compiles, and gives it what it has compiled. Whatever cannot be stored, or
is not found, is compiled as usual; the reason is logged under the name ``irad.cache``.
"""

from __future__ import annotations

import logging
import weakref
from pathlib import Path
from typing import Any, Final

from numba.core import sigutils
from numba.core.compiler import CompileResult

from irad.frontend.custom import catalogue, packs
from irad.frontend.disk import files, stored
from irad.frontend.disk.fingerprint import CannotStore, Fingerprint, fingerprint_of
from irad.frontend.disk.frozen_values import check_frozen, note_loaded
from irad.frontend.numba import internals, private
from irad.frontend.numba.patches import watch

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
        identity: what a derivative is made from; of a function its code says that.
    """

    keeps_derivatives: Final = True

    def __init__(self, dispatcher: Any, identity: object = None) -> None:
        stored.number_apart()
        self._dispatcher, self._identity = weakref.ref(dispatcher), identity
        function = dispatcher.py_func if identity is None else innermost(dispatcher).py_func
        self._name = f"{dispatcher.py_func.__module__}.{dispatcher.py_func.__qualname__}"
        self.folder: Path | None = files.folder_of(function)
        self.in_use: dict[Any, Fingerprint] = {}
        self._before: dict[Any, Fingerprint] = {}

    @property
    def cache_path(self) -> str | None:
        """The folder, for Numba's statistics."""
        return None if self.folder is None else str(self.folder)

    def load_overload(self, sig: Any, target_context: Any) -> CompileResult | None:
        """The specialisation for a signature, if it is stored."""
        key = sigutils.normalize_signature(sig)[0]
        self._before.pop(key, None)
        if private.shadow().is_here():
            return None
        packs.load()
        found = self._fingerprint(key, is_compiled=False)
        if found is None or self.folder is None:
            return None
        self._before[key] = found
        content = files.read(self._path(self.folder, key, found))
        compiled = None if content is None else stored.loaded(content, target_context, self.folder)
        if compiled is None:
            _LOG.debug("%s: not stored for %s", self._name, key)
            return None
        self._before.pop(key)
        self._note(key, compiled, found)
        _LOG.debug("%s: loaded for %s", self._name, key)
        return compiled

    def save_overload(self, sig: Any, data: CompileResult) -> None:
        """Stores a new specialisation, if that can be."""
        key = sigutils.normalize_signature(sig)[0]
        before = self._before.pop(key, None)
        found = None if before is None else self._fingerprint(key, is_compiled=True)
        if before is None or found is None or self.folder is None:
            return
        try:
            if found.digest != before.digest:
                raise CannotStore("what it depends on changed while it was compiled")
            is_written = files.write(self._path(self.folder, key, found), stored.dumped(data, found))
        except CannotStore as reason:
            self._tell(reason)
            return
        _LOG.debug("%s: %s for %s", self._name, "stored" if is_written else "cannot be written", key)

    def enable(self) -> None:
        """Numba's; there is nothing to switch."""

    def disable(self) -> None:
        """Numba's; there is nothing to switch."""

    def flush(self) -> None:
        """Numba's: what it is to compile anew is not looked up; fingerprints see to that."""

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
        return files.path_in(folder, self._name, str(argument_types), found.digest)

    def _note(self, key: Any, compiled: CompileResult, found: Fingerprint) -> None:
        """Lets a loaded derivative be forgotten when a rule, or a frozen value, turns out to be another."""
        dispatcher = self._dispatcher()
        if dispatcher is not None:
            note_loaded(dispatcher.py_func, compiled, found)
        if self._identity is None or dispatcher is None:
            return
        catalogue.note_use(dispatcher, found.functions)
        self.in_use[key] = found
        _loaded.add(dispatcher)

    def is_outdated(self, compiled: Any) -> bool:
        """Whether a specialisation that was loaded is that of another program now, if a function is a part of it."""
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


def innermost(dispatcher: Any) -> Any:
    """The function that a derivative, of whatever order, is of."""
    while hasattr(dispatcher, "primal"):
        dispatcher = dispatcher.primal
    return dispatcher


def _note_specialisation(dispatcher: Any, compiled: CompileResult) -> None:
    """Forgets derivatives from the disk, if Numba now compiles one of their functions with other values."""
    for derivative in list(_loaded):
        if derivative is not dispatcher and internals.cache_of(derivative).is_outdated(dispatcher):
            _loaded.discard(derivative)
            internals.cache_of(derivative).in_use.clear()
            derivative.forget()


watch(_note_specialisation)
