"""The dominator tree.

Method: Cooper, Harvey and Kennedy 2001, "A Simple, Fast Dominance Algorithm", on blocks numbered in reverse postorder.
Queries compare the interval numbers of a walk of the tree, so `DominatorTree.dominates` costs O(1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from irad.ir.cfg import ControlFlow
from irad.ir.instructions import CallBr, Instruction, Invoke
from irad.ir.module import Block
from irad.ir.values import Value
from irad.records import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class DominatorTree:
    """The tree of blocks in which each is dominated by those above it.

    Attributes:
        cfg: the graph it was made for.
        immediate: the parent of each reachable block; None for the entry.
        children: the other direction, in reverse postorder.
    """

    cfg: ControlFlow
    immediate: dict[Block, Block | None]
    children: dict[Block, tuple[Block, ...]]
    _enter: dict[Block, int] = field(repr=False)
    _leave: dict[Block, int] = field(repr=False)

    def dominates(self, a: Block, b: Block) -> bool:
        """True if ``a`` is ``b`` or an ancestor of it. Everything dominates an unreachable ``b``."""
        inner = self._enter.get(b)
        if inner is None:
            return True
        outer = self._enter.get(a)
        return outer is not None and outer <= inner <= self._leave[a]

    def value_dominates(self, value: Value, at: Instruction) -> bool:
        """True if ``value`` is available just before ``at``.

        A phi uses its operands at the end of the incoming blocks: ask with their terminators.
        """
        if not isinstance(value, Instruction):
            return True
        home, place = value.block, at.block
        assert home is not None, "a detached value has no place"
        assert place is not None, "a detached instruction has no place"
        if isinstance(value, Invoke | CallBr):
            normal = value.targets[0]
            return self.cfg.predecessors.get(normal) == (home,) and self.dominates(normal, place)
        if home is not place:
            return self.dominates(home, place)
        for inst in home.instructions:
            if inst is at:
                return False
            if inst is value:
                return True
        raise AssertionError("neither instruction is in its block")


def dominators(cfg: ControlFlow) -> DominatorTree:
    """The dominator tree; its root is the entry."""
    position = cfg.position
    incoming = [[position[p] for p in cfg.predecessors[block]] for block in cfg.order]
    parents = _immediate_dominators(incoming)
    immediate: dict[Block, Block | None] = {cfg.order[0]: None}
    for index in range(1, len(parents)):
        immediate[cfg.order[index]] = cfg.order[parents[index]]
    return _tree(cfg, immediate)


def _immediate_dominators(incoming: Sequence[Sequence[int]]) -> list[int]:
    """The parent of each node; nodes are numbered in reverse postorder, 0 is the root and its own parent."""
    unknown = -1
    parents = [unknown] * len(incoming)
    parents[0] = 0
    changed = True
    while changed:
        changed = False
        for node in range(1, len(incoming)):
            best = unknown
            for other in incoming[node]:
                if parents[other] == unknown:
                    continue
                best = other if best == unknown else _meet(parents, other, best)
            if parents[node] != best:
                parents[node] = best
                changed = True
    return parents


def _meet(parents: Sequence[int], a: int, b: int) -> int:
    while a != b:
        while a > b:
            a = parents[a]
        while b > a:
            b = parents[b]
    return a


def _tree(cfg: ControlFlow, immediate: dict[Block, Block | None]) -> DominatorTree:
    children: dict[Block, list[Block]] = {block: [] for block in cfg.order}
    for block in cfg.order:
        if (parent := immediate[block]) is not None:
            children[parent].append(block)
    enter: dict[Block, int] = {}
    leave: dict[Block, int] = {}
    stack = [cfg.order[0]]
    while stack:  # a block is seen twice: on the way down, and when all below it is numbered
        block = stack[-1]
        if block not in enter:
            enter[block] = len(enter)
            stack.extend(reversed(children[block]))
        else:
            stack.pop()
            leave[block] = len(enter) - 1
    return DominatorTree(cfg, immediate, {block: tuple(found) for block, found in children.items()}, enter, leave)
