"""Errors of Numba's compiler whose text does not say what is wrong, in terms of the user's program.

Input   what was raised while Numba compiled a function of the user.
Output  `Explanation`; None where irad's own code raised it, which is a fault that keeps its traceback.
Method  the kinds that users meet are known by class and text; of the others class and text are shown. The place is that
        of the statement which the compiler was working on, or of the user's code that raised it (a typing function).
"""

from __future__ import annotations

import difflib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from traceback import walk_tb
from types import BuiltinFunctionType, FrameType
from typing import Any, Final

import numba
import numpy as np
from numba.core import types
from numba.core.errors import InternalError, NumbaError
from numba.core.types import Type

from irad import errors
from irad.frontend.numba.messages import Explanation, full_name, readable
from irad.message import source_line, with_article
from irad.versions import install

# Misspelt names: the name in a module that was probably meant.

_SHORT: Final = {"numpy": "np"}


def called(module: str) -> str:
    """Name that users give a module: ``np`` for numpy."""
    top, dot, rest = module.partition(".")
    return f"{_SHORT.get(top, top)}{dot}{rest}"


def spelled(function: object) -> str:
    """Spelling of a function in users' code: ``np.sin``, ``math.sin``, ``f``."""
    name = str(getattr(function, "__name__", "f"))
    if getattr(sys.modules.get("numpy"), name, None) is function:
        return f"np.{name}"
    module = str(getattr(function, "__module__", None) or "").lstrip("_")
    is_library = isinstance(function, BuiltinFunctionType) and module != "builtins" and "." not in module
    return f"{module}.{name}" if is_library and module else name


def correction(module: str, name: str) -> str:
    """A remedy for a name that a module does not have."""
    public = [each for each in dir(sys.modules.get(module)) if not each.startswith("_")]
    close = difflib.get_close_matches(name, public, n=1)
    return f"correct the name: did you mean {called(module)}.{close[0]}?" if close else "correct the name"


# Exceptions that Numba lets through while it compiles: not errors of its own, with a hundred lines of traceback.

_NO_ATTRIBUTE: Final = re.compile(r"module '([\w.]+)' has no attribute '(\w+)'")
_UNASSIGNABLE: Final = re.compile(r"No definition for lowering (.+)\.(\w+) = ")
_NO_SCALAR: Final = re.compile(r"scalar type (.+) given for non scalar argument")
_NO_DEFINITION: Final = "'str' object has no attribute 'loc'"
"""Message of Numba's failed attempt to say where a named tuple comes from."""
_USE_INSTEAD: Final = re.compile(r"\b[Uu]se (`[^`]+`)")
_PLAIN: Final = "the function would fail in plain Python as well"

_OTHERS: Final = tuple(os.path.dirname(str(module.__file__)) + os.sep for module in (numba, np, errors))

_COMPILERS: Final = ("numba", "irad", "llvmlite")
_Parts = tuple[str, str, str, str | None]


def unexpected(error: Exception) -> Explanation | None:
    """Explanation of an exception that is not Numba's own."""
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
        "Numba's compiler failed at this line without a message",
        "write the line differently; calling the function directly shows the full traceback from Numba",
        None,
    )


def _misspelt(error: AttributeError) -> _Parts | None:
    found = _NO_ATTRIBUTE.search(str(error))
    if found is None:
        return None
    module, name = found.groups()
    full = f"{called(module)}.{name}"
    instead = _USE_INSTEAD.search(str(error))
    remedy = f"use {instead[1].strip('`')} instead" if instead else correction(module, name)
    return f"{full} does not exist", f"the module {module} has no such name: {_PLAIN}", remedy, full


def _missing_package(error: ImportError) -> _Parts | None:
    if "scipy" not in str(error).lower():
        return None
    return (
        "it needs SciPy, which is not installed",
        "Numba calls the linear algebra (@, np.dot, np.linalg) that comes with SciPy",
        f"install SciPy: {install('scipy')}",
        None,
    )


def _type_without_code(error: NotImplementedError) -> _Parts | None:
    kind = error.args[0] if error.args else None
    if not isinstance(kind, types.Type):
        return None
    return (
        f"it makes values of the type {kind}",
        "Numba knows this type, but has no arithmetic for it",
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
        "Numba passes numbers, arrays and the parts of a tuple of these to threads, but no nested parts",
        "extract the numbers and arrays that the loop needs before the loop, as in weights = model.weights",
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
    """Statements that a frame of the compiler is working on; of any other code the line that runs."""
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


# Arguments that no explicit signature of a function takes.


def no_signature(declared: list[tuple[Type, ...]], given: tuple[Type, ...]) -> Explanation:
    """Explains why a function that was declared with signatures cannot be compiled for other types.

    Args:
        declared: the arguments of each signature, as Numba types.
        given: those of the call.
    """
    known = " or ".join(map(_listed, declared))
    return Explanation(
        f"it is declared for arguments ({known}), not ({_listed(given)})",
        "a function with explicit signatures is compiled only for those",
        f"(a) pass arguments of the declared types: {known} or (b) leave the signature out of the decorator, or add "
        "one for these types",
        None,
        (),
    )


def _listed(kinds: tuple[Type, ...]) -> str:
    return ", ".join(readable(str(kind)) for kind in kinds)


# Read-only arrays that a function writes to: an argument, by name, or a global.

_MESSAGE: Final = "Cannot modify readonly array"
_TARGET: Final = re.compile(r"([A-Za-z_]\w*)\s*(?:\[|[-+*/%@&|^]=|\.\w+\()")


def about_argument(
    found: Explanation, error: Exception, function: Callable[..., object], argument_types: tuple[Type, ...]
) -> Explanation:
    """The explanation of Numba's refusal; where it is an argument that cannot be written to, one that names it.

    Args:
        found: the explanation by Numba's message, which does not say which array.
        error: Numba's.
        function: the compiled function.
        argument_types: for these types.
    """
    if _MESSAGE not in str(error):
        return found
    names = [n for n, t in zip(inspect.signature(function).parameters, argument_types, strict=True) if _is_readonly(t)]
    target = _TARGET.match(source_line(*found.places[0])) if found.places else None
    if target is not None and target[1] in inspect.getclosurevars(inspect.unwrap(function)).globals:
        return found
    written = [name for name in names if target is not None and name == target[1]] or names
    if not written:
        return found
    name = written[0]
    return replace(
        found,
        problem=f"it writes to {name}, a read-only array"
        if len(written) == 1
        else f"it writes to a read-only array; read-only are {', '.join(written)}",
        reason=f"the array passed as {name} may not be modified: {name}.flags.writeable is False",
        remedy=f"(a) pass a copy: {name}.copy() or (b) make the array writeable before the call: "
        f"{name}.flags.writeable = True",
        focus=name,
    )


def _is_readonly(numba_type: Type) -> bool:
    return isinstance(numba_type, types.Array) and not numba_type.mutable
