"""The activations, bias_act, glu."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy import special

import irad
from irad import nn
from tests.nn.checks import check, check_single

_SIGMOID = special.expit
_HARD = lambda x: np.clip((x + 3.0) / 6.0, 0.0, 1.0)  # noqa: E731
_SOFTPLUS = lambda x: np.logaddexp(0.0, x)  # noqa: E731
_ELU = lambda x, a: np.where(x > 0, x, a * np.expm1(np.minimum(x, 0.0)))  # noqa: E731

REFERENCES = {
    "celu": lambda x: _ELU(x, 1.0),
    "elu": lambda x: _ELU(x, 1.0),
    "gelu_erf": lambda x: x * special.ndtr(x),
    "gelu_sigmoid": lambda x: x * _SIGMOID(1.702 * x),
    "gelu_tanh": lambda x: 0.5 * x * (1.0 + np.tanh(np.sqrt(2.0 / np.pi) * (x + 0.044715 * x**3))),
    "hardsigmoid": _HARD,
    "hardswish": lambda x: x * _HARD(x),
    "hardtanh": lambda x: np.clip(x, -1.0, 1.0),
    "leakyrelu": lambda x: np.where(x > 0.0, x, 0.01 * x),
    "lisht": lambda x: x * np.tanh(x),
    "logcosh": lambda x: np.logaddexp(x, -x) - np.log(2.0),
    "logsigmoid": lambda x: -_SOFTPLUS(-x),
    "mish": lambda x: x * np.tanh(_SOFTPLUS(x)),
    "relu": lambda x: np.maximum(x, 0.0),
    "relu6": lambda x: np.clip(x, 0.0, 6.0),
    "selu": lambda x: 1.0507009873554805 * _ELU(x, 1.6732632423543772),
    "sigmoid": _SIGMOID,
    "softplus": _SOFTPLUS,
    "softshrink": lambda x: np.sign(x) * np.maximum(np.abs(x) - 0.5, 0.0),
    "softsign": lambda x: x / (1.0 + np.abs(x)),
    "swish": lambda x: x * _SIGMOID(x),
    "tanh": np.tanh,
    "tanhshrink": lambda x: x - np.tanh(x),
    "trelu": lambda x: np.where(x > 1.0, x, 0.0),
}
_X = np.array([-800.0, -30.0, -2.9, -0.7, -1e-3, 0.2, 0.9, 1.4, 5.9, 30.0, 800.0])


_NAMES = [*REFERENCES, "rrelu"]


def _all_of_them() -> Any:
    """A compiled function of a matrix: a row of it for each activation. One takes less time to compile than 25."""
    lines = [f"    y[{i}] = nn.{name}(x[{i}])" for i, name in enumerate(_NAMES)]
    scope: dict[str, Any] = {"nn": nn, "np": np}
    exec("\n".join(["def f(x):", "    y = np.empty_like(x)", *lines, "    return y"]), scope)
    return njit(scope["f"])


_ALL = _all_of_them()
_SLOPES = irad.grad(lambda x: _ALL(x).sum())


def test_values_and_slopes():
    x = np.tile(_X, (len(_NAMES), 1))
    values, slopes = _ALL(x), _SLOPES(x)
    step = 1e-6
    for i, (name, reference) in enumerate(REFERENCES.items()):
        np.testing.assert_allclose(values[i], reference(_X), rtol=1e-13, atol=1e-15, err_msg=name)
        wanted = (reference(_X + step) - reference(_X - step)) / (2.0 * step)
        np.testing.assert_allclose(slopes[i], wanted, rtol=1e-6, atol=1e-7, err_msg=name)


def test_not_a_number_stays_one():
    assert np.isnan(_ALL(np.full((len(_NAMES), _X.size), np.nan))).all()


def test_axes_stay():
    assert nn.swish(np.zeros((2, 1, 3))).shape == (2, 1, 3)


@pytest.mark.parametrize(("name", "slope"), [("sigmoid", 0.25), ("softplus", 0.5), ("mish", 0.6), ("logcosh", 0.0)])
def test_slopes_at_zero(name: str, slope: float):
    slopes = _SLOPES(np.zeros((len(_NAMES), 1)))
    assert slopes[_NAMES.index(name), 0] == pytest.approx(slope, abs=1e-15)


def test_of_a_number():
    assert irad.grad(lambda x: nn.sigmoid(x))(0.0) == pytest.approx(0.25)


def test_all_activations_are_tested():
    import irad.nn.activations as module

    found = {name for name in vars(module) if name in nn.__all__}
    around_one = {"bias_act", "glu"}  # tests/nn/test_pytorch.py
    second_names = {"gelu", "thresholdrelu"}
    assert found == {*REFERENCES, "rrelu", *around_one, *second_names}
    assert len(found - around_one - second_names) == 25


_COMPLEX = {
    "lisht": lambda z: z * np.tanh(z),
    "logcosh": lambda z: np.log(np.cosh(z)),
    "logsigmoid": lambda z: -np.log(1.0 + np.exp(-z)),
    "mish": lambda z: z * np.tanh(np.log(1.0 + np.exp(z))),
    "sigmoid": lambda z: 1.0 / (1.0 + np.exp(-z)),
    "softplus": lambda z: np.log(1.0 + np.exp(z)),
    "swish": lambda z: z / (1.0 + np.exp(-z)),
    "tanh": np.tanh,
    "tanhshrink": lambda z: z - np.tanh(z),
}
_Z = np.array([0.4 + 0.6j, -0.7 + 0.2j, 1.2 - 0.9j, -0.3 - 1.1j, 0.5, -0.5j, 3.0 + 1.0j, -3.0 - 0.5j])


def _all_complex() -> Any:
    lines = [f"    y[{i}] = nn.{name}(z)" for i, name in enumerate(_COMPLEX)]
    scope: dict[str, Any] = {"nn": nn, "np": np}
    body = [f"    y = np.empty(({len(_COMPLEX)}, z.size), z.dtype)", *lines, "    return y"]
    exec("\n".join(["def f(z):", *body]), scope)
    return njit(scope["f"])


def test_complex_numbers():
    """Values, pushforwards f'(z)·dz, pullbacks c·conj(f'(z)); in single precision, too; no exponential overflows."""
    f, step = _all_complex(), 1e-6
    slopes = np.array([(g(_Z + step) - g(_Z - step)) / (2.0 * step) for g in _COMPLEX.values()])
    wanted = np.array([g(_Z) for g in _COMPLEX.values()])
    np.testing.assert_allclose(f(_Z), wanted, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(f(np.complex64(_Z)), wanted, rtol=1e-5, atol=1e-6)
    assert f(np.complex64(_Z)).dtype == np.complex64
    random = np.random.default_rng(0)
    c, dz = (random.standard_normal(shape) + 1j * random.standard_normal(shape) for shape in (wanted.shape, _Z.shape))
    pulled = irad.vjp(f, _Z)[1](c)
    pulled = pulled[0] if isinstance(pulled, tuple) else pulled
    np.testing.assert_allclose(pulled, (c * slopes.conj()).sum(0), rtol=1e-8)
    np.testing.assert_allclose(irad.jvp(f, (_Z,), (dz,))[1], slopes * dz, rtol=1e-7, atol=1e-9)
    big = np.array([600 + 2j, -600 + 2j, 80 - 50j, -80 + 50j])
    rows = f(big)
    for i, name in enumerate(_COMPLEX):
        assert np.isfinite(rows[i]).all(), name
    assert nn.softplus(800 + 1j) == 800 + 1j
    assert nn.sigmoid(0.4 + 0.6j) == pytest.approx(_COMPLEX["sigmoid"](0.4 + 0.6j))


def test_random_slopes_are_those_of_the_value():
    x = -np.ones(20)
    loss = lambda x: nn.rrelu(x, 0.1, 0.3).sum()  # noqa: E731
    value, slopes = irad.value_and_grad(loss)(x)
    assert -slopes.sum() == pytest.approx(value)
    assert ((slopes >= 0.1) & (slopes <= 0.3)).all()
    assert np.unique(slopes).size == 20


def test_single_precision():
    check_single(nn.swish, np.linspace(-3.0, 3.0, 9))
    assert nn.leakyrelu(np.array([-1.0, 1.0], np.float32), 0.5).tolist() == [-0.5, 1.0]


def test_bias_and_activation():
    random = np.random.default_rng(0)
    x, b = random.standard_normal((2, 3, 4)), random.standard_normal(3)
    check(nn.bias_act, nn.swish, x, b, active=(1, 2), reference=lambda f, x, b: f(x + b[:, None]), second=False)
    with pytest.raises(ValueError, match="2 biases for 3 channels"):
        nn.bias_act(nn.relu, x, b[:2])


def test_gated_linear_units():
    def reference(x: Any, axis: int) -> Any:
        left, right = np.split(x, 2, axis)
        return left * _SIGMOID(right)

    x = np.random.default_rng(0).standard_normal((2, 4, 3))
    check(nn.glu, x, 1, reference=reference, second=False)
    np.testing.assert_allclose(nn.glu(x, 0), reference(x, 0), rtol=1e-14)
    with pytest.raises(ValueError, match="3 elements have no halves"):
        nn.glu(x)
