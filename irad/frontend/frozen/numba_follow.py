"""Lowering a function again under the values that Numba froze when it compiled it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any, TypeAlias

from numba.core.compiler import CompileResult

from irad.frontend.frozen.numba_names import FREE, GLOBAL, Frozen, has_names, is_data, is_of_library

Reads: TypeAlias = set[tuple[str, str, CodeType]]
"""Names that are read: of which kind, in which code."""

_here = threading.local()


class _Reading:
    """One compilation: what it follows, and which names it reads."""

    def __init__(self, frozen: Frozen | None, code: CodeType | None) -> None:
        self.frozen = frozen
        self.reads: Reads = set()
        self._inner: set[CodeType] = set() if code is None else set(_inner_functions(code))

    def note(self, kind: str, name: str, code: CodeType, value: object) -> None:
        """Notes that data was read; not what functions inside the function read of its own variables."""
        self._inner.update(_inner_functions(code))
        if is_data(value) and (kind != FREE or code not in self._inner):
            self.reads.add((kind, name, code))


def _inner_functions(code: CodeType) -> Iterator[CodeType]:
    """The code of functions and comprehensions within a function, at any depth."""
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _inner_functions(each)


@contextmanager
def following(compiled: CompileResult | None, code: CodeType | None = None) -> Iterator[Reads]:
    """Names have the values that a specialisation froze; without one, those that they have now.

    Args:
        compiled: the specialisation, or None.
        code: of the function, whose own variables are not names from outside to the functions within it.

    Yields:
        The names of data that are read: of which kind, in which code.
    """
    earlier = getattr(_here, "reading", None)
    annotation = getattr(compiled, "type_annotation", None)
    _here.reading = _Reading(Frozen(annotation) if has_names(annotation) else None, code)
    try:
        yield _here.reading.reads
    finally:
        _here.reading = earlier


def global_value(original: Callable[..., Any], interpreter: Any, name: str) -> Any:
    """The value of a global, for Numba's interpreter of byte code."""
    return _read(GLOBAL, name, interpreter, lambda: original(interpreter, name))


def closure_value(original: Callable[..., Any], interpreter: Any, index: int) -> Any:
    """The value of a variable of an enclosing function, for Numba's interpreter of byte code."""
    name = interpreter.func_id.code.co_freevars[index]
    return _read(FREE, name, interpreter, lambda: original(interpreter, index))


def _read(kind: str, name: str, interpreter: Any, now: Callable[[], Any]) -> Any:
    reading: _Reading | None = getattr(_here, "reading", None)
    if reading is None:
        return now()
    code = interpreter.func_id.code
    found = None if reading.frozen is None else reading.frozen.find(kind, name, code)
    value = now() if found is None else found[0]
    if not is_of_library(interpreter.func_id.modname):
        reading.note(kind, name, code, value)
    return value
