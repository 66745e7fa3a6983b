"""Elementwise functions in Python: the canonical names of rules, as numpy (or the executable form) has them."""

from __future__ import annotations

from typing import Final

_SAME: Final = frozenset([
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "sinh",
    "cosh", "tanh", "floor", "ceil", "trunc", "rint", "hypot", "fmod", "copysign", "nextafter", "ldexp",
])  # fmt: skip
_NUMPY: Final = {
    "fabs": "abs", "asin": "np.arcsin", "acos": "np.arccos", "atan": "np.arctan", "asinh": "np.arcsinh",
    "acosh": "np.arccosh", "atanh": "np.arctanh", "atan2": "np.arctan2", "roundeven": "np.rint",
    "nearbyint": "np.rint", "fmin": "np.fmin", "fmax": "np.fmax", "minnum": "np.fmin", "maxnum": "np.fmax",
    "minimum": "np.minimum", "maximum": "np.maximum", "pow": "np.power", "powi": "np.power",
    "gamma": "special.gamma", "tgamma": "special.gamma", "lgamma": "special.gammaln", "erf": "special.erf",
    "erfc": "special.erfc", "digamma": "special.digamma",
}  # fmt: skip


def python_function(canonical: str) -> str | None:
    """The Python name of a rule's function; None where there is none."""
    return f"np.{canonical}" if canonical in _SAME else _NUMPY.get(canonical)
