"""Entropy and fractal dimension of time series."""

from __future__ import annotations

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

PACKAGE = Package(
    "antropy",
    "antropy>=0.1.6",
    (
        of("antropy.fractal:_higuchi_fd", floats(40), 4),
        of("antropy.fractal:_dfa", floats(64)),
        of("antropy.utils:_linear_regression", floats(6), floats(6, seed=1)),
    ),
)
