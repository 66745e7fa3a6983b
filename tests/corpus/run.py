"""Runs the tables of packages, each in processes of its own: a sample that ends its process counts as crashed.

    python -m tests.corpus.run numba_stats quantecon      # all when none is named
    python -m tests.corpus.run numba_stats -k logpdf

prints the outcome of each sample and a table of counts.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Timer
from typing import Final

from tests.corpus.outcome import Outcome, table_of

ROOT: Final = Path(__file__).parents[2]
_SECONDS: Final = 600  # for one sample: compilation of the largest takes a minute


def names() -> list[str]:
    """The packages with a table."""
    return sorted(path.stem for path in (Path(__file__).parent / "packages").glob("*.py"))


def run_package(name: str, numbers: Sequence[int]) -> Iterator[tuple[int, Outcome, str]]:
    """Number, outcome and details of each numbered sample of a package, as they come."""
    rest = list(numbers)
    while rest:
        before = len(rest)
        for result in _run_process(name, rest.copy()):
            rest.remove(result[0])
            yield result
        assert len(rest) < before, f"{name}: the process ends before the first sample"


def _run_process(name: str, numbers: Sequence[int]) -> Iterator[tuple[int, Outcome, str]]:
    """Results up to the end of the process; the sample that ended it is the last of them."""
    command = [sys.executable, "-m", "tests.corpus.outcome", name, *map(str, numbers)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        started: int | None = None
        assert process.stdout is not None
        watch = _Watch(process)
        for line in process.stdout:
            if not line.startswith('{"number"'):  # printed by the sample
                continue
            watch.restart()
            entry = json.loads(line)
            started = None if "outcome" in entry else entry["number"]
            if started is None:
                yield entry["number"], Outcome(entry["outcome"]), entry["details"]
        watch.stop()
    if started is not None and watch.ended_it:
        yield started, Outcome.HUNG, f"killed after {_SECONDS} s"
    elif started is not None:
        yield started, Outcome.CRASHED, f"exit status {process.returncode}"


class _Watch:
    """Kills a process that takes too long over one sample."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.ended_it = False
        self._process = process
        self._timer = Timer(_SECONDS, self._end)

    def restart(self) -> None:
        """Start counting again."""
        self._timer.cancel()
        self._timer = Timer(_SECONDS, self._end)
        self._timer.start()

    def stop(self) -> None:
        """Count no more."""
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
        for number, outcome, details in run_package(name, numbers):
            counts[name][outcome] += 1
            print(f"{outcome:12} {number:3} {samples[number].path}", *details.splitlines(), sep="\n    ", flush=True)
    print(f"{'':20}", *(f"{outcome:>12}" for outcome in Outcome))
    for name, count in counts.items():
        print(f"{name:20}", *(f"{count[outcome]:12}" for outcome in Outcome))


if __name__ == "__main__":
    main()
