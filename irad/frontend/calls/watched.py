"""Code around a derivative call that is watched or metered: opens it, passes values to the hooks, ends it.

What debug mode looks at has names: arguments before and after a call, its value, its derivatives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.pythonapi import EnvironmentManager, PythonAPI
from numba.core.types import Type

from irad.frontend.calls.exceptions import RAISED, arena_field, call_python, raise_kept
from irad.frontend.calls.task import Returns, Task
from irad.frontend.calls.watch_hooks import CallInfo, describe
from irad.frontend.derivation import Derivation
from irad.frontend.emit import INTP, VOID_POINTER, Emit
from irad.frontend.numba.messages import location_of
from irad.passes.mode import Algebra
from irad.runtime_layouts import METER

_HOOKS = "irad.frontend.calls.watch_hooks"
_KEPT = "irad.frontend.calls.exceptions"
_I64 = ir.IntType(64)
_SIMPLE = types.Number | types.Boolean | types.NoneType | types.UnicodeType
_HOLDERS = (types.List, types.ListType, types.DictType, types.ClassInstanceType, types.StructRef)

_WORDS: Final = {
    Algebra.TANGENTS: "the tangent",
    Algebra.TAYLOR: "the series",
    Algebra.SETS: "what is known of the dependence",
}

Typed: TypeAlias = tuple[Value, Type]
"""A value of generated code with its type."""


class WatchedCall:
    """One derivative call in generated code, with its options.

    Args:
        derivation: derivation of the called derivative.
        inputs: names, values and types of what is looked at before.
        outputs: names of what is looked at afterwards.
        has_tape: whether it makes a tape, which may be metered.
    """

    def __init__(
        self,
        emit: Emit,
        derivation: Derivation,
        inputs: Sequence[tuple[str, Value, Type]],
        outputs: Sequence[str],
        *,
        has_tape: bool = True,
    ) -> None:
        self.emit, self.context, self.builder = emit, emit.context, emit.builder
        derivative, options = derivation.compiled.derivative, derivation.task.options
        function = derivation.function
        self.is_watched, self.is_measured = derivative.table is not None, has_tape and options.measure_tape
        self.limit, self.frame_size = options.tape_limit if has_tape else None, derivative.frame_size
        self.places, self.inputs = len(derivative.tape), inputs
        names = tuple(name for name, _, _ in inputs)
        self.number = describe(
            CallInfo(
                function.__qualname__,
                location_of(function),
                names,
                tuple(outputs),
                derivative.table,
                derivative.tape,
                self.limit,
                not derivation.task.shows_zeros,
                derivation.may_run_again,
            )
        )
        self.call: Value = _I64(0)
        self.meter: Value | None = None
        self._before: list[tuple[str, Value]] = []

    # --- the life of a call -------------------------------------------------------------------------------------------

    def enter(self, arena: Value) -> Value:
        """Before the first sweep: keeps the state that an outer call of this thread left in the arena.

        Returns whether an exception was raised, a KeyboardInterrupt for instance.
        """
        builder = self.builder
        raised: Value = cgutils.false_bit
        for field, llvm_type in (("watched_call", _I64), ("activation", VOID_POINTER), ("meter", VOID_POINTER)):
            self._before.append((field, builder.load(arena_field(builder, arena, field, llvm_type))))
        if self.is_watched:
            slot = cgutils.alloca_once(builder, _I64)
            builder.store(_I64(0), slot)
            boxed = [(value, numba_type) for _, value, numba_type in self.inputs]
            raised = self._python("begin", [_I64(self.number)], boxed, result=slot)
            self.call = builder.load(slot)
            builder.store(self.call, arena_field(builder, arena, "watched_call", _I64))
            builder.store(cgutils.get_null_value(VOID_POINTER), arena_field(builder, arena, "activation", VOID_POINTER))
        if self.limit is not None:
            self._open_meter(arena, self.limit)
        return raised

    def _open_meter(self, arena: Value, limit: int) -> None:
        builder, words = self.builder, METER.size // 8 + self.places
        self.meter = cgutils.alloca_once(builder, _I64, size=words)
        pointer = builder.bitcast(self.meter, VOID_POINTER)
        cgutils.memset(builder, pointer, INTP(8 * words), 0)
        for index, number in ((0, limit), (1, self.frame_size), (words - 1, 1)):
            builder.store(_I64(number), builder.gep(self.meter, [_I64(index)]))
        builder.store(pointer, arena_field(builder, arena, "meter", VOID_POINTER))

    @property
    def frame_is_too_large(self) -> bool:
        """True if the caller's frame alone exceeds the limit."""
        return self.limit is not None and self.frame_size > self.limit

    def leave(self, arena: Value) -> None:
        """Before the arena is closed, whatever happened."""
        for field, value in self._before:
            self.builder.store(value, arena_field(self.builder, arena, field, value.type))

    def finish(self, outputs: Sequence[Typed], augmented: Value | None = None) -> Value:
        """After the last sweep: returns whether an exception was raised.

        Args:
            outputs: values and types, as they were named.
            augmented: of a pullback the number of the forward sweep's call; None: no pullback.
        """
        numbers = [_I64(self.number), self.call, augmented if augmented is not None else _I64(0)]
        return self._end("finish", numbers, outputs)

    def finish_augmented(self, outputs: Sequence[Typed]) -> Value:
        """After the forward sweep of `irad.vjp`: returns whether an exception was raised."""
        return self._end("finish_augmented", [_I64(self.number), self.call], outputs)

    def _end(self, name: str, numbers: Sequence[Value], outputs: Sequence[Typed]) -> Value:
        builder = self.builder
        raised = cgutils.alloca_once_value(builder, cgutils.false_bit)
        if self.is_measured:
            builder.store(self._python("note_tape", [_I64(self.number), self._meter_address()], []), raised)
        if self.is_watched:
            with builder.if_then(builder.not_(builder.load(raised))):
                builder.store(self._python(name, numbers, outputs), raised)
        return builder.load(raised)

    @property
    def when_full(self) -> Callable[[], None] | None:
        """Emits the end of a function whose tape exceeds the limit; None where there is no limit."""
        return None if self.meter is None else self.raise_tape_is_full

    def raise_tape_is_full(self) -> None:
        """Ends the function with a TapeLimitError."""
        self._python("tape_is_full", [_I64(self.number), self._meter_address()], [])
        raise_kept(self.emit)

    def _meter_address(self) -> Value:
        assert self.meter is not None
        return self.builder.ptrtoint(self.meter, _I64)

    # --- calls of Python ----------------------------------------------------------------------------------------------

    def _python(
        self, name: str, numbers: Sequence[Value], objects: Sequence[Typed], result: Value | None = None
    ) -> Value:
        """Calls a hook; returns whether it raised.

        Args:
            name: name of the hook.
            numbers: i64, its first arguments.
            objects: values with their types, the others.
            result: where to store the integer that it returns.
        """
        context, builder = self.context, self.builder
        python = context.get_python_api(builder)
        gil = python.gil_ensure()
        environment = context.get_env_manager(builder)
        given = [python.long_from_longlong(number) for number in numbers]
        given += [self._boxed(python, environment, *each) for each in objects]
        returned = call_python(self.emit, python, _HOOKS, name, given)
        failed = cgutils.is_null(builder, returned)
        with cgutils.if_unlikely(builder, failed):
            python.err_clear()
            python.decref(call_python(self.emit, python, _KEPT, "keep_failure", ()))
        number = builder.select(failed, _I64(RAISED), python.long_as_longlong(returned))
        raised = builder.icmp_signed("==", number, _I64(RAISED))
        if result is not None:
            builder.store(number, result)
        for each in (*given, returned):
            python.decref(each)
        python.gil_release(gil)
        return raised

    def _boxed(self, python: PythonAPI, environment: EnvironmentManager, value: Value, numba_type: Type) -> Value:
        """A new Python object; None for a value that cannot hold floats."""
        if not may_hold_nan(numba_type):
            return python.make_none()
        self.context.nrt.incref(self.builder, numba_type, value)
        return python.from_native_value(numba_type, value, environment)


