"""Places of a kernel that errors name, by number: where threads wait, and where they touch memory."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Final

from irad.backend.executor.rewriting.arrays import KnownArray
from irad.errors import IradError, SourceLocation
from irad.ir import instructions as ir
from irad.ir.debug_info import DebugInfo
from irad.records import dataclass


@dataclass(frozen=True, slots=True)
class Site:
    """A source location that the executor can name: of an access, or of an operation for which threads wait.

    Attributes:
        words: description of the access.
        location: the user's line, innermost.
        callers: the lines from which it was inlined, innermost first.
        array: of an access, if the kernel's text says which one it is to.
        is_near: whether the line is that of an instruction beside it.
    """

    words: str
    location: SourceLocation | None
    callers: tuple[SourceLocation, ...] = ()
    array: KnownArray | None = None
    is_near: bool = False

    def __str__(self) -> str:
        return (
            self.words if self.location is None else f"{self.words} {'near' if self.is_near else 'at'} {self.location}"
        )


def placed(error: IradError, site: Site) -> IradError:
    """The error with the lines from which the code at a place was called."""
    error.callers = site.callers
    return error


@dataclass(slots=True)
class Sites:
    """A table that grows while a kernel is rewritten.

    Attributes:
        debug: debug information of the module that the kernel was in.
        symbol: symbol of the kernel.
        name: the kernel as the user knows it, once a place tells.
        all: the places by number.
    """

    debug: DebugInfo
    symbol: str
    name: str = ""
    all: list[Site] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.name = readable_name(self.symbol)

    def add(self, words: str, inst: ir.Instruction, array: KnownArray | None = None) -> int:
        """The number of a new place."""
        chain = self.debug.inline_chain(inst)
        is_near = bool(chain) and not chain[0].line
        if is_near:
            chain = self._chain_near(inst, chain)
        if len(chain) > 1 and self.symbol.startswith(chain[-1].function):
            self._learn(chain.pop().function, chain[-1].function)
        self.all.append(Site(words, chain[0] if chain else None, tuple(chain[1:]), array, is_near))
        return len(self.all) - 1

    def anywhere(self, words: str, inst: ir.Instruction) -> int:
        """The number of a place at which threads meet others in other places.

        A barrier of the user's is to meet only itself, and the waiting for others between the sweeps, which is on no
        line: the complement of a number stands for the latter.
        """
        number = self.add(words, inst)
        return number if self.all[number].location is not None else ~number

    def _chain_near(self, inst: ir.Instruction, own: list[SourceLocation]) -> list[SourceLocation]:
        """The places of an instruction's operands, or of the instructions around it.

        LLVM gives line 0 to what it has put together from several lines.
        """
        around = list(inst.block.instructions) if inst.block is not None else []
        position = around.index(inst) if inst in around else 0
        operands = [each for each in inst.operands if isinstance(each, ir.Instruction)]
        for other in (*operands, *inst.users, *reversed(around[:position]), *around[position + 1 :]):
            found = self.debug.inline_chain(other)
            if found and found[0].line and found[0].function == own[0].function:
                return found
        return own

    def _learn(self, wrapper: str, function: str) -> None:
        """Numba's kernel calls the user's function; that of a derivative has a longer symbol."""
        self.name = function if wrapper == self.symbol else f"the derivative of {function}"

    def __getitem__(self, number: int) -> Site:
        return self.all[number]


def readable_name(symbol: str) -> str:
    """A kernel as the user knows it, by Numba's symbol, which counts the letters of each part of its name."""
    name, rest = "", symbol.removeprefix("_ZN")
    while rest is not symbol and (count := _LENGTH.match(rest)):
        start, end = count.end(), count.end() + int(count[0])
        name, rest = rest[start:end], rest[end:]
    if not name:
        return symbol
    return f"the derivative of {name}" if "." in rest else name


_LENGTH: Final = re.compile(r"[0-9]+")
