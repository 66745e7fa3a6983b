"""Convolutions: linear in each factor; the adjoint is a convolution with the other factor, flipped."""

from __future__ import annotations

from typing import Any, Final

from irad.cuda.arrays.ruleset import ArrayCall, Rule


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


RULES: Final = (
    Rule("convolve", _reverse_convolve, arrays=2),
    Rule("signal.convolve", _reverse_signal, arrays=2),
    Rule("signal.fftconvolve", _reverse_fftconvolve, arrays=2),
)
