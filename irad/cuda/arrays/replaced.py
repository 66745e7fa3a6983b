"""Functions of modules, replaced by ones that a tape sees, as long as a tape records."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from threading import Lock
from types import MappingProxyType, ModuleType
from typing import Any

import numpy as np

from irad.cuda.arrays.library import Library
from irad.cuda.arrays.recording import call_function
from irad.cuda.recording.record import current_record
from irad.frontend.calls.raising import public

_LOCK = Lock()


class ReplacedFunctions:
    """The public functions of some modules.

    A function that was imported by its own name before is not seen: ``from cupy import sort``.

    Args:
        library: that they belong to.
        modules: names of modules, with the prefix of their functions in `Rule.name`.
        special: factories for the replacements of some functions, by name.
        only: names of the functions; all where it is empty.
    """

    def __init__(
        self,
        library: Library,
        modules: Mapping[str, str],
        special: Mapping[str, Callable[[Any], Any]] = MappingProxyType({}),
        only: frozenset[str] = frozenset(),
    ) -> None:
        self._library, self._modules, self._special, self._only = library, modules, special, only
        self._originals: list[tuple[ModuleType, str, Any]] = []
        self._made: dict[int, tuple[Any, Any]] = {}
        self._users = 0

    def start(self) -> None:
        """Replaces the functions of the modules that are loaded."""
        with _LOCK:
            self._users += 1
            if self._users > 1:
                return
            for module_name, prefix in self._modules.items():
                module = sys.modules.get(module_name)
                for name in _public_names(module) if module is not None else ():
                    if not self._only or name in self._only:
                        self._replace(module, name, prefix)

    def _replace(self, module: Any, name: str, prefix: str) -> None:
        original = getattr(module, name)
        is_seen = isinstance(original, np.ufunc)  # by NumPy's protocol
        if isinstance(original, type | ModuleType) or not callable(original) or is_seen:
            return
        if id(original) not in self._made:
            special = self._special.get(prefix + name)
            seen = special(original) if special is not None else _seen(self._library, prefix + name, original)
            self._made[id(original)] = original, seen
        self._originals.append((module, name, original))
        setattr(module, name, self._made[id(original)][1])

    def stop(self) -> None:
        """Puts the original functions back."""
        with _LOCK:
            self._users -= 1
            if not self._users:
                for module, name, original in self._originals:
                    setattr(module, name, original)
                self._originals.clear()


def _public_names(module: ModuleType) -> list[str]:
    return [
        name for name in getattr(module, "__all__", dir(module)) if not name.startswith("_") and hasattr(module, name)
    ]


class SeenFunction:
    """A function with attributes, such as a ufunc, that a tape sees being called.

    Args:
        library: that it belongs to.
        name: as `Rule.name`.
        original: the function.
    """

    def __init__(self, library: Library, name: str, original: Any) -> None:
        self._library, self._name, self._original = library, name, original
        self.__doc__ = original.__doc__
        self.__name__ = getattr(original, "__name__", name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it, and records it where a tape records."""
        return _call(self._library, self._name, self._original, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._original, name)
        return SeenFunction(self._library, f"{self._name}.{name}", found) if name in _METHODS else found


_METHODS = frozenset({"at", "reduce", "accumulate", "outer", "reduceat"})


def _seen(library: Library, name: str, original: Any) -> Any:
    if any(hasattr(original, method) for method in _METHODS):
        return SeenFunction(library, name, original)

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:
        return _call(library, name, original, args, kwargs)

    return call


def _call(library: Library, name: str, original: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if current_record() is None:
        return original(*args, **kwargs)
    return _recorded(library, name, original, args, kwargs)


_recorded = public(call_function)
