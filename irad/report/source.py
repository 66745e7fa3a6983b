"""The user's source: which lines a report is about, and which of them an instruction belongs to."""

from __future__ import annotations

import inspect
import linecache
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numba

from irad.errors import SourceLocation

_LIBRARIES: Final = tuple(
    os.path.dirname(os.path.abspath(file)) + os.sep for file in (str(numba.__file__), os.path.dirname(__file__))
)

_DEMO: Final = os.path.join(_LIBRARIES[1], "demo") + os.sep
_LINES_OF_KERNELS: Final = 16
_DEF: Final = re.compile(r"\s*(?:async )?(?:def |lambda)|.*\blambda\b")


def is_library(file: str) -> bool:
    """True if a file belongs to Numba or irad; the rest is the user's, and so is the model of irad's demo."""
    path = os.path.abspath(file)
    return (path.startswith(_LIBRARIES) and not path.startswith(_DEMO)) or file.startswith("<irad.") or not file


@dataclass(frozen=True)
class UserSource:
    """Lines of one file: those of a function and of what it calls there.

    Attributes:
        file: as Python names it.
        functions: name, first and last line of each function, in the order of the file.
    """

    file: str
    functions: tuple[tuple[str, int, int], ...]

    @staticmethod
    def of(entry: Callable[..., Any], others: Iterable[Callable[..., Any]]) -> UserSource:
        """The source of a function and of those of the others that are defined in the same file."""
        file = inspect.unwrap(entry).__code__.co_filename
        found: dict[tuple[int, int], str] = {}
        for function in (entry, *others):
            code = getattr(inspect.unwrap(function), "__code__", None)
            if code is not None and code.co_filename == file:
                first = code.co_firstlineno
                found[first, last_line(code)] = function.__qualname__
        return UserSource(file, tuple((name, first, last) for (first, last), name in sorted(found.items())))

    @cached_property
    def numbers(self) -> dict[int, None]:
        """All lines, in order, each once."""
        return dict.fromkeys(sorted(line for _, first, last in self.functions for line in range(first, last + 1)))

    def text(self, line: int) -> str:
        """A line of the file, without its end."""
        return linecache.getline(self.file, line).rstrip("\n")

    def definition(self, line: int) -> int:
        """The line of the ``def`` where a line is that of a decorator above it, or else the line itself."""
        for _, first, last in self.functions:
            if first <= line <= last:
                head = next((n for n in range(first, last + 1) if _DEF.match(self.text(n))), first)
                return max(line, head)
        return line

    def line_of(self, places: Sequence[SourceLocation]) -> int | None:
        """The innermost of an instruction's places that lies in the functions."""
        return next((place.line for place in places if self._is_own(place)), None)

    def place_of(self, places: Sequence[SourceLocation]) -> SourceLocation | None:
        """The innermost of an instruction's places that lies in the user's own files; else the innermost."""
        known = [place for place in places if place.line and not self._is_misplaced(place)]
        for place in known:
            if self._is_own(place):
                return SourceLocation(self.file, place.line, place.function)
            if not is_library(place.file):
                return place
        return known[0] if known else None

    def _is_misplaced(self, place: SourceLocation) -> bool:
        """True if a place says nothing: a line of another file, or of a string."""
        return not self._is_own(place) and (self.is_here(place) or _is_kernel(place))

    def _is_own(self, place: SourceLocation) -> bool:
        """True if a place is one of the functions' lines.

        Lines beyond them are of library code that Numba has inlined itself: it keeps the line, and not the file.
        """
        return place.line in self.numbers and (self.is_here(place) or is_parallel_body(place))

    def is_here(self, place: SourceLocation) -> bool:
        """True if a place lies in the file."""
        return place.file == self.file or os.path.abspath(place.file) == os.path.abspath(self.file)


def is_parallel_body(place: SourceLocation) -> bool:
    """True if a place is in the body of a parallel loop.

    Numba puts the body, with its lines, into a function that it writes as a string. The first lines may be those of
    that string.
    """
    return _is_kernel(place) and place.line > _LINES_OF_KERNELS


def _is_kernel(place: SourceLocation) -> bool:
    """True if a place is in the function that Numba writes for a parallel loop."""
    return os.path.basename(place.file) == "<string>" and str(place.function).startswith("__numba_parfor_gufunc")


def last_line(code: Any) -> int:
    """The last line that a function's code has instructions for, functions inside it included."""
    inner = [last_line(constant) for constant in code.co_consts if inspect.iscode(constant)]
    own = [line for _, _, line in code.co_lines() if line]
    return int(max([code.co_firstlineno, *inner, *own]))
