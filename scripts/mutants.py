#!/usr/bin/env python
"""Small changes of `passes/` that its tests do not notice: `python scripts/mutants.py --sample 50 --seed 1`.

Names of modules limit the sample to them.

Each mutant is a change of one function: an operator, a condition, a number, a statement left out. No file is written:
the mutant replaces the code of the function in a process forked from this one. There run the tests of the module, which
mirror the source, the others of its folder, and some whole derivatives, up to the first that fails. What survives is
printed: code that does the same, or a test to be written; `--again FILE` runs those of an earlier output once more.
"""

from __future__ import annotations

import ast
import gc
import importlib
import multiprocessing
import os
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType
from typing import NamedTuple, TextIO

import click
import pytest

ROOT = Path(__file__).parents[1]
WHOLE = ("tests/programs/test_updates.py", "tests/programs/test_short_loops.py")
ELSEWHERE = {
    "passes/analysis": ("tests/errors/test_messages.py", "tests/special_points/test_arrays.py"),
    "passes/forward": ("tests/api/forward/test_forward.py", "tests/api/forward/test_taylor.py"),
    "passes/instrument": ("tests/debug/test_values.py", "tests/debug/test_code.py", "tests/debug/test_tape.py"),
    "passes/plan": ("tests/programs/test_stored_values.py", "tests/programs/test_repeated_reads.py"),
    "passes/rule_context.py": ("tests/custom/test_stateful.py", "tests/rules/test_blas.py"),
}
"""Tests of what a folder or module does that stand in no folder of tests/passes."""
SWAPS: dict[type[ast.AST], type[ast.AST]] = {ast.Eq: ast.NotEq, ast.Lt: ast.LtE, ast.Gt: ast.GtE, ast.In: ast.NotIn}
SWAPS |= {ast.Is: ast.IsNot, ast.And: ast.Or, ast.Add: ast.Sub, ast.BitOr: ast.BitAnd}
SWAPS |= {new: old for old, new in SWAPS.items()}
_SECONDS = 900  # of the tests of a mutant; what takes longer is killed
_NOT_REPLACED = 70  # no exit status of pytest
_IN_A_FUNCTION = 1  # CO_OPTIMIZED: not the body of a module or class


class Mutant(NamedTuple):
    """A function of a module with a change."""

    module: Path
    change: str
    function: str
    code: CodeType


def mutants(module: Path) -> Iterator[Callable[[], Mutant | None]]:
    """All mutants of a module, to be made by a call; None for a change that is in no function, but in an annotation."""
    source = (ROOT / module).read_text("utf-8")
    original = dict(_functions(compile(ast.unparse(ast.parse(source)), str(module), "exec")))

    def make(index: int, number: int) -> Mutant | None:
        tree = ast.parse(source)
        node = list(ast.walk(tree))[index]
        before = ast.unparse(node)
        list(_changes(node))[number](node)
        told = f"{module}:{getattr(node, 'lineno', 0)}: {before} -> {ast.unparse(node)}"
        made = _functions(compile(ast.unparse(tree), str(module), "exec"))
        changed = [(name, code) for name, code in made if code != original.get(name)]
        return Mutant(module, " ".join(told.split())[:240], *changed[0]) if changed else None

    for index, node in enumerate(ast.walk(ast.parse(source))):
        for number, _ in enumerate(_changes(node)):
            yield lambda index=index, number=number: make(index, number)  # type: ignore[misc]


def _functions(code: CodeType) -> Iterator[tuple[str, CodeType]]:
    """Functions and methods of a module, by their qualified names."""
    for each in code.co_consts:
        if isinstance(each, CodeType) and each.co_flags & _IN_A_FUNCTION:
            yield each.co_qualname, each
        elif isinstance(each, CodeType):
            yield from _functions(each)


