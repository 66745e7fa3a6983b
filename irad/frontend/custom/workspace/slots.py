"""Slots of workspace in the code of rules: their type, how a call gets one, how its state is read and replaced.

A slot is memory of its own, outside of everything that Numba counts references to. It holds

    header      of the run-time support (``irad/backend/runtime/slots.ll``)
    state       a value of any Numba type, the references in it owned by the slot

A call has its slot from the augmented primal until its derivative has ended; after that the rule must not refer to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, imputils, types
from numba.core.base import BaseContext
from numba.core.datamodel.models import OpaqueModel
from numba.core.types import Type
from numba.core.typing import Signature
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    infer_getattr,
    lower_getattr_generic,
    lower_setattr_generic,
    register_model,
)

from irad.frontend import resident
from irad.runtime_layouts import SLOT

NO_MEMORY: Final = ("no memory for the workspace of a rule",)
STATE: Final = "state"
_RELEASE: Final = "irad.slot_release"

_POINTER: Final = cgutils.voidptr_t
_HEADER: Final = tuple({"ptr": _POINTER, "i64": cgutils.intp_t}[kind] for kind in SLOT.types)


class SlotType(types.Type):
    """Numba's type of a slot.

    Attributes:
        state: the type of what it holds.
        fields: where its attributes are in that: the whole, and the fields of a named tuple.
    """

    def __init__(self, state: Type) -> None:
        self.state = state
        self.fields: dict[str, tuple[int, ...]] = {}
        if isinstance(state, types.BaseNamedTuple):
            self.fields.update((name, (index,)) for index, name in enumerate(state.fields))
        self.fields[STATE] = ()
        super().__init__(f"irad.Slot({state})")

    def type_of(self, name: str) -> Type:
        """The type of an attribute."""
        found = self.state
        for index in self.fields[name]:
            assert isinstance(found, types.BaseTuple)
            found = found.types[index]
        return found


register_model(SlotType)(OpaqueModel)


@infer_getattr
class _Attributes(AttributeTemplate):
    key = SlotType

    def generic_resolve(self, slot: SlotType, name: str) -> Type | None:
        return slot.type_of(name) if name in slot.fields else None


def _struct(context: BaseContext, slot_type: SlotType) -> ir.LiteralStructType:
    return ir.LiteralStructType([ir.LiteralStructType(_HEADER), context.get_value_type(slot_type.state)])


def _place(
    context: BaseContext, builder: IRBuilder, slot_type: SlotType, slot: Value, path: tuple[int, ...] = ()
) -> Value:
    pointer = builder.bitcast(slot, _struct(context, slot_type).as_pointer())
    return cgutils.gep_inbounds(builder, pointer, 0, 1, *path)


@lower_getattr_generic(SlotType)
def _get(context: BaseContext, builder: IRBuilder, slot_type: SlotType, slot: Value, name: str) -> Value:
    value = builder.load(_place(context, builder, slot_type, slot, slot_type.fields[name]))
    return imputils.impl_ret_borrowed(context, builder, slot_type.type_of(name), value)


@lower_setattr_generic(SlotType)
def _set(context: BaseContext, builder: IRBuilder, signature: Signature, values: Sequence[Value], name: str) -> None:
    slot_type, value_type = signature.args
    assert isinstance(slot_type, SlotType)
    slot, value = values
    field_type = slot_type.type_of(name)
    place = _place(context, builder, slot_type, slot, slot_type.fields[name])
    new = context.cast(builder, value, value_type, field_type)
    context.nrt.incref(builder, field_type, new)
    old = builder.load(place)
    builder.store(new, place)
    context.nrt.decref(builder, field_type, old)  # last: the old value may be the new one


# ------------------------------------------------------------------------------------------------ how a call gets one


Define = Callable[[Sequence[str], Callable[[tuple[Any, ...]], Any]], Callable[..., Any]]


def lending(slot_type: SlotType, pool: int, define: Define) -> dict[str, object]:
    """What the glue around a rule calls to get a slot.

    Args:
        slot_type: its type.
        pool: the address of the pool.
        define: makes an intrinsic from the names of its parameters and what types and lowers it.

    Returns:
        ``take(arena)``: a spare slot, or one that is ``missing(slot)``; then ``make(arena, state)`` makes one.
    """

    def take(context: BaseContext, builder: IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
        called = resident.declared(builder.module, "irad.slot_take", _POINTER, [_POINTER, _POINTER])
        return builder.call(called, [address(context, builder), values[0]])

    def missing(context: BaseContext, builder: IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
        return cgutils.is_null(builder, values[0])

    def make(context: BaseContext, builder: IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
        arena, state = values
        slot = _allocate(context, builder, slot_type, state)
        builder.store(state, _place(context, builder, slot_type, slot))
        context.nrt.incref(builder, slot_type.state, state)
        add = resident.declared(builder.module, "irad.slot_add", ir.VoidType(), [_POINTER] * 4)
        release = builder.bitcast(_release(context, builder.module, slot_type), _POINTER)
        builder.call(add, [address(context, builder), arena, slot, release])
        return slot

    def address(context: BaseContext, builder: IRBuilder) -> Value:
        # of this process: Numba does not put code with it into a cache on disk
        return context.add_dynamic_addr(builder, pool, info="irad.pool")

    return {
        "take": define(["arena"], lambda given: (slot_type(types.voidptr), take)),
        "missing": define(["slot"], lambda given: (types.boolean(slot_type), missing)),
        "make": define(["arena", "state"], lambda given: (slot_type(types.voidptr, slot_type.state), make)),
    }


def _allocate(context: BaseContext, builder: IRBuilder, slot_type: SlotType, state: Value) -> Value:
    size = context.get_abi_sizeof(_struct(context, slot_type))
    slot = context.nrt.allocate_unchecked(builder, cgutils.intp_t(size))
    with cgutils.if_unlikely(builder, cgutils.is_null(builder, slot)):
        context.nrt.decref(builder, slot_type.state, state)  # Numba drops it only after success
        context.call_conv.return_user_exc(builder, MemoryError, NO_MEMORY)
    return slot


def _release(context: BaseContext, module: ir.Module, slot_type: SlotType) -> ir.Function:
    """A function that drops what a slot refers to and frees it; one for all calls of a rule in the module."""
    known = module.globals.get(_RELEASE)
    if known is not None:
        return known
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_POINTER]), _RELEASE)
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    (slot,) = function.args
    context.nrt.decref(builder, slot_type.state, builder.load(_place(context, builder, slot_type, slot)))
    context.nrt.free(builder, slot)
    builder.ret_void()
    return function


# Where the glue around an augmented primal takes a slot: `lending` and ``first`` are in its scope.
TAKING: Final = """\
    slot = take(arena)
    if missing(slot):
        slot = make(arena, first())
"""
