"""Dominator and post-dominator trees.

Method: Cooper, Harvey and Kennedy 2001, "A Simple, Fast Dominance Algorithm", on blocks numbered in reverse postorder.
Queries compare the interval numbers of a walk of the tree, so `DominatorTree.dominates` costs O(1).

Post-dominators hang below a virtual exit, which is not a block: a block whose ``immediate`` is None is a child of it.
Its predecessors are the blocks without successors and, for a region that never leaves the function, one block of each
innermost endless cycle; so every reachable block is in the tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from irad.ir.cfg import ControlFlow
from irad.ir.instructions import CallBr, Instruction, Invoke
from irad.ir.module import Block
from irad.ir.values import Value


@dataclass(frozen=True, eq=False, slots=True)
class DominatorTree:
    """Who dominates whom (or post-dominates whom).

    Attributes:
        cfg: the graph it was made for.
        immediate: the parent of each reachable block; None for a root.
        children: the other direction, in reverse postorder.
        roots: the entry; of a post-dominator tree the children of the virtual exit.
    """

    cfg: ControlFlow
    immediate: dict[Block, Block | None]
    children: dict[Block, tuple[Block, ...]]
    roots: tuple[Block, ...]
    _enter: dict[Block, int] = field(repr=False)
    _leave: dict[Block, int] = field(repr=False)

    def dominates(self, a: Block, b: Block) -> bool:
        """Whether ``a`` is ``b`` or an ancestor of it. Everything dominates an unreachable ``b``."""
        inner = self._enter.get(b)
        if inner is None:
            return True
        outer = self._enter.get(a)
        return outer is not None and outer <= inner <= self._leave[a]

    def value_dominates(self, value: Value, at: Instruction) -> bool:
        """Whether ``value`` is available just before ``at`` (of a dominator tree, not a post-dominator tree).

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

    def common(self, a: Block, b: Block) -> Block | None:
        """The nearest block that dominates both; None is the virtual exit."""
        current: Block | None = a
        while current is not None and not self.dominates(current, b):
            current = self.immediate[current]
        return current


def dominators(cfg: ControlFlow) -> DominatorTree:
    """The dominator tree; its root is the entry."""
    position = cfg.position
    incoming = [[position[p] for p in cfg.predecessors[block]] for block in cfg.order]
    parents = _immediate_dominators(incoming)
    immediate: dict[Block, Block | None] = {cfg.order[0]: None}
    for index in range(1, len(parents)):
        immediate[cfg.order[index]] = cfg.order[parents[index]]
    return _tree(cfg, immediate)


def post_dominators(cfg: ControlFlow) -> DominatorTree:
    """The post-dominator tree, below a virtual exit (see the module's docstring)."""
    order = _reverse_order(cfg)
    number = {block: index + 1 for index, block in enumerate(order)}  # 0 is the virtual exit
    incoming: list[list[int]] = [[]]
    exits = dict.fromkeys(_exits(cfg))
    for block in order:
        incoming.append([number[s] for s in cfg.successors[block]] + ([0] if block in exits else []))
    parents = _immediate_dominators(incoming)
    found = {block: order[parents[i] - 1] if parents[i] else None for block, i in number.items()}
    return _tree(cfg, {block: found[block] for block in cfg.order})


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


def _exits(cfg: ControlFlow) -> list[Block]:
    """The predecessors of the virtual exit."""
    exits = [block for block in cfg.order if not cfg.successors[block]]
    leaving = dict.fromkeys(_postorder_from(exits, cfg.predecessors))
    if len(leaving) == len(cfg.order):
        return exits
    # What finishes last in the reversed graph lies in a cycle that nothing leaves (as in Kosaraju's algorithm).
    endless = [block for block in cfg.order if block not in leaving]
    for block in reversed(_postorder_from(endless, cfg.predecessors)):
        if block not in leaving:
            exits.append(block)
            leaving.update(dict.fromkeys(_postorder_from([block], cfg.predecessors)))
    return exits


def _reverse_order(cfg: ControlFlow) -> list[Block]:
    """Reverse postorder of the reversed graph from the virtual exit."""
    return _postorder_from(_exits(cfg), cfg.predecessors)[::-1]


def _postorder_from(starts: Sequence[Block], edges: Mapping[Block, Sequence[Block]]) -> list[Block]:
    seen: dict[Block, None] = {}
    found: list[Block] = []
    for start in starts:
        if start in seen:
            continue
        seen[start] = None
        stack = [(start, iter(edges[start]))]
        while stack:
            block, pending = stack[-1]
            for target in pending:
                if target not in seen:
                    seen[target] = None
                    stack.append((target, iter(edges[target])))
                    break
            else:
                stack.pop()
                found.append(block)
    return found


def _tree(cfg: ControlFlow, immediate: dict[Block, Block | None]) -> DominatorTree:
    children: dict[Block, list[Block]] = {block: [] for block in cfg.order}
    roots: list[Block] = []
    for block in cfg.order:
        parent = immediate[block]
        (roots if parent is None else children[parent]).append(block)
    enter: dict[Block, int] = {}
    leave: dict[Block, int] = {}
    for root in roots:
        stack = [root]
        while stack:  # a block is seen twice: on the way down, and when all below it is numbered
            block = stack[-1]
            if block not in enter:
                enter[block] = len(enter)
                stack.extend(reversed(children[block]))
            else:
                stack.pop()
                leave[block] = len(enter) - 1
    return DominatorTree(
        cfg, immediate, {block: tuple(found) for block, found in children.items()}, tuple(roots), enter, leave
    )
