"""Elements of arrays with several axes: what subscripts are multiplied by is marked (`irad.passes.prepare.dimensions`).

Input   Numba's lowering of `a[i, j]`, of a contiguous array.
Output  the same address, of dimensions that are marked.
Limit   neither views nor arrays with strides: their elements may lie anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils, types

from irad.passes.prepare.dimensions import DIMENSION

_DECLARATION: Final = re.compile(rf'^declare [^\n]*@"?{re.escape(DIMENSION)}"?\([^\n]*$', re.MULTILINE)
_PROMISED: Final = (
    f"declare i64 @{DIMENSION}(i64, ptr nocapture readnone) nounwind willreturn speculatable memory(none)"
)


def promise(text: str) -> str:
    """A module's text in which LLVM may move and join the calls that mark dimensions."""
    return _DECLARATION.sub(_PROMISED, text)


class Elements:
    """Methods of Numba's lowering, put in place by `numba.private` while it compiles for irad."""

    def __init__(self) -> None:
        self._is_element = False

    def index(
        self,
        original: Callable[..., Any],
        context: object,
        builder: ir.IRBuilder,
        array: Any,
        value: object,
        index_types: Sequence[types.Type],
        *rest: Any,
        **flags: Any,
    ) -> Any:
        """Lowers indexing; it is an element that is asked for if there is an integer for each of several axes."""
        before = self._is_element
        self._is_element = 1 < array.ndim == sum(isinstance(each, types.Integer) for each in index_types)
        try:
            return original(context, builder, array, value, index_types, *rest, **flags)
        finally:
            self._is_element = before

    def address(
        self,
        original: Callable[..., Any],
        context: object,
        builder: ir.IRBuilder,
        data: ir.Value,
        shape: Sequence[ir.Value],
        strides: object,
        layout: str,
        *rest: Any,
        **flags: Any,
    ) -> Any:
        """Lowers an address."""
        if self._is_element and layout in ("C", "F"):
            shape = [_marked(builder, size, data) for size in shape]
        return original(context, builder, data, shape, strides, layout, *rest, **flags)


def _marked(builder: ir.IRBuilder, size: ir.Value, data: ir.Value) -> ir.Value:
    if isinstance(size, ir.Constant):
        return size
    signature = ir.FunctionType(size.type, [size.type, cgutils.voidptr_t])
    function = cgutils.get_or_insert_function(builder.module, signature, DIMENSION)
    return builder.call(function, [size, builder.bitcast(data, cgutils.voidptr_t)])
