"""What builds the operations that stand in the place of calls (`operations`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Call
from irad.ir.types import Type
from irad.ir.values import Value

Replacement: TypeAlias = Callable[[Builder, Call], Value]
"""Builds what stands in the place of a call, in front of it, and gives the result."""

_OWN: Final = ("convergent", "nounwind")
"""Attributes of what the dialect names itself: a call must not move to where other threads do not come."""


def own_call(b: Builder, symbol: str, result: Type, arguments: list[Value]) -> Value:
    """A call of an operation that the dialect names itself."""
    callee = b.module.declare(symbol, types.function_type(result, [each.type for each in arguments]), _OWN)
    return b.call(callee, arguments)


def operation(symbol: str) -> Replacement:
    """The same call of an operation that the dialect names itself."""
    return lambda b, call: own_call(b, symbol, call.type, call.arguments)


def intrinsic(symbol: str) -> Replacement:
    """The same call of an intrinsic of LLVM."""
    return lambda b, call: b.intrinsic(symbol, call.type, call.arguments)
