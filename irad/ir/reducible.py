"""Makes cycles that can be entered at several blocks into loops.

Input   a function without switches.
Output  whether there were any; the function is rewritten. What it made is not a canonical loop yet.
Method  all edges to the heads of such a cycle go to one new block, which branches on to the intended head. Phis of the
        heads move there. No other value needs a phi: whoever uses a value is dominated by it still, for a way through
        the new block to a head existed before, if only from another edge.

    a ─┬─▶ b ⇄ c ◀─┐          a ─▶ guard ─┬─▶ b ─▶ guard
       └───────────┘                      └─▶ c ─▶ guard
"""

from __future__ import annotations

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.cfg import ControlFlow, control_flow
from irad.ir.instructions import Phi, replace_uses
from irad.ir.loops import cycles
from irad.ir.module import Block, Function
from irad.ir.values import Undef, Value, const_int


def make_reducible(function: Function) -> bool:
    """Rewrites every irreducible cycle of a function."""
    changed = False
    while heads := _irreducible_heads(control_flow(function)):
        _guard(function, heads)
        changed = True
    return changed


def _irreducible_heads(cfg: ControlFlow) -> tuple[Block, ...]:
    return next((heads for _, heads in cycles(cfg) if len(heads) > 1), ())


def _guard(function: Function, heads: tuple[Block, ...]) -> None:
    edges = _detour(function, heads)
    build = Builder(function.add_block("guard"))
    chosen = [(const_int(types.I32, heads.index(head)), edge) for edge, (_, head) in edges.items()]
    selector = build.phi(types.I32, chosen)
    for head in heads:
        for phi in head.phis():
            _move(phi, edges, build)
    for edge in edges:
        Builder(edge).br(build.block)
    for index, head in enumerate(heads[:-1]):
        other = function.add_block("guard") if index < len(heads) - 2 else heads[-1]
        build.cond_br(build.icmp("eq", selector, const_int(types.I32, index)), head, other)
        build = Builder(other)


def _detour(function: Function, heads: tuple[Block, ...]) -> dict[Block, tuple[Block, Block]]:
    """Puts an open block of its own on every edge to a head: that block → (source, head)."""
    edges: dict[Block, tuple[Block, Block]] = {}
    for source in function.blocks.copy():
        targets = source.terminator.targets
        for index, target in enumerate(targets):
            if target in heads:
                targets[index] = function.add_block("edge")
                edges[targets[index]] = (source, target)
    return edges


def _apart(value: Value, edge: Block) -> Value:
    """A phi as it is on an edge.

    Where phis of a block are incoming values of each other, LLVM 22 loses some of them when its code generator copies
    the block to its predecessors (early tail duplication).
    """
    return Builder(edge).freeze(value) if isinstance(value, Phi) else value


def _move(phi: Phi, edges: dict[Block, tuple[Block, Block]], build: Builder) -> None:
    """Replaces a phi of a head by one of the guard."""
    head = phi.block
    unused = Undef(phi.type)
    incoming = [
        (_apart(phi.value_from(source), edge) if to is head else unused, edge) for edge, (source, to) in edges.items()
    ]
    replace_uses(phi, build.phi(phi.type, incoming))
    phi.erase()
