"""Modes: which functions a derivative consists of, and what they take and return.

A mode is data: code that declares, exports or walks the functions of a derivative iterates over those of its mode. Only
the passes that fill a function ask for it by name.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Final, TypeAlias

from irad.ir import types
from irad.ir.types import FunctionType
from irad.passes.variant import ParameterKind, PointerVariant, Variant

Signed: TypeAlias = Callable[[Variant | PointerVariant, tuple[int, ...]], FunctionType]
"""The type of a function, from its variant and the parameters whose shadow it is given."""


@dataclass(frozen=True, slots=True)
class ModeFunction:
    """One of the functions of a mode. Its first two parameters are the frame and the arena.

    Attributes:
        name: how its symbol ends.
        type_of: its type; in modes of another width a function has the same name and another type.
    """

    name: str
    type_of: Signed = field(compare=False)


class Algebra(enum.Enum):
    """What the lanes of forward mode hold beside each number."""

    TANGENTS = "tangents"  # a tangent each, in directions of their own
    TAYLOR = "Taylor coefficients"  # those of a Taylor series from the first on; the number is the one before


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to differentiate.

    Attributes:
        name: its name.
        functions: what becomes of a variant, in the order in which they run.
        width: how many derivatives are computed beside one run of the primal: its lanes.
        algebra: what its lanes hold, in forward mode.
    """

    name: str
    functions: tuple[ModeFunction, ...]
    width: int = 1
    algebra: Algebra = Algebra.TANGENTS

    @property
    def is_forward(self) -> bool:
        """Whether tangents are carried along, instead of cotangents back."""
        return TANGENT in self.functions


def _augmented_type(variant: Variant | PointerVariant, shadows: tuple[int, ...]) -> FunctionType:
    """`R' (ptr frame, ptr arena, primal parameters…, shadows…)`.

    R' is the primal's result, with the shadow of a pointer result beside it.
    """
    result = variant.function_type.result
    if variant.result_has_shadow:
        result = types.struct_type([result, result])
    given = variant.function_type.params
    return types.function_type(result, [types.PTR, types.PTR, *given, *(given[i] for i in shadows)])


def _reverse_type(variant: Variant | PointerVariant, shadows: tuple[int, ...]) -> FunctionType:
    """`void (ptr frame, ptr arena, [cotangent of the result], one ptr for each active parameter…)`.

    It stores the cotangents of the active parameters. The shadows are in the frame, as far as they are needed.
    """
    result = variant.function_type.result
    seeds = [result] if variant.result_active else []
    outs = [types.PTR for kind in variant.kinds if kind is ParameterKind.ACTIVE]
    return types.function_type(types.VOID, [types.PTR, types.PTR, *seeds, *outs])


def _tangent_type(variant: Variant | PointerVariant, shadows: tuple[int, ...], width: int = 1) -> FunctionType:
    """`R' (ptr frame, ptr arena, primal parameters…, shadows…, tangents of the active parameters…)`.

    R' is the primal's result, with its tangent beside it, or the shadow of a pointer. The frame is not used. With
    several lanes, the shadows of the first are followed by those of the second, and so are tangents and results.
    """
    result, given = variant.function_type.result, variant.function_type.params
    if variant.result_has_shadow or variant.result_active:
        result = types.struct_type([result] * (1 + width))
    beside = [given[i] for i in shadows] * width
    tangents = [type_ for type_, kind in zip(given, variant.kinds, strict=False) if kind is ParameterKind.ACTIVE]
    return types.function_type(result, [types.PTR, types.PTR, *given, *beside, *tangents * width])


AUGMENTED: Final = ModeFunction("augmented", _augmented_type)
REVERSE: Final = ModeFunction("reverse", _reverse_type)
TANGENT: Final = ModeFunction("tangent", _tangent_type)
REVERSE_MODE: Final = Mode("reverse", (AUGMENTED, REVERSE))
FORWARD_MODE: Final = Mode("forward", (TANGENT,))


@cache
def forward_mode(width: int) -> Mode:
    """Forward mode in so many directions at once."""
    if width == 1:
        return FORWARD_MODE
    return Mode(f"forward {width}", _functions(width), width)


@cache
def taylor_mode(order: int) -> Mode:
    """Taylor series up to an order, which is at least 1."""
    return Mode(f"Taylor {order}", _functions(order), order, Algebra.TAYLOR)


def _functions(width: int) -> tuple[ModeFunction, ...]:
    return (ModeFunction(TANGENT.name, partial(_tangent_type, width=width)),)
