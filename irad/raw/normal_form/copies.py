"""Copies of structures with pointers become copies of their members, so that it is known which bytes are numbers.

Input   a module as its front end made it.
Output  none; the module is rewritten in place.
Method  what a copy of constant size moves is known from the tag that clang puts on assignments of structures (it names
        each member's type, offset and size), or by the structure that the addresses around step through, if it is of
        that size. All members are loaded before the first is stored: the structures may overlap.
Limit   structures without pointers have a layout that the engine knows, and stay what they are; so do unions, arrays of
        more than `_MOST` members and copies whose size is not known.

    call void @llvm.memcpy.p0.p0.i64(ptr %a, ptr %b, i64 16, i1 false), !tbaa.struct !7     !7 = !{i64 0, i64 8, !3, …}

    %w = load double, ptr %b        %n = load i64, ptr (%b + 8)
    store double %w, ptr %a         store i64 %n, ptr (%a + 8)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Call, Load
from irad.ir.metadata import elements
from irad.ir.module import Function, Module
from irad.ir.types import ArrayType, IntType, NamedStructType, StructType, Type, element_types
from irad.ir.values import ConstantInt, Value
from irad.passes.memory.record_layouts import scalars
from irad.raw.checks import INTEGER
from irad.raw.memory import InferredMemory
from irad.raw.normal_form.replacement import instead_of
from irad.raw.tbaa import Tbaa

Members: TypeAlias = Sequence[tuple[int, Type]]

_COPIES: Final = ("llvm.memcpy.", "llvm.memmove.")
_MOST: Final = 64
_UNIONS: Final = ("union.", "class.std::", "struct.std::")


def copy_members(module: Module) -> None:
    """Rewrites the copies of every function."""
    memory, tbaa = InferredMemory(module), Tbaa(module)
    for function in module.defined_functions():
        for inst in list(function.instructions()):
            if isinstance(inst, Call) and _is_copy(inst):
                members = _members(inst, memory, tbaa)
                if members is not None and any(kind is types.PTR for _, kind in members):
                    _copy(inst, members)


def _is_copy(call: Call) -> bool:
    callee = call.callee
    return isinstance(callee, Function) and (callee.name or "").startswith(_COPIES)


def _members(call: Call, memory: InferredMemory, tbaa: Tbaa) -> Members | None:
    """Members that a copy moves; None if that is not known."""
    into, source, size, volatile = call.arguments
    if not isinstance(size, ConstantInt) or not isinstance(volatile, ConstantInt) or volatile.value:
        return None
    tag = call.metadata.get("tbaa.struct")
    if tag is not None:
        return _tagged(tag, tbaa)
    return next((found for end in (source, into) if (found := _declared(end, size.value, memory)) is not None), None)


def _tagged(tag: str, tbaa: Tbaa) -> Members | None:
    """The members that a tag names."""
    found: list[tuple[int, Type]] = []
    each = iter(elements(tbaa.text_of(tag)))
    for start, size, node in zip(map(_number, each), map(_number, each), each, strict=False):
        kind = tbaa.kind_of(node, size)
        if kind is None or len(found) + size // types.size_of(kind) > _MOST:
            return None
        found.extend((offset, kind) for offset in range(start, start + size, types.size_of(kind)))
    return found or None


def _number(element: str) -> int:
    return int(element.removeprefix("i64 "))


def _declared(pointer: Value, size: int, memory: InferredMemory) -> Members | None:
    """The members of the one structure of that size which the memory is used as."""
    structures = [each for each in memory.structures_at(pointer) if types.size_of(each) == size]
    if len(structures) != 1 or _has_union(structures[0]):
        return None
    found = list(scalars(structures[0]))
    return found if len(found) <= _MOST else None


def _has_union(type_: Type) -> bool:
    match type_:
        case NamedStructType(name=name) if name.startswith(_UNIONS):
            return True
        case StructType() | NamedStructType():
            return any(_has_union(each) for each in element_types(type_))
        case ArrayType(count=count, element=element):
            return count == 0 or _has_union(element)
        case _:
            return False


def _copy(call: Call, members: Members) -> None:
    """Loads all members and stores them."""
    into, source = call.arguments[:2]
    build = instead_of(call)
    loaded = list(_loads(build, source, members))
    for (offset, _), value in zip(members, loaded, strict=True):
        build.store(value, build.byte_offset(into, offset), align=1)
    call.erase()


def _loads(build: Builder, source: Value, members: Members) -> Iterator[Load]:
    for offset, kind in members:
        name = INTEGER if isinstance(kind, IntType) and kind.bits >= 32 else None
        loaded = build.load(kind, build.byte_offset(source, offset), align=1, name=name)
        assert isinstance(loaded, Load)
        yield loaded
