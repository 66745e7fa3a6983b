"""Numba's runtime (NRT): allocations get a shadow from the tape, with a header of the same layout.

The header of an NRT allocation (`struct MemInfo` in numba/core/runtime/nrt.cpp) holds the data pointer at byte 24 and
the size at byte 32; array code reads the data pointer from there, and shadow code reads the shadow's from the shadow's
header. Shadows are released with the tape, so reference counts concern the primal only. In forward mode there is no
tape: the shadow of an array is freed with it, by the destructor that the header has room for at byte 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from irad.ir import types
from irad.ir.instructions import CallSite
from irad.ir.types import PTR
from irad.ir.values import ConstantNull, Value, const_int
from irad.rules.memory import fill, move, move_back
from irad.ruleset.interface import (
    CallRule,
    CopyContext,
    Effects,
    Inactive,
    Origin,
    Rule,
    TangentContext,
    carried,
    shadow_rule,
)

_HEADER: Final = 64  # bytes; keeps the data as aligned as the primal's
_DESTRUCTOR, _DESTRUCTOR_ARGUMENT, _DATA, _SIZE = 8, 16, 24, 32  # offsets in the header


def _allocate(context: CopyContext, call: CallSite) -> None:
    """Shadow of a managed allocation of as many bytes as the first argument says.

    Where the derivative is differentiated itself, the data lie apart from the header: the next derivative can tell what
    an allocation holds only if all of it is numbers or none is.
    """
    if not context.is_active(call):
        return
    size = _size(context, call)
    if context.before.module.opaque_guards:
        header = _cleared(context, const_int(types.I64, _HEADER))
        data = _cleared(context, size)
    else:
        header = _cleared(context, _with_header(context, size))
        data = context.before.byte_offset(header, _HEADER)
    _fill_header(context, header, data, size)


def _allocate_owned(context: TangentContext, call: CallSite) -> None:
    """A shadow for an allocation without a destructor: it is freed with the allocation.

    Not where the derivative is differentiated itself, or two derivatives would attach theirs to the same memory.
    """
    if context.before.module.opaque_guards:
        _allocate(context, call)
        return
    if not context.is_active(call):
        return
    size = _size(context, call)
    header, free = context.allocate_attached(_with_header(context, size))
    _fill_header(context, header, context.before.byte_offset(header, _HEADER), size)
    if free is None:
        return
    build = context.after
    made = context.value(call)
    failed = build.icmp("eq", made, ConstantNull(PTR))
    owner = build.select(failed, header, made)  # where nothing was allocated, what is stored there does not matter
    build.store(free, build.byte_offset(owner, _DESTRUCTOR), align=8)
    build.store(header, build.byte_offset(owner, _DESTRUCTOR_ARGUMENT), align=8)


def _size(context: CopyContext, call: CallSite) -> Value:
    return context.before.zext(context.value(call.arguments[0]), types.I64)


def _with_header(context: CopyContext, size: Value) -> Value:
    return context.before.add(size, const_int(types.I64, _HEADER))


def _cleared(context: CopyContext, size: Value) -> Value:
    memory = context.allocate(size)
    fill(context.before, memory, size)
    return memory


def _fill_header(context: CopyContext, header: Value, data: Value, size: Value) -> None:
    build = context.before
    build.store(data, build.byte_offset(header, _DATA), align=8)
    build.store(size, build.byte_offset(header, _SIZE), align=8)
    context.set_shadow(header)


def _reallocate(context: CopyContext, call: CallSite) -> Sequence[Value]:
    """The shadow moves too, with what was there. Returns old and new shadow and the bytes in both."""
    header, size = call.arguments
    if not context.is_active(header):
        return ()
    build = context.before
    new_size = build.zext(context.value(size), types.I64)
    new = context.allocate(new_size)
    build = context.before
    shadow = context.shadow(header)
    old = build.load(PTR, build.byte_offset(shadow, _DATA), align=8)
    old_size = build.load(types.I64, build.byte_offset(shadow, _SIZE), align=8)
    common = build.select(build.icmp("ult", old_size, new_size), old_size, new_size)
    fill(build, new, new_size)
    move(build, new, old, common)
    _set_data(context, header, new, new_size)
    return old, new, common


def _replace(context: CopyContext, call: CallSite) -> None:
    """The data of an allocation is replaced by fresh memory; the caller copies from the old memory and frees it."""
    header, size = call.arguments
    if context.is_active(header):
        new_size = context.before.zext(context.value(size), types.I64)
        new = context.allocate(new_size)
        fill(context.before, new, new_size)
        _set_data(context, header, new, new_size)


def _set_data(context: CopyContext, header: Value, new: Value, size: Value) -> None:
    """The header of a shadow points to new data, whose address is the call's result."""
    build, shadow = context.before, context.shadow(header)
    build.store(new, build.byte_offset(shadow, _DATA), align=8)
    build.store(size, build.byte_offset(shadow, _SIZE), align=8)
    context.set_shadow(new)


_PLAIN: Final = (
    *("NRT_MemInfo_alloc", "NRT_MemInfo_alloc_safe"),
    *("NRT_MemInfo_alloc_aligned", "NRT_MemInfo_alloc_safe_aligned"),
)
"""Their destructor does nothing, or makes freed memory conspicuous."""
_WITH_DESTRUCTOR: Final = ("NRT_MemInfo_alloc_dtor", "NRT_MemInfo_alloc_dtor_safe")
_MANAGED: Final = Effects(result=Origin.FRESH, header=_DATA)
# A list or set begins with its size, its capacity and a flag (`ListPayload` in numba/cpython/listobj.py): 24 bytes.
_CONTAINER: Final = Effects(result=Origin.FRESH, header=_DATA, integer_prefix=24)
_MOVED: Final = Effects(result=Origin.ARGUMENT, result_argument=0, header=_DATA, frees=frozenset({0}))
_NO_MEMORY: Final = Effects()

RULES: Final[tuple[Rule, ...]] = (
    shadow_rule(_PLAIN, _MANAGED, _allocate, _allocate_owned),
    shadow_rule(_WITH_DESTRUCTOR, _MANAGED, _allocate),  # its destructor is taken: its shadow stays in the arena
    shadow_rule(("NRT_MemInfo_new_varsize", "NRT_MemInfo_new_varsize_dtor"), _CONTAINER, _allocate),
    CallRule(
        ("NRT_MemInfo_varsize_realloc",), _MOVED, move_back, _reallocate, tangent=carried(_reallocate), moves=True
    ),
    shadow_rule(("NRT_MemInfo_varsize_alloc",), _MOVED, _replace),
    Inactive(("NRT_incref",), "counts a reference", _NO_MEMORY),
    Inactive(
        ("NRT_decref", "NRT_Free", "NRT_MemInfo_call_dtor", "NRT_MemInfo_varsize_free"),
        "gives memory back",
        Effects(frees=frozenset({0})),
    ),
)
