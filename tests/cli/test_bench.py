"""`irad bench`: what it measures, what it refuses to time, and its status."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from irad.benchmark import costs
from irad.benchmark.compare import changes, figures_of, spread_of
from irad.benchmark.costs import Timing, time_interleaved
from irad.cli import main

MODEL = """
import math

import numpy as np
from numba import njit


@njit
def loss(x, rate):
    s = 0.0
    for i in range(x.size):
        s += math.sin(rate * x[i])
    return s


@njit
def by_hand(x, rate):
    s, x_bar = 0.0, np.empty_like(x)
    for i in range(x.size):
        s += math.sin(rate * x[i])
        x_bar[i] = rate * math.cos(rate * x[i])
    return s, x_bar


def wrong(x, rate):
    value, gradient = by_hand(x, rate)
    gradient[0] *= 1.0 + 1e-6
    return value, gradient


def only_gradient(x, rate):
    return by_hand(x, rate)[1]


@njit
def doubling(x):
    x[0] *= 2.0
    return x[0] * x[0]


@njit
def picky(x):
    if x > 3.0:
        raise ValueError("too large")
    return math.log(x)
"""
POINT = ("--args", "np.linspace(0.1, 1.0, 200), 1.5", "--rounds", "3")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("bench") / "bench_model.py"
    file.write_text(MODEL)
    return file


def called(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", *arguments])


@pytest.fixture(scope="module")
def result(model: Path) -> dict:
    done = called(f"{model}:loss", *POINT, "--wrt", "x", "--hand", f"{model}:by_hand", "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def test_all_figures_are_there(result: dict):
    assert result["wrt"] == ["x"]
    for name in ("seconds", "spread", "compile_seconds", "peak_bytes"):
        assert set(result[name]) == {"primal", "gradient", "hand"}
    assert all(seconds > 0.0 for name in ("seconds", "compile_seconds") for seconds in result[name].values())
    assert set(result["overhead_seconds"]) == {"primal", "gradient"}
    for other in ("primal", "hand"):
        assert result["ratio"][other] == result["seconds"]["gradient"] / result["seconds"][other]
    assert set(result["errors"]) == {"finite differences", "forward mode", "hand"}
    assert max(result["errors"].values()) < 1e-8
    assert result["tape_bytes"] >= 0


def test_the_table_and_a_comparison(model: Path, result: dict, tmp_path: Path):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    result = result | {"tape_bytes": 1 << 30, "ratio": {"primal": 1e-3}, "spread": {}}
    old.write_text(json.dumps(result))
    done = called(f"{model}:loss", *POINT, "--wrt", "x", "--compare", str(old), "-o", str(new))
    assert done.exit_code == 1, done.output
    assert "loss, gradient with respect to x; 3 rounds" in done.stdout
    assert "worse  ratio to primal" in done.stdout
    assert "good   tape_bytes" in done.stdout
    compared = {each["figure"]: each["regression"] for each in json.loads(new.read_text())["compared"]}
    assert compared["ratio to primal"]
    assert not compared["tape_bytes"]


def test_what_counts_as_worse():
    old = {
        "ratio": {"primal": 2.0, "hand": 1.0},
        "compile_seconds": {"primal": 1.0, "gradient": 2.0},
        "tape_bytes": 100,
        "peak_bytes": {"gradient": 1000},
        "spread": {"primal": 0.02, "gradient": 0.03},
    }
    assert not any(each.is_regression for each in changes(figures_of(old), figures_of(old), 0.0))
    assert spread_of(old) == 0.03

    def worse(spread: float, **changed: object) -> set[str]:
        found = changes(figures_of(old), figures_of(old | changed), spread)
        return {each.figure for each in found if each.is_regression}

    assert worse(0.0, ratio={"primal": 2.3, "hand": 1.05}) == {"ratio to primal"}
    assert worse(0.1, ratio={"primal": 2.3, "hand": 1.3}) == {"ratio to hand"}
    assert worse(0.1, tape_bytes=102) == {"tape_bytes"}
    assert worse(0.0, peak_bytes={"gradient": 1300}) == {"peak_bytes"}
    assert worse(0.0, peak_bytes={"gradient": None}) == set()
    assert worse(0.0, compile_seconds={"primal": 1.0, "gradient": 2.6}) == {"compile_ratio"}
    assert worse(0.0, tape_bytes=50, ratio={"primal": 1.0}) == set()


@pytest.mark.parametrize(
    ("hand", "said"),
    [
        ("wrong", "from what the hand-written gradient returns"),
        ("only_gradient", "200 numbers instead of the value and"),
    ],
)
def test_a_wrong_gradient_is_not_timed(model: Path, hand: str, said: str):
    done = called(f"{model}:loss", *POINT, "--wrt", "x", "--hand", f"{model}:{hand}")
    assert done.exit_code == 1
    assert said in done.output
    assert "time of a call" not in done.output


def test_written_arguments_are_put_back(model: Path):
    """Otherwise x would be infinite after a thousand calls, and each call would compute something else."""
    done = called(f"{model}:doubling", "--args", "np.array([1.5])", "--rounds", "3", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["ratio"]["primal"] > 0.0


def test_what_is_put_back_is_not_timed():
    state, seen = [0], []

    def before() -> None:
        state[0] = 0

    def run() -> None:
        seen.append(state[0])
        state[0] += 1

    timings = time_interleaved({"run": run}, 3, before=before, sample_ns=1)
    assert len(timings["run"].samples) == 3
    assert set(seen) == {0}


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (("picky", "--args", "4.0"), 1, "too large"),
        (("picky", "--args", "0.0"), 1, "is not finite at these arguments"),
        (("picky",), 2, "Missing option '--args'"),
        (("picky", "--args", "1.0", "--compare", "{model}"), 2, "this is not JSON"),
        (("loss", "--args", "np.ones(3), 1.0", "--wrt", "y"), 2, "there is no parameter 'y'"),
    ],
)
def test_what_cannot_be_measured(model: Path, arguments: tuple[str, ...], status: int, said: str):
    name, *rest = (each.format(model=model) for each in arguments)
    done = called(f"{model}:{name}", *rest)
    assert done.exit_code == status, done.output
    assert said in done.output


def test_a_first_call_that_compiles_does_not_make_samples_of_one_cold_call():
    now, calls = 0, 0

    def run() -> None:
        nonlocal now, calls
        calls += 1
        now += 1_000 if calls > 1 else 2_000_000_000

    timing = time_interleaved({"run": run}, 3, clock=lambda: now, sample_ns=1_000_000)["run"]
    assert calls > 3 * 900
    assert timing.samples == (1e-6,) * 3


def test_the_empty_call_passes_arguments_as_the_function_takes_them(monkeypatch: pytest.MonkeyPatch):
    timed = {}

    def looked_at(runs: dict[str, Any], rounds: int) -> dict[str, Timing]:
        timed.update(runs)
        return {name: Timing((run() is not None,) * rounds) for name, run in runs.items()}

    monkeypatch.setattr(costs, "time_interleaved", looked_at)
    costs.call_overhead((np.ones(3), [1.0, 2.0], "word", 2.0), (0, 3), 3)
    for run in timed.values():
        assert [np.size(value) for value in run.args] == [0, 1, 1, 1]
        function = getattr(run.func, "primal", run.func)
        kinds = {each.kind for each in inspect.signature(function.py_func).parameters.values()}
        assert kinds == {inspect.Parameter.POSITIONAL_OR_KEYWORD}
