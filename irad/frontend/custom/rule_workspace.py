"""Rules that own workspace: built for each pair that a derivative calls, with slots that outlive its calls.

Input   a function ``build(signature)`` that a user registered; the signature of the primal.
Output  `Built`: a rule of the common form, whose functions are also given a slot; where the slots come from.

A rule is built when the pair is compiled: once for each derivative, signature and combination of what takes part. Calls
in a derivative that agree in all of this share the rule and its pool; at any time each of them has its own slot.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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

from irad.errors import IradError, RuleError
from irad.frontend import resident
from irad.frontend.custom.catalogue import CustomRule, location_of
from irad.frontend.custom.partial_evaluation import rule_dispatcher
from irad.frontend.custom.workspace_pools import Pool
from irad.frontend.emit import Emit
from irad.frontend.numba.messages import REFUSALS, explanation
from irad.runtime_layouts import SLOT

# Slots in the code of rules: their type, how a call gets one, how its state is read and replaced.
#
# A slot is memory of its own, outside of everything that Numba counts references to. It holds
#
#     header      of the run-time support (``irad/backend/runtime/slots.ll``)
#     state       a value of any Numba type, the references in it owned by the slot
#
# A call has its slot from the augmented primal until its derivative has ended; after that the rule must
# not refer to it.

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


def _place(emit: Emit, slot_type: SlotType, slot: Value, path: tuple[int, ...] = ()) -> Value:
    builder = emit.builder
    pointer = builder.bitcast(slot, _struct(emit.context, slot_type).as_pointer())
    return cgutils.gep_inbounds(builder, pointer, 0, 1, *path)


@lower_getattr_generic(SlotType)
def _get(context: BaseContext, builder: IRBuilder, slot_type: SlotType, slot: Value, name: str) -> Value:
    value = builder.load(_place(Emit(context, builder), slot_type, slot, slot_type.fields[name]))
    return imputils.impl_ret_borrowed(context, builder, slot_type.type_of(name), value)


@lower_setattr_generic(SlotType)
def _set(context: BaseContext, builder: IRBuilder, signature: Signature, values: Sequence[Value], name: str) -> None:
    slot_type, value_type = signature.args
    assert isinstance(slot_type, SlotType)
    slot, value = values
    field_type = slot_type.type_of(name)
    place = _place(Emit(context, builder), slot_type, slot, slot_type.fields[name])
    new = context.cast(builder, value, value_type, field_type)
    context.nrt.incref(builder, field_type, new)
    old = builder.load(place)
    builder.store(new, place)
    context.nrt.decref(builder, field_type, old)  # last: the old value may be the new one


# ------------------------------------------------------------------------------------------------ how a call gets one


Define = Callable[[Sequence[str], Callable[[tuple[Any, ...]], Any]], Callable[..., Any]]


def lending(slot_type: SlotType, pool: int, define: Define) -> dict[str, object]:
    """Functions that the adapter of a rule calls to get a slot.

    Args:
        slot_type: its type.
        pool: the address of the pool.
        define: makes an intrinsic from the names of its parameters and what types and lowers it.

    Returns:
        ``take(arena)``: a spare slot, or one that is ``missing(slot)``; then ``make(arena, state)`` makes one.
    """

    def take(emit: Emit, signature: Signature, values: Sequence[Value]) -> Value:
        builder = emit.builder
        called = resident.declared(builder.module, "irad.slot_take", _POINTER, [_POINTER, _POINTER])
        return builder.call(called, [address(emit), values[0]])

    def missing(emit: Emit, signature: Signature, values: Sequence[Value]) -> Value:
        return cgutils.is_null(emit.builder, values[0])

    def make(emit: Emit, signature: Signature, values: Sequence[Value]) -> Value:
        context, builder = emit.context, emit.builder
        arena, state = values
        slot = _allocate(emit, slot_type, state)
        builder.store(state, _place(emit, slot_type, slot))
        context.nrt.incref(builder, slot_type.state, state)
        add = resident.declared(builder.module, "irad.slot_add", ir.VoidType(), [_POINTER] * 4)
        release = builder.bitcast(_release(context, builder.module, slot_type), _POINTER)
        builder.call(add, [address(emit), arena, slot, release])
        return slot

    def address(emit: Emit) -> Value:
        # of this process: Numba does not put code with it into a cache on disk
        return emit.context.add_dynamic_addr(emit.builder, pool, info="irad.pool")

    return {
        "take": define(["arena"], lambda given: (slot_type(types.voidptr), take)),
        "missing": define(["slot"], lambda given: (types.boolean(slot_type), missing)),
        "make": define(["arena", "state"], lambda given: (slot_type(types.voidptr, slot_type.state), make)),
    }


def _allocate(emit: Emit, slot_type: SlotType, state: Value) -> Value:
    context, builder = emit.context, emit.builder
    size = context.get_abi_sizeof(_struct(context, slot_type))
    slot = context.nrt.allocate_unchecked(builder, cgutils.intp_t(size))
    with cgutils.if_unlikely(builder, cgutils.is_null(builder, slot)):
        context.nrt.decref(builder, slot_type.state, state)  # Numba drops it only after success
        context.call_conv.return_user_exc(builder, MemoryError, NO_MEMORY)
    return slot


def _release(context: BaseContext, module: ir.Module, slot_type: SlotType) -> ir.Function:
    """A function that drops the references of a slot and frees it; one for all calls of a rule in the module."""
    known = module.globals.get(_RELEASE)
    if known is not None:
        return known
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [_POINTER]), _RELEASE)
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    (slot,) = function.args
    context.nrt.decref(builder, slot_type.state, builder.load(_place(Emit(context, builder), slot_type, slot)))
    context.nrt.free(builder, slot)
    builder.ret_void()
    return function


# Code by which the adapter of an augmented primal takes a slot: `lending` and ``first`` are in its scope.
TAKING: Final = """\
    slot = take(arena)
    if missing(slot):
        slot = make(arena, first())
