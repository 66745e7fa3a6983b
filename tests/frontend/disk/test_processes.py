"""The cache from process to process: two write at the same time, and the next compiles nothing."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irad.backend import vector_math

ROOT = Path(__file__).parents[3]
MODEL = """
import numpy as np
import irad
from numba import njit

class TooLarge(Exception):
    pass

@njit
def wave(v):
    return np.sin(v) * v

@irad.jit(cache=True)
def loss(x):
    total = 0.0
    for i in range(1, x.size):
        total += wave(x[i]) * x[i - 1]
    if total > 1e6:
        raise TooLarge("at", total)
    return total

value_and_slope = irad.value_and_grad(loss)

@irad.jit(cache=True)
def step(x):
    return x - 0.1 * value_and_slope(x)[1]

@njit
def plain(x):
    return x[0] * x[1] ** 2

STORED = irad.Options(cache=True)
push = irad.pushforward(plain, options=STORED)
curved = irad.hvp(plain, options=STORED)

@njit
def bell(x):
    total = 0.0
    for i in range(x.size):
        total += np.exp(-x[i] * x[i])
    return total

bell_slope = irad.grad(bell, options=STORED)

@njit
def usual(x, generator, part):
    table = {"a": np.dot(np.ones(2), np.ones(2)) * x, "b": 0.0 * np.random.normal()}
    return table["a"] * x + 0.0 * generator.random() + table["b"] + 0.0 * np.ones(3)[part].sum()

usual_slope = irad.grad(usual, options=STORED)

@njit(cache=True)
def slopes(x):
    return bell_slope(x).sum()
"""
MAIN = """
import json
import os
import warnings
import numpy as np
from numba.core import event
from numba.core.bytecode import FunctionIdentity
compiled = event.RecordingListener()
event.register("numba:compile", compiled)
import irad
import model

x = np.linspace(0.5, 2.0, 5)
value, slope = model.value_and_slope(x)
try:
    model.value_and_slope(np.full(2, (2000 + 0.5) * np.pi))
    raised = None
except model.TooLarge as error:
    raised = [str(each) for each in error.args]
found = {
    "value": value,
    "slope": slope.tolist(),
    "loss": model.loss(x),
    "step": model.step(x).tolist(),
    "pushed": repr(model.push(np.array([2.0, 3.0]), np.array([1.0, 0.0]))),
    "curved": model.curved(np.array([0.0, 1.0]), np.array([2.0, 3.0])).tolist(),
    "bell": model.bell_slope(np.linspace(-1.0, 2.0, 67)).tolist(),
    "usual": model.usual_slope(1.5, np.random.default_rng(0), slice(0, 2)),
    "pulled": repr(irad.jvp(model.bell, (x,), (x,), options=model.STORED)),
    "raised": raised,
}
count = len(compiled.buffer)
# what is compiled now meets functions that were loaded
from numba import njit
later = njit(lambda x: model.value_and_slope(x)[1].sum() + model.loss(x))(x)
other = irad.grad(model.loss, options=irad.Options(strict=True))(x).tolist()
with warnings.catch_warnings(record=True) as told:
    warnings.simplefilter("always")
    other.append(model.slopes(x))
pulled = irad.vjp(model.bell, x, options=model.STORED)[1](1.0)[0].tolist()
refused = any("Cannot cache" in str(each.message) for each in told)

def numbered():
    # the number that a forked process gives to the next function
    ready, mine = os.pipe()
    if os.fork() == 0:
        os.write(mine, str(next(FunctionIdentity._unique_ids)).encode())
        os._exit(0)
    os.wait()
    return int(os.read(ready, 100))

numbers = [numbered(), numbered(), next(FunctionIdentity._unique_ids)]
print(json.dumps([found, count, later, other, pulled, refused, numbers]))
"""


@dataclass(frozen=True)
class Found:
    """What a process printed; see MAIN."""

    loaded: dict[str, Any]
    count: int
    later: float
    other: list[float]
    pulled: list[float]
    is_refused: bool
    numbers: list[int]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("processes")
    (folder / "model.py").write_text(MODEL, encoding="utf-8")
    (folder / "main.py").write_text(MAIN, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def runs(folder: Path) -> list[Found]:
    """What three processes found: the first two at the same time."""
    ready = [_started(folder) for _ in range(2)]
    return [_result(each) for each in ready] + [_result(_started(folder))]


def _started(folder: Path) -> Any:
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("NUMBA_CACHE_DIR", None)
    return subprocess.Popen(
        [sys.executable, str(folder / "main.py")], stdout=subprocess.PIPE, text=True, env=environment, cwd=folder
    )


def _result(process: Any) -> Found:
    out, _ = process.communicate(timeout=300)
    assert process.returncode == 0
    return Found(*json.loads(out))


def test_second_process_compiles_nothing(runs: list[Found]) -> None:
    assert max(run.count for run in runs[:2]) > 0  # either may have found all that the other wrote
    assert runs[2].count == 0


def test_results_are_the_same_to_the_bit(runs: list[Found]) -> None:
    first, *others = (replace(run, count=0, numbers=[]) for run in runs)
    assert others == [first, first]


def test_results_are_right(runs: list[Found]) -> None:
    found, bell, x = runs[2].loaded, np.linspace(-1.0, 2.0, 67), np.linspace(0.5, 2.0, 5)
    slope = found["slope"]
    assert found["curved"] == [6.0, 4.0]
    assert "9.0" in found["pushed"]
    assert found["raised"] is not None
    assert found["usual"] == 6.0
    assert found["bell"] == pytest.approx(-2 * bell * np.exp(-bell * bell), rel=1e-14)
    assert runs[2].other == pytest.approx([*slope, sum(_slopes_of_bell(x))], rel=1e-14)
    assert runs[2].pulled == pytest.approx(_slopes_of_bell(x), rel=1e-14)
    assert runs[2].later == pytest.approx(sum(slope) + found["loss"], rel=1e-14)
    assert found["step"] == pytest.approx([each - 0.1 * by for each, by in zip(x, slope, strict=True)])
    assert found["value"] == found["loss"]


def _slopes_of_bell(x: Any) -> Any:
    return -2 * x * np.exp(-x * x)


@pytest.mark.skipif(not vector_math.is_loaded(), reason="the C library has no functions for vectors")
def test_code_with_functions_for_vectors_is_loaded(folder: Path, runs: list[Found]) -> None:
    stored = list((folder / "__pycache__").glob("irad.model_grad_bell.*"))
    assert stored
    assert all(b"_ZGV" in each.read_bytes() for each in stored)
    assert runs[2].loaded["bell"] == runs[0].loaded["bell"]


def test_cache_of_numba_does_not_take_what_was_loaded(runs: list[Found]) -> None:
    assert all(run.is_refused for run in runs)


def test_forked_processes_number_functions_apart(runs: list[Found]) -> None:
    gaps = np.diff(sorted(itertools.chain(*(run.numbers for run in runs))))
    assert min(gaps) > 10**6
