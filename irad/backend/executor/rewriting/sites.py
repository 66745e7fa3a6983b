"""Places of a kernel that errors name, by number: where threads wait, and where they touch memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from irad.errors import SourceLocation
from irad.ir import instructions as ir
from irad.ir.debug_info import DebugInfo


@dataclass(frozen=True, slots=True)
class Site:
    """A place.

    Attributes:
        words: what happens there.
        location: the user's line, innermost.
        callers: the lines from which it was inlined, innermost first.
    """

    words: str
    location: SourceLocation | None
    callers: tuple[SourceLocation, ...] = ()

    def __str__(self) -> str:
        return self.words if self.location is None else f"{self.words} at {self.location}"


@dataclass(slots=True)
class Sites:
    """A table that grows while a kernel is rewritten.

    Attributes:
        debug: of the module that the kernel was in.
        symbol: of the kernel.
        name: the kernel as the user knows it, once a place tells.
        all: the places by number.
    """

    debug: DebugInfo
    symbol: str
    name: str = ""
    all: list[Site] = field(default_factory=list)
    _anywhere: int | None = None

    def __post_init__(self) -> None:
        self.name = self.symbol

    def add(self, words: str, inst: ir.Instruction) -> int:
        """The number of a new place."""
        chain = self.debug.inline_chain(inst)
        if len(chain) > 1 and self.symbol.startswith(chain[-1].function):
            self._learn(chain.pop().function, chain[-1].function)
        self.all.append(Site(words, chain[0] if chain else None, tuple(chain[1:])))
        return len(self.all) - 1

    def anywhere(self, words: str, inst: ir.Instruction) -> int:
        """The number of the one place that stands for all places of such operations: the first."""
        if self._anywhere is None:
            self._anywhere = self.add(words, inst)
        return self._anywhere

    def _learn(self, wrapper: str, function: str) -> None:
        """Numba's kernel calls the user's function; that of a derivative has a longer symbol."""
        self.name = function if wrapper == self.symbol else f"the derivative of {function}"

    def __getitem__(self, number: int) -> Site:
        return self.all[number]
