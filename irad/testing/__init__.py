"""Checks of derivatives and of rules, for irad's own tests and for those of users."""

from __future__ import annotations

from irad.testing.check_gradient import check_gradient
from irad.testing.check_rule import check_rule
from irad.testing.custom_rule import unchecked_rules
from irad.testing.gradcheck import gradcheck
from irad.testing.gradient_report import ArgumentReport, GradcheckError, GradcheckReport, Verdict
from irad.testing.reverse_rule import test_reverse
from irad.testing.rule_fault import Property, RuleFault

__all__ = [
    "ArgumentReport",
    "GradcheckError",
    "GradcheckReport",
    "Property",
    "RuleFault",
    "Verdict",
    "check_gradient",
    "check_rule",
    "gradcheck",
    "test_reverse",
    "unchecked_rules",
]
