"""Layout of memory that Numba's types describe: elements of arrays, values in structs, byte by byte."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from llvmlite import ir
from numba.core import types
from numba.core.datamodel.packer import ArgPacker
from numba.core.types import Type

from irad.frontend.numba.target import target_context
from irad.ruleset.memory_type import MemoryType

INACTIVE_TYPES: Final[set[Type]] = set()  # types that a user declared to carry no derivative

FLOATS = (types.float32, types.float64)
HALF: Final = types.float16  # in arrays of kernels: on the CPU Numba has the type, but no arithmetic
COMPLEX = (types.complex64, types.complex128)


# What Numba's runtime keeps about an allocation (`struct MemInfo` in numba/core/runtime/nrt.cpp).
HEADER_SIZE, HEADER_DATA = 48, 24
ARRAY_DATA: Final = 32  # where an array's struct has the address of its elements


def holds_floats(element: Type) -> bool:
    """True if an array element of this type has parts that carry a derivative."""
    if element in INACTIVE_TYPES:
        return False
    if isinstance(element, types.Record):
        return any(holds_floats(field.type) for field in element.fields.values())
    if isinstance(element, types.NestedArray):
        return holds_floats(element.dtype)
    return element == HALF or element in FLOATS or element in COMPLEX


def tuple_type(like: types.BaseTuple, items: tuple[Type, ...]) -> Type:
    """A tuple type with other items; a named tuple stays the same named tuple."""
    if not isinstance(like, types.BaseNamedTuple):
        return types.BaseTuple.from_types(items)
    if items and all(item == items[0] for item in items):
        return types.NamedUniTuple(items[0], len(items), like.instance_class)
    return types.NamedTuple(items, like.instance_class)


def mapped(numba_type: Type, of: Callable[[Type], Type]) -> Type:
    """The type of a value with what is in its tuples replaced."""
    if not isinstance(numba_type, types.BaseTuple):
        return of(numba_type)
    return tuple_type(numba_type, tuple(mapped(item, of) for item in numba_type.types))


def memory_of_element(element: Type) -> MemoryType | None:
    """The layout of an array's memory: elements one after the other."""
    fields = tuple(_fields_of_element(element, 0))
    if not fields or any(text == "" for _, text in fields):
        return None
    return MemoryType(size_of_element(element), fields)


def size_of_element(element: Any) -> int:
    """Bytes of an array element."""
    if isinstance(element, types.Record):
        return int(element.size)
    if isinstance(element, types.NestedArray):
        return int(element.nitems) * size_of_element(element.dtype)
    if element == HALF:
        return 2
    context = target_context()
    return int(context.get_abi_sizeof(context.get_data_type(element)))


def floats_of_element(element: Type) -> list[tuple[int, Any]]:
    """Offset and LLVM type of each float in an array element."""
    known = {str(llvm_type): llvm_type for llvm_type in (ir.HalfType(), ir.FloatType(), ir.DoubleType())}
    return [(offset, known[text]) for offset, text in _fields_of_element(element, 0) if text in known]


def _fields_of_element(element: Any, start: int) -> Iterator[tuple[int, str]]:
    match element:
        case types.Record():
            for item in element.fields.values():
                yield from _fields_of_element(item.type, start + item.offset)
        case types.NestedArray():
            for i in range(element.nitems):
                yield from _fields_of_element(element.dtype, start + i * size_of_element(element.dtype))
        case _ if element == HALF:
            yield start, "half"
        case _:
            yield from fields_of_llvm(target_context().get_data_type(element), start)


def fields_of_llvm(llvm_type: object, start: int) -> Iterator[tuple[int, str]]:
    """Offset and type text of each scalar of an LLVM type."""
    target = target_context().target_data
    match llvm_type:
        case ir.BaseStructType():
            for i, item in enumerate(llvm_type.elements):
                yield from fields_of_llvm(item, start + llvm_type.get_element_offset(target, i))
        case ir.ArrayType():
            for i in range(llvm_type.count):
                yield from fields_of_llvm(llvm_type.element, start + i * llvm_type.element.get_abi_size(target))
        case ir.PointerType():
            yield start, "ptr"
        case _:
            yield start, str(llvm_type)


def bytes_before_items(list_type: types.List) -> int:
    """Bytes in the payload of a reflected list before its first item: sizes and a flag."""
    context = target_context()
    payload = context.get_abi_sizeof(context.get_data_type(types.ListPayload(list_type)))
    return int(payload) - size_of_element(list_type.dtype)


def value_type(numba_type: Type) -> Type:
    """The LLVM type of a value."""
    return target_context().get_value_type(numba_type)


def parameter_types(numba_types: tuple[Type, ...]) -> tuple[object, ...]:
    """LLVM types of the parameters for values of these types."""
    found: tuple[Any, ...] = ArgPacker(target_context().data_model_manager, numba_types).argument_types
    return found


def width_of(numba_type: Type) -> int:
    """Number of LLVM parameters of a value of this type."""
    return len(parameter_types((numba_type,)))


def is_representable(numba_type: Type) -> bool:
    """True if compiled code can hold values of a type; of float16, for instance, Numba knows only the name."""
    try:
        parameter_types((numba_type,))
    except NotImplementedError:
        return False
    return True


def part_offsets(numba_type: Type) -> list[int]:
    """Offsets of the parts of a tuple, or of the fields of an instance."""
    llvm_type = target_context().get_data_type(numba_type)
    assert isinstance(llvm_type, ir.Aggregate)
    return [offset_of_element(llvm_type, i) for i in range(len(llvm_type))]


def offset_of_element(llvm_type: Any, index: int) -> int:
    """Offset of a part of a struct or array."""
    target = target_context().target_data
    if isinstance(llvm_type, ir.ArrayType):
        return index * int(llvm_type.element.get_abi_size(target))
    return int(llvm_type.get_element_offset(target, index))
