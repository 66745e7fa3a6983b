"""Drops the functions that a derivative does not call, such as a primal that no rule calls."""

from __future__ import annotations

from collections.abc import Iterator

from irad.ir.module import Function, Module
from irad.ir.worklist import reachable
from irad.passes.parallel.bulk import CLEAR
from irad.passes.program import DerivedFunctions


def drop_leftovers(module: Module, entry: DerivedFunctions) -> None:
    """Drops them; the entry's primal becomes internal."""
    entry.variant.function.prefix = ("internal",)
    starts = [*entry.functions.values(), *(f for name, f in module.functions.items() if name == CLEAR)]
    called = set(reachable(starts, _named))
    referenced = _referenced_by_globals(module)
    for name, function in list(module.functions.items()):
        if function in called or name in referenced or function.is_declaration:
            continue
        for inst in list(function.instructions()):
            inst.set_operands(())
        del module.functions[name]


def _named(function: Function) -> Iterator[Function]:
    return (v for inst in function.instructions() for v in inst.operands if isinstance(v, Function))


def _referenced_by_globals(module: Module) -> frozenset[str]:
    text = "\n".join(str(g.initializer) for g in module.globals.values() if g.initializer is not None)
    return frozenset(name for name in module.functions if name in text)
