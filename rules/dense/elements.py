"""Elements of arrays in the rules of BLAS and LAPACK: element types, and numbers in the code that rules emit.

A `Scalar` is a float or a pair of floats, with the operators of Python, so that one formula serves real and complex
matrices:

    product = (x * y.conj()).real
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.types import FloatType, Type
from irad.ir.values import ConstantInt, Value, const_float, const_int
from irad.records import dataclass
from irad.ruleset.guards import strong_zero

Parts: TypeAlias = tuple[Value, ...]
"""A number: a float, or real and imaginary part."""

_ONE: Final = const_int(types.I64, 1)


@dataclass(frozen=True, slots=True)
class ElementType:
    """Meaning of a BLAS letter: numbers of one or two floats."""

    scalar: FloatType
    is_complex: bool

    @property
    def type(self) -> Type:
        """The number in memory."""
        return types.array_type(2, self.scalar) if self.is_complex else self.scalar

    @property
    def real(self) -> ElementType:
        """That of real and imaginary parts."""
        return ElementType(self.scalar, False)

    @property
    def size(self) -> int:
        """Size in bytes."""
        return types.size_of(self.scalar) * (2 if self.is_complex else 1)

    @property
    def name(self) -> str:
        """Kind and bits, as part of symbols."""
        return f"{'c' if self.is_complex else 'f'}{8 * self.size}"

    @property
    def letter(self) -> str:
        """Letter of the type in BLAS and LAPACK."""
        return next(chr(letter) for letter, element in _ELEMENTS.items() if element == self)

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next float."""
        return 2.0**-52 if self.scalar is types.DOUBLE else 2.0**-23

    @property
    def one(self) -> Parts:
        """The number 1."""
        return tuple(const_float(self.scalar, part) for part in ((1.0, 0.0) if self.is_complex else (1.0,)))

    def load(self, builder: Builder, pointer: Value) -> Parts:
        """The number at an address."""
        return tuple(builder.load(self.scalar, part) for part in self._parts_at(builder, pointer))

    def store(self, builder: Builder, value: Parts, pointer: Value) -> None:
        """Stores a number; the imaginary part is 0 if there is none."""
        places = self._parts_at(builder, pointer)
        padding = [const_float(self.scalar, 0.0)] * (len(places) - len(value))
        for part, place in zip([*value, *padding], places, strict=True):
            builder.store(part, place)

    def _parts_at(self, builder: Builder, pointer: Value) -> Parts:
        return (pointer, builder.gep(self.scalar, pointer, [_ONE])) if self.is_complex else (pointer,)


DOUBLES: Final = ElementType(types.DOUBLE, False)
_ELEMENTS: Final = {
    ord("s"): ElementType(types.FLOAT, False),
    ord("d"): DOUBLES,
    ord("c"): ElementType(types.FLOAT, True),
    ord("z"): ElementType(types.DOUBLE, True),
}


def element_of(kind: Value, operation: str) -> ElementType:
    """The type that a BLAS letter means.

    Raises:
        UnsupportedError: the letter is not known at compile time.
    """
    if isinstance(kind, ConstantInt) and kind.value in _ELEMENTS:
        return _ELEMENTS[kind.value]
    raise UnsupportedError(
        f"the element type of this {operation} is not known at compile time",
        "call it in a separate function for each element type",
        "single and double precision, real and complex, each have their own derivative",
    )


# ------------------------------------------------------------------------------------------------ numbers

_Operation: TypeAlias = Callable[[Value, Value], Value]


