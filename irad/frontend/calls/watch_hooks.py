"""Hooks that generated code calls by name, with Python's lock, as a watched or metered call starts and ends.

What these functions raise, compiled code raises: see `irad.frontend.calls.exceptions`.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from irad.debug.events import Record, close_call, install, installed, nonfinite, open_call, record_of, watched_by
from irad.debug.tape import Measurement, limit_error
from irad.debug.verdict import check_result, warn_of_ties
from irad.driver import MarkKind, TapePlace
from irad.errors import SourceLocation
from irad.frontend.calls.exceptions import keeping
from irad.records import dataclass
from irad.runtime_layouts import METER


@dataclass(frozen=True)
class CallInfo:
    """Facts about a call in generated code, for the hooks.

    Attributes:
        function: qualified name of the primal.
        location: where it is defined.
        inputs: names of the arguments of `begin`: arguments, shadows, a seed.
        outputs: names of the arguments of `finish`.
        table: the symbol of the table of watched places; None where nothing is watched.
        tape: those of its tape.
        limit: limit for the bytes of the tape.
        warns: True if ties are reported.
        repeats: whether another run does the same and changes nothing.
    """

    function: str
    location: SourceLocation
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    table: str | None
    tape: tuple[TapePlace, ...] = ()
    limit: int | None = None
    warns: bool = True
    repeats: bool = False


class _Measured(threading.local):
    """Per thread: bytes of the last metered call, whether the last watched call can be repeated, reports of ties."""

    found: Measurement | None = None
    repeats: bool = False
    tells_ties: bool = True


_infos: Final[dict[int, CallInfo]] = {}
_NUMBER: Final = re.compile(r"\b\d{10,19}\b")
_measured: Final = _Measured()


def describe(info: CallInfo) -> int:
    """A number by which generated code names a call: the same in every process, so that code may be stored."""
    number = int(hashlib.sha256(repr(info).encode()).hexdigest()[:15], 16)
    _infos[number] = info
    return number


@dataclass(frozen=True)
class Descriptions:
    """Knowledge of the hooks about some code, for a process that loads it.

    Attributes:
        infos: arguments of `describe`.
        tables: arguments of `irad.debug.events.install`.
    """

    infos: tuple[CallInfo, ...]
    tables: tuple[tuple[Any, ...], ...]

    def restore(self) -> None:
        """Lets code of this process refer to them."""
        for table in self.tables:
            install(*table)
        for info in self.infos:
            describe(info)


def descriptions_in(text: str, symbols: Iterable[str]) -> Descriptions | None:
    """Descriptions of the calls and tables in LLVM text; None if there are none.

    Args:
        text: the text.
        symbols: the symbols that it takes from elsewhere.
    """
    numbers = dict.fromkeys(map(int, _NUMBER.findall(text)))
    infos, tables = tuple(_infos[number] for number in numbers if number in _infos), tuple(installed(symbols))
    return Descriptions(infos, tables) if infos or tables else None


def last_repeats() -> bool:
    """True if the watched call that this thread made last does the same in another run, and changes nothing."""
    return _measured.repeats


@contextmanager
def without_ties() -> Iterator[None]:
    """Has calls of this thread not warn of ties."""
    before, _measured.tells_ties = _measured.tells_ties, False
    try:
        yield
    finally:
        _measured.tells_ties = before


@keeping
def begin(number: int, *inputs: object) -> int:
    """Opens a call; returns its number."""
    info = _infos[number]
    call, record = open_call(watched_by(info.table))
    for name, value in zip(info.inputs, inputs, strict=True):
        found = nonfinite(value)
        if found is not None:
            record.inputs[name] = found
    return call


@keeping
def finish(number: int, call: int, augmented: int, *outputs: object) -> None:
    """Ends a call: warns of ties, raises an error for NaNs and infinities.

    Args:
        number: number of the call's description.
        call: its number.
        augmented: of the pullback of a forward sweep the number of that call; else 0.
        outputs: the results.

    Raises:
        NonFiniteError: one of them is NaN or infinite.
    """
    info = _infos[number]
    record = close_call(call) or Record(watched_by(info.table))
    _conclude(info, record, outputs, record_of(augmented) if augmented else None)


@keeping
def finish_augmented(number: int, call: int, *outputs: object) -> None:
    """Ends a forward sweep; its reports are kept for its pullback."""
    info = _infos[number]
    _conclude(info, record_of(call) or Record(watched_by(info.table)), outputs, None)


def _conclude(info: CallInfo, record: Record, outputs: tuple[object, ...], earlier: Record | None) -> None:
    _measured.repeats = info.repeats
    if info.warns and _measured.tells_ties:
        warn_of_ties(record.of_kind(MarkKind.TIE))
    given = [
        (name, value)
        for name, value in zip(info.outputs, outputs, strict=True)
        if name.removesuffix(" after the call") not in record.inputs
    ]
    check_result(info.function, record, given, earlier, infinities_first=not info.warns)  # zeros are shown by these


@keeping
def tape_is_full(number: int, meter: int) -> None:
    """Raises for a tape that exceeds the limit.

    Raises:
        TapeLimitError: names the line that saves most.
    """
    info = _infos[number]
    total = ctypes.c_int64.from_address(meter + METER.offset("bytes")).value
    raise limit_error(info.function, info.location, info.limit or 0, total, _read(info, meter).uses())


@keeping
def note_tape(number: int, meter: int) -> None:
    """Keeps the size of a call's tape."""
    _measured.found = _read(_infos[number], meter)


def measured() -> Measurement | None:
    """Measurement of the last metered call of this thread; None if there was none. Asked for once."""
    found, _measured.found = _measured.found, None
    return found


def _read(info: CallInfo, meter: int) -> Measurement:
    units = (ctypes.c_int64 * len(info.tape)).from_address(meter + METER.size)
    return Measurement(info.tape, tuple(units))