"""


# Rules that a function of the user builds, and their slots.

_PARTS = ("augmented_primal", "reverse", "state")
_FORWARD_PARTS = ("forward", "state")


@dataclass(frozen=True)
class StatefulRule:
    """A rule with workspace, as a function registered by `irad.rules.build_rule` returns it.

    Any object with these attributes will do.

    Attributes:
        augmented_primal: ``(config, slot, *arguments)`` → `AugmentedReturn`.
        reverse: ``(config, slot, cotangent, tape, *arguments)`` → cotangents.
        state: ``()`` → what a new slot holds: a value of any Numba type.
        forward: for forward mode, ``(config, slot, *arguments)`` → ``(value, tangent)``.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.rules import AugmentedReturn, StatefulRule
        >>> from numba import njit
        >>> @njit
        ... def halve(x):
        ...     return 0.5 * x
        >>> @irad.rules.build_rule(halve)
        ... def build(signature):
        ...     def state():
        ...         return np.zeros(8)
        ...
        ...     def augmented_primal(config, slot, x):
        ...         return AugmentedReturn(0.5 * x.value, None, None)
        ...
        ...     def reverse(config, slot, cotangent, tape, x):
        ...         return (0.5 * cotangent,)
        ...
        ...     return StatefulRule(augmented_primal, reverse, state)
        >>> irad.grad(halve)(3.0)
        0.5
    """

    augmented_primal: Callable[..., object]
    reverse: Callable[..., Any]
    state: Callable[[], Any]
    forward: Callable[..., Any] | None = None


@dataclass(frozen=True)
class Slots:
    """Slots for the calls of a pair.

    Attributes:
        pool: it.
        type: type of a slot.
        first: a dispatcher: what a new slot holds.
    """

    pool: Pool
    type: SlotType
    first: Any

    def scope(self, define: Define) -> dict[str, Any]:
        """Names that the adapter of the augmented primal uses; ``define`` makes intrinsics."""
        return {"first": self.first, **lending(self.type, self.pool.address, define)}


def built(rule: CustomRule, signature: Signature, *, is_forward: bool) -> tuple[CustomRule, Slots | None]:
    """The rule for a signature in one of the modes, and its slots if it is a stateful one.

    Raises:
        RuleError: the registered function does not build a rule, or builds one that does not compile.
    """
    build = rule.parts.get("build_rule")
    if build is None or (is_forward and "forward" in rule.parts):
        return rule, None
    made = replace(rule, parts=_functions(rule, build, signature, _FORWARD_PARTS if is_forward else _PARTS))
    first = rule_dispatcher(made.parts.pop("state"))
    return made, Slots(Pool(rule.target), SlotType(_state_type(rule, first)), first)


def _functions(
    rule: CustomRule, build: Callable[..., Any], signature: Signature, parts: tuple[str, ...]
) -> dict[str, Any]:
    try:
        found = build(signature)
    except IradError:
        raise
    except Exception as error:
        raise RuleError(
            f"the build_rule for {rule.name} raised {type(error).__name__} for {signature}: {error}",
            "let it return a rule for every signature that the function is called with",
            "irad calls it when it compiles a derivative that uses the function with these types",
            location_of(build),
        ) from error
    functions = {kind: getattr(found, kind, None) for kind in parts}
    for kind, function in functions.items():
        if not callable(function):
            raise RuleError(
                f"the build_rule for {rule.name} returned a {type(found).__name__} that has no function {kind}",
                f"return irad.rules.StatefulRule(augmented_primal, reverse, state{', forward' * (kind == 'forward')})",
                "a rule with workspace has functions for the sweeps, or for forward mode, and one that makes the "
                "workspace",
                location_of(build),
            )
        if inspect.ismethod(function):
            raise RuleError(
                f"{kind} of the rule that the build_rule for {rule.name} returned is a method of an object",
                "make it a function: @staticmethod",
                "compiled code cannot access the object",
                location_of(function.__func__),
            )
    return functions


def _state_type(rule: CustomRule, first: Any) -> Type:
    try:
        first.compile(())
    except REFUSALS as error:
        refused = explanation(error)
        raise RuleError(
            f"Numba cannot compile the state of the rule for {rule.name}: {refused.problem}",
            "write it so that numba.njit compiles it; it has no arguments",
            refused.reason,
            location_of(first),
        ) from error
    found: Any = types.unliteral(first.overloads[()].signature.return_type)
    return found
