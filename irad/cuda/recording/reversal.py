"""How a tape is reversed."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irad.cuda.calls.vectors import add, add_one, is_contiguous, on_vectors
from irad.cuda.devices.device import ArrayView, Device, numpy_view
from irad.cuda.recording.operations import Saved
from irad.cuda.recording.record import Record, check_unchanged, view_of
from irad.cuda.recording.regions import Regions
from irad.cuda.recording.undo import copies
from irad.errors import SignatureError


def reverse(record: Record, outputs: tuple[Any, ...]) -> None:
    """Computes the derivatives of outputs: arrays of one element, or pairs of an array and its cotangent.

    It runs on the stream on which everything was recorded, or on the default stream if there were several. Except in a
    capture, it waits before and after.
    """
    record.forget_gradients()
    device, stream = record.device, record.stream
    is_captured = bool(device.capture(stream))
    seeds = [_seed(device, each) for each in outputs]
    check_unchanged(record, "an array", None)
    if is_captured and any(each is not None and device.view(each) is None for _, each in seeds):
        raise SignatureError(
            "a cotangent is an array of the host, and the stream is captured in a CUDA graph",
            "pass an array of the device",
            "data of the host cannot be copied in a capture",
        )
    if not is_captured:
        device.synchronize()
    views = [view for operation in record.operations for view in operation.views]
    regions = record.regions = Regions(device, [*views, *(view for view, _ in seeds)], stream)
    for view, cotangent in seeds:
        _put(device, regions.shadow(view), cotangent, stream)
    reached = {regions.of(view) for view, _ in seeds}
    try:
        _reverse_all(record, regions, reached)
    except BaseException:
        record.forget_gradients()  # a part of them would be wrong numbers
        raise
    if not is_captured:
        device.synchronize()


def _reverse_all(record: Record, regions: Regions, reached: set[Any]) -> None:
    device, stream = record.device, record.stream
    final = _content_now(record)
    try:
        for operation in reversed(record.operations):
            _restore(device, operation.saved, stream)
            if any(regions.of(view) in reached for view in operation.written):
                operation.reverse(device, regions, stream)
                reached |= {regions.of(view) for view in operation.views}
                if operation.runs_again:
                    _restore(device, operation.saved, stream)
    finally:
        _restore(device, final, stream)
        for each in final:
            device.pool.give(each.buffer, stream)


def _restore(device: Device, saved: Sequence[Saved], stream: int) -> None:
    for each in saved:
        each.restore(device, stream)


def _content_now(record: Record) -> list[Saved]:
    """What is in the memory that the reversal puts back to earlier states."""
    extents = [(each.low, each.high) for operation in record.operations for each in operation.saved]
    return copies(record.device, extents, record.stream)


def _seed(device: Device, output: Any) -> tuple[ArrayView, Any]:
    """An array, and its cotangent."""
    array, cotangent = output if isinstance(output, tuple) else (output, None)
    view = view_of(device, array)
    if cotangent is None and view.size != 1:
        raise SignatureError(
            f"an output has the shape {view.shape}, and no cotangent",
            "(a) tape.backward((y, dy)), with the derivative of the result with respect to y, or (b) an array of one "
            "element, for a loss",
            "only a single number is differentiated by itself",
        )
    if cotangent is None:
        return view, None
    if isinstance(cotangent, np.ndarray) and cotangent.shape == view.shape and view.strides and is_contiguous(view):
        cotangent = _in_order_of(view, cotangent)
    given = view_of(device, cotangent)
    alike = [(each.shape, each.dtype, each.relevant_strides, is_contiguous(each)) for each in (view, given)]
    if alike[0] != alike[1] or not is_contiguous(view):
        raise SignatureError(
            f"the cotangent is {given.dtype}{list(given.shape)}, and the output {view.dtype}{list(view.shape)}",
            "pass contiguous arrays of the same shape, dtype and order",
            "the cotangent holds a number for each element of the output",
        )
    return view, cotangent


def _in_order_of(view: ArrayView, array: Any) -> Any:
    """An array of the host with its elements in the order of another array."""
    order = sorted(range(array.ndim), key=lambda axis: -abs(view.strides[axis]))
    back = sorted(range(array.ndim), key=lambda axis: order[axis])
    return np.ascontiguousarray(np.asarray(array).transpose(order)).transpose(back)


def _put(device: Device, shadow: ArrayView, cotangent: Any, stream: int) -> None:
    """Adds a cotangent to a shadow; None stands for 1."""
    if cotangent is None:
        on_vectors(device, add_one, _real_part(shadow), stream=stream)
        return
    found = device.view(cotangent)
    if found is not None:
        on_vectors(device, add, shadow, found, stream=stream)
        return
    host = numpy_view(cotangent)
    with device.pool.lent(cotangent.nbytes, stream) as buffer:
        low, high = host.extent
        device.upload(buffer.address, ctypes.string_at(low, high - low), stream)
        on_vectors(device, add, shadow, replace(host, address=buffer.address + host.address - low), stream=stream)


def _real_part(view: ArrayView) -> ArrayView:
    """Of an array of one element."""
    return replace(view, dtype=view.dtype.type(0).real.dtype)


def gradient(record: Record, array: Any) -> Any:
    """The derivative with respect to an array."""
    if record.regions is None:
        raise SignatureError(
            "there are no derivatives yet",
            "call tape.backward(loss) first",
            "they are computed by the reverse sweep",
        )
    found = record.regions.derivative(view_of(record.device, array))
    if found is None:
        raise SignatureError(
            "the tape has not seen this array",
            "pass an array that a recorded kernel took, and not as irad.Const, or a part of one",
            "derivatives are with respect to what was recorded",
        )
    return record.device.array(found, keeps=record.regions.holder(found) if found.size else None)
