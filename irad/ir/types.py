"""LLVM types, interned: two equal types are one object, so ``is`` compares them.

``str(type)`` is LLVM's own spelling. Named structs are the exception to structural identity: each belongs to a module
and is equal only to itself (`NamedStructType`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final, TypeAlias, TypeVar, assert_never, cast

from irad.records import dataclass


@dataclass(eq=False, slots=True, repr=False)
class Type:
    """Base of all types. Never constructed directly; use the functions and constants of this module."""

    text: str = field(init=False)

    def __post_init__(self) -> None:
        self.text = self._spelled()

    def _spelled(self) -> str:
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.text}>"


@dataclass(eq=False, slots=True, repr=False)
class _Word(Type):
    word: str

    def _spelled(self) -> str:
        return self.word


class SimpleType(_Word):
    """A type without parameters: `void`, `label`, `metadata`, `token`, `x86_amx`."""

    __slots__ = ()


class TargetExtType(_Word):
    """`target("name", …)`; parameters are kept as text."""

    __slots__ = ()


@dataclass(eq=False, slots=True, repr=False)
class FloatType(_Word):
    """`half`, `bfloat`, `float`, `double`, `x86_fp80`, `fp128`, `ppc_fp128`."""

    bits: int


@dataclass(eq=False, slots=True, repr=False)
class IntType(Type):
    """`iN`."""

    bits: int

    def _spelled(self) -> str:
        return f"i{self.bits}"


@dataclass(eq=False, slots=True, repr=False)
class PointerType(Type):
    """`ptr` or `ptr addrspace(N)`."""

    addrspace: int

    def _spelled(self) -> str:
        return f"ptr addrspace({self.addrspace})" if self.addrspace else "ptr"


@dataclass(eq=False, slots=True, repr=False)
class VectorType(Type):
    """`<N x T>` or `<vscale x N x T>`."""

    count: int
    element: Type
    scalable: bool

    def _spelled(self) -> str:
        return f"<{'vscale x ' if self.scalable else ''}{self.count} x {self.element}>"


@dataclass(eq=False, slots=True, repr=False)
class ArrayType(Type):
    """`[N x T]`."""

    count: int
    element: Type

    def _spelled(self) -> str:
        return f"[{self.count} x {self.element}]"


@dataclass(eq=False, slots=True, repr=False)
class StructType(Type):
    """A literal struct, `{ T, … }` or packed `<{ T, … }>`."""

    elements: tuple[Type, ...]
    packed: bool

    def _spelled(self) -> str:
        body = "{ " + ", ".join(map(str, self.elements)) + " }" if self.elements else "{}"
        return f"<{body}>" if self.packed else body


@dataclass(eq=False, slots=True, repr=False)
class NamedStructType(_Word):
    """`%name = type …`; ``body`` is None while opaque. Not interned: equal only to itself."""

    name: str
    body: StructType | None = None


@dataclass(eq=False, slots=True, repr=False)
class FunctionType(Type):
    """`R (P, …)`."""

    result: Type
    params: tuple[Type, ...]
    variadic: bool

    def _spelled(self) -> str:
        return f"{self.result} ({', '.join([*map(str, self.params), *(['...'] if self.variadic else [])])})"


AnyType: TypeAlias = (
    SimpleType | TargetExtType | FloatType | IntType | PointerType | VectorType | ArrayType | StructType
    | NamedStructType | FunctionType
)  # fmt: skip
"""The closed set of types, for a ``match`` that ends in ``assert_never``."""

_T = TypeVar("_T", bound=Type)

_INTERNED: Final[dict[tuple[object, ...], Any]] = {}
"""By class and the identities of the parts: two modules may each have a %T of another body."""


def _interned(kind: type[_T], *parts: object) -> _T:
    key = (kind, *parts)
    found: _T | None = _INTERNED.get(key)
    if found is None:
        found = _INTERNED[key] = kind(*parts)
    return found


def int_type(bits: int) -> IntType:
    """`iN`."""
    return _interned(IntType, bits)


def pointer_type(addrspace: int = 0) -> PointerType:
    """`ptr` in an address space."""
    return _interned(PointerType, addrspace)


def vector_type(count: int, element: Type, *, scalable: bool = False) -> VectorType:
    """`<N x T>`."""
    return _interned(VectorType, count, element, scalable)


def array_type(count: int, element: Type) -> ArrayType:
    """`[N x T]`."""
    return _interned(ArrayType, count, element)


def struct_type(elements: Sequence[Type], *, packed: bool = False) -> StructType:
    """A literal struct."""
    return _interned(StructType, tuple(elements), packed)


def named_struct_type(name: str, spelled: str) -> NamedStructType:
    """A new named struct of a module; ``spelled`` is the name with sigil and quotes as LLVM prints it."""
    return NamedStructType(spelled, name)


def function_type(result: Type, params: Sequence[Type], *, variadic: bool = False) -> FunctionType:
    """`R (P, …)`."""
    return _interned(FunctionType, result, tuple(params), variadic)


def target_ext_type(text: str) -> TargetExtType:
    """`target("…", …)` from its own spelling."""
    return _interned(TargetExtType, text)


VOID: Final = _interned(SimpleType, "void")
LABEL: Final = _interned(SimpleType, "label")
METADATA: Final = _interned(SimpleType, "metadata")
TOKEN: Final = _interned(SimpleType, "token")
X86_AMX: Final = _interned(SimpleType, "x86_amx")
HALF: Final = _interned(FloatType, "half", 16)
BFLOAT: Final = _interned(FloatType, "bfloat", 16)
FLOAT: Final = _interned(FloatType, "float", 32)
DOUBLE: Final = _interned(FloatType, "double", 64)
X86_FP80: Final = _interned(FloatType, "x86_fp80", 80)
FP128: Final = _interned(FloatType, "fp128", 128)
PPC_FP128: Final = _interned(FloatType, "ppc_fp128", 128)
I1: Final = int_type(1)
I8: Final = int_type(8)
I16: Final = int_type(16)
I32: Final = int_type(32)
I64: Final = int_type(64)
PTR: Final = pointer_type()


def as_many(like: Type, element: Type) -> Type:
    """``element``, or a vector of as many as the vector ``like`` has."""
    return vector_type(like.count, element, scalable=like.scalable) if isinstance(like, VectorType) else element


def address_type(operands: Sequence[Type]) -> Type:
    """The type of a getelementptr: a vector of pointers as soon as one operand is a vector."""
    base = operands[0]
    if not isinstance(base, VectorType):
        for index in operands:
            if isinstance(index, VectorType):
                return as_many(index, base)
    return base


def struct_body(value: Type) -> StructType:
    """The literal struct of a struct type, named or not."""
    match value:
        case StructType():
            return value
        case NamedStructType(body=StructType() as body):
            return body
        case _:
            raise TypeError(f"{value} is not a struct with a known body")


def element_types(value: Type) -> tuple[Type, ...]:
    """The types of an aggregate's elements (struct or array)."""
    if isinstance(value, ArrayType):
        return (value.element,) * value.count
    return struct_body(value).elements


