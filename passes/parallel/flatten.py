"""Parallel loops become calls: each kernel a function of plain parameters, each launch a call of it.

Input   a prepared module.
Output  the module: where a kernel was launched over memory full of pointers, it now calls the *loop function* with
        what that memory holds. Called as it stands, a loop function does the whole work; `launch` spreads it over
        threads.
Method  a kernel takes everything from three vectors at constant offsets: pointers to its arrays (the first to the
        schedule, the bounds of each chunk), extents, strides. What it loads from them becomes a parameter, the number
        of its thread becomes that of the *lane*, the part of the schedule that it works on.
Limit   a kernel that does anything else with the vectors is left alone, and refused later as a call without a rule.

    call void @launch(ptr @kernel, ptr %args, ptr %dims, ptr %steps, ptr null, i64 1, i64 3, i64 %threads)

    %a = load ptr, ptr (%args + 8)
    call void @kernel.loop(i64 0, i64 %threads, i64 %chunks, ptr %schedule, i64 %step, ptr %a, …)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TypeAlias

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.clone import clone_function_body
from irad.ir.instructions import CallSite, GetElementPtr, Instruction, Load, replace_uses
from irad.ir.module import Function, Module
from irad.ir.values import ConstantNull, Parameter, Value, const_int
from irad.passes.analysis.summary import summarise
from irad.passes.callees import PARALLEL
from irad.passes.convention import ParallelLoops
from irad.passes.memory.addresses import offset_modulo
from irad.passes.request import LoopArray, MemoryType
from irad.records import dataclass
from irad.ruleset.registry import Registry

_ARGS, _DIMS, _STEPS, _DATA = range(4)

# The parameters that every loop function starts with.
LANE, THREADS, CHUNKS, SCHEDULE, STEP = range(5)


@dataclass(frozen=True, slots=True)
class Slot:
    """A place in one of a kernel's vectors: vector, byte offset."""

    vector: int
    offset: int


