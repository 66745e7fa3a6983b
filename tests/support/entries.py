"""The form of the catalogue: an entry is a name of Numba's reference, a use of it, and the outcome."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any


class Outcome(Enum):
    """The outcome of a use. The value is the word of the table."""

    DERIVATIVE = "yes"
    CONSTANT = "constant"
    REFUSED = "refused"
    NUMBA_FAILS = "not compiled by Numba"


@dataclass(frozen=True, slots=True)
class Entry:
    """One use of one or several names.

    Attributes:
        names: as the table lists them.
        use: statements separated by ``;``, the last an expression; the free names are arguments, see `uses.ARGUMENTS`.
            Or a Numba function.
        outcome: what is asserted of it.
        why: for a refusal: words of the message, which the table shows.
        note: a remark for the table.
        is_python: the plain Python function says the same as the compiled one. Not so for random numbers of Numba's.
        arguments: of a function.
        reference: another use that is differentiated in its place for comparison, where the use itself rounds.
        rtol: tolerance, where finite differences are worse than usual.
        is_continuous: False of random draws that do not move smoothly with the parameters while the random bits stay as
            they are: no difference tells their derivative. `tests/programs/test_random_draws.py` compares those.
    """

    names: tuple[str, ...]
    use: str | Callable[..., Any]
    outcome: Outcome
    why: str = ""
    note: str = ""
    is_python: bool = True
    arguments: tuple[Any, ...] = ()
    reference: str = ""
    rtol: float = 1e-6
    is_continuous: bool = True

    def __str__(self) -> str:
        return self.names[0] if len(self.names) == 1 else f"{self.names[0]}…{self.names[-1]}"


@dataclass(frozen=True, slots=True)
class Group:
    """A section of the table."""

    title: str
    entries: tuple[Entry, ...]
    note: str = ""


def yes(names: str, use: str, note: str = "", *, reference: str = "", rtol: float = 1e-6) -> Entry:
    """A use that is differentiated, compared with differences of the Python function."""
    return Entry(tuple(names.split()), use, Outcome.DERIVATIVE, note=note, reference=reference, rtol=rtol)


def constant(names: str, use: str, note: str = "") -> Entry:
    """A use whose value has no derivative (an index, a truth value, a string): the code around it is differentiated."""
    return Entry(tuple(names.split()), use, Outcome.CONSTANT, note=note)


def refused(names: str, use: str, why: str, note: str = "") -> Entry:
    """A use that irad refuses, with these words."""
    return Entry(tuple(names.split()), use, Outcome.REFUSED, why=why, note=note)


def fails(names: str, use: str) -> Entry:
    """A use that Numba itself does not compile, although its reference lists the name."""
    return Entry(tuple(names.split()), use, Outcome.NUMBA_FAILS)


def rejected(entry: Entry) -> Entry:
    """The entry, of a random draw whose sampler rejects: differentiated, not compared here."""
    return replace(entry, is_python=False, is_continuous=False)


def compiled(entry: Entry) -> Entry:
    """The entry, compared with differences of the compiled function."""
    return replace(entry, is_python=False)
