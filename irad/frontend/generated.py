"""Python functions written as text: for code whose shape depends on types or on a number of arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def function_from(name: str, source: str, file: str, scope: Mapping[str, object]) -> Callable[..., Any]:
    """A function that a text defines.

    Args:
        name: of the function.
        source: the text.
        file: what tracebacks call the file, without angle brackets.
        scope: the global names of the function, which itself is not one of them.
    """
    names: dict[str, Any] = dict(scope)
    exec(compile(source, f"<{file}>", "exec"), names)
    made: Callable[..., Any] = names.pop(name)
    return made
