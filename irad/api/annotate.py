"""How `irad.autodiff` is told what each argument is."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any

from irad.frontend.annotations import Role


@dataclass(frozen=True, slots=True, eq=False)
class Const:
    """A constant: no derivative with respect to it, and none flows through it."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Active:
    """A number, or a tuple of numbers; its derivative is returned."""

    value: Any


@dataclass(frozen=True, slots=True, eq=False)
class Duplicated:
    """An array or record, or a tuple of these, with its shadow.

    On entry the shadow holds the cotangent of the array's final contents; on return, that of its initial contents. The
    derivative of an array that the function only reads is added to its shadow.
    """

    value: Any
    shadow: Any


@dataclass(frozen=True, slots=True, eq=False)
class DuplicatedNoNeed:
    """Like `Duplicated`, for an array whose contents the caller does not need afterwards.

    What the array holds afterwards is unspecified. Functions with a rule need not compute it.
    """

    value: Any
    shadow: Any


@dataclass(frozen=True, slots=True, eq=False)
class MixedDuplicated:
    """A tuple of floats and arrays, with a shadow of the same structure.

    The derivatives of arrays are added to the arrays of the shadow; those of floats are returned. The result has the
    structure of the value, with the shadow's arrays and the derivatives of the floats.
    """

    value: Any
    shadow: Any


Annotation = Const | Active | Duplicated | DuplicatedNoNeed | MixedDuplicated

ROLES: dict[type, Role] = {
    Const: Role.CONST,
    Active: Role.ACTIVE,
    Duplicated: Role.SHADOW,
    DuplicatedNoNeed: Role.SHADOW,
    MixedDuplicated: Role.MIXED,
}


class Mode(enum.Enum):
    """What `irad.autodiff` computes."""

    REVERSE = "Reverse"
    REVERSE_WITH_PRIMAL = "ReverseWithPrimal"

    def __repr__(self) -> str:
        return f"irad.{self.value}"


Reverse = Mode.REVERSE
ReverseWithPrimal = Mode.REVERSE_WITH_PRIMAL
