"""Memory that LLVM parameters of functions compiled by Numba point to, by their Numba types.

Input   Numba's descriptor of a function, the names of its LLVM parameters.
Output  a `Signature`: a `MemoryType` for each pointer that the type describes, by the name of the LLVM parameter.
Method  a value is a struct of its parts; what the pointers among the parts of an array, a list, a set, a string, a
        typed container or an instance point to is declared here; tuples, optional values and values of other types that
        are structs to Numba, those of extensions too, are taken apart.
Limit   what points to instances of its own kind (nodes of lists and trees), and whatever else holds pointers, may point
        anywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from numba.core import types
from numba.core.datamodel.models import StructModel
from numba.core.types import Type

from irad.driver import MemoryType, Signature
from irad.frontend.numba.target import target_context
from irad.frontend.values import abi, layouts, tree
from irad.records import dataclass
from irad.rules.typed_dict import memory_of_dict
from irad.rules.typed_list import memory_of_list

_INTEGERS: Final = MemoryType(1, ((0, "i8"),))
_EXCEPTION: Final = MemoryType(8, ((0, "ptr"),), behind=((0, _INTEGERS),))  # the slot for the address of a constant


@dataclass(frozen=True, slots=True)
class _Part:
    """A pointer in a value: its number among the LLVM parameters, its byte offset, the memory it points to."""

    number: int
    offset: int
    holds: MemoryType | None


def signature_of(descriptor: Any, names: list[str]) -> Signature:
    """Memory that the parameters of a function point to.

    Args:
        descriptor: descriptor of the function.
        names: names of all its LLVM parameters.
    """
    memory = {names[0]: _memory_of_return(descriptor.restype), names[1]: _EXCEPTION}
    first = abi.FIRST_ARGUMENT_INDEX
    for numba_type in descriptor.argtypes:
        for part in _parts(numba_type):
            if part.holds is not None:
                memory[names[first + part.number]] = part.holds
        first += layouts.width_of(numba_type)
    assert first == len(names), descriptor.mangled_name
    return Signature(descriptor.mangled_name, tuple(memory.items()))


def _memory_of_return(return_type: Type) -> MemoryType:
    """The memory that the pointer for the return value points to."""
    plain = abi.memory_of_return(return_type)
    value_type = return_type.type if isinstance(return_type, types.Optional) else return_type
    parts = {part.offset: part.holds for part in _parts(value_type)}
    return MemoryType(plain.stride, plain.fields, tuple((o, parts.get(o)) for o, text in plain.fields if text == "ptr"))


def _memory_of_items(item_type: Type) -> MemoryType | None:
    """Values one after the other, as containers hold them."""
    plain = layouts.memory_of_element(item_type)
    if plain is None or not any(text == "ptr" for _, text in plain.fields):
        return plain
    parts = {part.offset: part.holds for part in _parts(item_type)}
    behind = dict.fromkeys(parts.get(offset) for offset, text in plain.fields if text == "ptr")
    return MemoryType(plain.stride, plain.fields, tuple((None, holds) for holds in behind))


def _parts(numba_type: Type) -> Iterator[_Part]:
    """The pointers in a value; those of which nothing is known may be left out."""
    match numba_type:
        case types.BaseTuple():
            yield from _parts_of_struct(numba_type, numba_type.types)
        case types.Optional():
            yield from _parts_of_struct(numba_type, (numba_type.type,))
        case types.Record():
            yield _Part(0, 0, layouts.memory_of_element(numba_type))
        case types.NoneType():
            yield _Part(0, 0, abi.BOOKKEEPING)
        case _ if pointers := _pointers(numba_type):
            llvm_type = layouts.value_type(numba_type)
            for index, holds in pointers:
                yield _Part(index, layouts.offset_of_element(llvm_type, index), holds)
        case _:
            model = target_context().data_model_manager[numba_type]
            if isinstance(model, StructModel):
                yield from _parts_of_struct(numba_type, (member.fe_type for member in model.inner_models()))


def _parts_of_struct(numba_type: Type, members: Iterable[Any]) -> Iterator[_Part]:
    llvm_type = layouts.value_type(numba_type)
    number = 0
    for index, member in enumerate(members):
        start = layouts.offset_of_element(llvm_type, index)
        for part in _parts(member):
            yield _Part(number + part.number, start + part.offset, part.holds)
        number += layouts.width_of(member)


def _pointers(numba_type: Type) -> tuple[tuple[int, MemoryType | None], ...]:
    """Number and target of each pointer among the parts of a value that is not a tuple."""
    match numba_type:
        case types.Array():
            elements = layouts.memory_of_element(numba_type.dtype) if numba_type.aligned else None
            return (tree.MEMINFO, abi.BOOKKEEPING), (tree.PARENT, abi.BOOKKEEPING), (tree.DATA, elements)
        case types.List():
            return (0, abi.header_of(_payload(types.ListPayload(numba_type), numba_type.dtype))), (1, abi.BOOKKEEPING)
        case types.Set():
            return (0, abi.header_of(_payload(types.SetPayload(numba_type), types.SetEntry(numba_type)))), (
                1,
                abi.BOOKKEEPING,
            )
        case types.UnicodeType():
            return (0, _INTEGERS), (5, abi.BOOKKEEPING), (6, abi.BOOKKEEPING)
        case types.ListType():
            items = _memory_of_items(numba_type.item_type)
            return (0, abi.BOOKKEEPING), (tree.BEHIND_MEMINFO, memory_of_list(items))
        case types.ClassInstanceType():
            return (0, abi.BOOKKEEPING), (tree.BEHIND_MEMINFO, _memory_of_fields(numba_type))
        case types.StructRef():
            return ((0, abi.header_of(_memory_of_fields(numba_type))),)
        case types.DictType():
            keys, values = _memory_of_items(numba_type.key_type), _memory_of_items(numba_type.value_type)
            return (0, abi.BOOKKEEPING), (tree.BEHIND_MEMINFO, memory_of_dict(keys, values))
        case _:
            return ()


def _memory_of_fields(instance_type: Any) -> MemoryType | None:
    """The fields of an instance; pointers to further instances of its own kind may point anywhere."""
    return _memory_with_places(instance_type.get_data_type())


def _payload(payload_type: object, item_type: Type) -> MemoryType | None:
    """The memory that the header of a list or set points to: integers, then the items."""
    items = _memory_with_places(item_type)
    if items is None:
        return None
    prefix = layouts.size_of_element(payload_type) - items.stride
    return MemoryType(items.stride, items.fields, items.behind, integer_prefix=prefix)


def _memory_with_places(numba_type: Any) -> MemoryType | None:
    """A value in memory, with the places of the pointers in it."""
    plain = layouts.memory_of_element(numba_type)
    if plain is None or not any(text == "ptr" for _, text in plain.fields):
        return plain
    parts = {part.offset: part.holds for part in _parts(numba_type)}
    behind = tuple((offset, parts.get(offset)) for offset, text in plain.fields if text == "ptr")
    return MemoryType(plain.stride, plain.fields, behind)
