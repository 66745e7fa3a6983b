"""Clears and copies arrays outside parallel loops with all threads, just as the loops themselves run.

Input   a finished module.
Output  the module: functions that launch loops call `CLEAR`, `COPY` and `COPY_ADJOINT` where they cleared and copied
        memory. Those divide what is large among the threads, and leave the rest to the calling one.
Method  an element is touched by one thread only, so nothing depends on how many there are. It is the first touch of new
        memory that takes long; done by one thread, it would bound the speedup of a derivative, which clears a shadow
        for each array.
Limit   only in functions that no loop calls: inside a loop the threads are busy, and `workqueue` cannot nest.

    call void @llvm.memset.p0.i64(ptr %shadow, i8 0, i64 %bytes, i1 false)
    call void @irad.parallel.clear(ptr %shadow, i64 %bytes)
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Call, CallSite
from irad.ir.module import Function, Module
from irad.ir.types import PTR, VOID, function_type
from irad.ir.values import ConstantInt, ConstantNull, Value, const_int
from irad.ir.worklist import reachable
from irad.passes.convention import ParallelLoops
from irad.passes.parallel.launch import emit_launch
from irad.records import dataclass

CLEAR = "irad.parallel.clear"

_ADJOINT = "irad.copy_adjoint_"
_MEMSET, _MEMCPY = "llvm.memset.p0.i64", "llvm.memcpy.p0.p0.i64"
_PIECE = 1 << 17  # bytes that are worth waking a thread for: 10 µs to clear, 30 with the page faults of new memory
_GRAIN = 64  # pieces are multiples of it
_NULL, _FALSE = ConstantNull(PTR), const_int(types.I1, 0)
_KERNEL = function_type(VOID, [PTR, PTR, PTR, PTR])


@dataclass(frozen=True, slots=True)
class _Operation:
    """Operation on memory: emitted for a piece of it, from (destination, source or null, bytes)."""

    name: str
    has_source: bool
    emit: Callable[[Builder, Value, Value, Value], None]


def spread_bulk(module: Module, host: ParallelLoops) -> None:
    """Replaces clears and copies in functions that launch parallel loops."""
    callers = _callers(module, host.launch)
    for function in callers:
        for call in [i for i in function.instructions() if isinstance(i, Call)]:
            found = _operation_of(call)
            if found is not None:
                _replace(module, host, call, found)
    if callers:
        _function_for(module, host, _OPERATIONS[_MEMSET])


def _callers(module: Module, launch: str) -> list[Function]:
    """The functions that call launchers and that no kernel calls."""
    functions = list(module.defined_functions())
    calls = {function: [i for i in function.instructions() if isinstance(i, CallSite)] for function in functions}
    launched = {function: _kernels(found, launch) for function, found in calls.items()}
    launchers = {function: kernels for function, kernels in launched.items() if kernels}

    def named(function: Function) -> list[Function]:
        used = (value for call in calls.get(function, ()) for value in call.operands)
        return [value for value in used if isinstance(value, Function)]

    inside = set(reachable((kernel for kernels in launchers.values() for kernel in kernels), named))
    return [
        function
        for function in functions
        if function not in inside and any(call.callee in launchers for call in calls[function])
    ]


def _kernels(calls: Collection[CallSite], launch: str) -> list[Function]:
    launched = (call.arguments[0] for call in calls if isinstance(call.callee, Function) and call.callee.name == launch)
    return [kernel for kernel in launched if isinstance(kernel, Function)]


def _operation_of(call: Call) -> _Operation | None:
    """Operation of a call on memory whose size is known at run time only."""
    callee = call.callee
    found = _OPERATIONS.get(callee.name or "") if isinstance(callee, Function) else None
    if found is None or isinstance(call.arguments[2], ConstantInt):
        return None
    if found.emit is _emit_clear and not _is_zero(call.arguments[1]):
        return None
    is_volatile = len(call.arguments) > 3 and not _is_zero(call.arguments[3])
    return None if is_volatile else found


def _is_zero(value: Value) -> bool:
    return isinstance(value, ConstantInt) and value.value == 0


def _replace(module: Module, host: ParallelLoops, call: Call, operation: _Operation) -> None:
    into, source, size = call.arguments[:3]
    build = Builder.before(call)
    build.origin, build.metadata = call, call.metadata
    build.call(_function_for(module, host, operation), [into, source, size] if operation.has_source else [into, size])
    call.erase()


# ------------------------------------------------------------------------------------------- what is called instead


def _function_for(module: Module, host: ParallelLoops, operation: _Operation) -> Function:
    """The function that does an operation with all threads."""
    known = module.functions.get(operation.name)
    if known is not None:
        return known
    pointers = [PTR, PTR] if operation.has_source else [PTR]
    names = ["into", "source", "bytes"] if operation.has_source else ["into", "bytes"]
    made = module.define(operation.name, function_type(VOID, [*pointers, types.I64]), names)
    made.prefix = () if operation.name == CLEAR else ("internal",)  # the caller of the derivative clears shadows, too
    made.attributes = ("nounwind", "noinline")
    into, size = made.params[0], made.params[-1]
    source: Value = made.params[1] if operation.has_source else _NULL
    here, spread = (made.add_block(name) for name in ("entry", "spread"))
    alone, ready = (made.add_block(name) for name in ("alone", "ready"))
    build = Builder(here)
    most = build.udiv(size, const_int(types.I64, _PIECE))
    if operation.has_source:
        most = build.select(_is_apart(build, into, source, size), most, const_int(types.I64, 0))
    build.cond_br(build.icmp("ugt", most, const_int(types.I64, 1)), ready, alone)
    build = Builder(ready)
    threads = build.call(module.declare(host.threads, function_type(types.I64, [])), [])
    pieces = build.intrinsic("llvm.umin.i64", types.I64, [threads, most])
    build.cond_br(build.icmp("ugt", pieces, const_int(types.I64, 1)), spread, alone)
    build = Builder(spread)
    _spread(build, host, operation, (into, source, size), pieces)
    build.ret()
    build = Builder(alone)
    operation.emit(build, into, source, size)
    build.ret()
    return made


def _is_apart(build: Builder, into: Value, source: Value, size: Value) -> Value:
    """Test that destination and source have no byte in common, so that pieces can be moved in any order."""
    a, b = build.ptrtoint(into, types.I64), build.ptrtoint(source, types.I64)
    # Without a sign, a negative distance is larger than any size, so one comparison does for each order.
    ahead = build.icmp("uge", build.sub(a, b), size)
    behind = build.icmp("uge", build.sub(b, a), size)
    return build.and_(ahead, behind)


def _spread(
    build: Builder, host: ParallelLoops, operation: _Operation, memory: tuple[Value, Value, Value], pieces: Value
) -> None:
    """Launches a piece for each thread; the remainder is done here."""
    into, source, size = memory
    grain = const_int(types.I64, -_GRAIN)
    step = build.and_(build.udiv(size, pieces), grain)
    args, steps = (build.alloca(types.I64, const_int(types.I64, 2), align=8) for _ in range(2))
    dims = build.alloca(types.I64, align=8)
    for place, value in ((args, into), (build.byte_offset(args, 8), source), (dims, pieces)):
        build.store(value, place, align=8)
    for place in (steps, build.byte_offset(steps, 8)):
        build.store(step, place, align=8)
    emit_launch(host, build, _kernel_for(build.module, operation), [args, dims, steps], 2, pieces)
    done = build.mul(step, pieces)
    rest = build.byte_offset(source, done) if operation.has_source else source
    operation.emit(build, build.byte_offset(into, done), rest, build.sub(size, done))


def _kernel_for(module: Module, operation: _Operation) -> Function:
    """Function that the host's threads run: pieces that lie one after the other."""
    kernel = module.define(f"{operation.name}.kernel", _KERNEL, ["args", "dims", "steps", "data"])
    kernel.prefix = ("internal",)
    args, dims, steps, _ = kernel.params
    build = Builder(kernel.add_block("entry"))
    size = build.mul(build.load(types.I64, dims, align=8), build.load(types.I64, steps, align=8))
    source = build.load(PTR, build.byte_offset(args, 8), align=8)
    operation.emit(build, build.load(PTR, args, align=8), source, size)
    build.ret()
    return kernel


