"""`reduce_program`: a smallest program that still fails in the same way, for a report that can be read.

Statements are dropped, loops and branches are replaced by what is inside them and expressions by parts of themselves,
one at a time, until nothing more can go. Delta debugging in its simplest form: linear in the number of candidates.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from tests.tools.random_programs import Program, runs

_BUILTINS: Final = {"njit", "range", "len", "int", "abs", "min", "zip", "enumerate"}


def reduce_program(program: Program, failure: Callable[[Program], str | None], attempts: int = 200) -> Program:
    """A program with the failure of ``program`` and as little else as can be.

    Args:
        program: fails.
        failure: names the kind of failure of a program; None when it does not fail.
        attempts: how often ``failure`` is asked at most.
    """
    kind = failure(program) if attempts > 0 else None
    best = replace(program, source=ast.unparse(ast.parse(program.source)) + "\n")
    position = in_vain = 0
    while attempts > 0:
        candidates = list(_smaller(ast.parse(best.source)))
        if in_vain >= len(candidates):
            break
        position %= len(candidates)
        candidate = replace(best, source=candidates[position])
        position, in_vain = position + 1, in_vain + 1
        if not _is_valid(candidate.source) or not runs(candidate):
            continue
        attempts -= 1
        if failure(candidate) == kind:
            best, position, in_vain = candidate, position - 1, 0
    return best


def _is_valid(source: str) -> bool:
    try:
        tree = ast.parse(source)
        compile(tree, "<candidate>", "exec")  # finds what parses and is not a program: a break outside of loops
    except SyntaxError:
        return False
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    called = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return "program" in functions and called <= functions | _BUILTINS


def _smaller(tree: ast.Module) -> Iterator[str]:
    """Texts with one thing less, the largest cuts first. An empty block makes a text that is not valid."""
    for node in ast.walk(tree):
        for name in ("body", "orelse"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                yield from _without_statement(tree, block)
    for node in ast.walk(tree):
        yield from _with_part(tree, node)


def _without_statement(tree: ast.Module, block: list[ast.stmt]) -> Iterator[str]:
    for i in reversed(range(len(block))):
        statement = block[i]
        insides: list[list[ast.stmt]] = [getattr(statement, name, []) for name in ("body", "orelse")]
        is_block = isinstance(statement, ast.If | ast.For | ast.While)
        for inside in ([], *(insides if is_block else ())):
            block[i : i + 1] = inside
            yield ast.unparse(tree) + "\n"
            block[i : i + len(inside)] = [statement]


def _with_part(tree: ast.Module, node: ast.AST) -> Iterator[str]:
    for name, value in ast.iter_fields(node):
        for i, child in enumerate(value if isinstance(value, list) else [value]):
            for part in _parts(child):
                _set(node, name, i, part)
                yield ast.unparse(tree) + "\n"
                _set(node, name, i, child)


def _set(node: ast.AST, name: str, i: int, child: ast.expr) -> None:
    value = getattr(node, name)
    if isinstance(value, list):
        value[i] = child
    else:
        setattr(node, name, child)


def _parts(expression: object) -> tuple[ast.expr, ...]:
    match expression:
        case ast.BinOp():
            return (expression.left, expression.right)
        case ast.IfExp():
            return (expression.body, expression.orelse)
        case ast.BoolOp():
            return tuple(expression.values)
        case ast.Call() if not (isinstance(expression.func, ast.Name) and expression.func.id in ("range", "zip")):
            return tuple(expression.args)
    return ()