def _changes(node: ast.AST) -> Iterator[Callable[[ast.AST], None]]:
    match node:
        case ast.Compare(ops=[only]) if type(only) in SWAPS:
            yield lambda n: n.ops.__setitem__(0, SWAPS[type(only)]())  # type: ignore[attr-defined]
        case ast.BoolOp() | ast.BinOp() if type(node.op) in SWAPS:
            yield lambda n: setattr(n, "op", SWAPS[type(node.op)]())
        case ast.If() | ast.While() | ast.IfExp():
            yield lambda n: setattr(n, "test", ast.UnaryOp(ast.Not(), n.test))  # type: ignore[attr-defined]
        case ast.Constant(value=bool() as value):
            yield lambda n: setattr(n, "value", not value)
        case ast.Constant(value=int() as value):
            yield lambda n: setattr(n, "value", value + 1)
        case ast.Return(value=ast.Constant(value=None | False)):
            pass  # callers ask for truth
        case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()) | ast.Return(value=ast.expr()):
            yield lambda n: setattr(n, "value", ast.Constant(None))


def tests_of(module: Path) -> list[str]:
    """Test files, those first that are likeliest to fail: of the module, its folder, the engine, programs."""
    own = sorted(ROOT.glob(f"tests/{module.parent}/test_*.py"), key=lambda file: file.stem != f"test_{module.stem}")
    files = [*own, *sorted(ROOT.glob("tests/passes/test_*.py"))]
    elsewhere = [test for place, tests in ELSEWHERE.items() if str(module).startswith(place) for test in tests]
    return list(dict.fromkeys([*(str(file.relative_to(ROOT)) for file in files), *WHOLE, *elsewhere]))


def _survives(mutant: Mutant) -> bool:
    process = multiprocessing.get_context("fork").Process(target=_run_tests, args=(mutant,))
    process.start()
    process.join(_SECONDS)
    if process.exitcode is None:
        process.kill()
        process.join()
    if process.exitcode == _NOT_REPLACED:
        raise click.ClickException(f"{mutant.function} of {mutant.module} is not there to be replaced")
    return process.exitcode == pytest.ExitCode.OK


def _run_tests(mutant: Mutant) -> None:
    """In a process of its own."""
    module = f"irad.{'.'.join(mutant.module.with_suffix('').parts)}".removesuffix(".__init__")
    importlib.import_module(module)  # what no first derivative needs is not loaded yet
    changed = [
        each
        for each in gc.get_objects()
        if isinstance(each, FunctionType) and (each.__module__, each.__qualname__) == (module, mutant.function)
    ]
    if not changed:
        os._exit(_NOT_REPLACED)
    for each in changed:
        each.__code__ = mutant.code
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    os._exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *tests_of(mutant.module)]))


@click.command()
@click.argument("names", nargs=-1, metavar="[MODULE]...")
@click.option("--sample", default=50, show_default=True, help="Number of mutants.")
@click.option("--seed", default=1, show_default=True)
@click.option("--again", type=click.File(), help="Only mutants that survived according to this earlier output.")
def main(names: tuple[str, ...], sample: int, seed: int, again: TextIO | None) -> None:
    """Run a sample of mutants of passes/, or of some of its modules, and print those that survive."""
    modules = [Path(name) for name in names] or sorted(each.relative_to(ROOT) for each in ROOT.glob("passes/**/*.py"))
    every = [make for module in modules for make in mutants(module)]
    random.Random(seed).shuffle(every)
    survivors = None if again is None else {line.split(maxsplit=2)[2].strip() for line in again if " SURVIVED " in line}
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    importlib.import_module("irad.testing")
    importlib.import_module("irad").grad(lambda x: x * x)(1.0)  # whatever a derivative needs is loaded
    number = survived = 0
    for make in every:
        mutant = make()
        if mutant is None or (survivors is not None and mutant.change not in survivors):
            continue
        number += 1
        lives = _survives(mutant)
        survived += lives
        click.echo(f"{number} {'SURVIVED' if lives else 'killed'} {mutant.change}")
        if number == sample:
            break
    click.echo(f"{survived} of {number} mutants survived (seed {seed})")


if __name__ == "__main__":
    main()