def _is_boxed(numba_type: Type) -> bool:
    """True if values of a type become Python objects without more ado."""
    return isinstance(numba_type, _SIMPLE | types.Array) or may_hold_nan(numba_type)


def may_hold_nan(numba_type: Type) -> bool:
    """True if debug mode looks for NaNs in values of a type."""
    match numba_type:
        case types.Literal():
            return False
        case types.Optional():
            return may_hold_nan(numba_type.type)
        case types.BaseTuple():
            items = numba_type.types
            return all(map(_is_boxed, items)) and any(map(may_hold_nan, items))
        case types.Array():
            return isinstance(numba_type.dtype, types.Float | types.Complex | types.Record)
        case types.Float() | types.Complex() | types.Record():
            return True
        case _:
            return isinstance(numba_type, _HOLDERS)


# --- what is looked at, and its names ---------------------------------------------------------------------------------


def input_names(derivation: Derivation) -> list[str]:
    """The arguments, one for each parameter of the compiled function, which may have more than the user's."""
    return [f"the argument {argument.name}" for argument in derivation.caller_arguments]


def memory_word(task: Task) -> str:
    """Words for the memory that the caller gives, up to the name of an argument."""
    return (
        f"{_WORDS[task.mode.algebra]} of" if task.is_forward else "the memory given for the derivative with respect to"
    )


