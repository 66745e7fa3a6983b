"""Report on an integral that is not as precise as it should be.

Python gets a warning, as from SciPy; compiled code, where a warning would stop nothing and a gradient would use the
number, an error. Who asks for ``full_output`` compares the error estimate with the tolerances himself. That of a
derivative goes nowhere where a caller could look, so that a derivative raises in any case.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from irad.errors import IntegrationWarning
from irad.frontend.custom.targets import inactive_in_irad
from irad.frontend.inner import inner_jitable, inner_njit

_REMEDY = "allow more intervals (limit=), name kinks, jumps and poles (points=), or pass larger tolerances"
_PROBLEM = "an integral is less precise than epsabs and epsrel require: " + _REMEDY
_OF_DERIVATIVE = "the derivative of an integral is less precise than epsabs and epsrel require: " + _REMEDY


@inactive_in_irad
@inner_njit
def _check(is_precise):  # type: ignore[no-untyped-def]
    if not is_precise:
        raise ValueError(_PROBLEM)


@inactive_in_irad
@inner_njit
def check_derivative(is_precise):  # type: ignore[no-untyped-def]
    """Refuses the integral of an integrand's derivative that is not precise enough."""
    if not is_precise:
        raise ValueError(_OF_DERIVATIVE)


@inner_jitable
def first_two(result):  # type: ignore[no-untyped-def]
    """The value and its error, if that is small enough."""
    _check(result[3])
    return result[0], result[1]


@inner_jitable
def all_of(result):  # type: ignore[no-untyped-def]
    """The number of points as well, however large the error is."""
    return result[0], result[1], result[2]


def told(result: tuple[Any, ...], full_output: bool) -> tuple[Any, ...]:
    """Result for Python, with a warning at the line that called irad."""
    if full_output:
        return result[:3]
    if not result[3]:
        depth, frame = 1, sys._getframe()
        while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("irad", ""):
            depth, frame = depth + 1, frame.f_back
        warnings.warn(f"{_PROBLEM}; its error may be {result[1]:.3g}", IntegrationWarning, stacklevel=depth)
    return result[:2]
