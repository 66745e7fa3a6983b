"""What the oracle treats as active: everything, as far as it can.

Input   a function with its analyses, its real activity among them.
Output  an `Activity` in which every float is active and all memory has a shadow.
"""

from __future__ import annotations

from irad.ir.instructions import CallSite, Instruction
from irad.ir.module import Function
from irad.ir.types import FunctionType, holds_floats
from irad.ir.values import Parameter, Value
from irad.passes.analysis.activity import Activity, can_have_shadow, mask_of
from irad.passes.analysis.callees import Pointer, Unknown, resolve
from irad.passes.memory.memory_types import MemoryTypes
from irad.passes.memory.objects import PointsTo
from irad.passes.memory.signatures import Signatures, takes_no_numbers
from irad.ruleset.interface import CallRule, Elementwise, Inactive
from irad.ruleset.registry import Registry


def everything(
    function: Function,
    points_to: PointsTo,
    memory_types: MemoryTypes,
    shadowable: frozenset[Parameter],
    registry: Registry,
    really: Activity,
    signatures: Signatures | None = None,
) -> Activity:
    """The plan `save_all`: every float is active and all memory has a shadow, as far as it can.

    Not the results of callees that may have no derivative, where nothing is ``really`` active: they stay constant, as
    do calls of functions that take no numbers by their ``signatures``. Nor
    memory that is one of several a pointer may lead to, if another can have no shadow: the pointer's might be null.
    """
    declared = signatures or {}
    constant = frozenset(i for i in function.instructions() if _is_constant_call(i, registry, really, declared))
    active: dict[Value, None] = {p: None for p in function.params if holds_floats(p.type)}
    for inst in function.instructions():
        if holds_floats(inst.type) and inst not in constant:
            active[inst] = None
    shadowed = mask_of(
        o
        for o in points_to.objects
        if can_have_shadow(o, shadowable, registry)
        and (memory_types.holds_floats(1 << o.index) or memory_types.holds_pointers >> o.index & 1)
    )
    by_value = frozenset(i for i in function.instructions() if isinstance(i, CallSite) and really.passes_by_value(i))
    shadowed = _without_mixed(points_to, shadowed, really.shadowed)
    return Activity(
        frozenset(active),
        shadowed,
        shadowed,
        points_to,
        {},
        constant_calls=constant,
        calls_by_value=by_value,
        really_varied=really.varied,
    )


def _without_mixed(points_to: PointsTo, shadowed: int, needed: int) -> int:
    """Leaves out of a set of objects those that a pointer may mix with others; and what they lead to."""
    groups = dict.fromkeys(mask for mask, _ in points_to.pointees.values())
    previous = -1
    while shadowed != previous:
        previous = shadowed
        for mask in groups:
            if mask & ~shadowed:
                shadowed &= ~mask | needed
        for item in points_to.objects:
            if not shadowed >> item.index & 1:
                shadowed &= ~points_to.contents[item.index] | needed
    return shadowed


def _is_constant_call(inst: Instruction, registry: Registry, really: Activity, signatures: Signatures) -> bool:
    """Whether a call gives a constant: an unknown callee to which active values go has been refused before."""
    if not isinstance(inst, CallSite):
        return False
    match resolve(inst, registry):
        case Inactive() | Unknown():
            return True
        case Pointer() | Function(function_type=FunctionType(variadic=True)):
            return not really.takes_part(inst)
        case Function() as function:
            return takes_no_numbers(function, signatures)
        case Elementwise() | CallRule():
            return False