def output_names(derivation: Derivation, targets: Mapping[int, Typed]) -> list[str]:
    """Names of the values of `debug_values`, in its order."""
    names = [f"the value of {derivation.function.__qualname__}"]
    names += [f"{name} after the call" for name in input_names(derivation)]
    task = derivation.task
    if task.is_forward:
        word = _WORDS[task.mode.algebra]
        names.append(f"{word} of the value of {derivation.function.__qualname__}")
        return names + [f"{word} of {derivation.caller_arguments[p].name}" for p in targets]
    if task.returns is not Returns.VALUE:
        names += [f"the derivative with respect to {derivation.caller_arguments[p].name}" for p in task.returned]
    return names + [f"the derivative with respect to {derivation.caller_arguments[p].name}" for p in targets]


def debug_values(
    emit: Emit,
    derivation: Derivation,
    value: Value,
    arguments: Sequence[Value],
    targets: Mapping[int, Typed],
    result: Typed,
) -> list[Typed]:
    """Values with their types.

    Args:
        derivation: derivation of the called derivative.
        value: value of the primal.
        arguments: arguments of the caller.
        targets: for positions with a destination the caller's value and its type.
        result: of the call, and its type.
    """
    builder = emit.builder
    found: list[Typed] = [(value, derivation.return_type), *zip(arguments, derivation.argument_types, strict=True)]
    task = derivation.task
    if task.returns is not Returns.VALUE:
        gradient = _gradient(builder, task.returns, task.has_aux, *result)
        if task.single or task.is_forward:
            found.append(gradient)
        else:
            found += [(builder.extract_value(gradient[0], i), item) for i, item in enumerate(_items(gradient[1]))]
    return found + list(targets.values())


def _gradient(builder: IRBuilder, returns: Returns, has_aux: bool, result: Value, result_type: Type) -> Typed:
    """The part of a result that holds the derivatives."""
    if returns is Returns.GRADIENT and not has_aux:
        return result, result_type
    index = 1 if returns is Returns.VALUE_AND_GRADIENT else 0
    return builder.extract_value(result, index), _items(result_type)[index]


def _items(kind: Type) -> tuple[Type, ...]:
    assert isinstance(kind, types.BaseTuple)
    return tuple(kind.types)
