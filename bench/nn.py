"""``python -m bench.nn``: value and gradient of functions of irad.nn against PyTorch on the CPU, in single precision.

Both compute a weighted sum of what a function returns, and its gradient with respect to all arguments of floats. The
two take turns; median of the rounds, of CPU time where each has one thread, and of elapsed time where they have more:
irad by a parallel loop over parts of the samples. Set ``OPENBLAS_NUM_THREADS=1``.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import click
import numpy as np
from numba import get_num_threads, njit, prange, set_num_threads

import irad
from irad import nn

Case = tuple[Callable[..., Any], Callable[..., Any], tuple[Any, ...], int]


@njit(fastmath={"reassoc"})
def _weighted(weights, y):
    total, first, second = 0.0, weights.ravel(), y.ravel()
    for i in range(first.size):
        total += first[i] * second[i]
    return total


@njit
def _bounds(part, parts, count):
    """Beginning and end of a part."""
    return part * count // parts, (part + 1) * count // parts


def _cases(torch: Any, threads: int) -> dict[str, Case]:
    """For each function: the loss for irad, that for PyTorch, arguments, how many of them are differentiated."""
    random = np.random.default_rng(0)
    compiled = njit(parallel=threads > 1)

    def draw(*shape: int) -> Any:
        return random.standard_normal(shape).astype(np.float32)

    @compiled
    def conv(weights, x, w):
        total = 0.0
        for part in prange(threads):
            low, high = _bounds(part, threads, x.shape[0])
            total += _weighted(weights[low:high], nn.conv(x[low:high], w, 1, 1, 1, 1, True))
        return total

    @compiled
    def mul(weights, a, b):
        total = 0.0
        for part in prange(threads):
            low, high = _bounds(part, threads, a.shape[0])
            total += _weighted(weights[low:high], nn.batched_mul(a[low:high], b[low:high]))
        return total

    @compiled
    def attention(weights, q, k, v):
        total = 0.0
        for part in prange(threads):
            low, high = _bounds(part, threads, q.shape[0])
            out = nn.dot_product_attention(q[low:high], k[low:high], v[low:high])
            total += _weighted(weights[low:high], out)
        return total

    @compiled
    def softmax(weights, x):
        total = 0.0
        for part in prange(threads):
            low, high = _bounds(part, threads, x.shape[0])
            total += _weighted(weights[low:high], nn.softmax(x[low:high], 1))
        return total

    @compiled
    def scatter(weights, src, idx):
        total = 0.0
        for part in prange(threads):
            low, high = _bounds(part, threads, src.shape[0])
            total += _weighted(weights, nn.scatter("+", weights.shape[0], src[low:high], idx[low:high]))
        return total

    def torch_scatter(src: Any, idx: Any) -> Any:
        return torch.zeros(5000, 32).index_add(0, idx, src)

    def torch_conv(x: Any, w: Any) -> Any:
        return torch.nn.functional.conv2d(x, w, padding=1)

    return {
        "conv, 32 × 64 × 32², 3×3": (conv, torch_conv, (draw(32, 64, 32, 32), draw(64, 64, 3, 3)), 2),
        "attention, 8 × 8 × 256 × 64": (
            attention,
            torch.nn.functional.scaled_dot_product_attention,
            (draw(8, 8, 256, 64), draw(8, 8, 256, 64), draw(8, 8, 256, 64)),
            3,
        ),
        "batched_mul, 64 × 128³": (mul, torch.bmm, (draw(64, 128, 128), draw(64, 128, 128)), 2),
        "softmax, 4096 × 1000": (softmax, lambda x: torch.softmax(x, 1), (draw(4096, 1000),), 1),
        "scatter, 100,000 × 32 into 5000": (
            scatter,
            torch_scatter,
            (draw(100_000, 32), random.integers(0, 5000, 100_000)),
            1,
        ),
    }


def _timed(run: Callable[[], object]) -> float:
    clock = time.perf_counter if get_num_threads() > 1 else time.thread_time
    start = clock()
    run()
    return (clock() - start) * 1e3


def compare(case: Case, torch: Any, rounds: int) -> tuple[float, float]:
    """Milliseconds for irad and for PyTorch; the gradients must agree."""
    loss, theirs, arguments, count = case
    tensors = [torch.from_numpy(a) for a in arguments]
    for tensor in tensors[:count]:
        tensor.requires_grad_()
    shape = tuple(theirs(*tensors).shape)
    weights = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    weight_tensor = torch.from_numpy(weights).view(-1)
    gradient = irad.value_and_grad(loss, argnums=tuple(range(1, 1 + count)))

    def with_torch() -> Any:
        total = torch.dot(weight_tensor, theirs(*tensors).view(-1))
        return torch.autograd.grad(total, tensors[:count])

    def with_irad() -> Any:
        return gradient(weights, *arguments)[1]

    for ours, wanted in zip(with_irad(), with_torch(), strict=True):
        np.testing.assert_allclose(ours, wanted.numpy(), rtol=2e-3, atol=2e-3 * float(np.abs(ours).max()))
    times = [(_timed(with_irad), _timed(with_torch)) for _ in range(rounds)]
    return statistics.median(a for a, _ in times), statistics.median(b for _, b in times)


@click.command()
@click.option("--rounds", default=15, show_default=True, help="samples of each")
@click.option("--threads", default=1, show_default=True, help="of each")
def main(rounds: int, threads: int) -> None:
    """Prints a table, and the geometric mean of the ratios."""
    import torch  # an extra, which only this program needs

    torch.set_num_threads(threads)
    set_num_threads(threads)
    ratios = []
    click.echo(f"| value and gradient, float32, threads: {threads} | irad | PyTorch {torch.__version__} | ratio |")
    click.echo("| --- | --- | --- | --- |")
    for name, case in _cases(torch, threads).items():
        ours, theirs = compare(case, torch, rounds)
        ratios.append(ours / theirs)
        click.echo(f"| {name} | {ours:.1f} ms | {theirs:.1f} ms | {ours / theirs:.2f} |")
    click.echo(f"| geometric mean | | | {math.exp(statistics.fmean(map(math.log, ratios))):.2f} |")


if __name__ == "__main__":
    main()
