"""Tasks: the role of each argument and of the return value in a derivative call, free of any compiler.

`Task` is the whole description of one compiled derivative besides the argument types; equal tasks share code.
"""

from __future__ import annotations

import enum
from dataclasses import field

from irad.data.recursive.kinds import INACTIVE, set_kind
from irad.options import Options
from irad.passes.mode import REVERSE_MODE, Mode
from irad.records import dataclass


class AutodiffAnnotation:
    """Annotation of an argument of `irad.autodiff`, which says how its derivative is passed."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        set_kind(cls, INACTIVE)  # a dataclass, but no structure


class Role(enum.Enum):
    """Way in which the derivative with respect to one argument leaves the call."""

    CONST = "const"  # no derivative
    GRADIENT = "gradient"  # new arrays and floats, returned
    ACTIVE = "active"  # floats only, returned
    INTO = "into"  # overwrites the arrays of a given destination
    SHADOW = "shadow"  # accumulates into given arrays
    MIXED = "mixed"  # accumulates into given arrays, floats returned
    TANGENT = "tangent"  # forward mode: has the given tangent, in arrays that change with the argument's
    WORKSPACE = "workspace"  # a constant that active values pass through: its shadow is made and dropped

    @property
    def has_destination(self) -> bool:
        """True if the caller passes memory for the derivative, or with it."""
        return self in (Role.INTO, Role.SHADOW, Role.MIXED, Role.TANGENT)

    @property
    def takes_derivative(self) -> bool:
        """True if the caller passes memory that the derivative goes to."""
        return self in (Role.INTO, Role.SHADOW, Role.MIXED)

    @property
    def is_returned(self) -> bool:
        """True if the call returns the derivative."""
        return self in (Role.GRADIENT, Role.ACTIVE, Role.MIXED)


class Seed(enum.Enum):
    """Source of the cotangent of the return value."""

    ONE = "one"  # the value is a float; its cotangent is 1
    GIVEN = "given"  # an argument of the call, in the structure of the value
    NONE = "none"  # the return value carries no cotangent


class Returns(enum.Enum):
    """Result of a derivative callable; in forward mode the tangent takes the place of the gradient."""

    GRADIENT = "gradient"
    VALUE = "value"
    VALUE_AND_GRADIENT = "value and gradient"
    GRADIENT_AND_VALUE = "gradient and value"


@dataclass(frozen=True, slots=True)
class Task:
    """One kind of derivative call.

    Attributes:
        roles: (position, role) of the differentiated arguments, in the order of the returned gradients; a position
            counts the arguments of a call, those collected by ``*args`` included.
        seed: where the cotangent of the return value comes from.
        returns: the form of the result.
        has_aux: the function returns ``(value, aux)`` and only ``value`` is differentiated.
        unneeded: positions of arguments whose content the caller does not need afterwards.
        kept: positions of arguments whose tangents stay as the caller gave them, also where the function writes to the
            argument.
        lends_shadows: active values may be stored in the memory of arguments without a role, which then has a shadow
            that is never visible; otherwise such an argument is a promise that they are not.
        lent: positions of arguments without a role for which that holds in any case.
        single: return the only gradient itself, not a tuple of one.
        options: options of the derivative.
        mode: the functions that are made; in forward mode there is no seed.
        is_batched: tangents are given and returned in tuples, with one for each of the mode's lanes.
        is_primal: the call is a part of a function that is differentiated itself.
        speculates: zeros need not be strong: where a derivative is NaN, the caller asks again, without this.
        shows_zeros: the result is infinite or NaN where a zero that won over an infinity may have to be another number.
        is_linear: the function is to be transposed: what is not linear in the differentiated arguments is refused.
    """

    roles: tuple[tuple[int, Role], ...]
    seed: Seed = Seed.ONE
    returns: Returns = Returns.GRADIENT
    has_aux: bool = False
    single: bool = False
    lends_shadows: bool = False
    lent: frozenset[int] = frozenset()
    unneeded: frozenset[int] = frozenset()
    kept: frozenset[int] = frozenset()
    options: Options = field(default_factory=Options)
    mode: Mode = REVERSE_MODE
    is_batched: bool = False
    is_primal: bool = False
    speculates: bool = False
    shows_zeros: bool = False
    is_linear: bool = False

    @property
    def is_forward(self) -> bool:
        """True if tangents are carried along, instead of cotangents back."""
        return self.mode.is_forward

    def lends_to(self, position: int) -> bool:
        """True if an argument is a constant that active values may be stored in."""
        return self.role_of(position) is Role.CONST and (self.lends_shadows or position in self.lent)

    def role_of(self, position: int) -> Role:
        """The role of the argument at a position."""
        return dict(self.roles).get(position, Role.CONST)

    @property
    def destinations(self) -> tuple[int, ...]:
        """Positions whose derivative goes to memory of the caller, in order."""
        return tuple(position for position, role in self.roles if role.has_destination)

    @property
    def returned(self) -> tuple[int, ...]:
        """Positions whose derivative is returned, in order."""
        return tuple(position for position, role in self.roles if role.is_returned)
