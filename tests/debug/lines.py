"""Where a line of a test's program is, and the error that debug mode raises for one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import irad

DEBUG = irad.Options(debug=True)


def line_of(function: Any, text: str) -> int:
    """The line of the source of a function that holds a text; it has to be one."""
    lines, first = inspect.getsourcelines(getattr(function, "py_func", function))
    [found] = [first + index for index, line in enumerate(lines) if text in line]
    return found


def error_of(derivative: Callable[..., Any], *args: Any) -> irad.NonFiniteError:
    """What a call raises."""
    with pytest.raises(irad.NonFiniteError) as caught:
        derivative(*args)
    return caught.value


def assert_began(error: irad.NonFiniteError, function: Any, text: str, loops: dict[str, int], words: str) -> None:
    """The error names the line with a text, the iteration of each loop by a text of its line, and the operation."""
    assert error.location is not None
    assert error.location.file == inspect.getsourcefile(getattr(function, "py_func", function))
    assert error.location.line == line_of(function, text)
    expected = [(line_of(function, loop), number) for loop, number in loops.items()]
    assert [(place.line if place is not None else 0, number) for place, number in error.loops] == expected
    assert words in error.operation
    assert words in str(error)
    assert text.strip() in str(error)
