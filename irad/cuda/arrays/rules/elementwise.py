"""Elementwise functions: partial derivatives, one for each operand.

They are functions of the array library, the operands and the result. Ties and ends are as in docs/rules.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from irad.cuda.arrays.ruleset import ArrayCall, Rule

Partial = Callable[..., Any]

_LN2, _LN10 = math.log(2.0), math.log(10.0)
_TWO_OVER_SQRT_PI: Final = 2.0 / math.sqrt(math.pi)

# functions that are complex differentiable, or linear
_HOLOMORPHIC: Final[dict[str, tuple[Partial, ...]]] = {
    "add": (lambda m, a, b, y: 1.0, lambda m, a, b, y: 1.0),
    "subtract": (lambda m, a, b, y: 1.0, lambda m, a, b, y: -1.0),
    "multiply": (lambda m, a, b, y: b, lambda m, a, b, y: a),
    "divide": (lambda m, a, b, y: 1.0 / b, lambda m, a, b, y: -y / b),
    "negative": (lambda m, x, y: -1.0,),
    "positive": (lambda m, x, y: 1.0,),
    "exp": (lambda m, x, y: y,),
    "expm1": (lambda m, x, y: y + 1.0,),
    "log": (lambda m, x, y: 1.0 / x,),
    "log10": (lambda m, x, y: 1.0 / (_LN10 * x),),
    "log2": (lambda m, x, y: 1.0 / (_LN2 * x),),
    "log1p": (lambda m, x, y: 1.0 / (1.0 + x),),
    "sqrt": (lambda m, x, y: 0.5 / y,),
    "square": (lambda m, x, y: 2.0 * x,),
    "reciprocal": (lambda m, x, y: -y * y,),
    "sin": (lambda m, x, y: m.cos(x),),
    "cos": (lambda m, x, y: -m.sin(x),),
    "tan": (lambda m, x, y: 1.0 + y * y,),
    "sinh": (lambda m, x, y: m.cosh(x),),
    "cosh": (lambda m, x, y: m.sinh(x),),
    "tanh": (lambda m, x, y: 1.0 - y * y,),
    "arcsin": (lambda m, x, y: 1.0 / m.sqrt(1.0 - x * x),),
    "arctan": (lambda m, x, y: 1.0 / (1.0 + x * x),),
    "arcsinh": (lambda m, x, y: 1.0 / m.sqrt(1.0 + x * x),),
    "arctanh": (lambda m, x, y: 1.0 / (1.0 - x * x),),
}


def _base_of_power(m: Any, x: Any, p: Any, y: Any) -> Any:
    if isinstance(p, int | float):
        return p * m.power(x, p - 1.0) if p else 0.0
    return m.where(p == 0, 0.0, p * m.power(x, m.where(p == 0, 1.0, p - 1.0)))


def _exponent_of_power(m: Any, x: Any, p: Any, y: Any) -> Any:
    if isinstance(x, int | float):
        return y * (math.log(x) if x > 0 else math.nan) if x else 0.0
    return m.where(x == 0, 0.0, y * m.log(m.where(x == 0, 1.0, x)))


def _of_length(m: Any, x: Any, y: Any) -> Any:
    return m.where(y == 0, 0.0, x / m.where(y == 0, 1.0, y))


def _of_angle(m: Any, side: Any, a: Any, b: Any) -> Any:
    square = a * a + b * b
    return m.where(square == 0, 0.0, side / m.where(square == 0, 1.0, square))


def _larger_first(m: Any, a: Any, b: Any) -> Any:
    return m.where(b > a, 0.0, m.where(m.isnan(a), 0.0, 1.0))


def _smaller_first(m: Any, a: Any, b: Any) -> Any:
    return m.where(b < a, 0.0, m.where(m.isnan(a), 0.0, 1.0))


def _zero(m: Any, *_: Any) -> Any:
    return 0.0


_LARGER: Final = (
    lambda m, a, b, y: _larger_first(m, a, b),
    lambda m, a, b, y: 1.0 - _larger_first(m, a, b),
)
_SMALLER: Final = (
    lambda m, a, b, y: _smaller_first(m, a, b),
    lambda m, a, b, y: 1.0 - _smaller_first(m, a, b),
)
_REMAINDER: Final = (lambda m, a, b, y: 1.0, lambda m, a, b, y: -m.floor(a / b))

_REAL: Final[dict[str, tuple[Partial, ...]]] = {
    "power": (_base_of_power, _exponent_of_power),
    "float_power": (_base_of_power, _exponent_of_power),
    "exp2": (lambda m, x, y: _LN2 * y,),
    "cbrt": (lambda m, x, y: 1.0 / (3.0 * y * y),),
    "fabs": (lambda m, x, y: m.sign(x),),
    "arccos": (lambda m, x, y: -1.0 / m.sqrt(1.0 - x * x),),
    "arccosh": (lambda m, x, y: 1.0 / m.sqrt(x * x - 1.0),),
    "arctan2": (lambda m, a, b, y: _of_angle(m, b, a, b), lambda m, a, b, y: _of_angle(m, -a, a, b)),
    "hypot": (lambda m, a, b, y: _of_length(m, a, y), lambda m, a, b, y: _of_length(m, b, y)),
    "logaddexp": (lambda m, a, b, y: m.exp(a - y), lambda m, a, b, y: m.exp(b - y)),
    "logaddexp2": (lambda m, a, b, y: m.exp2(a - y), lambda m, a, b, y: m.exp2(b - y)),
    "deg2rad": (lambda m, x, y: math.pi / 180.0,),
    "radians": (lambda m, x, y: math.pi / 180.0,),
    "rad2deg": (lambda m, x, y: 180.0 / math.pi,),
    "degrees": (lambda m, x, y: 180.0 / math.pi,),
    "copysign": (lambda m, a, b, y: m.sign(a) * m.copysign(1.0, b), _zero),
    "maximum": _LARGER,
    "fmax": _LARGER,
    "minimum": _SMALLER,
    "fmin": _SMALLER,
    "remainder": _REMAINDER,
    "mod": _REMAINDER,
    "fmod": (lambda m, a, b, y: 1.0, lambda m, a, b, y: -m.trunc(a / b)),
    **dict.fromkeys(("floor", "ceil", "trunc", "rint", "sign", "fix"), (_zero,)),
    "floor_divide": (_zero, _zero),
    "erf": (lambda m, x, y: _TWO_OVER_SQRT_PI * m.exp(-x * x),),
    "erfc": (lambda m, x, y: -_TWO_OVER_SQRT_PI * m.exp(-x * x),),
    "expit": (lambda m, x, y: y * (1.0 - y),),
}


def _elementwise(name: str, partials: tuple[Partial, ...], *, is_real: bool) -> Rule:
    def reverse(
        call: ArrayCall, cotangent: Any, *operands: Any, dtype: Any = None, casting: Any = None, order: Any = None
    ) -> tuple[Any, ...]:
        values = [call.xp.asarray(each) if isinstance(each, list | tuple) else each for each in operands]

        def through(operand: Any, partial: Partial) -> Any:
            if not call.is_active(operand):
                return None
            return call.like(call.times(cotangent, partial(call.xp, *values, call.result)), operand)

        return tuple(through(operand, partial) for operand, partial in zip(operands, partials, strict=True))

    return Rule(name, reverse, arrays=len(partials), is_real=is_real)


def _reverse_absolute(call: ArrayCall, cotangent: Any, x: Any, dtype: Any = None) -> Any:
    """Zero at 0, also in the plane."""
    m = call.xp
    length = m.abs(x)
    return call.times(cotangent, m.conj(m.where(length == 0, 0.0, x / m.where(length == 0, 1.0, length))))


def _reverse_conjugate(call: ArrayCall, cotangent: Any, x: Any, dtype: Any = None) -> Any:
    return call.xp.conj(cotangent)


def _reverse_clip(
    call: ArrayCall, cotangent: Any, a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> tuple[Any, ...]:
    m = call.xp
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    is_low = m.zeros(m.shape(call.result), bool) if low is None else m.broadcast_to(a < low, m.shape(call.result))
    raised = a if low is None else m.where(is_low, low, a)
    is_high = m.zeros(m.shape(call.result), bool) if high is None else raised > high
    inside = m.where(is_low | is_high, 0, cotangent)
    return (
        call.like(inside, a),
        None if low is None else call.like(m.where(is_low & ~is_high, cotangent, 0), low),
        None if high is None else call.like(m.where(is_high, cotangent, 0), high),
    )


def _reverse_real(call: ArrayCall, cotangent: Any, val: Any) -> Any:
    return cotangent


def _reverse_imag(call: ArrayCall, cotangent: Any, val: Any) -> Any:
    return 1j * cotangent


def _reverse_nan_to_num(
    call: ArrayCall, cotangent: Any, x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    return call.xp.where(call.xp.isfinite(x), cotangent, 0)


def _reverse_astype(call: ArrayCall, cotangent: Any, a: Any, dtype: Any, *_: Any, **__: Any) -> Any:
    return cotangent


def _reverse_zero(call: ArrayCall, cotangent: Any, a: Any, *_: Any, **__: Any) -> Any:
    return None


RULES: Final = (
    *(_elementwise(name, partials, is_real=False) for name, partials in _HOLOMORPHIC.items()),
    *(_elementwise(name, partials, is_real=True) for name, partials in _REAL.items()),
    Rule("absolute", _reverse_absolute),
    Rule("abs", _reverse_absolute),
    Rule("conjugate", _reverse_conjugate),
    Rule("conj", _reverse_conjugate),
    Rule("clip", _reverse_clip, arrays=3, is_real=True),
    Rule("real", _reverse_real),
    Rule("imag", _reverse_imag),
    Rule("nan_to_num", _reverse_nan_to_num, is_real=True),
    Rule("astype", _reverse_astype),
    *(Rule(name, _reverse_zero, is_real=True) for name in ("round", "around")),
)
