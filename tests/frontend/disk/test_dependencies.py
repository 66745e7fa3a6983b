"""What a derivative on disk depends on that is not in plain sight: rules, overloads, what was compiled before."""

from __future__ import annotations

import ctypes
import importlib
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irad
from irad.api.vjp import augmented_of
from irad.frontend.calls import separate_dispatcher
from irad.frontend.custom import catalogue
from irad.frontend.custom.catalogue import CustomRule
from irad.frontend.disk import dumped, fingerprint
from irad.frontend.disk.fingerprint import CannotStore

STORED = irad.Options(cache=True)
HEAD = "from numba import njit\nimport numpy as np\nimport irad\n"
NAMES = ("caller_of_a_test", "helper_of_a_test")
Load = Callable[..., Any]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Load]:
    """Writes two modules, the second imported by the first as ``helper``, and imports them again."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def load(caller: str, helper: str, **changed: object) -> Any:
        for name in NAMES:
            sys.modules.pop(name, None)
        texts = (f"import {NAMES[1]} as helper\nfrom {NAMES[1]} import *\n{caller}", helper)
        for name, text in zip(NAMES, texts, strict=True):
            for old, new in changed.items():
                text = text.replace(f"<{old}>", str(new))
            (tmp_path / f"{name}.py").write_text(HEAD + text, encoding="utf-8")
        importlib.invalidate_caches()
        return importlib.import_module(NAMES[0])

    yield load
    for name in NAMES:
        sys.modules.pop(name, None)


def slope(function: Any, *more: Any, make: Any = irad.grad) -> tuple[Any, bool]:
    """The derivative at 1.5, and whether it came from disk."""
    derivative = make(function, options=STORED)
    return derivative(1.5, *more), sum(derivative.stats.cache_hits.values()) == 1


F = "@njit\ndef f(x): return g(x) * x\n"


def test_overload_in_line(load: Load) -> None:
    overload = """
from numba.extending import overload
def g(x): return x
@overload(g, inline="always")
def implemented(x):
    return lambda x: <factor> * x
"""
    assert slope(load(F, overload, factor=3.0).f) == (9.0, False)
    assert slope(load(F, overload, factor=4.0).f) == (12.0, False)
    assert slope(load(F, overload, factor=3.0).f) == (9.0, True)


def test_low_level_implementations_are_refused(load: Load, caplog: pytest.LogCaptureFixture) -> None:
    low = """
from numba import types
from numba.extending import lower_builtin, type_callable
def g(x): return x
@type_callable(g)
def typed(context):
    return lambda x: types.float64
@lower_builtin(g, types.float64)
def lowered(context, builder, signature, arguments):
    return builder.fmul(arguments[0], arguments[0].type(3.0))
"""
    with caplog.at_level(logging.DEBUG, "irad.cache"):
        assert slope(load(F, low).f) == (9.0, False)
    assert "low-level" in caplog.text


RULE = """
from irad.rules import AugmentedReturn
@njit
def g(x): return x * x
@njit
def helped(x): return <factor> * x
@irad.rules.augmented_primal(g)
def _augmented(config, x): return AugmentedReturn(x.value * x.value, None, x.value)
@irad.rules.reverse(g)
def _reverse(config, cotangent, tape, x): return (cotangent * helped(tape),)
"""


def test_rules_are_stored_and_followed(load: Load) -> None:
    assert slope(load(F, RULE, factor=10.0).f) == (1.5**2 + 10.0 * 1.5**2, False)
    assert slope(load(F, RULE, factor=11.0).f) == (1.5**2 + 11.0 * 1.5**2, False)
    assert slope(load(F, RULE, factor=10.0).f) == (1.5**2 + 10.0 * 1.5**2, True)


def test_rules_for_derivatives(load: Load) -> None:
    cube = "@njit\ndef cube(x): return x * x * x\ng = irad.grad(cube)\n<rule>\n"
    assert slope(load(F, cube, rule="").f) == (27 / 4 * 3, False)
    assert slope(load(F, cube, rule="irad.rules.inactive(g)").f) == (27 / 4, False)


def digest_of_rules(monkeypatch: pytest.MonkeyPatch, *rules: CustomRule) -> str:
    monkeypatch.setattr(catalogue, "rules", lambda: rules)
    walk = fingerprint._Walk(fingerprint.DEFAULT)
    walk.add_rules_of_libraries()
    return walk.hash.hexdigest()


def test_declarations_of_users_for_functions_of_irad(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of irad itself are in its files, and which of these are loaded is another thing in each process."""
    nothing = digest_of_rules(monkeypatch)
    own = CustomRule(irad.nn.softmax, inactive=catalogue.BY_IRAD)
    assert digest_of_rules(monkeypatch, own) == nothing
    declared = digest_of_rules(monkeypatch, CustomRule(irad.nn.softmax, inactive="declared inactive"))
    with_parts = digest_of_rules(monkeypatch, CustomRule(irad.nn.softmax, parts={"reverse": digest_of_rules}))
    assert len({nothing, declared, with_parts}) == 3


