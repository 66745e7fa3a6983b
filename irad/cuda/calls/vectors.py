"""Kernels of irad's own on contiguous arrays, as vectors of real numbers."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numba import cuda

from irad.cuda.calls.flatten import primal_of
from irad.cuda.devices.device import ArrayView, Device, Launch
from irad.cuda.kernels import dispatcher_of, run_kernel

_THREADS: Final = 256


def on_vectors(device: Device, kernel: Any, to: ArrayView, *others: ArrayView, stream: Any) -> None:
    """Runs a kernel on contiguous arrays, as vectors, with a thread for each element of the first."""
    if to.size:
        words = tuple(device.array(_flat(view)) for view in (to, *others))
        launch = Launch((-(-_flat(to).size // _THREADS), 1, 1), (_THREADS, 1, 1), stream)
        run_kernel(device, dispatcher_of(kernel), launch, words)


def is_contiguous(view: ArrayView) -> bool:
    """True if the elements fill the memory that the array spans."""
    low, high = view.extent
    return high - low == view.size * view.dtype.itemsize and 0 not in view.relevant_strides


def _flat(view: ArrayView) -> ArrayView:
    """The memory that an array spans, as a vector of real numbers or integers."""
    dtype = view.dtype.type(0).real.dtype  # of a complex number that of its parts
    low, high = view.extent
    size = (high - low) // dtype.itemsize
    return replace(view, address=low, shape=(size,), strides=(dtype.itemsize,), dtype=dtype)


def prepare(device: Device, kernel: Any, *views: ArrayView) -> None:
    """Makes a kernel ready to run on such arrays in a capture."""
    words = [device.array(_flat(view)) for view in views]
    device.load(primal_of(dispatcher_of(kernel), device, words).program.module)


def add(to: Any, source: Any) -> None:
    """Adds a vector to another."""
    i = cuda.grid(1)
    if i < to.size:
        to[i] += source[i]


def add_one(to: Any) -> None:
    """Adds 1 to each element."""
    i = cuda.grid(1)
    if i < to.size:
        to[i] += 1.0


def spoil(values: Any, report: Any, status: Any) -> None:
    """Makes values NaN if a launch has reported that it failed, and notes it."""
    i = cuda.grid(1)
    if i < values.size and report[1] != 0:
        values[i] = math.nan
        status[0] = 1


def words_at(address: int, count: int, owner: Any) -> ArrayView:
    """Integers in memory."""
    return ArrayView(address, (count,), (8,), np.dtype(np.int64), False, owner)
