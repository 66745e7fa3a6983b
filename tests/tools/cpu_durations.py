"""A plugin of pytest: durations are seconds of CPU, those of finished child processes included.

    python -m pytest -p tests.tools.cpu_durations -n auto --durations=0

How long a test takes by the clock depends on what else the machine does; `tests.tools.slow_tests` needs what it costs.
"""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

_before = 0.0


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Gives the report of a phase the CPU time since that of the phase before."""
    global _before
    report = yield
    now = sum(os.times()[:4])  # user and system, of this process and of its children
    report.duration, _before = now - _before, now
    return report


def pytest_runtest_logstart() -> None:
    """Leaves out what came before the test: collection, and the end of the test before."""
    global _before
    _before = sum(os.times()[:4])
