"""Technical indicators: rolling recursions that write into an array of the caller."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.corpus.sample import Package, Sample, of
from tests.tools.catalogue import floats

X = floats(24)
LOW, HIGH, CLOSE, OPEN = floats(24) - 0.6, floats(24) + 0.7, floats(24, seed=1), floats(24, seed=2)
LONG = floats(90) + np.sin(np.arange(90) / 4)


def kernel(name: str, *args: object, outs: int = 1, size: int = 24, **options: Any) -> Sample:
    """A function whose last arguments are the arrays that it writes to."""
    writes = tuple(range(len(args), len(args) + outs))
    path = f"numbatalib._func.ta_{name}:_{name}_kernel"
    return of(path, *args, *(np.zeros(size) for _ in range(outs)), writes=writes, **options)


PACKAGE = Package(
    "numbatalib",
    "numbatalib>=0.1",
    (
        kernel("ad", HIGH, LOW, CLOSE, X),
        kernel("adosc", HIGH, LOW, CLOSE, X, 3, 6),
        kernel("adx", HIGH, LOW, CLOSE, 4),
        kernel("atr", HIGH, LOW, CLOSE, 4),
        kernel("avgdev", X, 5),
        kernel("beta", X, CLOSE, 5),
        kernel("bop", OPEN, HIGH, LOW, CLOSE),
        kernel("cmo", X, 5),
        kernel("correl", X, CLOSE, 5),
        kernel("dx", HIGH, LOW, CLOSE, 4),
        kernel("ema", X, 5),
        kernel("ht_dcperiod", LONG, size=90),
        kernel("ht_phasor", LONG, outs=2, size=90),
        kernel("ht_sine", LONG, outs=2, size=90),
        kernel("ht_trendline", LONG, size=90),
        kernel("imi", OPEN, CLOSE, 5),
        kernel("kama", X, 5),
        kernel("linearreg", X, 5),
        kernel("linearreg_angle", X, 5),
        kernel("macd", X, 3, 6, 4, outs=3),
        kernel("mama", LONG, 0.5, 0.05, outs=2, size=90),
        kernel("max", X, 5),
        kernel("midpoint", X, 5),
        kernel("minus_di", HIGH, LOW, CLOSE, 4),
        kernel("obv", CLOSE, X),
        kernel("plus_dm", HIGH, LOW, 4),
        kernel("rocr100", X, 4),
        kernel("rsi", X, 5),
        kernel("sar", HIGH, LOW, 0.02, 0.2),
        kernel("sma", X, 5),
        kernel("stddev", X, 5, 1.5),
        kernel("t3", LONG, 4, 0.7, size=90),
        kernel("trange", HIGH, LOW, CLOSE),
        kernel("ultosc", HIGH, LOW, CLOSE, 3, 5, 7),
        kernel("var", X, 5),
        kernel("wma", X, 5),
    ),
)
