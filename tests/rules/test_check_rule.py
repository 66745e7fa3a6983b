"""``check_rule`` accepts right rules and names what is wrong with wrong ones."""

from __future__ import annotations

import math

import pytest

from irad.errors import RuleError
from irad.ruleset.define import elementwise
from irad.ruleset.expr import apply, sign, where
from irad.ruleset.interface import Domain
from irad.testing.check_rule import check_rule

REALS = Domain(-2.0, 2.0)


def test_a_right_rule_passes():
    check_rule(elementwise("sin", lambda x, y: apply("cos", x), on=REALS))


def test_a_wrong_rule_is_named_with_point_and_values():
    rule = elementwise("hypot", lambda a, b, y: (a / y, -b / y), on=Domain(0.5, 1.0))
    with pytest.raises(RuleError) as caught:
        check_rule(rule)
    assert "'hypot'" in caught.value.problem
    assert "argument 1" in caught.value.problem
    assert "finite differences give 0." in caught.value.problem


def test_a_derivative_left_out_is_found():
    with pytest.raises(RuleError, match=r"gives 0\.0"):
        check_rule(elementwise("exp", lambda x, y: None, on=REALS))


def test_a_function_of_ones_own():
    def softplus(x: float) -> float:
        return math.log1p(math.exp(x))

    check_rule(elementwise("softplus", lambda x, y: 1.0 - apply("exp", -y), on=REALS), softplus)


def test_at_a_kink_any_element_between_the_slopes_will_do():
    check_rule(elementwise("fabs", lambda x, y: sign(x), on=REALS, also=(0.0,)))
    check_rule(elementwise("fabs", lambda x, y: where(x >= 0.0, 1.0, -1.0), on=REALS, also=(0.0,)))
    with pytest.raises(RuleError, match=r"gives 2\.0"):
        check_rule(
            elementwise("fabs", lambda x, y: where(x > 0.0, 1.0, where(x < 0.0, -1.0, 2.0)), on=REALS, also=(0.0,))
        )


def test_beyond_the_slopes_a_policy_is_wanted():
    def step(policy: str):
        return elementwise(
            "sqrt", lambda x, y: where(x > 0.0, 0.5 / y, 0.0), on=Domain(1.0, 2.0), also=(0.0,), policy=policy
        )

    with pytest.raises(RuleError, match="the partial derivative with respect to argument 0 at"):
        check_rule(step(""))
    check_rule(step("zero at 0"))


def test_integer_arguments_are_sampled_as_integers():
    rule = elementwise("ldexp", lambda x, n, y: (apply("ldexp", 1.0, n), None), on=(REALS, Domain(0.0, 4.0)))
    check_rule(rule)
