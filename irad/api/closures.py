"""Closures as values of compiled code: compiled functions with values, tapes, pullbacks; Python's tapes."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any, Final

from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types, typing
from numba.core.base import BaseContext
from numba.core.datamodel import models
from numba.core.types import Type
from numba.core.typing import Signature
from numba.extending import (
    NativeValue,
    box,
    intrinsic,
    lower_builtin,
    overload,
    register_model,
    typeof_impl,
    unbox,
)

from irad.debug.events import close_call
from irad.debug.seal import Seal
from irad.frontend.calls.separate_dispatcher import AugmentedDispatcher, Specialisation
from irad.frontend.calls.separate_state import STATE_TYPE, call_of, used_tape
from irad.frontend.custom.rules_from_partials import kept_value, zero_tangent
from irad.frontend.emit import Emit
from irad.frontend.generated import emit_generated, function_from
from irad.frontend.memory.shadows import MEMINFO_TYPE
from irad.frontend.numba.target import typing_context
from irad.frontend.offered import offer_type

_CALL_OF_CLOSURE: Final = "irad.closure_call"


class ClosureType(types.Callable):
    """The type of such a value.

    Attributes:
        apply: the compiled ``(kept, *given) -> result``.
        kept: the type of what is kept, a tuple.

    Args:
        what: it is called, in messages.
        apply: as above.
        kept: as above.
    """

    def __init__(self, what: str, apply: Any, kept: Any) -> None:
        self.apply, self.kept = apply, kept
        # Numba compares types by their names; functions of one name make different closures.
        super().__init__(name=f"{what} of {apply.py_func.__name__} ({id(apply)}, {kept})")

    def get_call_type(self, context: Any, args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        """Numba's hook when the value is called."""
        found = context.resolve_function_type(types.Dispatcher(self.apply), (self.kept, *args), kws)
        return None if found is None else typing.signature(found.return_type, *args, recvr=self)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """Numba's hook for messages."""
        return [], True

    def get_impl_key(self, sig: Any) -> str:
        """Numba's hook when it lowers a call."""
        return _CALL_OF_CLOSURE


class ClosureModel(models.StructModel):
    """Data model of a closure: its fields."""

    def __init__(self, manager: Any, kind: ClosureType) -> None:
        super().__init__(manager, kind, [("kept", kind.kept)])


def _call_closure(context: BaseContext, builder: IRBuilder, signature: Any, values: Sequence[Value]) -> Value:
    kind, *given = signature.args
    held = cgutils.create_struct_proxy(kind)(context, builder, values[0])
    names = "".join(f", a{i}" for i in range(len(given)))
    source = f"def call(kept{names}):\n    return apply(kept{names})\n"
    call = function_from("call", source, "irad", {"apply": kind.apply})
    inner = typing.signature(signature.return_type, kind.kept, *given)
    return emit_generated(Emit(context, builder), call, inner, (held.kept, *values[1:]))


offer_type(ClosureType, ClosureModel, call=(_CALL_OF_CLOSURE, _call_closure))


