"""Memory of pointer parameters, inferred from what the program does with it.

Input   a module as its front end made it, a function, a parameter; the pointer that a call passes for it.
Output  a `MemoryType`, or None if that is not certain: then the engine relies on each access it sees, and
        `checks.check_units` refuses copies of bytes of unknown type.
Method  the pointer is followed through addresses, choices, local variables that hold it and calls of functions with a
        body. Loads, stores and their TBAA tags tell scalars, addresses the structures they step through, copies the
        local or global variable at their other end. If all of it is one type of number, the memory is an array of
        that; if it is one plain structure, that structure, or an array of those if the function goes from one to the
        next. Where the function tells nothing, what its caller does with the memory is asked.
Limit   structures with pointers or unions in them, and memory seen as two structures, are not described.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, replace
from typing import Final

from irad.ir import types
from irad.ir.instructions import (
    Alloca,
    CallSite,
    Cast,
    Freeze,
    GetElementPtr,
    ICmp,
    Instruction,
    Load,
    Phi,
    Select,
    Store,
)
from irad.ir.module import Function, Module
from irad.ir.types import ArrayType, NamedStructType, StructType, Type
from irad.ir.values import ConstantExpression, ConstantInt, GlobalVariable, Parameter, Value
from irad.passes.memory.record_layouts import record_of, scalars
from irad.raw.calls import stored_in
from irad.raw.markers import CALL_NAMES
from irad.raw.normal_form.by_value import returned_structure, structure_of
from irad.raw.symbols import expanded
from irad.raw.tbaa import Tbaa
from irad.records import dataclass
from irad.ruleset.memory_type import MemoryType

_MARKERS: Final = ("llvm.lifetime.", "llvm.dbg.", *CALL_NAMES)
_COPIES: Final = ("llvm.memcpy.", "llvm.memmove.", "memcpy", "memmove")


@dataclass(eq=False, slots=True)
class _Evidence:
    """Evidence about a piece of memory.

    Attributes:
        scalars: the types of accesses.
        structures: those that addresses step through from the start of the memory, or of an element.
        is_partial: it is part of a structure that no address names.
        is_array: there are several structures of that kind, one after the other.
        is_complete: nothing is done with a pointer to it that was not looked into.
    """

    scalars: dict[Type, None] = field(default_factory=dict)
    structures: dict[Type, None] = field(default_factory=dict)
    is_partial: bool = False
    is_array: bool = False
    is_complete: bool = True

    def holds_integers(self) -> bool:
        """True if only integers are read and written there."""
        kinds = self.scalars
        return bool(kinds) and self.is_complete and all(isinstance(kind, types.IntType) for kind in kinds)

    def described(self) -> MemoryType | None:
        """Memory type on which all evidence agrees."""
        if self.structures:
            return self.structure()
        kinds = list(self.scalars)
        if len(kinds) == 1 and kinds[0] in (types.DOUBLE, types.FLOAT) and not self.is_partial:
            return MemoryType(types.size_of(kinds[0]), ((0, str(kinds[0])),))
        return None

    def structure(self) -> MemoryType | None:
        """The one plain structure that begins with all others."""
        layouts = sorted({layout for each in self.structures if (layout := record_of(each))}, key=lambda m: m.stride)
        if len(layouts) == 0 or any(record_of(each) is None for each in self.structures):
            return None
        whole = layouts[-1]
        is_one = all(whole.fields[: len(part.fields)] == part.fields for part in layouts)
        known = {text for _, text in whole.fields}
        if not is_one or any(str(kind) not in known for kind in self.scalars if kind in _NUMBERS):
            return None
        return replace(whole, single=not self.is_array)


_NUMBERS: Final = (types.DOUBLE, types.FLOAT)


class InferredMemory:
    """Asks what parameters of the functions of a module point to.

    Args:
        module: as the front end made it.
    """

    def __init__(self, module: Module) -> None:
        self._module = module
        self._tbaa = Tbaa(module)

    def of_argument(self, param: Parameter, passed: Value) -> MemoryType | None:
        """Memory that a parameter points to, when a call passes a pointer for it."""
        structure = structure_of(param.attributes, self._module) or returned_structure(param.attributes, self._module)
        if structure is not None:
            return record_of(structure)
        return self._evidence(param, passed).described()

    def holds_integers(self, param: Parameter, passed: Value) -> bool:
        """True if a parameter certainly points to an array of integers, when a call passes a pointer for it."""
        found = self._evidence(param, passed)
        return not found.structures and not found.is_partial and found.holds_integers()

    def structures_at(self, pointer: Value) -> list[Type]:
        """The structures that addresses step through from where a pointer leads."""
        return list(self._follow(_root(pointer)).structures)

    def _evidence(self, param: Parameter, passed: Value) -> _Evidence:
        own = self._follow(param)
        return own if own.scalars or own.structures else self._follow(_root(passed))

    def _follow(self, start: Value) -> _Evidence:
        walk = _Walk(self._tbaa)
        walk.run(start)
        return walk.evidence


def _root(pointer: Value) -> Value:
    """The variable, call or parameter that a pointer is computed from."""
    while True:
        match pointer:
            case GetElementPtr(operands=[base, *_]) | Cast(operands=[base]) | Freeze(operands=[base]):
                pointer = base
            case ConstantExpression(operands=(base, *_)):
                pointer = base
            case Load(operands=[Alloca() as slot]):
                stored = stored_in(slot)
                if stored is None:
                    return pointer
                pointer = stored
            case _:
                return pointer


@dataclass(eq=False, slots=True)
class _Walk:
    """Follows one pointer. ``seen``: values derived from it, and whether each is the start of an element."""

    tbaa: Tbaa
    evidence: _Evidence = field(default_factory=_Evidence)
    seen: dict[Value, bool] = field(default_factory=dict)
    pending: list[Value] = field(default_factory=list)

    def run(self, start: Value) -> None:
        self.note_variable(start)
        self.reach(start, is_start=True)
        while self.pending:
            value = self.pending.pop()
            for user in list(getattr(value, "users", ())):
                self.visit(value, user)

    def reach(self, value: Value, *, is_start: bool) -> None:
        if value not in self.seen or (is_start and not self.seen[value]):
            self.seen[value] = is_start
            self.pending.append(value)

    def visit(self, value: Value, user: Instruction) -> None:
        is_start = self.seen[value]
        match user:
            case Load():
                self.note_access(user, user.type)
            case Store(operands=[stored, pointer]):
                if pointer is value:
                    self.note_access(user, stored.type)
                if stored is value:
                    self.pass_slot(pointer, is_start=is_start)
            case GetElementPtr():
                if user.operands[0] is value:
                    self.note_address(user, is_start=is_start)
            case Phi() | Select() | Freeze() | Cast(opcode="bitcast" | "addrspacecast"):
                self.reach(user, is_start=is_start)
            case CallSite():
                self.visit_call(value, user, is_start=is_start)
            case ICmp():
                pass
            case _:
                self.evidence.is_complete = False

    def note_access(self, inst: Instruction, accessed: Type) -> None:
        self.evidence.is_complete &= self.is_certain(inst, accessed)
        told = self.tbaa.type_of(inst)
        if self.tbaa.is_member(inst):
            self.evidence.is_partial = True
        is_copy = isinstance(accessed, types.IntType) and accessed.bits >= 32 and not self.tbaa.is_integer(inst)
        if told is not None and types.size_of(told) == types.size_of(accessed):
            self.evidence.scalars[told] = None
        elif not (is_copy and self.tbaa.has_tags):  # eight bytes that are copied may be anything
            for _, scalar in scalars(accessed):
                self.evidence.scalars[scalar] = None

    def is_certain(self, inst: Instruction, accessed: Type) -> bool:
        """True if the type of an access says what is there: bytes that an optimiser copies may be anything."""
        if all(types.size_of(kind) < types.size_of(types.FLOAT) for _, kind in scalars(accessed)):
            return True
        function = inst.block.function if inst.block is not None else None
        is_spelled = function is not None and "optnone" in expanded(function, self.tbaa.module)
        return is_spelled or self.tbaa.is_integer(inst)

    def note_address(self, gep: GetElementPtr, *, is_start: bool) -> None:
        source = gep.source_type
        while isinstance(source, ArrayType):
            source = source.element
        if is_start and isinstance(source, NamedStructType | StructType):
            self.evidence.structures[source] = None
            first = gep.operands[1]
            self.evidence.is_array |= source is not gep.source_type or not (
                isinstance(first, ConstantInt) and first.value == 0
            )
        steps = len(gep.operands) == 2 and isinstance(source, NamedStructType | StructType)
        is_first = all(isinstance(index, ConstantInt) and index.value == 0 for index in gep.operands[1:])
        self.reach(gep, is_start=is_start and (steps or is_first))

    def pass_slot(self, slot: Value, *, is_start: bool) -> None:
        """A local variable that holds the pointer, or memory in which it is lost sight of."""
        is_followed = isinstance(slot, Alloca) and slot.allocated_type is types.PTR
        for user in slot.users if isinstance(slot, Alloca) and is_followed else ():
            if isinstance(user, Load) and user.type is types.PTR:
                self.reach(user, is_start=is_start)
        self.evidence.is_complete &= isinstance(slot, Alloca) and is_followed and stored_in(slot) is not None

    def visit_call(self, value: Value, call: CallSite, *, is_start: bool) -> None:
        callee = call.callee
        if not isinstance(callee, Function):
            self.evidence.is_complete = False
            return
        if (callee.name or "").startswith(_MARKERS):
            return
        places = [index for index, argument in enumerate(call.arguments) if argument is value]
        if (callee.name or "").startswith(_COPIES):
            self.evidence.is_complete = False
            for other in (call.arguments[1 - index] for index in places if index < 2):
                self.note_variable(_root(other))
        for index in places:
            if callee.is_declaration or index >= len(callee.params):
                self.evidence.is_complete = False
            else:
                self.reach(callee.params[index], is_start=is_start)

    def note_variable(self, value: Value) -> None:
        """A local or global variable that is the memory, or is copied to or from it."""
        for type_ in _variable_types(value):
            element = type_
            while isinstance(element, ArrayType):
                element = element.element
            if isinstance(element, NamedStructType | StructType):
                self.evidence.structures[element] = None
                self.evidence.is_array |= element is not type_
            elif element is not types.PTR or isinstance(type_, ArrayType):
                self.evidence.scalars[element] = None


def _variable_types(value: Value) -> Iterator[Type]:
    match value:
        case Alloca(allocated_type=type_) | GlobalVariable(value_type=type_):
            if not isinstance(type_, ArrayType) or type_.element is not types.I8:
                yield type_
        case _:
            pass
