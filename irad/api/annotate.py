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

    In comes the cotangent of the final content, out goes that of the initial content; what the function only reads has
    its derivative added.
    """

    value: Any
    shadow: Any


@dataclass(frozen=True, slots=True, eq=False)
class DuplicatedNoNeed:
    """Like `Duplicated`; the caller does not need the primal content afterwards.

    What the array holds then is not said. It is for functions with a rule, which need not compute it.
    """

    value: Any
    shadow: Any


@dataclass(frozen=True, slots=True, eq=False)
class MixedDuplicated:
    """A tuple of floats and arrays with a shadow of its structure.

    The derivatives of arrays are added to the arrays of the shadow, those of floats are returned: the result has the
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
