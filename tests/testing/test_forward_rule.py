"""`test_forward`, and `check_rule` of rules for forward mode: right ones pass, of wrong ones the fault is named."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad
from irad import rules
from irad.rules import AugmentedReturn, in_lanes, is_active
from irad.testing import Property, RuleFault, check_rule, test_forward, test_reverse, unchecked_rules

A, B = np.array([0.7, -1.2]), np.array([1.3, 0.4])


@contextmanager
def ruled(f: Any, forward: Any, augmented: Any = None, reverse: Any = None) -> Iterator[Any]:
    """A function while it has a rule."""
    rules.forward(f)(forward)
    if reverse is not None:
        rules.augmented_primal(f)(augmented)
        rules.reverse(f)(reverse)
    try:
        yield f
    finally:
        rules.remove(f)


def expect(fault: Property, what: str, f: Any, forward: Any, *arguments: Any, **options: Any) -> None:
    with ruled(f, forward), pytest.raises(RuleFault) as caught:
        check_rule(f, *arguments, **options)
    assert caught.value.property is fault, caught.value
    assert what in caught.value.problem
    assert caught.value.location.function == forward.__qualname__


# ------------------------------------------------------------------------------------------------ functions


def test_a_function_that_writes_and_returns():
    @njit
    def normalised(x, scale, n):
        total = 0.0
        for each in x:
            total += each * each
        for i in range(x.size):
            x[i] *= scale / np.sqrt(total)
        return total / scale, n, x[1] * (1.0 + 2.0j)

    test_forward(normalised, np.arange(1.0, 7.0, dtype=np.float32)[::2], irad.Const(2.0), 3)


def test_complex_numbers_and_tuples():
    @njit
    def mixed(z, both, y):
        x, factor = both
        for i in range(x.size):
            x[i], y[i] = y[i] * x[i], x[i] * factor
        return z * z * factor

    test_forward(mixed, 1.0 + 2.0j, (A, 2.0), B)


def test_directions_that_are_mixed_up():
    """Right alone, wrong beside others."""

    @njit
    def squares(x):
        return x * x

    @rules.forward(squares, batched=True)
    def forward(config, x):
        return x.value * x.value, in_lanes(config, lambda lane: 2.0 * x.value * x.tangent[0])

    check_rule(squares, A, width=1, single=False)
    with pytest.raises(RuleFault, match="the tangent of the value in direction 1 of 3") as caught:
        check_rule(squares, A, single=False)
    assert caught.value.property is Property.WIDTH
    rules.remove(squares)

    @rules.augmented_primal(squares, batched=True)
    def augmented(config, x):
        shadow = np.zeros_like(x.value)
        return AugmentedReturn(x.value * x.value, in_lanes(config, lambda lane: shadow), x.value.copy())

    @rules.reverse(squares, batched=True)
    def reverse(config, cotangent, tape, x):
        for lane in range(config.width):
            x.shadow[lane][:] += 2.0 * tape * cotangent[lane]
        return (None,)

    with pytest.raises(RuleFault, match="the cotangent of argument 0 in direction 0 of 3"):
        check_rule(squares, A, single=False)
    rules.remove(squares)
    test_forward(squares, A, width=2)
    test_reverse(squares, A, width=2)


def test_a_point_where_the_function_is_not_smooth():
    with pytest.raises(AssertionError, match="smooth"):
        test_forward(njit(lambda x: abs(x)), 0.0)


def test_reverse_mode_may_be_left_out():
    @njit
    def squared(x):
        return x * x

    @rules.forward(squared)
    def squared_forward(config, x):
        return squared(x.value), 2.0 * x.value * x.tangent

    rules.augmented_primal(squared)(lambda config, x: rules.AugmentedReturn(squared(x.value), None, x.value))
    rules.reverse(squared)(lambda config, cotangent, tape, x: (tape * cotangent,))  # half of it
    f = njit(lambda x: squared(x) * x)
    test_forward(f, 3.0, reverse=False)
    with pytest.raises(RuleFault, match="agreement of forward and reverse mode"):
        test_forward(f, 3.0)
    rules.remove(squared)


def test_nothing_has_a_tangent():
    with pytest.raises(irad.SignatureError, match="no argument is active"):
        test_forward(njit(lambda x: x), irad.Const(1.0))


# ------------------------------------------------------------------------------------------------ rules


@njit
def inner(a, b):
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


def inner_forward(config, a, b):
    tangent = 0.0
    for i in range(a.value.size):
        if is_active(a):
            tangent += a.tangent[i] * b.value[i]
        if is_active(b):
            tangent += a.value[i] * b.tangent[i]
    return inner(a.value, b.value), tangent


pushed = njit(inner_forward)  # for rules that call it


def test_a_right_rule_passes():
    with ruled(inner, inner_forward):
        assert "inner" in unchecked_rules()
        check_rule(inner, A, B)
        assert "inner" not in unchecked_rules()
        test_forward(inner, A, irad.Const(B))


def test_a_wrong_partial_derivative_names_the_argument():
    def forward(config, a, b):
        value, tangent = pushed(config, a, b)
        return value, tangent + (0.001 * b.tangent[1] if is_active(b) else 0.0)

    expect(
        Property.DERIVATIVE, "the tangent of the value in a direction of argument 1", inner, forward, A, B, single=False
    )


@njit
def squares(x, out):
    for i in range(x.size):
        out[i] = x[i] * x[i]


def test_what_is_left_in_an_argument():
    def forward(config, x, out):
        squares(x.value, out.value)
        if is_active(out):
            for i in range(x.value.size):
                out.tangent[i] = x.value[i] * x.tangent[i] if is_active(x) else 0.0

    what = "the tangent of argument 1 afterwards in a direction of argument 0"
    expect(Property.DERIVATIVE, what, squares, forward, A, B.copy(), single=False)

    def forward_that_adds(config, x, out):
        squares(x.value, out.value)
        if is_active(out):
            for i in range(x.value.size):
                out.tangent[i] += 2.0 * x.value[i] * x.tangent[i] if is_active(x) else 0.0

    what = "the tangent of argument 1 afterwards in a direction of argument 1"
    expect(Property.DERIVATIVE, what, squares, forward_that_adds, A, B.copy(), single=False)


def test_faults_that_differences_along_one_direction_do_not_show():
    @njit
    def tripled(x):
        return 3.0 * x

    expect(
        Property.LINEARITY,
        "opposite",
        tripled,
        lambda config, x: (3.0 * x.value, 3.0 * abs(x.tangent)),
        0.8,
        single=False,
    )

    def imprecise(config, x):
        return 3.0 * x.value, 3.00000003 * x.tangent

    with ruled(
        tripled,
        imprecise,
        lambda config, x: AugmentedReturn(3.0 * x.value, None, None),
        lambda config, cotangent, tape, x: (3.0 * cotangent,),
    ):
        with pytest.raises(RuleFault, match="by forward mode") as caught:
            check_rule(tripled, 0.8, single=False)
        assert caught.value.property is Property.MODES
        check_rule(tripled, 0.8, single=False, rtol=1e-6)


def test_what_holds_of_every_rule_holds_in_forward_mode():
    def no_question(config, a, b):
        tangent = 0.0
        for i in range(a.value.size):
            tangent += a.tangent[i] * b.value[i] + a.value[i] * b.tangent[i]
        return inner(a.value, b.value), tangent

    def another_value(config, a, b):
        value, tangent = pushed(config, a, b)
        return value + 1.0, tangent

    def overwriting(config, a, b):
        value, tangent = pushed(config, a, b)
        a.value[0] = 5.0
        return value, tangent

    def too_precise(config, a, b):
        value, tangent = pushed(config, a, b)
        return value, tangent if a.value.itemsize == 8 else 2.0 * tangent

    expect(Property.ACTIVITY, "a tangent with these arguments", inner, no_question, A, B, single=False)
    expect(Property.VALUE, "the value", inner, another_value, A, B, single=False)
    expect(Property.MUTATION, "argument 0", inner, overwriting, A, B, single=False)
    expect(Property.PRECISION, "the tangent of the value", inner, too_precise, A, B)


def test_two_arguments_that_are_one_array():
    def forward(config, x, out):
        squares(x.value, out.value)
        if is_active(out):
            for i in range(x.value.size):
                out.tangent[i] = 0.0
                if is_active(x):
                    out.tangent[i] = 2.0 * x.value[i] * x.tangent[i]

    expect(Property.ALIASING, "one array", squares, forward, A, B.copy(), single=False)
    with ruled(squares, forward):
        check_rule(squares, A, B.copy(), single=False, aliasing=False)
