"""Lowering a function again under the values that Numba froze when it compiled it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any, TypeAlias

from numba.core.compiler import CompileResult
from numba.core.interpreter import Interpreter

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


def replacements() -> Iterator[tuple[type, str, Callable[..., object]]]:
    """Methods of Numba's interpreter of byte code that ask what is followed first."""
    yield Interpreter, "get_global_value", _reading(GLOBAL, Interpreter.get_global_value, lambda _, name: name)
    yield (
        Interpreter,
        "get_closure_value",
        _reading(FREE, Interpreter.get_closure_value, lambda code, index: code.co_freevars[index]),
    )


def _reading(kind: str, original: Callable[..., Any], name_of: Callable[..., str]) -> Callable[..., object]:
    def read(self: Any, key: object) -> Any:
        reading: _Reading | None = getattr(_here, "reading", None)
        if reading is None:
            return original(self, key)
        code = self.func_id.code
        name = name_of(code, key)
        found = None if reading.frozen is None else reading.frozen.find(kind, name, code)
        value = original(self, key) if found is None else found[0]
        if not is_of_library(self.func_id.modname):
            reading.note(kind, name, code, value)
        return value

    return read
