"""Options of Numba change the speed of a derivative, never the derivative beyond rounding."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

import irad
from tests.robustness.programs import PROGRAMS, arguments

ROOT = Path(__file__).parents[2]

OPTIONS: dict[str, dict[str, Any]] = {
    "fastmath": {"fastmath": True},
    "some of fastmath": {"fastmath": {"reassoc", "contract", "arcp"}},
    "error_model": {"error_model": "numpy"},
    "boundscheck": {"boundscheck": True},
    "nogil": {"nogil": True},
    "inline": {"inline": "always"},
    "forceinline": {"forceinline": True},
    "all": {"fastmath": True, "error_model": "numpy", "boundscheck": True, "nogil": True},
    "looplift": {"no_rewrites": True, "no_cfunc_wrapper": True},
}


def derivatives(program: Any, **options: Any) -> tuple[float, np.ndarray, float]:
    value, (by_x, by_u) = irad.value_and_grad(numba.njit(**options)(program), (0, 1))(*arguments())
    return value, by_x, by_u


@cache
def plain(name: str) -> tuple[float, np.ndarray, float]:
    return derivatives(next(program for program in PROGRAMS if program.__name__ == name))


# All pairs take a minute; each option meets each kind of program in a third of them.
PAIRS = [(p, o) for i, p in enumerate(PROGRAMS) for j, o in enumerate(OPTIONS) if (i + j) % 3 == 0]
if os.environ.get("IRAD_ROBUSTNESS") == "all":
    PAIRS = [(p, o) for p in PROGRAMS for o in OPTIONS]


@pytest.mark.parametrize(("program", "option"), PAIRS, ids=lambda item: getattr(item, "__name__", item))
def test_option(program, option):
    close(derivatives(program, **OPTIONS[option]), plain(program.__name__))


def close(found: Any, wanted: Any) -> None:
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-11 * np.max(np.abs(b)))


_ALL = """
import json, sys
import numba, irad
from tests.robustness.programs import PROGRAMS, arguments
chosen = PROGRAMS[int(sys.argv[1])::int(sys.argv[2])]
found = {}
for program in chosen:
    value, (by_x, by_u) = irad.value_and_grad(numba.njit(program), (0, 1))(*arguments())
    found[program.__name__] = [value, by_x.tolist(), by_u]
print(json.dumps(found))
"""


@pytest.mark.parametrize("level", range(4))
def test_level_of_optimisation(level):
    part = ("0", "1") if os.environ.get("IRAD_ROBUSTNESS") == "all" else (str(level), "4")
    found = json.loads(run(_ALL, *part, NUMBA_OPT=str(level)))
    assert found
    for name, (value, by_x, by_u) in found.items():
        close((value, np.array(by_x), by_u), plain(name))


_CACHED = """
import sys
from pathlib import Path
import numba, numpy as np
sys.path.insert(0, sys.argv[1])
import cached_module
x = np.array([0.5, 1.5])
cached_module.plain(x)
import irad
hits = sum(cached_module.plain.stats.cache_hits.values())
value, gradient = irad.value_and_grad(cached_module.plain)(x)
print(hits, value, *gradient)
"""

_MODULE = """
import numba, numpy as np

@numba.njit(cache=True)
def callee(a):
    return a * np.sin(a)

@numba.njit(cache=True)
def plain(x):
    total = 0.0
    for a in x:
        total += callee(a)
    return total
"""


def test_function_from_numbas_disk_cache(tmp_path):
    """It comes back without IR: irad compiles it again, privately."""
    (tmp_path / "cached_module.py").write_text(_MODULE)
    first, second = (run(_CACHED, str(tmp_path), NUMBA_CACHE_DIR=str(tmp_path / "cache")).split() for _ in range(2))
    assert [first[0], second[0]] == ["0", "1"]
    assert first[1:] == second[1:]
    x = np.array([0.5, 1.5])
    np.testing.assert_allclose(np.array(second[2:], float), np.sin(x) + x * np.cos(x), rtol=1e-14)


_CALLING = """
import sys, numpy as np
sys.path.insert(0, sys.argv[1])
import calling_module
x = np.array([0.5, 1.5])
print(*calling_module.outer(x), sum(calling_module.outer.stats.cache_hits.values()))
"""

_CALLING_MODULE = """
import irad, numba, numpy as np

@numba.njit(parallel=True)
def loss(x):
    total = 0.0
    for i in numba.prange(x.size):
        total += x[i] * np.sin(x[i])
    return total

gradient = irad.grad(loss)

@numba.njit
def inner(x):
    return gradient(x) * 2.0

@numba.njit(cache=True)
def outer(x):
    return inner(x) + gradient(x)
"""


def test_callers_of_a_derivative_are_not_written_to_numbas_disk_cache(tmp_path):
    """Their code holds addresses of the process: Numba warns, and compiles them again."""
    (tmp_path / "calling_module.py").write_text(_CALLING_MODULE)
    for _ in range(2):
        *values, hits = run(_CALLING, str(tmp_path), NUMBA_CACHE_DIR=str(tmp_path / "cache")).split()
        x = np.array([0.5, 1.5])
        np.testing.assert_allclose([float(v) for v in values], 3 * (np.sin(x) + x * np.cos(x)), rtol=1e-14)
        assert hits == "0"


def run(script: str, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
