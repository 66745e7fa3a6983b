"""Additions to code while Numba lowers it: checks of indices, marks of dimensions, kernels of parallel loops.

Input   Numba's lowering of a statement, of an index, of the kernel of a parallel loop.
Output  *Bounds*: code that raises `irad.BoundsError`, with the line and the array, where there is no such element.
        *Dimensions*: the same addresses. What subscripts are multiplied by is marked
        (`irad.passes.subscripts.dimensions`), and elements of a row lie side by side, by a constant in place of the
        array's stride, so that LLVM makes vectors of loops.
        *Kernels*: on the library the `LoopArray` of each argument, since the machine code alone does not tell where its
        extents and strides are. What an iteration raises is lost with its thread; the long code for that goes to a
        function of its own, `RAISE`, which derivatives can take as a whole.
Method  functions that `private` puts in the place of Numba's while it compiles (`patches`). They count what they do: an
        index that should have got a check or a mark, and has none, is refused. A release of Numba that no longer calls
        them would otherwise drop both in silence.
Limit   dimensions neither of views of views nor of arrays with strides: their elements may lie anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import callconv, cgutils, types
from numba.core.base import BaseContext
from numba.core.callconv import RETCODE_USEREXC
from numba.core.ir import Assign, Expr, SetItem, StaticSetItem
from numba.core.pythonapi import PythonAPI

from irad.driver import LoopArray
from irad.errors import BackendError, BoundsError, SourceLocation
from irad.frontend.numba import internals
from irad.frontend.numba.messages import numba_folder
from irad.frontend.numba.patches import missing
from irad.frontend.values import layouts
from irad.passes.subscripts.dimensions import DIMENSION

if TYPE_CHECKING:
    from irad.frontend.numba.private import Marks, Shadow

Original = Callable[..., Any]
"""Numba's own function."""


def lower_statement(shadow: Shadow, original: Original, lowering: Any, statement: Any) -> Any:
    """Lowers a statement; refuses an index without its marks."""
    marks = shadow.marks
    marks.statements += 1
    marks.stack.append((lowering, statement))
    try:
        indexed = _indexed(lowering, statement)
        if indexed is None:
            return original(lowering, statement)
        checks, places = marks.checks, marks.elements + marks.rows
        lowered = original(lowering, statement)
        array, count = indexed
        if lowering.context.enable_boundscheck and shadow.form.checks and marks.checks < checks + count:
            raise _unmarked_index(lowering, statement, "its check", "with `boundscheck` an index out of bounds raises")
        is_marked = array.ndim > 1 and array.layout in ("C", "F") and count in (0, array.ndim)
        if is_marked and marks.elements + marks.rows == places:
            raise _unmarked_index(lowering, statement, "its marks", "elements of an array are told apart by them")
        return lowered
    finally:
        marks.stack.pop()


def _indexed(lowering: Any, statement: object) -> tuple[Any, int] | None:
    """The type of an array of which a statement reads or writes an element or a view, and how many integers say which.

    None say so for the step of a loop over an array.
    """
    if isinstance(statement, Assign):
        indexing: Any = statement.value
        if not isinstance(indexing, Expr):
            return None
        if indexing.op == "iternext":
            [iterator] = lowering.fndesc.calltypes[indexing].args
            return (iterator.array_type, 0) if isinstance(iterator, types.ArrayIterator) else None
        if indexing.op not in _READS:
            return None
    elif isinstance(statement, SetItem | StaticSetItem):
        indexing = statement
    else:
        return None
    # Numba gives the statements that it makes while it lowers a parallel loop no signature; they index tuples.
    signature = lowering.fndesc.calltypes.get(indexing)
    if signature is None or type(signature.args[0]) is not types.Array:
        return None
    index = signature.args[1]
    each = index.types if isinstance(index, types.BaseTuple) else (index,)
    return (signature.args[0], len(each)) if each and all(isinstance(kind, types.Integer) for kind in each) else None


_READS: Final = frozenset({"getitem", "static_getitem", "typed_getitem"})


