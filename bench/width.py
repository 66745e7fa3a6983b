"""``python -m bench.width``: derivatives in several directions beside one run, compared with one direction."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

import irad
from bench.case import Case
from bench.cases import BY_NAME
from bench.forward import CASES, directions, with_mean
from irad.api.autodiff import autodiff_of
from irad.api.forward import batched_pushforward, with_direction
from irad.benchmark.costs import Run, Timing, time_interleaved
from irad.frontend.calls.task import Seed


def forward_runs(case: Case, arguments: tuple[Any, ...], width: int) -> dict[str, Run]:
    """A pushforward in one direction and in several."""
    tangents = tuple(directions(case, arguments, seed) for seed in range(width))
    one, batch = irad.pushforward(case.primal, case.argnums), batched_pushforward(case.primal, case.argnums, width)
    for direction, lane in zip(tangents, batch(tangents, *arguments)[1], strict=True):
        single = one(*with_direction(arguments, case.argnums, direction))[1]
        np.testing.assert_allclose(lane, single, rtol=1e-9)
    first = with_direction(arguments, case.argnums, tangents[0])
    return {"one": partial(one, *first), "batch": partial(batch, tangents, *arguments)}


def reverse_runs(case: Case, arguments: tuple[Any, ...], width: int) -> dict[str, Run]:
    """`irad.autodiff` with one cotangent and with several; gradients of arrays are added to shadows."""
    seeds = tuple(1.0 + lane for lane in range(width))
    arrays = [i for i in case.argnums if isinstance(arguments[i], np.ndarray)]
    one, batch = ([np.zeros((count, *arguments[i].shape)) for i in arrays] for count in (1, width))
    runs = {
        "one": _reverse(case, arguments, irad.Duplicated, [shadow[0] for shadow in one], 1.0),
        "batch": _reverse(case, arguments, irad.BatchDuplicated, [tuple(shadows) for shadows in batch], seeds),
    }
    for run in runs.values():
        run()
    for alone, shadows in zip(one, batch, strict=True):
        for seed, lane in zip(seeds, shadows, strict=True):
            np.testing.assert_allclose(lane, seed * alone[0], rtol=1e-9, atol=1e-12 * np.abs(lane).max())
    return runs


def _reverse(case: Case, arguments: tuple[Any, ...], kind: Any, shadows: Sequence[Any], seed: Any) -> Run:
    given = iter(shadows)
    annotated = [
        irad.Const(value)
        if i not in case.argnums
        else kind(value, next(given))
        if isinstance(value, np.ndarray)
        else irad.Active(value)
        for i, value in enumerate(arguments)
    ]
    derivative = autodiff_of(case.primal, irad.ReverseWithPrimal, tuple(annotated), Seed.GIVEN, None)
    return partial(derivative, *shadows, seed, *arguments)


RUNS = {"forward": forward_runs, "reverse": reverse_runs}


def measured(case: Case, rounds: int, width: int, mode: str) -> dict[str, Timing]:
    """Timings of the primal, and of its derivative in one direction and in several."""
    arguments = case.make("full")
    runs = RUNS[mode](case, arguments, width)
    return time_interleaved({"primal": partial(case.primal, *arguments), **runs}, rounds)


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([case.name for case in CASES]))
@click.option("--rounds", default=15, show_default=True, help="Samples of each function.")
@click.option("--width", default=8, show_default=True, help="Directions at once.")
@click.option("--mode", default="forward", type=click.Choice(list(RUNS)), show_default=True)
def main(names: tuple[str, ...], rounds: int, width: int, mode: str) -> None:
    """Prints a table of the cases NAMES, or of all."""
    table = Table("case", "primal, ms", "one, ms", f"{width}, ms", f"{width} ÷ primal", f"{width} ÷ one")
    ratios = []
    for case in [BY_NAME[name] for name in names] or CASES:
        found = measured(case, rounds, width, mode)
        primal, one, batch = (found[name].median for name in ("primal", "one", "batch"))
        ratios.append(batch / one)
        milliseconds = [f"{1e3 * seconds:.3f}" for seconds in (primal, one, batch)]
        table.add_row(case.title, *milliseconds, f"{batch / primal:.2f}", f"{batch / one:.2f}")
    Console().print(with_mean(table, ratios))


if __name__ == "__main__":
    main()
