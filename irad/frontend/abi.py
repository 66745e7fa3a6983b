"""How Numba's types travel as LLVM parameters, and which of them can carry a derivative.

Input   Numba types of arguments or of a return value.
Output  `Argument`s with their `Leaf`s: numbers, arrays and what carries no derivative; memory layouts by bytes.
Method  Numba flattens a tuple into its elements, a complex number into its two parts and an array into meminfo,
        parent, number of items, item size, data pointer, shape and strides; a leaf knows the index of its first LLVM
        parameter. In front of the arguments stand the pointer for the return value (index 0) and the one for the
        exception (index 1).
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils
from numba.core.datamodel.packer import ArgPacker

from irad.driver import MemoryType
from irad.frontend.numba_records import OwnedRecord
from irad.frontend.numba_untyped import cpu_target, types

RETURN_INDEX = 0
FIRST_ARGUMENT_INDEX = 2  # index 1 is the slot for an exception

INACTIVE_TYPES: Final[set[Any]] = set()  # types that a user declared to carry no derivative

FLOATS = (types.float32, types.float64)  # of float16 Numba has the type, but no arithmetic
COMPLEX = (types.complex64, types.complex128)

# Of what Numba's runtime keeps beside an allocation (`struct MemInfo` in numba/core/runtime/nrt.cpp).
HEADER_SIZE, HEADER_DATA = 48, 24

# Offsets of an array's LLVM parameters from its first one.
MEMINFO, PARENT, ITEM_COUNT, ITEM_SIZE, DATA, SHAPE = range(6)
LIST_DATA = 1  # of a typed list: behind the meminfo


class LeafKind(enum.Enum):
    """What a leaf means for a derivative."""

    INERT = "inert"
    NUMBER = "number"  # a float or complex number, passed by value
    OPTIONAL = "optional"  # a number or None: a number, and whether there is one
    ARRAY = "array"
    RECORD = "record"  # passed by a pointer
    LIST = "list"  # of numbers, reflected or typed; passed by a pointer to a header

    @property
    def has_cotangent(self) -> bool:
        """Whether the derivative is a number."""
        return self in (LeafKind.NUMBER, LeafKind.OPTIONAL)

    @property
    def has_memory(self) -> bool:
        """Whether it is memory that is the caller's and of fixed size, so that the caller can give a shadow."""
        return self in (LeafKind.ARRAY, LeafKind.RECORD)

    @property
    def has_shadow(self) -> bool:
        """Whether the derivative is a shadow."""
        return self.has_memory or self is LeafKind.LIST


@dataclass(frozen=True)
class Leaf:
    """An argument or a part of one that is no tuple.

    Attributes:
        type: its Numba type.
        kind: what it means for a derivative.
        index: its first LLVM parameter.
        path: the way to it through nested tuples.
    """

    type: Any
    kind: LeafKind
    index: int
    path: tuple[int, ...]

    @property
    def is_array(self) -> bool:
        """Whether the leaf is an array, of whatever element type."""
        return isinstance(self.type, types.Array)

    @property
    def has_memory(self) -> bool:
        """Whether the leaf is an array or record, of whatever type."""
        return isinstance(self.type, types.Array | types.Record)

    @property
    def element(self) -> Any:
        """What its memory holds: the elements' type of an array, the type of a record."""
        return self.type.dtype if self.is_array else self.type

    @property
    def data_index(self) -> int:
        """LLVM parameter of the pointer to its memory."""
        if self.is_array:
            return self.index + DATA
        return self.index + LIST_DATA if isinstance(self.type, types.ListType) else self.index

    @property
    def number(self) -> Any:
        """The type of the number that the leaf is or may be."""
        return self.type.type if self.kind is LeafKind.OPTIONAL else self.type

    @property
    def float_count(self) -> int:
        """How many floats a number is; they are the leaf's first LLVM parameters."""
        return 2 if self.number in COMPLEX else 1

    def parts_at(self, builder: Any, place: Any) -> list[Any]:
        """Pointers to the floats of a number that lies at ``place``, in the order of the LLVM parameters."""
        if self.float_count == 1:
            return [place]
        return [cgutils.gep_inbounds(builder, place, 0, i) for i in range(self.float_count)]


