"""Numba's refusals in terms of the user's program: what, where, why, and what to do.

Input   an error of Numba's about a function of the user.
Output  `Explanation`.
Method  Numba's messages that users meet most are known by their text; each has a reason and remedies. Of any other
        message the first sentence is shown. The places are those that the message names, the innermost first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from numba.core import errors as numba_errors

from irad.errors import SourceLocation
from irad.frontend.numba_untyped import types

REFUSALS: Final[tuple[type[Exception], ...]] = (numba_errors.NumbaError, numba_errors.UnsupportedBytecodeError)
"""What Numba raises for a function that it does not compile."""

_ONLY: Final = "irad differentiates what Numba compiles, and Numba supports a subset of Python and NumPy"
_AS_PYTHON: Final = "keep it as Python code and supply its derivative: irad.rules.import_rule({0}, rule, returns=…)"
_KNOWN: Final = "use functions that Numba supports (its documentation lists them)"


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why Numba does not compile a function.

    Attributes:
        problem: a clause without subject's name: "it calls helper, which is a plain Python function".
        reason: why, in terms of Python.
        remedy: what to do.
        focus: words of the source line to mark.
        places: where, innermost first; empty where Numba does not say.
    """

    problem: str
    reason: str
    remedy: str
    focus: str | None
    places: tuple[tuple[str, int], ...]

    def location(self, function: SourceLocation) -> tuple[SourceLocation, tuple[SourceLocation, ...]]:
        """The place, and from where it was called, in a function that starts at ``function``."""
        known = [SourceLocation(file, line, _owner(function, file)) for file, line in self.places]
        place, *callers = known or [function]
        if callers or place.file != function.file:
            place = SourceLocation(place.file, place.line)  # in a function that it calls, whose name Numba leaves out
        return place, tuple(callers)


def _owner(function: SourceLocation, file: str) -> str:
    return function.function if file == function.file else ""


@dataclass(frozen=True, slots=True)
class _Hint:
    """A message of Numba's; the texts are formatted with the groups of the pattern."""

    pattern: re.Pattern[str]
    problem: str
    reason: str
    remedy: str
    focus: str | None = None


