"""Derivatives on disk: found again by the same program, and by no other.

A module that is imported again has new functions, as in another process; what takes a process of its own is tested in
`test_processes`.
"""

from __future__ import annotations

import importlib
import logging
import math
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from numba import njit
from numba.core import config
from numba.core.codegen import JITCPUCodegen
from numba.core.compiler import Compiler

import irad
from irad.frontend.calls import watch_hooks
from irad.frontend.custom.workspace_pools import Pool
from irad.frontend.disk import dumped, fingerprint, stored
from irad.frontend.frozen.inherited_options import DEFAULT, Inheritance
from irad.frontend.inner import inner_njit
from irad.nn.convolution.kernels import add_conv

MODEL = """
import irad
from callee_of_a_test import g
import callee_of_a_test as other
from numba import njit

WEIGHT = {weight}

@njit
def f(x):
    return WEIGHT * g(x) * x

def enclosing(power):
    @njit
    def closed(x):
        found = 1.0
        for _ in range(power): found *= x
        return found
    return closed

closed = enclosing({power})

@njit("{returned}(float64)")
def declared(x):
    return x * x

@njit
def looked_up(x):
    return x * getattr(other, "SHIFT")
"""
CALLEE = """
from numba import njit
import numba
import numpy as np
SHIFT = {shift}
TABLE = np.array([1.0, {entry}])
@njit
def g(x): return {factor} * x + TABLE[1]
"""
NAMES = ("model_of_a_test", "callee_of_a_test")
VALUES = {"weight": 2.0, "power": 3, "entry": 0.5, "factor": 3.0, "shift": 4.0, "returned": "float64"}
STORED = irad.Options(cache=True)


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Writes both modules and imports them again."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(**changed: object) -> Any:
        for name, text in zip(NAMES, (MODEL, CALLEE), strict=True):
            (tmp_path / f"{name}.py").write_text(text.format(**(VALUES | changed)), encoding="utf-8")
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        return importlib.import_module(NAMES[0])

    yield load
    for name in NAMES:
        sys.modules.pop(name, None)


def slope(function: Any, options: irad.Options = STORED) -> tuple[float, bool]:
    """The derivative at 1.5, and whether it came from disk."""
    derivative = irad.grad(function, options=options)
    value = derivative(1.5)
    return value, sum(derivative.stats.cache_hits.values()) == 1


def of_f(weight: float = 2.0, entry: float = 0.5, factor: float = 3.0) -> float:
    return weight * (2 * factor * 1.5 + entry)


def test_found_again_unless_something_changed(load: Any) -> None:
    assert slope(load().f) == (of_f(), False)
    assert slope(load().f) == (of_f(), True)
    assert slope(load(factor=4.0).f) == (of_f(factor=4.0), False)
    assert slope(load(entry=1.5).f) == (of_f(entry=1.5), False)
    assert slope(load(weight=5.0).f) == (of_f(weight=5.0), False)
    assert slope(load().f) == (of_f(), True)


def test_closures_are_told_apart(load: Any) -> None:
    module = load()
    assert slope(module.closed) == (3 * 1.5**2, False)
    assert slope(module.enclosing(2)) == (2 * 1.5, False)
    assert slope(load().enclosing(3)) == (3 * 1.5**2, True)


def test_other_options_and_other_derivatives(load: Any) -> None:
    slope(load().f)
    assert slope(load().f, irad.Options(cache=True, plan="save_all")) == (of_f(), False)
    pulled = irad.value_and_grad(load().f, options=STORED)
    value, gradient = pulled(1.5)
    assert (value, gradient) == (2.0 * (3.0 * 1.5 + 0.5) * 1.5, of_f())
    assert not sum(pulled.stats.cache_hits.values())
    single = irad.grad(load().f, options=STORED)
    assert single(np.float32(1.5)) == of_f()  # another type of argument
    assert not sum(single.stats.cache_hits.values())


def test_rules_are_part_of_it(load: Any) -> None:
    slope(load().f)
    module = load()
    irad.rules.inactive(sys.modules[NAMES[1]].g)
    assert slope(module.f) == (2.0 * (3.0 * 1.5 + 0.5), False)
    irad.rules.remove(sys.modules[NAMES[1]].g)
    assert slope(load().f) == (of_f(), True)


def test_rules_for_functions_of_libraries_are_part_of_it(load: Any) -> None:
    slope(load().f)
    irad.rules.inactive(math.sin)
    try:
        assert slope(load().f) == (of_f(), False)
    finally:
        irad.rules.remove(math.sin)
    assert slope(load().f) == (of_f(), True)


def test_signatures_and_what_is_looked_up_are_part_of_it(load: Any) -> None:
    assert slope(load().declared) == (3.0, False)
    assert slope(load(returned="float32").declared) == (3.0, False)
    assert slope(load().declared) == (3.0, True)
    assert slope(load().looked_up) == (4.0, False)
    assert slope(load(shift=5.0).looked_up) == (5.0, False)
    assert slope(load(shift=5.0).looked_up) == (5.0, True)


