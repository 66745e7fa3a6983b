"""Exceptions that Numba lets through while it compiles: not errors of its own, with a hundred lines of traceback.

Input   what was raised while Numba compiled a function of the user.
Output  `Explanation`; None where irad's own code raised it, which is a fault that keeps its traceback.
Method  the kinds that users meet are known by class and text; of the others class and text are shown. The place is that
        of the statement which the compiler was working on, or of the user's code that raised it (a typing function).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from traceback import walk_tb
from types import FrameType
from typing import Any, Final

import numba
import numpy as np
from numba.core import types
from numba.core.errors import InternalError, NumbaError

from irad import errors
from irad.frontend.diagnosis import spelling
from irad.frontend.numba.messages import Explanation, full_name, readable
from irad.message import with_article

_NO_ATTRIBUTE: Final = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")
_UNASSIGNABLE: Final = re.compile(r"No definition for lowering (.+)\.(\w+) = ")
_NO_SCALAR: Final = re.compile(r"scalar type (.+) given for non scalar argument")
_NO_DEFINITION: Final = "'str' object has no attribute 'loc'"
"""What comes of Numba's attempt to say that it does not find where a named tuple comes from."""
_USE_INSTEAD: Final = re.compile(r"\b[Uu]se (`[^`]+`)")
_PLAIN: Final = "the function would fail in plain Python as well"

_OTHERS: Final = tuple(os.path.dirname(str(module.__file__)) + os.sep for module in (numba, np, errors))

_COMPILERS: Final = ("numba", "irad", "llvmlite")
_Parts = tuple[str, str, str, str | None]


def unexpected(error: Exception) -> Explanation | None:
    """What an exception that is not Numba's own says to the user."""
    trace = list(walk_tb(error.__traceback__))
    if not trace or _package_of(trace[-1][0]) == "irad":
        return None
    problem, reason, remedy, focus = _explain(error, package_of_raiser=_package_of(trace[-1][0]))
    return Explanation(problem, reason, remedy, focus, tuple(_places(reversed(trace))))


def as_cause(error: Exception) -> NumbaError:
    """The exception as one of Numba's, which short tracebacks leave out."""
    cause = InternalError(error)
    cause.__cause__ = error
    return cause


def _explain(error: Exception, package_of_raiser: str) -> _Parts:
    for kind, explain in _KINDS:
        found = explain(error) if isinstance(error, kind) else None
        if found is not None:
            return found
    text = readable(" ".join(str(error).split()).rstrip(" ."))
    problem = f"{type(error).__name__}{': ' if text else ''}{text}"
    if package_of_raiser not in _COMPILERS:
        return (
            problem,
            "this code runs while Numba compiles the function, and raised an exception",
            "correct that code, or remove the call from the function",
            None,
        )
    return (
        problem,
        "Numba's compiler failed at this line, without a message of its own",
        "write the line differently; calling the function directly shows the full traceback from Numba",
        None,
    )


def _misspelt(error: AttributeError) -> _Parts | None:
    found = _NO_ATTRIBUTE.search(str(error))
    if found is None:
        return None
    module, name = found.groups()
    full = f"{spelling.called(module)}.{name}"
    instead = _USE_INSTEAD.search(str(error))
    remedy = f"use {instead[1].strip('`')} instead" if instead else spelling.correction(module, name)
    return f"there is no {full}", f"the module {module} has no such name: {_PLAIN}", remedy, full


def _missing_package(error: ImportError) -> _Parts | None:
    if "scipy" not in str(error).lower():
        return None
    return (
        "it needs SciPy, which is not installed",
        "Numba calls the linear algebra (@, np.dot, np.linalg) that comes with SciPy",
        "install SciPy: pip install scipy",
        None,
    )


def _type_without_code(error: NotImplementedError) -> _Parts | None:
    kind = error.args[0] if error.args else None
    if not isinstance(kind, types.Type):
        return None
    return (
        f"it makes values of the type {kind}",
        "Numba has a name for this type, but no arithmetic",
        "use np.float32 or np.float64",
        str(kind),
    )


def _assignment(error: NotImplementedError) -> _Parts | None:
    found = _UNASSIGNABLE.search(str(error))
    if found is None:
        return None
    holder, name = found.groups()
    return (
        f"it assigns to the attribute {name} of {with_article(readable(holder))}",
        "in compiled code this is a tuple, which cannot be changed",
        f"(a) assign to a variable: {name} = … or (b) overwrite the elements of an array: .{name}[:] = …",
        name,
    )


def _not_for_threads(error: TypeError | AttributeError) -> _Parts | None:
    found = _NO_SCALAR.search(str(error))
    if found is None and str(error) != _NO_DEFINITION:
        return None
    return (
        f"a parallel loop uses {with_article(readable(found[1])) if found else 'a named tuple from another tuple'}",
        "Numba hands numbers, arrays, and the parts of a tuple of these to threads, and nothing deeper",
        "take the numbers and arrays that the loop needs out of it in front of the loop, as in weights = model.weights",
        None,
    )


def _places(trace: Iterable[tuple[FrameType, int]]) -> Iterator[tuple[str, int]]:
    """Statements of the user's that were being compiled, innermost first, each once."""
    seen: set[tuple[str, int]] = set()
    for frame, line in trace:
        for place in _statements(frame, line):
            if place not in seen and not place[0].startswith(_OTHERS):
                seen.add(place)
                yield place


def _statements(frame: FrameType, running: int) -> Iterator[tuple[str, int]]:
    """What a frame of the compiler is working on; of any other code the line that runs."""
    if _package_of(frame) not in _COMPILERS:
        yield full_name(frame.f_code.co_filename), running
        return
    owners = (frame.f_locals.get("self"), frame.f_locals.get("inst"))
    for location in (frame.f_locals.get("loc"), *(getattr(owner, "loc", None) for owner in owners)):
        file, line = getattr(location, "filename", None), getattr(location, "line", None)
        if isinstance(file, str) and isinstance(line, int):
            yield full_name(file), line


def _package_of(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


_KINDS: Final[tuple[tuple[type[Exception], Callable[[Any], _Parts | None]], ...]] = (
    (AttributeError, _misspelt),
    (ImportError, _missing_package),
    (NotImplementedError, _type_without_code),
    (NotImplementedError, _assignment),
    (TypeError, _not_for_threads),
    (AttributeError, _not_for_threads),
)
