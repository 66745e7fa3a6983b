from __future__ import annotations

import dataclasses
import pickle
import re

import numba
import numpy as np
import pytest

import irad
from irad.errors import BackendError, SignatureError
from irad.report.collect import ALL
from irad.report.shown.amounts import wrapped_code
from irad.report.shown.text import annotated_source, overview
from tests.report.subjects import TYPES, energy, fill, inspected, line_of, scaled

X = numba.float64[::1]


def test_stages_are_attributes():
    found = inspected(energy)
    for stage in ALL:
        assert getattr(found, stage.value.replace("-", "_")) == found.stage(stage.value)
    assert {"numba_ir", "asm", "explain"} <= set(dir(found))
    with pytest.raises(AttributeError, match="its stages are activity, adjoint"):
        found.gradient  # noqa: B018


def test_values_and_types_give_the_same():
    by_values = irad.inspect(energy, np.ones(3), 2.0, 4)
    for stage in ("adjoint", "plan", "tape"):
        assert by_values.stage(stage) == inspected(energy).stage(stage)
    assert "  tape  280 B in this call\n" in str(by_values)
    assert "  tape  128 B per call + " in str(inspected(energy))
    assert repr(by_values) == "<irad.inspect of energy(float64[::1], float64, int64)>"


def test_the_overview():
    text = str(inspected(energy))
    assert text.startswith("energy(float64[::1], float64, int64) -> float64\n  at    ")
    [line] = [line for line in text.splitlines() if "np.exp(x[i])" in line]
    assert line.split()[:2] == [str(line_of(energy, "np.exp")), "8"]
    assert overview(inspected(energy).report, 120).count("│ active total, w, x; rule exp\n") == 1
    assert "[0] energy: with respect to x, w; result active" in text
    assert re.search(r"and \d more: --stage tape lists all", text)
    assert max(map(len, text.splitlines())) <= 100
    assert max(map(len, overview(inspected(energy).report, 80).splitlines())) <= 80


def test_the_overview_wraps_long_lines_of_the_source():
    """In the narrowest terminals, too; what goes on is indented further than the line."""
    report = inspected(energy).report
    for width in (50, 60, 80):
        shown = list(annotated_source(report, width))
        assert max(map(len, shown)) <= width
    [line] = [facts for facts in report.lines if "np.exp" in facts.text]
    long = dataclasses.replace(line, text=line.text + " + 1.0" * 20, active=(), rules=())
    first, *more = list(annotated_source(dataclasses.replace(report, lines=(long,)), 60))[1:]
    assert all(part.startswith(" " * (19 + len(line.text) - len(line.text.lstrip()) + 4)) for part in more)
    assert " ".join((first[19:].strip(), *map(str.strip, more))) == long.text.strip()


def test_parts_of_code():
    assert wrapped_code("    a = b + c", 13) == ["    a = b + c"]
    assert wrapped_code("    a = b + c", 12) == ["    a = b +", "        c"]
    assert wrapped_code("x" * 10, 4) == ["xxxx", "    xx", "    xx", "    xx"]
    assert wrapped_code("", 4) == [""]


def test_difference_of_stages():
    lines = inspected(energy).diff("prepared", "adjoint").splitlines()
    assert lines[:2] == ["--- prepared", "+++ adjoint"]
    assert any(line.startswith("+") and "%frame" in line for line in lines)
    assert inspected(energy).diff("plan", "plan").strip() == ""


@pytest.mark.parametrize("make", [irad.grad, irad.value_and_grad])
def test_derivatives_are_inspected_as_they_are(make):
    derivative = make(energy, argnums=1)
    found = derivative.inspect(*TYPES[energy])
    assert [f.variant for f in found.report.functions] == ["with respect to w; result active"]
    assert f"@{make.__name__}_energy(" in found.optimized
    derivative(np.ones(3), 2.0, 4)
    [(signature, text)] = derivative.inspect_tape().items()
    assert text == found.tape
    assert derivative.inspect_adjoint(signature) == found.adjoint
    assert "grad_energy" in derivative.inspect_llvm(signature)  # Numba's own


