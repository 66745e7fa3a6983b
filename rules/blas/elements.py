"""What arrays hold in the rules of BLAS and LAPACK: element types, and numbers in the code that rules emit.

A `Number` is a float or a pair of floats, with the operators of Python, so that one formula serves real and complex
matrices:

    product = (x * y.conj()).real
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.types import FloatType, Type
from irad.ir.values import ConstantInt, Value, const_float, const_int

Factor: TypeAlias = tuple[Value, ...]
"""A number: a float, or real and imaginary part."""

_ONE: Final = const_int(types.I64, 1)
_I1: Final = types.I1


@dataclass(frozen=True, slots=True)
class Element:
    """What a BLAS letter means: numbers of one or two floats."""

    scalar: FloatType
    is_complex: bool

    @property
    def type(self) -> Type:
        """The number in memory."""
        return types.array_type(2, self.scalar) if self.is_complex else self.scalar

    @property
    def real(self) -> Element:
        """What real and imaginary parts are."""
        return Element(self.scalar, False)

    @property
    def size(self) -> int:
        """Bytes."""
        return types.size_of(self.scalar) * (2 if self.is_complex else 1)

    @property
    def name(self) -> str:
        """Kind and bits, as part of symbols."""
        return f"{'c' if self.is_complex else 'f'}{8 * self.size}"

    @property
    def letter(self) -> str:
        """What it is called in BLAS and LAPACK."""
        return next(chr(letter) for letter, element in _ELEMENTS.items() if element == self)

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next float."""
        return 2.0**-52 if self.scalar is types.DOUBLE else 2.0**-23

    @property
    def one(self) -> Factor:
        """The number 1."""
        return tuple(const_float(self.scalar, part) for part in ((1.0, 0.0) if self.is_complex else (1.0,)))

    def load(self, builder: Builder, pointer: Value) -> Factor:
        """The number at an address."""
        return tuple(builder.load(self.scalar, part) for part in self.parts_at(builder, pointer))

    def store(self, builder: Builder, value: Factor, pointer: Value) -> None:
        """Stores a number; the imaginary part is 0 if there is none."""
        places = self.parts_at(builder, pointer)
        padding = [const_float(self.scalar, 0.0)] * (len(places) - len(value))
        for part, place in zip([*value, *padding], places, strict=True):
            builder.store(part, place)

    def parts_at(self, builder: Builder, pointer: Value) -> tuple[Value, ...]:
        """Pointers to the floats of the number at an address."""
        return (pointer, builder.gep(self.scalar, pointer, [_ONE])) if self.is_complex else (pointer,)


_ELEMENTS: Final = {
    ord("s"): Element(types.FLOAT, False),
    ord("d"): Element(types.DOUBLE, False),
    ord("c"): Element(types.FLOAT, True),
    ord("z"): Element(types.DOUBLE, True),
}


