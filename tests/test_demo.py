"""The demo: its parts with the hand-written gradient, the whole with irad's."""

from __future__ import annotations

import importlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from scipy.special import logsumexp
from scipy.stats import multivariate_normal

from irad.demo import check, run as plot
from irad.demo.fit import TRUTH, fit, make_points, make_start, match
from irad.demo.model import Mixture, negative_log_likelihood
from irad.demo.run import run
from irad.errors import IradError

K = len(TRUTH.weights)


def random_mixture(components: int, dimension: int, seed: int) -> Mixture:
    rng = np.random.default_rng(seed)
    size = components * (1 + 2 * dimension) + components * dimension * (dimension - 1) // 2
    return Mixture.from_parameters(0.5 * rng.standard_normal(size), components, dimension)


@pytest.mark.parametrize(("components", "dimension"), [(1, 1), (2, 3), (4, 2)])
def test_likelihood_is_scipys(components: int, dimension: int):
    mixture = random_mixture(components, dimension, seed=1)
    points = mixture.sample(20, np.random.default_rng(2))
    densities = [
        multivariate_normal(m, c).logpdf(points) for m, c in zip(mixture.means, mixture.covariances, strict=True)
    ]
    expected = -np.mean(logsumexp(np.stack(densities, axis=1) + np.log(mixture.weights), axis=1))
    assert negative_log_likelihood(mixture.to_parameters(), points, components) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("components", "dimension"), [(1, 1), (2, 3), (4, 2)])
def test_hand_written_gradient(components: int, dimension: int):
    mixture = random_mixture(components, dimension, seed=3)
    points = mixture.sample(30, np.random.default_rng(4))
    parameters = mixture.to_parameters() + 0.1
    value, gradient = check.value_and_gradient(parameters, points, components)
    assert value == pytest.approx(negative_log_likelihood(parameters, points, components), rel=1e-12)
    expected = check.difference_gradient(parameters, points, components)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-9)


def test_parameters_round_trip():
    again = Mixture.from_parameters(TRUTH.to_parameters(), K, 2)
    np.testing.assert_allclose(again.weights, TRUTH.weights)
    np.testing.assert_allclose(again.means, TRUTH.means)
    np.testing.assert_allclose(again.covariances, TRUTH.covariances, atol=1e-15)


def test_the_fit_finds_the_truth():
    points = make_points(4000, seed=1)
    steps: list[tuple[int, float]] = []
    start = make_start(points, K, seed=1)
    result = fit(points, start, K, check.value_and_gradient, lambda i, value: steps.append((i, value)))
    found = match(result.mixture, TRUTH)
    assert result.converged
    assert [i for i, _ in steps] == list(range(1, result.iterations + 1))
    assert steps[-1][1] == pytest.approx(result.value)
    assert result.value < negative_log_likelihood(TRUTH.to_parameters(), points, K)
    # Standard errors with 600 points and more in each component are below 0.05.
    np.testing.assert_allclose(found.weights, TRUTH.weights, atol=0.05)
    np.testing.assert_allclose(found.means, TRUTH.means, atol=0.2)
    np.testing.assert_allclose(found.covariances, TRUTH.covariances, atol=0.3)


def test_match_undoes_a_permutation():
    shuffled = TRUTH.reordered(np.array([2, 0, 3, 1]))
    np.testing.assert_array_equal(match(shuffled, TRUTH).means, TRUTH.means)


def test_a_wrong_gradient_is_seen():
    points = make_points(100, seed=2)
    start = make_start(points, K, seed=2)
    assert check.check_gradient(check.value_and_gradient, start, points, K).passed

    def wrong(*args):
        value, gradient = check.value_and_gradient(*args)
        gradient[-1] *= 1.0 + 1e-5
        return value, gradient

    assert not check.check_gradient(wrong, start, points, K).passed


def test_two_sigma_ellipse():
    ellipse = plot.two_sigma_ellipse(TRUTH.means[0], TRUTH.covariances[0])
    centred = ellipse - TRUTH.means[0]
    distances = np.sqrt(np.einsum("ni,ij,nj->n", centred, np.linalg.inv(TRUTH.covariances[0]), centred))
    np.testing.assert_allclose(distances, 2.0)


def test_plot(tmp_path: Path):
    pytest.importorskip("matplotlib")
    path = tmp_path / "fit.png"
    plot.save_plot(path, make_points(50, seed=3), TRUTH, TRUTH)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_demo_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(plot, "can_plot", lambda: False)
    monkeypatch.setattr("irad.value_and_grad", lambda _: check.value_and_gradient, raising=False)
    out = io.StringIO()
    assert run(Console(file=out, width=120), 200, 7, tmp_path / "fit.png")
    assert "No plot: matplotlib is not installed (pip install matplotlib scipy)." in out.getvalue().splitlines()
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_gradient_fails_the_demo(monkeypatch: pytest.MonkeyPatch):
    def nearly(*args):
        value, gradient = check.value_and_gradient(*args)
        return value, gradient * (1.0 + 1e-9)

    monkeypatch.setattr("irad.value_and_grad", lambda _: nearly, raising=False)
    out = io.StringIO()
    assert not run(Console(file=out, width=120), 200, 7, None)
    assert "The gradient is wrong." in out.getvalue()


def test_the_demo_with_irad(tmp_path: Path):
    out = io.StringIO()
    assert run(Console(file=out, width=120), 500, 7, tmp_path / "fit.png")
    for words in ("Converged after", "Components", "Check of the gradient", "value and gradient, irad"):
        assert words in out.getvalue()


def test_without_scipy_the_demo_says_so_before_it_compiles(monkeypatch: pytest.MonkeyPatch):
    honest = importlib.import_module

    def import_module(name: str) -> Any:
        if name.startswith("scipy"):
            raise ModuleNotFoundError(f"No module named {name!r}")
        return honest(name)

    monkeypatch.setattr(importlib, "import_module", import_module)
    out = io.StringIO()
    with pytest.raises(IradError, match="the demo needs SciPy") as refused:
        run(Console(file=out), 200, 7, None)
    assert refused.value.remedy == "install it: pip install matplotlib scipy"
    assert out.getvalue() == ""
