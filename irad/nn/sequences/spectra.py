"""stft and istft: frames by unfold and fold, transforms by rocket-fft, which makes np.fft known to Numba."""

from __future__ import annotations

import math

import numpy as np
from numba import njit, types
from numba.core.errors import NumbaTypeError

from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_njit, inner_overload
from irad.frontend.operands import floats, inexact
from irad.nn.resampling.folding import fold, unfold
from irad.nn.resampling.padding import pad_reflect
from irad.nn.shapes import Array
from irad.versions import install


@njit
def stft(
    x: Array,
    n_fft: int,
    hop_length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    normalized: bool = False,
) -> Array:
    """The spectra of short overlapping parts of signals: the short-time Fourier transform, as in PyTorch.

    It needs rocket-fft: ``pip install rocket-fft``.

    Args:
        x: signals of shape (…, time).
        n_fft: length of a part, in samples.
        hop_length: distance between parts, in samples; by default a quarter of ``n_fft``.
        window: factors for each part: ``n_fft`` elements, or fewer, which get zeros on both sides; by default ones.
        center: whether signals are continued beyond their ends by reflection, so that part k is centred on the time
            ``k * hop_length``.
        normalized: whether spectra are divided by the square root of ``n_fft``.

    Returns:
        A new array of complex numbers of shape (…, n_fft // 2 + 1, parts).

    Raises:
        ValueError: ``n_fft`` or ``hop_length`` is not positive, or the window is too long.

    Source:
        Allen, Rabiner: A unified approach to short-time Fourier analysis, Proc. IEEE 65 (1977) 1558-1564.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.stft(np.ones(8), 4, 4, center=False).real
        array([[4., 4.],
               [0., 0.],
               [0., 0.]])
    """
    require_transforms("stft")
    x, window = floats("stft", x, window)
    hop = n_fft // 4 if hop_length is None else hop_length
    _check_lengths(n_fft, hop)
    full = _of_length(window, n_fft, x.dtype)
    signals = x.reshape(_count(x.shape), 1, x.shape[-1])
    if center:
        signals = pad_reflect(signals, (n_fft // 2, n_fft // 2))
    spectra = _rfft(_weighted(unfold(signals, n_fft, hop), full, _scale(n_fft, normalized)))
    return spectra.reshape(x.shape[:-1] + (spectra.shape[1], spectra.shape[2]))  # noqa: RUF005 - Numba


@njit
def istft(
    y: Array,
    n_fft: int,
    hop_length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    normalized: bool = False,
    original_length: int | None = None,
) -> Array:
    """The signals whose `irad.nn.stft` is closest to given spectra in the least-squares sense, as in PyTorch.

    Args:
        y: spectra of shape (…, n_fft // 2 + 1, parts), complex.
        n_fft: length of a part, as in `irad.nn.stft`.
        hop_length: distance between parts, as in `irad.nn.stft`.
        window: factors for each part, as in `irad.nn.stft`.
        center: whether signals were continued by reflection, as in `irad.nn.stft`.
        normalized: whether spectra were divided by the square root of ``n_fft``.
        original_length: length of the signals in samples; by default as much as the parts cover.

    Returns:
        A new array of shape (…, time).

    Raises:
        ValueError: the windows leave out some of that time, or the shape of ``y`` does not fit.

    Source:
        Griffin, Lim: Signal estimation from modified short-time Fourier transform, IEEE TASSP 32 (1984) 236-243.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> y = irad.nn.stft(np.arange(8.0), 4)
        >>> irad.nn.istft(y, 4)
        array([0., 1., 2., 3., 4., 5., 6., 7.])
    """
    require_transforms("istft")
    y = inexact("istft", y)
    hop = n_fft // 4 if hop_length is None else hop_length
    _check_lengths(n_fft, hop)
    bins, parts = y.shape[-2], y.shape[-1]
    if bins != n_fft // 2 + 1:
        _refuse_bins(bins, n_fft)
    start, covered = n_fft // 2 if center else 0, n_fft + hop * (parts - 1)
    length = covered - 2 * start if original_length is None else original_length
    if parts < 1 or length < 0 or start + length > covered:
        _refuse_duration(length, covered - start, parts)
    frames, window = floats("istft", _irfft(y.reshape(_count(y.shape[:-1]), bins, parts), n_fft), window)
    full = _of_length(window, n_fft, frames.dtype)
    weighted = _weighted(frames, full, 1.0 / _scale(n_fft, normalized))
    sums = fold(weighted, (weighted.shape[0], 1, covered), n_fft, hop)
    squares = _weighted(np.ones((1, n_fft, parts), full.dtype), full * full, 1.0)
    signals = _divided(sums, fold(squares, (1, 1, covered), n_fft, hop), start, length)
    return signals.reshape(y.shape[:-2] + (length,))  # noqa: RUF005 - Numba


@inner_njit
def _count(shape):
    """Number of signals."""
    count = 1
    for d in range(len(shape) - 1):
        count *= shape[d]
    return count


@inner_njit
def _scale(n_fft, normalized):
    return 1.0 / math.sqrt(n_fft) if normalized else 1.0


def _of_length(window, n_fft, dtype):
    """A window with zeros on both sides, up to a length; ones if there is no window."""
    raise NotImplementedError("for compiled code")


# An overload, since Numba would type both branches of `window is None`: `floats` has assigned to the name.
@inner_overload(_of_length)
def _compiled_of_length(window, n_fft, dtype):
    if isinstance(window, types.NoneType):
        return lambda window, n_fft, dtype: np.ones(n_fft, dtype)

    def extend(window, n_fft, dtype):
        if window.size < 1 or window.size > n_fft:
            _refuse_window(window.size, n_fft)
        full, left = np.zeros(n_fft, window.dtype), (n_fft - window.size) // 2
        for k in range(window.size):
            full[left + k] = window[k]
        return full

    return extend


def norm_of_window(window, n_fft):
    """The square root of the sum of the squares of a window."""
    raise NotImplementedError("for compiled code")


@inner_overload(norm_of_window)
def _compiled_norm_of_window(window, n_fft):
    if isinstance(window, types.NoneType):
        return lambda window, n_fft: math.sqrt(n_fft)

    def norm(window, n_fft):
        squares = 0.0
        for k in range(window.size):
            squares += window[k] * window[k]
        return math.sqrt(squares)

    return norm


@inner_njit
def _weighted(frames, window, scale):
    """Frames (signals, n_fft, parts), each multiplied by the window and by a number."""
    y = np.empty(frames.shape, frames.dtype)
    for n in range(frames.shape[0]):
        for k in range(frames.shape[1]):
            factor = frames.dtype.type(scale) * window[k]
            for p in range(frames.shape[2]):
                y[n, k, p] = factor * frames[n, k, p]
    return y


@inner_njit
def _divided(sums, weights, start, length):
    """The part of sums that is asked for, divided by weights."""
    y = np.empty((sums.shape[0], length), sums.dtype)
    for k in range(length):
        if not weights[0, 0, start + k] > 1e-11:
            _refuse_gap(k)
        for n in range(sums.shape[0]):
            y[n, k] = sums[n, 0, start + k] / weights[0, 0, start + k]
    return y


def _rfft(x):
    raise NotImplementedError("for compiled code")


def _irfft(x, n):
    raise NotImplementedError("for compiled code")


@inner_overload(_rfft)
def _compiled_rfft(x):
    return lambda x: np.fft.rfft(x, axis=1)


@inner_overload(_irfft)
def _compiled_irfft(x, n):
    return lambda x, n: np.fft.irfft(x, n, 1)


def require_transforms(name):
    """Refuses a function, called first in it: Numba reports the first error of a function, and others follow."""
    raise NotImplementedError("for compiled code")


@inner_overload(require_transforms, prefer_literal=True)
def _compiled_require(name):
    if not isinstance(name, types.StringLiteral):
        return None
    try:  # not at the head of the file: rocket-fft is optional
        import rocket_fft  # noqa: F401  # pyright: ignore[reportMissingImports]
    except ImportError:
        function = f"irad.nn.{name.literal_value}"
        message = f"{function} needs rocket-fft, which makes np.fft known to Numba: {install('fft')}"
        raise NumbaTypeError(message) from None
    return lambda name: None


@inner_njit
def _check_lengths(n_fft, hop):
    if n_fft < 1 or hop < 1:
        raise FormattedValueError("parts of length {}, {} apart: both must be positive", n_fft, hop)


@inner_njit
def _refuse_window(size, n_fft):
    raise FormattedValueError("a window of {} elements for parts of {}", size, n_fft)


@inner_njit
def _refuse_bins(bins, n_fft):
    raise FormattedValueError(
        "istft: spectra with {} frequencies; of parts of {} they have {}", bins, n_fft, n_fft // 2 + 1
    )


@inner_njit
def _refuse_duration(length, most, parts):
    raise FormattedValueError("istft: signals of length {} from {} parts, which cover {}", length, parts, most)


@inner_njit
def _refuse_gap(place):
    raise FormattedValueError("istft: windows are zero at time {}, so nothing is known about the signal there", place)


# Windows of short-time Fourier transforms.


@njit
def hamming_window(size: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46) -> Array:
    """The Hamming window, ``alpha - beta * cos(2 * pi * k / n)``.

    Args:
        size: number of elements; a single one is 1.
        periodic: whether ``n`` is that number, as it should be for spectra; otherwise it is one less, and the window is
            symmetric.
        alpha: mean of the window.
        beta: amplitude of the window.

    Returns:
        A new array of that many float64 numbers.

    Raises:
        ValueError: the size is negative.

    Examples:
        >>> import irad
        >>> irad.nn.hamming_window(4).round(2)
        array([0.08, 0.54, 1.  , 0.54])
    """
    if size < 0:
        raise FormattedValueError("a window of {} elements", size)
    if size < 2:  # as in SciPy and PyTorch: a cosine has nothing to begin and end with
        return np.ones(size)
    window, steps = np.empty(size), size if periodic else size - 1
    for k in range(size):
        window[k] = alpha - beta * math.cos(2.0 * math.pi * k / steps)
    return window


@njit
def hann_window(size: int, periodic: bool = True) -> Array:
    """The Hann window, ``(1 - cos(2 * pi * k / n)) / 2``.

    Args:
        size: number of elements.
        periodic: whether ``n`` is that number, as it should be for spectra; otherwise it is one less, and the window is
            symmetric.

    Returns:
        A new array of that many float64 numbers.

    Raises:
        ValueError: the size is negative.

    Examples:
        >>> import irad
        >>> irad.nn.hann_window(4)
        array([0. , 0.5, 1. , 0.5])
    """
    return hamming_window(size, periodic, 0.5, 0.5)
