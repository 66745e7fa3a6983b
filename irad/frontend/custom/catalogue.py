"""Rules that users wrote: by the function that they are for.

Input   registrations (`irad.rules`).
Output  the rule of a callee, when Numba lowers a call of it.
Method  one table, keyed by what Numba knows the callee as: a Python function, a dispatcher, a function of a library.
        A rule for the Python function wins over one for a dispatcher of it.

What was compiled with a rule, or for want of one, is compiled again after the rule has changed: derivatives note which
functions their programs call.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Final

from irad.errors import RuleError, SourceLocation

_versions = itertools.count(1)


@dataclass(eq=False)
class CustomRule:
    """What users registered for one function.

    Attributes:
        target: the function; for a C function its symbol.
        parts: the functions of the rule, by their kind: "augmented_primal", "reverse", "forward"; or "build_rule".
        inactive: why no derivative flows through it, or None.
        inactive_arguments: positions of arguments through which none flows.
        restores: the reverse may put back what the function overwrote.
        noinline: no rule of its own: it only stays a call.
        version: changes with each registration.
    """

    target: Any
    parts: dict[str, Callable[..., Any]] = field(default_factory=dict)
    inactive: str | None = None
    inactive_arguments: frozenset[int] = frozenset()
    restores: bool = False
    noinline: bool = False
    version: int = field(default_factory=lambda: next(_versions))

    @property
    def name(self) -> str:
        """What messages call it."""
        return name_of(self.target)

    @property
    def is_for_reverse(self) -> bool:
        """Whether the function is not to be differentiated in reverse mode, but the rule to be called."""
        return not self.parts.keys().isdisjoint(("augmented_primal", "reverse", "build_rule"))

    def part(self, kind: str) -> Callable[..., Any]:
        """A function of the rule.

        Raises:
            RuleError: it was not given.
        """
        found = self.parts.get(kind)
        if found is None:
            other = next(iter(self.parts.values()))
            raise RuleError(
                f"the rule of {self.name} has no {kind}",
                f"register one: @irad.rules.{kind}({self.name})",
                "the augmented primal runs in the forward sweep, the reverse in the reverse sweep; both are needed",
                place_of(other),
            )
        return found


_RULES: Final[dict[Any, CustomRule]] = {}
_users: Final[weakref.WeakKeyDictionary[Any, frozenset[Any]]] = weakref.WeakKeyDictionary()
_epoch: Final = [0]
_on_change: Final[list[Callable[[], None]]] = []


def name_of(target: Any) -> str:
    """The name of a function that has a rule."""
    if isinstance(target, str):
        return target
    function = getattr(target, "py_func", target)
    name = getattr(function, "__qualname__", None) or getattr(function, "__name__", None) or repr(function)
    module = getattr(function, "__module__", None) or ""
    return f"{module.split('.')[0]}.{name}" if module.startswith(("numpy", "scipy")) else str(name)


def place_of(function: Any) -> SourceLocation | None:
    """Where a function of a rule is defined."""
    return SourceLocation.of(function)


def keys_of(target: Any) -> Iterator[Any]:
    """What a rule for a callee may be registered under, the one that wins first."""
    function = getattr(target, "py_func", None)
    if function is not None:
        yield function
    yield target


def find(target: Any) -> CustomRule | None:
    """The rule of a callee."""
    for key in keys_of(target):
        try:
            found = _RULES.get(key)
        except TypeError:  # what cannot be hashed cannot have a rule
            return None
        if found is not None:
            return found
    return None


@contextmanager
def edited(target: Any) -> Iterator[CustomRule]:
    """The entry of a function, to be filled; afterwards what was compiled for the function is compiled again.

    Raises:
        RuleError: nothing can be called by it.
    """
    if not (callable(target) or isinstance(target, str)):
        raise RuleError(
            f"{target!r} cannot have a rule",
            "(a) name a function or (b) the symbol of a function of a library, a string",
            "a rule belongs to what is called",
        )
    known = _RULES.get(target)
    rule = CustomRule(target) if known is None else known
    yield rule
    _RULES[target] = rule
    rule.version = next(_versions)
    changed(target)


def remove(target: Any) -> None:
    """Takes the rule of a function away, if it has one."""
    if _RULES.pop(target, None) is not None:
        changed(target)


def any_restores() -> bool:
    """Whether there is a rule that may put back, in the reverse, what its function overwrote."""
    return any(rule.restores for rule in _RULES.values())


def rules() -> tuple[CustomRule, ...]:
    """All rules that users registered."""
    return tuple(_RULES.values())


def symbols() -> dict[str, CustomRule]:
    """The rules of C functions and intrinsics, by symbol."""
    return {target: rule for target, rule in _RULES.items() if isinstance(target, str)}


def epoch() -> int:
    """A number that changes with every registration."""
    return _epoch[0]


# ------------------------------------------------------------------------------------------------ what depends on rules


def note_use(derivative: Any, functions: frozenset[Any]) -> None:
    """Notes that the program of a derivative, a dispatcher, calls Python functions."""
    _users[derivative] = _users.get(derivative, frozenset()) | functions


def when_changed(forget: Callable[[], None]) -> Callable[[], None]:
    """Has a function called whenever a rule has changed."""
    _on_change.append(forget)
    return forget


def changed(target: Any) -> None:
    """Forgets everything that was compiled with another rule for a function."""
    _epoch[0] += 1
    for forget in _on_change:
        forget()
    is_python = hasattr(target, "py_func") or isinstance(target, FunctionType)
    function = getattr(target, "py_func", target)
    for derivative, functions in list(_users.items()):
        if not is_python or function in functions:  # what Numba lowers without a function of its own leaves no trace
            derivative.forget()
