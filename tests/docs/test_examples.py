"""The programs of the gallery, against what each says is right, and the page that shows them."""

from __future__ import annotations

import re
import runpy
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def result_of(name: str, tmp_path: Path, capsys: Any, **settings: Any) -> Any:
    """What the program finds; it prints something, and draws a picture where matplotlib is installed."""
    file = tmp_path / f"{name}.svg" if find_spec("matplotlib") else None
    found = runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"](file, **settings)
    assert capsys.readouterr().out
    if file is not None:
        text = file.read_text(encoding="utf-8")
        assert text.count("<path") > 10
        assert "<svg" in text
    return found


def test_garch(tmp_path, capsys):
    found, errors, truth = result_of("garch", tmp_path, capsys)
    assert (np.abs(found - truth) < 3.0 * errors).all()
    assert (errors < 0.01).all()


def test_forces(tmp_path, capsys):
    found, truth = result_of("forces", tmp_path, capsys)
    np.testing.assert_allclose(found, truth, rtol=1e-6)


def test_pendulum(tmp_path, capsys):
    angle, speed = result_of("pendulum", tmp_path, capsys)
    assert abs(angle - np.pi) < 0.05
    assert abs(speed) < 0.1


def test_transformer(tmp_path, capsys):
    """With few steps; as a program it takes more."""
    losses, share = result_of("transformer", tmp_path, capsys, steps=60)
    assert losses[0] > 2.0
    assert losses[-1] < 0.2
    assert share > 0.9


def test_conductivity(tmp_path, capsys):
    found, truth = result_of("conductivity", tmp_path, capsys)
    np.testing.assert_allclose(found, truth, rtol=0.05)


def test_levenberg_marquardt(tmp_path, capsys):
    error, products = result_of("levenberg_marquardt", tmp_path, capsys)
    assert error < 0.03
    assert products == 3


def test_descent(tmp_path, capsys):
    slope, difference = result_of("descent", tmp_path, capsys)
    np.testing.assert_allclose(slope, difference, rtol=1e-6)


def test_conjugate_gradients(tmp_path, capsys):
    found, kernel, measured = result_of("conjugate_gradients", tmp_path, capsys)
    size = found["signal"].size
    blur = np.stack([np.eye(size)[i : i + kernel.size].T @ kernel for i in range(measured.size)])
    matrix = np.column_stack([blur, np.ones(measured.size)])
    steps, ends = np.diff(np.eye(size), axis=0), np.diag(np.arange(size) < 15) | np.diag(np.arange(size) >= size - 15)
    hessian = matrix.T @ matrix
    hessian[:-1, :-1] += 4e-3 * steps.T @ steps + 2.0 * ends
    minimum = np.linalg.solve(hessian, matrix.T @ measured)
    np.testing.assert_allclose(found["signal"], minimum[:-1], atol=1e-7)
    assert abs(found["background"] - minimum[-1]) < 1e-7


def test_adam(tmp_path, capsys):
    assert result_of("adam", tmp_path, capsys) < 0.012, "the variance of the noise is 0.01"


def test_diffusion(tmp_path, capsys):
    slopes, differences = result_of("diffusion", tmp_path, capsys)
    np.testing.assert_allclose(slopes, differences, atol=1e-9)


def test_quadrature(tmp_path, capsys):
    found, truth = result_of("quadrature", tmp_path, capsys)
    np.testing.assert_allclose(found["rates"], truth["rates"], rtol=1e-9)
    np.testing.assert_allclose(found["scale"], truth["scale"], rtol=1e-9)


@pytest.mark.slow  # a minute, for compiling
def test_cnn(tmp_path, capsys):
    losses, share = result_of("cnn", tmp_path, capsys)
    assert losses[-20:].mean() < 0.2 * losses[0]
    assert share > 0.9


@pytest.mark.parametrize("program", sorted(EXAMPLES.glob("*.py")), ids=lambda program: program.stem)
def test_the_gallery_shows_each_program(program: Path):
    """Each is short, and has an entry with a picture that is there and says in words what it shows."""
    assert len(program.read_text(encoding="utf-8").splitlines()) <= 80
    text = (EXAMPLES.parent / "gallery.md").read_text(encoding="utf-8")
    [entry] = [part for part in text.split("\n## ") if f"](examples/{program.name})" in part]
    [(caption, picture)] = re.findall(r"^!\[([^]]+)\]\(([^)]+)\)$", entry, re.MULTILINE)
    assert len(caption) > 40
    assert (EXAMPLES.parent / picture).is_file()
