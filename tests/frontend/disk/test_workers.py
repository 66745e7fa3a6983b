"""Workers that start at once with nothing stored: over all of them each derivative is compiled once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
MODEL = """
import irad
import numpy as np

STRIDED = np.arange(4.0)[::2]

@irad.jit(cache=True)
def loss(x):
    total = 0.0
    for i in range(x.size):
        total += x[i] ** 3
    return total

slope = irad.grad(loss)

@irad.jit(cache=True)
def descend(x):
    return x - slope(x)

@irad.jit(cache=True)
def down(x, n):
    return x if n == 0 else 2.0 * up(x, n - 1)

@irad.jit(cache=True)
def up(x, n):
    return x if n == 0 else 3.0 * down(x, n - 1)

@irad.jit(cache=True)
def strided(x):
    return x[0] + x[1] + STRIDED[0]

@irad.jit(cache=True)
def refused(x):
    return x.undefined

both = {False: down, True: up}
"""
MAIN = """
import json
import os
import signal
import sys
import numpy as np
from numba.core import event
import irad
import model

x = np.array([1.0, 2.0])
calls = {
    "slope": lambda i: model.slope(x).tolist(),
    "both": lambda i: (model.slope(x).tolist(), model.descend(x).tolist()),
    "recursive": lambda i: model.both[i % 2 == 1](1.0, 2),
    "strided": lambda i: model.strided(x),
    "refused": lambda i: model.refused(x),
}
call, count, fate = calls[sys.argv[1]], int(sys.argv[2]), sys.argv[3]
compiled = event.RecordingListener()
event.register("numba:compile", compiled)

class Dying(event.Listener):
    def on_start(self, event):
        os.write(began, b"." * count)
        os.kill(os.getpid(), signal.SIGKILL if fate == "killed" else signal.SIGSTOP)

    def on_end(self, event):
        pass

go, start = os.pipe()
seen, began = os.pipe()
readers, children = [], []
for number in range(count):
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(start)
        if number == 0 and fate != "alive":
            event.register("numba:compile", Dying())
        elif fate != "alive":
            os.read(seen, 1)
        os.read(go, 1)
        try:
            found = call(number)
        except Exception as error:
            found = type(error).__name__
        names = [each.data["dispatcher"].py_func.__name__ for _, each in compiled.buffer if each.is_start]
        os.write(writer, json.dumps([found, names]).encode())
        os._exit(0)
    os.close(writer)
    readers.append(reader)
    children.append(child)
os.close(start)

results = [None if number == 0 and fate != "alive" else json.loads(os.read(readers[number], 100000))
           for number in range(count)]
if fate == "stopped":
    os.kill(children[0], signal.SIGKILL)
for child in children:
    os.waitpid(child, 0)
print(json.dumps(results))
"""


def run(folder: Path, call: str, count: int, fate: str = "alive", **settings: str) -> tuple[list[Any], list[str]]:
    """What the workers found, all the same, and the names of all functions that they compiled."""
    for name, text in (("model", MODEL), ("main", MAIN)):
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "PYTHONDONTWRITEBYTECODE": "1"} | settings
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, str(folder / "main.py"), call, str(count), fate]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, timeout=300, check=True)
    results = [each for each in json.loads(done.stdout) if each is not None]
    return [found for found, _ in results], [name for _, names in results for name in names]


@pytest.mark.parametrize("count", [3, pytest.param(16, marks=pytest.mark.slow)])
def test_one_compiles_and_the_others_load(tmp_path: Path, count: int) -> None:
    found, compiled = run(tmp_path, "slope", count)
    assert found == [[3.0, 12.0]] * count
    assert compiled == ["grad_loss"]
    assert run(tmp_path, "slope", 2) == ([[3.0, 12.0]] * 2, [])
    left = [each.name for each in (tmp_path / "__pycache__").iterdir()]
    assert all(name.endswith(".irad") for name in left)


@pytest.mark.slow
def test_a_function_and_derivatives_that_call_each_other(tmp_path: Path) -> None:
    found, compiled = run(tmp_path, "both", 2)
    assert found == [[[3.0, 12.0], [-2.0, -10.0]]] * 2
    assert compiled.count("descend") == 1
    assert compiled.count("grad_loss") == 2  # for Python and, with strong zeros, for compiled code


@pytest.mark.slow
def test_the_others_take_over_from_one_that_is_killed(tmp_path: Path) -> None:
    found, compiled = run(tmp_path, "slope", 3, "killed")
    assert found == [[3.0, 12.0]] * 2
    assert compiled == ["grad_loss"]


@pytest.mark.slow
def test_nobody_waits_for_ever(tmp_path: Path) -> None:
    found, compiled = run(tmp_path, "slope", 2, "stopped", IRAD_CACHE_WAIT="1")
    assert found == [[3.0, 12.0]]
    assert compiled == ["grad_loss"]


@pytest.mark.slow
def test_functions_that_call_each_other_do_not_wait_for_each_other(tmp_path: Path) -> None:
    found, _ = run(tmp_path, "recursive", 2, IRAD_CACHE_WAIT="inf")
    assert found == [6.0, 6.0]


@pytest.mark.slow
@pytest.mark.parametrize(("call", "result"), [("strided", 3.0), ("refused", "TypingError")])
def test_what_is_not_stored_is_compiled_by_each(tmp_path: Path, call: str, result: object) -> None:
    found, compiled = run(tmp_path, call, 2, IRAD_CACHE_WAIT="inf")
    assert found == [result] * 2
    assert compiled.count(call) == 2
