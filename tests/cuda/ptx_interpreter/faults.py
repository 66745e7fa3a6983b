"""What is wrong with a program, or with what a thread does."""

from __future__ import annotations


class PtxFault(AssertionError):
    """A GPU would fail here, or do what nobody can tell: the first thread, and the instruction."""


class PtxSyntaxError(PtxFault):
    """The text is not in the grammar."""


class UnknownInstructionError(PtxFault):
    """The interpreter does not have the instruction, or this form of it."""


class MemoryFault(PtxFault):
    """An access outside of everything, not aligned, or to the wrong kind of memory."""


class RaceFault(PtxFault):
    """Two threads access the same bytes, one writes, and nothing orders them."""


class BarrierFault(PtxFault):
    """Threads wait for each other forever, or in different places."""
