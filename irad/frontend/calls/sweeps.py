"""The two sweeps of one derivative call: their arguments, and their end if the primal raises.

All that was allocated is released then, and Numba's own protocol carries the exception on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from llvmlite.ir import Value
from numba.core import cgutils, imputils, types
from numba.core.pythonapi import PythonAPI

from irad.errors import HERE, SignatureError
from irad.frontend import resident
from irad.frontend.calls.exceptions import KEEP_PENDING, Failure, call_python, in_python, raise_kept, raise_status
from irad.frontend.calls.task import Role
from irad.frontend.calls.watched import WatchedCall, debug_values, input_names, memory_word
from irad.frontend.derivation import Derivation
from irad.frontend.emit import INTP, VOID_POINTER, Emit
from irad.frontend.memory.argument_memory import ArgumentMemory
from irad.frontend.memory.arrays import filled_record
from irad.frontend.memory.references import References
from irad.frontend.numba import internals
from irad.frontend.numba.convention import NUMBA
from irad.frontend.values import abi, layouts
from irad.frontend.values.tree import Content
from irad.passes.mode import REVERSE
from irad.records import dataclass

_STATUS = ir.IntType(32)
_THREAD_ARENA = "irad.arena_open", "irad.arena_close"
_OWN_ARENA = "irad.arena_new", "irad.arena_delete"
_NO_VALUE = (
    "the function returns None for these arguments, which has no derivative",
    "ask for derivatives only where it returns a value",
    "if a function returns nothing, there is nothing to differentiate",
    HERE,
)


@dataclass(frozen=True)
class Extras:
    """Values that the caller passes in addition to the arguments.

    Attributes:
        targets: for positions with a destination its value and Numba type.
        seed: the cotangent of the return value and its Numba type, or None.
        held: values with their types whose references the surrounding function drops, unless the call raises.
        places: memory for the returned value and for its shadow, zeroed; None: on the stack.
    """

    targets: Mapping[int, tuple[Any, Any]]
    seed: tuple[Any, Any] | None = None
    held: Sequence[tuple[Any, Any]] = ()
    places: tuple[Any, Any] | None = None


class Cotangents:
    """Places on the stack for the cotangents of all numbers among the differentiated arguments, zeroed.

    Args:
        derivation: derivation of the called derivative.
        flat: all LLVM arguments of the primal; None: no argument of the caller may be None or a number.
    """

    def __init__(self, emit: Emit, derivation: Derivation, flat: Sequence[Any] | None = None) -> None:
        self._emit, self._context, self._builder = emit, emit.context, emit.builder
        self._flat = flat
        self._leaves = [leaf for _, leaf in derivation.active_numbers()]
        self._places = {leaf.index: self._zeroed(emit.context.get_value_type(leaf.number)) for leaf in self._leaves}

    def _zeroed(self, llvm_type: ir.Type) -> Any:
        place = cgutils.alloca_once(self._builder, llvm_type)
        self._builder.store(cgutils.get_null_value(llvm_type), place)
        return place

    def pointers(self) -> list[Any]:
        """Pointers for the reverse sweep: one for each float, in the order of the LLVM parameters."""
        return [part for leaf in self._leaves for part in leaf.parts_at(self._builder, self._places[leaf.index])]

    def value(self, leaf: Content, wanted: Any) -> Value:
        """The cotangent of a leaf as a value of a Numba type.

        The caller may have passed another type than the primal takes. Of a float that became a complex number the
        derivative is the real part: that is the transpose of the conversion. None has no derivative.
        """
        if wanted == types.none:
            return self._context.get_dummy_value()
        if isinstance(wanted, types.Optional):
            assert self._flat is not None
            boolean = self._context.data_model_manager[types.boolean]
            helper = self._context.make_helper(self._builder, wanted)
            helper.data = self.value(leaf, wanted.type)
            helper.valid = boolean.from_argument(self._builder, self._flat[leaf.index + leaf.float_count])
            return helper._getvalue()
        value: Value = self._builder.load(self._places[leaf.index])
        its_type = leaf.number
        if its_type in layouts.COMPLEX and wanted not in layouts.COMPLEX:
            value, its_type = self._builder.extract_value(value, 0), its_type.underlying_float
        return self._context.cast(self._builder, value, its_type, wanted)


@dataclass(frozen=True, slots=True)
class Lane:
    """One direction: shadows of the arguments and of the memory for the returned value, cotangents of numbers."""

    memory: ArgumentMemory
    return_shadow: Any
    cotangents: Cotangents


class Sweeps:
    """The two sweeps of one derivative call: frame, arena, shadows, cotangents of numbers.

    Args:
        derivation: derivation of the called derivative.
        arguments: the caller's values, one per parameter of the primal.
        extras: further arguments from the caller.
        keeps_value: whether the value is passed on: if it is a record it is copied out of memory that may end.
        keeps_tape: whether the arena outlives the call.
    """

    def __init__(
        self,
        emit: Emit,
        derivation: Derivation,
        arguments: Sequence[Value],
        extras: Extras,
        keeps_value: bool,
        *,
        keeps_tape: bool = False,
    ) -> None:
        context, builder = emit.context, emit.builder
        has_own_arena = keeps_tape or derivation.task.is_primal  # that of the thread serves the outer derivative
        self._open, self._close = _OWN_ARENA if has_own_arena else _THREAD_ARENA
        self.emit, self.context, self.builder = emit, context, builder
        self.derivation = derivation
        casts = zip(arguments, derivation.argument_types, derivation.parameter_types, strict=True)
        values = [context.cast(builder, value, given, taken) for value, given, taken in casts]
        packer = context.get_arg_packer(derivation.parameter_types)
        return_type = abi.return_llvm_type(derivation.return_type)
        self.return_pointer, self.return_shadow = extras.places or (self.zeroed(return_type), self.zeroed(return_type))
        self.exception_pointer = internals.exception_argument(context, builder)
        self.flat = [self.return_pointer, self.exception_pointer, *packer.as_arguments(builder, values)]
        self.references = References(emit, derivation.compiled.clear, extras.held)
        self._keeps_tape = keeps_tape
        self.memory = self._memory(extras.targets)
        self.cotangents = Cotangents(emit, derivation, self.flat)
        self.lanes = [Lane(self.memory, self.return_shadow, self.cotangents)]
        is_copied = keeps_value and isinstance(derivation.return_type, types.Record)
        self._record = self.memory.new_record(derivation.return_type) if is_copied else None
        self.watched: WatchedCall | None = None
        derivation.compiled.library.link_into(context.active_code_library)

    def add_lane(self, targets: Mapping[int, tuple[Any, Any]], return_shadow: Any = None) -> None:
        """Makes the shadows of another direction; that of the returned value is on the stack, if not given."""
        memory = self._memory(targets, [lane.memory for lane in self.lanes])
        shadow = return_shadow or self.zeroed(abi.return_llvm_type(self.derivation.return_type))
        cotangents = Cotangents(self.emit, self.derivation, self.flat)
        self.lanes.append(Lane(memory, shadow, cotangents))

    def _memory(self, targets: Mapping[int, tuple[Any, Any]], others: Sequence[ArgumentMemory] = ()) -> ArgumentMemory:
        own = (self.emit, self.derivation, self.flat, targets, self.references, others)
        return ArgumentMemory(*own, is_separate=self._keeps_tape)

    def zeroed(self, llvm_type: ir.Type) -> Any:
        """A zeroed place on the stack."""
        place = cgutils.alloca_once(self.builder, llvm_type)
        self.builder.store(cgutils.get_null_value(llvm_type), place)
        return place

    def frame_on_stack(self) -> Any:
        """Memory for values that live from one sweep to the other."""
        size = max(self.derivation.compiled.derivative.frame_size, 1)
        place = cgutils.alloca_once(self.builder, ir.ArrayType(ir.IntType(8), size))
        place.align = 64
        return self.builder.bitcast(place, VOID_POINTER)

    def declare(self, symbol: str, result: Any, parameters: Sequence[Any]) -> Any:
        """A function of the derivative."""
        return cgutils.get_or_insert_function(self.builder.module, ir.FunctionType(result, parameters), symbol)

    def open_arena(self) -> Any:
        """The arena; a MemoryError is raised when there is none."""
        resident.load((self._open, self._close))  # together, which takes less time
        arena = resident.call(self.builder, self._open, VOID_POINTER)
        with cgutils.if_unlikely(self.builder, cgutils.is_null(self.builder, arena)):
            self.references.fail()
        return arena

    def close_arena(self, arena: Value) -> None:
        """Ends the arena's use by this call."""
        if self.watched is not None:
            self.watched.leave(arena)
        resident.call(self.builder, self._close, ir.VoidType(), arena)

    def raise_pending(self, failure: Failure) -> None:
        """Ends the function with the exception that says why there is no pair."""
        number = self.builder.ptrtoint(failure.pending, INTP)
        in_python(self.emit, KEEP_PENDING, (number,), _keep_pending)
        raise_kept(self.emit)

    def run_augmented(self, frame: Value, arena: Value, tangents: Sequence[Value] = ()) -> Any:
        """Calls the function of the mode that runs the primal; the result is Numba's status."""
        derivative, library = self.derivation.compiled.derivative, self.derivation.compiled.library
        shadows = [self._shadow_of(lane, index) for lane in self.lanes for index in derivative.shadows]
        values = [frame, arena, *self.flat, *shadows, *tangents]
        callee = self.declare(library.symbols[derivative.first], _STATUS, [value.type for value in values])
        code = self.builder.call(callee, values)
        excinfo = self.builder.load(self.exception_pointer)
        self._status = internals.status_of(self.context.call_conv, self.builder, code, excinfo)
        return self._status

    def _shadow_of(self, lane: Lane, index: int) -> Any:
        if index == abi.RETURN_INDEX:
            return self.builder.bitcast(lane.return_shadow, VOID_POINTER)
        return lane.memory.shadow_of(index)

    def run_reverse(self, frame: Value, arena: Value) -> None:
        """Calls the reverse sweep, which fills the cotangents of all lanes."""
        derivative, library = self.derivation.compiled.derivative, self.derivation.compiled.library
        values = [frame, arena, *(pointer for lane in self.lanes for pointer in lane.cotangents.pointers())]
        callee = self.declare(
            library.symbols[derivative.symbols[REVERSE]], ir.VoidType(), [value.type for value in values]
        )
        self.builder.call(callee, values)

    @contextmanager
    def succeeded(self, status: Any, arena: Value) -> Iterator[None]:
        """Emits code for a primal that did not raise; otherwise releases everything and passes on the exception."""
        lacks_value = status.is_none if self.derivation.may_lack_value else cgutils.false_bit
        with self.builder.if_else(self.builder.or_(status.is_error, lacks_value), likely=False) as (failed, fine):
            with failed:
                failure = Failure.of(self.emit, arena)
                self.close_arena(arena)
                self.references.release()
                with self.builder.if_then(lacks_value):
                    self.context.call_conv.return_user_exc(self.builder, SignatureError, _NO_VALUE)
                is_memory = self.builder.icmp_signed("==", status.code, _STATUS(NUMBA.exhausted))
                # A status of irad's own: the sweep ran out of memory for its tape, or out of stack.
                with self.builder.if_then(is_memory):
                    failure.raise_it(self.emit, self.watched.when_full if self.watched else None)
                with self.builder.if_then(self.builder.icmp_signed("==", status.code, _STATUS(NUMBA.no_derivative))):
                    self.raise_pending(failure)
                raise_status(self.emit, status)
            with fine:
                yield

    def watch(self, arena: Value, arguments: Sequence[Any], extras: Extras, outputs: Sequence[str]) -> None:
        """Opens the call, where the options ask for debug mode or for the meter of the tape."""
        task, options = self.derivation.task, self.derivation.task.options
        if not options.debug and (options.tape_limit is None or task.is_forward):
            return
        inputs = zip(input_names(self.derivation), arguments, self.derivation.argument_types, strict=True)
        given = [(name, value, numba_type) for name, value, numba_type in inputs]
        given += [
            (
                f"{memory_word(task)} {self.derivation.caller_arguments[p].name}",
                *extras.targets[p],
            )
            for p, role in task.roles
            if p in extras.targets and role is not Role.INTO
        ]
        given += [("the cotangent", *extras.seed)] if extras.seed is not None else []
        self.watched = WatchedCall(self.emit, self.derivation, given, outputs, has_tape=not task.is_forward)
        raised = self.watched.enter(arena)
        with cgutils.if_unlikely(self.builder, raised):
            self.close_arena(arena)
            self.references.release()
            raise_kept(self.emit)
        if self.watched.frame_is_too_large:
            # A branch that is always taken: what follows is emitted anyway, and needs a block.
            with self.builder.if_then(cgutils.true_bit):
                self.close_arena(arena)
                self.references.release()
                self.watched.raise_tape_is_full()

    def held_value(self) -> Any:
        """The primal's value for debug mode to check, a new reference; None without debug mode."""
        if self.watched is None:
            return None
        value = self.value()
        self.context.nrt.incref(self.builder, self.derivation.return_type, value)
        return value

    def finish_watched(self, extras: Extras, arguments: Sequence[Any], value: Any, result: tuple[Any, Any]) -> None:
        """Ends a call that debug mode watches: raises if a result is NaN or infinite.

        Args:
            extras: the caller's values besides the arguments.
            arguments: arguments of the caller.
            value: the result of `held_value`.
            result: of the call, and its type.
        """
        if self.watched is None:
            return
        outputs = debug_values(self.emit, self.derivation, value, arguments, extras.targets, result)
        raised = self.watched.finish(outputs)
        self.context.nrt.decref(self.builder, self.derivation.return_type, value)
        with self.builder.if_then(raised, likely=False):
            for held, numba_type in (result, *extras.held):
                self.context.nrt.decref(self.builder, numba_type, held)
            raise_kept(self.emit)

    def value(self) -> Any:
        """Value that the primal returned, as Numba holds it."""
        raw = self.builder.load(self.return_pointer)
        value = self.context.get_returned_value(self.builder, self.derivation.return_type, raw)
        signature = self.derivation.return_type()
        return imputils.fix_returning_optional(self.context, self.builder, signature, self._status, value)

    def kept_value(self) -> Any:
        """Value that the primal returned, in the type `gradients.owned_type`."""
        if self._record is None:
            return self.value()
        return filled_record(self.emit, self.derivation.return_type, self._record, self.value())

    def drop_value(self) -> None:
        """Releases the primal's result."""
        self.context.nrt.decref(self.builder, self.derivation.return_type, self.value())


def _keep_pending(emit: Emit, python: PythonAPI, arguments: Sequence[Value]) -> None:
    number = python.long_from_ssize_t(arguments[0])
    answer = call_python(emit, python, "irad.frontend.pointers", "keep_pending", (number,))
    for each in (number, answer):
        python.decref(each)
