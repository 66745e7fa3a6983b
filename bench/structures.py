"""``python -m bench.structures``: what `irad.data` costs for arrays of records, for each leaf, and in memory."""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

import irad
from irad import data
from irad.benchmark.costs import time_interleaved
from irad.data import VectorSpace

PAIR = np.dtype([("x", np.float64), ("y", np.float64)])
PARTICLE = np.dtype([("position", np.float64, 3), ("mass", np.float64), ("number", np.int64)])

OUT_OF_PLACE: Mapping[str, Callable[[Any, Any], Any]] = {
    "make_zero": lambda x, y: data.make_zero(x),
    "copy": lambda x, y: data.copy(x),
    "recursive_map, sum": lambda x, y: data.recursive_map(np.add, x, y),
    "to_vec": lambda x, y: data.to_vec(x),
}
IN_PLACE: Mapping[str, Callable[[Any, Any], Any]] = {
    "make_zero_": lambda x, y: data.make_zero_(y),
    "accumulate": lambda x, y: data.accumulate(y, x),
    "recursive_map_, sum": lambda x, y: data.recursive_map_(np.add, y, x, x),
    "dot": lambda x, y: data.dot(x, y),
    "norm": lambda x, y: data.norm(x),
}
OPERATIONS = {**IN_PLACE, **OUT_OF_PLACE}


def record_times(count: int, rounds: int) -> dict[str, dict[str, float]]:
    """Seconds of each operation on arrays of records, by dtype."""
    return {
        name: _times({label: partial(f, *_two(np.ones(count, dtype))) for label, f in OPERATIONS.items()}, rounds)
        for name, dtype in (("pairs", PAIR), ("particles", PARTICLE))
    }


def leaf_times(counts: tuple[int, ...], rounds: int) -> dict[int, dict[str, float]]:
    """Seconds for each leaf of dictionaries of small arrays, by how many there are."""
    return {
        count: {label: time / count for label, time in _times(_leaf_runs(count), rounds).items()} for count in counts
    }


def _leaf_runs(count: int) -> dict[str, Callable[[], Any]]:
    x, y = _two({f"part{number}": np.ones(3) for number in range(count)})
    vector, other = VectorSpace(x), VectorSpace(y)
    first = irad.jit(lambda params: params["part0"][0])
    return {
        **{label: partial(f, x, y) for label, f in OPERATIONS.items()},
        "VectorSpace.axpy": lambda: vector.axpy(0.0, other),
        "irad.jit": lambda: first(x),
    }


def memory(calls: int) -> tuple[int, int]:
    """Blocks that calls in place leak, and bytes that one allocates for a while; its arrays have 8 MB."""
    x, y = _two({"w": np.ones(10**6), "layers": [(np.ones(3), 1), 1.0]})
    small, other = _two({"w": np.ones(3), "layers": [(np.ones(3), 1), 1.0]})
    for run in IN_PLACE.values():
        run(small, other)
        run(x, y)
    blocks = []
    for count in (calls, calls):
        for number in range(count):
            list(IN_PLACE.values())[number % len(IN_PLACE)](small, other)
        gc.collect()
        blocks.append(sys.getallocatedblocks())
    left = blocks[1] - blocks[0]
    tracemalloc.start()
    for run in IN_PLACE.values():
        run(x, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return left, peak


def _two(x: Any) -> tuple[Any, Any]:
    return x, data.copy(x)


def _times(runs: Mapping[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    return {label: timing.median for label, timing in time_interleaved(runs, rounds).items()}


@click.command()
@click.option("--records", default=10**6, show_default=True, help="Length of the arrays of records.")
@click.option("--rounds", default=15, show_default=True, type=click.IntRange(3), help="Samples of each function.")
def main(records: int, rounds: int) -> None:
    """CPU time of operations on records and on small leaves, and the memory that calls in place take."""
    by_dtype, counts = record_times(records, rounds), (1, 10, 100)
    by_count = leaf_times(counts, rounds)
    table = Table(
        "", *(f"{records:,} {name}, ms" for name in by_dtype), *(f"of {count}, µs a leaf" for count in counts)
    )
    for label in by_count[1]:
        of_records = (f"{1e3 * times[label]:.1f}" if label in times else "" for times in by_dtype.values())
        table.add_row(label, *of_records, *(f"{1e6 * by_count[count][label]:.2f}" for count in counts))
    Console().print(table)
    left, peak = memory(10_000)
    click.echo(
        f"10,000 calls in place left {left} blocks; one with arrays of 8 MB took {peak / 1e3:.0f} kB for a while"
    )


if __name__ == "__main__":
    main()
