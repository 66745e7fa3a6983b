"""Ceilings of the machine: bytes moved and operations in a second, measured, by one thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

WORDS = 1 << 23  # 64 MiB an array: beyond any cache
ORDER = 1024


@njit(fastmath=True)
def _triad(a: Any, b: Any, c: Any) -> None:
    for i in range(a.size):
        a[i] = b[i] + 3.0 * c[i]


def ceilings(rounds: int = 5) -> dict[str, float]:
    """Bytes in a second by the triad of STREAM, operations in a second by a product of matrices (BLAS); the best ones.

    The triad counts what the program reads and writes, 24 bytes for each element, as STREAM does.
    """
    a, b, c = np.zeros(WORDS), np.ones(WORDS), np.ones(WORDS)
    x = np.random.default_rng(0).standard_normal((ORDER, ORDER))
    out = np.empty_like(x)
    return {
        "bytes_per_second": 24 * WORDS / _best(lambda: _triad(a, b, c), rounds),
        "flops_per_second": 2 * ORDER**3 / _best(lambda: np.dot(x, x, out=out), rounds),
    }


def least_seconds(case: dict[str, Any], machine: dict[str, float]) -> float | None:
    """Least time for a value and gradient of a case; None where its operations are not counted.

    A bound from below: arguments come from memory and gradients go there, once, and all else stays in registers.
    """
    if case.get("flops") is None:
        return None
    return max(case["least_bytes"] / machine["bytes_per_second"], case["flops"] / machine["flops_per_second"])


def _best(run: Callable[[], object], rounds: int) -> float:
    run()
    times = []
    for _ in range(rounds):
        start = time.thread_time()
        run()
        times.append(time.thread_time() - start)
    return min(times)


if __name__ == "__main__":
    import json

    print(json.dumps(ceilings()))
