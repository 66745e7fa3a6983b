"""``python -m bench.gpu``: time irad's derivatives of kernels against hand-written reverse kernels."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import numpy as np
from rich.console import Console
from rich.table import Table

import irad.cuda
from bench import environment
from bench.gpu.case import GpuCase
from bench.gpu.cases import BY_NAME, CASES
from bench.gpu.clock import Clock, DeviceClock, HostClock, Times, take_times
from bench.gpu.derivative import Place, arrays_of, primal, reverse

TOLERANCE = 1e-9  # of the largest entry: atomic additions come in any order
AIM = 1.2
_COPIED = 1 << 28


@dataclass(frozen=True)
class Row:
    """One case; ``floor`` are the milliseconds in which its bytes could be moved."""

    name: str
    size: int
    times: dict[str, Times]
    floor: float
    error: float

    @property
    def ratio(self) -> float:
        """Irad's time over that of the hand-written kernel."""
        return self.times["irad"].median / self.times["hand"].median


def measure(case: GpuCase, size: int, rounds: int, place: Place, clock: Clock, bandwidth: float) -> Row:
    """Compares the derivatives, then times them.

    Args:
        bandwidth: of the memory, in bytes per millisecond.
    """
    launch = case.launch(size)
    by_hand, by_irad = arrays_of(case, size, place), arrays_of(case, size, place)
    case.hand(launch, by_hand)
    reverse(case, launch, by_irad)
    error = max(largest_error(by_irad[f"d{name}"], by_hand[f"d{name}"]) for name in case.active)
    runs: dict[str, Callable[[], None]] = {
        "primal": partial(primal, case, launch, by_irad),
        "hand": partial(case.hand, launch, by_hand),
        "irad": partial(reverse, case, launch, by_irad),
    }
    return Row(case.name, size, take_times(clock, runs, rounds), case.traffic(size) / bandwidth, error)


def largest_error(found: Any, wanted: Any) -> float:
    """Largest difference of two entries, over the largest that is wanted."""
    a, b = (each.copy_to_host() if hasattr(each, "copy_to_host") else np.asarray(each) for each in (found, wanted))
    return float(np.abs(a - b).max() / np.abs(b).max())


def bandwidth_of(place: Place, clock: Clock, size: int) -> float:
    """Bytes that a copy within the device moves in a millisecond: each is read and written."""
    source, target = (place(np.zeros(size // 8)) for _ in range(2))

    def copy() -> None:
        if hasattr(target, "copy_to_device"):
            target.copy_to_device(source)
        else:
            target[:] = source

    return 2.0 * size / take_times(clock, {"copy": copy}, 5)["copy"].median


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("names", nargs=-1, metavar="[CASE]...")
@click.option("--rounds", default=20, show_default=True, type=click.IntRange(1), help="Launches that are timed.")
@click.option("--small", is_flag=True, help="Small arrays: to try it, or under compute-sanitizer.")
@click.option("--executor", is_flag=True, help="On the CPU; the times mean nothing.")
@click.option("--output", type=click.Path(path_type=Path, dir_okay=False), help="Result file.")
def main(names: tuple[str, ...], rounds: int, small: bool, executor: bool, output: Path | None) -> None:
    """Time primal, hand-written derivative and derivative by irad on a GPU. Without CASE all are measured."""
    unknown = [name for name in names if name not in BY_NAME]
    if unknown:
        raise click.BadParameter(f"no case {unknown[0]!r}; there are {', '.join(BY_NAME)}", param_hint="CASE")
    console = Console()
    place, clock = (np.copy, HostClock()) if executor else (_to_device, DeviceClock())
    with irad.cuda.executor() if executor else nullcontext():
        bandwidth = bandwidth_of(place, clock, _COPIED if not small else 1 << 16)
        rows = [
            measure(case, case.small if small else case.size, rounds, place, clock, bandwidth)
            for case in [BY_NAME[name] for name in names] or CASES
        ]
    console.print(table_of(rows))
    path = output or Path(__file__).parents[1] / "results" / f"gpu-{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    found = [asdict(row) | {"ratio": row.ratio} for row in rows]
    about = {"environment": environment.describe(), "device": _device(executor), "bandwidth": bandwidth}
    path.write_text(json.dumps(about | {"rows": found}, indent=2) + "\n")
    console.print(f"written to {path}", highlight=False, soft_wrap=True)
    if wrong := [f"{row.name}: off by {row.error:.1e}" for row in rows if not row.error <= TOLERANCE]:
        sys.exit("wrong derivatives\n" + "\n".join(wrong))


def _to_device(array: np.ndarray[Any, Any]) -> Any:
    from numba import cuda  # needs a driver

    return cuda.to_device(array)


def _device(executor: bool) -> str:
    if executor:
        return "irad.cuda.executor"
    from numba import cuda  # needs a driver

    name = cuda.get_current_device().name
    return name.decode() if isinstance(name, bytes) else str(name)


def table_of(rows: list[Row]) -> Table:
    """All figures."""
    table = Table(box=None, padding=(0, 2, 0, 0), title="Medians in ms; floor: the bytes at the speed of a copy")
    table.add_column("case", no_wrap=True)
    for heading in ("size", "primal", "hand", "irad", "/hand", "/primal", "floor", "spread"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in rows:
        own = row.times["irad"]
        table.add_row(
            row.name,
            str(row.size),
            *(f"{row.times[name].median:.3g}" for name in ("primal", "hand", "irad")),
            f"{row.ratio:.2f}{'' if row.ratio <= AIM else ' !'}",
            f"{own.median / row.times['primal'].median:.2f}",
            f"{row.floor:.3g}",
            f"{max(each.spread for each in row.times.values()):.0%}",
        )
    return table


if __name__ == "__main__":
    main()
