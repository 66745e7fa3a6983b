"""Is what this process compiled earlier what the fingerprint says: the same values, the same options?

A fingerprint says what names stand for at present, and what another process would make of the program. Code that was
compiled before a name changed, or under the options of another caller, is linked as it is. Where the two differ,
nothing is read from the disk and nothing is written to it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numba.core.dispatcher import Dispatcher

from irad.frontend.disk.fingerprint import CannotStore, Fingerprint
from irad.frontend.disk.inheritance import comparable
from irad.frontend.disk.names import Read, codes_in
from irad.frontend.disk.stored import is_stored
from irad.frontend.frozen import history
from irad.frontend.frozen.history import Made
from irad.frontend.frozen.numba_names import Place, Snapshot, has_names, is_of_library, token


def check_frozen(found: Fingerprint, *, is_compiled: bool) -> None:
    """Checks what was compiled of the functions of a fingerprint.

    Args:
        found: the fingerprint.
        is_compiled: whether its own program is among that, of which the options are as in any other process.

    Raises:
        CannotStore: something was compiled otherwise, or that cannot be told.
    """
    for dispatcher in found.dispatchers:
        if not is_of_library(dispatcher.py_func.__module__):
            _check_unnoted(dispatcher, found)
    reads: dict[tuple[str, str, str], list[Read]] = {}
    for read in found.reads:
        reads.setdefault((read.kind, read.name, read.function.__code__.co_filename), []).append(read)
    lines = {read.function: _lines_of(read.function) for read in found.reads}
    for function, owner, made in _compilations(found):
        name = function.__qualname__
        if made.code is not function.__code__:
            raise CannotStore(f"{name} was compiled before its code was replaced")
        for place, tokens in made.tokens.items():
            its = [
                read
                for read in reads.get((place.kind, place.name, place.file), ())
                if place.line in lines[read.function]
            ]
            mine = [read for read in its if read.function is function] or its
            if mine and not tokens <= {token(read.value, content=True) for read in mine}:
                raise CannotStore(f"{name} was compiled before {place} changed")
        expected = found.options.expected.get(owner)  # None: of a derivative
        if not is_compiled and expected and expected != {comparable(made.options)}:
            raise CannotStore(f"{name} was compiled under the options of another caller")


def note_loaded(function: Any, compiled: Any, found: Fingerprint) -> None:
    """Notes what a specialisation from the disk was compiled with: it holds the code of what it calls."""
    tokens: dict[Place, frozenset[object]] = {}
    for read in found.reads:
        code = read.function.__code__
        place = Place(read.kind, read.name, code.co_filename, code.co_firstlineno)
        tokens[place] = tokens.get(place, frozenset()) | {token(read.value, content=True)}
    history.note(function, compiled, tokens)


def _compilations(found: Fingerprint) -> Iterator[tuple[Any, Any, Made]]:
    """What was compiled of functions that were followed, or are within one of these, which comes second."""
    owners = {id(code): each for each in found.functions for code in codes_in(each.__code__)}
    for function, made in history.compilations():
        owner = function if function in found.functions else owners.get(id(function.__code__))
        if owner is function or (owner is not None and owner.__code__ is not function.__code__):
            yield function, owner, made


def _check_unnoted(dispatcher: Dispatcher, found: Fingerprint) -> None:
    """Refuses code that was compiled before irad was used, or is from Numba's cache, unless nothing can differ."""
    mine = [read for read in found.reads if read.function is dispatcher.py_func]
    name = dispatcher.py_func.__qualname__
    for compiled in dispatcher.overloads.values():
        if is_stored(compiled) or history.is_noted(dispatcher.py_func, compiled.library):
            continue
        if not has_names(compiled.type_annotation):
            if mine or not _is_of_one_file(dispatcher, found):
                raise CannotStore(f"machine code of {name} is from Numba's cache, and with which values is not known")
            continue
        snapshot = Snapshot(compiled.type_annotation)
        if snapshot.loose:
            raise CannotStore(f"{name} was compiled before irad was used, and with which values is not known")
        history.note(dispatcher.py_func, compiled, snapshot.tokens)


def _is_of_one_file(dispatcher: Dispatcher, found: Fingerprint) -> bool:
    """Whether Numba, which looks at the file of a function, would have noticed all changes."""
    files = {each.__code__.co_filename for each in found.functions if not is_of_library(each.__module__)}
    return files <= {dispatcher.py_func.__code__.co_filename}


def _lines_of(function: Any) -> range:
    lines = [line for code in codes_in(function.__code__) for *_, line in code.co_lines() if line]
    return range(function.__code__.co_firstlineno, max(lines, default=0) + 1)
