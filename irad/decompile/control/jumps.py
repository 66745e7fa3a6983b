"""Places from which control goes on elsewhere, and statements that are moved there.

Python has no way to jump over what follows. What follows only some of the ways through a statement is moved to the ends
of these ways, where that does not make the text much longer:

    if a: x; go to 1        if a: x; rest        if a: x; go to 1          if a or b:
    else: y; go to 2        else: y              elif b: y; go to 1            if a: x
    1: rest                                      else: z; go to 2              else: y
                                                 1: rest                       rest
                                                                           else: z
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from typing import Any

from irad.decompile import trees
from irad.ir.module import Block

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
    """A body with ``rest`` where it goes on to ``block``; it goes on elsewhere, too.

    Returns:
        None where ``rest`` would have to be copied too often, or has to stay outside of a loop.
    """
    if LABEL in trees.names_in(body):
        return None  # the labels that are compared there tell nothing of what is behind ``rest``
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
