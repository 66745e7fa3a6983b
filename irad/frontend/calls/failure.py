"""Why a sweep was not completed, and how the derivative's call then ends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.callconv import RETCODE_EXC

from irad.frontend.calls.kept import raise_python_exception
from irad.frontend.memory.shadows import NO_MEMORY
from irad.frontend.numba import internals
from irad.runtime_layouts import ARENA, RULE_RAISED, TAPE_FULL

_STATUS = ir.IntType(32)
_RAISED_IN_LANE = ("a rule raised an exception in a parallel loop",)


def field_of(builder: IRBuilder, block: Value, offset: int, llvm_type: Any) -> Value:
    """A pointer to what lies at a byte offset."""
    return builder.bitcast(builder.gep(block, [cgutils.intp_t(offset)]), llvm_type.as_pointer())


def arena_field(builder: IRBuilder, arena: Value, field: str, llvm_type: object) -> Value:
    """A pointer to a field of an arena."""
    return field_of(builder, arena, ARENA.offset(field), llvm_type)


@dataclass(frozen=True)
class Failure:
    """Why a sweep was not completed, read from its arena.

    Attributes:
        reason: the arena's flag; 0 if the sweep came to its end.
        pending: the exception that a rule raised, as Numba holds it; where there is no pair the number of that failure.
        code: the status that goes with it.
    """

    reason: Value
    pending: Value
    code: Value

    @classmethod
    def of(cls, context: BaseContext, builder: IRBuilder, arena: Value) -> Failure:
        """Reads it; what is pending is taken out."""
        exception = internals.exception_argument(context, builder).type.pointee
        place = arena_field(builder, arena, "pending", exception)
        pending = builder.load(place)
        builder.store(cgutils.get_null_value(exception), place)
        flag = arena_field(builder, arena, "failed", _STATUS)
        reason = builder.load(flag)
        was_raised = builder.icmp_signed("==", reason, _STATUS(RULE_RAISED))
        builder.store(builder.select(was_raised, _STATUS(0), reason), flag)  # a pullback may run again
        place = arena_field(builder, arena, "pending_code", _STATUS)
        code = builder.load(place)
        builder.store(cgutils.get_null_value(_STATUS), place)
        return cls(reason, pending, code)

    def raise_it(self, context: BaseContext, builder: IRBuilder, when_full: Callable[[], None] | None = None) -> None:
        """Ends the function: with the exception of the rule, or because heap, stack or the allowed tape are small.

        Args:
            context: Numba's target context.
            builder: of llvmlite.
            when_full: emits the end where the tape exceeds its limit; None where it has none.
        """
        call_conv = context.call_conv
        with builder.if_then(builder.icmp_signed("==", self.reason, _STATUS(RULE_RAISED))):
            with builder.if_then(builder.icmp_signed("==", self.code, RETCODE_EXC)):
                raise_python_exception(context, builder)
            with builder.if_then(cgutils.is_null(builder, self.pending)):
                call_conv.return_user_exc(builder, RuntimeError, _RAISED_IN_LANE)
            builder.store(self.pending, internals.exception_argument(context, builder))
            internals.return_status(context, builder, self.code)
        if when_full is not None:
            with builder.if_then(builder.icmp_signed("==", self.reason, _STATUS(TAPE_FULL))):
                when_full()
        call_conv.return_user_exc(builder, MemoryError, NO_MEMORY)
