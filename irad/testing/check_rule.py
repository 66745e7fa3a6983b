"""``check_rule``: is a rule right? For elementwise rules, given by their partials, and for rules of functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from irad.ruleset.interface import Elementwise
from irad.testing.rules.custom_rule import check_custom_rule
from irad.testing.rules.elementwise import check_elementwise


@overload
def check_rule(rule: Elementwise, *arguments: Any, **options: Any) -> None: ...


@overload
def check_rule(rule: Callable[..., Any], *arguments: Any, **options: Any) -> None: ...


def check_rule(rule: Any, *arguments: Any, **options: Any) -> None:
    """Checks a rule against finite differences, and all other properties that a rule must have.

    Args:
        rule: a function that has a rule, or an `Elementwise` rule itself.
        arguments: for a function, the point at which to check it, with ``irad.Const(x)`` for what has no derivative and
            is passed as it is in all checks: a function, settings, a guess. For an elementwise rule at most its primal.
        options: for a function ``single``, ``aliasing``, ``width``, ``rtol``, ``atol``; for an elementwise rule
            ``functions``, ``samples``, ``seed``.

    Raises:
        RuleError: the rule is wrong; the message says in what, and what was expected.

    Examples:
        >>> import irad
        >>> import numpy as np
        >>> from irad.rules import easy_rule
        >>> from irad.testing import check_rule
        >>> from numba import njit
        >>> @njit
        ... def norm(a):
        ...     return np.sqrt((a * a).sum())
        >>> _ = easy_rule(norm, lambda a, value: a / value)
        >>> check_rule(norm, np.array([3.0, 4.0]))
        >>> @njit
        ... def power(a, n):
        ...     return a**n
        >>> _ = easy_rule(power, lambda a, n: n * a ** (n - 1.0), None)
        >>> check_rule(power, 2.0, irad.Const(3.0))
    """
    if isinstance(rule, Elementwise):
        check_elementwise(rule, *arguments, **options)
    else:
        check_custom_rule(rule, *arguments, **options)
