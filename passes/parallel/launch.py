"""Runs loop functions and their derivatives in lanes: one for each thread, each a block of the schedule.

Input   the pair of a loop function, declared, and the pair of one lane.
Output  the bodies of the former. To all other passes they look like those of any other function.
Method  the augmented function divides the schedule into as many lanes as there are threads, gives each a record with
        its own frame, arena and share of the schedule, and has the host's threads run them. The reverse has them run
        the reverse of the same lanes. A lane is an ordinary sequential program: its tape is its own, and what it leaves
        in a reduction's slot, it leaves in that of its number, whichever thread ran it. So nothing depends on chance.
        The division is the one that OpenMP's static schedule makes, in which the primal's result has the same bits.

    record of a lane:  arena │ first index │ parameters of the augmented function … │ frame
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.module import Block, Function, Module
from irad.ir.types import FunctionType
from irad.ir.values import ConstantNull, GlobalVariable, Value, const_int
from irad.passes.convention import ParallelLoops
from irad.passes.mode import REVERSE
from irad.passes.parallel.flatten import CHUNKS, LANE, SCHEDULE, STEP, THREADS, ParallelLoop, is_loop_function
from irad.passes.parallel.modes import WINDOW_SIZE, SharingMode
from irad.passes.program import DerivedFunctions, Program
from irad.passes.runtime import (
    ARENA_ALLOC_PRODUCT,
    LANES_FAILED,
    LANES_OPEN,
    LANES_WATCH,
    PARTIALS_CLOSE,
    PARTIALS_OPEN,
    runtime_function,
)
from irad.passes.unit import Unit
from irad.records import dataclass
from irad.runtime_layouts import KIND_BOTH, KIND_CALLED, KIND_READ, KIND_WRITTEN, PARTIAL, RECORD

# The table of a parallel loop's partial shadows, filled when its reverse is launched.
#
# For each array that lanes add to, and each that they only take from, an entry as ``irad/backend/runtime/partials.ll``
# reads it: where the array's shadow lies, from the strides and extents that the loop function got, and how lanes use
# it.

_KINDS: Mapping[SharingMode, int] = {
    SharingMode.WINDOW: KIND_READ,
    SharingMode.PRIVATE: KIND_CALLED,
    SharingMode.DIRECT: KIND_WRITTEN,
    SharingMode.WRITTEN_WINDOW: KIND_BOTH,
}


@dataclass(frozen=True, slots=True)
class PartialEntry:
    """An array: numbers of its parameter and of its shadow's, how it is used, where lanes have its window."""

    parameter: int
    shadow: int
    mode: SharingMode
    window: int