_HINTS: Final = (
    _Hint(
        re.compile(r"name '(\w+)': Cannot determine Numba type of <class 'function'>"),
        "it calls {0}, which is a plain Python function",
        "compiled code can only call compiled functions",
        "(a) decorate {0} with numba.njit or (b) " + _AS_PYTHON,
        "{0}",
    ),
    _Hint(
        re.compile(r"name '(\w+)' is not defined"),
        "there is no name {0}",
        "it is neither a variable of the function nor a name in its module",
        "(a) correct the name or (b) define or import it before the function is called",
        "{0}",
    ),
    _Hint(
        re.compile(r"Cannot modify readonly array"),
        "it writes to an array that is read-only",
        "compiled code treats a global array as a constant, with its contents at the time of compilation",
        "(a) pass the array as an argument or (b) create it inside the function",
    ),
    _Hint(
        re.compile(r"Unknown attribute '(\w+)' of type Module\(<module '(scipy\.special)'"),
        "it uses {1}.{0}, which Numba does not support",
        _ONLY,
        "(a) use a function of math or np instead, if there is one, or (b) call the underlying C function: "
        "numba.extending.get_cython_function_address or (c) " + _AS_PYTHON.replace("{0}", "{1}.{0}"),
        "{0}",
    ),
    _Hint(
        re.compile(r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'"),
        "it uses {1}.{0}, which Numba does not support",
        _ONLY,
        f"(a) {_KNOWN} or (b) " + _AS_PYTHON.replace("{0}", "{1}.{0}"),
        "{0}",
    ),
    _Hint(
        re.compile(r"Use of unsupported NumPy function '(?:\w+\.)*?(\w+)'"),
        "it uses np.{0}, which Numba does not support",
        _ONLY,
        f"(a) {_KNOWN} or (b) " + _AS_PYTHON.replace("{0}", "np.{0}"),
        "np.{0}",
    ),
    _Hint(
        re.compile(r"Unknown attribute '(\w+)' of type (.+)"),
        "a value of type {1} has no attribute {0}",
        "Numba supports some of the attributes and methods that Python has",
        "(a) correct the name or (b) use what Numba supports (its documentation lists it)",
        "{0}",
    ),
    _Hint(
        re.compile(r"Cannot unify (.+?) and (.+?) for '([A-Za-z_]\w*)[^']*'"),
        "the variable {2} is {0} in one place and {1} in another",
        "in compiled code a variable has a single type",
        "(a) give it values of a single type or (b) use two variables",
        "{2}",
    ),
    _Hint(
        re.compile(r"Cannot unify (.+?) and (.+?) for '\$"),
        "an expression is {0} in one case and {1} in another",
        "in compiled code an expression has a single type",
        "give it the same type in all cases, for instance 0.0 instead of 0 or None",
    ),
    _Hint(
        re.compile(r"Can't unify return type from the following types: (.+)"),
        "it returns values of different types: {0}",
        "in compiled code a function returns values of a single type",
        "return values of a single type, for instance 0.0 instead of 0 or None",
    ),
    _Hint(
        re.compile(r"No implementation of function Function\(<[^>]*>\)[^>]*>>> (?P<operation>\w+)\((.*)\)"),
        "there is no {0} for the types ({1})",
        "Numba compiles each operation for the types of its operands, and supports no version for these",
        "(a) convert the operands, or leave out arguments that Numba does not support or (b) keep everything that is "
        "not a number out of the function",
    ),
    _Hint(
        re.compile(r"Cannot determine Numba type of <class '([\w.<>]+)'>"),
        "it uses an object of type {0}",
        "Numba supports numbers, arrays, tuples and its own classes, lists and dictionaries",
        "(a) pass the parts that the function needs as numbers, arrays or a named tuple or (b) make its class a "
        "numba.experimental.jitclass",
    ),
)

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
}
_COLOUR: Final = re.compile(r"\x1b\[[\d;]*m")
"""Numba's messages are highlighted where colorama is installed."""
_STAGE: Final = re.compile(r"^Failed in [\w ]+ pipeline \(step: [^)]*\)\s*")
_DETAIL: Final = re.compile(
    r"\n\s*(?:There (?:are|is) \d+ candidate|During: |File \"|This error may have|If this is)|\n\s*\n\s*\n|\n\s*def "
)
_PLACE: Final = re.compile(r"(?:\bat |File \")([^\n\"]+?)(?: \(|\", line )(\d+)")
_NAMES: Final = (
    (re.compile(r"Literal\[(\w+)\]\(([^()]*)\)"), r"\1"),
    (re.compile(r"\bunicode_type\b"), "str"),
    (re.compile(r"\breflected (?=list|set)"), ""),
    (re.compile(r"<iv=\w+>"), ""),
    (re.compile(r"; active (?:all|none|[\d. ]+)(?=\))"), ""),
    (re.compile(r"\b(Active|Duplicated|Const)Argument\(([^()]*)\)"), r"\1(\2)"),
    (re.compile(r"\binstance\.jitclass\.(\w+)#\w+<[^>]*>"), r"\1"),
)


def explanation(error: Exception) -> Explanation:
    """What an error of Numba's says to the user."""
    text = _STAGE.sub("", _COLOUR.sub("", str(error)).strip())
    places = tuple(_places(error, text))
    for hint in _HINTS:
        found = hint.pattern.search(text)
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
    return Explanation(readable(first), _ONLY, remedy, None, places)


def readable(text: str) -> str:
    """Numba's names of types as users write them."""
    for pattern, replacement in _NAMES:
        text = pattern.sub(replacement, text)
    return text


def described(numba_type: Any) -> str:
    """A type in a sentence: "an array(float64, 1d, C)", "None"."""
    if isinstance(numba_type, types.Generator):
        return f"a generator of {readable(str(numba_type.yield_type))}"
    name = readable(str(numba_type))
    return "None" if name == "none" else f"{'an' if name[0] in 'aeiouAEIO' else 'a'} {name}"


def _places(error: Exception, text: str) -> Iterator[tuple[str, int]]:
    """The places in the user's files that a message names, each line once."""
    found = [(os.path.abspath(file), int(line)) for file, line in _PLACE.findall(text)]
    location = getattr(error, "loc", None)
    if location is not None:
        found.append((location.filename, location.line))
    seen: set[tuple[str, int]] = set()
    for place in found:
        if place not in seen and os.path.isfile(place[0]) and f"{os.sep}numba{os.sep}" not in place[0]:
            seen.add(place)
            yield place
