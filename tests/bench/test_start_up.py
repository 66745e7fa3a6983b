"""The benchmark of start-up runs; how long it takes is not tested."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.start_up import ORDERS


@pytest.mark.parametrize("order", ORDERS)
def test_each_step_of_an_order_is_timed(order: str):
    done = subprocess.run(
        [sys.executable, "-m", "bench.start_up", "--", order],
        cwd=Path(__file__).parents[2],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    times = json.loads(done.stdout)
    assert tuple(times) == ORDERS[order]
    assert all(seconds > 0 for seconds in times.values())
