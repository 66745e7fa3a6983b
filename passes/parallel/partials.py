"""The table of a parallel loop's partial shadows, filled when its reverse is launched.

For each array that lanes add to, and each that they only take from, an entry as ``irad/backend/runtime/partials.ll``
reads it: where the array's shadow lies, from the strides and extents that the loop function got, and how lanes use it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.values import Value, const_int
from irad.passes.parallel.flatten import ParallelLoop
from irad.passes.parallel.modes import WINDOW_SIZE, SharingMode
from irad.passes.program import DerivedFunctions
from irad.passes.unit import Unit
from irad.runtime_layouts import PARTIAL

_KINDS: Mapping[SharingMode, int] = {
    SharingMode.WINDOW: 0,
    SharingMode.PRIVATE: 1,
    SharingMode.DIRECT: 2,
    SharingMode.WRITTEN_WINDOW: 3,
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
