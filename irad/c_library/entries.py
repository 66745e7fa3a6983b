"""The function that C calls, as a function of Numba: it reads C's arguments and writes the result to C's memory.

def entry(x, a, result):            x: float64, a: address of { data, shape }
    store(f(x, load(a)), result)    result: address of { data, shape }, whose data is allocated for the caller
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numba
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.types import Type
from numba.extending import intrinsic
from numba.np import arrayobj

from irad.c_library.interface import by_value, check, layout_of, returned, returned_layout
from irad.frontend.generated import function_from

_WORD: Final = ir.IntType(64)
_BYTES: Final = ir.PointerType(ir.IntType(8))


def entry_of(function: Any, parameters: Sequence[Type], what: str) -> tuple[Any, tuple[Type, ...], list[Type]]:
    """The function that C calls.

    Args:
        function: of Numba, or a derivative.
        parameters: types of its arguments.
        what: name of the exported function, for messages.

    Returns:
        It, the types of its parameters, and a list that holds, once it is compiled, the type of what it stores.
    """
    found: list[Type] = []
    scope: dict[str, Any] = {"f": function, "store": _storing(found, what)}
    given = []
    for index, type_ in enumerate(parameters):
        check(type_, f"parameter {index} of {what}")
        given.append(f"x{index}")
        if not by_value(type_):
            scope[f"load{index}"] = _loading(type_)
            given[-1] = f"load{index}(x{index})"
    names = "".join(f"x{index}, " for index in range(len(parameters)))
    source = f"def entry({names}result):\n    store(f({', '.join(given)}), result)\n"
    kinds = tuple(type_ if by_value(type_) else types.voidptr for type_ in parameters)
    entry = function_from("entry", source, "irad.c_library", scope)
    entry.__qualname__ = what  # as messages name it
    return numba.njit(entry), (*kinds, types.voidptr), found


def _loading(type_: Type) -> Any:
    """A function that makes a value from the memory at an address."""

    @intrinsic
    def load(typing_context: Any, pointer: Any) -> Any:
        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return _loaded(context, builder, type_, builder.bitcast(arguments[0], layout_of(type_).as_pointer()))

        return type_(types.voidptr), lower

    return load


def _storing(found: list[Type], what: str) -> Any:
    """A function that writes a value to an address, and notes its type as the caller sees it."""

    @intrinsic
    def store(typing_context: Any, value: Any, pointer: Any) -> Any:
        type_ = types.unliteral(value)
        if type_ is not types.none:
            check(type_, f"the result of {what}")
        found[:] = [returned(type_)]

        def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            if type_ is not types.none:
                place = builder.bitcast(arguments[1], layout_of(returned(type_)).as_pointer())
                blocks: list[Any] = []
                _store(context, builder, type_, arguments[0], place, blocks)
            return context.get_dummy_value()

        return types.none(value, types.voidptr), lower

    return store


def _member(builder: Any, place: Any, *indices: int) -> Any:
    return cgutils.gep_inbounds(builder, place, 0, *indices)


def _loaded(context: Any, builder: Any, type_: Any, place: Any) -> Any:
    """A value of Numba's: arrays are those of the caller, which Numba does not count references to."""
    if isinstance(type_, types.BaseTuple):
        members = [_loaded(context, builder, each, _member(builder, place, i)) for i, each in enumerate(type_.types)]
        return context.make_tuple(builder, type_, members)
    if not isinstance(type_, types.Array):
        model = context.data_model_manager[type_]
        return model.from_data(builder, builder.load(builder.bitcast(place, model.get_data_type().as_pointer())))
    axes = range(type_.ndim)
    array = context.make_array(type_)(context, builder)
    itemsize = _WORD(_size_of(context, type_.dtype))
    shape = [builder.load(_member(builder, place, 1, axis)) for axis in axes]
    if type_.layout == "A":
        strides = [builder.load(_member(builder, place, 2, axis)) for axis in axes]
    else:
        strides, step = [itemsize] * type_.ndim, itemsize
        for axis in reversed(axes) if type_.layout == "C" else axes:
            strides[axis] = step
            step = builder.mul(step, shape[axis])
    data = builder.bitcast(builder.load(_member(builder, place, 0)), array.data.type)
    arrayobj.populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
    return array._getvalue()


def _size_of(context: Any, type_: Type) -> int:
    size: int = context.get_abi_sizeof(context.get_data_type(type_))
    return size


def _store(context: Any, builder: Any, type_: Any, value: Any, place: Any, blocks: list[Any]) -> None:
    """Writes a value.

    Args:
        blocks: memory allocated for it so far, which is freed if memory runs out.
    """
    if isinstance(type_, types.BaseTuple):
        for index, each in enumerate(type_.types):
            part = builder.extract_value(value, index)
            _store(context, builder, each, part, _member(builder, place, index), blocks)
        return
    if not isinstance(type_, types.Array):
        model = context.data_model_manager[type_]
        builder.store(model.as_data(builder, value), builder.bitcast(place, model.get_data_type().as_pointer()))
        return
    array = context.make_array(type_)(context, builder, value)
    shape = cgutils.unpack_tuple(builder, array.shape, type_.ndim)
    data = _allocated(context, builder, array, _size_of(context, type_.dtype), blocks)
    builder.store(data, _member(builder, place, 0))
    for axis, extent in enumerate(shape):
        builder.store(extent, _member(builder, place, 1, axis))
    if returned_layout(type_).layout == type_.layout:
        cgutils.raw_memcpy(builder, data, array.data, array.nitems, _size_of(context, type_.dtype))
        return
    items = builder.bitcast(data, array.data.type)
    position = cgutils.alloca_once_value(builder, _WORD(0))
    with cgutils.loop_nest(builder, shape, _WORD) as indices:
        source = cgutils.get_item_pointer2(
            context, builder, array.data, shape, cgutils.unpack_tuple(builder, array.strides, type_.ndim), "A", indices
        )
        at = builder.load(position)
        builder.store(builder.load(source), builder.gep(items, [at]))
        builder.store(builder.add(at, _WORD(1)), position)


def _allocated(context: Any, builder: Any, array: Any, itemsize: int, blocks: list[Any]) -> Any:
    """Memory for a copy of an array, of at least a byte."""
    allocate = _function(builder, "malloc", _BYTES, [_WORD])
    bytes_ = builder.mul(array.nitems, _WORD(itemsize))
    # For no bytes `malloc` may return null, as it does without memory.
    data = builder.call(allocate, [builder.select(builder.icmp_signed(">", bytes_, _WORD(0)), bytes_, _WORD(1))])
    with cgutils.if_unlikely(builder, cgutils.is_null(builder, data)):
        for block in blocks:
            builder.call(_function(builder, "free", ir.VoidType(), [_BYTES]), [block])
        context.call_conv.return_user_exc(builder, MemoryError, ("there is no memory for the result",))
    blocks.append(data)
    return data


def _function(builder: Any, name: str, result: Any, parameters: Sequence[Any]) -> Any:
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, list(parameters)), name)
