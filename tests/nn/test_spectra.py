"""stft and istft: against np.fft, there and back, in both modes; windows."""

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


def test_without_transforms_they_are_refused():
    code = (
        "import sys\n"
        "sys.modules['rocket_fft'] = None\n"  # as if it were not installed
        "import numpy as np\n"
        "from irad import nn\n"
        "for call in (lambda: nn.stft(np.ones(8), 4), lambda: nn.istft(np.ones((3, 5), np.complex128), 4)):\n"
        "    try:\n"
        "        call()\n"
        "    except Exception as error:\n"
        "        print(error)\n"
    )
    done: Any = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    for name in ("stft", "istft"):
        assert re.search(rf"nn\.{name} needs rocket-fft.*: pip install rocket-fft", done.stdout), (
            done.stdout + done.stderr
        )
