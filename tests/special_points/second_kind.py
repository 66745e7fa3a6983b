"""Bessel functions of the second kind and integer order by their power series: mpmath takes limits, which are slow."""

from __future__ import annotations

from typing import Any

import mpmath


def bessel_y(n: int, x: Any) -> Any:
    """Y_n by DLMF 10.8.1 and the recurrence 10.6.1."""
    return _by_recurrence(n, x, -1, 2 / mpmath.pi)


def bessel_k(n: int, x: Any) -> Any:
    """K_n by DLMF 10.31.1 and the recurrence 10.29.1."""
    return _by_recurrence(n, x, 1, mpmath.mpf(-1))


def _by_recurrence(n: int, x: Any, sign: int, factor: Any) -> Any:
    if x <= 0:
        raise ValueError
    with mpmath.workdps(mpmath.mp.dps + 2 * int(x) + 20):
        first = mpmath.besseli if sign > 0 else mpmath.besselj
        square, logarithm = sign * x * x / 4, mpmath.log(x / 2)
        before = factor * (logarithm * first(0, x) - _series(0, square))
        regular = logarithm * first(1, x) - x / 2 * _series(1, square)
        now = regular + 1 / x if sign > 0 else factor * (regular - 1 / x)
        if n == 0:
            return +before
        for m in range(1, n):
            before, now = now, 2 * m / x * now + (before if sign > 0 else -before)
        return +now


def _series(n: int, square: Any) -> Any:
    """`½ Σ (ψ(k + 1) + ψ(k + n + 1)) squareᵏ / (k! (k + n)!)`."""
    psi, psi_n, term, total, k = -mpmath.euler, -mpmath.euler + n, mpmath.mpf(1), mpmath.mpf(0), 0
    while True:
        total += (psi + psi_n) * term / 2
        k += 1
        psi, psi_n = psi + mpmath.mpf(1) / k, psi_n + mpmath.mpf(1) / (k + n)
        term *= square / (k * (k + n))
        if abs(term) * 1000 < mpmath.eps * (abs(total) or 1) and k > 3:
            return total