def _unmarked_index(lowering: Any, statement: Any, mark: str, why: str) -> BackendError:
    place = SourceLocation(statement.loc.filename, statement.loc.line, lowering.func_ir.func_id.func_qualname)
    return missing(f"lowers an index without {mark}", why, place)


def unmarked(function: Callable[..., Any], mark: str, why: str) -> BackendError:
    """The refusal of a function that was lowered without something that irad puts into all of them."""
    return missing(f"lowers {function.__qualname__} without {mark}", why, SourceLocation.of(function))


# ------------------------------------------------------------------------------------------------ bounds


def check_bounds(
    shadow: Shadow,
    original: Original,
    context: BaseContext,
    builder: IRBuilder,
    index: Value,
    size: Value,
    axis: object = None,
) -> None:
    """Emits the check of an index; that of Numba where the user asked for it, and not of irad."""
    if not shadow.form.checks:
        original(context, builder, index, size, axis)
        return
    shadow.marks.checks += 1
    file, line, function, array = _place(shadow.marks)
    below = builder.icmp_signed("<", index, index.type(0))  # a negative index has been counted from the end
    with cgutils.if_unlikely(builder, builder.or_(below, builder.icmp_signed(">=", index, size))):
        written = builder.select(below, builder.sub(index, size), index)
        known = axis if isinstance(axis, int) else -1
        constants = (file, line, function, array, known)
        kinds = (None,) * len(constants) + (types.intp,) * 2
        context.call_conv.set_dynamic_user_exc(builder, BoundsError, (*constants, written, size), kinds)
        handler = internals.handler_of(builder)
        if handler is None:
            internals.return_status(context, builder, RETCODE_USEREXC)
        else:  # as Numba does for what it raises itself
            builder.branch(handler)


def _place(marks: Marks) -> tuple[str, int, str, str]:
    """File, line and function of an access, and the name of the array; empty for code of Numba's own."""
    if not marks.stack:
        return "", 0, "", ""
    lowering, statement = marks.stack[-1]
    location = statement.loc
    if location.filename.startswith(numba_folder):
        return "", 0, "", ""
    return location.filename, location.line, lowering.func_ir.func_id.func_qualname, _array_name(statement)


def _array_name(statement: object) -> str:
    """Name in the source of the array that is read or written, if it has one."""
    variable: Any = getattr(statement, "target", None)
    expression: Any = getattr(statement, "value", None)
    if getattr(expression, "op", None) in _READS:
        variable = expression.value
    elif not isinstance(statement, SetItem | StaticSetItem):
        return ""
    name = str(getattr(variable, "name", "")).partition(".")[0]
    return name if name.isidentifier() else ""


# ------------------------------------------------------------------------------------------------ dimensions


def index_array(
    shadow: Shadow,
    original: Original,
    context: Any,
    builder: IRBuilder,
    array: Any,
    value: Any,
    index_types: Sequence[types.Type],
    *rest: Any,
    **flags: Any,
) -> Any:
    """Lowers indexing; it is an element that is asked for if there is an integer for each of several axes."""
    _set_inner_stride(context, builder, array, value)
    marks = shadow.marks
    before = marks.is_element
    marks.is_element = 1 < array.ndim == sum(isinstance(each, types.Integer) for each in index_types)
    try:
        return original(context, builder, array, value, index_types, *rest, **flags)
    finally:
        marks.is_element = before


def row_of_array(
    shadow: Shadow,
    original: Original,
    context: BaseContext,
    builder: IRBuilder,
    result: types.Type,
    array: Any,
    value: Value,
    index: Value,
) -> Any:
    """Lowers an index along the first axis: an element, or a view of a row."""
    shadow.marks.rows += 1
    _set_inner_stride(context, builder, array, value)
    return original(context, builder, result, array, value, index)


def address_of_element(
    shadow: Shadow,
    original: Original,
    context: object,
    builder: IRBuilder,
    data: Value,
    shape: Sequence[Value],
    strides: object,
    layout: str,
    *rest: Any,
    **flags: Any,
) -> Any:
    """Lowers an address."""
    if shadow.marks.is_element and layout in ("C", "F"):
        shadow.marks.elements += 1
        shape = [_marked(builder, size, data) for size in shape]
    return original(context, builder, data, shape, strides, layout, *rest, **flags)


