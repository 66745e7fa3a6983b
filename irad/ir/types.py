"""LLVM types, interned: two equal types are one object, so ``is`` compares them.

``str(type)`` is LLVM's own spelling. Named structs are the exception to structural identity: each belongs to a module
and is equal only to itself (`NamedStructType`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, TypeVar


class Type:
    """Base of all types. Never constructed directly; use the functions and constants of this module."""

    __slots__ = ("text",)
    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.text}>"


class SimpleType(Type):
    """A type without parameters: `void`, `label`, `metadata`, `token`, `x86_amx`."""

    __slots__ = ()


class IntType(Type):
    """`iN`."""

    __slots__ = ("bits",)
    bits: int


class FloatType(Type):
    """`half`, `bfloat`, `float`, `double`, `x86_fp80`, `fp128`, `ppc_fp128`."""

    __slots__ = ("bits",)
    bits: int


class PointerType(Type):
    """`ptr` or `ptr addrspace(N)`."""

    __slots__ = ("addrspace",)
    addrspace: int


class VectorType(Type):
    """`<N x T>` or `<vscale x N x T>`."""

    __slots__ = ("count", "element", "scalable")
    count: int
    element: Type
    scalable: bool


class ArrayType(Type):
    """`[N x T]`."""

    __slots__ = ("count", "element")
    count: int
    element: Type


class StructType(Type):
    """A literal struct, `{ T, … }` or packed `<{ T, … }>`."""

    __slots__ = ("elements", "packed")
    elements: tuple[Type, ...]
    packed: bool


class NamedStructType(Type):
    """`%name = type …`; ``body`` is None while opaque. Not interned: equal only to itself."""

    __slots__ = ("body", "name")
    name: str
    body: StructType | None


class FunctionType(Type):
    """`R (P, …)`."""

    __slots__ = ("params", "result", "variadic")
    result: Type
    params: tuple[Type, ...]
    variadic: bool


class TargetExtType(Type):
    """`target("name", …)`; parameters are kept as text."""

    __slots__ = ()


_T = TypeVar("_T", bound=Type)


class _Interner:
    """The table that the constructors below use: one object for one spelling."""

    table: ClassVar[dict[str, Type]] = {}

    @classmethod
    def get(cls, text: str) -> Type | None:
        return cls.table.get(text)

    @classmethod
    def add(cls, value: _T, text: str) -> _T:
        value.text = text
        cls.table[text] = value
        return value


def _simple(text: str) -> SimpleType:
    return _Interner.add(SimpleType(), text)


def _float(text: str, bits: int) -> FloatType:
    value = FloatType()
    value.bits = bits
    return _Interner.add(value, text)


def int_type(bits: int) -> IntType:
    """`iN`."""
    found = _Interner.get(f"i{bits}")
    if isinstance(found, IntType):
        return found
    value = IntType()
    value.bits = bits
    return _Interner.add(value, f"i{bits}")


def pointer_type(addrspace: int = 0) -> PointerType:
    """`ptr` in an address space."""
    text = "ptr" if addrspace == 0 else f"ptr addrspace({addrspace})"
    found = _Interner.get(text)
    if isinstance(found, PointerType):
        return found
    value = PointerType()
    value.addrspace = addrspace
    return _Interner.add(value, text)


# Composite types are interned by the identities of their parts: two modules may each have a %T of another body.
_composites: Final[dict[tuple[object, ...], Type]] = {}


def vector_type(count: int, element: Type, *, scalable: bool = False) -> VectorType:
    """`<N x T>`."""
    key = ("vector", count, element, scalable)
    found = _composites.get(key)
    if isinstance(found, VectorType):
        return found
    value = VectorType()
    value.count, value.element, value.scalable = count, element, scalable
    value.text = f"<{'vscale x ' if scalable else ''}{count} x {element}>"
    _composites[key] = value
    return value


def array_type(count: int, element: Type) -> ArrayType:
    """`[N x T]`."""
    key = ("array", count, element)
    found = _composites.get(key)
    if isinstance(found, ArrayType):
        return found
    value = ArrayType()
    value.count, value.element = count, element
    value.text = f"[{count} x {element}]"
    _composites[key] = value
    return value


def struct_type(elements: Sequence[Type], *, packed: bool = False) -> StructType:
    """A literal struct."""
    parts = tuple(elements)
    key = ("struct", parts, packed)
    found = _composites.get(key)
    if isinstance(found, StructType):
        return found
    value = StructType()
    value.elements, value.packed = parts, packed
    body = "{ " + ", ".join(map(str, parts)) + " }" if parts else "{}"
    value.text = f"<{body}>" if packed else body
    _composites[key] = value
    return value


def named_struct_type(name: str, spelled: str) -> NamedStructType:
    """A new named struct of a module; ``spelled`` is the name with sigil and quotes as LLVM prints it."""
    value = NamedStructType()
    value.name, value.body, value.text = name, None, spelled
    return value


def function_type(result: Type, params: Sequence[Type], *, variadic: bool = False) -> FunctionType:
    """`R (P, …)`."""
    parts = tuple(params)
    key = ("function", result, parts, variadic)
    found = _composites.get(key)
    if isinstance(found, FunctionType):
        return found
    value = FunctionType()
    value.result, value.params, value.variadic = result, parts, variadic
    value.text = f"{result} ({', '.join([*map(str, parts), *(['...'] if variadic else [])])})"
    _composites[key] = value
    return value


def target_ext_type(text: str) -> TargetExtType:
    """`target("…", …)` from its own spelling."""
    found = _Interner.get(text)
    if isinstance(found, TargetExtType):
        return found
    return _Interner.add(TargetExtType(), text)


VOID: Final = _simple("void")
LABEL: Final = _simple("label")
METADATA: Final = _simple("metadata")
TOKEN: Final = _simple("token")
X86_AMX: Final = _simple("x86_amx")
HALF: Final = _float("half", 16)
BFLOAT: Final = _float("bfloat", 16)
FLOAT: Final = _float("float", 32)
DOUBLE: Final = _float("double", 64)
X86_FP80: Final = _float("x86_fp80", 80)
FP128: Final = _float("fp128", 128)
PPC_FP128: Final = _float("ppc_fp128", 128)
I1: Final = int_type(1)
I8: Final = int_type(8)
I16: Final = int_type(16)
I32: Final = int_type(32)
I64: Final = int_type(64)
PTR: Final = pointer_type()


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


def holds_floats(value: Type) -> bool:
    """Whether a part of a type is floating-point."""
    match value:
        case FloatType():
            return True
        case VectorType(element=element):
            return holds_floats(element)
        case StructType() | NamedStructType() | ArrayType():
            return any(map(holds_floats, element_types(value)))
        case _:
            return False


def address_spaces(value: Type) -> frozenset[int]:
    """Those of the pointers in a type; of a function type, of its parameters and its result."""
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