@dataclass(frozen=True, slots=True)
class Scalar:
    """A number in emitted code: operators emit where the builder stands.

    Attributes:
        build: where to.
        parts: a float, or real and imaginary part.
    """

    build: Builder
    parts: Parts

    def __add__(self, other: Scalar | float) -> Scalar:
        return self._part_by_part(self.lifted(other), self.build.fadd)

    def __sub__(self, other: Scalar | float) -> Scalar:
        return self._part_by_part(self.lifted(other), self.build.fsub)

    def __rsub__(self, other: float) -> Scalar:
        return self.lifted(other) - self

    def __neg__(self) -> Scalar:
        return self._each(self.build.fneg)

    def __mul__(self, other: Scalar | float) -> Scalar:
        return self.product(self.lifted(other), self.build.fmul)

    def __rmul__(self, other: float) -> Scalar:
        return self.lifted(other) * self

    def product(self, other: Scalar, mul: _Operation) -> Scalar:
        """The product, with a multiplication of floats to build it from."""
        x, y = self.parts, other.parts
        if len(x) == len(y) == 2:
            real = self.build.fsub(mul(x[0], y[0]), mul(x[1], y[1]))
            return self._like((real, self.build.fadd(mul(x[0], y[1]), mul(x[1], y[0]))))
        if len(x) == 1:
            return self._like(tuple(mul(x[0], part) for part in y))
        return self._like(tuple(mul(part, y[0]) for part in x))

    def __truediv__(self, other: Scalar) -> Scalar:
        if len(other.parts) == 1:
            return self._each(lambda part: self.build.fdiv(part, other.parts[0]))
        # Scaled first, so that the squares of the denominator neither overflow nor vanish.
        size = other.magnitude()
        below = other / size
        return ((self / size) * below.conj()) / below.square()

    def conj(self) -> Scalar:
        """The conjugate."""
        return self._like((self.parts[0], *(self.build.fneg(part) for part in self.parts[1:])))

    def square(self) -> Scalar:
        """`|x|²`."""
        return self._like((functools.reduce(self.build.fadd, [self.build.fmul(p, p) for p in self.parts]),))

    def magnitude(self) -> Scalar:
        """`|x|`; of a complex number the larger part, which is that within a factor of √2."""
        return functools.reduce(Scalar.maximum, [self._intrinsic("fabs", part) for part in self.parts])

    def root(self) -> Scalar:
        """`√x` of a real number."""
        return self._intrinsic("sqrt", self.parts[0])

    def sign(self) -> Scalar:
        """-1, 0 or 1 for each part."""
        one, nothing = self.lifted(1.0).parts[0], self.lifted(0.0).parts[0]

        def of(part: Value) -> Value:
            below = self.build.select(self.build.fcmp("olt", part, nothing), self.build.fneg(one), nothing)
            return self.build.select(self.build.fcmp("ogt", part, nothing), one, below)

        return self._each(of)

    def maximum(self, other: Scalar) -> Scalar:
        """The larger of two real numbers."""
        return choose(self > other, self, other)

    @property
    def real(self) -> Scalar:
        """The real part."""
        return self._like(self.parts[:1])

    @property
    def imag(self) -> Scalar:
        """The imaginary part."""
        return self._like(self.parts[1:] or self.lifted(0.0).parts)

    def times_i(self) -> Scalar:
        """`i x`."""
        return self._like(((-self.imag).parts[0], self.parts[0]))

    def is_zero(self) -> Value:
        """Test that the number is 0; NaN is not."""
        nothing = self.lifted(0.0).parts[0]
        return functools.reduce(self.build.and_, [self.build.fcmp("oeq", part, nothing) for part in self.parts])

    def is_nonzero(self) -> Value:
        """Test that the number is not 0; NaN counts."""
        nothing = self.lifted(0.0).parts[0]
        return functools.reduce(self.build.or_, [self.build.fcmp("une", part, nothing) for part in self.parts])

    def counts(self) -> Value:
        """Test that a derivative is to be followed: not where it is 0, unless it is differentiated itself."""
        return const_int(types.I1, 1) if self.build.module.opaque_guards else self.is_nonzero()

    def __gt__(self, other: Scalar) -> Value:
        return self.build.fcmp("ogt", self.parts[0], other.parts[0])

    def __le__(self, other: Scalar) -> Value:
        return self.build.fcmp("ole", self.parts[0], other.parts[0])

    def plus(self, other: Scalar, flags: Sequence[str]) -> Scalar:
        """The sum, with flags of LLVM."""
        return self._part_by_part(other, lambda x, y: self.build.fadd(x, y, tuple(flags)))

    def as_complex(self) -> Scalar:
        """With an imaginary part."""
        return self._like((self.parts[0], self.imag.parts[0]))

    def lifted(self, value: Scalar | float) -> Scalar:
        """A constant as a number of this precision."""
        return value if isinstance(value, Scalar) else self._like((const_float(self._float, value),))

    @property
    def _float(self) -> FloatType:
        type_ = self.parts[0].type
        assert isinstance(type_, FloatType)
        return type_

    def _intrinsic(self, name: str, part: Value) -> Scalar:
        suffix = "f64" if part.type is types.DOUBLE else "f32"
        return self._like((self.build.intrinsic(f"llvm.{name}.{suffix}", part.type, [part]),))

    def _like(self, parts: Parts) -> Scalar:
        return Scalar(self.build, parts)

    def _each(self, operation: Callable[[Value], Value]) -> Scalar:
        return self._like(tuple(operation(part) for part in self.parts))

    def _part_by_part(self, other: Scalar, operation: _Operation) -> Scalar:
        real = operation(self.parts[0], other.parts[0])
        if len(self.parts) == len(other.parts) == 1:
            return self._like((real,))
        return self._like((real, operation(self.imag.parts[0], other.imag.parts[0])))


def choose(condition: Value, a: Scalar | float, b: Scalar | float) -> Scalar:
    """`a if condition else b`; at least one is not a constant of Python."""
    known = a if isinstance(a, Scalar) else b
    assert isinstance(known, Scalar)
    a, b = known.lifted(a), known.lifted(b)
    if len(a.parts) != len(b.parts):
        a, b = a.as_complex(), b.as_complex()
    return Scalar(a.build, tuple(map(functools.partial(a.build.select, condition), a.parts, b.parts)))


def product_or_zero(a: Scalar, b: Scalar) -> Scalar:
    """`a b`; 0 where ``a`` is 0, whatever ``b`` is."""
    build = a.build
    if build.module.opaque_guards:
        return a.product(b, lambda x, y: strong_zero(build, x, build.fmul(x, y)))
    return choose(a.is_zero(), 0.0, a * b)


def quotient_or_zero(a: Scalar, b: Scalar) -> Scalar:
    """`a / b`; 0 where ``a`` is 0, whatever ``b`` is."""
    if not a.build.module.opaque_guards:
        return choose(a.is_zero(), 0.0, a / b)
    terms = zip(a.parts, (a.real, a.imag.times_i()), strict=False)
    return functools.reduce(Scalar.__add__, (_guarded(part, term / b) for part, term in terms))


def _guarded(derivative: Value, product: Scalar) -> Scalar:
    return Scalar(product.build, tuple(strong_zero(product.build, derivative, part) for part in product.parts))