@dataclass(frozen=True, slots=True)
class Table:
    """The arrays of one loop whose shadows lanes use; none, with the reason, where lanes are reversed one by one."""

    loop: ParallelLoop
    entries: tuple[PartialEntry, ...]
    obstacle: str | None

    @staticmethod
    def of(loop: ParallelLoop, unit: Unit, pair: DerivedFunctions, frame: int) -> Table:
        """The table of a lane's unit; its frame is at byte ``frame`` of its record."""
        sharing, params = unit.sharing, unit.function.params
        assert sharing is not None
        if sharing.obstacle is not None:
            return Table(loop, (), sharing.obstacle)
        shared, entries = sharing.shared(), []
        for direction in range(unit.program.request.mode.width):
            first = frame + WINDOW_SIZE * direction * len(shared)
            windows = {param: first + WINDOW_SIZE * number for number, param in enumerate(shared)}
            for param, mode in sharing.modes.items():
                index = params.index(param)
                shadow = len(params) + direction * len(pair.shadows) + pair.shadows.index(index)
                entries.append(PartialEntry(index, shadow, mode, windows.get(param, 0)))
        return Table(loop, tuple(entries), None)

    def fill(self, build: Builder, values: Sequence[Value]) -> Value:
        """Emits the table, in local memory.

        Args:
            build: where.
            values: of the augmented function's parameters, shadows after the others.
        """
        head = Builder.at_start(build.function.entry)
        table = head.alloca(types.I64, const_int(types.I64, max(1, len(self.entries)) * PARTIAL.size // 8), align=8)
        for number, entry in enumerate(self.entries):
            for field, value in self.fields(build, entry, values).items():
                build.store(value, build.byte_offset(table, PARTIAL.size * number + PARTIAL.offset(field)), align=8)
        return table

    def fields(self, build: Builder, entry: PartialEntry, values: Sequence[Value]) -> dict[str, Value]:
        """The fields of an entry."""
        array = self.loop.array_of(entry.parameter)
        assert array is not None
        zero = const_int(types.I64, 0)
        origin = build.ptrtoint(values[entry.shadow], types.I64)
        low: Value = zero
        high: Value = const_int(types.I64, array.size)
        step: Value = zero
        for number, axis in enumerate(array.axes):
            extent, stride = (values[i] for i in self.loop.extent_and_stride(axis))
            span = build.mul(build.sub(extent, const_int(types.I64, 1)), stride)
            low = build.add(low, build.intrinsic("llvm.smin.i64", types.I64, [span, zero]))
            high = build.add(high, build.intrinsic("llvm.smax.i64", types.I64, [span, zero]))
            step = stride if number == 0 else step
        for extent in (values[self.loop.extent_and_stride(axis)[0]] for axis in array.axes):
            empty = build.icmp("slt", extent, const_int(types.I64, 1))
            low, high = build.select(empty, zero, low), build.select(empty, zero, high)
        single = int(array.memory is not None and array.memory.lone_float() == "float")
        kind, window = const_int(types.I64, _KINDS[entry.mode]), const_int(types.I64, entry.window)
        range_ = {"low": build.add(origin, low), "high": build.add(origin, high)}
        axis_ = {"step": step, "origin": origin}
        memory = {"base": zero, "single": const_int(types.I64, single), "slot": window, "owned": zero}
        return {**range_, "kind": kind, **axis_, **memory}


_KERNEL = types.function_type(types.VOID, [types.PTR, types.PTR, types.PTR, types.PTR])
_NULL = ConstantNull(types.PTR)
_LANES, _RECORDS, _ARENAS = 0, 8, 16  # in the frame of the pair
_FIRST, _PARAMETERS = RECORD.offset("first"), RECORD.size  # in a record
# Three words are used; frames are multiples of their alignment.
LAUNCHER_FRAME = 64


def build_launchers(
    program: Program, pair: DerivedFunctions, lane: DerivedFunctions, unit: Unit, host: ParallelLoops
) -> None:
    """Fills the pair of a loop function.

    Args:
        program: program of both.
        pair: the loop as its caller sees it.
        lane: the same variant, for one lane.
        unit: unit of the lane.
        host: convention for launching loops.
    """
    record = _Record(pair.first.function_type.params[2:], lane.frame_size)
    pair.frame_size.initializer = const_int(types.I64, LAUNCHER_FRAME)
    watched = program.request.watches or program.request.meters
    _build_augmented(host, pair, record, _augmented_kernel(program.module, lane, record), watched)
    if REVERSE not in pair.functions:
        return
    table = Table.of(program.loops[unit.function], unit, pair, record.frame)
    _build_reverse(host, pair, record, _reverse_kernel(program.module, lane, record), table, watched)


def lane_head(pair: DerivedFunctions) -> int:
    """The bytes of a lane's record before its frame."""
    return _Record(pair.first.function_type.params[2:], None).frame


def lane_parameter(number: int) -> int:
    """Position of a parameter in a lane's record."""
    return _PARAMETERS + 8 * number


def launch_loops(module: Module, host: ParallelLoops) -> None:
    """Lets calls of the loop functions themselves, where nothing is differentiated, use all threads, too."""
    launchers: dict[Function, Function] = {}
    for function in module.defined_functions():
        for call in function.instructions():
            if isinstance(call, CallSite) and isinstance(call.callee, Function) and is_loop_function(call.callee):
                loop = call.callee
                if loop not in launchers:
                    launchers[loop] = _build_primal(host, module, loop)
                call.set_operand(len(call.operands) - 1, launchers[loop])


# ------------------------------------------------------------------------------------------------ records


@dataclass(frozen=True, slots=True)
class _Record:
    """Arguments of a lane. ``frame_size`` is that of its frame, after the rest; None if it has none."""

    parameters: Sequence[types.Type]
    frame_size: GlobalVariable | None

    @property
    def frame(self) -> int:
        """Offset of the frame."""
        return -(-(_PARAMETERS + 8 * len(self.parameters)) // 64) * 64

    def size(self, build: Builder) -> Value:
        """Total size in bytes."""
        head = const_int(types.I64, self.frame)
        return head if self.frame_size is None else build.add(build.load(types.I64, self.frame_size), head)

    def fill(self, build: Builder, record: Value, arena: Value, values: Sequence[Value]) -> None:
        """Stores the arena, the first index of the lane's first chunk, and the parameters."""
        build.store(arena, record, align=8)
        none = build.icmp("eq", values[CHUNKS], const_int(types.I64, 0))
        # Without chunks the schedule is empty, and must not be read.
        source = build.select(none, record, values[SCHEDULE])
        build.store(build.load(types.I64, source, align=8), build.byte_offset(record, _FIRST), align=8)
        for index, value in enumerate(values):
            build.store(value, build.byte_offset(record, _PARAMETERS + 8 * index), align=8)

    def values(self, build: Builder, record: Value) -> list[Value]:
        """Loads the parameters."""
        return [
            build.load(type_, build.byte_offset(record, _PARAMETERS + 8 * index), align=8)
            for index, type_ in enumerate(self.parameters)
        ]


def _augmented_kernel(module: Module, lane: DerivedFunctions, record: _Record) -> Function:
    def run(build: Builder, here: Value) -> None:
        arena = build.load(types.PTR, here, align=8)
        build.call(lane.first, [build.byte_offset(here, record.frame), arena, *record.values(build, here)])

    return _kernel(module, f"{lane.first.name}.kernel", run)


def _reverse_kernel(module: Module, lane: DerivedFunctions, record: _Record) -> Function:
    def run(build: Builder, here: Value) -> None:
        build.call(lane[REVERSE], [build.byte_offset(here, record.frame), build.load(types.PTR, here, align=8)])

    return _kernel(module, f"{lane[REVERSE].name}.kernel", run)


def _kernel(module: Module, name: str, run: Callable[[Builder, Value], None]) -> Function:
    """A function that the host's threads can run: does its share of the lanes, one after the other."""
    kernel = module.define(name, _KERNEL, ["args", "dims", "steps", "data"])
    kernel.prefix = ("internal",)
    args, dims, steps, _ = kernel.params
    build = Builder(kernel.add_block("entry"))
    count, step = build.load(types.I64, dims, align=8), build.load(types.I64, steps, align=8)
    first = build.load(types.PTR, args, align=8)

    def body(inner: Builder, number: Value) -> None:
        run(inner, inner.byte_offset(first, inner.mul(number, step)))

    _repeat(build, count, body).ret()
    return kernel


# ------------------------------------------------------------------------------------------------ launchers


def _build_augmented(
    host: ParallelLoops, pair: DerivedFunctions, record: _Record, kernel: Function, watched: bool
) -> None:
    frame, arena, *given = pair.first.params
    frame.name, arena.name = "frame", "arena"
    build = Builder(pair.first.add_block("entry"))
    module = build.module
    exhausted = pair.first.add_block("exhausted")
    Builder(exhausted).ret()
    lanes, size = _number_of_lanes(build, given), record.size(build)
    records = build.call(runtime_function(module, ARENA_ALLOC_PRODUCT), [arena, lanes, size], name="records")
    build = _unless_null(build, records, exhausted)
    arenas = build.call(runtime_function(module, LANES_OPEN), [arena, lanes], name="arenas")
    build = _unless_null(build, arenas, exhausted)
    if REVERSE in pair.functions:
        build.store(lanes, build.byte_offset(frame, _LANES), align=8)
        build.store(records, build.byte_offset(frame, _RECORDS), align=8)
        build.store(arenas, build.byte_offset(frame, _ARENAS), align=8)

    def fill(inner: Builder, lane: Value) -> None:
        own = inner.load(types.PTR, inner.gep(types.PTR, arenas, [lane]), align=8)
        record.fill(inner, inner.byte_offset(records, inner.mul(lane, size)), own, _share(inner, lane, lanes, given))

    if watched:
        build.call(runtime_function(module, LANES_WATCH), [arena, arenas, lanes])
    build = _run(host, _repeat(build, lanes, fill), kernel, records, lanes, size)
    build.call(runtime_function(module, LANES_FAILED), [arena, arenas, lanes])
    build.ret()


def _build_reverse(
    host: ParallelLoops, pair: DerivedFunctions, record: _Record, kernel: Function, table: Table, watched: bool
) -> None:
    frame, arena = pair[REVERSE].params
    frame.name, arena.name = "frame", "arena"
    build = Builder(pair[REVERSE].add_block("entry"))
    module = build.module
    lanes = build.load(types.I64, build.byte_offset(frame, _LANES), align=8)
    records = build.load(types.PTR, build.byte_offset(frame, _RECORDS), align=8)
    size = record.size(build)
    vectors = _Vectors.of(build, records, lanes, size)
    if watched:
        arenas = build.load(types.PTR, build.byte_offset(frame, _ARENAS), align=8)
        build.call(runtime_function(module, LANES_WATCH), [arena, arenas, lanes])
    entries = table.fill(build, record.values(build, records))
    description = [entries, const_int(types.I64, len(table.entries)), records, size, lanes]
    apart = build.call(runtime_function(module, PARTIALS_OPEN), description, name="apart")
    # An obstacle means that lanes are reversed one by one, in this thread.
    if table.obstacle is not None:
        build.call(kernel, [vectors.args, vectors.dims, vectors.steps, _NULL])
    else:
        build = _run_without_lock(host, build, kernel, vectors, lanes, apart)
    build.call(runtime_function(module, PARTIALS_CLOSE), description)
    arenas = build.load(types.PTR, build.byte_offset(frame, _ARENAS), align=8)
    build.call(runtime_function(module, LANES_FAILED), [arena, arenas, lanes])
    build.ret()


def _build_primal(host: ParallelLoops, module: Module, loop: Function) -> Function:
    """A function of the loop function's type that runs it in lanes."""
    record = _Record(loop.function_type.params, None)

    def run(build: Builder, here: Value) -> None:
        build.call(loop, record.values(build, here))

    kernel = _kernel(module, f"{loop.name}.kernel", run)
    launcher = module.define(f"{loop.name}.launch", loop.function_type)
    launcher.prefix = ("internal",)
    build = Builder(launcher.add_block("entry"))
    given = launcher.params
    lanes, size = _number_of_lanes(build, given), record.size(build)
    records = build.alloca(types.I8, build.mul(lanes, size), align=64)

    def fill(inner: Builder, lane: Value) -> None:
        record.fill(inner, inner.byte_offset(records, inner.mul(lane, size)), _NULL, _share(inner, lane, lanes, given))

    _run(host, _repeat(build, lanes, fill), kernel, records, lanes, size).ret()
    return launcher


def _number_of_lanes(build: Builder, given: Sequence[Value]) -> Value:
    """One for each thread that has work, and at least one."""
    busy = build.intrinsic("llvm.umin.i64", types.I64, [given[THREADS], given[CHUNKS]])
    return build.intrinsic("llvm.umax.i64", types.I64, [busy, const_int(types.I64, 1)], name="lanes")


def _share(build: Builder, lane: Value, lanes: Value, given: Sequence[Value]) -> list[Value]:
    """The parameters of one lane: its number and its part of the chunks; the first lanes get the remaining chunks."""
    each, left = build.udiv(given[CHUNKS], lanes), build.urem(given[CHUNKS], lanes)
    before = build.add(build.mul(lane, each), build.intrinsic("llvm.umin.i64", types.I64, [lane, left]))
    more = build.zext(build.icmp("ult", lane, left), types.I64)
    values = list(given)
    values[LANE], values[CHUNKS] = lane, build.add(each, more)
    values[SCHEDULE] = build.byte_offset(given[SCHEDULE], build.mul(before, given[STEP]))
    return values


@dataclass(frozen=True, slots=True)
class _Vectors:
    """The three vectors through which a kernel gets its work."""

    args: Value
    dims: Value
    steps: Value

    @staticmethod
    def of(build: Builder, records: Value, lanes: Value, size: Value) -> _Vectors:
        """Vectors in local memory for all lanes."""
        head = Builder.at_start(build.function.entry)
        vectors = _Vectors(head.alloca(types.PTR), head.alloca(types.I64), head.alloca(types.I64))
        build.store(records, vectors.args)
        build.store(lanes, vectors.dims)
        build.store(size, vectors.steps)
        return vectors


def _run(host: ParallelLoops, build: Builder, kernel: Function, records: Value, lanes: Value, size: Value) -> Builder:
    """Runs a kernel over all lanes in the host's threads; a single one in this thread. Returns the place after it."""
    vectors = _Vectors.of(build, records, lanes, size)
    many = build.icmp("ugt", lanes, const_int(types.I64, 1))
    return _choose(build, many, lambda there: _launch(host, there, kernel, vectors, lanes), kernel, vectors)


def _run_without_lock(
    host: ParallelLoops, build: Builder, kernel: Function, vectors: _Vectors, lanes: Value, apart: Value
) -> Builder:
    """Runs a kernel where the host's lock may be held: this thread and one that wants the lock would wait forever."""
    module, head = build.module, Builder.at_start(build.function.entry)
    lock = head.alloca(types.I32, align=4)

    def launch(there: Builder) -> None:
        there.store(const_int(types.I32, 0), lock, align=4)
        there.call(module.declare(host.lock.begins, _function(types.VOID, types.PTR)), [lock])
        state = there.call(module.declare(host.yielded.begins, _function(types.PTR)), [])
        _launch(host, there, kernel, vectors, lanes)
        there.call(module.declare(host.yielded.ends, _function(types.VOID, types.PTR)), [state])
        there.call(module.declare(host.lock.ends, _function(types.VOID, types.PTR)), [lock])

    many = build.and_(build.icmp("ugt", lanes, const_int(types.I64, 1)), apart)
    return _choose(build, many, launch, kernel, vectors)


def _choose(
    build: Builder, many: Value, launch: Callable[[Builder], None], kernel: Function, vectors: _Vectors
) -> Builder:
    """Launches the lanes, or runs them one after the other in this thread."""
    here, threads, done = (build.function.add_block(name) for name in ("run.here", "run.threads", "run.done"))
    build.cond_br(many, threads, here)
    build = Builder(here)
    build.call(kernel, [vectors.args, vectors.dims, vectors.steps, _NULL])
    build.br(done)
    build = Builder(threads)
    launch(build)
    build.br(done)
    return Builder(done)


def _launch(host: ParallelLoops, build: Builder, kernel: Function, vectors: _Vectors, lanes: Value) -> None:
    emit_launch(host, build, kernel, [vectors.args, vectors.dims, vectors.steps], 1, lanes)


def emit_launch(
    host: ParallelLoops, build: Builder, kernel: Function, vectors: Sequence[Value], arrays: int, count: Value
) -> None:
    """Launches a kernel on ``arrays`` arrays, ``count`` times."""
    function = build.module.declare(host.launch, _function(types.VOID, *[types.PTR] * 5, *[types.I64] * 3))
    numbers = [const_int(types.I64, 0), const_int(types.I64, arrays), count]
    build.call(function, [kernel, *vectors, _NULL, *numbers])


def _function(result: types.Type, *params: types.Type) -> FunctionType:
    return types.function_type(result, params)


def _repeat(build: Builder, count: Value, body: Callable[[Builder, Value], None]) -> Builder:
    """Emits ``body`` as a loop from 0 to ``count``; returns the place after it."""
    before, function = build.block, build.function
    loop, after = function.add_block("loop"), function.add_block("loop.done")
    zero, one = const_int(types.I64, 0), const_int(types.I64, 1)
    build.cond_br(build.icmp("sgt", count, zero), loop, after)
    inner = Builder(loop)
    number = inner.phi(types.I64, [(zero, before)], name="number")
    body(inner, number)
    following = inner.add(number, one)
    number.add_incoming(following, loop)
    inner.cond_br(inner.icmp("slt", following, count), loop, after)
    return Builder(after)


def _unless_null(build: Builder, pointer: Value, exhausted: Block) -> Builder:
    """Goes on after a check."""
    following = build.function.add_block()
    build.cond_br(build.icmp("eq", pointer, _NULL), exhausted, following)
    return Builder(following)
