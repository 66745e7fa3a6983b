"""What type checkers know of the bridge to Dask."""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import dask.array as da
import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray

import irad.interop.dask

Array = NDArray[np.float64]


def loss(x: Array, block: Array) -> float:
    return float(np.sum(x) * np.sum(block))


x, data = np.ones(3), da.ones(12, chunks=4)
assert_type(irad.interop.dask.value_and_grad(loss)(x, data), tuple[float, Array])
assert_type(irad.interop.dask.value_and_grad(loss, argnums=(0,))(x, data), tuple[float, Any])
assert_type(irad.interop.dask.value_and_grad(loss, compute=False), Callable[..., Delayed])
assert_type(irad.interop.dask.hvp(loss)(x, x, data), Array)
irad.interop.dask.value_and_grad(3.0)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
