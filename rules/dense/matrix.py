"""Vectors and column-major matrices in rules: elements, products, triangular systems.

An adjoint of LAPACK is a handful of matrix products with a few loops between them, and is written so:

    product.set(u @ core)                            # by BLAS, through Numba's entry point
    bar.add(-(product @ v.H))
    core.fill(lambda i, j: half * (g[i, j] - g[j, i].conj()))
    s.set(u.upper)                                   # the rest becomes 0
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final, Literal

from irad.ir.builder import Builder
from irad.ir.values import Value, const_int, zero
from irad.records import dataclass
from irad.rules.dense.elements import Scalar, choose, product_or_zero
from irad.rules.dense.kernel import I1, I64, NONE, ONE, PTR, TRUE, Kernel, values_of

NOWHERE: Final = zero(PTR)
"""Stands for a vector or matrix that there is not."""


def extent(build: Builder, rows: Value, columns: Value, leading: Value) -> Value:
    """The extent of a column-major matrix in elements, from the first to the end of the last."""
    count = build.add(build.mul(build.sub(columns, ONE), leading), rows)
    return build.intrinsic("llvm.smax.i64", I64, [count, NONE])


def is_given(k: Kernel, pointer: Value) -> Value:
    """Test that a pointer is not null."""
    return k.build.icmp("ne", k.build.ptrtoint(pointer, I64), NONE)


# ------------------------------------------------------------------------------------------------ vectors


@dataclass(frozen=True, slots=True)
class Vector:
    """``size`` elements, one after the other.

    Attributes:
        k: where to, and what it holds.
        data: the first element in memory.
        size: number of elements.
        step: from one to the next, of either sign; None: 1.
        start: where element 0 is, counted from ``data``; None: there.
    """

    k: Kernel
    data: Value
    size: Value
    step: Value | None = None
    start: Value | None = None

    @classmethod
    def strided(cls, k: Kernel, data: Value, size: Value, step: Value) -> Vector:
        """As BLAS has it: with a negative step the last comes first in memory."""
        last = k.build.mul(k.build.sub(ONE, size), step)
        return cls(k, data, size, step, k.build.select(k.build.icmp("slt", step, NONE), last, NONE))

    def at(self, i: Value) -> Value:
        """The address of an element."""
        build = self.k.build
        index = i if self.step is None else build.mul(i, self.step)
        return build.gep(
            self.k.element.type, self.data, [index if self.start is None else build.add(self.start, index)]
        )

    def __getitem__(self, i: Value) -> Scalar:
        return self.k.load(self.at(i))

    def __setitem__(self, i: Value, value: Scalar) -> None:
        self.k.store(value, self.at(i))

    @property
    def given(self) -> Value:
        """Test that there is a vector: a null pointer stands for none."""
        return is_given(self.k, self.data)

    def fill(self, element: Callable[[Value], Scalar]) -> None:
        """Sets each element."""
        with self.k.loop(self.size) as i:
            self[i] = element(i)

    def sum(self, term: Callable[[Value], Scalar]) -> Scalar:
        """Of as many terms as there are elements, in whatever order suits."""
        total = self.k.variable()
        with self.k.loop(self.size) as i:
            total.accumulate(term(i))
        return total.value

    def largest(self) -> Scalar:
        """The largest magnitude."""
        found = self.k.real.variable()
        with self.k.loop(self.size) as i:
            found.value = found.value.maximum(self[i].magnitude())
        return found.value

    def take(self, shadow: Vector) -> None:
        """Moves a cotangent here out of a shadow, 0 if none is given; the shadow becomes 0."""

        def body(k: Kernel, target: Vector, shadow: Vector) -> None:
            target.fill(lambda _: k.nothing)
            with k.when(shadow.given), k.loop(target.size) as i:
                target[i] = shadow[i]
                shadow[i] = k.nothing

        self.k.outline("take_vector", body, self, shadow)

    @property
    def line(self) -> Matrix:
        """A matrix of one row; a negative step counts from the other end, for all that are seen so."""
        if self.step is None:
            return Matrix(self.k, self.data, ONE, self.size, ONE)
        distance = self.k.build.intrinsic("llvm.abs.i64", I64, [self.step, const_int(I1, 0)])
        return Matrix(self.k, self.data, ONE, self.size, distance)


# ------------------------------------------------------------------------------------------------ matrices


def as_matrix(operand: Matrix | Vector) -> Matrix:
    """A matrix, or a vector as one, for what does not depend on order or shape."""
    return operand.line if isinstance(operand, Vector) else operand


@dataclass(frozen=True, slots=True)
class Matrix:
    """Element (i, j) is ``data[i + j * leading]``."""

    k: Kernel
    data: Value
    rows: Value
    columns: Value
    leading: Value

    @classmethod
    def dense(cls, k: Kernel, data: Value, rows: Value, columns: Value) -> Matrix:
        """Without gaps between the columns."""
        return cls(k, data, rows, columns, rows)

    def at(self, i: Value, j: Value) -> Value:
        """The address of an element."""
        build = self.k.build
        return build.gep(self.k.element.type, self.data, [build.add(build.mul(j, self.leading), i)])

    def __getitem__(self, place: tuple[Value, Value]) -> Scalar:
        return self.k.load(self.at(*place))

    def __setitem__(self, place: tuple[Value, Value], value: Scalar) -> None:
        self.k.store(value, self.at(*place))

    def sized(self, rows: Value, columns: Value) -> Matrix:
        """Part of the matrix of a size, from the first element on."""
        return replace(self, rows=rows, columns=columns)

    def part(self, i: Value, j: Value, rows: Value, columns: Value) -> Matrix:
        """Part of the matrix of a size, from an element on."""
        return replace(self, data=self.at(i, j), rows=rows, columns=columns)

    def column(self, j: Value, start: Value = NONE) -> Vector:
        """A column, from a row on."""
        return Vector(self.k, self.at(start, j), self.k.build.sub(self.rows, start) if start is not NONE else self.rows)

    def or_else(self, condition: Value, other: Matrix) -> Matrix:
        """This matrix if the condition holds, else the other one."""
        chosen = (self.k.build.select(condition, x, y) for x, y in zip(values_of(self), values_of(other), strict=True))
        return Matrix(self.k, *chosen)

    @property
    def given(self) -> Value:
        """Test that there is a matrix: a null pointer stands for none."""
        return is_given(self.k, self.data)

    @contextmanager
    def each(self) -> Iterator[tuple[Value, Value]]:
        """Loops over rows and columns."""
        with self.k.loop(self.columns) as j, self.k.loop(self.rows) as i:
            yield i, j

    def fill(self, element: Callable[[Value, Value], Scalar]) -> None:
        """Sets each element."""
        with self.each() as (i, j):
            self[i, j] = element(i, j)

    def clear(self) -> None:
        """Sets all elements to 0."""
        self.fill(lambda i, j: self.k.nothing)

    def conjugate(self) -> None:
        """Replaces all elements by their conjugates."""
        self.fill(lambda i, j: self[i, j].conj())

    def scale(self, factor: Scalar) -> None:
        """`a *= factor`; what is 0 stays 0."""
        self.fill(lambda i, j: product_or_zero(self[i, j], factor))

    def inner(self, cotangent: Matrix) -> Scalar:
        """`Σ conj(aᵢⱼ) bᵢⱼ` for a cotangent b; where that is 0 nothing is added."""
        total = self.k.variable()
        with self.each() as (i, j):
            total.accumulate(product_or_zero(cotangent[i, j], self[i, j].conj()))
        return total.value

    def largest(self) -> Scalar:
        """The largest magnitude."""
        found = self.k.real.variable()
        with self.each() as (i, j):
            found.value = found.value.maximum(self[i, j].magnitude())
        return found.value

    def counts(self) -> Value:
        """As that of `Scalar`: whether some element does."""
        return Part(self, "all").counts()

    def any_nonzero(self) -> Value:
        """Test that some element is not 0; NaN counts."""
        return Part(self, "all").any_nonzero()

    # -------------------------------------------------------------------------------------------- formulas

    @property
    def H(self) -> Factor:
        """The conjugate transpose; of a real matrix the transpose."""
        return Factor(self, adjoint=True)

    def __matmul__(self, other: Matrix | Factor) -> Product:
        return Factor(self) @ other

    @property
    def upper(self) -> Part:
        """The upper triangle with the diagonal."""
        return Part(self, "upper")

    @property
    def strictly_lower(self) -> Part:
        """The lower triangle without the diagonal."""
        return Part(self, "strictly_lower")

    @property
    def beside_diagonal(self) -> Part:
        """The matrix without its diagonal."""
        return Part(self, "beside_diagonal")

    @property
    def unit_lower(self) -> Part:
        """The lower triangle, with 1 on the diagonal."""
        return Part(self, "unit_lower")

    def set(self, source: Matrix | Factor | Part | Product) -> None:
        """Sets it to a product, or to another matrix; of the same memory only to a part of itself."""
        match source:
            case Product():
                source.into(self, keep=0.0)
            case Matrix():
                Part(source, "all").copy_to(self)
            case Part():
                source.copy_to(self)
            case Factor():
                assert source.adjoint
                self.k.outline("transpose_into", _transpose_into, source.matrix, self)

    def add(self, product: Product) -> None:
        """`a += product`."""
        product.into(self, keep=1.0)

    def transpose(self) -> None:
        """Replaces a square matrix by its conjugate transpose."""
        self.k.outline("transpose", _transpose, self)


@dataclass(frozen=True, slots=True)
class Factor:
    """A matrix in a product, as it is or conjugate transposed."""

    matrix: Matrix
    adjoint: bool = False

    def __matmul__(self, other: Matrix | Factor) -> Product:
        return Product(self, Factor(other) if isinstance(other, Matrix) else other)

    @property
    def letter(self) -> str:
        """Transposition letter for BLAS."""
        return ("c" if self.matrix.k.element.is_complex else "t") if self.adjoint else "n"


@dataclass(frozen=True, slots=True)
class Product:
    """A product of two matrices, to be computed by BLAS."""

    left: Factor
    right: Factor
    scale: float = 1.0

    def __neg__(self) -> Product:
        return replace(self, scale=-self.scale)

    def into(self, c: Matrix, *, keep: float) -> None:
        """`c = product + keep c`."""
        k, a, b = c.k, self.left.matrix, self.right.matrix
        inner = a.rows if self.left.adjoint else a.columns
        sizes, operands = (c.rows, c.columns, inner), (a.data, a.leading, b.data, b.leading)
        letters = self.left.letter, self.right.letter
        k.entry(
            "numba_xxgemm", *letters, *sizes, k.constant(self.scale), *operands, k.constant(keep), c.data, c.leading
        )


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a matrix; the rest counts as 0."""

    matrix: Matrix
    name: Literal["all", "upper", "strictly_lower", "unit_lower", "beside_diagonal"]

    def counts(self) -> Value:
        """As that of `Scalar`: whether some element does."""
        return TRUE if self.matrix.k.build.module.opaque_guards else self.any_nonzero()

    def any_nonzero(self) -> Value:
        """Test that some element is not 0; NaN counts. The search ends with the first column that has one."""

        def body(k: Kernel, a: Matrix) -> Value:
            found = k.slot(I1)
            with k.loop(a.columns) as j:
                k.build.store(const_int(I1, 0), found)
                with k.loop(a.rows) as i:
                    k.build.store(k.build.or_(k.build.load(I1, found), self._element(a, i, j).is_nonzero()), found)
                k.return_if(k.build.load(I1, found), TRUE)
            return const_int(I1, 0)

        suffix = "" if self.name == "all" else f"_{self.name}"
        return self.matrix.k.outline(f"any_nonzero{suffix}", body, self.matrix, result=I1)

    def copy_to(self, target: Matrix) -> None:
        """Copies the matrix."""

        def body(_: Kernel, source: Matrix, target: Matrix) -> None:
            target.fill(lambda i, j: self._element(source, i, j))

        target.k.outline(f"copy_{self.name}", body, self.matrix, target)

    def _element(self, a: Matrix, i: Value, j: Value) -> Scalar:
        if self.name == "all":
            return a[i, j]
        build = a.k.build
        if self.name == "beside_diagonal":
            return choose(a.k.same(i, j), 0.0, a[i, j])
        inside = choose(build.icmp("sle" if self.name == "upper" else "sgt", i, j), a[i, j], 0.0)
        return choose(a.k.same(i, j), 1.0, inside) if self.name == "unit_lower" else inside


def _transpose(k: Kernel, a: Matrix) -> None:
    with k.loop(a.columns) as j:
        with k.loop(j) as i:
            upper, lower = a[i, j], a[j, i]
            a[i, j], a[j, i] = lower.conj(), upper.conj()
        if k.element.is_complex:
            a[j, j] = a[j, j].conj()


def _transpose_into(_: Kernel, source: Matrix, target: Matrix) -> None:
    with source.each() as (i, j):
        target[j, i] = source[i, j].conj()
