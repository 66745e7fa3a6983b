"""The programs of the gallery that say themselves what is right."""

from __future__ import annotations

import runpy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def result_of(name: str, capsys: Any) -> Any:
    """What the program finds; it says something, too."""
    found = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]()
    assert capsys.readouterr().out
    return found


def check_picture(name: str, folder: Path, *found: Any) -> None:
    """Draws what a program found, where matplotlib is installed."""
    if find_spec("matplotlib") is None:
        return
    file = folder / f"{name}.svg"
    runpy.run_path(str(EXAMPLES / f"{name}.py"))["draw"](file, *found)
    text = file.read_text(encoding="utf-8")
    assert text.count("<path") > 20
    assert "<svg" in text


def test_garch(capsys):
    found, errors, truth = result_of("garch", capsys)
    assert (np.abs(found - truth) < 3.0 * errors).all()
    assert (errors < 0.01).all()


def test_forces(capsys):
    found, truth = result_of("forces", capsys)
    np.testing.assert_allclose(found, truth, rtol=1e-6)


def test_pendulum(capsys, tmp_path):
    torques, angle, speed = result_of("pendulum", capsys)
    check_picture("pendulum", tmp_path, torques)
    assert abs(angle - np.pi) < 0.05
    assert abs(speed) < 0.1


def test_transformer(tmp_path):
    """With few steps; as a program it takes more, and repeats everything."""
    losses, share = runpy.run_path(str(EXAMPLES / "transformer.py"))["main"](steps=60)
    check_picture("transformer", tmp_path, losses)
    assert losses[0] > 2.0
    assert losses[-1] < 0.2
    assert share > 0.9


def test_conductivity(capsys, tmp_path):
    found, truth = result_of("conductivity", capsys)
    check_picture("conductivity", tmp_path, found, truth)
    np.testing.assert_allclose(found, truth, rtol=0.05)


def test_levenberg_marquardt(capsys, tmp_path):
    error, products, data, curve = result_of("levenberg_marquardt", capsys)
    check_picture("levenberg_marquardt", tmp_path, data, curve)
    assert error < 0.03
    assert products == 3


def test_descent(capsys):
    slope, difference = result_of("descent", capsys)
    np.testing.assert_allclose(slope, difference, rtol=1e-6)


def test_optimisers(capsys):
    found = result_of("optimisers", capsys)
    example = runpy.run_path(str(EXAMPLES / "optimisers.py"))
    features, targets = example["measurements"]()
    matrix = np.column_stack([features, np.ones(targets.size)])
    least_squares = np.linalg.solve(matrix.T @ matrix + 0.1 * np.eye(4), matrix.T @ targets)

    def robust(vector):
        residuals = matrix @ vector - targets
        return 0.05 * vector @ vector + np.sum(np.sqrt(1.0 + residuals**2) - 1.0)

    minimum = minimize(robust, np.zeros(4), tol=1e-10).x
    assert set(found) == {"array", "dictionary", "dataclass", "jitclass"}
    for by_conjugate_gradients, by_lbfgs, by_adam in found.values():
        np.testing.assert_allclose(by_conjugate_gradients, least_squares, rtol=1e-10)
        np.testing.assert_allclose(by_lbfgs, minimum, rtol=1e-5)
        np.testing.assert_allclose(by_adam, minimum, rtol=1e-4)


def test_quadrature(capsys):
    found, truth = result_of("quadrature", capsys)
    np.testing.assert_allclose(found, truth, rtol=1e-9)


@pytest.mark.slow  # a minute, for compiling
def test_cnn(capsys, tmp_path):
    losses, share = result_of("cnn", capsys)
    check_picture("cnn", tmp_path, losses)
    assert losses[-20:].mean() < 0.2 * losses[0]
    assert share > 0.9