def closure_maker(kind: ClosureType) -> Any:
    """An intrinsic that makes a closure from the values that it keeps."""

    @intrinsic
    def make(context: Any, kept: Any) -> tuple[Any, Callable[..., Any]]:
        def lower(context: BaseContext, builder: IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
            made = cgutils.create_struct_proxy(kind)(context, builder)
            [made.kept] = values
            if context.enable_nrt:  # device code counts no references
                context.nrt.incref(builder, signature.args[0], made.kept)
            return made._getvalue()

        return kind(kept), lower

    return make


def direction(tangent: object, value: object) -> Any:
    """A tangent that may be overwritten: a copy, or zeros for None."""
    raise NotImplementedError("called in compiled code only")


@overload(direction)
def _direction_typed(tangent, value):  # type: ignore[no-untyped-def]
    if tangent == types.none:
        return lambda tangent, value: zero_tangent(value)
    return lambda tangent, value: kept_value(tangent)


def type_of_call(function: Any, *given: Any) -> Any:
    """The return type of a function."""
    context = typing_context()
    kind = types.Dispatcher(function) if hasattr(function, "py_func") else context.resolve_value_type(function)
    return context.resolve_function_type(kind, given, {}).return_type


# Tapes and pullbacks.

_CALL_OF_PULLBACK: Final = "irad.pullback"


class TapeType(types.Type):
    """The type of a tape.

    Attributes:
        sweep: the forward sweep that makes it.
        number: of its specialisation.
        specialisation: that.
        alive: the type of what the tape refers to.
    """

    def __init__(self, sweep: AugmentedDispatcher, number: int, alive: Any) -> None:
        self.sweep, self.number, self.specialisation = sweep, number, sweep.specialisations[number]
        self.alive = alive
        name = sweep.primal.py_func.__qualname__
        super().__init__(name=f"tape of {name} by irad.{sweep.kind} ({id(sweep)}, {number}, {alive})")


def tape_type(
    sweep: AugmentedDispatcher,
    shadows: tuple[Any, ...],
    arguments: tuple[Any, ...],
    named: Mapping[str, Any] | None = None,
) -> TapeType:
    """The type of the tape of a call in compiled code, which holds the arguments and the value.

    Args:
        sweep: the called sweep.
        shadows: the types of the given ones.
        arguments: their types.
        named: the types of further arguments, by name.

    Raises:
        IradError: there is no such derivative.
    """
    named = named or {}
    found = typing_context().resolve_function_type(types.Dispatcher(sweep), (*shadows, *arguments), named)
    result = found.return_type
    assert isinstance(result, types.BaseTuple)
    return TapeType(
        sweep, sweep.number_of(found.args), types.BaseTuple.from_types((*arguments, *named.values(), result.types[1]))
    )


@register_model(TapeType)
class TapeModel(models.StructModel):
    """Data model of a tape: the state, which frees the tape, and the values that it refers to."""

    def __init__(self, manager: Any, kind: TapeType) -> None:
        members = [("state", STATE_TYPE), ("shadows", kind.specialisation.shadows), ("alive", kind.alive)]
        super().__init__(manager, kind, members)


def entries(entry: Callable[[int], str], argnums: int | Iterable[int]) -> str:
    """The expression that a pullback returns: an entry, or a tuple of those of several arguments."""
    return entry(argnums) if isinstance(argnums, int) else f"({''.join(entry(i) + ', ' for i in argnums)})"


class PullbackType(types.Callable):
    """The type of a pullback.

    Attributes:
        tape: the type of its tape.
        argnums: which of the gradients it returns; None: one for each argument.
        has_aux: whether its cotangent is that of the first of the two values of the function.
    """

    def __init__(self, tape: TapeType, argnums: int | tuple[int, ...] | None = None, *, has_aux: bool = False) -> None:
        self.tape, self.argnums, self.has_aux = tape, argnums, has_aux
        super().__init__(name=f"pullback with {tape.name} (argnums={argnums}, has_aux={has_aux})")

    def get_call_type(self, context: Any, args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        """Numba's hook when the pullback is called."""
        if len(args) != 1 or kws:
            return None
        every = gradients_type(self.tape, types.Tuple((args[0], types.none)) if self.has_aux else args[0])
        if self.argnums is None:
            found = every
        elif isinstance(self.argnums, int):
            found = every.types[self.argnums]
        else:
            found = types.BaseTuple.from_types(tuple(every.types[i] for i in self.argnums))
        return typing.signature(found, *args, recvr=self)

    def returned(self) -> str:
        """The expression that it returns, with ``found`` for the gradients of all arguments."""
        return "found" if self.argnums is None else entries(lambda i: f"found[{i}]", self.argnums)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """Numba's hook for messages."""
        return [], True

    def get_impl_key(self, sig: Any) -> str:
        """Numba's hook when it lowers a call."""
        return _CALL_OF_PULLBACK


@register_model(PullbackType)
class PullbackModel(models.StructModel):
    """A pullback holds its tape."""

    def __init__(self, manager: Any, kind: PullbackType) -> None:
        super().__init__(manager, kind, [("tape", kind.tape)])


@lower_builtin(_CALL_OF_PULLBACK, PullbackType, types.Any)
def _call_pullback(context: BaseContext, builder: IRBuilder, signature: Any, values: Sequence[Value]) -> Value:
    kind, given = signature.args
    tape = cgutils.create_struct_proxy(kind)(context, builder, values[0]).tape
    return reverse_tape(
        Emit(context, builder),
        kind.tape,
        tape,
        (values[1], given),
        signature.return_type,
        cotangent="(given, None)" if kind.has_aux else "given",
        returned=kind.returned(),
    )


def gradients_type(tape: TapeType, cotangent: Any) -> Any:
    """The type of the result of a tape's reverse sweep."""
    function, sweeps = types.Dispatcher(tape.specialisation.pullback), tape.specialisation
    return typing_context().resolve_function_type(function, (STATE_TYPE, sweeps.shadows, cotangent), {}).return_type


def reverse_tape(
    emit: Emit,
    kind: TapeType,
    tape: Any,
    given: tuple[Any, Any],
    return_type: Type,
    *,
    cotangent: str = "given",
    returned: str = "found",
) -> Any:
    """Emits the reverse sweep of a tape, on which the caller holds a reference.

    Args:
        emit: where code goes.
        kind: the type of the tape.
        tape: the tape.
        given: the value given for the cotangent, and its type.
        return_type: the type of what is returned.
        cotangent: the expression of the cotangent.
        returned: that of what is returned, with ``found`` for the gradients of all arguments.
    """
    held = cgutils.create_struct_proxy(kind)(emit.context, emit.builder, tape)
    value, value_type = given
    source = (
        f"def call(state, shadows, given):\n    found = pullback(state, shadows, {cotangent})\n    return {returned}\n"
    )
    call = function_from("call", source, "irad.vjp", {"pullback": kind.specialisation.pullback})
    inner = typing.signature(return_type, STATE_TYPE, kind.specialisation.shadows, value_type)
    return emit_generated(emit, call, inner, (held.state, held.shadows, value))


def pullback_maker(kind: PullbackType | TapeType) -> Any:
    """An intrinsic that makes a tape, or a pullback with one, from its state, its shadows and its values."""
    tape = kind.tape if isinstance(kind, PullbackType) else kind

    @intrinsic
    def make(context: Any, state: Any, shadows: Any, alive: Any) -> tuple[Any, Callable[..., Any]]:
        def lower(context: BaseContext, builder: IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
            made = cgutils.create_struct_proxy(tape)(context, builder)
            made.state, made.shadows, made.alive = values
            for value, value_type in zip(values, signature.args, strict=True):
                context.nrt.incref(builder, value_type, value)
            if kind is tape:
                return made._getvalue()
            pullback = cgutils.create_struct_proxy(kind)(context, builder)
            pullback.tape = made._getvalue()
            return pullback._getvalue()

        return kind(state, shadows, alive), lower

    return make


# The tape of `irad.vjp` and of `irad.split` as Python has it.


class Tape:
    """Values that a forward sweep saved for its reverse sweep.

    It frees its memory when it is garbage-collected, and keeps what it refers to alive. Threads take turns.

    Attributes:
        sweep: the forward sweep that made it.
        number: of the specialisation.

    Args:
        sweep: as above.
        number: as above.
        state: what the sweep left.
        shadows: those of the arguments.
        alive: what these refer to.
        seal: of debug mode.
    """

    __slots__ = ("__weakref__", "_alive", "_lock", "_saved", "_seal", "number", "sweep")

    def __init__(
        self, sweep: AugmentedDispatcher, number: int, state: Any, shadows: Any, alive: Any, seal: Seal | None = None
    ) -> None:
        self.sweep, self.number, self._alive = sweep, int(number), alive
        self._saved: tuple[Any, Any] | None = (state, shadows)
        self._seal, self._lock = seal, Lock()
        if seal is not None:
            weakref.finalize(self, close_call, call_of(state)).atexit = False

    @property
    def function(self) -> str:
        """The name of the function that ran."""
        name: str = self.sweep.primal.py_func.__qualname__
        return name

    @property
    def specialisation(self) -> Specialisation:
        """The sweeps that it belongs to."""
        return self.sweep.specialisations[self.number]

    def reverse(self, cotangent: Any) -> Any:
        """Runs the reverse sweep: one entry for each argument.

        Raises:
            UsedTapeError: it has run, and may run only once.
        """
        with self._lock:
            run, saved = self.specialisation.pullback, self.saved()
            if self._seal is None:
                found = run(*saved, cotangent)
            else:
                found = self._seal.call(lambda given: run(*saved, given), cotangent)
            if not self.sweep.sweeps.repeats:
                self._saved = self._alive = self._seal = None
        return found

    def saved(self) -> tuple[Any, Any]:
        """The state and the shadows, as compiled code takes them.

        Raises:
            UsedTapeError: it was reversed, and may be only once.
        """
        if self._saved is None:
            raise used_tape()
        return self._saved

    def __reduce__(self) -> Any:
        raise TypeError("a tape holds memory of this process and cannot be copied or pickled")

    def __repr__(self) -> str:
        return f"<tape of {self.function}>" if self._saved is not None else f"<used tape of {self.function}>"


# Tapes that go from Python to compiled code, and back.


@typeof_impl.register(Tape)
def _type_of_tape(tape: Tape, _: Any) -> TapeType:
    return TapeType(tape.sweep, tape.number, MEMINFO_TYPE)


@unbox(TapeType)
def _unbox_tape(kind: TapeType, tape: Any, c: Any) -> NativeValue:
    """A tape that Python gives: what it refers to is kept alive by the object."""
    if kind.alive != MEMINFO_TYPE:  # the wrapper for Python of a function that only compiled code calls
        c.pyapi.err_set_string("PyExc_TypeError", "a tape from Python has another type")
        return NativeValue(c.context.get_constant_null(kind), is_error=cgutils.true_bit)
    made = cgutils.create_struct_proxy(kind)(c.context, c.builder)
    saved = c.pyapi.object_getattr_string(tape, "saved")
    parts = c.pyapi.call_function_objargs(saved, ())
    failed = cgutils.alloca_once_value(c.builder, cgutils.is_null(c.builder, parts))
    with cgutils.if_likely(c.builder, c.builder.not_(c.builder.load(failed))):
        whole = c.unbox(types.Tuple((STATE_TYPE, kind.specialisation.shadows)), parts)
        made.state = c.builder.extract_value(whole.value, 0)
        made.shadows = c.builder.extract_value(whole.value, 1)
        made.alive = c.pyapi.nrt_meminfo_new_from_pyobject(c.context.get_constant_null(types.voidptr), tape)
        c.builder.store(whole.is_error, failed)
        c.pyapi.decref(parts)
    c.pyapi.decref(saved)
    return NativeValue(made._getvalue(), is_error=c.builder.load(failed))


@box(TapeType)
def _box_tape(kind: TapeType, value: Any, c: Any) -> Any:
    """A tape that is returned to Python."""
    held = cgutils.create_struct_proxy(kind)(c.context, c.builder, value)
    owners = [each for _, each in c.context.nrt.get_meminfos(c.builder, kind.alive, held.alive)]
    objects = [c.pyapi.nrt_meminfo_as_pyobject(each) for each in owners]
    alive = c.pyapi.tuple_pack(objects)
    state = c.box(STATE_TYPE, held.state)
    shadows = c.box(kind.specialisation.shadows, held.shadows)
    maker = c.env_manager.read_const(c.env_manager.add_const(partial(Tape, kind.sweep, kind.number)))
    made = c.pyapi.call_function_objargs(maker, (state, shadows, alive))
    for each in (state, shadows, alive, *objects):
        c.pyapi.decref(each)
    return made
