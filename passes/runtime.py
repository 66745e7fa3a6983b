"""The run-time functions that generated code calls, by name and type. ``irad/backend/runtime/*.ll`` define them."""

from __future__ import annotations

from collections.abc import Mapping

from irad.ir import types
from irad.ir.module import Function, Module
from irad.ir.types import PTR, VOID, FunctionType, function_type
from irad.runtime_layouts import PAIR

ARENA_ALLOC = "irad.arena_alloc"
ARENA_ALLOC_PRODUCT = "irad.arena_alloc_product"
ARENA_TOP = "irad.arena_top"
ARENA_REWIND = "irad.arena_rewind"
ARENA_DEFER = "irad.arena_defer"
ARENA_SHADOW = "irad.arena_shadow"
SHADOW_ALLOC = "irad.shadow_alloc"
SHADOW_FREE = "irad.shadow_free"
SHADOW_REALLOC = "irad.shadow_realloc"
ARENA_FAILED = "irad.arena_failed"
STACK_FULL = "irad.stack_full"
ARENA_REASON = "irad.arena_reason"
POINTER_PAIR = "irad.pointer_pair"

# Byte offsets in what POINTER_PAIR returns: the two functions of a pair and the size of their frame.
PAIR_AUGMENTED = PAIR.offset("augmented")
PAIR_REVERSE = PAIR.offset("reverse")
PAIR_FRAME_SIZE = PAIR.offset("frame_size")

LANES_OPEN = "irad.lanes_open"
LANES_FAILED = "irad.lanes_failed"

PARTIALS_OPEN = "irad.partials_open"
PARTIALS_CLOSE = "irad.partials_close"

CHECKS: Mapping[types.Type, str] = {types.DOUBLE: "irad.check_f64", types.FLOAT: "irad.check_f32"}
TIE = "irad.tie_f64"
LANES_WATCH = "irad.lanes_watch"
TAPE_ALLOC = "irad.tape_alloc"
TAPE_ALLOC_PRODUCT = "irad.tape_alloc_product"
# Of a thread of a kernel: words of a warp's tapes alternate.
THREAD_ALLOC = "irad.thread_alloc"
THREAD_ALLOC_PRODUCT = "irad.thread_alloc_product"

_PLACE = [PTR, PTR, types.I64]
_TYPES: Mapping[str, FunctionType] = {
    ARENA_ALLOC: function_type(PTR, [PTR, types.I64]),
    ARENA_ALLOC_PRODUCT: function_type(PTR, [PTR, types.I64, types.I64]),
    ARENA_TOP: function_type(PTR, [PTR]),
    ARENA_REWIND: function_type(VOID, [PTR, PTR]),
    ARENA_DEFER: function_type(VOID, [PTR, PTR]),
    ARENA_SHADOW: function_type(PTR, [PTR, PTR, types.I64]),
    SHADOW_ALLOC: function_type(PTR, [PTR, types.I64]),
    SHADOW_FREE: function_type(VOID, [PTR, types.I64, PTR]),
    SHADOW_REALLOC: function_type(PTR, [PTR, PTR, PTR, types.I64]),
    ARENA_FAILED: function_type(types.I1, [PTR]),
    STACK_FULL: function_type(types.I1, [PTR]),
    ARENA_REASON: function_type(types.I32, [PTR, types.I32, types.I32]),
    POINTER_PAIR: function_type(PTR, [PTR, PTR, PTR]),
    LANES_OPEN: function_type(PTR, [PTR, types.I64]),
    LANES_FAILED: function_type(VOID, [PTR, PTR, types.I64]),
    PARTIALS_OPEN: function_type(types.I1, [PTR, types.I64, PTR, types.I64, types.I64]),
    PARTIALS_CLOSE: function_type(VOID, [PTR, types.I64, PTR, types.I64, types.I64]),
    CHECKS[types.DOUBLE]: function_type(types.DOUBLE, [*_PLACE, types.DOUBLE, *[types.DOUBLE] * 3]),
    CHECKS[types.FLOAT]: function_type(types.FLOAT, [*_PLACE, types.FLOAT, *[types.DOUBLE] * 3]),
    TIE: function_type(VOID, [*_PLACE, types.DOUBLE, types.DOUBLE]),
    LANES_WATCH: function_type(VOID, [PTR, PTR, types.I64]),
    TAPE_ALLOC: function_type(PTR, [PTR, types.I64, types.I64, types.I64]),
    THREAD_ALLOC: function_type(PTR, [PTR, types.I64]),
    THREAD_ALLOC_PRODUCT: function_type(PTR, [PTR, types.I64, types.I64]),
    TAPE_ALLOC_PRODUCT: function_type(PTR, [PTR, types.I64, types.I64, types.I64]),
}


def runtime_function(module: Module, name: str) -> Function:
    """The declaration of a run-time function."""
    return module.declare(name, _TYPES[name])


def access_function(module: Module, action: str, number: types.Type) -> Function:
    """The run-time function that adds to, or takes from, a shadow that lanes share."""
    precision = "f64" if number is types.DOUBLE else "f32"
    window = [PTR, types.I64, types.I64, types.I64, PTR]
    type_ = function_type(VOID, [*window, number]) if action == "add" else function_type(number, window)
    return module.declare(f"irad.{action}_shared_{precision}", type_)


def sum_function(module: Module, number: types.Type) -> Function:
    """The run-time function by which threads of a kernel that are together add to one place."""
    precision = "f64" if number is types.DOUBLE else "f32"
    type_ = function_type(VOID, [PTR, number])
    return module.declare(f"irad.cuda.add_together.{precision}", type_, ("convergent", "nounwind"))


def move_function(module: Module, number: types.Type, *, is_copy: bool) -> Function:
    """The run-time function for the adjoint of a copy, or of a fill, of memory that lanes share."""
    precision = "f64" if number is types.DOUBLE else "f32"
    window = [PTR, types.I64, types.I64, types.I64, PTR]
    given = [*window, *window, types.I64] if is_copy else [*window, types.I64]
    return module.declare(f"irad.{'move' if is_copy else 'drop'}_shared_{precision}", function_type(VOID, given))
