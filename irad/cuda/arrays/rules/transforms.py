"""Fourier transforms and convolutions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from irad.cuda.arrays.ruleset import ArrayCall, Rule

# Fourier transforms (on a GPU: cuFFT): compositions of transforms along one axis.
#
# The adjoint of a transform is the inverse one, scaled in the opposite way. A real transform leaves out half of the
# frequencies, which are the conjugates of the others.

_OPPOSITE: Final = {None: "forward", "backward": "forward", "ortho": "ortho", "forward": "backward"}
Step = Callable[[Any, Any, int, int, int, Any], Any]
"""``(xp, cotangent, axis, length of the input, length of the transform, norm)`` gives the cotangent of the input."""


def _resized(m: Any, x: Any, axis: int, length: int) -> Any:
    """Cut off, or continued by zeros."""
    if x.shape[axis] >= length:
        return m.moveaxis(m.moveaxis(x, axis, 0)[:length], 0, axis)
    shape = list(x.shape)
    shape[axis] = length - x.shape[axis]
    return m.concatenate([x, m.zeros(shape, x.dtype)], axis=axis)


def _of_fft(m: Any, ct: Any, axis: int, before: int, n: int, norm: Any) -> Any:
    return _resized(m, m.fft.ifft(ct, n, axis, norm=_OPPOSITE[norm]), axis, before)


def _of_ifft(m: Any, ct: Any, axis: int, before: int, n: int, norm: Any) -> Any:
    return _resized(m, m.fft.fft(ct, n, axis, norm=_OPPOSITE[norm]), axis, before)


def _of_rfft(m: Any, ct: Any, axis: int, before: int, n: int, norm: Any) -> Any:
    return _resized(m, m.fft.ifft(_resized(m, ct, axis, n), n, axis, norm=_OPPOSITE[norm]).real, axis, before)


def _of_irfft(m: Any, ct: Any, axis: int, before: int, n: int, norm: Any) -> Any:
    """All frequencies stand for two, but for the first and, where their number is even, the last."""
    found = m.moveaxis(m.fft.rfft(ct.real, n, axis, norm=_OPPOSITE[norm]), axis, 0)
    found[1 : (n + 1) // 2] *= 2
    return _resized(m, m.moveaxis(found, 0, axis), axis, before)


def _transform(first: Step, others: Step, *, real_output: bool) -> Callable[..., Any]:
    """Reverses transforms along axes: ``first`` is that along the last one."""

    def reverse(call: ArrayCall, cotangent: Any, a: Any, s: Any, axes: Any, norm: Any) -> Any:
        axes = tuple(axis % a.ndim for axis in axes)
        steps = [(axis, length, others) for axis, length in zip(axes[:-1], s[:-1], strict=True)]
        last = (axes[-1], s[-1], first)
        for axis, length, step in [last, *steps] if real_output else [*steps, last]:
            cotangent = step(call.xp, cotangent, axis, a.shape[axis], length, norm)
        return cotangent

    return reverse


def _rules(name: str, first: Step, others: Step, *, real_output: bool = False) -> list[Rule]:
    """Rules of a transform along one, two and any number of axes."""
    transform = _transform(first, others, real_output=real_output)

    def length(a: Any, n: Any, axis: int) -> int:
        if n is not None:
            return int(n)
        return 2 * (int(a.shape[axis]) - 1) if real_output else int(a.shape[axis])

    def one(call: ArrayCall, cotangent: Any, a: Any, n: Any = None, axis: int = -1, norm: Any = None) -> Any:
        return transform(call, cotangent, a, [length(a, n, axis)], [axis], norm)

    def several(call: ArrayCall, cotangent: Any, a: Any, s: Any = None, axes: Any = None, norm: Any = None) -> Any:
        used = tuple(axes) if axes is not None else tuple(range(-(a.ndim if s is None else len(s)), 0))
        lengths = list(s) if s is not None else [*(a.shape[i] for i in used[:-1]), length(a, None, used[-1])]
        return transform(call, cotangent, a, lengths, used, norm)

    def two(call: ArrayCall, cotangent: Any, a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None) -> Any:
        return several(call, cotangent, a, s, axes, norm)

    return [Rule(f"fft.{name}", one), Rule(f"fft.{name}2", two), Rule(f"fft.{name}n", several)]


_FOURIER: Final = (
    *_rules("fft", _of_fft, _of_fft),
    *_rules("ifft", _of_ifft, _of_ifft),
    *_rules("rfft", _of_rfft, _of_fft),
    *_rules("irfft", _of_irfft, _of_ifft, real_output=True),
)


# Convolutions: linear in each factor; the adjoint is a convolution with the other factor, flipped.


def _reverse(
    call: ArrayCall, cotangent: Any, one: Any, other: Any, mode: str, same: tuple[int, ...]
) -> tuple[Any, ...]:
    """Args: ``same`` is the shape of the result in mode "same", the middle of the full one."""
    m = call.xp
    full = tuple(a + b - 1 for a, b in zip(one.shape, other.shape, strict=True))
    if mode == "full":
        start = (0,) * len(full)
    elif mode == "same":
        start = tuple((length - kept) // 2 for length, kept in zip(full, same, strict=True))
    else:
        start = tuple(min(a, b) - 1 for a, b in zip(one.shape, other.shape, strict=True))
    embedded = m.zeros(full, cotangent.dtype)
    embedded[tuple(slice(at, at + n) for at, n in zip(start, cotangent.shape, strict=True))] = cotangent

    def to(factor: Any, by: Any) -> Any:
        return call.function(embedded, m.conj(m.flip(by)), mode="valid") if call.is_active(factor) else None

    return to(one, other), to(other, one)


def _reverse_convolve(call: ArrayCall, cotangent: Any, a: Any, v: Any, mode: str = "full") -> tuple[Any, ...]:
    """NumPy's: the result has the length of the longer factor in mode "same"."""
    return _reverse(call, cotangent, a, v, mode, max(a.shape, v.shape))


def _reverse_signal(
    call: ArrayCall, cotangent: Any, in1: Any, in2: Any, mode: str = "full", method: str = "auto"
) -> tuple[Any, ...]:
    """SciPy's: the result has the shape of the first factor in mode "same"."""
    return _reverse(call, cotangent, in1, in2, mode, in1.shape)


def _reverse_fftconvolve(call: ArrayCall, cotangent: Any, in1: Any, in2: Any, mode: str = "full") -> tuple[Any, ...]:
    return _reverse(call, cotangent, in1, in2, mode, in1.shape)


_CONVOLUTIONS: Final = (
    Rule("convolve", _reverse_convolve, arrays=2),
    Rule("signal.convolve", _reverse_signal, arrays=2),
    Rule("signal.fftconvolve", _reverse_fftconvolve, arrays=2),
)


RULES: Final = (*_FOURIER, *_CONVOLUTIONS)
