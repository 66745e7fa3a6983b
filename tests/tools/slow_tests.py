"""Which tests are slow: writes `tests/slow_tests.txt` from the durations of a whole run.

    python -m pytest -p tests.tools.cpu_durations -n auto -m "slow or not slow" --durations=0 -vv > run.txt
    python -m tests.tools.slow_tests run.txt

A test that takes a second or more is slow, unless it is the quickest case of its function and takes less than three.
One test of each file stays, unless it takes half a minute. Always stay examples of the documentation, which users copy,
random programs, of which there are as many as are asked for, and what guards the source: counted figures and the seal
around Numba. Tests that the run did not have stay as they are.
`tests/conftest.py` marks those that are listed.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

LIST: Final = Path(__file__).parents[1] / "slow_tests.txt"

_LINE: Final = re.compile(r"^(\d+\.\d+)s (?:call|setup) +(tests/\S.*?)\s*$", re.MULTILINE)
_SLOW: Final = 1.0
_SLOW_ALONE: Final = 3.0
_SLOW_IN_ITS_FILE: Final = 30.0
ALWAYS: Final = (  # what begins so is not listed
    "tests/docs/",
    "tests/properties/",
    "tests/bench/test_counted.py::",
    "tests/frontend/test_numba_private.py::",
)


def durations(report: str) -> dict[str, float]:
    """Seconds by test, as pytest reports them."""
    found: dict[str, float] = defaultdict(float)
    for seconds, test in _LINE.findall(report):
        found[test] += float(seconds)
    return dict(found)


def slow_tests(seconds: Mapping[str, float]) -> list[str]:
    """The tests that are slow, sorted; ``seconds`` has all tests."""
    by_function, by_file = _grouped(seconds, "["), _grouped(seconds, "::")
    slow = {test for test, each in seconds.items() if each >= _SLOW and not test.startswith(ALWAYS)}
    for tests in by_function.values():
        quickest = min(tests, key=lambda test: (seconds[test], test))
        if seconds[quickest] < _SLOW_ALONE:
            slow.discard(quickest)
    for tests in by_file.values():
        quickest = min(tests, key=lambda test: (seconds[test], test))
        if slow.issuperset(tests) and seconds[quickest] < _SLOW_IN_ITS_FILE:
            slow.discard(quickest)
    return sorted(slow)


def _grouped(tests: Iterable[str], separator: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for test in tests:
        found[test.split(separator)[0]].append(test)
    return found


def main(*reports: str) -> None:
    """Writes the list."""
    seconds = durations("\n".join(Path(report).read_text("utf-8") for report in reports))
    others = [test for test in LIST.read_text("utf-8").splitlines() if test not in seconds]
    LIST.write_text("".join(f"{test}\n" for test in sorted([*others, *slow_tests(seconds)])), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
