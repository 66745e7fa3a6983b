"""Queries of rules about the function around a call."""

from __future__ import annotations

from abc import ABC, abstractmethod

from irad.ir.instructions import CallSite
from irad.ir.module import Function
from irad.ir.types import FunctionType
from irad.ir.values import ConstantInt, Value
from irad.passes.memory.number_places import is_made_here, number_places
from irad.passes.request import MemoryType
from irad.passes.unit import Unit


class RuleContext(ABC):
    """Answers the questions of `ruleset.interface.Context` that concern the primal and not a sweep."""

    __slots__ = ()

    @property
    @abstractmethod
    def unit(self) -> Unit:
        """The function that the call is in."""

    @property
    def zero_wins(self) -> bool:
        """True if zero is wanted where a partial derivative is zero and what it is multiplied by infinite."""
        return self.unit.program.request.zero_wins

    @property
    def is_exact(self) -> bool:
        """True if values have to be those of the plain function, to the bit."""
        return not self.unit.program.request.vector_math

    def is_active(self, value: Value) -> bool:
        """True if a float value carries a derivative, or a pointer has a shadow."""
        return self.unit.activity.is_active(value)

    def layout(self, pointer: Value, *path: int) -> MemoryType | None:
        """Layout of the memory at a pointer, or None if that is not known."""
        if not path:
            return self.unit.memory_types.layout_from(pointer)
        return self.unit.memory_types.layout(self.unit.points_to.behind(pointer, path))

    def holds_floats(self, pointer: Value, *path: int) -> bool:
        """True if the memory at a pointer may hold floating-point numbers."""
        return self.unit.memory_types.holds_floats(self.unit.points_to.behind(pointer, path))

    def holds_pointers(self, pointer: Value, *path: int) -> bool:
        """True if pointers are stored in the memory at a pointer."""
        return bool(self.unit.memory_types.holds_pointers & self.unit.points_to.behind(pointer, path))

    def is_read(self, pointer: Value, call: CallSite) -> bool:
        """True if the function reads the memory at a pointer anywhere but in a call."""
        mod_ref, mask = self.unit.mod_ref, self.unit.points_to.mask(pointer)
        return any(inst is not call and mod_ref.of(inst).reads & mask for inst in self.unit.function.instructions())

    def number_places(self, pointer: Value, size: Value | None = None) -> MemoryType | None:
        """Like `layout`, but where that is not known, the numbers that the function itself accesses there."""
        known = size.value if isinstance(size, ConstantInt) else None
        return self.layout(pointer) or number_places(self.unit.memory_types, pointer, known)

    def is_made_here(self, pointer: Value) -> bool:
        """True if the memory is the function's own: its shadow holds no derivatives yet."""
        return is_made_here(self.unit.memory_types, pointer)

    def declare(self, name: str, call_type: FunctionType, attributes: tuple[str, ...] = ()) -> Function:
        """A declaration in the derivative module."""
        return self.unit.module.declare(name, call_type, attributes)
