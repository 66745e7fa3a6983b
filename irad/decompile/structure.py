"""Structured control flow from a graph of blocks.

Input   a reducible graph, its dominator tree and loops; the `SweepText` that writes what is in the blocks.
Output  Python statements.
Method  Ramsey 2022, "Beyond Relooper": the dominator tree gives the nesting. A block with one way into it is written
        where it is reached; one with several ways follows the statement that they leave. Blocks after a loop, which
        loop exits dominate, are moved after it. Python has no way to jump over a block that follows: it is moved to
        the places that go on there (`moved`), or a variable says where to go on (`go_to`).
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from irad.decompile import trees
from irad.decompile.refusal import refused
from irad.decompile.sweep_text import Range, SweepText
from irad.ir.cfg import ControlFlow
from irad.ir.dominance import DominatorTree
from irad.ir.instructions import Br, CondBr, Ret, Switch, Unreachable
from irad.ir.loops import Loop, LoopNest
from irad.ir.module import Block

# Places from which control goes on elsewhere, and statements that are moved there.
#
# Python has no way to jump over what follows. What follows only some of the ways through a statement is moved to the
# ends of these ways, where that does not make the text much longer:
#
#     if a: x; go to 1        if a: x; rest        if a: x; go to 1          if a or b:
#     else: y; go to 2        else: y              elif b: y; go to 1            if a: x
#     1: rest                                      else: z; go to 2              else: y
#                                                  1: rest                       rest
#                                                                            else: z

LABEL = "go_to"
_MOST_COPIES, _MOST_STATEMENTS = 3, 4

Arm = tuple[ast.expr | None, list[ast.stmt]]


class Goto(ast.Pass):
    """Stands where control goes on to ``block``; becomes an assignment where that has to be known."""

    block: Block

    def __deepcopy__(self, memo: dict[int, Any]) -> Goto:
        return goto(self.block)


def goto(block: Block) -> Goto:
    """A place where control goes on to a block."""
    made = Goto()
    made.block = block
    return made


def moved(body: list[ast.stmt], block: Block, rest: list[ast.stmt]) -> list[ast.stmt] | None:
    """A body with ``rest`` at the places where it continues to ``block``; it may also continue elsewhere.

    Returns:
        None where ``rest`` would have to be copied too often, or has to stay outside of a loop.
    """
    if LABEL in trees.names_in(body):
        return None  # the labels that are compared there tell nothing of what follows ``rest``
    split = _split(body, block, rest)
    if split is not None:
        return split
    sites = list(_sites(body, block, is_inside=False))
    size = sum(isinstance(n, ast.stmt) and not isinstance(n, Goto) for s in rest for n in ast.walk(s))
    if len(sites) > 1 and (len(sites) > _MOST_COPIES or size > _MOST_STATEMENTS):
        return None
    if any(sites) and any(isinstance(s, ast.Break | ast.Continue) for s in trees.of_iteration(rest)):
        return None
    return trees.rewritten(body, lambda s: copy.deepcopy(rest) if isinstance(s, Goto) and s.block is block else [s])


def _sites(body: Sequence[ast.stmt], block: Block, *, is_inside: bool) -> Iterator[bool]:
    """For each place that goes on to a block, whether it is in a loop of the body."""
    for statement in body:
        if isinstance(statement, Goto) and statement.block is block:
            yield is_inside
        elif isinstance(statement, ast.If):
            yield from _sites([*statement.body, *statement.orelse], block, is_inside=is_inside)
        elif isinstance(statement, ast.For | ast.While):
            yield from _sites(statement.body, block, is_inside=True)
            yield from _sites(statement.orelse, block, is_inside=is_inside)


def _split(body: list[ast.stmt], block: Block, rest: list[ast.stmt]) -> list[ast.stmt] | None:
    """With the arms of the last `if` that go on to ``block`` apart from the others."""
    *before, last = body
    if not isinstance(last, ast.If) or any(_targets(before)):
        return None
    arms = _arms(last)
    leads = [set(_targets(statements)) for _, statements in arms]
    chosen = [block in targets for targets in leads]
    first = chosen[0]
    border = chosen.index(not first) if (not first) in chosen else 0
    if border == 0 or first in chosen[border:]:
        return None
    if any(targets != {block} for targets, is_chosen in zip(leads, chosen, strict=True) if is_chosen):
        return None
    tests = [test for test, _ in arms[:border] if test is not None]
    test = tests[0] if len(tests) == 1 else trees.disjunction(*copy.deepcopy(tests))
    one, other = _chain(arms[:border]), _chain(arms[border:])
    return [*before, ast.If(test, one + rest, other) if first else ast.If(test, one, other + rest)]


def _targets(body: Sequence[ast.stmt]) -> Iterator[Block]:
    return (node.block for statement in body for node in ast.walk(statement) if isinstance(node, Goto))


def _arms(statement: ast.If) -> list[Arm]:
    arms: list[Arm] = [(statement.test, statement.body)]
    while len(statement.orelse) == 1 and isinstance(statement.orelse[0], ast.If):
        statement = statement.orelse[0]
        arms.append((statement.test, statement.body))
    return [*arms, (None, statement.orelse)]


def _chain(arms: Sequence[Arm]) -> list[ast.stmt]:
    """The arms as one statement; the last one needs no test."""
    *front, (_, last) = arms
    made: list[ast.stmt] = last
    for test, body in reversed(front):
        assert test is not None
        chosen: list[ast.stmt] = [ast.If(test, body, made)]
        made = chosen
    return made


_NO_JUMPS: Final = "Python has loops and branches, and no jumps"


@dataclass(eq=False, slots=True)
class Structurer:
    """Writes one function."""

    cfg: ControlFlow
    dominators: DominatorTree
    nest: LoopNest
    text: SweepText
    followers: dict[Block, list[Block]] = field(default_factory=dict)
    behind: dict[Loop, list[Block]] = field(default_factory=dict)
    inline: set[Block] = field(default_factory=set)
    left_for: dict[Loop, dict[Block, None]] = field(default_factory=dict)
    open: set[Loop] = field(default_factory=set)
    labelled: set[Block] = field(default_factory=set)
    handed_out: set[Block] = field(default_factory=set)

    def run(self) -> list[ast.stmt]:
        """The statements of the whole function."""
        for block in self.cfg.order[1:]:
            self._attach(block)
        body, _ = self.tree(self.cfg.order[0])
        return trees.rewritten(body, self._resolved)

    def _resolved(self, statement: ast.stmt) -> list[ast.stmt]:
        """An assignment instead of a `Goto`, if it is tested; otherwise nothing."""
        if not isinstance(statement, Goto):
            return [statement]
        if statement.block not in self.labelled:
            return []
        return [trees.assign(trees.name(LABEL), ast.Constant(self.label(statement.block)))]

    def _attach(self, block: Block) -> None:
        parent = self.dominators.immediate[block]
        assert parent is not None
        left = None
        loop = self.nest.loop_of(parent)
        while loop is not None and not loop.contains(block):
            left, loop = loop, loop.parent
        sources = self.cfg.predecessors[block]
        augmented = [p for p in sources if not self.dominators.dominates(block, p)]
        if isinstance(block.terminator, Unreachable) and augmented == [parent]:
            self.inline.add(block)
        elif left is not None:
            self.behind.setdefault(left, []).append(block)
        elif augmented == [parent] and parent.terminator.targets.count(block) == 1:
            self.inline.add(block)
        else:
            self.followers.setdefault(parent, []).append(block)

    def tree(self, block: Block) -> tuple[list[ast.stmt], dict[Block, None]]:
        """The statements of a block and all that it dominates, and where control may continue after them."""
        loop = self.nest.loop_of(block)
        if loop is not None and loop.header is block and loop not in self.open:
            return self.loop(loop)
        body = self.text.block(block)
        branch, exits = self.branch(block)
        body += branch
        for follower in self.followers.get(block, ()):
            body, exits = self.join(body, exits, follower)
        return body, exits

    def join(
        self, body: list[ast.stmt], exits: dict[Block, None], block: Block
    ) -> tuple[list[ast.stmt], dict[Block, None]]:
        """Goes on with a block that was left for."""
        if block not in exits:
            raise refused("control flow of this form", why=_NO_JUMPS)
        more, ends = self.tree(block)
        if len(exits) == 1:
            return body + more, ends
        shorter = moved(body, block, more)
        if shorter is not None:
            return shorter, {**{b: None for b in exits if b is not block}, **ends}
        self.labelled.update(exits)
        guard = ast.If(self.is_at(block), more, [])
        return [*body, guard], {**{b: None for b in exits if b is not block}, **ends}

    def is_at(self, block: Block) -> ast.expr:
        """Test that is true if control goes on at a block."""
        return trees.compare(trees.name(LABEL), ast.Eq(), ast.Constant(self.label(block)))

    def label(self, block: Block) -> int:
        """A number for a block."""
        return self.cfg.position[block]

    def branch(self, block: Block) -> tuple[list[ast.stmt], dict[Block, None]]:
        """The end of a block."""
        last = block.terminator
        range_ = self._range_ended_by(block)
        if range_ is not None:
            (onwards,) = [t for t in dict.fromkeys(last.targets) if t is not range_.exit]
            rest, exits = self.edge(block, onwards)
            out = self.text.edge(block, range_.exit)
            if trees.names_in(out) & trees.names_in(
                rest, ast.Store
            ):  # the end of the last iteration is run before the loop is left
                self.handed_out.add(block)
                rest = out + rest
            return rest, exits
        match last:
            case Br(targets=[target]):
                return self.edge(block, target)
            case CondBr(targets=[yes, no]) if yes is no:
                return self.edge(block, yes)
            case CondBr(targets=[yes, no]):
                test = self.text.test(block)
                if isinstance(test, ast.Constant):
                    return self.edge(block, yes if test.value else no)
                first, left = self.edge(block, yes)
                second, also = self.edge(block, no)
                return [ast.If(test, first, second)], {**left, **also}
            case Switch(targets=[default, *targets]):
                return self._switch(block, default, targets)
            case Ret():  # what is written after it is guarded, for the caller writes the return
                return [*self.text.end(block), goto(block)], {block: None}
            case Unreachable():
                return self.text.end(block), {}
            case _:
                raise refused(f"a branch by {type(last).__name__}", last, why=_NO_JUMPS)

    def _switch(
        self, block: Block, default: Block, targets: Sequence[Block]
    ) -> tuple[list[ast.stmt], dict[Block, None]]:
        value, cases = self.text.cases(block)
        otherwise, exits = self.edge(block, default)
        for case, target in reversed(list(zip(cases, targets, strict=True))):
            body, left = self.edge(block, target)
            chosen: list[ast.stmt] = [ast.If(trees.integer_compare(value, ast.Eq(), case), body, otherwise)]
            otherwise, exits = chosen, {**left, **exits}
        return otherwise, exits

    def _range_ended_by(self, block: Block) -> Range | None:
        for loop in self.open:
            range_ = self.text.range_of(loop)
            if range_ is not None and range_.last is block:
                return range_
        return None

    def edge(self, source: Block, target: Block) -> tuple[list[ast.stmt], dict[Block, None]]:
        """The way from one block to another."""
        body = self.text.edge(source, target)
        loop = self.nest.loop_of(source)
        if loop is not None and target is loop.header:
            return [*body, ast.Continue()], {}
        if target in self.inline and source is self.dominators.immediate[target]:
            more, exits = self.tree(target)
            return body + more, exits
        body.append(goto(target))
        if loop is not None and not loop.contains(target):
            self.left_for.setdefault(loop, {})[target] = None
            return [*body, ast.Break()], {}
        return body, {target: None}

    def loop(self, loop: Loop) -> tuple[list[ast.stmt], dict[Block, None]]:
        """A loop and what follows it."""
        self.open.add(loop)
        inner, exits = self.tree(loop.header)
        assert not exits, "an iteration ends with continue or break"
        range_ = self.text.range_of(loop)
        self.open.discard(loop)
        exits = dict(self.left_for.get(loop, {}))
        made: list[ast.stmt]
        if range_ is None:
            made = [ast.While(ast.Constant(True), inner, [])]
        else:
            out = [] if range_.last in self.handed_out else self.text.edge(range_.last, range_.exit)
            out = out if exits else _not_done_before(out, inner)
            after = [*out, goto(range_.exit)]
            head = trees.target(range_.variable)
            made = [ast.For(head, range_.iterator, inner, after if exits else [])]
            made += [] if exits else after
            exits[range_.exit] = None
        made, exits = self._pass_on(loop, made, exits)
        for block in self.behind.get(loop, ()):
            made, exits = self.join(made, exits, block)
        return made, exits

    def _pass_on(
        self, loop: Loop, made: list[ast.stmt], exits: dict[Block, None]
    ) -> tuple[list[ast.stmt], dict[Block, None]]:
        """Exits that leave the loop around, too, or go on with its next iteration."""
        outer = loop.parent
        for target in list(exits):
            if outer is None or (outer.contains(target) and target is not outer.header):
                continue
            if target is not outer.header:
                self.left_for.setdefault(outer, {})[target] = None
            jump: ast.stmt = ast.Continue() if target is outer.header else ast.Break()
            if len(exits) == 1:
                made = [*made, jump]
            else:
                self.labelled.update(exits)
                made = [*made, ast.If(self.is_at(target), [jump], [])]
            del exits[target]
        return made, exits


def _not_done_before(out: list[ast.stmt], inner: list[ast.stmt]) -> list[ast.stmt]:
    """The single assignment that a loop passes on, unless each of its iterations ends with it."""
    ends = [s for s in inner if not isinstance(s, ast.Continue)]
    if len(out) != 1 or not ends or trees.shown(out[0]) != trees.shown(ends[-1]):
        return out
    stored = trees.names_in(out, ast.Store)
    return [] if stored and not stored & trees.names_in(out) else out
