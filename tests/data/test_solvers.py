"""Solvers of the documentation on structures: what they need of `VectorSpace`, against textbook forms on arrays."""

from __future__ import annotations

import runpy
import tracemalloc
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy.optimize import minimize

import irad
from irad import data
from irad.data import VectorSpace

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def solvers() -> SimpleNamespace:
    files = "examples/conjugate_gradients.py", "programs/lbfgs.py", "examples/adam.py"
    conjugate_gradients, lbfgs, adam = (runpy.run_path(str(DOCS / file)) for file in files)
    return SimpleNamespace(
        conjugate_gradients=conjugate_gradients["conjugate_gradients"],
        lbfgs=lbfgs["lbfgs"],
        objective_of=lbfgs["objective_of"],
        adam=adam["adam"],
    )


Field = namedtuple("Field", "z rest")


def test_conjugate_gradients_in_a_complex_space(solvers: Any) -> None:
    random = np.random.default_rng(1)
    root = random.standard_normal((5, 5)) + 1j * random.standard_normal((5, 5))
    matrix = root @ root.conj().T + np.eye(5)

    def flat(x: VectorSpace) -> Any:
        return np.append(x.value.z.ravel(), x.value.rest[0])

    def product(x: VectorSpace) -> VectorSpace:
        image = matrix @ flat(x)
        return VectorSpace(Field(image[:4].reshape(2, 2), [complex(image[4]), "text"]))

    b = VectorSpace(Field(random.standard_normal((2, 2)) + 0j, [2.0 - 1j, "text"]))
    x = solvers.conjugate_gradients(product, b, 20)
    np.testing.assert_allclose(flat(x), np.linalg.solve(matrix, flat(b)), rtol=1e-9)
    assert type(x.value) is Field
    assert x.value.rest[1] == "text"
    y = product(b)
    assert x.dot(1j * y) == pytest.approx(1j * x.dot(y))  # linear on the right
    assert (1j * x).dot(y) == pytest.approx(-1j * x.dot(y))  # conjugate on the left
    assert y.dot(x) == pytest.approx(np.conj(x.dot(y)))
    assert x.norm() ** 2 == pytest.approx(x.dot(x).real)


