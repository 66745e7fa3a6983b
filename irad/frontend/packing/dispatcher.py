"""Dispatchers that can be called with structures."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any, Final

from numba.core import types
from numba.core.dispatcher import OmittedArg

from irad.frontend.numba.internals import OpenDispatcher
from irad.frontend.packing import compiled as compiled  # says what a packed structure is in compiled code
from irad.frontend.packing.classes import Structure
from irad.frontend.packing.packed import is_packed_type, is_structure, packed, type_key


class StructureDispatcher(OpenDispatcher):
    """Packs the structures in its arguments.

    Numba's C code looks for a specialisation first, and finds none for a structure; then it asks for one here. So calls
    without structures cost nothing.
    """

    def typeof_pyval(self, val: Any) -> Any:
        """Numba's hook for what its C code cannot type."""
        if is_packed_type(type(val)) or (isinstance(val, tuple) and is_structure(val)):
            return types.pyobject
        return self._type_of(val) if isinstance(val, Structure) else super().typeof_pyval(val)

    def _type_of(self, val: Structure) -> Any:
        known, key = self.__dict__.setdefault("_irad_known_types", {}), type_key(val)
        if key is None:
            return super().typeof_pyval(val)
        if key not in known:
            known[key] = super().typeof_pyval(val)
        return known[key]

    def specialisation_for(self, *args: Any, **kws: Any) -> Callable[..., Any]:
        """What Numba's C code calls where it finds no specialisation."""
        if any(is_structure(_given(arg)) for arg in args):
            return self.call_packed
        return super().specialisation_for(*args, **kws)

    def call_packed(self, *args: Any) -> Any:
        """Calls it with what Numba's C code has bound: defaults are in it, and star arguments are one tuple."""
        values = [packed(given) if is_structure(given := _given(arg)) else arg for arg in args]
        if self._irad_has_star:
            values[-1:] = values[-1]
        return self(*values)

    @cached_property
    def _irad_has_star(self) -> bool:
        parameters = inspect.signature(self.py_func).parameters.values()
        return any(each.kind is each.VAR_POSITIONAL for each in parameters)


def _given(arg: Any) -> Any:
    """An argument as Python gave it, or the default that stands for it."""
    return arg.value if isinstance(arg, OmittedArg) else arg


_TOO_EARLY: Final = (
    "can't unbox heterogeneous list",
    "Cannot determine Numba type of",
    "cannot compute fingerprint of empty",
)


def is_mixed_list(error: Exception) -> bool:
    """Whether Numba has typed an argument by the first items of lists, before it asked for the type of the whole."""
    return any(text in str(error) for text in _TOO_EARLY)
