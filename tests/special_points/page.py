"""The section of docs/rules.md on special points."""

from __future__ import annotations

from collections import Counter
from typing import Final

from tests.special_points import call_rules, known, scalar_rules
from tests.special_points.table import Case

_PAGE: Final = """## Special points

Each scalar rule is compared with mpmath at points that are made from its declaration (`tests/special_points`): the ends
of its domain, zeros of either sign, integers, equal arguments, both sides of these at 1e-9 and 1e-5, far out, at
infinity: {points} points of {functions} functions, {derivatives} partial derivatives of first to third order, each in
reverse mode, forward mode and forward over reverse. Where all sides agree on a number it is that; where they do not, an
element of the subdifferential; infinite derivatives are infinite; where there is no limit it is 0 or NaN, never another
number. The conventions where a function is not smooth are in the table.

Every run of the tests has first derivatives, in single precision, too, of all but `owens_t`, `chndtr` and `chndtrix`,
and second and third ones of rules that branch; the slow tests have the others, not of `voigt_profile`, whose second
derivatives are refused.

| rule | points | where it is not smooth | not right |
| --- | --- | --- | --- |"""

_LISTED: Final = """
Not right are these derivatives, each of which `tests/special_points/not_right.txt` names; a test fails when one of
them is right:

"""


def page() -> str:
    """The text."""
    cases = [*map(scalar_rules.case_of, scalar_rules.NAMES), *map(call_rules.case_of, call_rules.NAMES)]
    derivatives = sum(len(case.points) * sum(_orders(len(case.wrt), total) for total in (1, 2, 3)) for case in cases)
    head = _PAGE.format(points=sum(len(case.points) for case in cases), functions=len(cases), derivatives=derivatives)
    reasons = Counter(reason for each in known.listed().values() for reason in each.values())
    return "\n".join(
        (head, *map(_row, cases), _LISTED + "\n".join(f"- {reason}: {count}" for reason, count in reasons.items()), "")
    )


def _orders(arity: int, total: int) -> int:
    """Number of partial derivatives of a total order."""
    return {1: arity, 2: arity * (arity + 1) // 2, 3: arity * (arity + 1) * (arity + 2) // 6}[total]


def _row(case: Case) -> str:
    conventions = "; ".join(each.text for each in case.conventions if each.text)
    return f"| `{case.name}` | {len(case.points)} | {conventions} | {len(case.not_right) or ''} |"
