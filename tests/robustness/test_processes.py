"""Functions and derivatives in other processes and threads: pickles, pools, and threads without the GIL."""

from __future__ import annotations

import functools
import importlib
import json
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit

import irad
from irad.frontend.custom import catalogue
from irad.rules import AugmentedReturn

ROOT = Path(__file__).parents[2]
PICKLERS = ("pickle", "numba.cloudpickle")
X, DIRECTION = np.array([1.0, 2.0]), np.array([1.0, -1.0])


@njit
def cubes(x):
    total = 0.0
    for i in range(x.size):
        total += x[i] ** 3
    return total


@irad.jit
def elements(x):
    return x**3


@irad.grad
def decorated(x):
    total = 0.0
    for i in range(x.size):
        total += x[i] ** 3
    return total


def plain(x):
    total = 0.0
    for i in range(x.size):
        total += x[i] ** 3
    return total


def power(exponent: int) -> Any:
    """A closure that calls a lambda, which is a closure, too."""
    each = njit(lambda v: v**exponent)

    @irad.jit
    def total(x):
        return each(x[0]) + each(x[1])

    return total


GRADIENTS = {  # of the sum of cubes
    "njit": lambda: irad.grad(cubes),
    "plain": lambda: irad.grad(plain),
    "decorated": lambda: decorated,
    "lambda": lambda: irad.grad(lambda x: x[0] ** 3 + x[1] ** 3),
    "closure": lambda: irad.grad(power(3)),
    "options": lambda: irad.grad(cubes, options=irad.Options(strict=True)),
    "partial": lambda: functools.partial(lambda make, f, x: make(f)(x), irad.grad, cubes),
    "pickled twice": lambda: pickle.loads(pickle.dumps(irad.grad(power(3)))),
}
OTHERS: dict[str, tuple[Callable[[], Any], tuple[Any, ...], Any]] = {
    "function": (lambda: cubes, (X,), 9.0),
    "irad.jit": (lambda: elements, (X,), X**3),
    "value_and_grad": (lambda: irad.value_and_grad(cubes), (X,), (9.0, 3 * X**2)),
    "pushforward": (lambda: irad.pushforward(elements), (X, DIRECTION), (X**3, 3 * X**2 * DIRECTION)),
    "hvp": (lambda: irad.hvp(cubes), (X, DIRECTION), 6 * X * DIRECTION),
    "hessian": (lambda: irad.hessian(cubes), (X,), np.diag(6 * X)),
    "jacobian": (lambda: irad.jacobian(elements), (X,), np.diag(3 * X**2)),
    "gradient of a gradient": (lambda: irad.grad(njit(lambda x: irad.grad(cubes)(x).sum())), (X,), 6 * X),
}
_CALLS = """
import pickle, sys
calls, again = pickle.load(sys.stdin.buffer), {}
for name, content in calls.items():
    function, args = pickle.loads(content)
    again[name] = function(*args)
sys.stdout.buffer.write(pickle.dumps(again))
"""


def elsewhere(pickler: str, calls: dict[str, tuple[Any, tuple[Any, ...]]]) -> dict[str, Any]:
    """What calls return in a new process, which imports nothing beforehand but the path of irad."""
    cloud = pytest.importorskip(pickler)
    content = pickle.dumps({name: cloud.dumps(call) for name, call in calls.items()})
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", _CALLS]
    done = subprocess.run(command, input=content, stdout=subprocess.PIPE, env=environment, timeout=300, check=True)
    found: dict[str, Any] = pickle.loads(done.stdout)
    return found


