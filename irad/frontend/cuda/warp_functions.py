"""Functions that exchange values within a warp, as calls of the kernel dialect.

Numba lowers a shuffle of a 64-bit number as two shuffles of its halves, as integers, which nobody could differentiate;
and it names the kind of a shuffle or vote by a number. These intrinsics take the place of Numba's functions
(`REPLACEMENTS`): typed as Numba types the function, lowered to one call, in which a number stays a number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from llvmlite import ir
from numba import cuda
from numba.core import cgutils, types
from numba.cuda.extending import intrinsic

_I32: Final = ir.IntType(32)
_SUFFIXES: Final = {types.int32: "i32", types.int64: "i64", types.float32: "f32", types.float64: "f64"}
_ATTRIBUTES: Final = ("convergent", "nounwind")


def _numba_signature(context: Any, function: object, arguments: tuple[Any, ...]) -> Any:
    """How Numba types a call of its own function."""
    return context.resolve_function_type(context.numba_type(function), arguments, {})


def _call(builder: Any, symbol: str, result: Any, arguments: list[Any]) -> Any:
    callee = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(result, [each.type for each in arguments]), symbol
    )
    for attribute in _ATTRIBUTES:
        callee.attributes.add(attribute)
    return builder.call(callee, arguments)


def _shuffle(function: object, kind: str) -> Any:
    @intrinsic
    def shuffle(typingctx: Any, mask: Any, value: Any, lane: Any) -> tuple[Any, Callable[..., Any]]:
        result = _numba_signature(typingctx, function, (mask, value, lane)).return_type

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            wanted = types.int32, result, types.int32
            given = [
                context.cast(builder, argument, type_, want)
                for argument, type_, want in zip(arguments, signature.args, wanted, strict=True)
            ]
            return _call(builder, f"irad.cuda.shfl.{kind}.{_SUFFIXES[result]}", given[1].type, given)

        return result(mask, value, lane), lower

    return shuffle


def _vote(function: object, kind: str) -> Any:
    @intrinsic
    def vote(typingctx: Any, mask: Any, predicate: Any) -> tuple[Any, Callable[..., Any]]:
        result = _numba_signature(typingctx, function, (mask, predicate)).return_type

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            lanes = context.cast(builder, arguments[0], signature.args[0], types.int32)
            truth = context.cast(builder, arguments[1], signature.args[1], types.boolean)
            found = _call(builder, f"irad.cuda.vote.{kind}", _I32, [lanes, builder.zext(truth, _I32)])
            return context.cast(builder, found, types.int32, result)

        return result(mask, predicate), lower

    return vote


REPLACEMENTS: Final = (
    (cuda.shfl_sync, _shuffle(cuda.shfl_sync, "idx")),
    (cuda.shfl_up_sync, _shuffle(cuda.shfl_up_sync, "up")),
    (cuda.shfl_down_sync, _shuffle(cuda.shfl_down_sync, "down")),
    (cuda.shfl_xor_sync, _shuffle(cuda.shfl_xor_sync, "bfly")),
    (cuda.all_sync, _vote(cuda.all_sync, "all")),
    (cuda.any_sync, _vote(cuda.any_sync, "any")),
    (cuda.eq_sync, _vote(cuda.eq_sync, "uni")),
    (cuda.ballot_sync, _vote(cuda.ballot_sync, "ballot")),
)
"""Numba's functions, each with what is called in its place."""
