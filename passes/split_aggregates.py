"""Splits phis and selects of aggregates into phis and selects of their leaves.

Input   a function in normal form.
Output  none; the function is rewritten. No phi or select has an aggregate type any more.
Why     LLVM merges whole array descriptors (`{ ptr, ptr, i64, i64, ptr, … }`) where branches give different arrays.
        Split, the pointer to the data has a shadow like any other pointer, and is not confused with the other
        pointers beside it.

    %a = phi {ptr, i64} [ %x, %l ], [ %y, %r ]        %a.0 = phi ptr [ x.0, %l ], [ y.0, %r ]
    %p = extractvalue {ptr, i64} %a, 0                (uses of %p use %a.0)
"""

from __future__ import annotations

from collections.abc import Iterator

from irad.ir.builder import Builder
from irad.ir.instructions import ExtractValue, InsertValue, Instruction, Phi, Select, replace_uses
from irad.ir.module import Function
from irad.ir.types import ArrayType, NamedStructType, StructType, Type, element_types
from irad.ir.values import Poison, Value

Path = tuple[int, ...]


def split_aggregates(function: Function) -> None:
    """Rewrites all of them."""
    merges = [i for i in function.instructions() if isinstance(i, Phi | Select) and _is_aggregate(i.type)]
    for phi in [i for i in merges if isinstance(i, Phi)]:
        _split_phi(phi)
    for select in [i for i in merges if isinstance(i, Select)]:
        _split_select(select)
    if merges:
        _fold_extracts(function)


def _is_aggregate(type_: Type) -> bool:
    return isinstance(type_, StructType | NamedStructType | ArrayType)


def leaves(type_: Type, path: Path = ()) -> Iterator[tuple[Path, Type]]:
    """Paths and types of the scalars of an aggregate."""
    if not _is_aggregate(type_):
        yield path, type_
        return
    for index, element in enumerate(element_types(type_)):
        yield from leaves(element, (*path, index))


def _split_phi(phi: Phi) -> None:
    build = Builder.before(phi)
    parts: dict[Path, Value] = {}
    for path, type_ in leaves(phi.type):
        part = build.phi(type_, name=phi.name)
        for value, block in phi.incoming():
            part.add_incoming(Builder.before(block.terminator).extract_value(value, path), block)
        parts[path] = part
    assert phi.block is not None
    _replace(phi, parts, Builder.at_start(phi.block))


def _split_select(select: Select) -> None:
    build = Builder.before(select)
    condition, a, b = select.operands
    parts: dict[Path, Value] = {}
    for path, _ in leaves(select.type):
        x, y = build.extract_value(a, path), build.extract_value(b, path)
        parts[path] = build.select(condition, x, y, name=select.name)
    _replace(select, parts, build)


def _replace(whole: Instruction, parts: dict[Path, Value], build: Builder) -> None:
    """Puts the parts together again; what takes them apart is folded later."""
    packed: Value = Poison(whole.type)
    for path, part in parts.items():
        packed = build.insert_value(packed, part, path)
    replace_uses(whole, packed)
    whole.erase()


def _fold_extracts(function: Function) -> None:
    """Takes leaves from where they were put in, and drops the packing that nobody needs any more."""
    changed = True
    while changed:
        changed = False
        for inst in list(function.instructions()):
            if isinstance(inst, ExtractValue):
                known = _put_in(inst.operands[0], inst.indices)
                if known is not None:
                    replace_uses(inst, known)
                    inst.erase()
                    changed = True
            elif isinstance(inst, InsertValue) and not inst.users:
                inst.erase()
                changed = True


def _put_in(aggregate: Value, path: Path) -> Value | None:
    """What a chain of insertvalue put at a path; None when it does not say."""
    while isinstance(aggregate, InsertValue):
        if aggregate.indices == path:
            return aggregate.operands[1]
        if aggregate.indices[: len(path)] == path or path[: len(aggregate.indices)] == aggregate.indices:
            return None
        aggregate = aggregate.operands[0]
    return None
