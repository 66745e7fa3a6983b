"""The programs of the gallery that say themselves what is right."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import numpy as np

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def result_of(name: str, capsys: Any) -> Any:
    """What the program finds; it says something, too."""
    found = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]()
    assert capsys.readouterr().out
    return found


def test_garch(capsys):
    found, errors, truth = result_of("garch", capsys)
    assert (np.abs(found - truth) < 3.0 * errors).all()
    assert (errors < 0.01).all()


def test_forces(capsys):
    found, truth = result_of("forces", capsys)
    np.testing.assert_allclose(found, truth, rtol=1e-6)


def test_pendulum(capsys):
    _, angle, speed = result_of("pendulum", capsys)
    assert abs(angle - np.pi) < 0.05
    assert abs(speed) < 0.1


def test_conductivity(capsys):
    found, truth = result_of("conductivity", capsys)
    np.testing.assert_allclose(found, truth, rtol=0.05)


def test_levenberg_marquardt(capsys):
    error, products = result_of("levenberg_marquardt", capsys)
    assert error < 0.03
    assert products == 3


def test_descent(capsys):
    slope, difference = result_of("descent", capsys)
    np.testing.assert_allclose(slope, difference, rtol=1e-6)