def element_of(kind: Value, operation: str) -> Element:
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
class Number:
    """A number in emitted code: operators emit where the builder stands.

    Attributes:
        build: where to.
        parts: a float, or real and imaginary part.
    """

    build: Builder
    parts: Factor

    def __add__(self, other: Number) -> Number:
        return self._part_by_part(other, self.build.fadd)

    def __sub__(self, other: Number) -> Number:
        return self._part_by_part(other, self.build.fsub)

    def __neg__(self) -> Number:
        return self._each(self.build.fneg)

    def __mul__(self, other: Number) -> Number:
        mul, x, y = self.build.fmul, self.parts, other.parts
        if len(x) == len(y) == 2:
            real = self.build.fsub(mul(x[0], y[0]), mul(x[1], y[1]))
            return self._like((real, self.build.fadd(mul(x[0], y[1]), mul(x[1], y[0]))))
        one, several = (x, y) if len(x) == 1 else (y, x)
        return self._like(tuple(mul(part, one[0]) for part in several))

    def __truediv__(self, other: Number) -> Number:
        if len(other.parts) == 1:
            return self._each(lambda part: self.build.fdiv(part, other.parts[0]))
        # Scaled first, so that the squares of the denominator neither overflow nor vanish.
        size = other.magnitude()
        below = other / size
        return ((self / size) * below.conj()) / below.square()

    def conj(self) -> Number:
        """The conjugate."""
        return self._like((self.parts[0], *(self.build.fneg(part) for part in self.parts[1:])))

    def square(self) -> Number:
        """`|x|²`."""
        return self._like((functools.reduce(self.build.fadd, [self.build.fmul(p, p) for p in self.parts]),))

    def magnitude(self) -> Number:
        """`|x|`; of a complex number the larger part, which is that within a factor of √2."""
        type_ = self.parts[0].type
        suffix = "f64" if type_ is types.DOUBLE else "f32"
        sizes = [self.build.intrinsic(f"llvm.fabs.{suffix}", type_, [part]) for part in self.parts]
        return functools.reduce(Number.maximum, [self._like((size,)) for size in sizes])

    def root(self) -> Number:
        """`√x` of a real number."""
        type_ = _float_of(self)
        suffix = "f64" if type_ is types.DOUBLE else "f32"
        return self._like((self.build.intrinsic(f"llvm.sqrt.{suffix}", type_, list(self.parts)),))

    def sign(self) -> Number:
        """-1, 0 or 1 for each part."""
        one, nothing = (const_float(_float_of(self), value) for value in (1.0, 0.0))

        def of(part: Value) -> Value:
            below = self.build.select(self.build.fcmp("olt", part, nothing), self.build.fneg(one), nothing)
            return self.build.select(self.build.fcmp("ogt", part, nothing), one, below)

        return self._each(of)

    def maximum(self, other: Number) -> Number:
        """The larger of two real numbers."""
        return choose(self > other, self, other)

    @property
    def real(self) -> Number:
        """The real part."""
        return self._like(self.parts[:1])

    @property
    def imag(self) -> Number:
        """The imaginary part."""
        return self._like(self.parts[1:] or (const_float(_float_of(self), 0.0),))

    def times_i(self) -> Number:
        """`i x`."""
        return self._like(((-self.imag).parts[0], self.parts[0]))

    def is_zero(self) -> Value:
        """Whether it is 0; NaN is not."""
        nothing = const_float(_float_of(self), 0.0)
        return functools.reduce(self.build.and_, [self.build.fcmp("oeq", part, nothing) for part in self.parts])

    def is_nonzero(self) -> Value:
        """Whether it is not 0; NaN counts."""
        nothing = const_float(_float_of(self), 0.0)
        return functools.reduce(self.build.or_, [self.build.fcmp("une", part, nothing) for part in self.parts])

    def __gt__(self, other: Number) -> Value:
        return self.build.fcmp("ogt", self.parts[0], other.parts[0])

    def __le__(self, other: Number) -> Value:
        return self.build.fcmp("ole", self.parts[0], other.parts[0])

    def plus(self, other: Number, flags: Sequence[str]) -> Number:
        """The sum, with flags of LLVM."""
        return self._part_by_part(other, lambda x, y: self.build.fadd(x, y, tuple(flags)))

    def as_complex(self) -> Number:
        """With an imaginary part."""
        return self._like((self.parts[0], self.imag.parts[0]))

    def _like(self, parts: Factor) -> Number:
        return Number(self.build, parts)

    def _each(self, operation: Callable[[Value], Value]) -> Number:
        return self._like(tuple(operation(part) for part in self.parts))

    def _part_by_part(self, other: Number, operation: _Operation) -> Number:
        real = operation(self.parts[0], other.parts[0])
        if len(self.parts) == len(other.parts) == 1:
            return self._like((real,))
        return self._like((real, operation(self.imag.parts[0], other.imag.parts[0])))


def _float_of(number: Number) -> FloatType:
    type_ = number.parts[0].type
    assert isinstance(type_, FloatType)
    return type_


def choose(condition: Value, a: Number, b: Number) -> Number:
    """`a if condition else b`."""
    if len(a.parts) != len(b.parts):
        a, b = a.as_complex(), b.as_complex()
    select = functools.partial(a.build.select, condition)
    return Number(a.build, tuple(map(select, a.parts, b.parts)))
