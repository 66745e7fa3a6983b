"""Indices that are checked: what Numba emits where it checks one, with the line and the index in the exception.

Input   the lowering of a function with bounds checks; an index, and how many elements there are.
Output  code that raises `irad.BoundsError` where there is no such element.
Method  methods of Numba's lowering, put in place by `numba.private` while it compiles for irad. The statement that is
        being lowered says where the access stands and what the array is called.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.callconv import RETCODE_USEREXC

from irad.errors import BoundsError
from irad.frontend.numba.convention import numba_folder


class Statements:
    """The statements that are being lowered in the shadow, the one that others wait for first."""

    def __init__(self) -> None:
        self._stack: list[tuple[Any, Any]] = []

    def lower(self, original: Callable[..., Any], lowering: object, statement: object) -> Any:
        """Lowers a statement."""
        self._stack.append((lowering, statement))
        try:
            return original(lowering, statement)
        finally:
            self._stack.pop()

    def check(self, context: BaseContext, builder: IRBuilder, index: Value, size: Value, axis: object) -> None:
        """Emits the check of an index; a negative one has been counted from the end."""
        file, line, function, array = self._place()
        below = builder.icmp_signed("<", index, index.type(0))
        with cgutils.if_unlikely(builder, builder.or_(below, builder.icmp_signed(">=", index, size))):
            written = builder.select(below, builder.sub(index, size), index)
            known = axis if isinstance(axis, int) else -1
            constants = (file, line, function, array, known)
            kinds = (None,) * len(constants) + (types.intp,) * 2
            context.call_conv.set_dynamic_user_exc(builder, BoundsError, (*constants, written, size), kinds)
            handler = getattr(builder, "_in_try_block", None)
            if handler is None:
                context.call_conv._return_errcode_raw(builder, RETCODE_USEREXC)
            else:  # as Numba does for what it raises itself
                builder.branch(handler["target"])

    def _place(self) -> tuple[str, int, str, str]:
        """File, line and function of the access, and the name of the array; empty for code of Numba's own."""
        if not self._stack:
            return "", 0, "", ""
        lowering, statement = self._stack[-1]
        location = statement.loc
        if location.filename.startswith(numba_folder):
            return "", 0, "", ""
        return location.filename, location.line, lowering.func_ir.func_id.func_qualname, _array_name(statement)


def _array_name(statement: object) -> str:
    """What the array of a read or a write is called in the source, if it has a name."""
    variable: Any = getattr(statement, "target", None)
    expression: Any = getattr(statement, "value", None)
    if getattr(expression, "op", None) in ("getitem", "static_getitem", "typed_getitem"):
        variable = expression.value
    elif type(statement).__name__ not in ("SetItem", "StaticSetItem"):
        return ""
    name = str(getattr(variable, "name", "")).partition(".")[0]
    return name if name.isidentifier() else ""