def test_a_gradient_into_arrays():
    derivative = irad.value_and_grad_into(energy, argnums=(0, 1))
    found = derivative.inspect(*TYPES[energy])
    assert "value_and_grad_into_energy" in found.asm
    assert "with respect to x, w" in str(found)


def test_functions_of_jit_have_methods_beside_numbas():
    energy(np.ones(3), 2.0, 4)
    assert numba.core.registry.CPUDispatcher in type(energy).__mro__
    assert energy.inspect(*TYPES[energy]).plan == inspected(energy).plan
    for kind in ("prepared", "activity", "plan", "tape", "adjoint"):
        [text] = getattr(energy, f"inspect_{kind}")().values()
        assert text == inspected(energy).stage(kind)
    assert pickle.loads(pickle.dumps(energy)) is energy


def test_jit_as_a_decorator_with_a_signature():
    @irad.jit("float64(float64)", fastmath=True)
    def square(x):
        return x * x

    assert square(3.0) == 9.0
    assert "with respect to x" in square.inspect(numba.float64).activity
    [tape] = square.inspect_tape().values()
    assert "bytes per call" in tape


def test_what_each_function_is_looked_at_as():
    """A float: its gradient; an array: both sweeps of vjp; nothing: what it writes."""
    assert "@grad_energy(" in inspected(energy).optimized
    both = inspected(scaled).optimized
    assert "@vjp_scaled(" in both
    assert "; pullback" in both
    assert "@autodiff_fill(" in inspected(fill).optimized
    assert "@autodiff_scaled(" in irad.inspect(scaled, *TYPES[scaled], argnums=1).optimized


def test_vjp_keeps_what_the_caller_may_change():
    [forward] = inspected(scaled).report.functions
    [one_call] = irad.inspect(scaled, *TYPES[scaled], argnums=(0, 1)).report.functions
    in_loops = [sum(e.bytes or 0 for e in each.tape if e.loops) for each in (forward, one_call)]
    assert in_loops[0] > in_loops[1]


def test_options():
    strict = irad.inspect(energy, *TYPES[energy], options=irad.Options(strict=True))
    assert "reassoc" in inspected(energy).adjoint
    assert "reassoc" not in strict.adjoint


def test_specialisation_by_literal():
    @irad.jit
    def f(x, axis):
        return np.sum(np.expand_dims(x, axis) * 2.0)

    text = irad.inspect(f, np.ones(3), 0).activity
    assert "active" in text


def test_nothing_is_left_on_the_function():
    @irad.jit
    def f(x):
        return x * x

    irad.inspect(f, 2.0).stage("llvm")
    irad.inspect(f, 2.0).stage("numba-ir")
    assert f.signatures == []
    assert f(3.0) == 9.0


@pytest.mark.parametrize(
    ("f", "args", "error", "words"),
    [
        (42, (1.0,), SignatureError, "irad cannot differentiate"),
        (energy, (1.0,), SignatureError, "missing a required argument"),
        (energy, (np.ones(3), "a", 1), BackendError, "Numba cannot compile energy"),
        (lambda n: n, (3,), SignatureError, "no argument of .* has a derivative"),
    ],
)
def test_what_cannot_be_inspected(f, args, error, words):
    with pytest.raises(error, match=words):
        irad.inspect(f, *args)


def test_argnums_of_a_derivative_are_fixed():
    with pytest.raises(SignatureError, match="already created"):
        irad.inspect(irad.grad(energy), *TYPES[energy], argnums=1)


def test_a_function_from_a_string_has_no_source():
    scope: dict = {}
    exec("def f(x):\n    return x * x\n", scope)
    found = irad.inspect(scope["f"], 2.0)
    assert [line.text for line in found.report.lines] == ["", ""]
    assert "with respect to x; result active" in str(found)
