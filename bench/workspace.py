"""``python -m bench.workspace``: a rule with workspace against the same rule with fresh memory for each call.

The rule is that of ``docs/programs/stateful_gemm.py``; the shapes are 16×32 · 32×8, 20 products in a row onto the same
matrix. CPU time of one product with its adjoint; the two take turns, and the median of the ratios counts.
"""

from __future__ import annotations

import runpy
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import numpy as np
from numba import njit

import irad
from irad import rules
from irad.rules import AugmentedReturn, is_active

PRODUCTS = 20
_example = runpy.run_path(str(Path(__file__).parents[1] / "docs" / "programs" / "stateful_gemm.py"))
_gemm, _inner, _scale, _add_scaled = (_example[name] for name in ("_gemm", "_inner", "_scale", "_add_scaled"))


def fresh_gemm(restoring: bool) -> Any:
    """The rule of the example without workspace."""

    @njit
    def gemm(c, a, b, alpha, beta):
        _gemm(c, a, b, alpha, beta, c if beta == 0.0 else np.empty_like(c))

    @rules.augmented_primal(gemm)
    def augmented(config, c, a, b, alpha, beta):
        old = c.value.copy()
        left = a.value.copy() if config.overwritten[1] else a.value
        right = b.value.copy() if config.overwritten[2] else b.value
        product = c.value if beta.value == 0.0 else np.empty_like(c.value)
        _gemm(c.value, a.value, b.value, alpha.value, beta.value, product)
        return AugmentedReturn(None, None, (old, left, right))

    @rules.reverse(gemm)
    def reverse(config, cotangent, tape, c, a, b, alpha, beta):
        old, left, right = tape
        d_alpha, d_beta = 0.0, 0.0
        if is_active(a) or is_active(alpha):
            product = np.dot(c.shadow, right.T)
            if is_active(alpha):
                d_alpha = _inner(product, left)
            if is_active(a):
                _add_scaled(a.shadow, product, alpha.value)
        if is_active(b):
            _add_scaled(b.shadow, np.dot(left.T, c.shadow), alpha.value)
        if is_active(beta):
            d_beta = _inner(c.shadow, old)
        _scale(c.shadow, beta.value)
        if restoring:
            c.value[:] = old
        return None, None, None, d_alpha, d_beta

    return gemm


def timed(gemm: Any, beta: float) -> Callable[[int], float]:
    """Nanoseconds of CPU time for one product and its adjoint, from a number of calls."""

    @njit
    def loss(c, a, b):
        for _ in range(PRODUCTS):
            gemm(c, a, b, 0.1, beta)
        return c[0, 0] + c[-1, -1]

    gradient = irad.value_and_grad_into(loss, argnums=(0, 1, 2))

    @njit
    def repeat(out, c, a, b, count):
        total = 0.0
        for _ in range(count):
            total += gradient(out, c, a, b)
        return total

    run: Any = repeat
    random = np.random.default_rng(0)
    matrices = [random.standard_normal(shape) for shape in ((16, 8), (16, 32), (32, 8))]
    out: Any = tuple(np.empty_like(each) for each in matrices)
    run(out, *matrices, 1)

    def sample(count: int) -> float:
        start = time.thread_time_ns()
        run(out, *matrices, count)
        return (time.thread_time_ns() - start) / (count * PRODUCTS)

    return sample


@click.command()
@click.option("--rounds", default=60, show_default=True, help="samples of each")
def main(rounds: int) -> None:
    """Compares both policies, with beta = 0 and 0.5."""
    click.echo("beta  policy      workspace  fresh memory  ratio")
    for beta in (0.0, 0.5):
        for restoring in (True, False):
            samples = timed(_example["in_place_gemm"](restoring), beta), timed(fresh_gemm(restoring), beta)
            times: list[list[float]] = [[], []]
            for number in range(rounds):
                for which in (0, 1) if number % 2 else (1, 0):
                    times[which].append(samples[which](200))
            ours, theirs = map(statistics.median, times)
            ratio = statistics.median(left / right for left, right in zip(*times, strict=True))
            policy = "restoring" if restoring else "leaving"
            click.echo(f"{beta:<5} {policy:<11} {ours:6.0f} ns     {theirs:6.0f} ns     {ratio:.3f}")


if __name__ == "__main__":
    main()
