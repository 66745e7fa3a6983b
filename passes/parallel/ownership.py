"""Meetings of the threads of a kernel: elements that one thread each accesses, and those that all of a block do.

Input   a kernel's function, where its pointers point, its loops, along how many axes it is launched.
Output  `ThreadAddresses`. Additions to the shadows of owned arrays need not be atomic; those to what all threads of a
        block access are summed up first.
Method  the address of each access is a polynomial in special registers and parameters. With g the number of a thread, G
        how many there are and s the distance of elements, it has to be s·g + s·G·(anything) + what all threads and
        accesses add alike. In shared memory the number in the block takes the place of g.
Limit   only contiguous arrays, accessed in this way everywhere; arithmetic of 32 bits that may wrap around is not
        followed.

    %b = mul i64 %ctaid, %ntid
    %g = add i64 %b, %tid
    %p = getelementptr double, ptr %x, i64 %g        owned: 8·(ctaid·ntid + tid)
    %q = getelementptr double, ptr %y, i64 %n        shared: all threads access the same element
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import field
from typing import Final

from irad.ir import types
from irad.ir.instructions import (
    Binary,
    Call,
    CallSite,
    Cast,
    Freeze,
    GetElementPtr,
    ICmp,
    Instruction,
    Load,
    Phi,
    Select,
    accessed,
    stored,
)
from irad.ir.loops import LoopNest
from irad.ir.module import Function
from irad.ir.trip_count import affine_variables
from irad.ir.types import IntType, PointerType, Type
from irad.ir.values import ConstantInt, Parameter, Value
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.objects import MemoryObject, ObjectKind, PointsTo
from irad.passes.subscripts.forms import Monomial, Polynomial, added, monomial, multiplied, scaled
from irad.records import dataclass

_REGISTER: Final = "llvm.nvvm.read.ptx.sreg."
_THREAD, _BLOCK, _THREADS, _BLOCKS = "tid.x", "ctaid.x", "ntid.x", "nctaid.x"
_SHARED_MEMORY: Final = 3  # LLVM's address space of shared memory on NVPTX


class Adding(enum.Enum):
    """Way of adding a cotangent to the shadow of a read."""

    PLAIN = "plain"  # no other thread adds there at the same time
    ATOMIC = "atomic"
    SUMMED = "summed"  # threads that read the same element add up first


@dataclass(frozen=True, slots=True)
class _Access:
    """Distance of elements, offset from the thread's own place, and size of the access, in bytes."""

    stride: int
    uniform: tuple[tuple[Monomial, int], ...]
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class ThreadAddresses:
    """Places where threads meet.

    Attributes:
        owned: the arrays of which no two threads access the same element, as a mask.
        common: the pointers that are the same in all threads of a block.
    """

    owned: int = 0
    common: frozenset[Value] = frozenset()

    def explain(self, pointer: Value) -> str:
        """Description of the threads that access the memory of a pointer."""
        return "the same for all threads of a block" if pointer in self.common else "depends on the thread"


def find_meetings(function: Function, mod_ref: ModRef, loops: LoopNest, axes: int) -> ThreadAddresses:
    """Finds the places where the threads of a kernel meet.

    Args:
        function: function of a kernel.
        mod_ref: of the function.
        loops: loops of the function.
        axes: along how many axes it is launched.
    """
    addresses = _Addresses(loops)
    pointers = [inst.operands[0] for inst in function.instructions() if isinstance(inst, Load)]
    common = frozenset(pointer for pointer in pointers if addresses.is_common(pointer))
    # Along one axis the number of a thread is ctaid.x · ntid.x + tid.x; along several, threads share such a number.
    return ThreadAddresses(_owned(function, mod_ref, addresses) if axes == 1 else 0, common)


def _owned(function: Function, mod_ref: ModRef, addresses: _Addresses) -> int:
    """The arrays of which no two threads access the same element, as a mask."""
    points_to = mod_ref.points_to
    found: dict[MemoryObject, list[_Access | None]] = {}
    for inst in function.instructions():
        for item, access in _accesses(inst, mod_ref, points_to, addresses):
            found.setdefault(item, []).append(access)
    owned = 0
    for item, accesses in found.items():
        # An array that may overlap with another one is accessed by other addresses as well.
        alone = points_to.overlapping(1 << item.index) == 1 << item.index
        if item.kind is ObjectKind.ARGUMENT and alone and _agree(accesses):
            owned |= 1 << item.index
    return owned