CALLER_OF_SOLVER = """
from irad.implicit import newton, solves
@njit
def residual(x, a): return g(x) - a
@irad.jit(cache=True)
def f(a): return newton(residual, 1.0, (a,), <option>)
@solves(residual)
def solver(guess, a): return helper.solution(a)
@irad.jit(cache=True)
def own(a): return solver(1.0, a)
"""


def test_callees_of_residuals_are_followed(load: Load) -> None:
    """The derivative of a solution is one over the slope of what the residual calls."""

    def found(name: str, power: int, option: str) -> bool:
        helper = f"@njit\ndef g(x): return x ** {power}\n@njit\ndef solution(a): return a ** (1.0 / {power})\n"
        value, is_loaded = slope(getattr(load(CALLER_OF_SOLVER, helper, option=option), name))
        assert value == pytest.approx(1.5 ** (1.0 / power - 1.0) / power, rel=1e-9)
        return is_loaded

    for name in ("f", "own"):
        assert not found(name, 3, "1e-12")
        assert not found(name, 5, "1e-12")
        assert found(name, 3, "1e-12")
    assert not found("f", 3, "1e-13")


WORKSPACE = """
from irad import nn
@njit
def shape(v): return <factor> * v
@irad.jit(cache=True)
def f(x):
    images = np.arange(16.0).reshape(1, 1, 4, 4)
    return shape(nn.conv(x * images, np.ones((1, 1, 3, 3))).sum())
"""


@pytest.mark.slow
def test_code_with_workspace_of_irad(load: Load) -> None:
    for factor, is_loaded in ((2.0, False), (3.0, False), (2.0, True)):
        assert slope(load(WORKSPACE, "", factor=factor).f) == (270.0 * factor, is_loaded)


def pulled(function: Any, options: irad.Options = STORED) -> tuple[float, int]:
    """The derivative at 1.5 by two sweeps, and how many of them came from disk."""
    sweep: Any = augmented_of(function, options)
    pullback = irad.vjp(function, 1.5, options=options)[1]
    value = pullback(1.0)[0]
    both = sweep, next(iter(sweep.specialisations.values())).pullback
    return value, sum(sum(each.stats.cache_hits.values()) for each in both)


def test_sweeps_called_one_after_the_other(load: Load) -> None:
    helper = "@njit\ndef g(x): return <factor> * x\n"
    assert pulled(load(F, helper, factor=2.0).f) == (6.0, 0)
    assert pulled(load(F, helper, factor=2.0).f) == (6.0, 2)
    assert pulled(load(F, helper, factor=5.0).f) == (15.0, 0)
    assert pulled(load(F, helper, factor=2.0).f, irad.Options(cache=True, strict=True)) == (6.0, 0)
    module = load(F, helper, factor=2.0)
    irad.rules.inactive(module.helper.g)
    assert pulled(module.f) == (3.0, 0)


def test_a_pullback_of_another_type_fits_a_sweep_from_disk(load: Load) -> None:
    helper = "@njit\ndef g(x):\n    for i in range(3): x = np.sin(x) * x\n    return x\n"
    pulled(load(F, helper).f)
    f = load(F, helper).f
    _, pullback = irad.vjp(f, 1.5, options=STORED)
    sweep: Any = augmented_of(f, STORED)
    assert sum(sweep.stats.cache_hits.values()) == 1
    assert pullback(2) == pytest.approx((2.0 * irad.grad(f)(1.5),), rel=1e-14)


