"""The rules for functions of array libraries, and which one a function has.

Those of users come first, by the function; irad's own have its name.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, Final

from irad.cuda.arrays.rules import elementwise, linear_algebra, moves, reductions, transforms
from irad.cuda.arrays.ruleset import Rule

_MODULES: Final = (elementwise, reductions, linear_algebra, transforms, moves)
ALL: Final[tuple[Rule, ...]] = tuple(chain.from_iterable(module.RULES for module in _MODULES))
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
        function: the called function.
    """
    found = _OF_USERS.get(id(function))
    if found is not None:
        return found[1]
    name = _ALIASES.get(name, name)
    return _BY_NAME.get(name) or (_BY_NAME.get(name.removeprefix(_METHOD)) if name.startswith(_METHOD) else None)


def register(function: Callable[..., Any], rule: Rule) -> None:
    """Adds a rule of the user."""
    _OF_USERS[id(function)] = function, rule
