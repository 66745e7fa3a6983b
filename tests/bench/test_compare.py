"""`python -m bench --compare` fails where a ratio got worse, and only there."""

from __future__ import annotations

import pytest

from bench.harness.outcome import regressions


def result(ratio: float | None, compile_ratio: float | None, spread: float = 0.0) -> dict:
    case = {"name": "heat", "ratio": ratio, "compile_ratio": compile_ratio, "spread": {"irad": spread}}
    return {"cases": [case]}


@pytest.mark.parametrize(
    ("old", "new", "count"),
    [
        (result(1.0, 2.0), result(1.05, 2.4), 0),
        (result(1.0, 2.0), result(1.2, 2.6), 2),
        (result(1.0, 2.0, 0.1), result(1.25, 2.0, 0.1), 0),
        (result(1.0, None), result(2.0, 2.0), 1),
        (result(None, None), result(2.0, 2.0), 0),
        ({"cases": []}, result(2.0, 2.0), 0),
    ],
)
def test_what_counts_as_worse(old: dict, new: dict, count: int):
    found = regressions(old, new)
    assert len(found) == count
    assert all(line.startswith("heat: ") for line in found)
