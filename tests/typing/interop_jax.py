"""What type checkers know of the bridge to JAX."""

# pyright: reportMissingImports=false

from __future__ import annotations

from collections.abc import Callable
from typing import Any, assert_type

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

import irad.interop.jax

Array = NDArray[np.float64]


def energy(x: Array, stiffness: float) -> float:
    return float(stiffness * np.sum(x * x))


def both(x: Array) -> tuple[float, Array]:
    return float(np.sum(x)), x


assert_type(irad.interop.jax.wrap(energy), Callable[..., jax.Array])
assert_type(irad.interop.jax.wrap(energy, shapes=lambda x, stiffness: ())(jnp.ones(3), 2.0), jax.Array)
assert_type(irad.interop.jax.wrap(both)(jnp.ones(3)), Any)
irad.interop.jax.wrap(3.0)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType, reportCallIssue]
