"""Which rule a call uses, and where it is written."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from irad.errors import SourceLocation
from irad.frontend.custom.catalogue import CustomRule, location_of, symbols
from irad.frontend.custom.ruled_calls import Outlined
from irad.ir.instructions import CallSite
from irad.ir.module import Function
from irad.report.source import is_library
from irad.rules.all_rules import ALL
from irad.ruleset.interface import CallRule, ConstantParameters, Elementwise, Inactive, PairRule, Rule
from irad.ruleset.registry import Registry

INACTIVE = " (inactive)"
"""Behind the name of a built-in rule by which a function has no derivative."""


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """A rule by its name and place."""

    name: str
    place: SourceLocation | None


def rule_of(call: CallSite, registry: Registry, ruled: Iterable[Outlined]) -> RuleFacts | None:
    """The rule of what a call calls; None where that is differentiated like the rest of the program."""
    callee = call.callee
    if not isinstance(callee, Function) or callee.name is None:
        return None
    rule = registry.lookup(callee.name)
    if rule is None:
        return None
    users = _users(ruled).get(callee.name)
    if users is not None:
        return RuleFacts(users.name, _place_of_users(users))
    return RuleFacts(_name(rule, callee.name), _place(rule, callee.name))


def _users(ruled: Iterable[Outlined]) -> Mapping[str, CustomRule]:
    return {**symbols(), **{each.symbol: each.rule for each in ruled}}


def _place_of_users(rule: CustomRule) -> SourceLocation | None:
    written = [*rule.parts.values()]
    for part in rule.parts.values():  # `easy_rule` writes the parts itself, around the functions that it was given
        written += [given for name, given in part.__globals__.items() if re.fullmatch(r"partial\d+", name)]
    places = (location_of(function) for function in (*written, rule.target))
    return next((place for place in places if place is not None and not is_library(place.file)), None)


def _name(rule: Rule, symbol: str) -> str:
    match rule:
        case Elementwise(name=name) | PairRule(name=name) | ConstantParameters(name=name):
            return name
        case Inactive():
            return f"{symbol}{INACTIVE}"
        case CallRule():
            return symbol


def _place(rule: Rule, symbol: str) -> SourceLocation | None:
    """The line of a built-in rule in its module."""
    module = _modules().get(id(rule))
    if module is None:
        return None
    file = inspect.getsourcefile(module)
    if file is None:
        return None
    words = (rule.name,) if isinstance(rule, Elementwise) else (symbol, *rule.symbols[:1])
    line = _line_with(file, words)
    if line is None and isinstance(rule, CallRule):
        code = getattr(inspect.unwrap(rule.reverse), "__code__", None)
        return location_of(rule.reverse) if code is not None else SourceLocation(file, 1)
    return SourceLocation(file, line or 1)


@cache
def _line_with(file: str, words: tuple[str, ...]) -> int | None:
    """The first line that begins a rule for one of some words, or else has one in quotes."""
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    for spelled in ('("{}"', '"{}"'):
        for number, line in enumerate(lines, 1):
            if any(
                spelled.format(word) in line and "apply(" not in line.split(spelled.format(word))[0] for word in words
            ):
                return number
    return None


@cache
def _modules() -> dict[int, Any]:
    """The module of each built-in rule."""
    kept = {id(rule) for rule in ALL}
    found: dict[int, Any] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("irad.rules."):
            found |= {id(rule): module for rule in getattr(module, "RULES", ()) if id(rule) in kept}
    return found
