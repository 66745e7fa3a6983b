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
from bench.cases import BY_NAME, CASES as ALL_CASES
from bench.tangents import BY_NAME as TANGENTS
from irad.api.forward import with_direction
from irad.benchmark.costs import Timing, time_interleaved

CASES = tuple(case for case in ALL_CASES if case.name in TANGENTS)


def directions(case: Case, arguments: tuple[Any, ...], seed: int = 7) -> tuple[Any, ...]:
    """A tangent for each of a case's arguments, in the order of its ``argnums``."""
    rng = np.random.default_rng(seed)
    return tuple(
        rng.standard_normal(arguments[i].shape) if isinstance(arguments[i], np.ndarray) else 0.7 for i in case.argnums
    )


def measured(case: Case, rounds: int) -> dict[str, Timing]:
    """Timings of the primal, of irad's pushforward and of the hand-written tangent."""
    arguments = case.make("full")
    tangents = directions(case, arguments)
    push, hand = irad.pushforward(case.primal, case.argnums), TANGENTS[case.name]
    given = with_direction(arguments, case.argnums, tangents)
    np.testing.assert_allclose(push(*given), hand(tangents, *arguments), rtol=1e-9)
    runs = {
        "primal": partial(case.primal, *arguments),
        "irad": partial(push, *given),
        "hand": partial(hand, tangents, *arguments),
    }
    return time_interleaved(runs, rounds)


def with_mean(table: Table, ratios: Sequence[float]) -> Table:
    """A table with the geometric mean in its last column."""
    table.add_section()
    table.add_row("geometric mean", "", "", "", "", f"{math.prod(ratios) ** (1 / len(ratios)):.2f}")
    return table


@click.command()
@click.argument("names", nargs=-1, type=click.Choice([case.name for case in CASES]))
@click.option("--rounds", default=15, show_default=True, help="Samples of each function.")
def main(names: tuple[str, ...], rounds: int) -> None:
    """Prints a table of the cases NAMES, or of all."""
    table = Table("case", "primal, ms", "irad, ms", "hand, ms", "irad ÷ primal", "irad ÷ hand")
    ratios = []
    for case in [BY_NAME[name] for name in names] or CASES:
        found = measured(case, rounds)
        primal, ours, hand = (found[name].median for name in ("primal", "irad", "hand"))
        ratios.append(ours / hand)
        milliseconds = [f"{1e3 * seconds:.3f}" for seconds in (primal, ours, hand)]
        table.add_row(case.title, *milliseconds, f"{ours / primal:.2f}", f"{ours / hand:.2f}")
    Console().print(with_mean(table, ratios))


if __name__ == "__main__":
    main()
