"""Values: everything that can be an operand, and the constants among them.

Identity is equality. A value knows its users (``users``: instruction → how many of its operands are this value);
constants, which are shared and plentiful, do not track theirs, globals do.
"""

from __future__ import annotations

import math
import struct
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias, assert_never, cast

from irad.ir import types
from irad.ir.types import FloatType, FunctionType, IntType, Type
from irad.records import dataclass

if TYPE_CHECKING:
    from irad.ir.instructions import Instruction


@dataclass(eq=False, slots=True)
class Value:
    """Anything that can be an operand.

    ``name`` is without sigil and quotes; None means unnamed, and the printer numbers it as LLVM does. Names need not be
    unique while editing: the printer tells equal ones apart by a suffix.
    """

    type: Type
    name: str | None = None


@dataclass(eq=False, slots=True)
class TrackedValue(Value):
    """A value that knows its users."""

    users: dict[Instruction, int] = field(default_factory=dict, repr=False)


@dataclass(eq=False, slots=True)
class Parameter(TrackedValue):
    """A formal argument. ``attributes`` as printed, one string each: `noalias`, `align 8`, `captures(none)`."""

    attributes: tuple[str, ...] = ()


# ------------------------------------------------------------------------------------------------ constants


@dataclass(eq=False, slots=True)
class Constant(Value):
    """Base of constants other than globals."""


@dataclass(eq=False, slots=True)
class ConstantInt(Constant):
    """An integer in the range of its type, signed (`i1`: 0 or 1, printed `false` / `true`)."""

    value: int = 0


@dataclass(eq=False, slots=True)
class ConstantFloat(Constant):
    """A floating-point constant. ``text`` is LLVM's exact spelling and decides; ``value`` is its Python reading.

    Types wider than `double` have ``value`` nan unless the spelling is decimal.
    """

    value: float = 0.0
    text: str = ""


@dataclass(eq=False, slots=True)
class ConstantNull(Constant):
    """`null` of a pointer type (also `none` of a token)."""


@dataclass(eq=False, slots=True)
class ConstantZero(Constant):
    """`zeroinitializer` of an aggregate, vector or target type."""


@dataclass(eq=False, slots=True)
class Undef(Constant):
    """`undef`."""


@dataclass(eq=False, slots=True)
class Poison(Constant):
    """`poison`."""


@dataclass(eq=False, slots=True)
class ConstantAggregate(Constant):
    """A struct, array or vector constant element by element.

    A vector `splat (T v)` has one element and ``splat``.
    """

    elements: tuple[Value, ...] = ()
    splat: bool = False


@dataclass(eq=False, slots=True)
class ConstantString(Constant):
    """`c"…"`: an array of i8."""

    data: bytes = b""


@dataclass(eq=False, slots=True)
class ConstantExpression(Constant):
    """`getelementptr inbounds (…)`, `ptrtoint (ptr @g to i64)`, `add (…)`, ….

    ``flags`` are the words after the opcode as printed; ``source_type`` is the element type of a getelementptr.
    """

    opcode: str = ""
    operands: tuple[Value, ...] = ()
    flags: tuple[str, ...] = ()
    source_type: Type | None = None


@dataclass(eq=False, slots=True)
class GlobalWrapper(Constant):
    """`dso_local_equivalent @f`, `no_cfi @f`, `ptrauth (…)`, `blockaddress(@f, %b)`: kept with their operands.

    ``text`` is the keyword; blocks are named by ``block`` because the function may be parsed later.
    """

    text: str = ""
    operands: tuple[Value, ...] = ()
    block: str | None = None


@dataclass(eq=False, slots=True)
class InlineAsm(Constant):
    """`asm sideeffect "…", "…"`: ``text`` as printed."""

    text: str = ""


@dataclass(eq=False, slots=True)
class MetadataOperand(Constant):
    """A metadata argument of a call (`metadata !7`, `metadata ptr %x`): ``text`` or a wrapped value."""

    text: str = ""
    value: Value | None = None


AnyConstant: TypeAlias = (
    ConstantInt | ConstantFloat | ConstantNull | ConstantZero | Undef | Poison | ConstantAggregate | ConstantString
    | ConstantExpression | GlobalWrapper | InlineAsm | MetadataOperand
)  # fmt: skip


def parts_of(value: Value) -> tuple[Value, ...]:
    """Parts of a constant; metadata only mentions what it wraps."""
    if not isinstance(value, Constant):
        return ()
    match cast("AnyConstant", value):
        case ConstantExpression(operands=parts) | ConstantAggregate(elements=parts) | GlobalWrapper(operands=parts):
            return parts
        case (
            ConstantInt() | ConstantFloat() | ConstantNull() | ConstantZero() | Undef() | Poison() | ConstantString()
            | InlineAsm() | MetadataOperand()
        ):  # fmt: skip
            return ()
        case constant:
            assert_never(constant)


# ------------------------------------------------------------------------------------------------ globals


@dataclass(eq=False, slots=True)
class GlobalVariable(TrackedValue):
    """`@g = … global|constant T init, …`. Its own type is a pointer; ``value_type`` is what it holds.

    ``prefix`` are the words between `=` and `global`/`constant` (linkage, preemption, visibility, `thread_local(…)`,
    `unnamed_addr`, `addrspace(N)`, `externally_initialized`) as printed; ``suffix`` those after the initialiser
    (`section "…"`, `comdat`, `align 8`, …); ``metadata`` attachments as (kind, node text).
    """

    value_type: Type = types.I8
    initializer: Value | None = None
    constant: bool = False
    prefix: tuple[str, ...] = ()
    suffix: tuple[str, ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()


@dataclass(eq=False, slots=True)
class GlobalAlias(TrackedValue):
    """`@a = … alias T, ptr @x` or `ifunc`."""

    value_type: Type = types.I8
    target: Value | None = None
    keyword: str = "alias"
    prefix: tuple[str, ...] = ()
    suffix: tuple[str, ...] = ()


# ------------------------------------------------------------------------------------------------ constructors


def const_int(type_: Type, value: int) -> ConstantInt:
    """An integer constant, wrapped into the signed range of its type."""
    assert isinstance(type_, IntType)
    bits = type_.bits
    value &= (1 << bits) - 1
    if bits > 1 and value >> (bits - 1):
        value -= 1 << bits
    return ConstantInt(type_, None, value)


def const_float(type_: Type, value: float) -> ConstantFloat:
    """A `half`, `float` or `double` constant (the value of the smaller ones is rounded)."""
    assert isinstance(type_, FloatType)
    if type_ is types.HALF:
        rounded = struct.pack("<e", value)
        return ConstantFloat(type_, None, struct.unpack("<e", rounded)[0], f"0xH{struct.unpack('<H', rounded)[0]:04X}")
    assert type_ in (types.FLOAT, types.DOUBLE)
    if type_ is types.FLOAT and math.isfinite(value):
        value = struct.unpack("<f", struct.pack("<f", value))[0]
    bits: int = struct.unpack("<Q", struct.pack("<d", value))[0]
    return ConstantFloat(type_, None, value, f"0x{bits:016X}")


def zero(type_: Type) -> Constant:
    """The zero of any first-class type."""
    match type_:
        case IntType():
            return const_int(type_, 0)
        case FloatType() if type_ in (types.HALF, types.FLOAT, types.DOUBLE):
            return const_float(type_, 0.0)
        case types.PointerType():
            return ConstantNull(type_)
        case FloatType():
            raise TypeError(f"no spelled zero of {type_}")
        case FunctionType() | types.SimpleType():
            raise TypeError(f"{type_} has no zero")
        case _:
            return ConstantZero(type_)
