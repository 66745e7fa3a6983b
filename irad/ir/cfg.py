"""The control-flow graph of a function, read off its terminators, and the two edits every pass needs.

A `ControlFlow` is a snapshot: it does not follow later edits. It has each pair of blocks once, however many edges a
switch has between them, while a phi has a value for each edge (`edges_from`). Blocks that cannot be reached from the
entry are absent from all of its parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from irad.ir.instructions import Instruction, Phi
from irad.ir.module import Block, Function
from irad.records import dataclass


@dataclass(frozen=True, eq=False, slots=True)
class ControlFlow:
    """The graph of the reachable blocks.

    Attributes:
        function: whose graph it is.
        predecessors: of each block, each once, in the order of ``order``.
        successors: of each block, each once, in the order of the terminator.
        order: reverse postorder; the entry is first, and a block comes before its successors but along back edges.
        position: index of each block in ``order``.
    """

    function: Function
    predecessors: dict[Block, tuple[Block, ...]]
    successors: dict[Block, tuple[Block, ...]]
    order: tuple[Block, ...]
    position: dict[Block, int]


def control_flow(function: Function) -> ControlFlow:
    """The graph of a function with a body."""
    successors: dict[Block, tuple[Block, ...]] = {}
    order = tuple(reversed(list(_postorder(function.entry, successors))))
    incoming: dict[Block, list[Block]] = {block: [] for block in order}
    for block in order:
        for target in successors[block]:
            incoming[target].append(block)
    return ControlFlow(
        function=function,
        predecessors={block: tuple(found) for block, found in incoming.items()},
        successors={block: successors[block] for block in order},
        order=order,
        position={block: index for index, block in enumerate(order)},
    )


def _postorder(entry: Block, successors: dict[Block, tuple[Block, ...]]) -> Iterator[Block]:
    """Depth-first postorder; fills ``successors`` for each block met.

    The last successor is visited first, so that the reversed order follows the first target of a branch: a loop whose
    header says `br %more, %body, %exit` lists its body before what comes after it.
    """
    successors[entry] = tuple(entry.successors)
    stack = [(entry, iter(reversed(successors[entry])))]
    while stack:
        block, pending = stack[-1]
        for target in pending:
            if target not in successors:
                successors[target] = tuple(target.successors)
                stack.append((target, iter(reversed(successors[target]))))
                break
        else:
            stack.pop()
            yield block


def remove_unreachable_blocks(function: Function) -> None:
    """Deletes the blocks that the entry does not reach, and what phis of the others receive from them."""
    reachable = dict.fromkeys(control_flow(function).order)
    doomed = [block for block in function.blocks if block not in reachable]
    if not doomed:
        return
    for block in reachable:
        for phi in block.phis():
            _keep_incoming(phi, [block in reachable for block in phi.blocks])
    discard_blocks(function, doomed)


def discard_blocks(function: Function, doomed: Iterable[Block]) -> None:
    """Deletes blocks whose values have no users left but in themselves, and that no other block branches to."""
    gone = dict.fromkeys(doomed)
    for block in gone:
        for inst in block.instructions:
            inst.set_operands(())
    for block in gone:
        for inst in block.instructions:
            assert not inst.users, f"{inst!r} is used outside of the blocks to delete"
            _detach(inst)
        block.instructions.clear()
        block.function = None
    function.blocks = [block for block in function.blocks if block not in gone]


def _detach(inst: Instruction) -> None:
    inst.block = None
    inst.targets = []
    if isinstance(inst, Phi):
        inst.blocks = []


def edges_from(predecessors: Iterable[Block], block: Block) -> Iterator[Block]:
    """Each predecessor as often as it has edges to a block: what a phi there has to list."""
    for source in predecessors:
        yield from (source for target in source.terminator.targets if target is block)


def rename_incoming(phi: Phi, old: Block, new: Block) -> None:
    """Lets ``phi`` receive from ``new``, which has taken over the terminator, what it received from ``old``."""
    phi.blocks = [new if block is old else block for block in phi.blocks]


def _keep_incoming(phi: Phi, keep: list[bool]) -> None:
    if all(keep):
        return
    pairs = [pair for pair, kept in zip(phi.incoming(), keep, strict=True) if kept]
    phi.set_operands([value for value, _ in pairs])
    phi.blocks = [block for _, block in pairs]
