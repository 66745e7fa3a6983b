"""Elements and views of contiguous arrays: what is known of where they are, and not to be seen from addresses.

Input   Numba's lowering of `a[i, j]`, of `a[i]` and `a[:, 1:]`, of `for row in a`.
Output  the same addresses. What subscripts are multiplied by is marked (`irad.passes.subscripts.dimensions`); elements
        of a row lie side by side, by a constant in place of the array's stride, so that LLVM makes vectors of loops.
Limit   neither views of views nor arrays with strides: their elements may lie anywhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils, types

from irad.passes.subscripts.dimensions import DIMENSION

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
        context: Any,
        builder: ir.IRBuilder,
        array: Any,
        value: Any,
        index_types: Sequence[types.Type],
        *rest: Any,
        **flags: Any,
    ) -> Any:
        """Lowers indexing; it is an element that is asked for if there is an integer for each of several axes."""
        _set_inner_stride(context, builder, array, value)
        before = self._is_element
        self._is_element = 1 < array.ndim == sum(isinstance(each, types.Integer) for each in index_types)
        try:
            return original(context, builder, array, value, index_types, *rest, **flags)
        finally:
            self._is_element = before

    def row(
        self,
        original: Callable[..., Any],
        context: Any,
        builder: ir.IRBuilder,
        result: types.Type,
        array: Any,
        value: Any,
        index: ir.Value,
    ) -> Any:
        """Lowers what an index along the first axis leads to."""
        _set_inner_stride(context, builder, array, value)
        return original(context, builder, result, array, value, index)

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


def _set_inner_stride(context: Any, builder: ir.IRBuilder, array: Any, value: Any) -> None:
    """Puts the size of an element in place of the stride of contiguous elements.

    NumPy may have another one along an axis of one element, where it is never multiplied by anything but 0.
    """
    if array.layout in ("C", "F") and array.ndim > 1:
        strides = cgutils.unpack_tuple(builder, value.strides, array.ndim)
        size = context.get_abi_sizeof(context.get_data_type(array.dtype))
        strides[-1 if array.layout == "C" else 0] = context.get_constant(types.intp, size)
        value.strides = cgutils.pack_array(builder, strides)


def _marked(builder: ir.IRBuilder, size: ir.Value, data: ir.Value) -> ir.Value:
    if isinstance(size, ir.Constant):
        return size
    signature = ir.FunctionType(size.type, [size.type, cgutils.voidptr_t])
    function = cgutils.get_or_insert_function(builder.module, signature, DIMENSION)
    return builder.call(function, [size, builder.bitcast(data, cgutils.voidptr_t)])
