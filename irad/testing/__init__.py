"""Checks of derivatives and of rules, for irad's own tests and for those of users."""

from __future__ import annotations

from irad.testing.check_gradient import check_gradient
from irad.testing.check_rule import check_rule, unchecked_rules
from irad.testing.gradcheck import gradcheck
from irad.testing.gradients.report import ArgumentReport, GradcheckError, GradcheckReport, Verdict
from irad.testing.rules.fault import Property, RuleFault
from irad.testing.rules.forward_rule import test_forward
from irad.testing.rules.reverse_rule import test_reverse

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
    "test_forward",
    "test_reverse",
    "unchecked_rules",
]
