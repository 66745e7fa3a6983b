"""What type checkers know of the bridge to Ipopt."""

from __future__ import annotations

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import irad.interop.ipopt

Array = NDArray[np.float64]


def cost(x: Array) -> float:
    return float(np.sum(x * x))


def limits(x: Array) -> Array:
    return x[1:] - x[:-1]


program = irad.interop.ipopt.problem(cost, limits, (None, 5.0), (0.0, [1.0, 2.0]), x0=[1.0, 2.0, 3.0])
assert_type(program, irad.interop.ipopt.Problem)
assert_type(program.solve([1.0, 2.0, 3.0]), tuple[Array, dict[str, Any]])
assert_type(program.gradient(np.ones(3)), Array)
assert_type(program.objective(np.ones(3)), float)
irad.interop.ipopt.problem(cost)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
irad.interop.ipopt.problem(lambda x: "text", x0=[1.0])  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType]