def test_compilers_of_users_are_refused(load: Any, caplog: pytest.LogCaptureFixture) -> None:
    own = type("Own", (Compiler,), {"__module__": __name__})
    with caplog.at_level(logging.DEBUG, "irad.cache"):
        assert slope(njit(pipeline_class=own)(load().closed.py_func)) == (3 * 1.5**2, False)
    assert "no class Own" in caplog.text


def _by_environment(patch: pytest.MonkeyPatch) -> None:
    patch.setenv("IRAD_VERIFY", "1")


def _by_processor(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(JITCPUCodegen, "magic_tuple", lambda self: ("another", "processor", ""))


def _by_setting(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(config, "SLP_VECTORIZE", not config.SLP_VECTORIZE)


def _by_version(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fingerprint, "_versions", lambda: ("another version",))


def _by_release(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fingerprint, "_versions", fingerprint._versions.__wrapped__)
    patch.setattr(irad, "__version__", "99.0.0")


@pytest.mark.parametrize("change", [_by_environment, _by_processor, _by_setting, _by_version, _by_release])
def test_surroundings_are_part_of_it(load: Any, change: Callable[[pytest.MonkeyPatch], None]) -> None:
    slope(load().closed)
    with pytest.MonkeyPatch.context() as patch:
        change(patch)
        assert slope(load().closed) == (3 * 1.5**2, False)
    assert slope(load().closed) == (3 * 1.5**2, True)


def test_rule_declared_after_loading(load: Any) -> None:
    slope(load().f)
    derivative = irad.grad(load().f, options=STORED)
    assert derivative(1.5) == of_f()
    assert sum(derivative.stats.cache_hits.values()) == 1
    g = sys.modules[NAMES[1]].g
    irad.rules.inactive(g)
    assert derivative(1.5) == 2.0 * (3.0 * 1.5 + 0.5)
    irad.rules.remove(g)
    assert derivative(1.5) == of_f()


def test_values_that_numba_froze_are_followed(load: Any) -> None:
    slope(load(weight=7.0).f)
    module = load()
    module.f(1.5)
    module.WEIGHT = 7.0
    assert slope(module.f)[0] == of_f()
    assert slope(load(weight=7.0).f) == (of_f(weight=7.0), True)
    assert slope(load().f)[0] == of_f()


def test_values_that_irad_froze_are_not_stored_as_others(load: Any) -> None:
    module = load()
    calls = njit(module.f.py_func)
    assert slope(calls)[0] == of_f()
    callee = sys.modules[NAMES[1]]
    callee.TABLE[1] = 9.0
    slope(module.f)
    again = load()
    sys.modules[NAMES[1]].TABLE[1] = 9.0
    assert slope(again.f)[0] == of_f(entry=9.0)


def test_numba_compiles_with_other_values_after_loading(load: Any) -> None:
    slope(load().f)
    module = load()
    derivative = irad.grad(module.f, options=STORED)
    assert derivative(1.5) == of_f()
    assert sum(derivative.stats.cache_hits.values()) == 1
    module.WEIGHT = 4.0
    module.f(1.5)
    assert derivative(1.5) == of_f(weight=4.0)


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-7], lambda data: data[:90] + b"x" + data[91:], lambda data: b""]
)
def test_damaged_files_are_replaced(load: Any, tmp_path: Path, damage: Callable[[bytes], bytes]) -> None:
    slope(load().closed)
    for path in (tmp_path / "__pycache__").glob("irad.*"):
        path.write_bytes(damage(path.read_bytes()))
    assert slope(load().closed) == (3 * 1.5**2, False)
    assert slope(load().closed) == (3 * 1.5**2, True)


