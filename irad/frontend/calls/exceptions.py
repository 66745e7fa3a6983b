"""Exceptions that end a call: raised in Python and rethrown by compiled code, or of a sweep that failed.

Numba's status "Python has the exception" crashes where compiled code catches it: no exception of Numba's goes with it,
and Python's would stay set. So the exception is kept aside, and compiled code raises `Rethrown` as any other class.
When that gets to Python, which then makes an instance of it, the exception that was kept is raised instead.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Final, ParamSpec

from llvmlite import ir
from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils
from numba.core.callconv import RETCODE_EXC
from numba.core.pythonapi import PythonAPI

from irad import errors
from irad.errors import HERE, InternalError, IradError
from irad.frontend.emit import INTP, Emit
from irad.frontend.memory.shadows import NO_MEMORY
from irad.frontend.numba import internals
from irad.records import dataclass
from irad.runtime_layouts import ARENA, RULE_RAISED, TAPE_FULL

_P = ParamSpec("_P")

RAISED: Final = -1
"""Value that a function returns for an exception that it raised."""
_KEEP_RAISED: Final = "irad.keep_raised"
_KEEP_MISFIT: Final = "irad.keep_misfit"
KEEP_PENDING: Final = "irad.keep_pending"
IN_PYTHON: Final = (_KEEP_RAISED, _KEEP_MISFIT, KEEP_PENDING)
"""Functions that generated code calls when something goes wrong; derivatives of that code take it as a whole."""
_LOST: Final = "an exception raised for compiled code was lost"


class _Thread(threading.local):
    """The last exception that a thread kept, until it is raised."""

    error: BaseException | None = None


_thread: Final = _Thread()


class Rethrown(Exception):
    """Stands for the last exception that this thread kept."""

    def __new__(cls, *_: object) -> Rethrown:
        """Raises the exception so that Numba passes it on with its traceback."""
        __tracebackhide__ = True  # says IPython and pytest
        error, _thread.error = _thread.error, None
        try:
            raise error or InternalError(_LOST)
        finally:
            del error  # or it would hold itself, by its traceback


def keep(error: BaseException) -> int:
    """Keeps an exception for this thread to raise; of an error about the user's program without irad's frames."""
    if isinstance(error, IradError) and not isinstance(error, InternalError):
        error = error.with_traceback(None)
    _thread.error = error
    return RAISED


def keep_raised(error: BaseException | None = None, traceback: TracebackType | None = None) -> int:
    """Keeps the exception that Python raised; None: it was lost with a thread that ended."""
    return keep(InternalError(_LOST) if error is None else error.with_traceback(traceback))


def keep_failure() -> int:
    """Keeps that Python could not be called: an interrupt in that moment, or no memory left."""
    return keep(InternalError("compiled code could not call Python"))


def keeping(function: Callable[_P, int | None]) -> Callable[_P, int]:
    """Decorates functions that compiled code calls: returns `RAISED` after an exception, otherwise the number or 0."""

    @functools.wraps(function)
    def call(*args: _P.args, **kwargs: _P.kwargs) -> int:
        try:
            return function(*args, **kwargs) or 0
        except BaseException as error:  # an interrupt, too
            return keep(error)

    return call


@keeping
def keep_misfit(error: str, problem: str, remedy: str, reason: str, address: int, rank: int) -> None:
    """Keeps an error about an array: its shape or strides, followed by those that are wanted, lie at an address."""
    numbers = (ctypes.c_int64 * (2 * rank)).from_address(address)
    problem = f"{problem}: {tuple(numbers[:rank])}, not {tuple(numbers[rank:])}"
    raise getattr(errors, error)(problem, remedy, reason, HERE)


def emit_misfit(
    emit: Emit,
    error: type[IradError],
    texts: tuple[str, str, str],
    given: Sequence[Value],
    wanted: Sequence[Any],
) -> None:
    """Emits that an array is not as it should be: the error is kept, for `raise_kept`.

    Args:
        error: the error.
        texts: problem, remedy and reason.
        given: the array's shape or strides.
        wanted: those it should have.
    """
    builder = emit.builder
    numbers = (*given, *wanted)
    slot = cgutils.alloca_once(builder, INTP, size=len(numbers))
    for index, number in enumerate(numbers):
        builder.store(number, builder.gep(slot, [INTP(index)]))
    constants = [emit.context.insert_const_string(builder.module, text) for text in (error.__name__, *texts)]

    def keep_it(emit: Emit, python: PythonAPI, arguments: Sequence[Value]) -> None:
        *strings, numbers, rank = arguments
        values = [python.string_from_string(text) for text in strings]
        address = emit.builder.ptrtoint(numbers, INTP)
        values += [python.long_from_ssize_t(address), python.long_from_ssize_t(rank)]
        returned = call_python(emit, python, __name__, "keep_misfit", values)
        for each in (*values, returned):
            python.decref(each)

    rank = INTP(len(given))
    in_python(emit, _KEEP_MISFIT, (*constants, slot, rank), keep_it)


def raise_misfit(
    emit: Emit,
    error: type[IradError],
    texts: tuple[str, str, str],
    given: Sequence[Value],
    wanted: Sequence[object],
) -> None:
    """Ends the function that is being generated because an array is not as it should be, as `emit_misfit` takes it."""
    emit_misfit(emit, error, texts, given, wanted)
    raise_kept(emit)


def in_python(
    emit: Emit,
    name: str,
    arguments: Sequence[Value],
    body: Callable[[Emit, PythonAPI, Sequence[Value]], None],
) -> None:
    """Emits a call of a function that holds Python's lock while it does something; it is made once per module.

    It is not inlined: it is for what goes wrong, and the derivative of the caller takes it as a whole.
    """
    context, builder = emit.context, emit.builder
    type_ = ir.FunctionType(ir.VoidType(), [value.type for value in arguments])
    function = cgutils.get_or_insert_function(builder.module, type_, name)
    if function.is_declaration:
        function.linkage = "linkonce_odr"
        function.attributes.add("noinline")
        inside = IRBuilder(function.append_basic_block("entry"))
        python = context.get_python_api(inside)
        lock = python.gil_ensure()
        body(Emit(context, inside), python, function.args)
        python.gil_release(lock)
        inside.ret_void()
    builder.call(function, arguments)


def call_python(emit: Emit, python: PythonAPI, module: str, name: str, arguments: Sequence[Value]) -> Value:
    """Emits the call of a function of a module; yields its result, null if it raises. The lock is held."""
    place = python.import_module(emit.context.insert_const_string(emit.builder.module, module))
    function = python.object_getattr_string(place, name)
    returned = python.call_function_objargs(function, arguments)
    python.decref(function)
    python.decref(place)
    return returned


def raise_kept(emit: Emit) -> None:
    """Ends the function that is being generated with the exception that was kept."""
    emit.context.call_conv.return_user_exc(emit.builder, Rethrown, ())


def raise_status(emit: Emit, status: Any) -> None:
    """Ends the generated function with the status of a call; an exception of Python is kept.

    Args:
        status: of the call, an error.
    """
    builder = emit.builder
    with builder.if_then(status.is_python_exc):
        raise_python_exception(emit)
    emit.context.call_conv.return_status_propagate(builder, status)


def raise_python_exception(emit: Emit) -> None:
    """Ends the function that is being generated with the exception that Python has set for this thread, kept."""
    in_python(emit, _KEEP_RAISED, (), _keep_raised)
    raise_kept(emit)


def _keep_raised(emit: Emit, python: PythonAPI, _: Sequence[Value]) -> None:
    builder = emit.builder
    slots = [cgutils.alloca_once_value(builder, python.get_null_object()) for _ in range(3)]
    python.err_fetch(*slots)
    normalise = ir.FunctionType(ir.VoidType(), [slot.type for slot in slots])
    builder.call(cgutils.get_or_insert_function(builder.module, normalise, "PyErr_NormalizeException"), slots)
    kind, error, traceback = map(builder.load, slots)
    returned = call_python(emit, python, __name__, "keep_raised", (error, traceback))  # null ends the list
    for each in (kind, error, traceback, returned):
        python.decref(each)


# --- sweeps that were not completed -----------------------------------------------------------------------------------

_STATUS = ir.IntType(32)
_RAISED_IN_LANE = ("a rule raised an exception in a parallel loop",)


def field_of(builder: IRBuilder, block: Value, offset: int, llvm_type: Any) -> Value:
    """A pointer at a byte offset."""
    return builder.bitcast(builder.gep(block, [INTP(offset)]), llvm_type.as_pointer())


def arena_field(builder: IRBuilder, arena: Value, field: str, llvm_type: object) -> Value:
    """A pointer to a field of an arena."""
    return field_of(builder, arena, ARENA.offset(field), llvm_type)


@dataclass(frozen=True)
class Failure:
    """Reason for which a sweep was not completed, read from its arena.

    Attributes:
        reason: the arena's flag; 0 if the sweep came to its end.
        pending: the exception that a rule raised, as Numba holds it; where there is no pair the number of that failure.
        code: the status that goes with it.
    """

    reason: Value
    pending: Value
    code: Value

    @classmethod
    def of(cls, emit: Emit, arena: Value) -> Failure:
        """Reads and clears the pending exception."""
        builder = emit.builder
        exception = internals.exception_argument(emit.context, builder).type.pointee
        place = arena_field(builder, arena, "pending", exception)
        pending = builder.load(place)
        builder.store(cgutils.get_null_value(exception), place)
        flag = arena_field(builder, arena, "failed", _STATUS)
        reason = builder.load(flag)
        was_raised = builder.icmp_signed("==", reason, _STATUS(RULE_RAISED))
        builder.store(builder.select(was_raised, _STATUS(0), reason), flag)  # a pullback may run again
        place = arena_field(builder, arena, "pending_code", _STATUS)
        code = builder.load(place)
        builder.store(cgutils.get_null_value(_STATUS), place)
        return cls(reason, pending, code)

    def raise_it(self, emit: Emit, when_full: Callable[[], None] | None = None) -> None:
        """Ends the function: with the exception of the rule, or because heap, stack or the allowed tape are small.

        Args:
            when_full: emits the end where the tape exceeds its limit; None where it has none.
        """
        builder = emit.builder
        call_conv = emit.context.call_conv
        with builder.if_then(builder.icmp_signed("==", self.reason, _STATUS(RULE_RAISED))):
            with builder.if_then(builder.icmp_signed("==", self.code, RETCODE_EXC)):
                raise_python_exception(emit)
            with builder.if_then(cgutils.is_null(builder, self.pending)):
                call_conv.return_user_exc(builder, RuntimeError, _RAISED_IN_LANE)
            builder.store(self.pending, internals.exception_argument(emit.context, builder))
            internals.return_status(emit.context, builder, self.code)
        if when_full is not None:
            with builder.if_then(builder.icmp_signed("==", self.reason, _STATUS(TAPE_FULL))):
                when_full()
        call_conv.return_user_exc(builder, MemoryError, NO_MEMORY)