@njit
def valley(p):
    x = p["x"]
    total = (1.0 - p["last"]) ** 2
    for i in range(x.size):
        after = x[i + 1] if i + 1 < x.size else p["last"]
        total += 100.0 * (after - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    return total


def test_lbfgs_follows_a_curved_valley(solvers: Any) -> None:
    x = VectorSpace({"x": np.full(4, -1.2), "last": 1.0})
    array = x.value["x"]
    count = 0
    objective = solvers.objective_of(valley)

    def counted(at: VectorSpace) -> Any:
        nonlocal count
        count += 1
        return objective(at)

    assert solvers.lbfgs(counted, x, 200) < 1e-16
    assert x.value["x"] is array
    np.testing.assert_allclose([*array, x.value["last"]], 1.0, rtol=1e-7)
    assert count < 200  # steepest descent takes thousands


def test_adam_is_that_of_the_book(solvers: Any) -> None:
    gradients = np.random.default_rng(2).standard_normal((20, 3))
    x, mean, variance = np.zeros(3), np.zeros(3), np.zeros(3)
    for count, g in enumerate(gradients, 1):
        mean, variance = 0.9 * mean + 0.1 * g, 0.999 * variance + 0.001 * g**2
        x -= 0.05 * (mean / (1 - 0.9**count)) / (np.sqrt(variance / (1 - 0.999**count)) + 1e-8)
    start = {"a": (np.zeros(1), 0.0), "b": np.zeros(1, np.float32)}
    left = iter(gradients)
    found = VectorSpace(start)
    solvers.adam(lambda at: VectorSpace(data.from_vec(next(left), at.value)), found, 20, rate=0.05)
    np.testing.assert_allclose(data.to_vec(found.value), x, rtol=1e-6)
    np.testing.assert_allclose(data.to_vec(found.value)[:2], x[:2], rtol=1e-12)
    assert found.value["b"].dtype == np.float32
    assert found.value["b"] is start["b"]


@pytest.mark.parametrize("name", ["conjugate_gradients", "lbfgs", "adam"])
def test_steps_allocate_no_arrays(solvers: Any, name: str) -> None:
    size = 50_000
    scales = np.linspace(1.0, 2.0, size)
    image = VectorSpace({"w": np.zeros(size), "rest": [np.zeros(size), 0.0]})

    def product(x: VectorSpace) -> VectorSpace:
        np.multiply(scales, x.value["w"], out=image.value["w"])
        np.copyto(image.value["rest"][0], x.value["rest"][0])
        image.value["rest"][1] = x.value["rest"][1]
        return image

    peaks: list[int] = []

    def watched(x: VectorSpace) -> Any:
        now, peak = tracemalloc.get_traced_memory()
        peaks.append(peak - now)
        tracemalloc.reset_peak()
        return product(x)

    def objective(x: VectorSpace) -> Any:
        gradient = watched(x)
        return 0.5 * x.dot(gradient), gradient

    start = data.recursive_map(lambda part: part + 1.0, image.value)
    tracemalloc.start()
    try:
        if name == "conjugate_gradients":
            solvers.conjugate_gradients(watched, VectorSpace(start), 12, tolerance=0.0)
        elif name == "adam":
            solvers.adam(watched, VectorSpace(start), 12)
        else:
            solvers.lbfgs(objective, VectorSpace(start), 12)
    finally:
        tracemalloc.stop()
    assert len(peaks) >= 12
    assert max(peaks[8:]) < 8 * size / 4, "no array"


def test_a_function_of_parts(solvers: Any) -> None:
    x, y = VectorSpace([np.array([1.0, 4.0]), 9.0]), VectorSpace([np.array([3.0, 2.0]), 1.0])
    assert x.map(np.maximum, y).value[1] == 9.0
    assert x.map(np.maximum, y).value[0].tolist() == [3.0, 4.0]
    array = y.value[0]
    y.map_(np.sqrt, x)
    assert y.value[0] is array
    assert (array.tolist(), y.value[1]) == ([1.0, 2.0], 3.0)
    assert x.value[0].tolist() == [1.0, 4.0]


def test_scipy_minimises_over_a_structure() -> None:
    start = {"x": np.full(3, -1.2), "last": 1.0}
    derivative = irad.value_and_grad(valley)

    def objective(vector: Any) -> tuple[float, Any]:
        value, gradient = derivative(data.from_vec(vector, start))
        return value, data.to_vec(gradient)

    fit = minimize(objective, data.to_vec(start), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9})
    found = data.from_vec(fit.x, start)
    np.testing.assert_allclose([*found["x"], found["last"]], 1.0, rtol=1e-5)


def test_a_loop_over_leaves() -> None:
    """Momentum, as optimisers of PyTorch are written: a buffer for each leaf."""
    params = {"x": np.full(3, -1.2), "rest": [np.array(0.5), np.ones((1, 2))]}

    @njit
    def loss(p):
        return np.sum(p["x"] ** 2) + 2.0 * p["rest"][0][()] ** 2 + 0.5 * np.sum(p["rest"][1] ** 2)

    gradient = irad.grad(loss)
    leaves = data.leaves(params)
    buffers = [np.zeros_like(leaf) for leaf in leaves]
    expected, speed = data.to_vec(params), np.zeros(6)
    for _ in range(50):
        for leaf, buffer, slope in zip(leaves, buffers, data.leaves(gradient(params)), strict=True):
            buffer *= 0.9
            buffer += slope
            leaf -= 0.05 * buffer
        speed = 0.9 * speed + np.array([2, 2, 2, 4, 1, 1]) * expected
        expected = expected - 0.05 * speed
    np.testing.assert_allclose(data.to_vec(params), expected, rtol=1e-12)