@dataclass(frozen=True)
class Argument:
    """One argument of a call of the user's function; each value collected by ``*args`` is one.

    Attributes:
        position: counted as the caller counts.
        name: of the parameter.
        type: its Numba type.
        leaves: its parts, in the order of the LLVM parameters.
    """

    position: int
    name: str
    type: Any
    leaves: tuple[Leaf, ...]

    def __str__(self) -> str:
        return f"argument {self.position} ({self.name})"


def width_of(numba_type: Any) -> int:
    """Number of LLVM parameters of a value of this type."""
    return len(parameter_types((numba_type,)))


def parameter_types(numba_types: tuple[Any, ...]) -> tuple[Any, ...]:
    """LLVM types of the parameters for values of these types."""
    found: tuple[Any, ...] = ArgPacker(_context().data_model_manager, numba_types).argument_types
    return found


def is_representable(numba_type: Any) -> bool:
    """Whether compiled code can hold values of a type; of float16, for one, Numba knows but the name."""
    try:
        parameter_types((numba_type,))
    except NotImplementedError:
        return False
    return True


def leaves_of(numba_type: Any, index: int = 0, path: tuple[int, ...] = ()) -> Iterator[Leaf]:
    """The leaves of a type, in the order of the LLVM parameters from ``index`` on."""
    if not isinstance(numba_type, types.BaseTuple):
        yield Leaf(numba_type, kind_of(numba_type), index, path)
        return
    for i, item in enumerate(numba_type.types):
        yield from leaves_of(item, index, (*path, i))
        index += width_of(item)


def kind_of(numba_type: Any) -> LeafKind:
    """What a value of this type, which is no tuple, means for a derivative."""
    if numba_type in INACTIVE_TYPES:
        return LeafKind.INERT
    if numba_type in FLOATS or numba_type in COMPLEX:
        return LeafKind.NUMBER
    if isinstance(numba_type, types.Optional) and kind_of(numba_type.type) is LeafKind.NUMBER:
        return LeafKind.OPTIONAL
    if isinstance(numba_type, types.Array) and holds_floats(numba_type.dtype):
        return LeafKind.ARRAY
    if isinstance(numba_type, types.Record) and holds_floats(numba_type):
        return LeafKind.RECORD
    if isinstance(numba_type, types.List | types.ListType) and kind_of(numba_type.dtype) is LeafKind.NUMBER:
        return LeafKind.LIST
    return LeafKind.INERT


def holds_floats(element: Any) -> bool:
    """Whether an array element of this type has parts that carry a derivative."""
    if isinstance(element, types.Record):
        return any(holds_floats(field.type) for field in element.fields.values())
    if isinstance(element, types.NestedArray):
        return holds_floats(element.dtype)
    return element in FLOATS or element in COMPLEX


def arguments_of(function: Callable[..., Any], argument_types: tuple[Any, ...]) -> tuple[Argument, ...]:
    """The arguments of a call with these types, one per parameter, ``*args`` taken apart."""
    found: list[Argument] = []
    index = FIRST_ARGUMENT_INDEX
    for parameter, numba_type in zip(inspect.signature(function).parameters.values(), argument_types, strict=True):
        is_star = parameter.kind is parameter.VAR_POSITIONAL
        for i, item in enumerate(numba_type.types if is_star else (numba_type,)):
            name = f"{parameter.name}[{i}]" if is_star else parameter.name
            found.append(Argument(len(found), name, item, tuple(leaves_of(item, index))))
            index += width_of(item)
    return tuple(found)


def gradient_type(numba_type: Any, *, keep_arrays: bool = True) -> Any:
    """The type of a gradient: the structure of the value, None where there is no derivative.

    Args:
        numba_type: type of the value.
        keep_arrays: without it arrays become None as well.
    """
    if isinstance(numba_type, types.BaseTuple):
        return tuple_type(numba_type, tuple(gradient_type(t, keep_arrays=keep_arrays) for t in numba_type.types))
    match kind_of(numba_type):
        case LeafKind.NUMBER | LeafKind.OPTIONAL:
            return numba_type
        case LeafKind.ARRAY if keep_arrays:
            return types.Array(numba_type.dtype, numba_type.ndim, numba_type.layout)
        case LeafKind.RECORD:
            return OwnedRecord(numba_type)
        case LeafKind.LIST:
            return (
                numba_type if isinstance(numba_type, types.ListType) else types.List(numba_type.dtype, reflected=True)
            )
        case _:
            return types.none


