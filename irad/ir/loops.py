"""Natural loops, their nesting, and the irreducible cycles, which are not loops.

A loop is a header together with the blocks from which one of its latches is reached without passing the header; two
loops are disjoint or nested. A cycle that can be entered at more than one block is not a loop: its entries are listed
in `LoopNest.irreducible`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from irad.ir.cfg import ControlFlow
from irad.ir.dominance import DominatorTree
from irad.ir.module import Block
from irad.ir.worklist import components, reachable
from irad.records import dataclass


@dataclass(eq=False, slots=True)
class Loop:
    """A natural loop.

    Attributes:
        header: the block that every entry and every iteration passes.
        blocks: all blocks, those of inner loops too; for asking only, iterate over ``order``.
        order: the same in reverse postorder, the header first.
        parent, children: the nesting; children in the order of their headers.
        depth: 1 for an outermost loop.
        latches: the sources of the back edges, in reverse postorder.
        preheader: the only block outside that branches to the header, if it branches nowhere else.
        exits: the edges that leave, (exiting block inside, exit block outside), in reverse postorder of the former.
    """

    header: Block
    blocks: frozenset[Block] = field(repr=False)
    order: tuple[Block, ...] = field(repr=False)
    parent: Loop | None = field(repr=False)
    children: list[Loop] = field(repr=False)
    depth: int
    latches: tuple[Block, ...] = field(repr=False)
    preheader: Block | None = field(repr=False)
    exits: tuple[tuple[Block, Block], ...] = field(repr=False)

    @property
    def latch(self) -> Block | None:
        """The latch, if there is just one."""
        return self.latches[0] if len(self.latches) == 1 else None

    def contains(self, item: Block | Loop) -> bool:
        """True if a block, or a loop with all its blocks, lies inside (a loop contains itself)."""
        return (item.header if isinstance(item, Loop) else item) in self.blocks and (
            not isinstance(item, Loop) or len(item.blocks) <= len(self.blocks)
        )


@dataclass(frozen=True, eq=False, slots=True)
class LoopNest:
    """All loops of a function.

    Attributes:
        loops: outer before inner, otherwise in reverse postorder of the headers.
        irreducible: the entry blocks of irreducible cycles, in reverse postorder; empty when there are none.
    """

    loops: tuple[Loop, ...]
    irreducible: tuple[Block, ...]
    _innermost: dict[Block, Loop] = field(repr=False)

    def loop_of(self, block: Block) -> Loop | None:
        """The innermost loop around a block."""
        return self._innermost.get(block)

    def depth_of(self, block: Block) -> int:
        """Number of loops around a block."""
        loop = self._innermost.get(block)
        return loop.depth if loop else 0

    def roots(self) -> tuple[Loop, ...]:
        """The outermost loops."""
        return tuple(loop for loop in self.loops if loop.parent is None)


def loop_nest(cfg: ControlFlow, dominators: DominatorTree) -> LoopNest:
    """Finds the loops. Cost O(blocks × depth)."""
    loops: list[Loop] = []
    innermost: dict[Block, Loop] = {}
    irreducible = False
    for header in cfg.order:  # the header of an outer loop comes before those of its inner loops
        back = [p for p in cfg.predecessors[header] if cfg.position[p] >= cfg.position[header]]
        # A back edge whose source the header does not dominate belongs to a cycle that is entered elsewhere as well.
        latches = tuple(p for p in back if dominators.dominates(header, p))
        irreducible |= len(latches) < len(back)
        if latches:
            loop = _loop(cfg, header, latches, innermost.get(header))
            loops.append(loop)
            innermost.update(dict.fromkeys(loop.order, loop))
    entries = _irreducible_entries(cfg) if irreducible else ()
    return LoopNest(tuple(loops), entries, innermost)


def _loop(cfg: ControlFlow, header: Block, latches: tuple[Block, ...], parent: Loop | None) -> Loop:
    blocks = {header, *reachable(latches, lambda block: () if block is header else cfg.predecessors[block])}
    order = tuple(sorted(blocks, key=cfg.position.__getitem__))
    outside = [p for p in cfg.predecessors[header] if p not in blocks]
    # What has to run before the loop is put at the end of the preheader, which must therefore have no other successor.
    dedicated = len(outside) == 1 and len(cfg.successors[outside[0]]) == 1
    loop = Loop(
        header=header,
        blocks=frozenset(blocks),
        order=order,
        parent=parent,
        children=[],
        depth=parent.depth + 1 if parent else 1,
        latches=latches,
        preheader=outside[0] if dedicated else None,
        exits=tuple((block, s) for block in order for s in cfg.successors[block] if s not in blocks),
    )
    if parent is not None:
        parent.children.append(loop)
    return loop


def cycles(cfg: ControlFlow) -> Iterator[tuple[tuple[Block, ...], tuple[Block, ...]]]:
    """The strongly connected regions, each with its heads, the blocks at which it is entered; outer before inner.

    Inner regions are those that are left without the heads of the outer one. One head: a natural loop; several: an
    irreducible cycle.
    """
    edges = {block: list(cfg.successors[block]) for block in cfg.order}
    pending: list[tuple[Block, ...]] = [cfg.order]
    while pending:
        for component in components(pending.pop(), edges):
            if len(component) == 1:
                continue
            inside = frozenset(component)
            heads = tuple(b for b in component if any(p not in inside for p in cfg.predecessors[b]))
            yield component, heads
            for block in component:
                edges[block] = [s for s in edges[block] if s in inside and s not in heads]
            pending.append(component)


def _irreducible_entries(cfg: ControlFlow) -> tuple[Block, ...]:
    """The heads of irreducible cycles."""
    entries = {head for _, heads in cycles(cfg) if len(heads) > 1 for head in heads}
    return tuple(sorted(entries, key=cfg.position.__getitem__))


def innermost_first(loops: Iterable[Loop]) -> tuple[Loop, ...]:
    """Sorts loops, inner before outer."""
    return tuple(sorted(loops, key=lambda loop: -loop.depth))
