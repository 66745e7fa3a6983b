"""`python -m bench --compare` fails where a ratio got worse, and only there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from bench.__main__ import main
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


def test_the_status(tmp_path: Path):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    case = {"name": "black-scholes", "ratio": 1e-3, "compile_ratio": None, "spread": {}}
    old.write_text(json.dumps({"cases": [case]}))
    done = CliRunner().invoke(
        main, ["black-scholes", "--rounds", "3", "--no-compile", "--compare", str(old), "--output", str(new)]
    )
    assert done.exit_code == 1
    assert "worse than before\nblack-scholes: ratio" in done.output
    [case] = json.loads(new.read_text())["cases"]
    assert case["ratio"] > 1e-3
