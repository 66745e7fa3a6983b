"""Kernels of parallel loops as Numba lowers them: what their arguments are, and what they do when they raise.

Input   the wrapper that Numba builds around the body of a parallel loop.
Output  on the wrapper's library the `LoopArray` of each argument: where its extents and strides are in the vectors
        through which a launch hands them over. The machine code alone does not tell.
Method  methods of Numba's wrapper builder, put in place by `numba.private` while it compiles for irad.

What an iteration raises is raised by its thread, and lost with it. The code for that, which is long and calls through
pointers, goes to a function of its own, `RAISE`, which derivatives can take as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import callconv, cgutils, types
from numba.core.pythonapi import PythonAPI

from irad.driver import LoopArray
from irad.frontend.values import layouts

RAISE = "irad.raise_in_thread"


def build_wrapper(original: Callable[..., Any], wrapper: Any, library: Any, name: str) -> None:
    """Builds the wrapper and notes what it takes."""
    original(wrapper, library, name)
    if wrapper.is_parfors:
        library.kernel = name, _arrays(wrapper)


def build_loop_body(
    original: Callable[..., Any],
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
    status, _ = convention.call_function(builder, function, signature.return_type, signature.args, arguments)
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
        status = convention._get_return_status(builder, *raiser.args)
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
