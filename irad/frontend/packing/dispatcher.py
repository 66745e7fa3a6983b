"""Dispatchers that can be called with structures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types
from numba.core.registry import CPUDispatcher

from irad.frontend.packing import compiled as compiled  # says what a packed structure is in compiled code
from irad.frontend.packing.packed import Structure, is_packed_type, is_structure, packed, type_key


class StructureDispatcher(CPUDispatcher):
    """Packs the structures in its arguments.

    Numba's C code looks for a specialisation first, and finds none for a structure; then it asks for one here. So calls
    without structures cost nothing.
    """

    def typeof_pyval(self, val: Any) -> Any:
        """Numba's hook for what its C code cannot type."""
        if is_packed_type(type(val)):
            return types.pyobject
        return self._type_of(val) if isinstance(val, Structure) else super().typeof_pyval(val)

    def _type_of(self, val: Structure) -> Any:
        known, key = self.__dict__.setdefault("_irad_known_types", {}), type_key(val)
        if key is None:
            return super().typeof_pyval(val)
        if key not in known:
            known[key] = super().typeof_pyval(val)
        return known[key]

    def _compile_for_args(self, *args: Any, **kws: Any) -> Callable[..., Any]:
        if any(map(is_structure, args)):
            return self._call_packed
        found: Callable[..., Any] = super()._compile_for_args(*args, **kws)
        return found

    def _call_packed(self, *args: Any, **kws: Any) -> Any:
        return self(*map(packed, args), **{name: packed(value) for name, value in kws.items()})
