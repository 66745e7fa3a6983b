"""Were functions compiled earlier in this process with the values that their names have now?

irad follows what Numba froze, while a fingerprint says what names stand for at present. Where the two differ, nothing
is read from the disk and nothing is written to it.
"""

from __future__ import annotations

from types import CodeType
from typing import Any

from numba.core.dispatcher import Dispatcher

from irad.frontend.disk.fingerprint import CannotStore, Fingerprint, Read
from irad.frontend.disk.stored import is_stored
from irad.frontend.frozen.numba_names import Snapshot, has_names, is_data, is_of_library, token
from irad.frontend.numba import private


def check_frozen(found: Fingerprint) -> None:
    """Checks what was compiled of the functions of a fingerprint.

    Raises:
        CannotStore: something was compiled with other values, or that cannot be told.
    """
    data = [read for read in found.reads if is_data(read.value)]
    for dispatcher in found.dispatchers:
        if is_of_library(dispatcher.py_func.__module__):
            continue
        mine = [read for read in data if _is_in(read.code, dispatcher.py_func.__code__)]
        for snapshot in _snapshots(dispatcher, mine, found):
            for read in mine:
                if not _agrees(snapshot, read):
                    name = dispatcher.py_func.__qualname__
                    raise CannotStore(f"{name} was compiled before {read.kind} {read.name} changed")


def _snapshots(dispatcher: Dispatcher, reads: list[Read], found: Fingerprint) -> list[Snapshot]:
    """What earlier compilations froze, by Numba and by irad."""
    snapshots = [lowered.snapshot for lowered in private.shadow().all_lowered(dispatcher)]
    name = dispatcher.py_func.__qualname__
    for compiled in dispatcher.overloads.values():
        annotation = compiled.type_annotation
        if has_names(annotation):
            if any(_holds_array(read.value) for read in reads):
                raise CannotStore(f"{name} was compiled earlier, and whether its global arrays changed is not known")
            snapshots.append(Snapshot(annotation))
        elif not is_stored(compiled) and (reads or not _is_of_one_file(dispatcher, found)):
            raise CannotStore(f"machine code of {name} is from Numba's cache, and with which values is not known")
    return snapshots


def _is_of_one_file(dispatcher: Dispatcher, found: Fingerprint) -> bool:
    """Whether Numba, which looks at the file of a function, would have noticed all changes."""
    files = {each.__code__.co_filename for each in found.functions if not is_of_library(each.__module__)}
    return files <= {dispatcher.py_func.__code__.co_filename}


def _agrees(snapshot: Snapshot, read: Read) -> bool:
    expected = token(read.value, content=True)
    lines = [line for *_, line in read.code.co_lines() if line]
    first, last = read.code.co_firstlineno, max(lines, default=0)
    return all(
        tokens == frozenset({expected})
        for place, tokens in snapshot.tokens.items()
        if (place.kind, place.name, place.file) == (read.kind, read.name, read.code.co_filename)
        and first <= place.line <= last
    )


def _is_in(code: CodeType, whole: CodeType) -> bool:
    return code is whole or any(_is_in(code, each) for each in whole.co_consts if isinstance(each, CodeType))


def _holds_array(value: Any) -> bool:
    return (isinstance(value, tuple) and any(map(_holds_array, value))) or hasattr(value, "__array_interface__")
