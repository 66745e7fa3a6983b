"""Elementwise functions: most take their partial derivatives from the rules for compiled code (`irad.rules`).

Ties and ends are as in docs/rules.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from irad.cuda.arrays.partials import NUMPY, SPECIAL, is_known, partial_of
from irad.cuda.arrays.ruleset import ArrayCall, Rule
from irad.rules import ALL, elementwise as compiled
from irad.rules.scipy import special
from irad.ruleset.define import elementwise
from irad.ruleset.interface import Domain, Elementwise
from irad.ruleset.symbols import TABLE, integer_arguments

_REALS: Final = Domain(-3.0, 3.0, (0.0,))
_HALF_TURN: Final = math.pi / 180.0

ARRAYS_ONLY: Final = (  # compiled code computes them from others
    elementwise("positive", lambda x, y: 1.0, on=_REALS),
    elementwise("negative", lambda x, y: -1.0, on=_REALS),
    elementwise("square", lambda x, y: 2.0 * x, on=_REALS),
    *(elementwise(name, lambda x, y: _HALF_TURN, on=_REALS) for name in ("deg2rad", "radians")),
    *(elementwise(name, lambda x, y: 1.0 / _HALF_TURN, on=_REALS) for name in ("rad2deg", "degrees")),
    *(elementwise(name, lambda x, y: None, on=_REALS) for name in ("sign", "fix")),
    elementwise("floor_divide", lambda a, b, y: (None, None), on=_REALS),
    elementwise("heaviside", lambda a, b, y: (None, None), on=_REALS),
)
NAMES: Final = {  # of array libraries, where the rules have others
    **{called: name for name, called in (*NUMPY.items(), *SPECIAL.items()) if called != name},
    "subtract": "sub",
    "multiply": "mul",
    "divide": "div",
    "float_power": "pow",
    "remainder": "as_remainder",
    "mod": "as_remainder",
    "logaddexp": "as_logaddexp",
    "logaddexp2": "as_logaddexp2",
    "sinc": "as_sinc",
    "gamma": "tgamma",
    "ndtri": "normcdfinv",
}
_OTHERS: Final = {"round", "identity", "jn", *(name for name in TABLE if name.endswith(("_integer", "_double")))}
"""Names of rules of compiled code that array libraries lack, or use with another meaning."""
HOLOMORPHIC: Final = {
    *("add", "subtract", "multiply", "divide", "negative", "positive", "exp", "expm1", "log", "log10", "log2", "log1p"),
    *("sqrt", "square", "reciprocal", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arcsin", "arctan", "arcsinh"),
    "arctanh",
}
"""Their partial derivatives hold for complex numbers too; but for that of arcsinh, which compares."""


def _elementwise_rules() -> Iterator[tuple[str, Elementwise]]:
    """The rules that array libraries have all functions for, by the names of these libraries."""
    found = {rule.name: rule for rule in ALL if isinstance(rule, Elementwise)}
    yield from ((name, found[rule]) for name, rule in NAMES.items())
    for rule in (*compiled.RULES, *special.RULES, *ARRAYS_ONLY):
        if isinstance(rule, Elementwise) and rule.name not in {*NAMES, *_OTHERS} and is_known(rule.partials):
            yield rule.name, rule


def operands_of(rule: Elementwise) -> tuple[int, ...]:
    """Positions of a rule's operands among its arguments; the first may be the value, as of `as_sinc(value, x)`."""
    return tuple(range(int(rule.name.startswith("as_")), rule.arity))


def refused_of(rule: Elementwise) -> frozenset[int]:
    """The operands with respect to which no derivative is known, by their place among the operands."""
    refused = {*rule.refused, *(integer_arguments(rule.name) if rule.name in TABLE else ())}
    return frozenset(place for place, position in enumerate(operands_of(rule)) if position in refused)


def _rule_of(name: str, rule: Elementwise) -> Rule:
    operands = operands_of(rule)

    def reverse(
        call: ArrayCall, cotangent: Any, *given: Any, dtype: Any = None, casting: Any = None, order: Any = None
    ) -> tuple[Any, ...]:
        values = [call.xp.asarray(each) if isinstance(each, list | tuple) else each for each in given]
        symbols = {f"x{i}": value for i, value in zip(operands, values, strict=True)}
        symbols |= {"y": call.result, **({"x0": call.result} if 0 not in operands else {})}

        def through(operand: Any, position: int) -> Any:
            expr = rule.partials[position]
            if expr is None or not call.is_active(operand):
                return None
            if name == "arcsinh" and call.result.dtype.kind == "c":
                partial = 1.0 / call.xp.sqrt(1.0 + operand * operand)
            else:
                partial = partial_of(expr, symbols, call.xp, lambda: call.special)
            return call.like(call.times(cotangent, partial), operand)

        return tuple(map(through, given, operands))

    return Rule(
        name,
        reverse,
        arrays=len(operands),
        is_real=name not in HOLOMORPHIC,
        refused=refused_of(rule),
    )


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
    to_low = None if low is None else call.like(m.where(is_low & ~is_high, cotangent, 0), low)
    to_high = None if high is None else call.like(m.where(is_high, cotangent, 0), high)
    return call.like(inside, a), to_low, to_high, to_low, to_high


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
    *(_rule_of(name, rule) for name, rule in _elementwise_rules()),
    Rule("absolute", _reverse_absolute),
    Rule("abs", _reverse_absolute),
    Rule("conjugate", _reverse_conjugate),
    Rule("conj", _reverse_conjugate),
    Rule("clip", _reverse_clip, arrays=5, is_real=True),
    Rule("real", _reverse_real),
    Rule("imag", _reverse_imag),
    Rule("nan_to_num", _reverse_nan_to_num, is_real=True),
    Rule("astype", _reverse_astype),
    *(Rule(name, _reverse_zero, is_real=True) for name in ("round", "around")),
)
