"""spectrogram, mel filters and decibels: what is usually made of spectra before a network sees them."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from irad.frontend.formatted import FormattedValueError
from irad.frontend.inner import inner_njit
from irad.frontend.operands import floats
from irad.nn.resampling.padding import pad_zeros
from irad.nn.sequences.spectra import norm_of_window, require_transforms, stft
from irad.nn.shapes import Array


@njit
def spectrogram(
    x: Array,
    n_fft: int,
    hop_length: int | None = None,
    window: Array | None = None,
    center: bool = True,
    power: float = 2.0,
    normalized: bool = False,
    window_normalized: bool = False,
    pad: int = 0,
) -> Array:
    """Powers of the magnitudes of short-time spectra, ``abs(stft(x)) ** power``.

    It needs rocket-fft: ``pip install rocket-fft``. The derivative is zero where a spectrum is zero.

    Args:
        x: signals of shape (…, time).
        n_fft: length of a part, in samples, as in `irad.nn.stft`.
        hop_length: distance between parts, in samples; by default a quarter of ``n_fft``.
        window: factors for each part, as in `irad.nn.stft`; by default ones.
        center: whether signals are continued beyond their ends by reflection, as in `irad.nn.stft`.
        power: the exponent, positive: 1 for magnitudes, 2 for powers.
        normalized: whether spectra are divided by the square root of ``n_fft``.
        window_normalized: whether spectra are divided by the square root of the sum of the squares of the window.
        pad: number of zeros before and after each signal.

    Returns:
        A new array of shape (…, n_fft // 2 + 1, parts).

    Raises:
        ValueError: ``power``, ``n_fft`` or ``hop_length`` is not positive, ``pad`` is negative, or the window is too
            long.

    Source:
        Allen, Rabiner: A unified approach to short-time Fourier analysis, Proc. IEEE 65 (1977) 1558-1564.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.spectrogram(np.ones(8), 4, 4, center=False)
        array([[16., 16.],
               [ 0.,  0.],
               [ 0.,  0.]])
    """
    require_transforms("spectrogram")
    if not power > 0.0:
        raise FormattedValueError("spectrogram: a power of {}, which must be positive", power)
    x, window = floats("spectrogram", x, window)
    spectra = stft(pad_zeros(x, (pad, pad)), n_fft, hop_length, window, center, normalized)
    norm = norm_of_window(window, n_fft) if window_normalized else 1.0
    y, half = np.empty(spectra.shape, x.dtype), 0.5 * power
    given, found, factor = spectra.ravel(), y.reshape(y.size), x.dtype.type(1.0 / norm)
    for i in range(given.size):
        real, imaginary = given[i].real * factor, given[i].imag * factor
        squares = real * real + imaginary * imaginary
        if half == 1.0:
            found[i] = squares
        else:  # a power of zero has no derivative if the exponent is below one
            found[i] = squares**half if squares > 0.0 else squares
    return y


@njit
def melscale_filterbanks(
    n_freqs: int, n_mels: int, sample_rate: float, fmin: float = 0.0, fmax: float | None = None
) -> Array:
    """Triangular filters that are equally wide on the mel scale, ``2595 * log10(1 + frequency / 700)``.

    ``melscale_filterbanks(…) @ spectrogram(…)`` is a mel spectrogram. A filter between two frequencies is zero: then
    there are too many filters for so few frequencies.

    Args:
        n_freqs: number of frequencies, from 0 to half the sample rate: ``n_fft // 2 + 1`` of those of a spectrogram.
        n_mels: number of filters.
        sample_rate: samples per second.
        fmin: frequency in hertz where the first filter begins.
        fmax: frequency in hertz where the last filter ends; by default half the sample rate.

    Returns:
        A new array of shape (n_mels, n_freqs) of float64 numbers from 0 to 1.

    Raises:
        ValueError: a number of frequencies or filters is not positive, or the filters do not begin below their end.

    Source:
        O'Shaughnessy: Speech communication: human and machine, Addison-Wesley 1987, page 150.

    Examples:
        >>> import irad
        >>> irad.nn.melscale_filterbanks(6, 2, 1000.0).round(2)
        array([[0.  , 0.73, 0.62, 0.02, 0.  , 0.  ],
               [0.  , 0.  , 0.38, 0.98, 0.51, 0.  ]])
    """
    nyquist = 0.5 * sample_rate
    end = nyquist if fmax is None else fmax
    if n_freqs < 2 or n_mels < 1 or not 0.0 <= fmin < end:
        raise FormattedValueError(
            "melscale_filterbanks: {} filters for {} frequencies, from {} to {} hertz", n_mels, n_freqs, fmin, end
        )
    first, filters = _mel(fmin), np.zeros((n_mels, n_freqs))
    step = (_mel(end) - first) / (n_mels + 1)
    for m in range(n_mels):
        left, top, right = _hertz(first + m * step), _hertz(first + (m + 1) * step), _hertz(first + (m + 2) * step)
        for k in range(n_freqs):
            frequency = nyquist * k / (n_freqs - 1)
            filters[m, k] = max(0.0, min((frequency - left) / (top - left), (right - frequency) / (right - top)))
    return filters


@inner_njit
def _mel(frequency):
    return 2595.0 * math.log10(1.0 + frequency / 700.0)


@inner_njit
def _hertz(mel):
    return 700.0 * (10.0 ** (mel / 2595.0) - 1.0)


@njit
def power_to_db(s: Array, ref: float = 1.0, amin: float = 1e-10, top_db: float = 80.0) -> Array:
    """Powers in decibels: ``10 * log10(s / ref)``, not more than some decibels below the largest.

    Args:
        s: powers, an array of any shape.
        ref: the power of zero decibels.
        amin: smaller powers count as this one, as does a smaller ``ref``; positive.
        top_db: how many decibels below the largest smaller ones are raised to; infinity for no limit.

    Returns:
        A new array of the shape of ``s``.

    Raises:
        ValueError: ``amin`` is not positive.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.power_to_db(np.array([0.0, 1.0, 100.0]))
        array([-60.,   0.,  20.])
    """
    if not amin > 0.0:
        raise FormattedValueError("power_to_db: amin is {}, which must be positive", amin)
    s = floats("power_to_db", s)
    y, zero = np.empty(s.shape, s.dtype), math.log10(max(amin, ref))
    given, decibels, top = s.ravel(), y.reshape(y.size), 0
    for i in range(given.size):
        decibels[i] = 10.0 * (math.log10(amin if given[i] < amin else given[i]) - zero)
        if decibels[i] > decibels[top]:
            top = i
    if given.size:
        lowest = decibels[top] - top_db
        for i in range(given.size):
            if decibels[i] < lowest:
                decibels[i] = lowest
    return y


@njit
def db_to_power(s_db: Array, ref: float = 1.0) -> Array:
    """Powers from decibels, ``ref * 10 ** (s_db / 10)``: the inverse of `irad.nn.power_to_db`.

    Args:
        s_db: decibels, an array of any shape.
        ref: the power of zero decibels.

    Returns:
        A new array of the shape of ``s_db``.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> irad.nn.db_to_power(np.array([-10.0, 0.0, 20.0]))
        array([  0.1,   1. , 100. ])
    """
    s_db = floats("db_to_power", s_db)
    y = np.empty(s_db.shape, s_db.dtype)
    given, powers = s_db.ravel(), y.reshape(y.size)
    for i in range(given.size):
        powers[i] = ref * 10.0 ** (0.1 * given[i])
    return y