def element_at(value: Type, indices: Sequence[int]) -> Type | None:
    """The type of a part of an aggregate, found by one index for each level; None if it has no such part."""
    for index in indices:
        match value:
            case ArrayType(count=count, element=element) if index < count:
                value = element
            case StructType(elements=elements) | NamedStructType(body=StructType(elements=elements)) if index < len(
                elements
            ):
                value = elements[index]
            case _:
                return None
    return value


def holds_floats(value: Type) -> bool:
    """True if a part of a type is floating-point."""
    match cast("AnyType", value):
        case FloatType():
            return True
        case VectorType(element=element):
            return holds_floats(element)
        case StructType() | NamedStructType() | ArrayType():
            return any(map(holds_floats, element_types(value)))
        case IntType() | PointerType() | SimpleType() | TargetExtType() | FunctionType():
            return False
        case kind:
            assert_never(kind)


def address_spaces(value: Type) -> frozenset[int]:
    """Address spaces of the pointers in a type; of a function type, of its parameters and its result."""
    match value:
        case PointerType(addrspace=space):
            return frozenset((space,))
        case VectorType(element=element) | ArrayType(element=element):
            return address_spaces(element)
        case StructType(elements=parts) | NamedStructType(body=StructType(elements=parts)):
            return frozenset().union(*map(address_spaces, parts))
        case FunctionType(result=result, params=params):
            return frozenset().union(*map(address_spaces, (result, *params)))
        case _:
            return frozenset()


def alignment_of(value: Type) -> int:
    """ABI alignment in bytes under the x86-64 / AArch64 / NVPTX data layouts that Numba uses."""
    match value:
        case IntType(bits=bits):
            return min(16, max(1, 1 << max(0, (bits - 1).bit_length() - 3)))
        case FloatType(bits=bits):
            return 16 if bits >= 80 else bits // 8
        case PointerType():
            return 8
        case VectorType():
            return max(1, 1 << (size_of(value) - 1).bit_length())
        case ArrayType(element=element):
            return alignment_of(element)
        case StructType() | NamedStructType():
            body = struct_body(value)
            return 1 if body.packed else max(map(alignment_of, body.elements), default=1)
        case _:
            raise TypeError(f"{value} has no size")


def size_of(value: Type) -> int:
    """Allocation size in bytes, padding included (LLVM's `getTypeAllocSize`), under the same layouts."""
    match value:
        case IntType(bits=bits):
            return _round_up((bits + 7) // 8, alignment_of(value))
        case FloatType(bits=bits):
            return 16 if bits >= 80 else bits // 8
        case PointerType():
            return 8
        case VectorType(count=count, element=element):
            bits = element.bits if isinstance(element, IntType) else 8 * size_of(element)
            return (count * bits + 7) // 8
        case ArrayType(count=count, element=element):
            return count * size_of(element)
        case StructType() | NamedStructType():
            body = struct_body(value)
            offsets = field_offsets(value)
            end = offsets[-1] + size_of(body.elements[-1]) if offsets else 0
            return _round_up(end, alignment_of(value))
        case _:
            raise TypeError(f"{value} has no size")


def field_offsets(value: Type) -> tuple[int, ...]:
    """Byte offset of each field of a struct."""
    body = struct_body(value)
    offsets: list[int] = []
    position = 0
    for element in body.elements:
        if not body.packed:
            position = _round_up(position, alignment_of(element))
        offsets.append(position)
        position += size_of(element)
    return tuple(offsets)


def _round_up(size: int, alignment: int) -> int:
    return -(-size // alignment) * alignment
