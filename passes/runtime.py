"""The run-time functions that generated code calls, by name and type. `irad.backend.runtime` defines them."""

from __future__ import annotations

from collections.abc import Mapping

from irad.ir import types
from irad.ir.module import Function, Module
from irad.ir.types import PTR, VOID, FunctionType, function_type

ARENA_ALLOC = "irad.arena_alloc"
ARENA_ALLOC_PRODUCT = "irad.arena_alloc_product"
ARENA_DEFER = "irad.arena_defer"
ARENA_FAILED = "irad.arena_failed"
STACK_FULL = "irad.stack_full"
ARENA_REASON = "irad.arena_reason"
POINTER_PAIR = "irad.pointer_pair"

# Byte offsets in what POINTER_PAIR returns: the two functions of a pair and the size of their frame.
PAIR_AUGMENTED = 16
PAIR_REVERSE = 24
PAIR_FRAME_SIZE = 32

_TYPES: Mapping[str, FunctionType] = {
    ARENA_ALLOC: function_type(PTR, [PTR, types.I64]),
    ARENA_ALLOC_PRODUCT: function_type(PTR, [PTR, types.I64, types.I64]),
    ARENA_DEFER: function_type(VOID, [PTR, PTR]),
    ARENA_FAILED: function_type(types.I1, [PTR]),
    STACK_FULL: function_type(types.I1, [PTR]),
    ARENA_REASON: function_type(types.I32, [PTR]),
    POINTER_PAIR: function_type(PTR, [PTR, PTR, PTR]),
}


def runtime_function(module: Module, name: str) -> Function:
    """The declaration of a run-time function."""
    return module.declare(name, _TYPES[name])
