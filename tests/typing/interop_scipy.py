"""What type checkers know of the bridge to SciPy, and of exported libraries."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import irad
import irad.interop.scipy

Array = NDArray[np.float64]


@dataclass
class Line:
    slope: float
    offset: float


def energy(x: Array, stiffness: float) -> float:
    return float(stiffness * np.sum(x * x))


def misfit(line: Line, x: Array, y: Array) -> float:
    return float(np.sum((line.slope * x + line.offset - y) ** 2))


x = np.ones(3)
found = irad.interop.scipy.minimize(energy, x, args=(2.0,))
assert_type(found.x, Array)
assert_type(found.fun, float)
assert_type(found.success, bool)
fit = irad.interop.scipy.minimize(misfit, Line(1.0, 0.0), args=(x, x))
assert_type(fit.x, Line)
assert_type(fit.x.slope, float)
assert_type(irad.interop.scipy.minimize(energy, (1.0, 2.0), args=(2.0,)).x, Any)
irad.interop.scipy.minimize(lambda x: "no number", x)  # type: ignore[arg-type, return-value]  # pyright: ignore[reportArgumentType, reportCallIssue]

d = irad.interop.scipy.derivatives(energy, args=(2.0,))
assert_type(d.fun, Callable[..., float])
assert_type(d.grad(x), Array)
assert_type(d.value_and_grad(x), tuple[float, Array])
assert_type(d.hessp(x, x), Array)
assert_type(irad.interop.scipy.derivatives(energy, wrt="stiffness").grad(x, 2.0), Any)
irad.interop.scipy.low_level_callable(irad.jit(energy), 2)

assert_type(irad.export(energy, "(float64[::1], float64)", "energy.o"), Path)
irad.export({"energy": (irad.grad(energy), "(float64[::1], float64)")}, path="energy.o")
