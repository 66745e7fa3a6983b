"""Eight threads that compile and call at once; callables that travel between processes."""

from __future__ import annotations

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

import irad
from tests.robustness.programs import PROGRAMS, arguments

THREADS = 8
ROOT = Path(__file__).parents[2]


def at_once(works: list[Callable[[], Any]]) -> list[Any]:
    """What each function returns, run in a thread of its own, all started together."""
    barrier = threading.Barrier(len(works))
    results: list[Any] = [None] * len(works)

    def work(i: int) -> None:
        barrier.wait()
        try:
            results[i] = works[i]()
        except BaseException as error:  # handed to the test
            results[i] = error

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(works))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(300)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


def same(found: Any, wanted: Any) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_compile_the_same_function_at_once():
    function = numba.njit(PROGRAMS[2])
    results = at_once([lambda: irad.grad(function, (0, 1))(*arguments())] * THREADS)
    expected = irad.grad(numba.njit(PROGRAMS[2]), (0, 1))(*arguments())
    assert all(same(found, expected) for found in results)


def test_compile_different_functions_at_once():
    def work(program):
        return lambda: irad.grad(numba.njit(program), (0, 1))(*arguments())

    chosen = PROGRAMS[:THREADS]
    results = at_once([work(program) for program in chosen])
    for program, found in zip(chosen, results, strict=True):
        assert same(found, work(program)())


def test_compile_functions_that_share_a_callee_and_are_refused():
    @numba.njit
    def shared(x):
        return x * x

    @numba.njit
    def good(x, n):
        return shared(x) * n

    def work(i):
        def call():
            if i % 2:
                with pytest.raises(irad.SignatureError):
                    irad.grad(good, 1)(2.0, i)
            return irad.grad(good)(float(i), 2)

        return call

    assert at_once([work(i) for i in range(THREADS)]) == [4.0 * i for i in range(THREADS)]


@pytest.mark.parametrize("nogil", [False, True])
def test_call_at_once(nogil):
    gradient = irad.grad(numba.njit(nogil=nogil)(PROGRAMS[2]), (0, 1))
    points = [arguments()[0] * (1.0 + 0.01 * i) for i in range(THREADS)]
    expected = [gradient(x, 0.8) for x in points]

    def work(i):
        return lambda: all(same(gradient(points[i], 0.8), expected[i]) for _ in range(300))

    assert all(at_once([work(i) for i in range(THREADS)]))


def test_pullbacks_cross_threads():
    pulled = [irad.vjp(numba.njit(PROGRAMS[2]), arguments()[0] * (1 + i), 0.8)[1] for i in range(THREADS)]
    expected = [pullback(1.0) for pullback in pulled]
    found = at_once([lambda i=i: pulled[i](1.0) for i in range(THREADS)])
    assert all(same(a, b) for a, b in zip(found, expected, strict=True))


@numba.njit
def at_module_level(x, u):
    return np.sum(x * x) * u


@pytest.mark.parametrize("module", ["pickle", "numba.cloudpickle"])
@pytest.mark.parametrize("kind", ["grad", "value_and_grad", "value_and_grad_into"])
def test_pickle(module, kind):
    pickler = pytest.importorskip(module)
    derivative = getattr(irad, kind)(at_module_level, (0, 1), options=irad.Options(plan="save_all"))
    again = pickle.loads(pickler.dumps(derivative))
    assert repr(again) == repr(derivative)
    out = ((np.empty(2), np.empty(1)),) if kind == "value_and_grad_into" else ()
    results = [f(*out, np.array([1.0, 2.0]), 3.0) for f in (derivative, again)]
    np.testing.assert_equal(results[0], results[1])


_LOADED = """
import pickle, sys
gradient = pickle.load(sys.stdin.buffer)
print(gradient(3.0))
"""


def test_pickled_by_value_into_another_process():
    cloudpickle = pytest.importorskip("numba.cloudpickle")

    @numba.njit
    def local(x):
        return x**3

    done = subprocess.run(
        [sys.executable, "-c", _LOADED],
        input=cloudpickle.dumps(irad.grad(local)),
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        check=False,
        timeout=300,
    )
    assert done.stdout.split() == [b"27.0"], done.stderr.decode()
