"""What type checkers know of the bridge to PyTensor."""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np
import pytensor.tensor as pt
from numpy.typing import NDArray
from pytensor.tensor.variable import TensorVariable

import irad.interop.pytensor

Array = NDArray[np.float64]


def energy(x: Array, stiffness: float) -> float:
    return float(stiffness * np.sum(x * x))


def both(x: Array) -> tuple[float, Array]:
    return float(np.sum(x)), x


assert_type(irad.interop.pytensor.as_op(energy), Callable[..., TensorVariable[Any, Any]])
assert_type(irad.interop.pytensor.as_op(both, shapes=lambda x: ((), x))(pt.vector("x")), Any)
irad.interop.pytensor.as_op(3.0)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
