"""What an instruction that only computes is: types in, types out, and a function of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.cuda.ptx_interpreter.faults import UnknownInstructionError
from tests.cuda.ptx_interpreter.types import PtxType, is_type, ptx_type

Function = Callable[..., Any]


@dataclass(frozen=True)
class Operation:
    """Computes.

    Attributes:
        results, operands: types.
        function: arrays of the operands' types, for a carry one more, to an array, or a tuple of arrays.
        any_width: registers may be wider than the types.
        takes_carry, gives_carry: reads and writes the carry flag, the last operand and the last result.
    """

    results: tuple[PtxType, ...]
    operands: tuple[PtxType, ...]
    function: Function
    takes_carry: bool = False
    gives_carry: bool = False
    any_width: bool = False


Maker = Callable[["Words"], Operation]
MAKERS: dict[str, Maker] = {}
"""By the first word of the opcode."""


class Words:
    """The words of an opcode, each to be asked for: a form that nobody asked for is unknown."""

    def __init__(self, opcode: str) -> None:
        self.opcode = opcode
        self.name, *rest = opcode.split(".")
        self._left = rest

    def has(self, word: str) -> bool:
        """Whether it is there; it counts as understood."""
        if word in self._left:
            self._left.remove(word)
            return True
        return False

    def one_of(self, words: Sequence[str], default: str = "") -> str:
        """The one that is there."""
        found = [word for word in words if word in self._left]
        if len(found) > 1:
            raise self.unknown()
        if found:
            self._left.remove(found[0])
        return found[0] if found else default

    def type(self) -> PtxType:
        """The last word that is a type."""
        return self.types(1)[0]

    def types(self, count: int) -> list[PtxType]:
        """All words that are types."""
        found = [word for word in self._left if is_type(word)]
        if len(found) != count:
            raise self.unknown()
        for word in found:
            self._left.remove(word)
        return [ptx_type(word) for word in found]

    def done(self) -> None:
        """Raises if a word is left that nobody understood."""
        if self._left:
            raise self.unknown()

    def unknown(self) -> UnknownInstructionError:
        return UnknownInstructionError(f"the interpreter does not know {self.opcode}")


def operation_of(opcode: str) -> Operation | None:
    """What computes; None for memory, control and the like.

    Raises:
        UnknownInstructionError: a form of it that is not known.
    """
    words = Words(opcode)
    maker = MAKERS.get(words.name)
    if maker is None:
        return None
    made = maker(words)
    words.done()
    return replace(made, any_width=True) if words.name == "cvt" else made


def instruction(*names: str) -> Callable[[Maker], Maker]:
    """Adds what makes the operation of instructions."""

    def add(maker: Maker) -> Maker:
        for name in names:
            MAKERS[name] = maker
        return maker

    return add
