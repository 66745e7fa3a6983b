"""Numba's refusals in terms of the user's program: what, where, why, and what to do.

Input   an error of Numba's about a function of the user.
Output  `Explanation`.
Method  Numba's messages that users meet most are known by their text; each has a reason and remedies. Of any other
        message the first sentence is shown. The places are those that the message names, the innermost first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import numba
from numba.core import errors as numba_errors, types
from numba.core.types import Type

from irad.errors import SourceLocation
from irad.frontend.diagnosis.hints import HINTS, ONLY
from irad.frontend.packing.packed import shown_names, shown_structure, structure_of
from irad.message import array_types, source_line, with_article
from irad.records import dataclass
from irad.source_text import function_at

numba_folder: Final = os.path.dirname(str(numba.__file__)) + os.sep

REFUSALS: Final[tuple[type[Exception], ...]] = (numba_errors.NumbaError, numba_errors.UnsupportedBytecodeError)
"""Exceptions that Numba raises for a function that it does not compile."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reason why Numba does not compile a function.

    Attributes:
        problem: a clause without subject's name: "it calls helper, which is a plain Python function".
        reason: why, in terms of Python.
        remedy: the remedy.
        focus: words of the source line to mark.
        places: where, innermost first; empty where Numba does not say. Some may be in code that Numba generated.
    """

    problem: str
    reason: str
    remedy: str
    focus: str | None
    places: tuple[tuple[str, int], ...]

    def location(self, function: SourceLocation) -> tuple[SourceLocation, tuple[SourceLocation, ...]]:
        """The place, and from where it was called, in a function that starts at ``function``."""
        places = [(file, line) for file, line in self.places if file == function.file or source_line(file, line)]
        known = [SourceLocation(file, line, _owner(function, file, line)) for file, line in places]
        place, *callers = known or [function]
        return place, tuple(callers)


def location_of(function: Callable[..., Any]) -> SourceLocation:
    """Place at which a Python function is defined."""
    found = SourceLocation.of(function)
    assert found is not None
    return found


def _owner(function: SourceLocation, file: str, line: int) -> str:
    """The name of the function that a line is in, which Numba leaves out."""
    found = function_at(file, line)
    named = function.function.removesuffix(".<locals>.<lambda>")
    if file == function.file and found in ("", named.rpartition(".")[2]):
        return function.function
    return found


_OPERATORS: Final = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "truediv": "/",
    "pow": "**",
    "matmul": "@",
    "iadd": "+=",
    "getitem": "indexing",
    "setitem": "assignment to an item",
    "static_getitem": "indexing",
    "mod": "%",
    "floordiv": "//",
    "_impl": "version of this operation",
}
_COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")
"""Numba's messages are highlighted where colorama is installed."""
_STAGE: Final = re.compile(r"^Failed in [\w ]+ pipeline \(step: [^)]*\)\s*")
_DETAIL: Final = re.compile(
    r"\n\s*(?:There (?:are|is) \d+ candidate|During: |File \"|This error may have|If this is)|\n\s*\n\s*\n|\n\s*def "
)
_PLACE: Final = re.compile(r"(?:\bat |Raised from |File \")([^\n\"]+?)(?: \(|\", line )(\d+)")
_NAMES: Final = (
    (re.compile(r"Literal\[(\w+)\]\(([^()]*)\)"), r"\1"),
    (re.compile(r"\bunicode_type\b"), "str"),
    (re.compile(r"\breflected (?=list|set)"), ""),
    (re.compile(r"<iv=\w+>"), ""),
    (re.compile(r"; active (?:all|none|[\d. ]+)(?=\))"), ""),
    (re.compile(r"\bnone\b"), "None"),
    (re.compile(r"\b(Active|Duplicated|Const)Argument\(([^()]*)\)"), r"\1(\2)"),
    (re.compile(r"\binstance\.jitclass\.(\w+)#\w+<[^>]*>"), r"\1"),
)


def explanation(error: Exception) -> Explanation:
    """Explanation of an error of Numba's for the user."""
    text = _STAGE.sub("", _COLOUR.sub("", str(error)).strip())
    places = tuple(_places(error, text))
    for hint in HINTS:
        found = re.search(hint.pattern, text)
        if found is not None:
            groups = [readable(group) for group in found.groups()]
            if "operation" in found.groupdict():
                groups[0] = _OPERATORS.get(groups[0], groups[0])
            problem, reason, remedy = (part.format(*groups) for part in (hint.problem, hint.reason, hint.remedy))
            return Explanation(problem, reason, remedy, hint.focus and hint.focus.format(*groups), places)
    first = " ".join(_DETAIL.split(text)[0].split()).removesuffix("Raised from None").rstrip(" .")
    remedy = (
        "change the function so that numba.njit can compile it; calling it directly shows the full message from Numba"
    )
    return Explanation(readable(first), ONLY, remedy, None, places)


def readable(text: str) -> str:
    """Numba's names of types as users write them."""
    for pattern, replacement in _NAMES:
        text = pattern.sub(replacement, text)
    return array_types(shown_names(text))


def described(numba_type: Type | None) -> str:
    """A type in a sentence: "a float64[::1] array", "None"."""
    if isinstance(numba_type, types.Generator):
        return f"a generator of {readable(str(numba_type.yield_type))}"
    if (structure := structure_of(numba_type)) is not None:
        return shown_structure(structure)
    name = readable(str(numba_type)) + " array" * isinstance(numba_type, types.Array)
    return "None" if name == "None" else with_article(name)


def _places(error: Exception, text: str) -> Iterator[tuple[str, int]]:
    """The places in the user's files that a message names, each line once."""
    found = [(full_name(file), int(line)) for file, line in _PLACE.findall(text)]
    location = getattr(error, "loc", None)
    if location is not None:
        found.append((location.filename, location.line))
    for place in dict.fromkeys(found):
        if not place[0].startswith(numba_folder):
            yield place


def full_name(file: str) -> str:
    """The whole path of a file; names such as ``<stdin>`` stay."""
    return file if file.startswith("<") else os.path.abspath(file)
