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

from numba.core import cgutils
from numba.core.datamodel.packer import ArgPacker

from irad.driver import MemoryType
from irad.frontend.memory.layouts import (
    COMPLEX,
    FLOATS,
    HEADER_DATA,
    HEADER_SIZE,
    INACTIVE_TYPES,
    bytes_before_items,
    fields_of_llvm,
    holds_floats,
    memory_of_element,
    size_of_element,
    tuple_type,
)
from irad.frontend.memory.object_types import Reference, content_of, gradient_of_content, is_object, memory_behind
from irad.frontend.numba.boxing import OwnedRecord
from irad.frontend.numba.target import target_context
from irad.frontend.numba.untyped import types

RETURN_INDEX = 0
FIRST_ARGUMENT_INDEX = 2  # index 1 is the slot for an exception

# Offsets of an array's LLVM parameters from its first one.
MEMINFO, PARENT, ITEM_COUNT, ITEM_SIZE, DATA, SHAPE = range(6)
DATA_OF_OPTIONAL, FLAG_OF_OPTIONAL = range(2)  # what a value that may be None consists of
BEHIND_MEMINFO = 1  # where the data pointer of an instance or a typed container is


class LeafKind(enum.Enum):
    """What a leaf means for a derivative."""

    INERT = "inert"
    NUMBER = "number"  # a float or complex number, passed by value
    OPTIONAL = "optional"  # a number or None: a number, and whether there is one
    ARRAY = "array"
    RECORD = "record"  # passed by a pointer
    LIST = "list"  # of numbers, reflected or typed; passed by a pointer to a header
    OBJECT = "object"  # another list, a dictionary or an instance: memory that leads to other memory

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
        return self.has_memory or self in (LeafKind.LIST, LeafKind.OBJECT)


@dataclass(frozen=True)
class Leaf:
    """An argument or a part of one that is not a tuple.

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
        behind = types.ListType | types.DictType | types.ClassInstanceType
        return self.index + BEHIND_MEMINFO if isinstance(self.type, behind) else self.index

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
    found: tuple[Any, ...] = ArgPacker(target_context().data_model_manager, numba_types).argument_types
    return found


def is_representable(numba_type: Any) -> bool:
    """Whether compiled code can hold values of a type; of float16, for instance, Numba knows only the name."""
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


def returned_leaves(return_type: Any, path: tuple[int, ...] = ()) -> Iterator[Leaf]:
    """The leaves of a returned value by the ways to them through the memory that it lies in.

    There a part that may be None is a pair: what it may be, and whether it is there.
    """
    match return_type:
        case types.BaseTuple():
            for i, item in enumerate(return_type.types):
                yield from returned_leaves(item, (*path, i))
        case types.Optional():
            yield from returned_leaves(return_type.type, (*path, DATA_OF_OPTIONAL))
        case _:
            yield Leaf(return_type, kind_of(return_type), 0, path)


def kind_of(numba_type: Any) -> LeafKind:
    """What a value of this type, which is not a tuple, means for a derivative."""
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
    return LeafKind.OBJECT if is_object(numba_type) else LeafKind.INERT


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
        case LeafKind.OBJECT:
            return gradient_of_content(content_of(numba_type))
        case _:
            return types.none


def owned_type(return_type: Any) -> Any:
    """The type of a returned value where a derivative returns it among other things."""
    return OwnedRecord(return_type) if isinstance(return_type, types.Record) else return_type


# What code generated by Numba follows no pointer out of: who owns an array, the slot for an exception.
BOOKKEEPING: Final = MemoryType(8, ())

# --- memory layouts ---------------------------------------------------------------------------------------------------


def memory_of_parameter(leaf: Leaf, offset: int, *, active: bool) -> MemoryType | None:
    """What the LLVM parameter ``offset`` places after a leaf's first one points to, None if it is not known."""
    if leaf.kind is LeafKind.OBJECT and active:
        return memory_behind(object_of(leaf)) if leaf.index + offset == leaf.data_index else BOOKKEEPING
    if leaf.kind is LeafKind.LIST and isinstance(leaf.type, types.List) and offset == 0:
        return header_of(MemoryType(size_of_element(leaf.type.dtype), (), integer_prefix=bytes_before_items(leaf.type)))
    if not leaf.has_memory:
        return None
    return memory_of_element(leaf.element) if leaf.index + offset == leaf.data_index else BOOKKEEPING


def object_of(leaf: Leaf) -> Reference:
    """What an object or list among the arguments holds."""
    content = content_of(leaf.type)
    assert isinstance(content, Reference)
    return content


def header_of(data: MemoryType | None) -> MemoryType:
    """What Numba's runtime keeps about an allocation, from which code reads the address of the data."""
    return MemoryType(HEADER_SIZE, (), behind=((HEADER_DATA, data),), is_header=True)


def memory_of_return(return_type: Any) -> MemoryType:
    """The layout of the memory that the pointer for the return value leads to."""
    llvm_type = return_llvm_type(return_type)
    return MemoryType(int(target_context().get_abi_sizeof(llvm_type)), tuple(fields_of_llvm(llvm_type, 0)))


def return_llvm_type(return_type: Any) -> Any:
    """The type of the memory that the pointer for the return value leads to."""
    return target_context().data_model_manager[return_type].get_return_type()