def _accesses(
    inst: Instruction, mod_ref: ModRef, points_to: PointsTo, addresses: _Addresses
) -> Iterable[tuple[MemoryObject, _Access | None]]:
    """The objects that an instruction accesses, and how; None where that is not known."""
    pointer = None if isinstance(inst, CallSite) else accessed(inst)
    if pointer is None:
        effect = mod_ref.of(inst)
        touched = effect.reads | effect.writes | effect.captures
        return [(item, None) for item in points_to.members(touched)]
    items = points_to.of(pointer)
    value = stored(inst)
    type_ = inst.type if value is None else value.type
    known = addresses.access(pointer, type_) if len(items) == 1 else None
    # A pointer that is stored may be loaded, and followed, by any thread.
    escaping = points_to.of(value) if value is not None and isinstance(value.type, PointerType) else ()
    return [*((item, known) for item in items), *((item, None) for item in escaping)]


def _agree(accesses: Sequence[_Access | None]) -> bool:
    """True if all accesses of an array stay within the elements of the thread."""
    known = [access for access in accesses if access is not None]
    if len(known) < len(accesses) or len({(each.stride, each.uniform) for each in known}) != 1:
        return False
    start, end = min(each.offset for each in known), max(each.offset + each.size for each in known)
    return end - start <= known[0].stride


