"""Instructions of a function that may run after another one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field

from irad.ir.cfg import ControlFlow
from irad.ir.instructions import Instruction
from irad.ir.module import Block
from irad.ir.worklist import reachable
from irad.records import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class RunOrder:
    """Answers what may run after an instruction.

    Attributes:
        reach: for each block the blocks that can run after it (itself if it is in a cycle), as a mask of positions.
        position: index of each instruction in its block.
    """

    cfg: ControlFlow
    reach: Mapping[Block, int]
    position: Mapping[Instruction, int]
    _ways: dict[tuple[Block, Block], frozenset[Block]] = field(default_factory=dict)

    @staticmethod
    def of(cfg: ControlFlow) -> RunOrder:
        """Order of the reachable blocks of a function."""
        position = {inst: index for block in cfg.order for index, inst in enumerate(block.instructions)}
        return RunOrder(cfg, _reach(cfg), position)

    def may_follow(self, first: Instruction, last: Instruction) -> bool:
        """True if an instruction may run after another, or again after itself."""
        start, end = _block(first), _block(last)
        is_reached = bool(self.reach[start] >> self.cfg.position[end] & 1)
        return is_reached or (start is end and self.position[last] > self.position[first])

    def after(self, first: Instruction) -> Iterator[Instruction]:
        """The instructions that may run after one."""
        start = _block(first)
        for block in self.cfg.order:
            is_reached = self.reach[start] >> self.cfg.position[block] & 1
            begin = 0 if is_reached else self.position[first] + 1
            if is_reached or block is start:
                yield from block.instructions[begin:]

    def may_avoid(self, between: Instruction, first: Instruction, last: Instruction) -> bool:
        """True if ``last`` may run after ``first`` without a run of ``between`` after ``first``, before ``last``."""
        start, middle, end = _block(first), _block(between), _block(last)
        position = self.position
        if end is start and position[last] > position[first]:
            return not (middle is start and position[first] < position[between] < position[last])
        if middle is start and position[between] > position[first]:
            return False  # on every way from here
        reached = self._reached_without(start, middle)
        return end in reached and not (end is middle and position[last] > position[between])

    def _reached_without(self, start: Block, avoided: Block) -> frozenset[Block]:
        """The blocks that may run after one, up to the next run of a block, which is among them."""
        if (start, avoided) not in self._ways:
            successors = self.cfg.successors
            ways = reachable(successors[start], lambda block: () if block is avoided else successors[block])
            self._ways[start, avoided] = frozenset(ways)
        return self._ways[start, avoided]


def _block(inst: Instruction) -> Block:
    assert inst.block is not None
    return inst.block


def _reach(cfg: ControlFlow) -> dict[Block, int]:
    index = cfg.position
    masks = dict.fromkeys(cfg.order, 0)
    changed = True
    while changed:
        changed = False
        for block in reversed(cfg.order):
            mask = masks[block]
            for successor in cfg.successors[block]:
                mask |= masks[successor] | 1 << index[successor]
            if mask != masks[block]:
                masks[block] = mask
                changed = True
    return masks
