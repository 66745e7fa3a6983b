"""Context for the body of a derivative: sizes, operands and shadows as matrices and vectors, working memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import TypeAlias

from irad.ir.builder import Builder
from irad.ir.values import Value, const_int
from irad.records import dataclass
from irad.rules.dense.elements import ElementType, Scalar, choose
from irad.rules.dense.kernel import I1, I8, I64, NONE, ONE, Cell, Kernel, KernelArgument
from irad.rules.dense.library import Library
from irad.rules.dense.matrix import Matrix, Vector, extent, is_given

_PLAIN, _TRANSPOSED, _UPPER, _LEFT, _UNIT = (ord(letter) for letter in "ntulu")


@dataclass(frozen=True, slots=True)
class Sizes:
    """Letters (i8) and sizes (i64) of a call, where a builder stands."""

    build: Builder
    values: Mapping[str, Value]

    def __getitem__(self, name: str) -> Value:
        return self.values[name]

    def is_plain(self, name: str) -> Value:
        """Test that a transposition letter says "as it is"."""
        return self._is(name, _PLAIN)

    def is_transposed(self, name: str) -> Value:
        """Test that a letter says "transposed", without conjugation."""
        return self._is(name, _TRANSPOSED)

    def is_upper(self) -> Value:
        """Test that the upper triangle counts."""
        return self._is("uplo", _UPPER)

    def is_left(self) -> Value:
        """Test that the matrix stands on the left."""
        return self._is("side", _LEFT)

    def is_unit(self) -> Value:
        """Test that the diagonal counts as 1."""
        return self._is("diag", _UNIT)

    def flipped(self, name: str) -> Value:
        """The letter of the adjoint; of a matrix that is only transposed, without the conjugation."""
        adjoint, plain = (const_int(I8, ord(letter)) for letter in "cn")
        return self.build.select(self.is_plain(name), adjoint, plain)

    def swapped(self, condition: Value, a: Value, b: Value) -> tuple[Value, Value]:
        """`(a, b)` if the condition holds, else `(b, a)`."""
        return self.build.select(condition, a, b), self.build.select(condition, b, a)

    def smaller(self, a: str, b: str) -> Value:
        """The minimum of two sizes."""
        return self.build.intrinsic("llvm.smin.i64", I64, [self[a], self[b]])

    def _is(self, name: str, letter: int) -> Value:
        lower = self.build.or_(self[name], const_int(I8, 0x20))
        return self.build.icmp("eq", lower, const_int(I8, letter))


# ------------------------------------------------------------------------------------------------ shapes

Size: TypeAlias = "str | Callable[[Sizes], Value]"


def _of(sizes: Sizes, size: Size) -> Value:
    return sizes[size] if isinstance(size, str) else size(sizes)


@dataclass(frozen=True, slots=True)
class VectorShape:
    """Length and stride of a vector (contiguous without a stride), possibly real in a complex routine."""

    length: Size
    step: str = ""
    is_real: bool = False

    def element(self, element: ElementType) -> ElementType:
        """Type of its numbers."""
        return element.real if self.is_real else element

    def count(self, sizes: Sizes) -> Value:
        """The number of elements that it extends over."""
        build, length = sizes.build, _of(sizes, self.length)
        if not self.step:
            return length
        distance = build.intrinsic("llvm.abs.i64", I64, [sizes[self.step], const_int(I1, 0)])
        last = build.mul(build.sub(length, ONE), distance)
        return build.select(build.icmp("sgt", length, NONE), build.add(last, ONE), NONE)

    def view(self, k: Kernel, sizes: Sizes, data: Value) -> Vector:
        """The vector at an address."""
        length, k = _of(sizes, self.length), k.real if self.is_real else k
        return Vector.strided(k, data, length, sizes[self.step]) if self.step else Vector(k, data, length)


@dataclass(frozen=True, slots=True)
class MatrixShape:
    """Rows and columns of a matrix, with its leading dimension."""

    rows: Size
    columns: Size
    leading: str

    def element(self, element: ElementType) -> ElementType:
        """Type of its numbers."""
        return element

    def count(self, sizes: Sizes) -> Value:
        """The number of elements that it extends over."""
        return extent(sizes.build, _of(sizes, self.rows), _of(sizes, self.columns), sizes[self.leading])

    def view(self, k: Kernel, sizes: Sizes, data: Value) -> Matrix:
        """The matrix at an address."""
        return Matrix(k, data, _of(sizes, self.rows), _of(sizes, self.columns), sizes[self.leading])


ArrayShape: TypeAlias = VectorShape | MatrixShape
Shapes: TypeAlias = Mapping[str, ArrayShape]
IsActive: TypeAlias = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Room:
    """Memory to work in: dense matrices by rows and columns, vectors, vectors of real numbers."""

    matrices: Sequence[tuple[Value, Value]] = ()
    vectors: Sequence[Value] = ()
    reals: Sequence[Value] = ()

    def size(self, build: Builder) -> Value | None:
        """Elements of all; None for nothing."""
        sizes = [*(build.mul(*extents) for extents in self.matrices), *self.vectors, *self.reals]
        return reduce(build.add, sizes) if sizes else None

    def divide(self, k: Kernel, memory: Value) -> WorkMemory:
        """The matrices and vectors in memory of that size; a real vector fills half of its part of a complex one."""

        def taken(size: Value) -> Value:
            nonlocal memory
            start, memory = memory, k.build.gep(k.element.type, memory, [size])
            return start

        return WorkMemory(
            [Matrix.dense(k, taken(k.build.mul(*extents)), *extents) for extents in self.matrices],
            [Vector(k, taken(size), size) for size in self.vectors],
            [Vector(k.real, taken(size), size) for size in self.reals],
        )


@dataclass(frozen=True, slots=True)
class WorkMemory:
    """A `Room` in memory."""

    matrices: Sequence[Matrix]
    vectors: Sequence[Vector]
    reals: Sequence[Vector]


# ------------------------------------------------------------------------------------------------ derivatives


@dataclass(frozen=True, slots=True)
class Operands:
    """Operands of a call for the body of an adjoint or a tangent.

    Attributes:
        k: where it emits.
        library: whose routines it calls.
        sizes: letters and sizes.
        factors: values of alpha and beta.
        shapes: of arrays.
        arrays: operands by name, and what is kept of them; null if not needed.
        shadows: of arrays and factors; null if there is none.
        memory: working memory.
        room: its layout.
    """

    k: Kernel
    library: Library
    sizes: Sizes
    factors: Mapping[str, Scalar]
    shapes: Shapes
    arrays: Mapping[str, Value]
    shadows: Mapping[str, Value]
    memory: Value
    room: Room

    def matrix(self, key: str) -> Matrix:
        """A matrix that is needed."""
        return self._matrix(key, self.arrays[key])

    def vector(self, key: str) -> Vector:
        """A vector that is needed."""
        return self._vector(key, self.arrays[key])

    def operand(self, key: str) -> Matrix | Vector:
        """Either of them, as its shape says."""
        return self._array(key, self.arrays[key])

    @contextmanager
    def active(self, name: str) -> Iterator[Matrix]:
        """Emits what is done if a matrix has a shadow; gives that."""
        with self._if_given(name):
            yield self._matrix(name, self.shadows[name])

    @contextmanager
    def active_vector(self, name: str) -> Iterator[Vector]:
        """Emits what is done if a vector has a shadow; gives that."""
        with self._if_given(name):
            yield self._vector(name, self.shadows[name])

    @contextmanager
    def active_factor(self, name: str) -> Iterator[Cell]:
        """Emits what is done if alpha or beta has a shadow; gives that."""
        with self._if_given(name):
            yield Cell(self.k, self.shadows[name])

    @property
    def work(self) -> WorkMemory:
        """The working memory."""
        return self.room.divide(self.k, self.memory)

    def scratch(self, rows: Value, columns: Value) -> Matrix:
        """The working memory as one matrix."""
        return Matrix.dense(self.k, self.memory, rows, columns)

    def scratch_vector(self, like: Vector) -> Vector:
        """The working memory as a vector with the steps of another."""
        return Vector(self.k, self.memory, like.size, like.step, like.start)

    def call(self, routine: str, *operands: str | KernelArgument) -> None:
        """Calls a routine of the library: of a matrix with its leading dimension, of a vector with its step."""
        self.library.call(self.k, routine, *operands)

    @contextmanager
    def triangle(self, size: Value) -> Iterator[tuple[Value, Value]]:
        """Loops over the triangle that counts; gives row and column."""
        k, upper = self.k, self.sizes.is_upper()
        with k.loop(size) as j:
            first = k.build.select(upper, NONE, j)
            end = k.build.select(upper, k.after(j), size)
            with k.loop(end, first) as i:
                yield i, j

    def add_on_triangle(self, target: Matrix, amount: Callable[[Value, Value], Scalar]) -> None:
        """Adds to the elements of the triangle that counts, but not to a diagonal that counts as 1."""
        k, has_unit = self.k, "diag" in self.sizes.values
        with self.triangle(target.rows) as (i, j):
            more = amount(i, j)
            if has_unit:
                more = choose(k.build.and_(self.sizes.is_unit(), k.same(i, j)), 0.0, more)
            target[i, j] = target[i, j] + more

    @contextmanager
    def _if_given(self, name: str) -> Iterator[None]:
        with self.k.when(is_given(self.k, self.shadows[name])):
            yield

    def _matrix(self, key: str, data: Value) -> Matrix:
        found = self._array(key, data)
        assert isinstance(found, Matrix)
        return found

    def _vector(self, key: str, data: Value) -> Vector:
        found = self._array(key, data)
        assert isinstance(found, Vector)
        return found

    def _array(self, key: str, data: Value) -> Matrix | Vector:
        return self.shapes[key.rpartition(" ")[2]].view(self.k, self.sizes, data)


@dataclass(frozen=True, slots=True)
class Adjoint(Operands):
    """Context for the body of an adjoint.

    ``arrays`` are operands by name, `new …` results and `old …` contents of what is overwritten, as `Routine.needs`
    says; shadows hold cotangents.

    Attributes:
        result_bar: the cotangent of the number that the routine returns.
    """

    result_bar: Scalar | None

    def bar(self, name: str) -> Matrix:
        """The shadow of a matrix."""
        return self._matrix(name, self.shadows[name])

    def vector_bar(self, name: str) -> Vector:
        """The shadow of a vector."""
        return self._vector(name, self.shadows[name])

    @contextmanager
    def conjugated(self, condition: Value, *matrices: Matrix) -> Iterator[None]:
        """If the condition holds, complex matrices in memory are their conjugates for what is emitted inside."""
        self._conjugate(condition, matrices)
        yield
        self._conjugate(condition, matrices)

    def _conjugate(self, condition: Value, matrices: Sequence[Matrix]) -> None:
        if self.k.element.is_complex:
            for a in matrices:
                with self.k.when(condition):
                    a.conjugate()

    def conjugated_unless(self, condition: Value, factor: Scalar) -> Scalar:
        """A factor, or its conjugate where the condition does not hold."""
        return choose(condition, factor, factor.conj())

    def end_output(self, bar: Matrix, old: Callable[[], Matrix]) -> None:
        """The part of beta: its cotangent, and that of the old content of the output."""
        with self.active_factor("beta") as beta_bar:
            beta_bar.value = beta_bar.value + old().inner(bar)
        bar.scale(self.factors["beta"].conj())
