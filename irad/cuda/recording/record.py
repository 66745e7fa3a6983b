"""Record of a tape, and the recording of launches and copies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irad.api.annotations import Const, Reverse
from irad.cuda.calls.annotated import AnnotatedCall, ArrayPart
from irad.cuda.calls.compiled import accesses_of
from irad.cuda.calls.flatten import Primal, array_of, flat_of, name_of, part_of, primal_of
from irad.cuda.calls.memory import check_constants
from irad.cuda.derivatives import derivative_kernel
from irad.cuda.devices.current import RECORDING
from irad.cuda.devices.device import ArrayView, Device, Launch, handle_of, numpy_view
from irad.cuda.kernels import run_kernel
from irad.cuda.recording.operations import LaunchOperation, Operation, copied
from irad.cuda.recording.regions import Regions
from irad.cuda.recording.undo import UndoLog
from irad.cuda.recording.unseen import Unseen
from irad.errors import ChangedBufferError, SignatureError, UnsupportedError
from irad.frontend.values.tree import LeafKind
from irad.message import with_article
from irad.passes.request import ParameterKind


@dataclass
class Record:
    """Content of a tape, in an object of its own, so that it can be freed when the tape is gone."""

    device: Device
    operations: list[Operation] = field(default_factory=list)
    streams: list[Any] = field(default_factory=list)
    log: UndoLog = field(init=False)
    regions: Regions | None = None
    unseen: Unseen | None = None

    def __post_init__(self) -> None:
        self.log = UndoLog(self.device)

    def check_seen(self, name: str, array: Any, view: ArrayView) -> None:
        """Refuses an array that something unseen has made while the tape records, which would be a constant to it.

        Raises:
            UnsupportedError: it is such an array.
        """
        origin = self.unseen.origin(array, view) if self.unseen is not None and view.size else None
        if origin is not None and not self.log.is_touched(view):
            raise UnsupportedError(
                f"{name} was created while the tape records, by an operation that it does not see{origin}",
                "(a) compute it with functions of arrays of the device that have a rule, or in kernels, or (b) "
                "irad.Const(array), for a constant, or (c) make it before the tape's block",
                "the tape would treat it as constant, whatever it was computed from",
            )

    @property
    def stream(self) -> int:
        """On which everything is reversed."""
        used = set(self.streams)
        return used.pop() if len(used) == 1 else 0

    def clear(self) -> None:
        """Gives all buffers back."""
        for operation, stream in zip(self.operations, self.streams, strict=True):
            for saved in operation.saved:
                self.device.pool.give(saved.buffer, stream)
        self.operations, self.streams, self.log = [], [], UndoLog(self.device)
        self.forget_gradients()

    def forget_gradients(self) -> None:
        """Gives the shadows back."""
        if self.regions is not None:
            self.regions.release()
            self.regions = None


def current_record() -> Record | None:
    """That of the tape that records, if any."""
    found: Record | None = RECORDING.get()
    return found


def record_launch(record: Record, kernel: Any, launch: Launch, arguments: tuple[Any, ...]) -> None:
    """Runs a kernel and records it."""
    device = record.device
    values = tuple(each.value if isinstance(each, Const) else each for each in arguments)
    constant = {i for i, each in enumerate(arguments) if isinstance(each, Const)}
    primal = primal_of(kernel, device, values)
    found = accesses_of(kernel, primal.program.module)
    call = _unannotated(device, primal, values, constant, found.written)
    operation = LaunchOperation(derivative_kernel(Reverse, kernel), launch, call, found.written)
    if operation.views:
        check_constants(call.arrays)
        operation.compile()
    views = [part.view for part in call.arrays]
    for argument in primal.arguments:
        for leaf in argument.leaves:
            if leaf.has_memory and argument.position not in constant and leaf.data_index in found.read:
                value = values[argument.position]
                view = array_of(device, argument, leaf, value)
                record.check_seen(name_of(argument, leaf), part_of(value, leaf), view)
    for part in call.arrays:
        check_numbers(record, part.name, [part.view])
        check_unchanged(record, part.name, [part.view])
    changes = [(part.view, part.index in found.read) for part in call.arrays if part.index in found.written]
    operation.saved = record.log.save(changes, launch.stream)
    try:
        run_kernel(device, kernel, launch, values)
    except Exception:
        if primal.program.raises:  # what its threads have written has no derivative: reversing it raises again
            append(record, operation, views, launch.stream)
        raise
    append(record, operation, views, launch.stream)


@contextmanager
def recorded_copy(to: Any, source: Any, stream: Any) -> Iterator[None]:
    """Records the copy that is done in the block, if a tape records."""
    record = current_record()
    if record is None:
        yield
        return
    views = view_of(record.device, to), view_of(record.device, source)
    operation = copied(*views, is_first=not record.log.is_touched(views[0]))
    check_numbers(record, "an array that is copied", views)
    check_unchanged(record, "the source of a copy", views[1:])
    handle = handle_of(stream)
    operation.saved = record.log.save([(views[0], False)], handle)
    yield
    append(record, operation, views, handle)


def refuse_assignment() -> None:
    """Refuses an assignment to elements of an array of Numba's while a tape records."""
    if current_record() is not None:
        raise UnsupportedError(
            "a tape does not record assignments to elements of Numba's device arrays",
            "(a) assign in a kernel, or (b) array.copy_to_device(values), or (c) to the CuPy array of the same memory, "
            "cupy.asarray(array), or (d) before the tape's block",
            "earlier operations would be reversed with values other than those they used",
        )


