"""Modes: the functions that a derivative consists of, and their parameters and results.

A mode is data: code that declares, exports or walks the functions of a derivative iterates over those of its mode. Only
the passes that fill a function ask for it by name.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import field, replace
from functools import cache, partial
from typing import Final, TypeAlias

from irad.ir import types
from irad.ir.types import FunctionType
from irad.passes.variant import ParameterKind, PointerVariant, Variant
from irad.records import dataclass

Signed: TypeAlias = Callable[..., FunctionType]
"""The type of a function, from its variant, the parameters whose shadow it is given, and the width if that is not 1."""


@dataclass(frozen=True, slots=True)
class ModeFunction:
    """One of the functions of a mode. Its first two parameters are the frame and the arena.

    Attributes:
        name: suffix of its symbol.
        type_of: its type; in modes of another width a function has the same name and another type.
    """

    name: str
    type_of: Signed = field(compare=False)


class Algebra(enum.Enum):
    """Algebra of forward mode: the contents of lanes beside each number."""

    TANGENTS = "tangents"  # a tangent each, in directions of their own
    SETS = "sets of inputs"  # those that the number depends on, as bits
    TAYLOR = "Taylor coefficients"  # those of a Taylor series from the first on; the number is the one before


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to differentiate.

    Attributes:
        name: its name.
        functions: functions made of a variant, in the order in which they run.
        width: number of derivatives computed in one run of the primal: its lanes.
        algebra: contents of its lanes, in forward mode.
    """

    name: str
    functions: tuple[ModeFunction, ...]
    width: int = 1
    algebra: Algebra = Algebra.TANGENTS

    def __getitem__(self, wanted: ModeFunction) -> ModeFunction:
        """A function by its name, as this mode has it."""
        return self.functions[self.functions.index(wanted)]

    @property
    def is_forward(self) -> bool:
        """True if tangents are carried along, instead of cotangents back."""
        return TANGENT in self.functions


def _augmented_type(variant: Variant | PointerVariant, shadows: tuple[int, ...], width: int = 1) -> FunctionType:
    """`R' (ptr frame, ptr arena, primal parameters…, shadows…)`.

    R' is the primal's result, with the shadow of a pointer result beside it. With several lanes, the shadows of the
    first are followed by those of the second.
    """
    result = variant.function_type.result
    if variant.result_has_shadow:
        result = types.struct_type([result] * (1 + width))
    given = variant.function_type.params
    return types.function_type(result, [types.PTR, types.PTR, *given, *[given[i] for i in shadows] * width])


def _reverse_type(variant: Variant | PointerVariant, shadows: tuple[int, ...], width: int = 1) -> FunctionType:
    """`void (ptr frame, ptr arena, [cotangent of the result], one ptr for each active parameter…)`.

    It stores the cotangents of the active parameters. The shadows are in the frame, as far as they are needed. With
    several lanes, there is a cotangent of the result for each; then come the pointers of the first, of the second, ….
    """
    result = variant.function_type.result
    seeds = [result] if variant.result_active else []
    outs = [types.PTR for kind in variant.kinds if kind is ParameterKind.ACTIVE]
    return types.function_type(types.VOID, [types.PTR, types.PTR, *seeds * width, *outs * width])


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
DEPENDENCE_MODE: Final = Mode("dependence", (TANGENT,), algebra=Algebra.SETS)
SET_SIZE: Final = 32
"""Number of inputs that a set tells apart: as many as a number in single precision has bits."""


@cache
def forward_mode(width: int) -> Mode:
    """Forward mode in ``width`` directions at once."""
    if width == 1:
        return FORWARD_MODE
    return _in_lanes(FORWARD_MODE, width)


@cache
def reverse_mode(width: int) -> Mode:
    """Reverse mode for ``width`` cotangents at once."""
    return REVERSE_MODE if width == 1 else _in_lanes(REVERSE_MODE, width)


@cache
def taylor_mode(order: int) -> Mode:
    """Taylor series up to an order, which is at least 1."""
    return replace(_in_lanes(FORWARD_MODE, order), name=f"Taylor {order}", algebra=Algebra.TAYLOR)


def _in_lanes(mode: Mode, width: int) -> Mode:
    functions = (ModeFunction(each.name, partial(each.type_of, width=width)) for each in mode.functions)
    return Mode(f"{mode.name} {width}", tuple(functions), width)
