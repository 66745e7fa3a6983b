"""Modes: which functions a derivative consists of, and what they take and return.

A mode is data: code that declares, exports or walks the functions of a derivative iterates over those of its mode. Only
the passes that fill a function ask for it by name.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
        type_of: its type.
    """

    name: str
    type_of: Signed


@dataclass(frozen=True, slots=True)
class Mode:
    """A way to differentiate.

    Attributes:
        name: its name.
        functions: what becomes of a variant, in the order in which they run.
    """

    name: str
    functions: tuple[ModeFunction, ...]


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


def _tangent_type(variant: Variant | PointerVariant, shadows: tuple[int, ...]) -> FunctionType:
    """`R' (ptr frame, ptr arena, primal parameters…, shadows…, tangents of the active parameters…)`.

    R' is the primal's result, with its tangent beside it, or the shadow of a pointer. The frame is not used.
    """
    result, given = variant.function_type.result, variant.function_type.params
    if variant.result_has_shadow or variant.result_active:
        result = types.struct_type([result, result])
    tangents = [type_ for type_, kind in zip(given, variant.kinds, strict=False) if kind is ParameterKind.ACTIVE]
    return types.function_type(result, [types.PTR, types.PTR, *given, *(given[i] for i in shadows), *tangents])


AUGMENTED: Final = ModeFunction("augmented", _augmented_type)
REVERSE: Final = ModeFunction("reverse", _reverse_type)
TANGENT: Final = ModeFunction("tangent", _tangent_type)
REVERSE_MODE: Final = Mode("reverse", (AUGMENTED, REVERSE))
FORWARD_MODE: Final = Mode("forward", (TANGENT,))
