"""A pullback as a value of compiled code: it holds the tape, takes a cotangent, and frees the tape at its end."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils, types, typing
from numba.core.datamodel import models
from numba.extending import intrinsic, lower_builtin, register_model

from irad.frontend import resident
from irad.frontend.calls.state import POINTER_SIZE, STATE_TYPE

_CALL: Final = "irad.pullback"
_CLOSE: Final = "irad.close_pullback"
_ADDRESS: Final = ir.IntType(64)


class PullbackType(types.Callable):
    """The type of a pullback.

    Attributes:
        pullback: the compiled ``(state, shadows, cotangent) -> gradients``.
        shadows: the type of the arguments' shadows.
        alive: the type of what the tape refers to: the arguments and the value.
    """

    def __init__(self, pullback: Any, shadows: Any, alive: Any) -> None:
        self.pullback, self.shadows, self.alive = pullback, shadows, alive
        super().__init__(
            name=f"pullback of {pullback.primal.py_func.__qualname__} ({id(pullback)}, {shadows}, {alive})"
        )

    def get_call_type(self, context: Any, args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        """Numba's hook when the pullback is called."""
        function = types.Dispatcher(self.pullback)
        found = context.resolve_function_type(function, (STATE_TYPE, self.shadows, *args), kws)
        return None if found is None else typing.signature(found.return_type, *args, recvr=self)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """Numba's hook for messages."""
        return [], True

    def get_impl_key(self, sig: Any) -> str:
        """Numba's hook when it lowers a call."""
        return _CALL


@register_model(PullbackType)
class PullbackModel(models.StructModel):
    """What a pullback holds. ``owner`` is an allocation whose destructor frees the tape."""

    def __init__(self, manager: Any, kind: Any) -> None:
        members = [
            ("state", STATE_TYPE),
            ("shadows", kind.shadows),
            ("alive", kind.alive),
            ("owner", types.MemInfoPointer(types.voidptr)),
        ]
        super().__init__(manager, kind, members)


@lower_builtin(_CALL, PullbackType, types.Any)
def _call_pullback(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
    kind, cotangent = signature.args
    held = cgutils.create_struct_proxy(kind)(context, builder, values[0])
    pullback = kind.pullback

    def call(state: Any, shadows: Any, given: Any) -> Any:
        return pullback(state, shadows, given)

    inner = typing.signature(signature.return_type, STATE_TYPE, kind.shadows, cotangent)
    return context.compile_internal(builder, call, inner, (held.state, held.shadows, values[1]))


def pullback_maker(kind: PullbackType) -> Any:
    """An intrinsic that makes a pullback of its state, its shadows and what the tape refers to."""

    @intrinsic
    def make(context: Any, state: Any, shadows: Any, alive: Any) -> tuple[Any, Callable[..., Any]]:
        def lower(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
            made = cgutils.create_struct_proxy(kind)(context, builder)
            made.state, made.shadows, made.alive = values
            for value, value_type in zip(values, signature.args, strict=True):
                context.nrt.incref(builder, value_type, value)
            made.owner = _owner(context, builder, values[0])
            return made._getvalue()

        return kind(state, shadows, alive), lower

    return make


def _owner(context: Any, builder: Any, state: Any) -> Any:
    """An allocation that holds the arena's address, and deletes the arena when it is freed."""
    array = context.make_array(STATE_TYPE)(context, builder, state)
    place = builder.gep(array.data, [builder.sub(array.nitems, cgutils.intp_t(POINTER_SIZE))])
    arena = builder.load(builder.bitcast(place, _ADDRESS.as_pointer()))
    destructor = _destructor(context, builder.module)
    owner = context.nrt.meminfo_alloc_dtor(builder, cgutils.intp_t(POINTER_SIZE), destructor)
    data = context.nrt.meminfo_data(builder, owner)
    builder.store(arena, builder.bitcast(data, _ADDRESS.as_pointer()))
    return owner


def _destructor(context: Any, module: Any) -> Any:
    kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, cgutils.intp_t, cgutils.voidptr_t])
    function = cgutils.get_or_insert_function(module, kind, _CLOSE)
    if function.is_declaration:
        function.linkage = "linkonce_odr"
        builder = ir.IRBuilder(function.append_basic_block())
        arena = builder.load(builder.bitcast(function.args[0], _ADDRESS.as_pointer()))
        delete = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t])
        address = resident.address_of("irad.arena_delete")
        pointer = context.add_dynamic_addr(builder, address, info="irad.arena_delete")
        builder.call(builder.bitcast(pointer, delete.as_pointer()), [builder.inttoptr(arena, cgutils.voidptr_t)])
        builder.ret_void()
    return function
