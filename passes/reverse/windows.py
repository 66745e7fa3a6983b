"""Access to shadows that the lanes of a parallel loop share, in the reverse sweep of a lane.

The lane's frame begins with a window for each array that it shares (``irad/backend/runtime/partials.ll``). What the
window says is loaded once, at the start of the sweep.
"""

from __future__ import annotations

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.values import ConstantNull, Parameter, Value, const_int
from irad.passes.parallel.modes import WINDOW_SIZE
from irad.passes.parallel.sharing import move_of
from irad.passes.reverse.sweep import Sweep
from irad.passes.runtime import access_function, move_function
from irad.records import dataclass
from irad.runtime_layouts import WINDOW


@dataclass(frozen=True, slots=True)
class Window:
    """A lane's window of an array; the array holds numbers of one type."""

    sweep: Sweep
    array: Parameter
    number: types.Type
    place: Value
    start: Value
    size: Value
    delta: Value

    def add(self, pointer: Value, amount: Value) -> None:
        """Adds to the shadow of a pointer's target."""
        self._call("add", amount.type, pointer, amount)

    def take(self, pointer: Value, type_: types.Type) -> Value:
        """The cotangent in the shadow of a pointer's target, which is zero afterwards."""
        return self._call("take", type_, pointer)

    def _call(self, action: str, type_: types.Type, pointer: Value, *more: Value) -> Value:
        """An access; what it does to window and partial shadow is apart from all else, as that of a shadow is."""
        build = self.sweep.build
        callee = access_function(build.module, action, type_)
        call = build.call(callee, [self.place, self.start, self.size, self.delta, self.sweep.shadow(pointer), *more])
        call.metadata = {**call.metadata, **self.sweep.scopes_of(pointer)}
        return call

    def partial(self, pointer: Value) -> Value:
        """Address of the lane's partial shadow, for code that adds to all of it.

        A pointer that may point to memory of the lane's own, too, is looked at: there the shadow itself is meant.
        """
        build, shadow, points_to = self.sweep.build, self.sweep.shadow(pointer), self.sweep.augmented.unit.points_to
        if not points_to.mask(pointer) & ~points_to.mask(self.array):
            return build.byte_offset(shadow, self.delta)
        low, extent = (_field(build, self.place, field) for field in ("low", "extent"))
        inside = build.icmp("ult", build.sub(build.ptrtoint(shadow, types.I64), low), extent)
        return build.byte_offset(shadow, build.select(inside, self.delta, const_int(types.I64, 0)))


def reverse_shared_move(sweep: Sweep, call: CallSite) -> bool:
    """Emits the adjoint of a copy or fill of memory that lanes share, number by number.

    Returns:
        False if the call is not one.
    """
    move = move_of(call)
    if move is None or not sweep.is_active(move.into):
        return False
    pointers = [move.into]
    if move.source is not None and sweep.is_active(move.source):
        pointers.append(move.source)
    windows = [window_of(sweep, pointer) for pointer in pointers]
    found = next((window for window in windows if window is not None), None)
    if found is None:
        return False
    given: list[Value] = []
    mask = 0
    for window, pointer in zip(windows, pointers, strict=True):
        given += [*_words(window), sweep.shadow(pointer)]
        mask |= sweep.augmented.unit.points_to.mask(pointer)
    build = sweep.build
    callee = move_function(build.module, found.number, is_copy=len(pointers) == 2)
    made = build.call(callee, [*given, build.zext(sweep.value(move.size), types.I64)])
    made.metadata = {**made.metadata, **sweep.shadow_scopes(mask)}
    return True


def _words(window: Window | None) -> list[Value]:
    """Arguments of run-time functions for a window; for memory of the lane's own, one that holds everything."""
    if window is not None:
        return [window.place, window.start, window.size, window.delta]
    return [ConstantNull(types.PTR), *(const_int(types.I64, n) for n in (0, -1, 0))]


def window_of(sweep: Sweep, pointer: Value) -> Window | None:
    """The window of the array that a pointer points to; None if lanes do not share it."""
    unit = sweep.augmented.unit
    for param, index in sweep.lane.augmented.windows.items():
        if unit.points_to.mask(pointer) & unit.points_to.mask(param):
            if index not in sweep.windows:
                sweep.windows[index] = _load(sweep, index)
            return Window(sweep, param, _number_in(sweep, param), *sweep.windows[index])
    return None


def _number_in(sweep: Sweep, param: Parameter) -> types.Type:
    unit = sweep.augmented.unit
    layout = unit.memory_types.layout(unit.points_to.mask(param))
    kind = layout.lone_float() if layout is not None else None
    assert kind is not None, "only arrays of plain numbers have windows"
    return types.DOUBLE if kind == "double" else types.FLOAT


def _load(sweep: Sweep, index: int) -> tuple[Value, Value, Value, Value]:
    block = sweep.allocas
    ended = bool(block.instructions) and bool(block.instructions[-1].targets)
    build = Builder.before(block.instructions[-1]) if ended else Builder(block)
    place = build.byte_offset(sweep.frame_pointer, WINDOW_SIZE * index)
    start, size, delta = (_field(build, place, field) for field in ("start", "size", "delta"))
    return place, start, size, delta


def _field(build: Builder, window: Value, field: str) -> Value:
    return build.load(types.I64, build.byte_offset(window, WINDOW.offset(field)), align=8)
