"""Akima splines in a named tuple of arrays."""

from __future__ import annotations

import numpy as np
from numba import njit

from tests.corpus.sample import Named, Package, of
from tests.tools.catalogue import floats

X = np.array([0.0, 0.4, 1.1, 1.5, 2.3, 3.0, 3.4])
Y = floats(7)
COEFFICIENTS = "pyakima.pyakima:make_akima_coeffs"
QUERY = np.array([0.2, 1.2, 2.9, 3.1])


@njit
def evaluated(coefficients, evaluate, x, y, query):
    return evaluate(query, coefficients(x, y, 2, 0.0), 0)


M = "tests.corpus.packages.pyakima:evaluated"
P = "pyakima.pyakima:"

PACKAGE = Package(
    "pyakima",
    "pyakima>=0.1",
    (
        of(COEFFICIENTS, X, Y, 2, 0.0, argnums=(0, 1)),
        of(COEFFICIENTS, X, Y, 0, 0.0, argnums=(0, 1)),
        of(M, Named(COEFFICIENTS), Named(P + "cubic_call_scalar"), X, Y, 1.7),
        of(M, Named(COEFFICIENTS), Named(P + "cubic_call_vector"), X, Y, QUERY),
        of(M, Named(COEFFICIENTS), Named(P + "cubic_call_vector_linear"), X, Y, QUERY),
    ),
)