def append(record: Record, operation: Operation, views: Sequence[ArrayView], stream: Any) -> None:
    """Adds an operation that has run, and notes which memory it has used."""
    record.operations.append(operation)
    record.streams.append(stream)
    record.log.touch(views)
    record.log.note(views)


def _unannotated(
    device: Device, primal: Primal, values: tuple[Any, ...], constant: set[int], written: frozenset[int]
) -> AnnotatedCall:
    """The call of a kernel in which every array of floats has a derivative, but for those that are constant."""
    call = AnnotatedCall(primal, values, 1, flat_of(device, primal, values), [ParameterKind.CONST] * primal.count)
    for argument, value in zip(primal.arguments, values, strict=True):
        for leaf in argument.leaves:
            if leaf.has_memory:
                view = array_of(device, argument, leaf, value)
                is_constant = argument.position in constant
                if leaf.kind is LeafKind.INERT and view.dtype.kind in "fc" and not is_constant:
                    raise _without_derivative(name_of(argument, leaf), view)
                if leaf.kind is not LeafKind.INERT and is_constant and leaf.data_index in written:
                    raise _written_constant(name_of(argument, leaf))
                active = leaf.kind is not LeafKind.INERT and not is_constant and bool(view.size)
                part = ArrayPart(name_of(argument, leaf), leaf.data_index, view, (), active)
                call.arrays.append(part)
                if active:
                    call.kinds[leaf.data_index] = ParameterKind.SHADOW
    return call


def _without_derivative(name: str, view: ArrayView) -> SignatureError:
    return SignatureError(
        f"{name} is an array of {view.dtype}, which has no derivative",
        f"(a) use float32 or float64, or (b) irad.Const({name})",
        "irad differentiates numbers in single and double precision",
    )


def _written_constant(name: str) -> SignatureError:
    return SignatureError(
        f"{name} is irad.Const, and the kernel may write to it",
        f"pass {name} without an annotation",
        "the previous contents of the array would be overwritten and lose their derivative",
    )


def check_unchanged(record: Record, name: str, views: Sequence[ArrayView] | None) -> None:
    """Refuses arrays that something else has changed since the tape saw them last, as far as the device can tell."""
    if record.log.changed(views):
        raise ChangedBufferError(
            f"{name} was changed after its last use on the tape, by an operation that the tape does not record",
            "(a) change it in a kernel or by a copy, inside the tape's block, or (b) use another array",
            "recorded operations would be reversed with values other than those they used",
        )


def check_numbers(record: Record, name: str, views: Iterable[ArrayView]) -> None:
    """Refuses arrays in memory that the tape has seen as numbers of another type, if either are floats."""
    if any(map(record.log.is_other_number, views)):
        raise UnsupportedError(
            f"{name} is memory that the tape has recorded as numbers of another type",
            "(a) convert the numbers, with astype, or (b) change them in a kernel",
            "the bytes of a float have no derivative",
        )


def view_of(device: Device, array: Any) -> ArrayView:
    """An array of the device or of the host.

    Raises:
        SignatureError: it is neither.
    """
    found = device.view(array)
    if found is None and isinstance(array, np.ndarray):
        found = numpy_view(array)
    if found is None:
        raise SignatureError(
            f"{with_article(type(array).__name__)} is not an array",
            "pass a device array",
            "a tape records device memory",
        )
    return found
