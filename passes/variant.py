"""Variants: derivatives of a function, told apart by the kinds of its parameters.

The same function may be wanted in several variants; for each there are the functions of the mode (`irad.passes.mode`).
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from irad.records import dataclass
from irad.ruleset.memory_type import MemoryType

if TYPE_CHECKING:  # tasks name modes, and are there before the engine is loaded
    from irad.ir.module import Function
    from irad.ir.types import FunctionType


class ParameterKind(enum.Enum):
    """Part that an LLVM parameter of the entry function takes in the derivative."""

    CONST = "const"  # no derivative
    ACTIVE = "active"  # a float passed by value whose cotangent is wanted
    SHADOW = "shadow"  # a pointer that comes with a shadow pointer


@dataclass(frozen=True, slots=True)
class Variant:
    """A function together with the activity of its parameters and of its result; ``memory`` is what they point to.

    Attributes:
        is_lane: of the function of a parallel loop, what one lane does rather than all of them.
        stays: parameters whose memory stays as it is until the reverse sweep, but for what the function itself writes.
        noalias: pairs of parameters whose memory does not overlap.
        overwritten: of a function whose derivative comes from outside, parameters whose memory may change before the
            reverse.
        result_is_read: of such a function, whether the primal's value is used, other than linearly.
        unneeded: of such a function, parameters whose memory is not read after the call.
        written: of such a function, parameters whose memory it may write.
        returned: of such a function, parameters whose memory may be part of what it returns.
        is_seen: of such a function, whether irad could tell the last two; else they are all.
    """

    function: Function
    kinds: tuple[ParameterKind, ...]
    memory: tuple[MemoryType | None, ...]
    result_active: bool
    result_has_shadow: bool
    is_entry: bool = False
    is_lane: bool = False
    stays: frozenset[int] = frozenset()
    noalias: frozenset[tuple[int, int]] = frozenset()
    overwritten: frozenset[int] = frozenset()
    result_is_read: bool = True
    unneeded: frozenset[int] = frozenset()
    written: frozenset[int] = frozenset()
    returned: frozenset[int] = frozenset()
    is_seen: bool = True

    @property
    def function_type(self) -> FunctionType:
        """Function type of the primal."""
        return self.function.function_type


@dataclass(frozen=True, slots=True)
class PointerVariant:
    """Request of a call through a pointer for the function there: as `Variant`, of some function of that type.

    ``by_value``: an aggregate that is passed or returned has pointers to memory with a shadow. There is no pair
    for that. It is not a reason to refuse the program: Numba's function values have another entry, without
    aggregates, and code that chooses the one that is there.
    """

    function_type: FunctionType
    kinds: tuple[ParameterKind, ...]
    memory: tuple[MemoryType | None, ...]
    result_active: bool
    result_has_shadow: bool
    by_value: bool = False

    @property
    def shadows(self) -> tuple[int, ...]:
        """Indices of the parameters that come with a shadow."""
        return shadowed(self.kinds)


def shadowed(kinds: tuple[ParameterKind, ...]) -> tuple[int, ...]:
    """The parameters that get a shadow."""
    return tuple(i for i, kind in enumerate(kinds) if kind is ParameterKind.SHADOW)