def test_a_sweep_from_disk_is_never_read_by_another_pullback(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    helper = "@njit\ndef g(x): return np.sin(x)\n"
    irad.vjp(load(F, helper).f, 1.5, options=STORED)
    _, pullback = irad.vjp(load(F, helper).f, 1.5, options=STORED)
    monkeypatch.setattr(separate_dispatcher, "_number_of", lambda derivation, given: 1)
    with pytest.raises(irad.InternalError, match="does not fit"):
        pullback(1.0)


PARALLEL = """
from numba import prange
@irad.jit(cache=True, parallel=True, fastmath=<fast>)
def f(x):
    total = 0.0
    for i in prange(4): total += g(x) * i
    return total
"""


def test_callees_of_parallel_loops_are_followed(load: Load) -> None:
    for factor, fast, is_loaded in ((2.0, False, False), (3.0, False, False), (2.0, True, False), (2.0, False, True)):
        helper = f"@njit\ndef g(x): return {factor} * x\n"
        assert slope(load(PARALLEL, helper, fast=fast).f) == (6.0 * factor, is_loaded)


PASSED = """
@njit
def apply(function, x):
    for _ in range(3):
<lines>    return x
@irad.jit(cache=True)
def f(x): return apply(g, x) + apply(g, 2.0 * x)
"""


def test_functions_as_arguments(load: Load) -> None:
    """Code has the address of such a function, which is another one in each process."""
    lines = 60 * "        x = np.sin(function(x)) * np.exp(-x)\n"  # too many to be put in line
    for factor, hits in ((2.0, 0), (3.0, 0), (2.0, 1)):
        module = load(PASSED, f"@njit\ndef g(x): return {factor} * x\n", lines=lines)
        plain = module.apply.py_func
        wanted = sum(plain(module.g.py_func, x) for x in (1.0, 2.0))
        assert module.f(1.0) == pytest.approx(wanted, rel=1e-9)
        assert sum(module.f.stats.cache_hits.values()) == hits


def test_attributes_that_changed(load: Load) -> None:
    module = load("@njit\ndef f(x): return helper.C * x * x\n", "C = <value>\n", value=2.0)
    assert slope(module.f) == (6.0, False)
    module.helper.C = 7.0
    assert slope(module.f, make=irad.value_and_grad) == ((4.5, 6.0), False)
    module = load("@njit\ndef f(x): return helper.C * x * x\n", "C = <value>\n", value=7.0)
    assert slope(module.f, make=irad.value_and_grad) == ((15.75, 21.0), False)


def test_names_given_to_getattr(load: Load) -> None:
    text = "NAME = 'C'\n@njit\ndef f(x): return getattr(helper, NAME) * x * x\n"
    assert slope(load(text, "C = <value>\n", value=2.0).f) == (6.0, False)
    assert slope(load(text, "C = <value>\n", value=7.0).f) == (21.0, False)


def test_values_frozen_in_what_only_overloads_reach(load: Load) -> None:
    text = F + "@njit\ndef other(x): return g(x)\n"
    helper = "from numba.extending import register_jitable\nC = <value>\n@register_jitable\ndef g(x): return C * x\n"
    module = load(text, helper, value=2.0)
    assert slope(module.other) == (2.0, False)
    module.helper.C = 7.0
    assert slope(module.f) == (6.0, False)
    assert slope(load(text, helper, value=7.0).f) == (21.0, False)


def test_code_from_the_disk_has_the_values_it_was_compiled_with(load: Load) -> None:
    text = "@irad.jit(cache=True)\ndef f(x): return g(x) * x\n"
    helper = "C = <value>\n@irad.jit(cache=True)\ndef g(x): return C * x\n"
    assert load(text, helper, value=2.0).helper.g(1.5) == 3.0
    module = load(text, helper, value=2.0)
    assert module.helper.g(1.5) == 3.0
    module.helper.C = 7.0
    assert module.f(1.5) == 4.5
    assert load(text, helper, value=7.0).f(1.5) == 15.75


def test_options_of_the_first_caller(load: Load) -> None:
    text = "@irad.jit(cache=True)\ndef f(x): return g(x) * 2\n"
    helper = "@njit\ndef g(x): return 1.0 / x\n"
    module = load(text, helper)
    with pytest.raises(ZeroDivisionError):
        module.helper.g(0.0)
    assert module.f(1.0) == 2.0
    assert load(text, helper).f(0.0) == np.inf


@pytest.mark.parametrize(
    "text", ["phi i64 [ {}, %a ], [ 0, %b ]", "add i64 %x, {}", "store ptr inttoptr (i64 {} to ptr)"]
)
def test_addresses_are_noticed_wherever_they_are(text: str) -> None:
    memory = ctypes.create_string_buffer(16)
    with pytest.raises(CannotStore, match="address of this process"):
        dumped._check_addresses(text.format(ctypes.addressof(memory) + 8))
    dumped._check_addresses(text.format(10**6))
