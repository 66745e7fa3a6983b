"""Arrays, named in Python code, to which the pointers of a pair of sweeps point; and the reads of the reverse sweep.

Pointers of the forward sweep are followed to where they begin: a parameter, its shadow, an allocation of Numba's (whose
header holds the address of the data at byte 24) or its shadow, a stack slot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from irad.decompile.arrays import Array, ReturnedValue, array_of_leaf
from irad.decompile.polynomial import Polynomial
from irad.decompile.refusal import refused
from irad.frontend.values import abi
from irad.ir import types
from irad.ir.instructions import Alloca, Call, Freeze, GetElementPtr, Instruction, Load, Phi, Select, Store
from irad.ir.loops import Loop
from irad.ir.module import Function
from irad.ir.values import ConstantInt, Value
from irad.passes.generated import GeneratedPair
from irad.passes.request import MemoryType

# What the reverse sweep reads of the forward sweep, as it is rendered: names in place of addresses.

STRONG = "strong"
"""The flag of a product that is zero where the cotangent in it is."""


@dataclass(frozen=True, slots=True)
class AffineRead:
    """``value``, affine in a loop: start + step · number of the iteration."""

    value: Value
    loop: Loop
    start: Value
    step: Value | int


@dataclass(eq=False, slots=True)
class Reads:
    """Meaning of the reverse sweep's placeholders, by placeholder.

    Attributes:
        saved: values of the forward sweep.
        affine: affine variables.
        numbers: of each loop, the number of the iteration that is being reversed, a phi.
        recomputed: values of the reverse sweep that are values of the forward sweep, recomputed.
        cotangents: values of the reverse sweep that are the cotangent of a primal value.
    """

    saved: dict[Value, Value] = field(default_factory=dict)
    affine: dict[Value, AffineRead] = field(default_factory=dict)
    numbers: dict[Loop, Value] = field(default_factory=dict)
    cotangents: dict[Value, Value] = field(default_factory=dict)
    recomputed: dict[Value, Value] = field(default_factory=dict)


# Pointers.

HEADER_DATA = 24  # offset of the data pointer in Numba's MemInfo, after count, destructor and its argument
ALLOCATES = ("NRT_MemInfo_alloc", "NRT_Allocate", "malloc")


@dataclass(frozen=True, slots=True)
class ArrayPlace:
    """An offset in bytes from the start of an array; with ``is_header``, from the header of its allocation."""

    array: Array
    offset: Polynomial
    is_header: bool = False


@dataclass(eq=False, slots=True)
class Address(Value):
    """Address of an array as a number: Numba compares these, to see whether two overlap."""

    array: Array | None = None


@dataclass(eq=False, slots=True)
class PairMemory:
    """The arrays of one pair.

    Attributes:
        arguments: of the function, with their leaves.
        result: return value of the function.
        starts: where known arrays begin, by value of the forward sweep.
        allocations: by the call of the forward sweep that makes them: the array, and its shadow if it has one.
        addresses: of arrays.
    """

    captured: GeneratedPair
    arguments: tuple[abi.Argument, ...]
    result: ReturnedValue
    starts: dict[Value, ArrayPlace] = field(default_factory=dict)
    allocations: dict[Value, tuple[Array, Array | None]] = field(default_factory=dict)
    addresses: dict[Array, Address] = field(default_factory=dict)

    def __post_init__(self) -> None:
        augmented = self.captured.augmented
        params = augmented.function.params[2:]
        self._add_slot(
            params[0], "result", augmented.shadows.get(augmented.unit.function.params[0]), self.result.variables
        )
        for argument in self.arguments:
            for leaf in argument.leaves:
                if leaf.is_array:
                    text = argument.name + "".join(f"_{i}" for i in leaf.path)
                    array = array_of_leaf(leaf, params, text)
                    self.starts[params[leaf.data_index]] = ArrayPlace(array, Polynomial.constant(0))
                    shadow = augmented.shadows.get(augmented.unit.function.params[leaf.data_index])
                    if shadow is not None:
                        self._add_shadow(array, shadow)
        for primal, copy in list(augmented.values.items()):
            if isinstance(primal, Call) and is_allocation(primal):
                self._add_allocation(primal, copy)
            elif isinstance(primal, Alloca):
                self._add_slot(copy, f"local_{len(self.starts)}", augmented.shadows.get(primal))

    def _add_slot(self, start: Value, name: str, shadow: Value | None, slots: dict[int, str] | None = None) -> None:
        slots = slots or {}
        slot = Array(name, start, is_result=True, is_local=True, slots=slots)
        self.starts[start] = ArrayPlace(slot, Polynomial.constant(0))
        if shadow is not None and not isinstance(shadow, ConstantInt):
            bars = {offset: f"{text}_bar" for offset, text in slots.items()}
            twin = Array(f"{name}_bar", shadow, is_result=True, is_shadow=True, is_local=True, slots=bars)
            self.starts[shadow] = ArrayPlace(twin, Polynomial.constant(0))

    def _add_shadow(self, array: Array, start: Value, *, is_header: bool = False) -> Array:
        shadow = Array(
            f"{array.name}_bar", start, array.itemsize, array.strides, is_shadow=True, is_complex=array.is_complex,
            is_local=array.is_local, shape=array.shape, dtype=array.dtype, layout=array.layout,
        )  # fmt: skip
        self.starts[start] = ArrayPlace(shadow, Polynomial.constant(0), is_header)
        return shadow

    def _add_allocation(self, primal: Call, copy: Value) -> None:
        unit = self.captured.augmented.unit
        layout = unit.memory_types.common_layout(unit.points_to.behind(primal, (HEADER_DATA,)))
        itemsize, dtype = _numbers_in(layout, primal)
        has_header = callee_name(primal).startswith("NRT_MemInfo")
        size = Polynomial.constant(itemsize)
        array = Array("t", copy, itemsize, (size,), is_local=True, dtype=dtype)
        self.starts[copy] = ArrayPlace(array, Polynomial.constant(0), has_header)
        start = self.captured.augmented.shadows.get(primal)
        shadow = None
        if start is not None and isinstance(start, Instruction):
            shadow = self._add_shadow(array, start, is_header=has_header)
        self.allocations[copy] = array, shadow

    def address_of(self, array: Array) -> Address:
        """Address of an array: one value for each."""
        return self.addresses.setdefault(array, Address(types.I64, None, array))

    def array_behind(self, pointer: Value) -> Array | None:
        """The array that a pointer points into, if all ways to it begin in one."""
        while pointer not in self.starts:
            match pointer:
                case GetElementPtr(operands=[base, *_]) | Load(operands=[base]):
                    pointer = base
                case Freeze(operands=[base]) | Phi(operands=[base]):
                    pointer = base
                case _:
                    return None
        return self.starts[pointer].array


def byte_offset(gep: GetElementPtr, indices: list[Value], polynomial: Callable[[Value], Polynomial]) -> Polynomial:
    """Offset that a getelementptr adds."""
    total = Polynomial.constant(0)
    current: types.Type = gep.source_type
    for depth, index in enumerate(indices):
        if depth == 0:
            total = total + polynomial(index).scaled(types.size_of(current))
        elif isinstance(current, types.ArrayType):
            current = current.element
            total = total + polynomial(index).scaled(types.size_of(current))
        elif isinstance(current, types.StructType | types.NamedStructType) and isinstance(index, ConstantInt):
            total = total + Polynomial.constant(types.field_offsets(current)[index.value])
            current = types.struct_body(current).elements[index.value]
        else:
            raise refused("an address in a structure of this form", gep)
    return total


def callee_name(call: Call) -> str:
    """The symbol that is called, or nothing."""
    callee = call.callee
    return callee.name or "" if isinstance(callee, Function) else ""


def is_allocation(call: Call) -> bool:
    """True if it returns new memory of Numba's."""
    return callee_name(call).startswith(ALLOCATES)