def owned_type(return_type: Any) -> Any:
    """The type of a returned value where a derivative returns it among other things."""
    return OwnedRecord(return_type) if isinstance(return_type, types.Record) else return_type


def tuple_type(like: Any, items: tuple[Any, ...]) -> Any:
    """A tuple type with other items; a named tuple stays the same named tuple."""
    if not isinstance(like, types.BaseNamedTuple):
        return types.BaseTuple.from_types(items)
    if items and all(item == items[0] for item in items):
        return types.NamedUniTuple(items[0], len(items), like.instance_class)
    return types.NamedTuple(items, like.instance_class)


# What code generated by Numba follows no pointer out of: who owns an array, the slot for an exception.
BOOKKEEPING: Final = MemoryType(8, ())

# --- memory layouts ---------------------------------------------------------------------------------------------------


def memory_of_parameter(leaf: Leaf, offset: int) -> MemoryType | None:
    """What the LLVM parameter ``offset`` places after a leaf's first one points to, None if it is not known."""
    if leaf.kind is LeafKind.LIST and isinstance(leaf.type, types.List) and offset == 0:
        return header_of(MemoryType(size_of_element(leaf.type.dtype), (), integer_prefix=bytes_before_items(leaf.type)))
    if not leaf.has_memory:
        return None
    return memory_of_element(leaf.element) if leaf.index + offset == leaf.data_index else BOOKKEEPING


def header_of(data: MemoryType | None) -> MemoryType:
    """What Numba's runtime keeps beside an allocation, of which code reads the address of the data."""
    return MemoryType(HEADER_SIZE, (), behind=((HEADER_DATA, data),), is_header=True)


def bytes_before_items(list_type: Any) -> int:
    """Bytes in the payload of a list before its first item: sizes and a flag."""
    payload = _context().get_abi_sizeof(_context().get_data_type(types.ListPayload(list_type)))
    return int(payload) - size_of_element(list_type.dtype)


def memory_of_element(element: Any) -> MemoryType | None:
    """The layout of an array's memory: elements one behind the other."""
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
    context = _context()
    return int(context.get_abi_sizeof(context.get_data_type(element)))


def floats_of_element(element: Any) -> list[tuple[int, Any]]:
    """Offset and LLVM type of each float in an array element."""
    known = {str(llvm_type): llvm_type for llvm_type in (ir.FloatType(), ir.DoubleType())}
    return [(offset, known[text]) for offset, text in _fields_of_element(element, 0) if text in known]


def _fields_of_element(element: Any, start: int) -> Iterator[tuple[int, str]]:
    match element:
        case types.Record():
            for item in element.fields.values():
                yield from _fields_of_element(item.type, start + item.offset)
        case types.NestedArray():
            for i in range(element.nitems):
                yield from _fields_of_element(element.dtype, start + i * size_of_element(element.dtype))
        case _:
            yield from fields_of_llvm(_context().get_data_type(element), start)


def memory_of_return(return_type: Any) -> MemoryType:
    """The layout of the memory behind the pointer for the return value."""
    llvm_type = return_llvm_type(return_type)
    return MemoryType(int(_context().get_abi_sizeof(llvm_type)), tuple(fields_of_llvm(llvm_type, 0)))


def value_type(numba_type: Any) -> Any:
    """The LLVM type of a value."""
    return _context().get_value_type(numba_type)


def offset_of_element(llvm_type: Any, index: int) -> int:
    """Where a part of a struct or array lies in it."""
    target = _context().target_data
    if isinstance(llvm_type, ir.ArrayType):
        return index * int(llvm_type.element.get_abi_size(target))
    return int(llvm_type.get_element_offset(target, index))


def return_llvm_type(return_type: Any) -> Any:
    """The type of the memory behind the pointer for the return value."""
    return _context().data_model_manager[return_type].get_return_type()


def fields_of_llvm(llvm_type: Any, start: int) -> Iterator[tuple[int, str]]:
    """Offset and type text of each scalar of an LLVM type."""
    target = _context().target_data
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


def _context() -> Any:
    return cpu_target.target_context
