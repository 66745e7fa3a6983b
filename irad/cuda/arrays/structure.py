"""Arguments of functions: arrays in tuples, lists and dictionaries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def mapped(value: Any, change: Callable[[Any], Any], concerns: Callable[[Any], bool]) -> Any:
    """A value with what concerns replaced, wherever it is in tuples, lists and dictionaries."""
    if concerns(value):
        return change(value)
    if isinstance(value, dict):
        return {key: mapped(each, change, concerns) for key, each in value.items()}
    if isinstance(value, list):
        return [mapped(each, change, concerns) for each in value]
    if isinstance(value, tuple):
        items = [mapped(each, change, concerns) for each in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    return value


def gathered(value: Any, concerns: Callable[[Any], bool]) -> list[Any]:
    """What concerns, in order."""
    found: list[Any] = []

    def keep(each: Any) -> Any:
        found.append(each)
        return each

    mapped(value, keep, concerns)
    return found
