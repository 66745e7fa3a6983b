"""The section of docs/rules.md on special points."""

from __future__ import annotations

from collections import Counter
from typing import Final

from tests.special_points import call_rules, known, scalar_rules
from tests.special_points.table import Case

_PAGE: Final = """## Special points

`tests/special_points` compares each scalar rule with mpmath at points derived from its declaration: the ends of its
domain, zeros of either sign, integers, equal arguments, points 1e-9 and 1e-5 to either side of these, large numbers and
infinity. These are {points} points of {functions} functions and {derivatives} partial derivatives of first to third
order, each in reverse mode, forward mode and forward over reverse. If the derivatives on all sides of a point agree,
the derivative must be that number; if they differ, an element of the subdifferential. Infinite derivatives must be
infinite; if there is no limit, the derivative must be 0 or NaN, never another number. The table gives the conventions
for points where a function is not smooth.

Every test run covers first derivatives, also in single precision, except those of `owens_t`, `chndtr` and `chndtrix`,
and second and third derivatives of rules with branches. The slow tests cover the rest, except second derivatives of
`voigt_profile`, which are refused.

| rule | points | conventions | wrong |
| --- | --- | --- | --- |"""

_LISTED: Final = """
The following derivatives are known to be wrong. `tests/special_points/not_right.txt` lists each of them, and a test
fails if a listed derivative is right:

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
