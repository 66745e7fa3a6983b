"""Functions of the derivative module that work on dense arrays: loops, branches, variables.

    with k.loop(columns) as j, k.loop(rows) as i:
        a[i, j] = -a[i, j]

Elements are real or complex, as the kernel says; for complex ones adjoints are conjugate transposes throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import Field, fields, replace
from typing import Any, ClassVar, Final, Protocol, TypeAlias

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.types import Type
from irad.ir.values import GlobalVariable, Value, const_float, const_int
from irad.records import dataclass
from irad.rules.dense.elements import ElementType, Scalar

I1: Final = types.I1
I8: Final = types.I8
I64: Final = types.I64
PTR: Final = types.PTR
NONE: Final = const_int(I64, 0)
ONE: Final = const_int(I64, 1)
TWO: Final = const_int(I64, 2)
TRUE: Final = const_int(I1, 1)
CALLED: Final = ("noinline", "nounwind")
MERGED: Final = ("alwaysinline", "nounwind")
"""Of functions that are differentiated themselves: what lies in memory is known where all that uses it is in sight."""
INLINED: Final = ("nounwind", "willreturn", "memory(argmem: readwrite)")
_REASSOCIATE: Final = ("reassoc",)


class Composite(Protocol):
    """Object made of several LLVM values, such as a matrix: a dataclass of values, with or without a `Kernel`."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


KernelArgument: TypeAlias = "Value | Scalar | Composite"


@dataclass(frozen=True, slots=True)
class Kernel:
    """Emits code that works on arrays of one element type.

    Attributes:
        build: where to.
        element: element type of the arrays.
    """

    build: Builder
    element: ElementType

    @property
    def real(self) -> Kernel:
        """This kernel for arrays of real numbers: singular values, eigenvalues of a Hermitian matrix."""
        return Kernel(self.build, self.element.real)

    @property
    def complex(self) -> Kernel:
        """This kernel for arrays of complex numbers."""
        return Kernel(self.build, ElementType(self.element.scalar, True))

    @property
    def nothing(self) -> Scalar:
        """0."""
        return self.number(0.0)

    def number(self, value: float) -> Scalar:
        """A real constant."""
        return Scalar(self.build, (const_float(self.element.scalar, value),))

    def load(self, place: Value) -> Scalar:
        """The number at an address."""
        return Scalar(self.build, self.element.load(self.build, place))

    def store(self, value: Scalar, place: Value) -> None:
        """Sets the number at an address."""
        self.element.store(self.build, value.parts, place)

    def slot(self, type_: Type) -> Value:
        """Memory of the function's for one value."""
        return Builder.at_start(self.build.function.entry).alloca(type_)

    def variable(self, initial: Scalar | None = None) -> Cell:
        """A local variable, for values that a loop carries; 0 at first."""
        cell = Cell(self, self.slot(self.element.type))
        cell.value = self.nothing if initial is None else initial
        return cell

    def constant(self, value: float) -> Value:
        """A pointer to a number."""
        scalar, number = self.element.scalar, const_float(self.element.scalar, value)
        if self.element.is_complex:
            start = Builder.at_start(self.build.function.entry)
            slot = start.alloca(self.element.type)
            self.element.store(start, (number,), slot)
            return slot
        name = f"irad_constant_{scalar}_{number.text}"
        found = self.build.module.globals.get(name)
        if found is None:
            prefix = ("private", "unnamed_addr")
            found = GlobalVariable(PTR, name, value_type=scalar, initializer=number, constant=True, prefix=prefix)
            self.build.module.globals[name] = found
        return found

    # -------------------------------------------------------------------------------------------- control

    @contextmanager
    def loop(self, end: Value, start: Value = NONE) -> Iterator[Value]:
        """`for index in range(start, end)`."""
        build, function, before = self.build, self.build.function, self.build.block
        header, body, after = (function.add_block(name) for name in ("header", "body", "after"))
        build.br(header)
        build.block = header
        index = build.phi(I64, [(start, before)])
        build.cond_br(build.icmp("slt", index, end), body, after)
        build.block = body
        yield index
        index.add_incoming(build.add(index, ONE, flags=("nuw", "nsw")), build.block)
        build.br(header)
        build.block = after

    @contextmanager
    def loop_down(self, count: Value) -> Iterator[Value]:
        """`for index in reversed(range(count))`."""
        with self.loop(count) as index:
            yield self.build.sub(self.build.sub(count, ONE), index)

    @contextmanager
    def when(self, condition: Value) -> Iterator[None]:
        """`if condition:`."""
        build, function = self.build, self.build.function
        body, after = function.add_block("then"), function.add_block("after")
        build.cond_br(condition, body, after)
        build.block = body
        yield
        build.br(after)
        build.block = after

    @contextmanager
    def unless(self, condition: Value) -> Iterator[None]:
        """`if not condition:`."""
        with self.when(self.build.xor(condition, TRUE)):
            yield

    def return_if(self, condition: Value, value: Value) -> None:
        """`if condition: return value`."""
        build, function = self.build, self.build.function
        leave, stay = function.add_block("return"), function.add_block("after")
        build.cond_br(condition, leave, stay)
        Builder(leave).ret(value)
        build.block = stay

    # -------------------------------------------------------------------------------------------- sizes

    def smaller(self, a: Value, b: Value) -> Value:
        """The minimum of two sizes."""
        return self.build.intrinsic("llvm.smin.i64", I64, [a, b])

    def larger(self, a: Value, b: Value) -> Value:
        """The maximum of two sizes."""
        return self.build.intrinsic("llvm.smax.i64", I64, [a, b])

    def after(self, i: Value) -> Value:
        """`i + 1`."""
        return self.build.add(i, ONE)

    def same(self, i: Value, j: Value) -> Value:
        """`i == j`."""
        return self.build.icmp("eq", i, j)

    # -------------------------------------------------------------------------------------------- calls

    def outline(
        self,
        name: str,
        body: Callable[..., Value | None],
        *operands: KernelArgument,
        result: Type = types.VOID,
        attributes: tuple[str, ...] = CALLED,
    ) -> Value:
        """Calls the function ``irad_<name>_<element>``, which is defined on first use.

        Args:
            name: for the symbol; no two bodies share one.
            body: is called with a `Kernel` inside the function and the operands there, and returns the result.
            operands: values, numbers, vectors, matrices.
            result: type of the result.
            attributes: attributes of the function.
        """
        module, symbol = self.build.module, f"irad_{name}_{self.element.name}"
        given = [value for operand in operands for value in values_of(operand)]
        function = module.functions.get(symbol)
        if function is None:
            function = module.define(symbol, types.function_type(result, [value.type for value in given]))
            if module.opaque_guards and attributes is CALLED:
                attributes = MERGED
            function.prefix, function.attributes = ("internal",), attributes
            inside = Kernel(Builder(function.add_block("entry")), self.element)
            rest = iter(function.params)
            inside.build.ret(body(inside, *(_rebuilt(operand, inside.build, rest) for operand in operands)))
        return self.build.call(function, given)

    def entry(self, name: str, *operands: str | KernelArgument) -> Value:
        """Calls an entry point of Numba's to BLAS or LAPACK; the letter of the element type comes first."""
        letters = (const_int(I8, ord(o)) if isinstance(o, str) else o for o in (self.element.letter, *operands))
        given = [value for operand in letters for value in values_of(operand)]
        declared = self.build.module.declare(name, types.function_type(types.I32, [value.type for value in given]))
        return self.build.call(declared, given)


