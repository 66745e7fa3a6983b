"""Finds derivatives that would get lost because the bits of a number are used as something else.

Input   a `Unit`.
Output  the instructions where bits of active numbers, computed with as integers, become numbers again (`lost_bits`), or
        are read as numbers of another type (`reinterpreted`).
Method  an integer, or a vector of them, is tainted when it is the bits of an active float, loaded from active memory or
        cast, or computed from a tainted one, or loaded from where a tainted one was stored (in memory without numbers:
        anywhere in it). A load counts if a single byte of a float is in it.
        It is lost when it is cast to an active float, stored where active floats are or put anywhere by an atomic
        update. Where the program has no types, functions with a body pass bits on, too: one that is given active
        numbers and turns them into bits returns tainted integers, and bits are lost that are passed to one that turns
        bits into numbers and returns or writes active ones. Where it has types, only bits that the function itself made
        from a float are lost in this way.
Limit   integers read from a place that cannot be told from a float's count as floats.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import field
from typing import Final, assert_never, cast

from irad.errors import UnsupportedError
from irad.ir import instructions as ir, types
from irad.ir.module import Block, Function
from irad.ir.types import (
    ArrayType,
    FloatType,
    IntType,
    NamedStructType,
    StructType,
    Type,
    VectorType,
    element_types,
    holds_floats,
    size_of,
)
from irad.ir.values import InlineAsm, Value
from irad.passes.callees import Pointer
from irad.passes.memory.addresses import ANYWHERE, Position, fixed_distance
from irad.passes.memory.objects import indices
from irad.passes.memory.returned_addresses import is_integer_intrinsic
from irad.passes.unit import Unit
from irad.records import dataclass


def lost_bits(unit: Unit) -> list[ir.Instruction]:
    """The instructions at which a derivative would be lost, in order."""
    if unit.everything:
        return []
    tainted: set[Value] = set()
    scratch = _Scratch(unit)
    instructions = [i for block in unit.cfg.order for i in block.instructions]
    changed = True
    while changed:
        before = len(tainted), scratch.count
        for inst in instructions:
            if inst not in tainted and _is_tainted(unit, inst, tainted, scratch):
                tainted.add(inst)
            if isinstance(inst, ir.Store) and inst.operands[0] in tainted:
                scratch.note(inst)
        changed = before != (len(tainted), scratch.count)
    return [i for i in instructions if i.block in unit.live and _loses(unit, i, tainted)]


def lost_error(unit: Unit, inst: ir.Instruction) -> UnsupportedError:
    """Bits of an active number that are computed with, as far as that is certain."""
    rule = "give the function that does this a rule: irad.rules.easy_rule"
    if unit.program.request.has_types and isinstance(inst, ir.Store) and not _is_followed(unit, inst.operands[1]):
        return UnsupportedError(
            "irad cannot tell whether an active number is manipulated as an integer here, bit by bit",
            "(a) if a recursive function changes integers in nodes, traverse the nodes in a loop, with a list as the "
            f"stack, (b) use floating-point operations or (c) {rule}",
            "the memory may also hold floats, at positions that irad does not know",
        )
    return UnsupportedError(
        "an active number is manipulated as an integer, bit by bit, and becomes a number again",
        f"(a) use floating-point operations or (b) {rule}",
        "integer arithmetic has no derivative, so the derivative of the number would be lost",
    )


def _is_followed(unit: Unit, pointer: Value) -> bool:
    """True if the contents at a pointer are known: no callee may have put numbers there."""
    unknown = unit.points_to.mask(pointer) & unit.memory_types.opaque
    return unit.points_to.position(pointer) != ANYWHERE and not unknown


@dataclass(eq=False, slots=True)
class _Scratch:
    """Places that tainted integers are stored to: all of an object without floats, else the single places."""

    unit: Unit
    places: dict[int, dict[tuple[Position, int], None]] = field(default_factory=dict)
    count: int = 0

    def note(self, store: ir.Store) -> None:
        """Records the memory that a store writes to."""
        value, pointer = store.operands
        for item in self.unit.points_to.of(pointer):
            has_floats = self.unit.memory_types.has_floats(item.index)
            # Among floats the place matters, since an integer beside a float is not its bits; elsewhere any place will
            # do.
            place = self.unit.points_to.position(pointer) if has_floats else ANYWHERE
            known = self.places.setdefault(item.index, {})
            if (place, size_of(value.type)) not in known:
                known[place, size_of(value.type)] = None
                self.count += 1

    def meets(self, pointer: Value, read: Type) -> bool:
        """True if a read at an address may contain a byte of a tainted integer."""
        size = size_of(read)
        at = self.unit.points_to.position(pointer)
        return any(
            at.moved(Position(shift, 0)).may_be(place)
            for item in self.unit.points_to.of(pointer)
            for place, stored in self.places.get(item.index, ())
            for shift in range(1 - stored, size)
        )


def _is_tainted(unit: Unit, inst: ir.Instruction, tainted: set[Value], scratch: _Scratch) -> bool:
    shape = cast("ir.AnyInstruction", inst)
    match shape:
        case ir.Load() | ir.AtomicRMW() | ir.CmpXchg():
            pointer, read = inst.operands[0], inst.type if isinstance(inst, ir.Load) else inst.operands[-1].type
            if not _is_integers(read):
                return False
            return scratch.meets(pointer, read) or meets_numbers(unit, pointer, read, unit.activity.varied_objects)
        case ir.Cast(opcode="bitcast", operands=[source]) if holds_floats(source.type):
            return source in unit.activity.varied and not holds_floats(inst.type)
        case ir.Call() | ir.Invoke() | ir.CallBr():
            if is_integer_intrinsic(shape):
                return any(argument in tainted for argument in shape.arguments)
            is_given = not unit.program.request.has_types and _has_body(unit, shape) and _takes_varied(unit, shape)
            return is_given and _holds_integers(inst.type) and _callee_has(shape, _makes_bits)
        case (
            ir.Binary() | ir.Cast() | ir.Phi() | ir.Freeze() | ir.Select() | ir.ExtractValue() | ir.InsertValue()
            | ir.ExtractElement() | ir.InsertElement() | ir.ShuffleVector()
        ):  # fmt: skip
            return any(v in tainted for v in _parts(shape)) and not holds_floats(inst.type)
        case (
            ir.Unary() | ir.ICmp() | ir.FCmp() | ir.Alloca() | ir.GetElementPtr() | ir.VAArg() | ir.Store()
            | ir.Fence() | ir.Ret() | ir.Br() | ir.CondBr() | ir.Switch() | ir.IndirectBr() | ir.Unreachable()
            | ir.Resume() | ir.LandingPad() | ir.ExceptionPad() | ir.ExceptionTerminator()
        ):  # fmt: skip
            return False
        case _:
            assert_never(shape)


def _parts(inst: ir.Instruction) -> Sequence[Value]:
    """The operands whose bits may be among those of the result."""
    return inst.operands[1:] if isinstance(inst, ir.Select) else inst.operands


def _loses(unit: Unit, inst: ir.Instruction, tainted: set[Value]) -> bool:
    match inst:
        case ir.Cast(opcode="bitcast", operands=[source]):
            return source in tainted and inst in unit.activity.useful
        case ir.AtomicRMW() | ir.CmpXchg():
            return any(value in tainted for value in inst.operands[1:])
        case ir.Store(operands=[value, pointer]):
            return value in tainted and meets_numbers(unit, pointer, value.type, unit.activity.useful_objects)
        case ir.CallSite():
            hands_on, takes = (_is_bits, _casts_bits) if unit.program.request.has_types else (_is_integer, _takes_bits)
            is_given = any(a in tainted and hands_on(a) for a in inst.arguments) and _has_body(unit, inst)
            return is_given and _gives_useful(unit, inst) and _callee_has(inst, takes)
        case _:
            return False


def _holds_integers(type_: Type) -> bool:
    """True if values of a type may hold the bits of a number as integers."""
    if isinstance(type_, StructType | NamedStructType | ArrayType):
        return any(_holds_integers(each) for each in element_types(type_))
    return _is_integers(type_) and size_of(type_) >= 4


def _is_integers(type_: Type) -> bool:
    return isinstance(type_.element if isinstance(type_, VectorType) else type_, IntType)


def _has_body(unit: Unit, call: ir.CallSite) -> bool:
    return unit.mod_ref.of(call).is_opaque and isinstance(unit.mod_ref.callee(call), Function | Pointer)


def _callee_has(call: ir.CallSite, wanted: Callable[[ir.Instruction], bool]) -> bool:
    """True if a callee, or a function it calls, has such an instruction; an indirect callee may have any."""
    pending, seen = [call.callee], {call.callee}
    for callee in pending:
        if not isinstance(callee, Function):
            return True
        for inst in callee.instructions():
            if wanted(inst):
                return True
            if isinstance(inst, ir.CallSite) and inst.callee not in seen and not _is_assembly(inst):
                seen.add(inst.callee)
                pending.append(inst.callee)
    return False


def _is_assembly(call: ir.CallSite) -> bool:
    return isinstance(call.callee, InlineAsm)


def _makes_bits(inst: ir.Instruction) -> bool:
    match inst:
        case ir.Cast(opcode="bitcast", operands=[source]):
            return holds_floats(source.type) and not holds_floats(inst.type)
        case ir.Load() | ir.AtomicRMW() | ir.CmpXchg():
            return _holds_integers(inst.type)
        case _:
            return False


def _is_integer(value: Value) -> bool:
    return not holds_floats(value.type)


def _is_bits(value: Value) -> bool:
    """True if a value is, as the function itself shows, the bits of a float or computed from them."""
    pending, seen = [value], {value}
    for each in pending:
        match each:
            case ir.Cast(opcode="bitcast", operands=[source]) if holds_floats(source.type):
                return True
            case (
                ir.Binary() | ir.Cast() | ir.Phi() | ir.Freeze() | ir.Select() | ir.ExtractValue() | ir.InsertValue()
                | ir.ExtractElement() | ir.InsertElement() | ir.ShuffleVector()
            ):  # fmt: skip
                new = [v for v in _parts(each) if v not in seen]
                seen.update(new)
                pending.extend(new)
            case _:
                pass
    return False


def _casts_bits(inst: ir.Instruction) -> bool:
    match inst:
        case ir.Cast(opcode="bitcast", operands=[source]):
            return holds_floats(inst.type) and not holds_floats(source.type)
        case _:
            return False


def _takes_bits(inst: ir.Instruction) -> bool:
    match inst:
        case ir.Cast():
            return _casts_bits(inst)
        case ir.Store() | ir.AtomicRMW() | ir.CmpXchg():
            return any(_holds_integers(value.type) for value in inst.operands)
        case _:
            return False


def _takes_varied(unit: Unit, call: ir.CallSite) -> bool:
    reached = unit.mod_ref.of(call).reads
    return any(a in unit.activity.varied for a in call.arguments) or bool(reached & unit.activity.varied_objects)


def _gives_useful(unit: Unit, call: ir.CallSite) -> bool:
    written = unit.mod_ref.of(call).reads & unit.activity.useful_objects
    return call in unit.activity.useful or unit.memory_types.holds_floats(written)


def meets_numbers(unit: Unit, pointer: Value, type_: Type, objects: int) -> bool:
    """True if integers of a type at an address have bytes in common with a float, if some of the objects are there."""
    if not unit.points_to.mask(pointer) & objects:
        return False
    memory, size = unit.memory_types, size_of(type_)
    if size < size_of(types.FLOAT):
        return memory.is_inside_float(pointer)
    return any(
        memory.is_float_at(pointer, kind, distance)
        for kind in (types.DOUBLE, types.FLOAT)
        for distance in range(size_of(types.FLOAT) - size_of(kind), size, size_of(types.FLOAT))
    )


# ------------------------------------------------------------------------------------------------ numbers as others

_RECORD: Final = 8  # bytes of the smallest record that may hold numbers of two types in places of their own


@dataclass(frozen=True, slots=True)
class _Access:
    """Numbers of one type that are loaded or stored.

    Attributes:
        place: where in an array of records.
        at: where in the object, as far as that is known.
        start: where the array within a record begins of which an index hides the place; None if the place is known.
        record: where the place is hidden, the pointer that it is at a constant distance from; else None.
        distance: from there, in bytes.
    """

    place: Position
    at: Position
    kind: FloatType
    start: Position | None
    record: Value | None = None
    distance: int = 0

    def meets(self, other: _Access) -> bool:
        """True if the numbers may have bytes in common."""
        return _meets(self.place, self.kind, other.place, other.kind)

    def is_aligned(self) -> bool:
        """True if its position is that of an element in an array of numbers of its type."""
        size = size_of(self.kind)
        return self.at == ANYWHERE or (self.at.offset % size == 0 and self.at.period % size == 0)

    def is_across(self, other: _Access) -> bool:
        """True if the numbers, of one type, have some bytes in common, but not all."""
        return (
            self.kind is other.kind
            and _meets(self.at, self.kind, other.at, other.kind)
            and not self.at.may_be(other.at)
        )

    def is_beside(self, other: _Access) -> bool:
        """True if this is in an array within each record that begins beside the other numbers."""
        start = self.start
        return (
            start is not None
            and start.period >= _RECORD
            and not _meets(start, self.kind, other.start or other.place, other.kind)
        )

    def is_field(self, fields: Set[tuple[FloatType, int]]) -> bool:
        """True if this is one of the fields of a record, at any address."""
        return self.record is not None and (self.kind, self.distance) in fields

    def is_of_another(self, written: Set[_Access], fields: Set[tuple[FloatType, int]]) -> bool:
        """True if the written number has another type, or overlaps this one partially."""
        if any(other.is_across(self) for other in written):
            return True
        others = [other for other in written if other.kind is not self.kind and self.meets(other)]
        if self.is_field(fields):
            others = [other for other in others if not other.is_field(fields)]
        is_own = any(other.kind is self.kind and self.meets(other) for other in written)
        return any(not is_own or not other.is_beside(self) for other in others)


def reinterpreted(unit: Unit) -> list[ir.Instruction]:
    """The loads of active numbers from bytes that are written as active numbers of another type.

    A cotangent of one type would be added to the bits of one of the other. Of memory that only callees write, the loads
    are compared with each other. Memory of which the caller says what it holds is left out: whatever does not fit is
    refused anyway. Where numbers of the load's own type are stored, too, a store by an index into an array within each
    record does not count against it, if that array begins beside them: the index hides which bytes of the record it
    selects. An array that is seen as numbers of two types begins where both do. Nor do the fields of a record, where
    nothing is known of the place of the record but that some are read or written from one pointer, side by side.
    """
    if unit.everything:
        return []
    accesses = [access for block in unit.cfg.order if block in unit.live for access in _accesses(unit, block)]
    alike = {  # one table may lead many loads to all objects: look at these once
        inst: (isinstance(inst, ir.Load), unit.points_to.mask(pointer), _access(unit, pointer, kind))
        for inst, pointer, kind in accesses
    }
    loaded: dict[int, set[_Access]] = {}
    stored: dict[int, set[_Access]] = {}
    for is_load, mask, access in set(alike.values()):
        for item in unit.points_to.members(mask):
            if unit.memory_types.layouts[item.index] is None:
                (loaded if is_load else stored).setdefault(item.index, set()).add(access)
    written = {index: stored.get(index) or loaded[index] for index in loaded}
    mixed = {index: its for index, its in written.items() if _may_be_mixed(its | loaded[index])}
    fields = {index: _fields(its | loaded[index]) for index, its in mixed.items()}
    refused = {
        (mask, access)
        for is_load, mask, access in set(alike.values())
        if is_load and any(access.is_of_another(mixed[i], fields[i]) for i in indices(mask) if i in mixed)
    }
    return [inst for inst, _, _ in accesses if isinstance(inst, ir.Load) and alike[inst][1:] in refused]


def _may_be_mixed(accesses: Set[_Access]) -> bool:
    return len({access.kind for access in accesses}) > 1 or not all(access.is_aligned() for access in accesses)


def _access(unit: Unit, pointer: Value, kind: FloatType) -> _Access:
    place, at = unit.points_to.record_position(pointer), unit.points_to.position(pointer)
    start, pointer_of_number = place, pointer
    while start.period in range(1, _RECORD) and isinstance(pointer, ir.GetElementPtr):
        pointer = pointer.operands[0]
        start = unit.points_to.record_position(pointer)
    record, distance = fixed_distance(pointer_of_number) if place.period in range(1, _RECORD) else (None, 0)
    return _Access(place, at, kind, None if start is place else start, record, distance)


def _fields(accesses: Set[_Access]) -> frozenset[tuple[FloatType, int]]:
    """The fields of records that are known by the pointers to them: type and distance; none where some overlap."""
    records: dict[Value, set[tuple[FloatType, int]]] = {}
    for access in accesses:
        if access.record is not None:
            records.setdefault(access.record, set()).add((access.kind, access.distance))
    found = {field for its in records.values() if len({kind for kind, _ in its}) > 1 for field in its}
    apart = all(
        one is other or start + size_of(one) <= begin or begin + size_of(other) <= start
        for one, start in found
        for other, begin in found
    )
    return frozenset(found) if apart else frozenset()


def _accesses(unit: Unit, block: Block) -> Iterator[tuple[ir.Instruction, Value, FloatType]]:
    """The active numbers that a block loads and stores, with the pointers."""
    active = unit.activity.active
    for inst in block.instructions:
        match inst:
            case ir.Load(operands=[pointer], type=FloatType() as kind) if inst in active:
                yield inst, pointer, kind
            case ir.Store(operands=[value, pointer]) if isinstance(value.type, FloatType) and value in active:
                yield inst, pointer, value.type
            case _:
                pass


def _meets(place: Position, kind: FloatType, other: Position, its: FloatType) -> bool:
    """True if numbers of two types at two places may have bytes in common."""
    size, its_size = size_of(kind), size_of(its)
    return any(place.may_be(other.moved(Position(by, 0))) for by in range(1 - size, its_size))
