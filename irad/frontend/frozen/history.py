"""Values that the compilations of this process froze, for every function: those by Numba and irad's own.

Numba keeps what a function was compiled with only until it is read again: arrays change their content, modules
their attributes, and implementations of overloads are in no table. So each compilation is noted when it is made.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from types import CodeType
from typing import Any, Final

from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher

from irad.frontend.frozen.inherited_options import inherited
from irad.frontend.frozen.values import Place, Snapshot, has_names, is_of_library
from irad.frontend.numba.patches import watch
from irad.records import dataclass


@dataclass(frozen=True)
class Made:
    """A compilation, as long as its code is there.

    Attributes:
        library: a reference to the code.
        tokens: tokens for the values of names, by place.
        options: those that were taken from a caller, or could have been.
        code: code of the function.
    """

    library: weakref.ref[Any]
    tokens: Mapping[Place, frozenset[object]]
    options: Mapping[str, object]
    code: CodeType


_made: Final[weakref.WeakKeyDictionary[Any, list[Made]]] = weakref.WeakKeyDictionary()


def note(function: Any, compiled: CompileResult, tokens: Mapping[Place, frozenset[object]]) -> None:
    """Notes a compilation of a Python function."""
    # Code that is gone cannot be called any more, so what it froze does not matter.
    known = [each for each in _made.get(function, ()) if each.library() is not None]
    _made[function] = [*known, Made(weakref.ref(compiled.library), tokens, inherited(compiled), function.__code__)]


def compilations() -> Iterator[tuple[Any, Made]]:
    """Functions with what was compiled of them."""
    for function, made in list(_made.items()):
        yield from ((function, each) for each in made if each.library() is not None)


def is_noted(function: Any, library: object) -> bool:
    """True if some machine code of a function was compiled since irad is here."""
    return any(each.library() is library for each in _made.get(function, ()))


def _note_specialisation(dispatcher: Dispatcher, compiled: CompileResult) -> None:
    function = dispatcher.py_func
    if has_names(compiled.type_annotation) and not is_of_library(function.__module__):
        note(function, compiled, Snapshot(compiled.type_annotation).tokens)


watch(_note_specialisation)