def _set_inner_stride(context: Any, builder: IRBuilder, array: Any, value: Any) -> None:
    """Puts the size of an element in place of the stride of contiguous elements.

    NumPy may have another one along an axis of one element, where it is never multiplied by anything but 0.
    """
    if array.layout in ("C", "F") and array.ndim > 1:
        strides = cgutils.unpack_tuple(builder, value.strides, array.ndim)
        size = context.get_abi_sizeof(context.get_data_type(array.dtype))
        strides[-1 if array.layout == "C" else 0] = context.get_constant(types.intp, size)
        value.strides = cgutils.pack_array(builder, strides)


def _marked(builder: IRBuilder, size: Value, data: Value) -> Value:
    if isinstance(size, ir.Constant):
        return size
    signature = ir.FunctionType(size.type, [size.type, cgutils.voidptr_t])
    function = cgutils.get_or_insert_function(builder.module, signature, DIMENSION)
    return builder.call(function, [size, builder.bitcast(data, cgutils.voidptr_t)])


# ------------------------------------------------------------------------------------------------ parallel loops

RAISE = "irad.raise_in_thread"


def build_wrapper(_: Shadow, original: Original, wrapper: Any, library: Any, name: str) -> None:
    """Builds the wrapper around the body of a parallel loop, and notes on its library what it takes."""
    original(wrapper, library, name)
    if wrapper.is_parfors:
        library.kernel = name, _arrays(wrapper)


def build_loop_body(
    _: Shadow,
    original: Original,
    wrapper: Any,
    builder: IRBuilder,
    python: PythonAPI,
    function: object,
    arguments: Sequence[Value],
) -> tuple[Value, Value]:
    """Calls the body of the loop for one chunk; returns whether it raised."""
    if not wrapper.is_parfors:
        raised: tuple[Value, Value] = original(wrapper, builder, python, function, arguments)
        return raised
    convention, signature = wrapper.call_conv, wrapper.signature
    status, _result = convention.call_function(builder, function, signature.return_type, signature.args, arguments)
    with builder.if_then(status.is_error, likely=False):
        builder.call(_raising_function(wrapper, builder.module), [status.code, status.excinfoptr])
    return status.code, status.is_error


def _raising_function(wrapper: Any, module: ir.Module) -> ir.Function:
    """Raises in the running thread the exception that belongs to a status; made once per module."""
    convention = wrapper.call_conv
    type_ = ir.FunctionType(ir.VoidType(), [ir.IntType(32), ir.PointerType(callconv.excinfo_t)])
    raiser = cgutils.get_or_insert_function(module, type_, RAISE)
    if raiser.is_declaration:
        raiser.linkage = "linkonce_odr"
        raiser.attributes.add("noinline")
        builder = ir.IRBuilder(raiser.append_basic_block("entry"))
        status = internals.status_of(convention, builder, *raiser.args)
        python = wrapper.context.get_python_api(builder)
        lock = python.gil_ensure()
        convention.raise_error(builder, python, status)
        python.gil_release(lock)
        builder.ret_void()
    return raiser


def _arrays(wrapper: Any) -> tuple[LoopArray, ...]:
    """The arguments, the schedule first."""
    groups = [*wrapper.sin, *wrapper.sout]
    symbols = list(dict.fromkeys(symbol for group in wrapper.sin for symbol in group))
    found, stride = [], len(groups)
    for numba_type, group in zip(wrapper.signature.args, groups, strict=True):
        element = numba_type.dtype if isinstance(numba_type, types.Array) else numba_type
        element = element.type if isinstance(element, types.Optional) else element  # Numba hands over what is inside
        axes = tuple((1 + symbols.index(symbol), stride + axis) for axis, symbol in enumerate(group))
        found.append(LoopArray(layouts.memory_of_element(element), layouts.size_of_element(element), axes))
        stride += len(group)
    return tuple(found)