@dataclass(frozen=True, slots=True)
class ParallelLoop:
    """A loop function.

    Attributes:
        function: the function itself.
        slots: where its parameters from the schedule on come from.
        arrays: the front end's description of the kernel's arguments, the schedule first.
    """

    function: Function
    slots: tuple[Slot, ...]
    arrays: tuple[LoopArray, ...]

    def array_of(self, index: int) -> LoopArray | None:
        """Array that a parameter points to; None if it is not an array or nothing is known about it."""
        slot = self.slots[index - SCHEDULE] if index >= SCHEDULE else None
        if slot is None or slot.vector != _ARGS or slot.offset // 8 >= len(self.arrays):
            return None
        return self.arrays[slot.offset // 8]

    def memory(self) -> dict[Parameter, MemoryType | None]:
        """Memory that the parameters point to."""
        found = ((param, self.array_of(number)) for number, param in enumerate(self.function.params))
        return {param: array.memory for param, array in found if array is not None}

    def extent_and_stride(self, axis: tuple[int, int]) -> tuple[int, int]:
        """The parameters that hold the extent and the stride of an axis."""
        extent, stride = axis
        places = Slot(_DIMS, 8 * extent), Slot(_STEPS, 8 * stride)
        return SCHEDULE + self.slots.index(places[0]), SCHEDULE + self.slots.index(places[1])


LoopFunctions: TypeAlias = dict[Function, ParallelLoop]


def flatten_parallel_loops(
    module: Module, registry: Registry, host: ParallelLoops, arrays: Mapping[str, tuple[LoopArray, ...]]
) -> LoopFunctions:
    """Replaces every launch whose kernel is known; kernels that launch others come after those.

    Args:
        module: prepared.
        registry: the rules.
        host: convention for launching loops.
        arrays: by symbol of a kernel what its arguments are.

    Returns:
        The loop functions.
    """
    flattener = _Flattener(module, registry, host, arrays)
    for function in module.defined_functions():
        flattener.visit(function)
    return {loop.function: loop for loop in flattener.loops.values() if loop is not None}


@dataclass(eq=False, slots=True)
class _Flattener:
    module: Module
    registry: Registry
    host: ParallelLoops
    arrays: Mapping[str, tuple[LoopArray, ...]]
    loops: dict[Function, ParallelLoop | None] = field(default_factory=dict)
    visited: dict[Function, None] = field(default_factory=dict)

    def visit(self, function: Function) -> None:
        """Replaces the launches in a function."""
        if function in self.visited:
            return
        self.visited[function] = None
        for call in [i for i in function.instructions() if isinstance(i, CallSite)]:
            kernel = _kernel_of(call, self.host.launch)
            if kernel is None:
                continue
            loop = self.loop_of(kernel)
            if loop is not None:
                _replace_launch(call, loop)

    def loop_of(self, kernel: Function) -> ParallelLoop | None:
        """The loop function of a kernel; None where the kernel is of another form."""
        if kernel not in self.loops:
            self.visit(kernel)
            arrays = self.arrays.get(kernel.name or "", ())
            slots = _slots_of(kernel, arrays)
            self.loops[kernel] = None
            if slots is not None:
                loop = ParallelLoop(_loop_function(self.module, kernel, slots, self.host.thread), tuple(slots), arrays)
                summarise(loop.function, loop.memory(), self.registry)
                self.loops[kernel] = loop
        return self.loops[kernel]


def _kernel_of(call: CallSite, launch: str) -> Function | None:
    """The kernel that a call launches, if it is a launch of a known one without extra data."""
    callee = call.callee
    if not isinstance(callee, Function) or callee.name != launch:
        return None
    kernel, _, _, _, data, *_ = call.arguments
    known = isinstance(kernel, Function) and not kernel.is_declaration and isinstance(data, ConstantNull)
    return kernel if known and isinstance(kernel, Function) else None


def _slots_of(kernel: Function, arrays: tuple[LoopArray, ...]) -> list[Slot] | None:
    """The slots a kernel reads or that describe its arrays, the schedule and its step first.

    None where it does more with its vectors than read slots.
    """
    if kernel.params[_DATA].users:
        return None
    found: dict[Slot, None] = {Slot(_ARGS, 0): None, Slot(_STEPS, 0): None}
    for extent, stride in (axis for array in arrays for axis in array.axes):
        found[Slot(_DIMS, 8 * extent)] = found[Slot(_STEPS, 8 * stride)] = None
    for vector in (_ARGS, _DIMS, _STEPS):
        loads = _loads_of(kernel.params[vector])
        if loads is None:
            return None
        wanted = types.PTR if vector == _ARGS else types.I64
        for load in loads:
            offset = offset_modulo(load.operands[0], None)
            if offset is None or load.type is not wanted or load.volatile:
                return None
            found[Slot(vector, offset)] = None
    # The number of chunks: it has a parameter of its own, in front of these (`CHUNKS`).
    found.pop(Slot(_DIMS, 0), None)
    first, second, *rest = found
    return [first, second, *sorted(rest, key=lambda slot: (slot.vector, slot.offset))]


def _loads_of(pointer: Parameter | GetElementPtr) -> list[Load] | None:
    """All loads through a pointer; None if it is used in another way."""
    found: list[Load] = []
    for user in pointer.users:
        match user:
            case Load():
                found.append(user)
            case GetElementPtr(operands=[base, *_]) if base is pointer:
                inner = _loads_of(user)
                if inner is None:
                    return None
                found += inner
            case _:
                return None
    return found


def _loop_function(module: Module, kernel: Function, slots: list[Slot], thread: str) -> Function:
    """A copy of a kernel that takes its slots as parameters, and its lane in place of the number of its thread."""
    kinds = [types.PTR if slot.vector == _ARGS else types.I64 for slot in slots]
    type_ = types.function_type(types.VOID, [types.I64, types.I64, types.I64, *kinds])
    names = ["lane", "threads", "chunks", "schedule", "step", *(_name_of(slot) for slot in slots[2:])]
    loop = module.define(f"{kernel.name}.loop", type_, names)
    loop.prefix, loop.attributes, loop.metadata = ("internal",), (PARALLEL,), kernel.metadata
    parameters = dict(zip(slots, loop.params[SCHEDULE:], strict=True))
    parameters[Slot(_DIMS, 0)] = loop.params[CHUNKS]
    null = ConstantNull(types.PTR)
    copies = clone_function_body(kernel, loop, dict.fromkeys(kernel.params, null))
    for vector in (_ARGS, _DIMS, _STEPS):
        for load in _loads_of(kernel.params[vector]) or ():
            offset = offset_modulo(load.operands[0], None)
            assert offset is not None
            _replace(copies[load], parameters[Slot(vector, offset)])
    for call in [i for i in loop.instructions() if isinstance(i, CallSite)]:
        if isinstance(call.callee, Function) and call.callee.name == thread:
            _replace(call, loop.params[LANE])
    _drop_unused_addresses(loop)
    return loop


def _name_of(slot: Slot) -> str:
    return f"{('array', 'extent', 'stride')[slot.vector]}.{slot.offset // 8}"


def _replace(inst: Value, value: Value) -> None:
    assert isinstance(inst, Instruction)
    replace_uses(inst, value)
    inst.erase()


def _drop_unused_addresses(function: Function) -> None:
    for block in function.blocks:
        for inst in reversed(list(block.instructions)):
            if isinstance(inst, GetElementPtr) and not inst.users:
                inst.erase()


def _replace_launch(call: CallSite, loop: ParallelLoop) -> None:
    """A call of the loop function instead, with the contents of the vectors at that moment."""
    _, *vectors, _, _, _, threads = call.arguments
    build = Builder.before(call)
    build.origin, build.metadata = call, call.metadata
    chunks = build.load(types.I64, vectors[_DIMS], align=8, name="chunks")
    given = [
        build.load(types.PTR if slot.vector == _ARGS else types.I64, address, align=8)
        for slot in loop.slots
        for address in [build.byte_offset(vectors[slot.vector], slot.offset) if slot.offset else vectors[slot.vector]]
    ]
    # Lane 0 of a loop function that nobody splits up does the whole work.
    build.call(loop.function, [const_int(types.I64, 0), threads, chunks, *given])
    call.erase()


def is_loop_function(value: Value | None) -> bool:
    """True if a function is the body of a parallel loop."""
    return isinstance(value, Function) and PARALLEL in value.attributes


def launches_of(module: Module) -> dict[Function, CallSite]:
    """The first call of each function of a parallel loop."""
    found: dict[Function, CallSite] = {}
    for function in module.defined_functions():
        for call in function.instructions():
            if isinstance(call, CallSite) and isinstance(call.callee, Function) and is_loop_function(call.callee):
                found.setdefault(call.callee, call)
    return found
