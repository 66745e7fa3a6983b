"""Partial derivatives of irad's rules, evaluated on arrays of NumPy or CuPy.

A rule's expression names functions as the C library does; the tables here say what an array library calls them. What
only Python's numbers enter is computed in Python: array libraries keep single precision beside those.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, assert_never

import numpy as np

from irad.ruleset import reference, special
from irad.ruleset.expr import (
    Apply,
    Comparison,
    Expr,
    Negation,
    Numeral,
    Operation,
    Symbol,
    Where,
    applied,
    closed,
    evaluate,
)

NUMPY: Final = {
    **{name: name for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "exp", "exp2", "expm1", "log", "log2")},
    **{name: name for name in ("log10", "log1p", "sqrt", "cbrt", "hypot", "copysign", "floor", "ceil", "trunc")},
    **{name: name for name in ("rint", "fmax", "fmin", "maximum", "minimum", "fmod")},
    **{f"a{name}": f"arc{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh", "tan2")},
    "fabs": "fabs",
    "pow": "power",
}
SPECIAL: Final = {
    **{name: name for name in ("erf", "erfc", "erfcx", "j0", "j1", "y0", "y1", "yn", "i0", "i0e", "i1", "i1e", "expn")},
    **{name: name for name in ("k0", "k0e", "k1", "k1e", "sindg", "cosdg", "log_ndtr")},
    **{name: name for name in ("jv", "yv", "iv", "kv", "ive", "kve", "hyp0f1", "hyp1f1", "hyp2f1", "hyperu")},
    "normcdf": "ndtr",
    "lgamma": "gammaln",
    "digamma": "psi",
}
_OPERATORS: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "fadd": operator.add,
    "fsub": operator.sub,
    "fmul": operator.mul,
    "fdiv": operator.truediv,
    "olt": operator.lt,
    "ole": operator.le,
    "ogt": operator.gt,
    "oge": operator.ge,
    "oeq": operator.eq,
    "une": operator.ne,
}


def is_known(exprs: Iterable[Expr | None]) -> bool:
    """True if array libraries have all functions that expressions contain.

    What CuPy does not have (`jv`) occurs only in the derivatives of functions that it does not have either.
    """
    for each in applied(exprs):
        if each.function not in NUMPY and each.function not in SPECIAL:
            body = special.BODIES.get(each.function)
            if body is None or not is_known([body(*each.arguments)]):
                return False
    return True


def partial_of(expr: Expr, values: Mapping[str, Any], xp: Any, special_functions: Callable[[], Any]) -> Any:
    """The value of an expression.

    Args:
        values: an array or a number for each symbol.
        xp: the array library.
        special_functions: gives its module of special functions, which need not be installed.
    """
    return _OnArrays(values, xp, special_functions).value(expr)


class _OnArrays:
    """Evaluates each part once."""

    def __init__(self, values: Mapping[str, Any], xp: Any, special_functions: Callable[[], Any]) -> None:
        self._values, self._xp, self._special_functions = values, xp, special_functions
        self._done: dict[int, Any] = {}

    def value(self, expr: Expr) -> Any:
        if id(expr) not in self._done:
            self._done[id(expr)] = self._new(expr)
        return self._done[id(expr)]

    def _new(self, expr: Expr) -> Any:
        match closed(expr):
            case Symbol(name=name):
                return self._values[name]
            case Numeral(value=value):
                return value
            case Operation(opcode=opcode, a=a, b=b):
                left, right = self.value(a), self.value(b)
                if _is_number(left) and _is_number(right):  # IEEE's division, in which Python raises
                    return evaluate(Operation(opcode, Numeral(left), Numeral(right)), {})
                return _OPERATORS[opcode](left, right)
            case Negation(a=a):
                return -self.value(a)
            case Where(condition=condition, a=a, b=b):
                holds = self._holds(condition)
                if isinstance(holds, bool | np.bool_):
                    return self.value(a if holds else b)
                return self._xp.where(holds, self.value(a), self.value(b))
            case Apply(function=function, arguments=arguments):
                return self._call(function, [self.value(argument) for argument in arguments])
            case unreachable:
                assert_never(unreachable)

    def _holds(self, condition: Comparison) -> Any:
        return _OPERATORS[condition.predicate](self.value(condition.a), self.value(condition.b))

    def _call(self, function: str, given: list[Any]) -> Any:
        if function in reference.FUNCTIONS and all(map(_is_number, given)):
            return reference.call(function, given, reference.FUNCTIONS)
        if function in NUMPY:
            return getattr(self._xp, NUMPY[function])(*given)
        if function in SPECIAL:
            return getattr(self._special_functions(), SPECIAL[function])(*given)
        inner = {f"x{i}": value for i, value in enumerate(given)}
        return partial_of(special.BODIES[function](*map(Symbol, inner)), inner, self._xp, self._special_functions)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)
