"""Rules in pickles: they go with the functions that they are for.

Numba writes a function to a pickle as its code, and so another process gets a function without a rule, whose body irad
would differentiate instead. So `with_rules` adds them to a function, through Python's `copyreg` to those of Numba, too;
`with_rules_of_libraries` adds to a derivative those that users declared for functions of libraries and for symbols.

Functions of irad itself are written by their name: rules for them are declared where they are defined. Checkpoints
are left out: the body has the same derivative.
"""

from __future__ import annotations

import copyreg
import importlib
import secrets
import sys
import threading
from collections.abc import Callable, Iterable
from dataclasses import fields
from types import FunctionType
from typing import Any, Final

from numba.core import serialize
from numba.core.registry import CPUDispatcher

from irad.frontend.custom import catalogue
from irad.frontend.custom.catalogue import CustomRule, Key, Pattern
from irad.frontend.frozen.values import is_of_library

_Reduced = tuple[Any, ...]
_CONTENT: Final = tuple(each.name for each in fields(CustomRule) if each.name not in ("target", "pattern", "version"))
_PROCESS: Final = secrets.token_hex(8)
_arrived: Final[dict[Key, object]] = {}
"""Of rules that came in pickles, the processes that they are from and their versions there."""


class _State(threading.local):
    """Functions whose rules are being written; the functions of a rule may call the function that it is for."""

    def __init__(self) -> None:
        self.within: list[Any] = []


_state: Final = _State()


def with_rules(dispatcher: Any, reduced: _Reduced) -> _Reduced:
    """Parts of a function for pickle, its rules among them.

    Args:
        dispatcher: the function.
        reduced: recipe for recreating it without its rules.
    """
    rules = [rule for rule in catalogue.entries_of(dispatcher) if not rule.is_checkpoint]
    if not rules or any(each is dispatcher for each in _state.within):
        return reduced
    function = dispatcher.py_func
    module, name = str(function.__module__), function.__name__
    if module.startswith("irad.") and getattr(sys.modules.get(module), name, None) is dispatcher:
        return _named, (module, name)
    _state.within.append(dispatcher)
    try:
        content = [(rule.target is not dispatcher, None, *_content(rule)) for rule in rules]
        return _restored, (*reduced, serialize.dumps(content))
    finally:
        _state.within.pop()


def with_rules_of_libraries(reduced: _Reduced) -> _Reduced:
    """Parts of a derivative for pickle, rules for functions of libraries and for symbols among them.

    Args:
        reduced: recipe for recreating it without rules for library functions and symbols.
    """
    rules = [(False, rule.target, *_content(rule)) for rule in catalogue.rules() if _is_for_library(rule)]
    return (_restored, (*reduced, serialize.dumps(rules))) if rules else reduced


def _is_for_library(rule: CustomRule) -> bool:
    """True if a user declared it for a callee whose rule no pickle of a function holds, such as a library function."""
    function = getattr(rule.target, "py_func", rule.target)
    is_written = isinstance(function, FunctionType) and not is_of_library(function.__module__)
    return not (comes_with_library(rule) or is_written or rule.is_checkpoint)


def comes_with_library(rule: CustomRule) -> bool:
    """True if a library declared it, so that every process has it once it has loaded the library."""
    its = [*rule.parts.values(), *(rule.partials or ())]
    if not its:
        return rule.inactive == catalogue.BY_IRAD
    return all(is_of_library(getattr(each, "__module__", None)) for each in its)


def _content(rule: CustomRule) -> tuple[Pattern, Any, dict[str, Any]]:
    return rule.pattern, (_PROCESS, rule.version), {name: getattr(rule, name) for name in _CONTENT}


def _restored(rebuild: Callable[..., Any], args: Iterable[Any], content: bytes) -> Any:
    """The function or derivative; its rules are declared, unless that is done."""
    made = rebuild(*args)  # first: the functions of its rules may call it, and find it by Numba's number
    for is_of_code, target, *rule in serialize.loads(content):
        _declare((made.py_func if is_of_code else made) if target is None else target, *rule)
    return made


def _declare(target: Any, pattern: Pattern, version: object, content: dict[str, Any]) -> None:
    key = target, pattern
    is_known = any(each.key == key for each in catalogue.entries_of(target))
    if is_known and _arrived.get(key) in (None, version):  # this process has declared it itself, or has met it before
        return
    with catalogue.edited(target, pattern) as rule:
        for name, value in content.items():
            setattr(rule, name, value)
    _arrived[key] = version


def _named(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


copyreg.pickle(CPUDispatcher, lambda dispatcher: with_rules(dispatcher, dispatcher.__reduce__()))  # type: ignore[arg-type]
