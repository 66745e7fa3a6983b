"""stft, istft, spectrogram: against np.fft, there and back, in both modes; windows, mel filters, decibels."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import nn
from tests.nn.checks import check, check_single, gradient_of

needs_transforms = pytest.mark.skipif(find_spec("rocket_fft") is None, reason="needs rocket-fft: pip install .[fft]")
X, WINDOW = np.random.default_rng(0).standard_normal((2, 30)), np.hanning(9)[:8]


def test_windows():
    np.testing.assert_allclose(nn.hann_window(7, False), np.hanning(7), atol=1e-15)
    np.testing.assert_allclose(nn.hann_window(8), WINDOW, atol=1e-15)
    np.testing.assert_allclose(nn.hamming_window(6, False), np.hamming(6), atol=1e-15)
    np.testing.assert_allclose(nn.hamming_window(6), np.hamming(7)[:6], atol=1e-15)
    for periodic in (True, False):
        for window in (nn.hann_window, nn.hamming_window):
            assert window(1, periodic).tolist() == [1.0]
            assert window(0, periodic).tolist() == []
    assert nn.hann_window(2).tolist() == [0.0, 1.0]
    assert nn.hann_window(2, False).tolist() == [0.0, 0.0]
    with pytest.raises(ValueError, match="a window of -1 elements"):
        nn.hann_window(-1)


@needs_transforms
def test_spectra_and_back():
    padded = np.pad(X, ((0, 0), (4, 4)), "reflect")
    wanted = [np.fft.rfft(padded[:, 2 * k : 2 * k + 8] * WINDOW, axis=1) for k in range(16)]
    found = nn.stft(X, 8, 2, WINDOW, True, False)
    np.testing.assert_allclose(found, np.stack(wanted, axis=2), atol=1e-13)
    np.testing.assert_allclose(nn.stft(X, 8, 2, WINDOW, True, True), found / np.sqrt(8), atol=1e-13)
    np.testing.assert_allclose(nn.istft(found, 8, 2, WINDOW, True, False), X, atol=1e-13)
    off_center = nn.stft(X, 8, 2, 0.5 + WINDOW[1:6], False, True)
    assert off_center.shape == (2, 5, 12)
    with pytest.raises(ValueError, match="zero at time 0"):  # the window is zero there
        nn.istft(off_center, 8, 2, WINDOW, False, True)
    with pytest.raises(ValueError, match="spectra with 5 frequencies; of parts of 6"):
        nn.istft(found, 6, 2, WINDOW, True, False)
    with pytest.raises(ValueError, match="a window of 8 elements for parts of 6"):
        nn.stft(X, 6, 2, WINDOW, True, False)


@needs_transforms
def test_the_examples_of_the_docstrings():
    y = nn.stft(np.ones(8), 4, 4, center=False)
    np.testing.assert_allclose(y, [[4.0, 4.0], [0.0, 0.0], [0.0, 0.0]], atol=1e-15)
    np.testing.assert_allclose(nn.istft(nn.stft(np.arange(8.0), 4), 4), np.arange(8.0), atol=1e-14)


@needs_transforms
def test_both_modes():
    @njit
    def loss(x, window):
        y, total = nn.stft(x, 8, 2, window, True, False), 0.0
        for v in y.ravel():
            total += (v.real**2 + 2.0 * v.imag**2) ** 1.5
        for v in nn.istft(y * y, 8, 2, window, True, False).ravel():
            total += v**3
        return total

    random = np.random.default_rng(1)
    window, by_x, by_window = WINDOW + 0.1, random.standard_normal(X.shape), random.standard_normal(8)
    gradient = irad.grad(loss, argnums=(0, 1))(X, window)
    slope, step = (gradient[0] * by_x).sum() + (gradient[1] * by_window).sum(), 1e-6
    above, below = (loss(X + s * by_x, window + s * by_window) for s in (step, -step))
    assert slope == pytest.approx((above - below) / (2 * step), rel=1e-7)
    assert irad.jvp(loss, (X, window), (by_x, by_window))[1] == pytest.approx(slope, rel=1e-12)


@needs_transforms
def test_spectrograms():
    padded = np.pad(X, ((0, 0), (3, 3)))
    spectra = nn.stft(padded, 8, 2, WINDOW, True, False)
    uneven = WINDOW + np.linspace(0.1, 0.3, 8)  # WINDOW, reflected at the border, has spectra of exactly zero: a kink
    for power in (1.0, 2.0, 0.7):
        wanted = np.abs(spectra) ** power
        np.testing.assert_allclose(
            nn.spectrogram(X, 8, 2, WINDOW, True, power, False, False, 3), wanted, rtol=1e-12, atol=1e-13
        )
        norm = np.sqrt((WINDOW**2).sum())
        np.testing.assert_allclose(
            nn.spectrogram(X, 8, 2, WINDOW, True, power, True, True, 3),
            wanted / (np.sqrt(8) * norm) ** power,
            rtol=1e-12,
            atol=1e-13,
        )
        check(nn.spectrogram, X, 8, 2, uneven, True, power, True, True, 3, active=(0, 3), second=False)
    of_ones = nn.spectrogram(X, 8, 2, None, True, 2.0, False, True)
    np.testing.assert_allclose(of_ones, nn.spectrogram(X, 8, 2, None, True, 2.0, True), rtol=1e-12)
    with pytest.raises(ValueError, match=r"a power of 0\.0, which must be positive"):
        nn.spectrogram(X, 8, 2, WINDOW, True, 0.0, False, False, 3)


@needs_transforms
def test_spectrograms_in_single_precision():
    check_single(nn.spectrogram, X, 8, 2, WINDOW, True, 2.0, True, True, 3, active=(0, 3))


@needs_transforms
def test_silence_has_derivative_zero():
    silence = np.zeros((1, 12))
    for power in (0.5, 1.0, 2.0):
        y = nn.spectrogram(silence, 8, 2, WINDOW, True, power, False, False, 0)
        assert (y == 0.0).all()
        gradient = gradient_of(nn.spectrogram, 9, (0, 3))
        for found in gradient(np.ones(y.shape), silence, 8, 2, WINDOW, True, power, False, False, 0)[1]:
            assert (found == 0.0).all()


def test_mel_filters():
    """Tops are equally far apart on the mel scale; between the first and the last all filters add up to one."""
    filters = nn.melscale_filterbanks(257, 8, 16000, 60.0, 7000.0)
    mels = 2595.0 * np.log10(1.0 + np.array([60.0, 7000.0]) / 700.0)
    corners = 700.0 * (10.0 ** (np.linspace(*mels, 10) / 2595.0) - 1.0)
    frequencies = np.linspace(0.0, 8000.0, 257)
    wanted = [np.interp(frequencies, corners[m : m + 3], [0.0, 1.0, 0.0]) for m in range(8)]
    np.testing.assert_allclose(filters, wanted, atol=1e-12)
    between = (frequencies > corners[1]) & (frequencies < corners[-2])
    np.testing.assert_allclose(filters.sum(axis=0)[between], 1.0, rtol=1e-12)
    np.testing.assert_array_equal(nn.melscale_filterbanks(9, 2, 100.0), nn.melscale_filterbanks(9, 2, 100, 0.0, 50.0))
    for wrong in ((1, 8, 9.0, 0.0, 4.0), (9, 0, 9.0, 0.0, 4.0), (9, 8, 9.0, 4.0, 4.0), (9, 8, 9.0, -1.0, 4.0)):
        with pytest.raises(ValueError, match="filters for"):
            nn.melscale_filterbanks(*wrong)


def test_decibels():
    powers = 10.0 ** np.random.default_rng(3).uniform(-14, 1, (3, 5))
    powers[0, 0], powers[1, 1] = 0.0, 20.0  # the largest
    decibels = 10.0 * np.log10(np.maximum(powers, 1e-10)) - 10.0 * np.log10(0.5)

    def reference(s: Any, ref: float, amin: float, top_db: float) -> Any:
        return np.maximum(decibels, decibels.max() - top_db)

    for top_db in (60.0, np.inf):
        np.testing.assert_allclose(nn.power_to_db(powers, 0.5, 1e-10, top_db), reference(powers, 0.5, 1e-10, top_db))
    back = nn.db_to_power(nn.power_to_db(powers, 0.5, 1e-10, np.inf), 0.5)
    np.testing.assert_allclose(back, np.maximum(powers, 1e-10), rtol=1e-12)
    assert nn.power_to_db(np.empty((0, 2)), 0.5, 1e-10, 60.0).shape == (0, 2)
    assert np.isnan(nn.power_to_db(np.array([1.0, np.nan]))).tolist() == [False, True]
    with pytest.raises(ValueError, match="amin is 0"):
        nn.power_to_db(powers, 0.5, 0.0, 60.0)


def test_derivatives_of_decibels():
    """What is raised to the limit has the derivative of the largest, what is below `amin` none."""
    powers = np.array([2.0, 1e-3, 1e-20, 0.7, 3.0])
    slopes = 10.0 / np.log(10.0) / powers
    gradient = irad.grad(lambda s, top_db: nn.power_to_db(s, 1.0, 1e-10, top_db).sum())
    np.testing.assert_allclose(gradient(powers, 20.0), [slopes[0], 0.0, 0.0, slopes[3], 3.0 * slopes[4]], rtol=1e-12)
    np.testing.assert_allclose(gradient(powers, np.inf), slopes * [1.0, 1.0, 0.0, 1.0, 1.0], rtol=1e-12)
    check(nn.power_to_db, np.array([2.0, 0.9, 0.7, 3.0]), 0.5, 1e-10, 80.0)
    check_single(nn.db_to_power, np.array([[-20.0, 3.0], [0.0, 7.0]]), 0.5)
    check(nn.db_to_power, np.array([[-20.0, 3.0], [0.0, 7.0]]), 0.5)


def test_without_transforms_they_are_refused():
    code = (
        "import sys\n"
        "sys.modules['rocket_fft'] = None\n"  # as if it were not installed
        "import numpy as np\n"
        "from irad import nn\n"
        "spectra = np.ones((3, 5), np.complex128)\n"
        "for call in (\n"
        "    lambda: nn.stft(np.ones(8), 4), lambda: nn.istft(spectra, 4), lambda: nn.spectrogram(np.ones(8), 4)\n"
        "):\n"
        "    try:\n"
        "        call()\n"
        "    except Exception as error:\n"
        "        print(error)\n"
    )
    done: Any = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    for name in ("stft", "istft", "spectrogram"):
        assert re.search(rf"nn\.{name} needs rocket-fft.*: pip install rocket-fft", done.stdout), (
            done.stdout + done.stderr
        )
