"""What each rank does: `mpiexec -n 3 python -m tests.mpi.run check ring halos`. A rank that finds a fault ends all.

Sums over the ranks are mpi4py's, and slopes are finite differences: both know nothing of irad's rules.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
from mpi4py import MPI

import irad
from tests.mpi import heat, more, programs

WORLD = MPI.COMM_WORLD
CACHED = irad.Options(cache=True)  # one rank compiles, in the first run
STEP = 1e-6


def added(value: float) -> float:
    """The sum over the ranks."""
    return float(WORLD.allreduce(float(value)))


def inputs() -> tuple[np.ndarray, np.ndarray]:
    """A point and a direction, of this rank."""
    rng = np.random.default_rng(WORLD.rank)
    return rng.uniform(0.5, 1.5, 3), rng.normal(size=3)


def check(name: str) -> None:
    """Forward mode is the slope, reverse mode its transpose, a product with the Hessian the slope of the gradient."""
    f: Any = programs.PROGRAMS[name]
    x, direction = inputs()
    value_and_gradient = irad.value_and_grad(f, options=CACHED)
    _, gradient = value_and_gradient(x)
    _, slope = irad.jvp(f, (x,), (direction,), options=CACHED)
    above, above_gradient = value_and_gradient(x + STEP * direction)
    below, below_gradient = value_and_gradient(x - STEP * direction)
    forward, reverse = added(slope), added(gradient @ direction)
    assert abs(forward - reverse) <= 1e-12 * max(1.0, abs(forward)), (name, forward, reverse)
    difference = added(above - below) / (2 * STEP)
    assert abs(forward - difference) <= 1e-7 * max(1.0, abs(forward)), (name, forward, difference)
    second = irad.hvp(f, options=CACHED)(x, direction)
    np.testing.assert_allclose(second, (above_gradient - below_gradient) / (2 * STEP), rtol=1e-6, atol=1e-7)


def oracle(name: str) -> None:
    """The plan that saves everything has the same gradient; a pullback may run twice; the value is the plain call's."""
    f: Any = programs.PROGRAMS[name]
    x, _ = inputs()
    value, pullback = irad.vjp(f, x)
    assert value == f(x.copy())
    (first,), (second,) = pullback(1.0), pullback(2.0)
    saved = irad.grad(f, options=irad.Options(plan="save_all"))(x)
    np.testing.assert_allclose(second, 2.0 * first, rtol=1e-14)
    np.testing.assert_allclose(saved, first, rtol=1e-13)


def heated(_: str) -> None:
    heat.check(WORLD, CACHED)


def others(name: str) -> None:
    more.ACTIONS[name]()


ACTIONS: dict[str, Callable[[str], None]] = {
    "check": check,
    "oracle": oracle,
    "heat": heated,
    "more": others,
    "refusals": others,
}


def main() -> None:
    """Runs an action for each name."""
    action, *names = sys.argv[1:]
    try:
        for name in names:
            ACTIONS[action](name)
        WORLD.Barrier()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        WORLD.Abort(1)
    if WORLD.rank == 0:
        print("passed", *names)


if __name__ == "__main__":
    main()
