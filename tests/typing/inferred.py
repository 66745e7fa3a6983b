"""What type checkers know of derivatives; `test_inference` has mypy, and Pyright where it is installed, look at it."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import irad
from irad.api.vjp import Pullback

Array = NDArray[np.float64]


def energy(x: Array, stiffness: float) -> float:
    return float(stiffness * np.sum(x * x))


def with_count(x: Array) -> tuple[float, int]:
    return float(np.sum(x)), x.size


@irad.jit
def square(x: float) -> float:
    return x * x


@irad.jit(fastmath=True)
def cube(x: float) -> float:
    return x * x * x


x = np.ones(3)
assert_type(irad.grad(energy)(x, 2.0), Array)
assert_type(irad.value_and_grad(energy)(x, 2.0), tuple[float, Array])
assert_type(irad.grad(square)(3.0), float)
assert_type(irad.grad(cube)(3.0), float)
assert_type(square(3.0), float)
assert_type(irad.grad(energy, argnums=(0, 1))(x, 2.0), Any)
assert_type(irad.grad(with_count, has_aux=True)(x), tuple[Any, int])
assert_type(irad.value_and_grad_into(energy)(np.empty(3), x, 2.0), float)
assert_type(irad.hessian(energy)(x, 2.0), Any)
assert_type(irad.jacobian(energy)(x, 2.0), Any)
assert_type(irad.value_and_jacobian(energy, argnums=(0, 1))(x, 2.0), Any)
assert_type(irad.hvp(energy)(x, x, 2.0), Any)
value, pullback = irad.vjp(energy, x, 2.0)
assert_type(value, float)
assert_type(pullback, Pullback)
square.inspect_adjoint()
irad.grad(energy)(x, "2.0")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
irad.grad(energy)()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
irad.hessian(energy)(x, "2.0")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
irad.jacobian(energy)()  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
