"""Which rule a function has: those of users first, by the function; irad's own, by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from irad.cuda.arrays.rules import ALL
from irad.cuda.arrays.ruleset import Rule

_BY_NAME: Final = {rule.name: rule for rule in ALL}
_OF_USERS: Final[dict[int, tuple[Any, Rule]]] = {}  # by identity: functions of libraries may not be hashable
_ALIASES: Final = {"true_divide": "divide", "pow": "power", "round_": "around"}
IN_PLACE: Final = frozenset({"ndarray.partition", "ndarray.resize", "random.shuffle", "random.Generator.shuffle"})
"""They change an argument, and have no rule."""
_METHOD: Final = "ndarray."


def find_rule(name: str, function: Callable[..., Any]) -> Rule | None:
    """The rule of a function, if there is one.

    Args:
        name: as `Rule.name`; a method has the rule of the function of its name, unless it has one of its own.
        function: what is called.
    """
    found = _OF_USERS.get(id(function))
    if found is not None:
        return found[1]
    name = _ALIASES.get(name, name)
    return _BY_NAME.get(name) or (_BY_NAME.get(name.removeprefix(_METHOD)) if name.startswith(_METHOD) else None)


def register(function: Callable[..., Any], rule: Rule) -> None:
    """Adds a rule of the user."""
    _OF_USERS[id(function)] = function, rule
