"""Signatures: the memory that calls of functions with a body can reach, according to their types.

Input   the module, what the request states by symbol and parameter name.
Output  `Signatures`: for each function what each of its parameters points to, None where nothing is known.
Method  LLVM drops and renumbers parameters of internal functions and makes special copies of them, but keeps names.

A callee stores a pointer only where its types let it, and only one to memory of the kind that belongs there. The kinds
are distinguished by `kind_of`; memory seen as numbers of several types is of several kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from irad.ir.module import Function, Module
from irad.ir.types import VOID, IntType, PointerType
from irad.passes.request import MemoryType, Signature

Signatures: TypeAlias = Mapping[Function, tuple[MemoryType | None, ...]]
Kind: TypeAlias = MemoryType | tuple[str, ...] | None

BOOKKEEPING: Final = ("bookkeeping",)
_COPY: Final = re.compile(r"\.specialized\.\d+$")


def match_signatures(module: Module, declared: Iterable[Signature]) -> Signatures:
    """The signatures of the functions that are left in a module."""
    by_symbol = {signature.symbol: dict(signature.memory) for signature in declared}
    found: dict[Function, tuple[MemoryType | None, ...]] = {}
    for function in module.defined_functions():
        memory = by_symbol.get(_COPY.sub("", function.name or ""))
        if memory is not None:
            found[function] = tuple(memory.get(param.name or "") for param in function.params)
    return found


def takes_no_numbers(function: Function, signatures: Signatures) -> bool:
    """True if a function is given, and gives back, neither floats nor memory that might hold some, by its types."""
    declared, result = signatures.get(function), function.function_type.result
    if declared is None or not (result is VOID or isinstance(result, IntType)):
        return False
    return all(
        isinstance(param.type, IntType) or (isinstance(param.type, PointerType) and _holds_no_numbers(holds))
        for param, holds in zip(function.params, declared, strict=True)
    )


def _holds_no_numbers(holds: MemoryType | None) -> bool:
    if holds is None or holds.declared or holds.holds_unknown_pointers() or holds.floats():
        return False
    return all(_holds_no_numbers(inner) for _, inner in holds.behind)


def kind_of(holds: MemoryType | None) -> Kind:
    """The kind of memory: containers by all that is known, numbers by the types of floats among them; None: any."""
    if holds is None or holds.declared or holds.holds_unknown_pointers():
        return None
    if holds.behind or holds.integer_prefix:
        return holds
    if not holds.fields:
        return BOOKKEEPING
    return tuple(sorted({text for _, text in holds.floats()})) or ("integers",)


def kinds_behind(memory: Iterable[MemoryType | None]) -> Iterator[tuple[Kind, MemoryType | None]]:
    """All kinds of memory that pointers in some memory point to, each once, with an example."""
    seen: set[Kind] = set()
    pending = [inner for holds in memory if holds is not None for _, inner in holds.behind]
    while pending:
        holds = pending.pop(0)
        kind = kind_of(holds)
        if kind in seen:
            continue
        seen.add(kind)
        yield kind, holds
        pending += [inner for _, inner in holds.behind] if holds is not None and kind is not None else []