@pytest.mark.parametrize("pickler", [pytest.param(PICKLERS[0], marks=pytest.mark.slow), PICKLERS[1]])
def test_gradients_travel(pickler: str) -> None:
    chosen = {name: make for name, make in GRADIENTS.items() if pickler != "pickle" or name != "partial"}
    found = elsewhere(pickler, {name: (make(), (X,)) for name, make in chosen.items()})
    for name in chosen:
        np.testing.assert_allclose(found[name], 3 * X**2, rtol=1e-15, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("pickler", PICKLERS)
def test_other_derivatives_travel(pickler: str) -> None:
    found = elsewhere(pickler, {name: (make(), args) for name, (make, args, _) in OTHERS.items()})
    for name, (_, _, expected) in OTHERS.items():
        pairs = zip(found[name], expected, strict=True) if isinstance(expected, tuple) else [(found[name], expected)]
        for mine, its in pairs:
            np.testing.assert_allclose(mine, its, rtol=1e-14, err_msg=name)


@pytest.mark.slow
def test_sparse_derivatives_travel() -> None:
    pytest.importorskip("scipy.sparse")
    sparse = irad.sparse_jacobian(elements)
    for made in (sparse, sparse.prepare(X)):
        assert np.array_equal(pickle.loads(pickle.dumps(made))(X).toarray(), np.diag(3 * X**2))


def test_pullbacks_stay() -> None:
    with pytest.raises(TypeError, match="a tape holds memory of this process"):
        pickle.dumps(irad.vjp(cubes, X)[1])


def test_the_cache_travels() -> None:
    kept = irad.jit(lambda x: x**3, cache=True)
    content = pickle.dumps(kept)
    numba.core.dispatcher.Dispatcher._memo.clear()  # as in another process, which does not know its number
    again = pickle.loads(content)
    assert again is not kept
    assert again.stats.cache_path is not None
    assert irad.grad(again).stats.cache_path is not None


# ------------------------------------------------------------------------------------------------ rules


@irad.custom_vjp
def clipped(x, bound):
    return x


clipped.defvjp(
    lambda x, bound: (x, bound),
    lambda bound, cotangent: (max(-bound, min(bound, cotangent)), None),
)


def with_rules() -> Any:
    """A function that calls functions with rules; one of these is called by its rule. The slope at 5 is 1 + 100 + 7."""

    @njit
    def scale(x):
        return 3.0 * x

    @irad.rules.augmented_primal(scale)
    def scale_augmented(config, x):
        return AugmentedReturn(scale(x.value), None, None)

    @irad.rules.reverse(scale)
    def scale_reverse(config, cotangent, tape, x):
        return (100.0 * cotangent,)

    @irad.jit
    def easy(x):
        return x

    irad.rules.easy_rule(easy, lambda x, y: 7.0)
    return njit(lambda x: clipped(x, 1.0) ** 2 + scale(x) + easy(x))


@pytest.mark.parametrize("pickler", [pytest.param(PICKLERS[0], marks=pytest.mark.slow), PICKLERS[1]])
def test_rules_travel(pickler: str) -> None:
    function = with_rules()
    calls: dict[str, Any] = {"gradient": (irad.grad(function), (5.0,))}
    if pickler != "pickle":  # which writes a plain function by its name
        calls["function"] = functools.partial(_gradient_there, function), (5.0,)
    assert set(elsewhere(pickler, calls).values()) == {108.0}


def _gradient_there(function: Any, x: float) -> Any:
    import irad

    return irad.grad(function)(x)


@pytest.mark.slow
def test_rules_of_libraries_travel_with_derivatives() -> None:
    try:

        @irad.rules.augmented_primal(np.linalg.det)
        def augmented(config, a):
            return AugmentedReturn(1.0, None, None)

        @irad.rules.reverse(np.linalg.det)
        def reverse(config, cotangent, tape, a):
            a.shadow[:] += 42.0 * cotangent
            return (None,)

        derivative = irad.grad(lambda a: np.linalg.det(a))
        found = elsewhere(PICKLERS[1], {"det": (derivative, (np.eye(2),))})["det"]
    finally:
        irad.rules.remove(np.linalg.det)
    assert np.array_equal(found, np.full((2, 2), 42.0))


def test_rules_come_back_unchanged() -> None:
    function = with_rules()
    slope = irad.grad(function)
    assert slope(5.0) == 108.0
    before = catalogue.epoch()  # the first call may load modules that have rules
    again = pickle.loads(pickle.dumps(slope))
    assert again is slope
    assert again(5.0) == 108.0
    assert pickle.loads(pickle.dumps(clipped)).constants == clipped.constants
    assert catalogue.epoch() == before  # nothing was compiled for nothing


def test_pickles_hold_no_rules_of_irads_own_functions() -> None:
    slope = irad.grad(clipped)
    before = len(pickle.dumps(slope))
    importlib.import_module("irad.integrate")  # declares functions of its own inactive
    assert len(pickle.dumps(slope)) == before


# ------------------------------------------------------------------------------------------------ pools

_MODEL = """
import numpy as np
import irad

class TooLarge(Exception):
    pass

@irad.jit(cache=True, nogil=True)
def energy(x):
    total = 0.0
    for i in range(x.size):
        total += x[i] ** 2
    if total > 1e3:
        raise TooLarge("energy", total)
    return total

slope = irad.grad(energy)
refused = irad.grad(lambda x: x.undefined)
"""
_MAIN = """
import json
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
import numpy as np
import irad
import model

def points():
    return [np.full(2, float(i)) for i in range(6)]

def tried(pool, function, x):
    try:
        return pool.submit(function, x).result().tolist()
    except Exception as error:
        return [type(error).__name__, str(error)]

def by_joblib(backend):
    import joblib
    run = joblib.Parallel(n_jobs=2, backend=backend)
    found = run(joblib.delayed(model.slope)(x) for x in points())
    local = irad.grad(lambda x: np.sum(x * x))
    others = run(joblib.delayed(local)(x) for x in points())
    return [each.tolist() for each in found], [each.tolist() for each in others]

def by_pools(way):
    if way == "warm fork":
        model.slope(np.ones(2))
    context = multiprocessing.get_context(way.split()[-1])
    with context.Pool(2) as pool:
        found = pool.map(model.slope, points())
    with ProcessPoolExecutor(2, context) as pool:
        local = list(pool.map(irad.grad(lambda x: np.sum(x * x)), points()))
        errors = [tried(pool, model.slope, np.full(2, 1e3)), tried(pool, model.refused, np.ones(2))]
    return [each.tolist() for each in found], [each.tolist() for each in local], errors

if __name__ == "__main__":
    way = sys.argv[1]
    print(json.dumps(by_joblib(way) if way in ("loky", "threading") else by_pools(way)))
"""


def run_pool(folder: Path, way: str) -> Any:
    (folder / "model.py").write_text(_MODEL, encoding="utf-8")
    (folder / "main.py").write_text(_MAIN, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": f"{ROOT}{os.pathsep}{folder}", "NUMBA_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, str(folder / "main.py"), way]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, timeout=300, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "way", [pytest.param(each, marks=pytest.mark.slow) for each in ("fork", "warm fork", "forkserver", "spawn")]
)
def test_pools_of_processes(tmp_path: Path, way: str) -> None:
    found, local, (raised, refused) = run_pool(tmp_path, way)
    assert found == local == [[2.0 * i] * 2 for i in range(6)]
    assert raised == ["TooLarge", "('energy', 2000000.0)"]
    assert refused[0] == "BackendError"
    line = 1 + _MODEL.splitlines().index("refused = irad.grad(lambda x: x.undefined)")
    assert f"{tmp_path / 'model.py'}:{line}" in refused[1]


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_joblib(tmp_path: Path, backend: str) -> None:
    pytest.importorskip("joblib", reason="joblib is not installed: nox -s bridges")
    found, local = run_pool(tmp_path, backend)
    assert found == local == [[2.0 * i] * 2 for i in range(6)]


# ------------------------------------------------------------------------------------------------ threads


def test_a_derivative_without_the_gil_lets_python_run() -> None:
    def slow(x, count):
        for _ in range(count):
            x = np.sin(x)
        return x

    def runs_beside(nogil: bool) -> bool:
        """True if this thread does something short while another one computes a long derivative."""
        slope, started = irad.grad(njit(nogil=nogil)(slow)), threading.Event()
        slope(1.0, 1)
        thread = threading.Thread(target=lambda: (started.set(), slope(1.0, 5_000_000)))
        thread.start()
        started.wait()
        for _ in range(300_000):  # many times as long as Python lets a thread keep the lock
            pass
        found = thread.is_alive()
        thread.join()
        return found

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        assert runs_beside(nogil=True)
    finally:
        sys.setswitchinterval(interval)
