"""A tape as a value of compiled code, and a pullback, which is a tape that is called with a cotangent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from numba.core import cgutils, types, typing
from numba.core.datamodel import models
from numba.extending import intrinsic, lower_builtin, register_model

from irad.frontend.calls.separate.dispatcher import AugmentedDispatcher
from irad.frontend.calls.separate.state import STATE_TYPE
from irad.frontend.numba.target import typing_context

_CALL: Final = "irad.pullback"


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


def tape_type(sweep: AugmentedDispatcher, shadows: tuple[Any, ...], arguments: tuple[Any, ...]) -> TapeType:
    """The type of the tape of a call in compiled code, which holds the arguments and the value.

    Args:
        sweep: what is called.
        shadows: the types of the given ones.
        arguments: their types.

    Raises:
        IradError: there is no such derivative.
    """
    found = typing_context().resolve_function_type(types.Dispatcher(sweep), (*shadows, *arguments), {})
    result = found.return_type
    assert isinstance(result, types.BaseTuple)
    return TapeType(sweep, sweep.number_of(found.args), types.BaseTuple.from_types((*arguments, result.types[1])))


@register_model(TapeType)
class TapeModel(models.StructModel):
    """What a tape holds: the state, which frees the tape, and what it refers to."""

    def __init__(self, manager: Any, kind: Any) -> None:
        members = [("state", STATE_TYPE), ("shadows", kind.specialisation.shadows), ("alive", kind.alive)]
        super().__init__(manager, kind, members)


class PullbackType(types.Callable):
    """The type of a pullback; ``tape`` is that of its tape."""

    def __init__(self, tape: TapeType) -> None:
        self.tape = tape
        super().__init__(name=f"pullback with {tape.name}")

    def get_call_type(self, context: Any, args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        """Numba's hook when the pullback is called."""
        sweeps = self.tape.specialisation
        function = types.Dispatcher(sweeps.pullback)
        found = context.resolve_function_type(function, (STATE_TYPE, sweeps.shadows, *args), kws)
        return None if found is None else typing.signature(found.return_type, *args, recvr=self)

    def get_call_signatures(self) -> tuple[list[Any], bool]:
        """Numba's hook for messages."""
        return [], True

    def get_impl_key(self, sig: Any) -> str:
        """Numba's hook when it lowers a call."""
        return _CALL


@register_model(PullbackType)
class PullbackModel(models.StructModel):
    """A pullback holds its tape."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, [("tape", kind.tape)])


@lower_builtin(_CALL, PullbackType, types.Any)
def _call_pullback(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
    kind, cotangent = signature.args
    tape = cgutils.create_struct_proxy(kind)(context, builder, values[0]).tape
    return reverse_tape(context, builder, kind.tape, tape, (values[1], cotangent), signature.return_type)


def reverse_tape(
    context: Any, builder: Any, kind: TapeType, tape: Any, cotangent: tuple[Any, Any], return_type: Any
) -> Any:
    """Emits the reverse sweep of a tape, on which the caller holds a reference."""
    held = cgutils.create_struct_proxy(kind)(context, builder, tape)
    value, value_type = cotangent
    pullback = kind.specialisation.pullback

    def call(state: Any, shadows: Any, given: Any) -> Any:
        return pullback(state, shadows, given)

    inner = typing.signature(return_type, STATE_TYPE, kind.specialisation.shadows, value_type)
    return context.compile_internal(builder, call, inner, (held.state, held.shadows, value))


def pullback_maker(kind: PullbackType | TapeType) -> Any:
    """An intrinsic that makes a tape, or a pullback with one, of its state, its shadows and what it refers to."""
    tape = kind.tape if isinstance(kind, PullbackType) else kind

    @intrinsic
    def make(context: Any, state: Any, shadows: Any, alive: Any) -> tuple[Any, Callable[..., Any]]:
        def lower(context: Any, builder: Any, signature: Any, values: Sequence[Any]) -> Any:
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
