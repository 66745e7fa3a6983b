"""`Tape`: records operations of host code on a device, and reverses them."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from contextvars import Token
from dataclasses import replace
from types import TracebackType
from typing import Any

import numpy as np

from irad.cuda.arrays.watching import watched
from irad.cuda.calls.vectors import add, add_one, is_contiguous, on_vectors
from irad.cuda.devices.current import RECORDING, current_device
from irad.cuda.devices.device import ArrayView, Device, numpy_view
from irad.cuda.recording.operations import Saved
from irad.cuda.recording.record import Record, check_unchanged, view_of
from irad.cuda.recording.regions import Regions
from irad.cuda.recording.undo import copies
from irad.errors import SignatureError
from irad.frontend.calls.raising import public

# How a tape is reversed.


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
            "a cotangent is a host array, and the stream is captured in a CUDA graph",
            "pass a device array",
            "host data cannot be copied during a capture",
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
    """Present content of the memory that the reversal puts back to earlier states."""
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
            "only a single number needs no cotangent",
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
    """View of the real parts of an array of one element."""
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
            "only recorded arrays have derivatives",
        )
    return record.device.array(found, keeps=record.regions.holder(found) if found.size else None)


class Tape:
    """A recording of the kernels that host code launches, and of its copies to, from and within the device.

    Every array of floats that kernels take has a derivative, unless it is passed as ``irad.Const(array)``. Numbers are
    constants: put a number that needs a derivative into an array of one element. `backward` then computes the
    derivatives of the outputs with respect to everything that they were computed from.

    Arrays may be overwritten: what an operation overwrites is saved if it is needed again. While `backward` reverses an
    operation, memory is as it was before that operation; afterwards it is as it was when `backward` was called. Buffers
    and shadows come from a pool and go back to it: the second step of a loop allocates nothing.

    Changes that the tape does not see, such as assignments to elements or calls of other libraries, must not be made to
    arrays that it has seen. The executor checks that.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import cuda
        >>> @cuda.jit
        ... def square(x, y):
        ...     i = cuda.grid(1)
        ...     if i < x.size:
        ...         y[i] = x[i] * x[i]
        >>> @cuda.jit
        ... def total(y, out):
        ...     i = cuda.grid(1)
        ...     if i < y.size:
        ...         cuda.atomic.add(out, 0, y[i])
        >>> with irad.cuda.executor():
        ...     x, y, out = cuda.to_device(np.array([1.0, 2.0])), cuda.device_array(2), cuda.to_device(np.zeros(1))
        ...     with irad.cuda.Tape() as tape:
        ...         square[1, 32](x, y)
        ...         total[1, 32](y, out)
        ...     print(len(tape), tape.saved_bytes)
        ...     tape.backward(out)
        ...     print(tape.gradient(x).copy_to_host())
        ...     tape.reset()
        2 8
        [2. 4.]
    """

    def __init__(self) -> None:
        self._record = Record(current_device())
        self._finalizer = weakref.finalize(self, self._record.clear)
        self._finalizer.atexit = False
        self._token: Token[Any] | None = None
        self._watch = ExitStack()

    def __len__(self) -> int:
        """Number of operations that were recorded."""
        return len(self._record.operations)

    def __enter__(self) -> Tape:
        """Records until the end of the block."""
        _enter(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._token is not None
        RECORDING.reset(self._token)
        self._token = None
        self._watch.close()

    def reset(self) -> None:
        """Drops all records, so that the tape can be used again; arrays that `gradient` returned stay valid."""
        self._record.clear()

    @property
    def saved_bytes(self) -> int:
        """Bytes of memory that were saved because they were overwritten."""
        return sum(each.high - each.low for operation in self._record.operations for each in operation.saved)

    def backward(self, *outputs: Any) -> None:
        """Computes the derivatives with respect to everything that was recorded.

        Args:
            outputs: what is differentiated: an array of one element, whose cotangent is 1, or pairs of an array and its
                cotangent, an array of the same shape and dtype.

        Raises:
            SignatureError: an output is not an array, its cotangent does not fit, or the tape is still recording.
        """
        _backward(self, outputs)

    def gradient(self, array: Any) -> Any:
        """The derivative with respect to what was in an array when the tape first saw it, as an array of the device.

        It does not change any more, and holds no memory of the tape but its own.

        Args:
            array: any array that was recorded, or a part of one; arrays of the host that were copied as well.

        Raises:
            SignatureError: the tape has not seen the array, or `backward` was not called.
        """
        return _gradient(self, array)


@public
def _enter(tape: Tape) -> None:
    if RECORDING.get() is not None:
        raise SignatureError(
            "a tape is recording already",
            "leave its block first; one tape can record several blocks, one after the other",
            "operations recorded on two tapes would be reversed twice",
        )
    tape._watch.enter_context(watched(tape._record))
    tape._token = RECORDING.set(tape._record)


@public
def _backward(tape: Tape, outputs: tuple[Any, ...]) -> None:
    if tape._token is not None:
        raise SignatureError(
            "backward is called in the block of the tape",
            "call it after the block",
            "while the tape records, it would record its own reversal",
        )
    reverse(tape._record, outputs)


@public
def _gradient(tape: Tape, array: Any) -> Any:
    return gradient(tape._record, array)


# `value_and_grad` of a host function that launches kernels.


@public
def value_and_grad(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., tuple[float, Any]]:
    """The value and the gradient of a host function that launches kernels: it runs on a `Tape`, which is reversed.

    Args:
        f: a Python function; it returns an array of one element, of the device or copied to the host.
        argnums: the position of the argument with respect to which it is differentiated, an array, or a tuple of such.

    Returns:
        A callable with the parameters of ``f``, which gives ``(value, gradient)``. The gradient is an array of the
        device, of the shape of the argument; a tuple of these for a tuple of ``argnums``. Memory that the call needed
        is used again by the next one, that of the gradient when it is dropped.

    Raises:
        SignatureError: ``f`` does not return an array of one element, or does not use the argument.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from numba import cuda
        >>> @cuda.jit
        ... def squares(x, out):
        ...     i = cuda.grid(1)
        ...     if i < x.size:
        ...         cuda.atomic.add(out, 0, x[i] * x[i])
        >>> def loss(x):
        ...     out = cuda.to_device(np.zeros(1))
        ...     squares[1, 32](x, out)
        ...     return out
        >>> with irad.cuda.executor():
        ...     value, gradient = irad.cuda.value_and_grad(loss)(cuda.to_device(np.array([1.0, 2.0])))
        >>> value, gradient.copy_to_host()
        (5.0, array([2., 4.]))
    """
    if not callable(f):
        raise SignatureError(
            f"irad.cuda.value_and_grad is given {f!r}",
            "pass a Python function that launches kernels",
            "the kernels that it launches are recorded while it runs",
        )

    @functools.wraps(f)
    def value_and_gradient(*args: Any, **kwargs: Any) -> tuple[float, Any]:
        return _run(f, argnums, args, kwargs)

    return value_and_gradient


@public
def _run(f: Callable[..., Any], argnums: int | Sequence[int], args: Any, kwargs: Any) -> tuple[float, Any]:
    with Tape() as tape:
        loss = f(*args, **kwargs)
    try:
        tape.backward(loss)
        host = loss if type(loss) is np.ndarray or not hasattr(loss, "copy_to_host") else loss.copy_to_host()
        value = float(host.item() if hasattr(host, "item") else host)
        if isinstance(argnums, int):
            return value, tape.gradient(args[argnums])
        return value, tuple(tape.gradient(args[position]) for position in argnums)
    finally:
        tape.reset()  # tracebacks of what was compiled may hold the tape until the next garbage collection
