"""Runs the derivative of a kernel: shadows, sums of returned cotangents. Launches with a tape are those of `slices`.

A launch without one does not wait until it is done, unless a number is returned.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from irad.backend.executor.launch import Extent
from irad.cuda.calls.annotated import AnnotatedCall, ArrayPart, NumberPart
from irad.cuda.calls.compiled import accesses_of
from irad.cuda.calls.flatten import name_of, part_of
from irad.cuda.calls.memory import copied, extents_of, merged
from irad.cuda.calls.raising import raising
from irad.cuda.calls.slices import TapedLaunch, TapeUse, prepare_capture, spoil_if_failed
from irad.cuda.calls.watching import WatchedLaunch
from irad.cuda.devices.device import ArrayView, Device, Launch
from irad.cuda.devices.pool import Buffer
from irad.errors import SignatureError
from irad.kernel.derive import KernelDerivative
from irad.kernel.wrapper import report_words

_WORD: Final = 8
_SHADOWS: Final = {
    (False, False): "the memory given for the derivative with respect to",
    (False, True): "the derivative with respect to",
    (True, False): "the tangent of",
    (True, True): "the tangent of",
}
"""Descriptions of the contents of shadows, by mode (forward or not) and by time (launch done or not)."""
_SHADOW_ALIGNMENT: Final = 8


@dataclass(frozen=True, slots=True)
class Run:
    """One launch of a derivative.

    Attributes:
        kernel: the dispatcher.
        call: its annotated arguments.
        derivative: the kernel to launch.
        device: where.
        launch: as the user wrote it.
        tape: tape of this derivative.
        metered: makes the derivative that counts what is saved.
        limit: the most bytes of the tape, None where there is no limit.
        made: shadows of workspace, by its name.
    """

    kernel: Any
    call: AnnotatedCall
    derivative: KernelDerivative
    device: Device
    launch: Launch
    tape: TapeUse
    metered: Callable[[], KernelDerivative]
    limit: int | None = None
    made: dict[str, tuple[ArrayView, ...]] = field(default_factory=dict)

    def run(self, *, forward: bool) -> tuple[Any, ...]:
        """Runs it.

        Returns:
            The derivatives with respect to numbers that are returned: for each argument, None where there is none.
        """
        with ExitStack() as stack:
            if self.words and self.device.capture(self.launch.stream):
                raise SignatureError(
                    "the derivative with respect to a number is returned, and the launch is captured in a CUDA graph",
                    "irad.Duplicated(x, d), with an array of the device with one element",
                    "a captured launch has not run when it returns",
                )
            sums = self.lend(stack, _WORD * self.words) if self.words else None
            if sums is not None:
                self.device.clear(sums.address, _WORD * self.words, self.launch.stream)
            for part in self.call.arrays:
                if part.is_workspace:
                    self.made[part.name] = tuple(self.scratch(stack, part) for _ in range(self.call.width))
            beside = self.beside(sums, forward=forward)
            watched = self.watched(forward=forward)
            if watched is not None:
                stack.callback(watched.close)
            self.execute(stack, beside, sums, watched)
            returned: tuple[Any, ...] = (None,) * len(self.call.annotations)
            if sums is not None:
                returned = self.returned(self.device.download(sums.address, _WORD * self.words, self.launch.stream))
            if watched is not None:
                watched.close()
                watched.conclude(self.debug_values(after=True, forward=forward, returned=returned))
        return returned

    def lend(self, stack: ExitStack, size: int) -> Buffer:
        """A buffer until the launch is done."""
        return stack.enter_context(self.device.pool.lent(size, self.launch.stream))

    def scratch(self, stack: ExitStack, part: ArrayPart) -> ArrayView:
        """A shadow of zeros for workspace."""
        low, high = part.view.extent
        buffer = self.lend(stack, high - low)
        self.device.clear(buffer.address, high - low, self.launch.stream)
        return replace(part.view, address=buffer.address + part.view.address - low, owner=buffer)

    # --- arguments ----------------------------------------------------------------------------------------------------

    @property
    def returned_numbers(self) -> list[NumberPart]:
        """Numbers whose cotangent is returned."""
        return [number for number in self.call.numbers if not number.tangents and not number.places]

    @property
    def words(self) -> int:
        """Number of floats that are returned."""
        return sum(number.leaf.float_count for number in self.returned_numbers) * self.call.width

    def shadows_of(self, part: ArrayPart) -> tuple[ArrayView, ...]:
        """Shadows of a part, one for each direction."""
        return self.made[part.name] if part.is_workspace else part.shadows

    def beside(self, sums: Buffer | None, *, forward: bool) -> list[int | float]:
        """Arguments after those of the primal: for each direction shadows, then cotangents or tangents of numbers."""
        found: list[int | float] = []
        next_word = sums.address if sums is not None else 0
        for lane in range(self.call.width):
            found.extend(self.shadows_of(part)[lane].address for part in self.call.arrays if part.is_active)
            for number in self.call.numbers:
                if forward:
                    found.extend(_floats(number.tangents[lane], number.leaf.float_count))
                elif number.places:
                    size = self.call.primal.dtype_of(number.leaf).itemsize // number.leaf.float_count
                    start = number.places[lane].address
                    found.extend(start + size * i for i in range(number.leaf.float_count))
                else:
                    found.extend(next_word + _WORD * i for i in range(number.leaf.float_count))
                    next_word += _WORD * number.leaf.float_count
        return found

    def returned(self, found: bytes) -> tuple[Any, ...]:
        """The derivatives as the annotations of the arguments want them."""
        lanes: list[dict[tuple[int, tuple[int, ...]], Any]] = []
        at = 0
        for _ in range(self.call.width):
            lanes.append({})
            for number in self.returned_numbers:
                dtype, count = self.call.primal.dtype_of(number.leaf), number.leaf.float_count
                format_ = "f" if dtype.itemsize // count == 4 else "d"
                floats = [struct.unpack_from(format_, found, at + _WORD * i)[0] for i in range(count)]
                value = dtype.type(complex(*floats) if count == 2 else floats[0])
                lanes[-1][number.position, number.leaf.path] = value.item() if dtype.itemsize == 8 * count else value
                at += _WORD * count
        return tuple(self.result(position, each, lanes) for position, each in enumerate(self.call.annotations))

    def result(self, position: int, annotation: Any, lanes: Sequence[dict[Any, Any]]) -> Any:
        """The entry for one argument."""
        if not any(key[0] == position for key in lanes[0]):
            return None
        width = len(lanes)
        is_batch = isinstance(getattr(annotation, "shadow", None), tuple) and width > 1
        shadows = (
            [None] * width
            if not hasattr(annotation, "shadow")
            else (list(annotation.shadow) if is_batch else [annotation.shadow])
        )
        made = [
            _structure(annotation.value, shadow, (), {key[1]: v for key, v in lane.items() if key[0] == position})
            for shadow, lane in zip(shadows, lanes, strict=True)
        ]
        return tuple(made) if width > 1 else made[0]

    # --- the launch ---------------------------------------------------------------------------------------------------

    def watched(self, *, forward: bool) -> WatchedLaunch | None:
        """State that debug mode needs, if the derivative is watched."""
        if self.derivative.derivative.table is None:
            return None
        before = self.debug_values(after=False, forward=forward)
        return WatchedLaunch(self.call.primal.name, self.derivative, self.launch, before)

    def debug_values(self, *, after: bool, forward: bool, returned: Sequence[Any] = ()) -> list[tuple[str, Any]]:
        """Values that debug mode looks at, before or after the launch: arguments, shadows, returned derivatives."""
        when, word = " after the call" if after else "", _SHADOWS[forward, after]
        arrays = [(f"the argument {part.name}{when}", part.view) for part in self.call.arrays]
        arrays += [(f"{word} {part.name}", each) for part in self.call.arrays for each in part.shadows]
        found = [(name, self.device.array(view)) for name, view in arrays]
        if after:
            names = (argument.name for argument in self.call.primal.arguments)
            return [*found, *((f"{word} {name}", each) for name, each in zip(names, returned, strict=True))]
        for argument, annotation in zip(self.call.primal.arguments, self.call.annotations, strict=True):
            numbers = (leaf for leaf in argument.leaves if not leaf.has_memory)
            found += [(f"the argument {name_of(argument, each)}", part_of(annotation.value, each)) for each in numbers]
        return [*found, *((f"{word} {number.name}", number.tangents) for number in self.call.numbers)]

    def execute(
        self, stack: ExitStack, beside: list[int | float], sums: Buffer | None, watched: WatchedLaunch | None
    ) -> None:
        """Launches the kernel; if it raises, derivatives are as they were before."""
        with raising(self.device, self.call.primal, self.launch.stream, self.written_shadows) as record:
            arguments = [*self.call.flat, *(each.address for each in record), *beside]
            self.send(stack, arguments, [*self.memory(sums), *record], sums, watched)

    def send(
        self,
        stack: ExitStack,
        arguments: list[int | float],
        memory: list[Extent],
        sums: Buffer | None,
        watched: WatchedLaunch | None,
    ) -> None:
        """Launches the kernel, with a tape where it needs one."""
        shared = self.launch.shared
        if self.derivative.shared_copies > 1 and shared % _SHADOW_ALIGNMENT:
            raise SignatureError(
                f"{shared} bytes of dynamic shared memory are not a multiple of {_SHADOW_ALIGNMENT}",
                f"pass {-(-shared // _SHADOW_ALIGNMENT) * _SHADOW_ALIGNMENT}",
                "the shadows of shared arrays follow them in memory and need the same alignment",
            )
        launch = replace(self.launch, shared=self.derivative.dynamic_shared(shared))
        if not self.derivative.uses_tape:
            report = self.report_address(stack, watched, memory)
            self.device.launch(self.derivative.module, launch, [*arguments, 0, 0, report, shared], memory)
            return
        shadows, is_captured = self.written_shadows, bool(self.device.capture(launch.stream))
        lend = partial(self.lend, stack)
        taped = TapedLaunch(
            self.derivative,
            self.metered,
            self.call.primal.program.source,
            self.device,
            launch,
            arguments,
            shared,
            memory,
            [] if is_captured else copied(self.device, self.changed(sums), lend, launch.stream),
            lend,
            self.tape,
            self.limit,
            watched,
        )
        if is_captured:
            spoil_if_failed(self.device, self.written, shadows, taped.captured(), launch.stream)
        else:
            prepare_capture(self.device, shadows, launch.stream)
            taped.run()

    def report_address(self, stack: ExitStack, watched: WatchedLaunch | None, memory: list[Extent]) -> int:
        """The address of the report of a launch without a tape: 0, but in debug mode, where it names the call."""
        if watched is None:
            return 0
        length = _WORD * report_words(self.derivative.derivative)
        report = self.lend(stack, length)
        memory.append(Extent(report.address, length, "the report", _WORD))
        words = [0] * (length // _WORD - 1) + [watched.opened()]
        self.device.upload(report.address, struct.pack(f"<{len(words)}q", *words), self.launch.stream)
        return report.address

    def memory(self, sums: Buffer | None) -> list[Extent]:
        """All that the kernel may touch but the tape."""
        found = [_extent(part.name, part.view) for part in self.call.arrays]
        found += [_extent(f"the shadow of {p.name}", each) for p in self.call.arrays for each in self.shadows_of(p)]
        found += [_extent(f"the derivative of {n.name}", each) for n in self.call.numbers for each in n.places]
        return [*found, Extent(sums.address, _WORD * self.words, "derivatives", _WORD)] if sums is not None else found

    @property
    def written(self) -> list[ArrayView]:
        """The arrays that the kernel may write to."""
        written = accesses_of(self.kernel, self.call.primal.program.module).written
        return [part.view for part in self.call.arrays if part.index in written]

    @property
    def written_shadows(self) -> list[ArrayView]:
        """The arrays that derivatives are added to."""
        views = [each for part in self.call.arrays for each in self.shadows_of(part)]
        return views + [each for number in self.call.numbers for each in number.places]

    def changed(self, sums: Buffer | None) -> list[tuple[int, int]]:
        """The extents of memory that the launch may change, each once."""
        found = extents_of((*self.written, *self.written_shadows))
        return merged([*found, (sums.address, sums.address + _WORD * self.words)] if sums is not None else found)


def _extent(name: str, view: ArrayView) -> Extent:
    low, high = view.extent
    return Extent(low, high - low, name, view.dtype.itemsize)


def _floats(tangent: Any, count: int) -> tuple[float, ...]:
    return (tangent.real, tangent.imag) if count == 2 else (tangent,)


def _structure(value: Any, shadow: Any, path: tuple[int, ...], numbers: dict[tuple[int, ...], Any]) -> Any:
    """The derivative in the structure of the value: the shadow's arrays, numbers, None without a derivative."""
    if path in numbers:
        return numbers[path]
    if not isinstance(value, tuple):
        return shadow if hasattr(value, "shape") else None
    below = [None] * len(value) if shadow is None else shadow
    items = [
        _structure(each, beside, (*path, i), numbers) for i, (each, beside) in enumerate(zip(value, below, strict=True))
    ]
    return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
