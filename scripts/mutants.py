#!/usr/bin/env python
"""Small changes of `passes/` that its tests do not notice: `python scripts/mutants.py --sample 50 --seed 1`.

Names of modules limit the sample to them.

Each mutant is a change of one function: an operator, a condition, a number, a statement left out. No file is written:
the mutant replaces the code of the function in a process forked from this one, which has collected the tests. There run
those tests that call the function, those of the module's own file first, then the cheapest of each file, until one
fails or the budget is spent. What survives is printed: code that does the same, or a test to be written;
`--again FILE` runs those of an earlier output once more.

Which test calls what is found by running all of them once, with `--map` once more. A test may use what another of its
file has derived, so those that call no pass at all go with their file.
"""

from __future__ import annotations

import ast
import builtins
import functools
import gc
import importlib
import itertools
import json
import multiprocessing
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FunctionType
from typing import Final, NamedTuple, TextIO

import click
import pytest

ROOT: Final = Path(__file__).parents[1]
MODULES: Final = sorted(each.relative_to(ROOT) for each in ROOT.glob("passes/**/*.py"))
TESTS: Final = (
    "tests/passes",
    "tests/api/forward/test_forward.py",
    "tests/api/forward/test_taylor.py",
    "tests/debug/test_tape.py",
    "tests/debug/test_values.py",
    "tests/programs/test_short_loops.py",
    "tests/programs/test_stored_values.py",
    "tests/programs/test_updates.py",
)
"""Those of the passes, and some whole derivatives."""
MAP: Final = Path(tempfile.gettempdir()) / "irad_mutants_map.jsonl"
SWAPS: dict[type[ast.AST], type[ast.AST]] = {ast.Eq: ast.NotEq, ast.Lt: ast.LtE, ast.Gt: ast.GtE, ast.In: ast.NotIn}
SWAPS |= {ast.Is: ast.IsNot, ast.And: ast.Or, ast.Add: ast.Sub, ast.BitOr: ast.BitAnd}
SWAPS |= {new: old for old, new in SWAPS.items()}
_PROBE = "_irad_called"
_ANY, _FAILS = "any", "fails as it is"  # in place of the functions that a test calls: it is new, or of no use
_MEMORY = 8 << 30  # bytes of address space: a loop that does not end may allocate
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
        told = f"{module}:{node.lineno}:{node.col_offset}: {before} -> {ast.unparse(node)}"  # type: ignore[attr-defined]
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


def _name(module: Path) -> str:
    return f"irad.{'.'.join(module.with_suffix('').parts)}".removesuffix(".__init__")


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
        case ast.Expr(value=ast.Call(func=ast.Name("assert_never"))):
            pass  # never runs
        case ast.Expr(value=ast.Call() | ast.Yield() | ast.YieldFrom()) | ast.Return(value=ast.expr()):
            yield lambda n: setattr(n, "value", ast.Constant(None))


class _Known(NamedTuple):
    """Seconds of CPU that a test takes, and the functions of passes/ that it calls."""

    seconds: float = 0.0
    calls: Sequence[str] = (_ANY,)


