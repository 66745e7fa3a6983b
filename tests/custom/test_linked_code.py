"""Rules are linked into derivatives: they have no machine code of their own, and what that would need is set there."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit
from numba.core.codegen import JITCodeLibrary

import irad
from irad.rules import AugmentedReturn


@njit("f8(f8)")
def doubled(x):
    return 2.0 * x


@njit("f8(f8)")
def tripled(x):
    return 3.0 * x


def _doubled_augmented(config, x):
    print("augmented primal")
    return AugmentedReturn(2.0 * x.value, None, None)


def _doubled_reverse(config, cotangent, tape, x):
    print("reverse")
    return (2.0 * cotangent,)


_FUNCTIONS = (doubled, tripled)


@njit
def chosen(x, i):
    f = _FUNCTIONS[i]
    return f(x)


def _inside():
    @njit
    def f(x):
        return irad.autodiff(irad.Reverse, doubled, irad.Active(x))

    return f(1.0)[0]


def _called():
    derivative = irad.grad(doubled)
    return njit(lambda x: derivative(x))(1.0)


CALLS = {
    "grad": lambda: irad.grad(doubled)(1.0),
    "vjp": lambda: irad.vjp(doubled, 1.0)[1](1.0)[0],
    "pointer": lambda: irad.grad(chosen)(1.0, 0),
    "inside": _inside,
    "called": _called,
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaExperimentalFeatureWarning")
def test_the_texts_that_a_rule_prints_are_found(with_rule, capsys, call):
    with_rule(doubled, _doubled_augmented, _doubled_reverse)
    assert call() == 2.0
    assert capsys.readouterr().out.splitlines() == ["augmented primal", "reverse"]


@njit
def energy(a):
    return (a * a).sum()


def _energy_augmented(config, a):
    return AugmentedReturn(energy(a.value), None, a.value.copy())


def _energy_reverse(config, cotangent, tape, a):
    a.shadow[:] = a.shadow + 2.0 * cotangent * tape


def _energy_misfit(config, cotangent, tape, a):
    a.shadow[:] = np.ones(a.value.size + 1)


def test_only_derivatives_become_machine_code(with_rule, monkeypatch):
    with_rule(energy, _energy_augmented, _energy_reverse)
    made: list[str] = []
    finalize = JITCodeLibrary._finalize_specific

    def note(library):
        made.append(library.name)
        finalize(library)

    monkeypatch.setattr(JITCodeLibrary, "_finalize_specific", note)
    np.testing.assert_array_equal(irad.grad(energy)(np.array([1.0, 2.0])), [2.0, 4.0])
    assert "grad_energy" in made
    assert not {"_energy_augmented", "_energy_reverse", "augmented", "reverse"} & set(made)


def test_large_functions_of_numba_are_called_where_they_are(with_rule):
    with_rule(energy, _energy_augmented, _energy_misfit)
    gradient = irad.grad(energy)
    with pytest.raises(ValueError, match=r"cannot assign slice of shape \(2,\) from input of shape \(3,\)"):
        gradient(np.ones(2))
    (text,) = gradient.inspect_llvm().values()
    assert "define" not in {line.split()[0] for line in text.splitlines() if "ol_raise_with_shape_context" in line}
    assert "irad.loaded." in text


def test_two_derivatives_in_one_function_call_one_rule() -> None:
    @njit
    def cube(x):
        return x * x * x

    irad.rules.easy_rule(cube, lambda x: 30.0 * x * x)

    @njit
    def once(x):
        return cube(x) + x

    @njit
    def twice(x):
        return 2.0 * cube(x)

    @njit
    def both(x):
        return irad.grad(once)(x) + irad.grad(twice)(x)

    assert both(1.0) == 31.0 + 60.0
