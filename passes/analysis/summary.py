"""Summary of a function's effects on memory, so that its callers need not treat it as unknown code.

Input   a loop function, or one that has a rule: functions whose callers know what the arguments point to.
Output  attributes of the function, from which `callees` makes `Effects`: the parameters it reads and writes.
Method  points-to of the function alone; every load, store and call is charged to the parameters it may touch.
        A user's rule may read numbers that the body does not: those of untouched parameters count as read.
Limit   no summary where pointers are read from the arguments' memory or stored there, or a global is written: then the
        call is refused where it takes part in a derivative. So it is where one piece of memory is returned as numbers
        of two types.

    define internal void @kernel.loop(…) "irad.parallel" "irad.reads"="4,5" "irad.writes"="6"
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import combinations

from irad.ir.instructions import CallSite, Instruction, Store
from irad.ir.module import Function
from irad.ir.types import NamedStructType, StructType, Type, holds_floats
from irad.ir.values import GlobalVariable, Parameter, Value
from irad.passes.callees import CAPTURES, FILLS, READS, TWO_VIEWS, WRITES
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.objects import SEPARATE, MemoryObject, ObjectKind, PointsTo, union
from irad.passes.memory.points_to import NO_SIGNATURES, find_objects
from irad.passes.memory.signatures import BOOKKEEPING, Kind, Signatures, kind_of
from irad.ruleset.memory_type import MemoryType
from irad.ruleset.registry import Registry


def summarise(
    function: Function,
    memory: Mapping[Parameter, MemoryType | None],
    registry: Registry,
    result: Parameter | None = None,
    *,
    returns_new: bool = False,
    has_rule: bool = False,
    signatures: Signatures = NO_SIGNATURES,
) -> None:
    """Attaches the summary, where there is one.

    Args:
        function: it.
        memory: memory that the parameters point to, if known.
        registry: the rules.
        result: the parameter that points to memory for the result, in which pointers may be passed on.
        returns_new: whether those point to new memory, as a user promised.
        has_rule: whether a user's rule says what the result depends on: maybe on numbers that the body does not read.
        signatures: signatures of the functions of the program.
    """
    points_to = find_objects(function, memory, registry, signatures=signatures)
    numbers = [p for p, holds in memory.items() if holds is not None and all(text != "ptr" for _, text in holds.fields)]
    mod_ref = ModRef(points_to, registry)
    reads = writes = 0
    for inst in function.instructions():
        if _hands_on_pointers(inst, mod_ref, numbers):
            return
        access = mod_ref.of(inst)
        reads |= access.reads | access.frees  # a callee looks at what it may free
        writes |= access.writes
    if any(_is_beyond(item) for item in points_to.members(reads | writes)):
        return
    # The attributes can name parameters only.
    if any(item.kind is ObjectKind.GLOBAL for item in points_to.members(writes)):
        return
    handed_on = points_to.contents[points_to.of(result)[0].index] if result is not None else 0
    # LLVM merges the last stores of two ends of a function: the result's in one, a raised exception's in the other.
    handed_on &= ~union(1 << item.index for item in points_to.members(handed_on) if _is_constant_record(item))
    kinds = {item.kind for item in points_to.members(handed_on)}
    if returns_new and kinds:
        kinds, handed_on = {ObjectKind.ALLOCATION}, 0
    if not kinds <= {ObjectKind.ARGUMENT, ObjectKind.ALLOCATION, ObjectKind.HEADER}:
        return
    if result is not None and _has_two_views(points_to, result, signatures.get(function, (None,))[0]):
        function.attributes = (*function.attributes, TWO_VIEWS)
        return
    if kinds - {ObjectKind.ARGUMENT}:
        function.attributes = (*function.attributes, f'"{FILLS}"="0"')
    if has_rule:
        reads |= _untouched(points_to, memory, reads | writes | handed_on)
    for key, mask in ((READS, reads), (WRITES, writes), (CAPTURES, handed_on)):
        positions = ",".join(map(str, sorted(_parameter_numbers(function, points_to, mask))))
        function.attributes = (*function.attributes, f'"{key}"="{positions}"')


def _untouched(points_to: PointsTo, memory: Mapping[Parameter, MemoryType | None], touched: int) -> int:
    """The memory with floats of the parameters through which a function does nothing."""
    masks = [points_to.mask(param) for param, holds in memory.items() if holds is not None and holds.floats()]
    return union(mask for mask in masks if not mask & touched)


def _has_two_views(points_to: PointsTo, result: Parameter, declared: MemoryType | None) -> bool:
    """True if one piece of memory is returned as numbers of two types: callers distinguish memory by these."""
    found: dict[Kind, int] = {}
    for offset, holds in declared.behind if declared is not None else ():
        kind = kind_of(holds)
        if kind not in (None, BOOKKEEPING) and offset is not None:
            found[kind] = found.get(kind, 0) | points_to.behind(result, (offset,))
    known = union(1 << item.index for item in points_to.objects if not _is_beyond(item))
    return any(one & other & known for one, other in combinations(found.values(), 2))


def _hands_on_pointers(inst: Instruction, mod_ref: ModRef, numbers: Collection[Parameter]) -> bool:
    """True if pointers may end up in memory that the caller can see, or something is freed that is the caller's.

    ``numbers`` are the parameters that point to memory without pointers.
    """
    points_to, access = mod_ref.points_to, mod_ref.of(inst)
    match inst:
        case Store(operands=[value, pointer]):
            taking = points_to.mask(pointer) if points_to.mask(value) else 0
        case CallSite() if access.is_opaque:
            taking = access.reads
        case _:
            taking = access.captures | access.frees | union(to for to, _ in access.moves)
            taking |= union(points_to.mask(to) for to, by in access.copies if _holds_pointers(points_to, by, numbers))
    return any(_may_take_pointers(item, numbers) for item in points_to.members(taking))


def _holds_pointers(points_to: PointsTo, source: Value, numbers: Collection[Parameter]) -> bool:
    return any(points_to.contents[i.index] for i in points_to.of(source) if i.value not in numbers)


def _may_take_pointers(item: MemoryObject, numbers: Collection[Parameter]) -> bool:
    """True if a callee may leave pointers there for the caller to find: not in arrays of numbers.

    Nor does a loop free the caller's arrays, which it borrows, even where one pointer may point to them and to its own.
    """
    return not _is_own(item) and item.value not in numbers


def _is_constant_record(item: MemoryObject) -> bool:
    """True for what describes an exception, for one; constant arrays are arrays of bytes, whatever they hold."""
    value = item.value
    return isinstance(value, GlobalVariable) and value.constant and _is_record(value.value_type)


def _is_record(kind: Type) -> bool:
    return isinstance(kind, StructType | NamedStructType) and not holds_floats(kind)


def _is_own(item: MemoryObject) -> bool:
    return item.kind in SEPARATE


def _is_beyond(item: MemoryObject) -> bool:
    return item.kind in (ObjectKind.REACHABLE, ObjectKind.UNKNOWN)


def _parameter_numbers(function: Function, points_to: PointsTo, mask: int) -> Iterator[int]:
    for item in points_to.members(mask):
        if item.kind is ObjectKind.ARGUMENT and isinstance(item.value, Parameter):
            yield function.params.index(item.value)