def test_folder_that_cannot_be_written_to(load: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    slope(load().closed)
    derivative = irad.grad(load(power=4).closed, options=STORED)
    shutil.rmtree(tmp_path / "__pycache__")
    (tmp_path / "__pycache__").write_text("in the way")
    with caplog.at_level(logging.DEBUG, "irad.cache"):
        assert derivative(1.5) == 4 * 1.5**3
    assert "cannot be written" in caplog.text


def test_reason_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    scope: dict[str, Any] = {}
    exec("def typed_in(x): return x * x", scope)
    with caplog.at_level(logging.DEBUG, "irad.cache"):
        assert slope(scope["typed_in"]) == (3.0, False)
    assert "come from no file" in caplog.text


def test_old_files_are_removed_unless_they_are_in_use(tmp_path: Path) -> None:
    paths = [stored.path_in(tmp_path, "model.f", "(float64,)", f"{number:032}") for number in range(12)]
    for path in paths[:11]:
        assert stored.write(path, b"code")
    assert sorted(tmp_path.iterdir()) == paths[:11]
    for number, path in enumerate(paths[:11]):
        os.utime(path, (number, number))
    assert stored.read(paths[0]) == b"code"
    assert stored.write(paths[11], b"code")
    assert sorted(tmp_path.iterdir()) == [paths[0], *paths[5:]]


def test_what_a_killed_writer_left_is_removed_in_the_end(tmp_path: Path) -> None:
    path = stored.path_in(tmp_path, "f", "(float64,)", "0" * 32)
    left, being_written = (path.with_name(f"{path.name}.{word}.tmp") for word in ("old", "new"))
    for each in (left, being_written):
        each.write_bytes(b"half")
    os.utime(left, (0, 0))
    assert stored.write(path, b"content")
    assert stored.read(path) == b"content"
    assert sorted(tmp_path.iterdir()) == [path, being_written]


def test_limits_of_tapes_keep_their_messages(load: Any, caplog: pytest.LogCaptureFixture) -> None:
    limited = irad.Options(cache=True, max_tape_bytes=1)
    load()
    text = "from numba import njit\nimport numpy as np\n@njit\n"
    text += "def f(x):\n    for i in range(3): x = np.exp(x) * x\n    return x\n"
    told = []
    for _ in range(2):
        path = Path(sys.modules[NAMES[0]].__file__ or "")
        path.write_text(text, encoding="utf-8")
        importlib.invalidate_caches()
        sys.modules.pop(NAMES[0])
        watch_hooks._infos.clear()  # as in another process
        with caplog.at_level(logging.DEBUG, "irad.cache"), pytest.raises(irad.TapeLimitError) as error:
            slope(importlib.import_module(NAMES[0]).f, limited)
        told.append(str(error.value))
    assert told[0] == told[1]
    assert "the line that saves most" in told[1]
    assert "loaded for" in caplog.text


def test_calls_that_depend_on_types_work_with_the_cache(load: Any) -> None:
    for _ in range(2):
        matrix = irad.jacobian(load().f, options=STORED)
        assert matrix(1.5) == of_f()


def test_what_only_an_overload_leads_to_is_not_stored(load: Any, caplog: pytest.LogCaptureFixture) -> None:
    def stands_for(x: float) -> float:
        return x

    @numba.extending.overload(stands_for, strict=False)
    def _implemented(x: Any) -> Any:
        return lambda x: 7.0 * x

    calls = njit(lambda x: stands_for(x) * x)
    with caplog.at_level(logging.DEBUG, "irad.cache"):
        assert slope(calls) == (21.0, False)
    assert "not found from the names in it" in caplog.text


def test_an_object_that_no_fingerprint_names_is_refused() -> None:
    @njit
    def mine(x):
        return x

    found = fingerprint.Fingerprint("", frozenset(), (mine,), (), Inheritance(DEFAULT))
    kept = dumped._object("irad.object.1", id(mine), found)
    assert (kept.function, kept.is_pool) == (0, False)
    with pytest.raises(fingerprint.CannotStore, match="address of an object of this process"):
        dumped._object("irad.object.1", id(found), found)
    inner = inner_njit(mine.py_func)
    assert dumped._object("irad.object.1", id(inner), found).function is None
    assert dumped._object("irad.object.1", id(add_conv), found)[2:] == ("irad.nn.convolution.kernels.add_conv", False)
    pool = Pool(add_conv)
    of_library = dumped._object("irad.object.1", pool.address, found)
    assert (of_library.function, of_library.is_pool) == ("irad.nn.convolution.kernels.add_conv", True)
    assert stored._found(of_library.function, ()) is add_conv
    unknown = Pool(njit(lambda x: x))
    with pytest.raises(fingerprint.CannotStore, match="address of an object of this process"):
        dumped._object("irad.object.1", unknown.address, found)


ZERO = """
import irad

@irad.jit(cache=True)
def f(x):
    total = 0.0
    for i in range(x.size):
        total += (x[i] ** 2) ** 0.5 * x[i] ** 3
    return total
"""


def test_what_shows_zeros_is_kept_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Hessian looks for zeros that won by one of a gradient in another form, which is made again in the same way."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "zero_of_a_test.py").write_text(ZERO, encoding="utf-8")
    hits = []
    for _ in range(2):
        monkeypatch.delitem(sys.modules, "zero_of_a_test", raising=False)
        importlib.invalidate_caches()
        hessian = irad.hessian(importlib.import_module("zero_of_a_test").f)
        with pytest.warns(irad.NonFiniteWarning, match="zero"):
            assert hessian(np.array([1.0, 0.0])).tolist() == [[12.0, 0.0], [0.0, 0.0]]
        hits.append(sum(hessian.stats.cache_hits.values()))
    assert hits[-1] == 2  # without strong zeros, and then with them