def values_of(operand: KernelArgument) -> list[Value]:
    """Values that stand for an operand in a call."""
    match operand:
        case Value():
            return [operand]
        case Scalar():
            return list(operand.parts)
        case _:
            parts = (getattr(operand, part.name) for part in fields(operand))
            return [part for part in parts if isinstance(part, Value)]


def _rebuilt(operand: KernelArgument, build: Builder, rest: Iterator[Value]) -> KernelArgument:
    """The operand made of other values, elsewhere."""
    match operand:
        case Value():
            return next(rest)
        case Scalar():
            return Scalar(build, tuple(next(rest) for _ in operand.parts))
        case _:
            parts = {part.name: getattr(operand, part.name) for part in fields(operand)}
            inside: dict[str, Kernel | Value] = {}
            for name, part in parts.items():
                if isinstance(part, Kernel):
                    inside[name] = Kernel(build, part.element)
                elif isinstance(part, Value):
                    inside[name] = next(rest)
            return replace(operand, **inside)


@dataclass(eq=False, slots=True)
class Cell:
    """A number in memory: a local variable, or the shadow of a number."""

    k: Kernel
    pointer: Value

    @property
    def value(self) -> Scalar:
        """The number."""
        return self.k.load(self.pointer)

    @value.setter
    def value(self, value: Scalar) -> None:
        self.k.store(value, self.pointer)

    def accumulate(self, amount: Scalar) -> None:
        """Adds, in whatever order suits."""
        self.value = self.value.plus(amount, _REASSOCIATE)
