"""Runs the tables of packages, each in a process of its own: a sample that ends the process counts as crashed.

    python -m tests.corpus.run numba_stats quantecon      # all when none is named
    python -m tests.corpus.run numba_stats -k logpdf

prints the outcome of each sample with its CPU time, and a table of counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Timer
from typing import Final

from tests.corpus.outcome import Outcome, table_of

ROOT: Final = Path(__file__).parents[2]
_SECONDS: Final = 600  # for one sample: compilation of the largest takes a minute


@dataclass(frozen=True, slots=True)
class Checked:
    """What became of a sample.

    Attributes:
        number: its place in the table.
        details: the message of the error, or a remark.
        seconds: CPU time, nearly all of it compilation; None if the process ended.
    """

    number: int
    outcome: Outcome
    details: str
    seconds: float | None = None


def names() -> list[str]:
    """The packages with a table."""
    return sorted(path.stem for path in (Path(__file__).parent / "packages").glob("*.py"))


def run_package(name: str, numbers: Sequence[int]) -> Iterator[Checked]:
    """What became of each numbered sample of a package, as the results come."""
    rest = list(numbers)
    while rest:
        before = len(rest)
        for result in _run_process(name, rest.copy()):
            rest.remove(result.number)
            yield result
        assert len(rest) < before, f"{name}: the process ended before the first sample"


def _run_process(name: str, numbers: Sequence[int]) -> Iterator[Checked]:
    """Results up to the end of the process; the last of them is the sample that ended it."""
    command = [sys.executable, "-m", "tests.corpus.outcome", name, *map(str, numbers)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        started: int | None = None
        assert process.stdout is not None
        watch = _Watch(process)
        for line in process.stdout:
            if not line.startswith('{"number"'):  # the sample printed it
                continue
            watch.restart()
            entry = json.loads(line)
            started = None if "outcome" in entry else entry["number"]
            if started is None:
                yield Checked(**entry | {"outcome": Outcome(entry["outcome"])})
        watch.stop()
    if started is not None and watch.ended_it:
        yield Checked(started, Outcome.HUNG, f"killed after {_SECONDS} s")
    elif started is not None:
        yield Checked(started, Outcome.CRASHED, f"exit status {process.returncode}")


class _Watch:
    """Kills a process that takes too long over one sample."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.ended_it = False
        self._process = process
        self._timer = Timer(_SECONDS, self._end)

    def restart(self) -> None:
        """Give the next sample its time."""
        self._timer.cancel()
        self._timer = Timer(_SECONDS, self._end)
        self._timer.start()

    def stop(self) -> None:
        """Let the process run on."""
        self._timer.cancel()

    def _end(self) -> None:
        self.ended_it = True
        self._process.kill()


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("packages", nargs="*", metavar="PACKAGE", help=", ".join(names()))
    parser.add_argument("-k", default="", metavar="TEXT", help="only samples with TEXT in their path")
    options = parser.parse_args()
    counts = {}
    for name in options.packages or names():
        samples = table_of(name).samples
        numbers = [i for i, sample in enumerate(samples) if options.k in sample.path]
        counts[name] = Counter[Outcome]()
        for result in run_package(name, numbers):
            counts[name][result.outcome] += 1
            seconds = "" if result.seconds is None else f"{result.seconds:.1f} s"
            line = f"{result.outcome:12} {seconds:>7} {result.number:3} {samples[result.number].path}"
            print(line, *result.details.splitlines(), sep="\n    ", flush=True)
    print(f"{'':20}", *(f"{outcome:>12}" for outcome in Outcome))
    for name, count in counts.items():
        print(f"{name:20}", *(f"{count[outcome]:12}" for outcome in Outcome))


if __name__ == "__main__":
    main()