@dataclass
class _Runner:
    """A plugin of pytest that runs mutants where pytest would run the tests that it has collected."""

    made: Iterator[Mutant]
    budget: float
    functions: dict[str, list[FunctionType]] = field(default_factory=lambda: defaultdict(list))
    known: dict[str, _Known] = field(default_factory=lambda: defaultdict(_Known))

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Prints the outcome of each mutant."""
        if session.testsfailed:
            raise click.ClickException("pytest cannot collect the tests")
        gc.unfreeze()  # what is frozen is not listed
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and str(each.__module__).startswith("irad.passes"):
                self.functions[f"{each.__module__}:{each.__qualname__}"].append(each)
            elif isinstance(each, functools._lru_cache_wrapper) and each.__module__.startswith("irad.passes"):
                each.cache_clear()  # a child shall call what it uses
        gc.freeze()
        if not MAP.exists():
            _in_child(functools.partial(_record, self.functions, session))
        self.known |= {test: _Known(*of) for test, of in map(json.loads, MAP.read_text("utf-8").splitlines())}
        outcomes = Counter[str]()
        for number, mutant in enumerate(self.made, 1):
            outcome, tests = self._outcome(session, mutant)
            outcomes[outcome] += 1
            click.echo(f"{number} {outcome} {mutant.change}  # {tests}")
        click.echo(", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
        return True

    def _outcome(self, session: pytest.Session, mutant: Mutant) -> tuple[str, str]:
        function = f"{_name(mutant.module)}:{mutant.function}"
        calling = self._calling(session, function, f"test_{mutant.module.stem}.py")
        spent = itertools.accumulate(self.known[item.nodeid].seconds for item in calling)
        chosen = [item for item, until in zip(calling, spent, strict=True) if until <= self.budget] or calling[:1]

        def run() -> None:
            for each in self.functions[function]:
                each.__code__ = mutant.code
            for item, following in zip(chosen, [*chosen[1:], None], strict=True):
                item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
                if session.testsfailed:
                    os._exit(pytest.ExitCode.TESTS_FAILED)

        limit = 5 + 3 * int(sum(self.known[item.nodeid].seconds for item in chosen))
        status = _in_child(run, limit) if chosen else 0
        outcome = {0: "SURVIVED", 1: "killed", -signal.SIGXCPU: "timed-out"}.get(status, "crashed")
        return outcome, f"{len(chosen)} of {len(calling)} tests"

    def _calling(self, session: pytest.Session, function: str, own: str) -> list[pytest.Item]:
        """Tests that call a function: those of the own file, then the cheapest of each file, the second of each, …."""
        files = {item.path for item in session.items if function in self.known[item.nodeid].calls}
        calling, seen = [], Counter[Path]()
        for item in sorted(session.items, key=lambda item: self.known[item.nodeid].seconds):
            calls = self.known[item.nodeid].calls
            if function in calls or _ANY in calls or (item.path in files and not calls):
                calling.append((item.path.name != own, seen[item.path], len(calling), item))
                seen[item.path] += 1
        return [item for *_, item in sorted(calling)]


def _record(functions: dict[str, list[FunctionType]], session: pytest.Session) -> None:
    """Writes down what all tests call and take; not of those that fail, which no mutant then runs."""
    calls: set[str] = set()
    for module in MODULES:
        for function, code in _functions(_probed(module)):
            for each in functions[f"{_name(module)}:{function}"]:
                each.__code__ = code

    def probe() -> None:
        caller = sys._getframe(1)  # a function or method, or one that is defined in it
        calls.add(f"{caller.f_globals['__name__']}:{caller.f_code.co_qualname.split('.<locals>')[0]}")

    setattr(builtins, _PROBE, probe)
    part = MAP.with_suffix(".part")
    with part.open("w", encoding="utf-8") as lines:
        for item, following in zip(session.items, [*session.items[1:], None], strict=True):
            before, failed = time.process_time(), session.testsfailed
            calls.clear()
            item.ihook.pytest_runtest_protocol(item=item, nextitem=following)
            seconds = time.process_time() - before
            known = _Known(seconds, sorted(calls) if session.testsfailed == failed else [_FAILS])
            lines.write(f"{json.dumps([item.nodeid, known])}\n")
    part.replace(MAP)


def _probed(module: Path) -> CodeType:
    """The code of a module in which every function first calls the probe."""
    tree = ast.parse((ROOT / module).read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.body.insert(0, ast.Expr(ast.Call(ast.Name(_PROBE, ast.Load()), [], [])))
    return compile(ast.fix_missing_locations(tree), str(module), "exec")


def _in_child(run: Callable[[], None], seconds: int = resource.RLIM_INFINITY) -> int:
    """The exit status of a function in a process of its own, which may take some seconds of CPU."""

    def start() -> None:
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, resource.RLIM_INFINITY))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, resource.RLIM_INFINITY))
        run()
        os._exit(0)

    process = multiprocessing.get_context("fork").Process(target=start)
    process.start()
    process.join()
    return process.exitcode or 0


@click.command()
@click.argument("names", nargs=-1, metavar="[MODULE]...")
@click.option("--sample", default=50, show_default=True, help="Number of mutants.")
@click.option("--seed", default=1, show_default=True)
@click.option("--budget", default=20, show_default=True, help="Seconds of CPU that the tests of a mutant may take.")
@click.option("--map", "map_again", is_flag=True, help="Find out once more which test calls what.")
@click.option("--again", type=click.File(), help="Only mutants that survived according to this earlier output.")
def main(names: tuple[str, ...], sample: int, seed: int, budget: int, map_again: bool, again: TextIO | None) -> None:
    """Run a sample of mutants of passes/, or of some of its modules, and print those that survive."""
    makers = [make for module in (map(Path, names) if names else MODULES) for make in mutants(module)]
    random.Random(seed).shuffle(makers)
    made = (mutant for make in makers if (mutant := make()) is not None)
    if again is not None:
        survivors = {line.split(maxsplit=2)[2].split("  # ")[0].strip() for line in again if " SURVIVED " in line}
        made = (mutant for mutant in made if mutant.change in survivors)
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    importlib.import_module("irad.testing")
    for module in MODULES:
        importlib.import_module(_name(module))
    if map_again:
        MAP.unlink(missing_ok=True)
    runner = _Runner(itertools.islice(made, sample), budget)
    # pytest would write out what failing assertions compare, whole programs as a rule
    options = ["-qq", "-s", "--assert=plain", "--tb=native", "-p", "no:cacheprovider"]
    sys.exit(pytest.main([*options, *TESTS], plugins=[runner]))


if __name__ == "__main__":
    main()
