"""How a kernel's derivative adds to shadows, and why so: what the reverse sweep decided, array by array."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from irad.ir.instructions import Load
from irad.ir.text.printer import print_lines
from irad.ir.values import Parameter, Value
from irad.passes.generated import GeneratedPair
from irad.passes.parallel.ownership import Adding
from irad.passes.request import ParameterKind
from irad.report.model import Addition, FunctionReport, ValueFacts
from irad.report.source import UserSource

_HOW: Final = {
    Adding.PLAIN: "plainly",
    Adding.ATOMIC: "by atomic operations",
    Adding.SUMMED: "by one atomic operation for each block",
}
_WHY: Final = {
    Adding.PLAIN: "no two threads access the same element",
    Adding.ATOMIC: "several threads may read the same element",
    Adding.SUMMED: "all threads of a block read the same element",
}
_ALONE: Final = "each thread has its own"
_NUMBER: Final = "all threads share the number"


def additions_of(made: GeneratedPair, report: FunctionReport, source: UserSource) -> tuple[Addition, ...]:
    """What the reverse sweep of a kernel adds to.

    Args:
        made: the pair of the kernel.
        report: on it.
        source: the user's lines.
    """
    names = print_lines(made.unit.function)[1]
    facts = {value.name: value for value in report.values if value.name}
    found: dict[tuple[str, str, str], set[int]] = {}
    for load, memory, how, why in _added(made):
        lines = found.setdefault((_named(facts.get(names.get(memory, ""))), _HOW[how], why), set())
        line = source.line_of(facts[names[load]].places)
        lines |= {line} if line is not None else set()
    kinds = zip(made.unit.function.params, made.unit.variant.kinds, strict=True)
    for param in (param for param, kind in kinds if kind is ParameterKind.ACTIVE):
        found[_named(facts.get(names[param])), _HOW[Adding.SUMMED], _NUMBER] = set()
    return tuple(Addition(*key, tuple(sorted(lines))) for key, lines in found.items())


def _named(facts: ValueFacts | None) -> str:
    return facts.source if facts is not None and facts.source else "a local array"


def _added(made: GeneratedPair) -> Iterator[tuple[Load, Value, Adding, str]]:
    """Each active load, with memory that it may read: to the shadow of that its cotangent is added."""
    unit = made.unit
    for inst in unit.function.instructions():
        if isinstance(inst, Load) and unit.activity.is_active(inst):
            pointer = inst.operands[0]
            how = made.sweep.adding(pointer, inst.type)
            for item in unit.points_to.of(pointer):
                if item.value is not None:
                    is_alone = how is Adding.PLAIN and not isinstance(item.value, Parameter)
                    yield inst, item.value, how, _ALONE if is_alone else _WHY[how]
