"""Machine code that Numba loads from disk is taken for the program that it was made from, and for no other."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import config

import irad
from irad.frontend.frozen.check import is_same_code
from tests.frontend.test_frozen import check

ROOT = Path(__file__).parents[2]


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], Any]]:
    """Writes the modules `cached_of_a_test` and `callee_of_a_test` and loads them again."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    names = ("cached_of_a_test", "callee_of_a_test")

    def load(cached: str, callee: str) -> Any:
        for name, text in zip(names, (cached, callee), strict=True):
            path = tmp_path / f"{name}.py"
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                path.write_text(text, encoding="utf-8")
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module(names[0])

    yield load
    for name in names:
        sys.modules.pop(name, None)


CACHED = """
from numba import njit
import callee_of_a_test as other
from callee_of_a_test import g

@njit(cache=True)
def f(x):
    return g(x) * other.K * x
"""
CALLEE = "from numba import njit\nK = {K}\n@njit\ndef g(x): return {factor} * x\n"


def test_loaded_from_the_disk(disk: Any) -> None:
    disk(CACHED, CALLEE.format(K=2.0, factor=3.0)).f(1.5)
    same = disk(CACHED, CALLEE.format(K=2.0, factor=3.0)).f
    same(1.5)
    assert sum(same.stats.cache_hits.values()) == 1
    check(same, 1.5)


@pytest.mark.parametrize(("K", "factor"), [(2.5, 3.0), (2.0, 4.0)])
def test_loaded_from_the_disk_and_changed(disk: Any, K: float, factor: float) -> None:
    disk(CACHED, CALLEE.format(K=2.0, factor=3.0)).f(1.5)
    changed = disk(CACHED, CALLEE.format(K=K, factor=factor)).f
    changed(1.5)
    assert sum(changed.stats.cache_hits.values()) == 1
    with pytest.raises(irad.ChangedProgramError, match="on disk is out of date"):
        irad.grad(changed)(1.5)
    changed.recompile()
    check(changed, 1.5)


def test_what_cannot_be_told_apart_is_compiled_again(disk: Any) -> None:
    """The numbers and the functions are the same: LLVM may have optimised it otherwise, or it is another program."""
    disk(CACHED, CALLEE.format(K=2.0, factor=3.0)).f(1.5)
    found = disk(CACHED, CALLEE.format(K=3.0, factor=2.0)).f
    found(1.5)
    assert sum(found.stats.cache_hits.values()) == 1
    check(found, 1.5)


def test_callees_on_the_disk_with_other_options_than_the_caller(disk: Any) -> None:
    """Numba finds the callee only when it compiles the caller again, for comparison."""
    callee = "import numpy as np\nfrom numba import njit\n"
    callee += "@njit(cache=True)\ndef g(x): return 0.0 if np.isnan(x) else x * x\n"
    caller = "from numba import njit\nfrom callee_of_a_test import g\n"
    caller += "@njit(cache=True, fastmath=True)\ndef f(x): return 2.0 * g(x)\n"
    first = disk(caller, callee)
    first.g(1.0)
    assert first.f(float("nan")) == 0.0
    loaded = disk(caller, callee).f
    assert loaded(float("nan")) == 0.0
    assert irad.value_and_grad(loaded)(float("nan")) == (0.0, 0.0)


def test_a_derivative_follows_what_comes_from_the_disk(disk: Any) -> None:
    disk(CACHED, CALLEE.format(K=2.0, factor=3.0)).f(1.5)
    changed = disk(CACHED, CALLEE.format(K=2.5, factor=3.0)).f
    assert irad.grad(changed)(1.5) == pytest.approx(22.5)
    assert changed(1.5) == 13.5
    with pytest.raises(irad.ChangedProgramError):
        irad.grad(changed)(1.5)


FACTORY = """
from numba import njit, prange
from callee_of_a_test import K

def f(x):
    total = 0.0
    for i in prange(3):
        total += K * x * x
    return total

plain = njit(cache=True)(f)
other = njit(cache=True, {options})(f)
"""


@pytest.mark.parametrize(("first", "second"), [("plain", "other"), ("other", "plain")])
@pytest.mark.parametrize("options", ["parallel=True", "fastmath=True, boundscheck=True, nogil=True"])
def test_code_of_another_dispatcher_of_the_function(disk: Any, options: str, first: str, second: str) -> None:
    """Numba loads it whatever the options are."""
    files = FACTORY.format(options=options), "K = {}\n"
    getattr(disk(files[0], files[1].format(2.0)), first)(1.5)
    found = getattr(disk(files[0], files[1].format(2.0)), second)
    assert found(1.5) == 13.5
    assert sum(found.stats.cache_hits.values()) == 1
    assert irad.grad(found)(1.5) == 18.0