@dataclass(eq=False, slots=True)
class _Addresses:
    """Addresses as polynomials; a special register is an atom named after it, any other value is its own atom."""

    loops: LoopNest
    _steps: dict[Phi, tuple[Value, Value | int]] = field(init=False)
    _known: dict[Value, Polynomial | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._steps = {}
        for loop in self.loops.loops:
            for phi, variable in affine_variables(loop).items():
                self._steps[phi] = (variable.start, variable.step)

    def access(self, pointer: Value, type_: Type) -> _Access | None:
        """Steps of an access through its array, if they keep threads apart."""
        root, distance = self.distance(pointer)
        if root is None or distance is None:
            return None
        in_block = isinstance(root.type, PointerType) and root.type.addrspace == _SHARED_MEMORY
        stride = distance.get((_THREAD,), 0)
        wanted = {(_THREAD,)} if in_block else {(_THREAD,), monomial(_BLOCK, _THREADS)}
        if stride <= 0 or any(distance.get(term) != stride for term in wanted):
            return None
        period = {_THREADS} if in_block else {_THREADS, _BLOCKS}
        uniform: list[tuple[Monomial, int]] = []
        for term, coefficient in distance.items():
            if term in wanted or not term:
                continue
            if all(_is_uniform(atom, in_block=in_block) for atom in term):
                uniform.append((term, coefficient))
            # Steps of whole grids, or blocks, take a thread past the elements of all others.
            elif coefficient % stride or not period <= set(term):
                return None
        # In one order, so that equal sums are equal; by identity as well, since different values may share a name.
        uniform.sort(key=lambda item: [str(atom) + str(id(atom)) for atom in item[0]])
        return _Access(stride, tuple(uniform), distance.get((), 0), types.size_of(type_))

    def is_common(self, pointer: Value) -> bool:
        """True if a pointer is the same in all threads of a block."""
        root, distance = self.distance(pointer)
        terms = () if root is None or distance is None else distance
        return distance is not None and all(_is_uniform(atom, in_block=True) for term in terms for atom in term)

    def distance(self, pointer: Value) -> tuple[Value | None, Polynomial | None]:
        """The parameter that a pointer is computed from, and the offset in bytes."""
        total: Polynomial = {}
        while True:
            match pointer:
                case Parameter():
                    return pointer, total
                case Cast(opcode="addrspacecast", operands=[base]) | Freeze(operands=[base]):
                    pointer = base
                case GetElementPtr(operands=[base, index], source_type=element):
                    step = self.polynomial(index)
                    # A narrower index is extended after it may have wrapped around.
                    if step is None or not (index.type is types.I64 or self._exact(index, "nsw")):
                        return None, None
                    total, pointer = added(total, scaled(step, types.size_of(element))), base
                case _:
                    return None, None

    def polynomial(self, value: Value) -> Polynomial | None:
        """An integer; None where its arithmetic may wrap around."""
        if value not in self._known:
            self._known[value] = {(value,): 1}  # of a value in a cycle
            self._known[value] = self._computed(value)
        return self._known[value]

    def _computed(self, value: Value) -> Polynomial | None:
        atom: Polynomial = {(value,): 1}
        match value:
            case ConstantInt(value=number):
                return {(): number} if number else {}
            case Call(operands=[callee]) if isinstance(callee, Function) and _is_register(callee):
                return {(str(callee.name).removeprefix(_REGISTER),): 1}
            case Cast(opcode="zext" | "sext" as opcode, operands=[inner], flags=flags):
                exact = self._exact(inner, "nuw" if opcode == "zext" and "nneg" not in flags else "nsw")
                return self.polynomial(inner) if exact else atom
            case Freeze(operands=[inner]):
                return self.polynomial(inner)
            case Phi() if value in self._steps:
                return self._induction(value)
            case Select(operands=[ICmp(operands=[index, ConstantInt()]) as test, if_true, if_false]):
                sign = _asks_for_sign(test)
                if sign is None or not self._is_not_negative(index):
                    return atom
                return self.polynomial(if_false if sign else if_true)
            case Binary(opcode="add" | "sub" | "mul" | "shl" | "or", operands=[a, b], flags=flags):
                return self._binary(value, a, b, flags) or atom
            case _:
                return atom

    def _binary(self, value: Binary, a: Value, b: Value, flags: tuple[str, ...]) -> Polynomial | None:
        left, right = self.polynomial(a), self.polynomial(b)
        if left is None or right is None:
            return None
        match value.opcode:
            case "add":
                return added(left, right)
            case "or" if "disjoint" in flags:
                return added(left, right)
            case "sub":
                return added(left, scaled(right, -1))
            case "mul":
                return multiplied(left, right)
            case "shl" if isinstance(b, ConstantInt) and 0 <= b.value < 63:
                return scaled(left, 1 << b.value)
            case _:
                return None

    def _induction(self, phi: Phi) -> Polynomial | None:
        """A variable of a loop: its start plus a multiple of its step."""
        start, step = self._steps[phi]
        first = self.polynomial(start)
        each: Polynomial | None = {(): step} if isinstance(step, int) else self.polynomial(step)
        if first is None or each is None or not isinstance(phi.type, IntType):
            return None
        return added(first, multiplied(each, {((phi, "iteration"),): 1}))

    def _is_not_negative(self, value: Value) -> bool:
        """True if an integer is a sum of products of registers and counts: no launch is long enough for it to wrap."""
        terms = self.polynomial(value)
        if terms is None or value.type is not types.I64:
            return False
        atoms = [atom for term in terms for atom in term]
        return min(terms.values(), default=0) >= 0 and all(isinstance(atom, str | tuple) for atom in atoms)

    def _exact(self, value: Value, flag: str) -> bool:
        """True if an integer of fewer bits equals its polynomial: it is a register, or cannot wrap around."""
        match value:
            case ConstantInt() | Parameter():
                return True
            case Call(operands=[callee]) if isinstance(callee, Function):
                return _is_register(callee)
            case Binary(opcode="add" | "sub" | "mul" | "shl", operands=[a, b], flags=flags):
                return flag in flags and self._exact(a, flag) and self._exact(b, flag)
            case _:
                return False


def _asks_for_sign(test: ICmp) -> bool | None:
    """True if a comparison asks for a negative index, False if for any other, as Numba does for `x[-1]`; else None."""
    bound = test.operands[1]
    assert isinstance(bound, ConstantInt)
    match test.predicate, bound.value:
        case ("slt", 0):
            return True
        case ("sgt", -1) | ("sge", 0):
            return False
        case _:
            return None


def _is_register(callee: Function) -> bool:
    return str(callee.name).startswith(_REGISTER)


def _is_uniform(atom: object, *, in_block: bool) -> bool:
    """True if an atom is the same for all threads that may meet: of the grid, or of a block."""
    if isinstance(atom, str):
        return atom.startswith(("ntid.", "nctaid.")) or (in_block and atom.startswith("ctaid."))
    return isinstance(atom, Parameter)
