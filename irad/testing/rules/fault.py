"""Faults of rules, and the error that reports one."""

from __future__ import annotations

import enum
from typing import Any, Final

from irad.errors import RuleError
from irad.frontend.custom import catalogue


class Property(enum.Enum):
    """The properties that a rule must have, as `irad.testing.RuleFault` names them.

    Examples:
        >>> from irad.testing import Property
        >>> Property.DERIVATIVE.value
        'derivative'
        >>> [each.name for each in Property][:4]
        ['VALUE', 'MUTATION', 'DERIVATIVE', 'ZEROING']
    """

    VALUE = "primal value"
    MUTATION = "mutation of arguments"
    DERIVATIVE = "derivative"
    ZEROING = "shadow of overwritten memory"
    ACCUMULATION = "accumulation"
    ACTIVITY = "activity"
    PRECISION = "precision"
    REUSE = "re-use"
    CHANGED = "arguments that change after the call"
    LIVE_CALLS = "several live calls"
    ALIASING = "aliasing"
    ALLOCATION = "allocation balance"
    LINEARITY = "linearity in the tangents"
    MODES = "agreement of forward and reverse mode"
    WIDTH = "several directions at once"


_REMEDIES: Final = {
    Property.VALUE: "return from the augmented primal what the function returns",
    Property.MUTATION: "leave every argument as the function leaves it; work on a copy: x.value.copy()",
    Property.DERIVATIVE: "correct the reverse",
    Property.ZEROING: "leave in the shadow the cotangent of the old content: zero, where that had no influence",
    Property.ACCUMULATION: "add to shadows, x.shadow[...] += …; do not assign",
    Property.ACTIVITY: "ask is_active(x) for each argument before its shadow or its cotangent is computed, and "
    "is_active(cotangent) before that is read",
    Property.PRECISION: "compute in the precision of the arguments",
    Property.REUSE: "change neither the tape nor what it points to in the reverse: a pullback may run again",
    Property.CHANGED: "keep a copy where config.overwritten[i] is true: the argument may change before the reverse",
    Property.LIVE_CALLS: "put what the reverse needs on the tape: memory outside it is shared by all calls",
    Property.ALIASING: "take into account that two arguments may be one array: add into shadows, read before writing",
    Property.ALLOCATION: "release what the rule allocates by other means than Numba's objects",
    Property.LINEARITY: "compute tangents that are linear in those of the arguments, in the same way in each call",
    Property.WIDTH: "treat each direction by itself, with its own tangents or shadows and cotangents",
    Property.MODES: "correct the form that is less precise: both have to agree to rounding",
}
_REMEDIES_IN_FORWARD: Final = {
    Property.VALUE: "return from the forward what the function returns, with its tangent",
    Property.DERIVATIVE: "correct the forward: the tangent that it returns, and those that it leaves in arguments",
    Property.ACTIVITY: "ask is_active(x) for each argument before its tangent is read",
    Property.ALIASING: "take into account that two arguments may be one array: read before writing",
}
_OF_AUGMENTED: Final = (Property.VALUE, Property.MUTATION, Property.CHANGED)


class RuleFault(RuleError):
    """A rule lacks a property that it must have; raised by `irad.testing.check_rule` and the tests of one mode.

    Attributes:
        property: the `irad.testing.Property`.
        expected: the expected result.
        got: the result of the rule.

    Examples:
        >>> from irad.rules import easy_rule
        >>> from irad.testing import RuleFault, check_rule
        >>> from numba import njit
        >>> @njit
        ... def square(x):
        ...     return x * x
        >>> _ = easy_rule(square, lambda x: x)  # wrong
        >>> try:
        ...     check_rule(square, 3.0)
        ... except RuleFault as fault:
        ...     print(fault.property)
        Property.DERIVATIVE
    """

    def __init__(
        self,
        fault: Property,
        f: Any,
        what: str,
        expected: object,
        got: object,
        case: str,
        part: str | None = None,
    ) -> None:
        self.property, self.expected, self.got = fault, expected, got
        if part is None:
            part = "augmented_primal" if fault in _OF_AUGMENTED else "reverse"
        super().__init__(
            f"the rule for {catalogue.name_of(f)} fails in {fault.value}: {what}: expected {expected}, got {got}",
            (_REMEDIES | _REMEDIES_IN_FORWARD if part == "forward" else _REMEDIES)[fault],
            location=catalogue.location_of(_culprit(f, part)),
            detail=case,
        )


def _culprit(f: Any, part: str) -> Any:
    """The function of the rule in which a fault shows."""
    rule = next((each for each in catalogue.entries_of(f) if each.parts), None)
    if rule is None:
        return f
    return rule.parts.get(part) or next(iter(rule.parts.values()))