@pytest.mark.parametrize("level", [0, 1])
def test_calls_that_were_not_inlined(disk: Any, monkeypatch: pytest.MonkeyPatch, level: int) -> None:
    """What such a function calls in a library is optimised here already."""
    text = "import numpy as np\nfrom numba import njit\nfrom callee_of_a_test import K\n"
    text += "@njit(cache=True)\ndef f(x): return K * np.exp(x).sum()\n"
    text += "@njit(cache=True)\ndef g(x): return 2.0 * f(x)\n"
    x = np.zeros(2)
    with monkeypatch.context() as patch:
        patch.setattr(config, "OPT", type(config.OPT)(level))
        disk(text, "K = 3.0\n").g(x)
    found = disk(text, "K = 3.0\n")
    assert found.g(x) == 12.0
    np.testing.assert_array_equal(irad.grad(found.g)(x), [6.0, 6.0])
    changed = disk(text, "K = 4.0\n")
    assert changed.f(x) == 6.0
    with pytest.raises(irad.ChangedProgramError, match="on disk is out of date"):
        irad.grad(changed.f)(x)


@pytest.mark.parametrize("level", [0, 1, 2])
def test_code_that_was_optimised_otherwise(disk: Any, monkeypatch: pytest.MonkeyPatch, level: int) -> None:
    files = FACTORY.format(options=""), "K = {}\n"
    with monkeypatch.context() as patch:
        patch.setattr(config, "OPT", type(config.OPT)(level))
        disk(files[0], files[1].format(2.0)).plain(1.5)
    found = disk(files[0], files[1].format(2.0)).plain
    assert found(1.5) == 13.5
    assert sum(found.stats.cache_hits.values()) == 1
    assert irad.grad(found)(1.5) == 18.0
    changed = disk(files[0], files[1].format(3.0)).plain
    assert changed(1.5) == 13.5
    with pytest.raises(irad.ChangedProgramError, match="on disk is out of date"):
        irad.grad(changed)(1.5)


MATHEMATICS = "import math\nfrom numba import njit\nK = 1.0\n@njit\ndef g(x): return math.{function}(x)\n"


def test_a_callee_that_calls_another_function_of_the_library(disk: Any) -> None:
    disk(CACHED, MATHEMATICS.format(function="sin")).f(1.5)
    changed = disk(CACHED, MATHEMATICS.format(function="cos")).f
    changed(1.5)
    assert sum(changed.stats.cache_hits.values()) == 1
    with pytest.raises(irad.ChangedProgramError, match="on disk is out of date"):
        irad.grad(changed)(1.5)
    changed.recompile()
    check(changed, 1.5)


COPIES = """
import numpy as np
from numba import njit

@njit(cache=True)
def halve(x):
    x[:-1] /= 2.0

@njit(cache=True)
def f(x):
    halve(x)
    x[1:] *= 3.0
    return x.sum()
"""
DIFFERENTIATE = """
import numpy as np
import irad
from copies_of_a_test import f

f(np.ones(4))
print(sum(f.stats.cache_hits.values()), *irad.grad(f)(np.ones(4)))
"""


def test_a_callee_on_the_disk_brings_its_own_copy_of_what_both_call(tmp_path: Path) -> None:
    """In the second process Numba compiles what raises for shapes that do not match for `f` alone."""
    (tmp_path / "copies_of_a_test.py").write_text(COPIES, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}
    printed = []
    for _ in range(2):
        command = [sys.executable, "-c", DIFFERENTIATE]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout.split())
    assert printed == [["0", "0.5", "1.5", "1.5", "3.0"], ["1", "0.5", "1.5", "1.5", "3.0"]]


class Library:
    """What is read of a code library of Numba."""

    def __init__(self, text: str) -> None:
        self._text = text

    def _get_module_for_linking(self) -> str:
        return self._text


def test_numbers_in_names_of_blocks_make_no_difference() -> None:
    """Numba counts blocks on from function to function, and LLVM puts comments in a column right of the label."""
    text = """define double @f(double %x) {{
entry:
  br label %B{0}

B{0}:{1}; preds = %entry
  %y = fmul double %x, {2}
  ret double %y
}}"""
    one, other, changed = (
        Library(text.format(*parts)) for parts in ((9, " " * 47, 2.0), (12345, " " * 43, 2.0), (9, " " * 47, 3.0))
    )
    assert is_same_code(one, other)
    assert not is_same_code(one, changed)