def _emit_clear(build: Builder, into: Value, _: Value, size: Value) -> None:
    memset = build.module.declare(_MEMSET, function_type(VOID, [PTR, types.I8, types.I64, types.I1]))
    build.call(memset, [into, const_int(types.I8, 0), size, _FALSE])


def _emit_copy(build: Builder, into: Value, source: Value, size: Value) -> None:
    memcpy = build.module.declare(_MEMCPY, function_type(VOID, [PTR, PTR, types.I64, types.I1]))
    build.call(memcpy, [into, source, size, _FALSE])


def _emit_adjoint(precision: str) -> Callable[[Builder, Value, Value, Value], None]:
    def emit(build: Builder, into: Value, source: Value, size: Value) -> None:
        helper = build.module.declare(_ADJOINT + precision, function_type(VOID, [PTR, PTR, types.I64]))
        build.call(helper, [into, source, size])

    return emit


_OPERATIONS: Mapping[str, _Operation] = {
    _MEMSET: _Operation(CLEAR, has_source=False, emit=_emit_clear),
    _MEMCPY: _Operation("irad.parallel.copy", has_source=True, emit=_emit_copy),
    **{
        _ADJOINT + precision: _Operation(f"irad.parallel.copy_adjoint_{precision}", True, _emit_adjoint(precision))
        for precision in ("f64", "f32")
    },
}
