"""``python -m bench.forward``: forward mode beside hand-written tangents, interleaved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

import irad
from bench.case import Case
from bench.cases import BY_NAME, CASES
from bench.measure import Timing, time_interleaved
from bench.tangents import BY_NAME as TANGENTS
from irad.api.forward import batched_pushforward


def directions(case: Case, arguments: tuple[Any, ...], seed: int = 7) -> tuple[Any, ...]:
    """A tangent for each of a case's arguments, in the order of its ``argnums``."""
    rng = np.random.default_rng(seed)
    return tuple(
        rng.standard_normal(arguments[i].shape) if isinstance(arguments[i], np.ndarray) else 0.7 for i in case.argnums
    )


def measured(case: Case, rounds: int) -> dict[str, Timing]:
    """Timings of the primal, of irad's pushforward and of the tangent by hand."""
    arguments = case.make("full")
    tangents = directions(case, arguments)
    push, hand = irad.pushforward(case.primal, case.argnums), TANGENTS[case.name]
    np.testing.assert_allclose(push(tangents, *arguments), hand(tangents, *arguments), rtol=1e-9)
    runs = {
        "primal": partial(case.primal, *arguments),
        "irad": partial(push, tangents, *arguments),
        "hand": partial(hand, tangents, *arguments),
    }
    return time_interleaved(runs, rounds)


def measured_batch(case: Case, rounds: int, width: int) -> dict[str, Timing]:
    """Timings of the primal, and of irad's pushforward in one direction and in several."""
    arguments = case.make("full")
    tangents = tuple(directions(case, arguments, seed) for seed in range(width))
    one, batch = irad.pushforward(case.primal, case.argnums), batched_pushforward(case.primal, case.argnums, width)
    for direction, lane in zip(tangents, batch(tangents, *arguments)[1], strict=True):
        np.testing.assert_allclose(lane, one(direction, *arguments)[1], rtol=1e-9)
    runs = {
        "primal": partial(case.primal, *arguments),
        "one": partial(one, tangents[0], *arguments),
        "batch": partial(batch, tangents, *arguments),
    }
    return time_interleaved(runs, rounds)


def _table_of_batches(cases: Sequence[Case], rounds: int, width: int) -> Table:
    table = Table("case", "primal, ms", "one, ms", f"{width}, ms", f"{width} ÷ primal", f"{width} ÷ one")
    ratios = []
    for case in cases:
        found = measured_batch(case, rounds, width)
        primal, one, batch = (found[name].median for name in ("primal", "one", "batch"))
        ratios.append(batch / one)
        milliseconds = [f"{1e3 * seconds:.3f}" for seconds in (primal, one, batch)]
        table.add_row(case.title, *milliseconds, f"{batch / primal:.2f}", f"{batch / one:.2f}")
    return _with_mean(table, ratios)


def _with_mean(table: Table, ratios: Sequence[float]) -> Table:
    table.add_section()
    table.add_row("geometric mean", "", "", "", "", f"{math.prod(ratios) ** (1 / len(ratios)):.2f}")
    return table


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([case.name for case in CASES]))
@click.option("--rounds", default=15, show_default=True, help="Samples of each function.")
@click.option("--width", default=1, show_default=True, help="Directions at once; compares them with one direction.")
def main(names: tuple[str, ...], rounds: int, width: int) -> None:
    """Prints a table of the cases NAMES, or of all."""
    cases = [BY_NAME[name] for name in names] or CASES
    table = _table_by_hand(cases, rounds) if width == 1 else _table_of_batches(cases, rounds, width)
    Console().print(table)


def _table_by_hand(cases: Sequence[Case], rounds: int) -> Table:
    table = Table("case", "primal, ms", "irad, ms", "hand, ms", "irad ÷ primal", "irad ÷ hand")
    ratios = []
    for case in cases:
        found = measured(case, rounds)
        primal, ours, hand = (found[name].median for name in ("primal", "irad", "hand"))
        ratios.append(ours / hand)
        milliseconds = [f"{1e3 * seconds:.3f}" for seconds in (primal, ours, hand)]
        table.add_row(case.title, *milliseconds, f"{ours / primal:.2f}", f"{ours / hand:.2f}")
    return _with_mean(table, ratios)


if __name__ == "__main__":
    main()
