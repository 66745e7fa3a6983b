"""What type checkers know of the bridge to PyTorch."""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import numpy as np
import torch
from numpy.typing import NDArray

import irad
import irad.interop.torch

Array = NDArray[np.float64]


def energy(x: Array, stiffness: float) -> float:
    return float(stiffness * np.sum(x * x))


@irad.jit
def forces(x: Array) -> Array:
    return -2.0 * x


def both(x: Array) -> tuple[float, Array]:
    return float(np.sum(x)), x


assert_type(irad.interop.torch.wrap(energy), Callable[..., torch.Tensor])
assert_type(irad.interop.torch.wrap(forces, argnums=0)(torch.ones(3)), torch.Tensor)
assert_type(irad.interop.torch.wrap(both)(torch.ones(3)), Any)
irad.interop.torch.wrap(3.0)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
assert_type(irad.interop.torch.wrap(energy)(torch.ones(3), 2.0), torch.Tensor)
