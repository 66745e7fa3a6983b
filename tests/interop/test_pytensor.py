"""The bridge to PyTensor, checked by PyTensor's own means, and a model of PyMC."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

import irad

pytensor = pytest.importorskip("pytensor", reason="PyTensor is an extra: nox -s bridges")

import pytensor.tensor as pt  # noqa: E402 - there may be no PyTensor
from pytensor.gradient import DisconnectedInputError, Rop, verify_grad  # noqa: E402

from irad.interop.pytensor import CompiledOp, as_op  # noqa: E402
from tests.interop.steps import steps  # noqa: E402

MODES = ("FAST_COMPILE", "NUMBA")


X, A, B = np.array([0.3, 0.8, 1.1]), np.array([1.2, 0.7, 0.9]), np.asarray(1.4)


def variables():
    return pt.dvector("x"), pt.dvector("a"), pt.dscalar("b")


@pytest.mark.parametrize("mode", MODES)
def test_values_and_gradients(mode):
    x, a, b = given = variables()
    y, total, count = as_op(steps)(x, 2, (a, b))
    found = pytensor.function(given, [y, total, count, *pytensor.grad((y * y).sum() + total, given)], mode=mode)(
        X, A, B
    )
    expected = steps(X, 2, (A, float(B)))
    for ours, theirs in zip(found[:3], expected, strict=True):
        np.testing.assert_allclose(ours, theirs)

    @njit
    def loss(x, a, b):
        y, total, _ = steps(x, 2, (a, b))
        return (y * y).sum() + total

    for ours, theirs in zip(found[3:], irad.grad(loss, (0, 1, 2))(X, A, float(B)), strict=True):
        np.testing.assert_allclose(ours, theirs)


def test_gradients_by_differences():
    op = as_op(steps)
    verify_grad(lambda x, a, b: op(x, 2, (a, b))[0], [X, A, B], rng=np.random.default_rng(0))


@pytest.mark.parametrize("mode", MODES)
def test_second_derivatives(mode):
    x, a, b = given = variables()
    _, total, _ = as_op(steps)(x, 2, (a, b))
    direction = pt.dvector("direction")
    gradient = pytensor.grad(total, x)
    reverse = pytensor.grad((gradient * direction).sum(), x)
    hessian = pytensor.function(given, pytensor.gradient.hessian(total, x), mode=mode)(X, A, B)
    products = pytensor.function([*given, direction], [reverse, Rop(gradient, x, direction)], mode=mode)
    truth = irad.hessian(njit(lambda x, a, b: steps(x, 2, (a, b))[1]))(X, A, float(B))
    np.testing.assert_allclose(hessian, truth, atol=1e-15)
    for found in products(X, A, B, np.array([1.0, -2.0, 0.5])):
        np.testing.assert_allclose(found, truth @ [1.0, -2.0, 0.5], atol=1e-15)


def test_no_python_under_numba(monkeypatch):
    def fail(*_):
        raise AssertionError("called from Python")

    monkeypatch.setattr(CompiledOp, "perform", fail)
    x = pt.dvector("x")
    compiled = pytensor.function([x], pytensor.grad(as_op(njit(lambda x: (x**3).sum()))(x), x), mode="NUMBA")
    np.testing.assert_allclose(compiled(X), 3.0 * X**2)
    with pytest.raises(AssertionError, match="called from Python"):
        pytensor.function([x], as_op(njit(lambda x: (x**4).sum()))(x), mode="FAST_COMPILE")(X)


def test_keywords_that_have_no_position_are_refused():
    @njit
    def f(x, *, shift=1.0):
        return x.sum() + shift

    with pytest.raises(irad.SignatureError, match="takes shift by keyword only"):
        as_op(f)(pt.dvector("x"), shift=2.0)


class Model(NamedTuple):
    """Parameters."""

    scale: object
    shift: object


def test_named_tuples_keywords_and_single_precision():
    op = as_op(njit(lambda model, x, power=2: model.scale * (x**power).sum() + model.shift))
    scale, shift, x = pt.fscalar("scale"), pt.fscalar("shift"), pt.fvector("x")
    value = op(Model(scale, shift), x, power=1)
    assert value.type.dtype == "float32"
    found = pytensor.function([scale, shift, x], pytensor.grad(value, [scale, shift, x]), mode="NUMBA")
    gradients = found(np.float32(2.0), np.float32(1.0), X.astype("float32"))
    assert {each.dtype for each in gradients} == {np.dtype("float32")}
    np.testing.assert_allclose(gradients[2], 2.0)


def test_dictionaries():
    parameters = {"scale": pt.dscalar("scale"), "weights": pt.dvector("weights")}
    value = as_op(njit(lambda p, x: p["scale"] * (p["weights"] * x).sum()))(parameters, X)
    found = pytensor.function([*parameters.values()], pytensor.grad(value, [*parameters.values()]), mode="NUMBA")
    np.testing.assert_allclose(found(2.0, A)[0], A @ X)
    np.testing.assert_allclose(found(2.0, A)[1], 2.0 * X)


@pytest.mark.parametrize("mode", MODES)
def test_arguments_stay_as_they_are(mode):
    """What is written to, or returned, is a copy; what is only read is not."""

    @njit
    def f(x, y):
        x[0] = 7.0
        return x[1:], x.sum() * y.sum()

    x, y = pt.dvector("x"), pt.dvector("y")
    part, total = as_op(f)(x, y)
    assert part.owner.op.flat.copied == (True, False)
    compiled = pytensor.function(
        [pytensor.In(x, borrow=True), y], [pytensor.Out(part, borrow=True), *pytensor.grad(total, [x, y])], mode=mode
    )
    given = X.copy()
    part, of_x, of_y = compiled(given, A)
    np.testing.assert_array_equal(given, X)
    assert not np.may_share_memory(part, given)
    np.testing.assert_allclose(of_x, A.sum() * np.array([0.0, 1.0, 1.0]))
    np.testing.assert_allclose(of_y, 7.0 + X[1:].sum())


def test_integers_have_no_gradient():
    x, index = pt.dvector("x"), pt.lscalar("index")
    value = as_op(njit(lambda x, index: x[index] ** 2))(x, index)
    assert pytensor.function([x, index], pytensor.grad(value, x))(X, 1).tolist() == [0.0, 1.6, 0.0]
    with pytest.raises(DisconnectedInputError):
        pytensor.function([x, index], pytensor.grad(value, index))


def test_shapes_are_known_without_a_run():
    x = pt.dvector("x")
    y = as_op(njit(lambda x: np.outer(x, x)), shapes=lambda x: (x[0], x[0]))(x)
    shape = pytensor.function([x], y.shape)
    assert shape(X).tolist() == [3, 3]
    names = [str(node.op) for node in shape.maker.fgraph.toposort()]
    assert not any(name.startswith("irad") for name in names), names


@pytest.mark.parametrize(
    ("f", "given", "words"),
    [
        (lambda x: "a", lambda: (pt.dvector(),), "returns"),
        (lambda x, y: x.sum(), lambda: (pt.dvector(), object()), "neither an array nor a constant"),
        (lambda x, y: x.sum(), lambda: (pt.dvector(), {1, 2}), "cannot hold as a constant"),
    ],
)
def test_what_is_refused(f, given, words):
    with pytest.raises(irad.SignatureError, match=words):
        as_op(njit(f))(*given())


def test_nutpie_samples_without_python(monkeypatch):
    nutpie = pytest.importorskip("nutpie", reason="nutpie is an extra: nox -s bridges")
    pm = pytest.importorskip("pymc", reason="PyMC is an extra: nox -s bridges")

    @njit
    def decay(rate, times):
        out = np.empty(times.size)
        for i in range(times.size):
            out[i] = np.exp(-rate * times[i])
        return out

    def fail(*_):
        raise AssertionError("called from Python")

    monkeypatch.setattr(CompiledOp, "perform", fail)
    times = np.linspace(0.1, 2.0, 20)
    with pm.Model() as model:
        rate = pm.LogNormal("rate", 0.0, 1.0)
        expected = as_op(decay, shapes=lambda rate, times: times)(rate, pt.as_tensor_variable(times))
        pm.Normal("data", expected, 0.02, observed=np.exp(-0.8 * times))
    compiled = nutpie.compile_pymc_model(model)
    trace = nutpie.sample(compiled, draws=300, tune=300, chains=2, cores=1, seed=1, progress_bar=False)
    draws = trace.posterior["rate"].to_numpy()
    assert abs(draws.mean() - 0.8) < 3.0 * draws.std()
    assert 0.005 < draws.std() < 0.03  # 0.02 over the root of the sum of squared slopes is 0.0113


@pytest.mark.slow
def test_posterior_of_a_decay_by_pymc():
    """y' = -k y with a log-normal prior of k and log-normal noise: the posterior of log k is found by quadrature."""
    pm = pytest.importorskip("pymc", reason="PyMC is an extra: nox -s bridges")

    @njit
    def log_of_decay(log_rate, times):
        """log y by Euler steps of the logarithm, which are exact."""
        rate, out, now, value = np.exp(log_rate), np.empty(times.size), 0.0, 0.0
        for i in range(times.size):
            while now < times[i] - 1e-12:
                value -= 0.01 * rate
                now += 0.01
            out[i] = value
        return out

    times = np.linspace(0.1, 2.0, 20)
    data = -0.8 * times + 0.1 * np.random.default_rng(0).standard_normal(20)
    with pm.Model():
        log_rate = pm.Normal("log_rate", 0.0, 1.0)
        pm.Normal("data", as_op(log_of_decay)(log_rate, pt.as_tensor_variable(times)), 0.1, observed=data)
        trace = pm.sample(2000, tune=500, chains=2, cores=1, random_seed=1, progressbar=False)
    grid = np.linspace(-1.0, 0.6, 4001)
    log_density = -0.5 * grid**2 - 0.5 * ((data[:, None] + np.exp(grid) * times[:, None]) ** 2).sum(0) / 0.01
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    mean = (weights * grid).sum()
    deviation = np.sqrt((weights * (grid - mean) ** 2).sum())
    draws = trace.posterior["log_rate"].to_numpy().ravel()
    assert abs(draws.mean() - mean) < 0.1 * deviation
    assert abs(draws.std() / deviation - 1.0) < 0.1
