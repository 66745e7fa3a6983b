"""`Tape`: what host code does on a device is recorded, and reversed."""

from __future__ import annotations

import weakref
from contextlib import ExitStack
from contextvars import Token
from types import TracebackType
from typing import Any

from irad.cuda.arrays.watching import watched
from irad.cuda.devices.current import RECORDING, current_device
from irad.cuda.recording.record import Record
from irad.cuda.recording.reversal import gradient, reverse
from irad.errors import SignatureError
from irad.frontend.calls.raising import public


class Tape:
    """Records what host code does on the device: launches of kernels, and copies to, from and within the device.

    Every array of floats that kernels take has a derivative, unless it is passed as ``irad.Const(array)``; numbers are
    constants: what shall have a derivative is in an array, of one element perhaps. `backward` then gives the
    derivatives of what was computed with respect to everything that it was computed from.

    Arrays may be overwritten: what an operation overwrites is saved if it is needed again. While `backward` reverses an
    operation, memory is as it was before it; afterwards it is as it was when `backward` was called. Buffers and shadows
    come from a pool and go back to it: the second step of a loop allocates nothing.

    What the tape does not see, such as assignments to elements or other libraries, must not change arrays that it has
    seen. On the executor that is checked.

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
        ...     tape.backward(out)
        ...     tape.gradient(x).copy_to_host()
        array([2., 4.])
    """

    def __init__(self) -> None:
        self._record = Record(current_device())
        self._finalizer = weakref.finalize(self, self._record.clear)
        self._finalizer.atexit = False
        self._token: Token[Any] | None = None
        self._watch = ExitStack()

    def __len__(self) -> int:
        """How many operations it has recorded."""
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
        """Forgets everything; arrays that `gradient` gave stay as they are."""
        self._record.clear()

    @property
    def saved_bytes(self) -> int:
        """Bytes of memory that was saved because it was overwritten."""
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
            "what is recorded on two tapes would be reversed twice",
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