_NUMBERS = {
    "double": (8, "np.float64"), "float": (4, "np.float32"), "i64": (8, "np.int64"), "i32": (4, "np.int32"),
    "i16": (2, "np.int16"), "i8": (1, "np.int8"), "i1": (1, "np.int8"),
}  # fmt: skip


def _numbers_in(layout: MemoryType | None, allocation: Value) -> tuple[int, str]:
    """Size and type of the numbers in new memory: those that the analysis of types found, or that are stored there."""
    text = layout.fields[0][1] if layout is not None and layout.fields else _accessed(allocation)
    return _NUMBERS.get(text or "", _NUMBERS["double"])


def _accessed(allocation: Value) -> str | None:
    """The type of the first number that is loaded from memory or stored there."""
    assert isinstance(allocation, Instruction)
    pending: list[Instruction] = [allocation]
    seen = {allocation}
    while pending:
        pointer = pending.pop(0)
        for user in pointer.users:
            match user:
                case Load(type=types.PointerType()) | GetElementPtr() | Phi() | Freeze() | Select():
                    if user not in seen:
                        seen.add(user)
                        pending.append(user)
                case Load():
                    return str(user.type)
                case Store(operands=[value, place]) if place is pointer and not isinstance(
                    value.type, types.PointerType
                ):
                    return str(value.type)
                case _:
                    pass
    return None
