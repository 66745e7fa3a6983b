"""Dense column-major matrices in rules: loops, products, triangular solves, as functions of the derivative module.

An adjoint of LAPACK is a handful of matrix products with a few loops between them. `Kernel` emits such a function: its
products are calls of BLAS through Numba's entry point, the rest are loops that LLVM vectorises.

    with kernel.loop(columns) as j, kernel.loop(rows) as i:
        kernel.store(-kernel.load(a, i, j), a, i, j)

Elements are real or complex, as the kernel says; of complex ones the adjoints are conjugate transposes throughout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Alloca
from irad.ir.module import Function, Module
from irad.ir.types import Type
from irad.ir.values import GlobalVariable, Value, const_float, const_int
from irad.rules.blas.elements import Element, Number, choose

I64: Final = types.I64
PTR: Final = types.PTR
NONE: Final = const_int(I64, 0)
ONE: Final = const_int(I64, 1)
_ATTRIBUTES: Final = ("noinline", "nounwind")
_BLOCK: Final = const_int(I64, 64)
_REASSOCIATE: Final = ("reassoc",)
_GEMM: Final = types.function_type(
    types.I32, (types.I8, types.I8, types.I8, I64, I64, I64, PTR, PTR, I64, PTR, I64, PTR, PTR, I64)
)


@dataclass(frozen=True, slots=True)
class Matrix:
    """Element (i, j) is ``data[i + j * leading]``."""

    data: Value
    leading: Value


Factor = tuple[str, Matrix]
"""A matrix in a product: "n" as it is, "c" conjugate transposed, which is transposed for real ones."""


@dataclass(slots=True)
class Kernel:
    """Emits the body of a function that works on matrices of one element type.

    Attributes:
        build: where it emits.
        element: what the matrices hold.
    """

    build: Builder
    element: Element

    @property
    def real(self) -> Kernel:
        """The same for vectors of real numbers: singular values, eigenvalues of a Hermitian matrix."""
        return Kernel(self.build, self.element.real)

    @property
    def nothing(self) -> Number:
        """0."""
        return self.number(0.0)

    def number(self, value: float) -> Number:
        """A real constant."""
        return Number(self.build, (const_float(self.element.scalar, value),))

    # -------------------------------------------------------------------------------------------- memory

    def at(self, matrix: Matrix, i: Value, j: Value) -> Value:
        """The address of an element."""
        build = self.build
        return build.gep(self.element.type, matrix.data, [build.add(build.mul(j, matrix.leading), i)])

    def part(self, matrix: Matrix, i: Value, j: Value) -> Matrix:
        """The matrix that begins at an element."""
        return Matrix(self.at(matrix, i, j), matrix.leading)

    def load(self, matrix: Matrix, i: Value, j: Value) -> Number:
        """An element."""
        return self.read(self.at(matrix, i, j))

    def store(self, value: Number, matrix: Matrix, i: Value, j: Value) -> None:
        """Sets an element."""
        self.element.store(self.build, value.parts, self.at(matrix, i, j))

    def item(self, vector: Value, i: Value) -> Number:
        """An element of a vector."""
        return self.read(self.build.gep(self.element.type, vector, [i]))

    def put(self, value: Number, vector: Value, i: Value) -> None:
        """Sets an element of a vector."""
        self.element.store(self.build, value.parts, self.build.gep(self.element.type, vector, [i]))

    def read(self, place: Value) -> Number:
        """A number in memory, that of a variable for instance."""
        return Number(self.build, self.element.load(self.build, place))

    def write(self, value: Number, place: Value) -> None:
        """Sets a number in memory."""
        self.element.store(self.build, value.parts, place)

    def variable(self, initial: Number) -> Alloca:
        """A local variable, for values that a loop carries."""
        slot = Builder.at_start(self.build.function.entry).alloca(self.element.type)
        self.write(initial, slot)
        return slot

    def add_to(self, variable: Value, amount: Number) -> None:
        """`variable += amount`, in whatever order suits."""
        self.write(self.read(variable).plus(amount, _REASSOCIATE), variable)

    def take_parts(self, memory: Value, sizes: Sequence[Value]) -> list[Value]:
        """Divides memory into vectors of so many elements; one of real numbers fills half of its part."""
        parts = []
        for size in sizes:
            parts.append(memory)
            memory = self.build.gep(self.element.type, memory, [size])
        return parts

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

    # -------------------------------------------------------------------------------------------- scalars

    def smaller(self, a: Value, b: Value) -> Value:
        """The minimum of two sizes."""
        return self.build.intrinsic("llvm.smin.i64", I64, [a, b])

    def product(self, a: Number, b: Number) -> Number:
        """`a b`; 0 where ``a`` is 0, whatever ``b`` is."""
        return choose(a.is_zero(), self.nothing, a * b)

    def quotient(self, a: Number, b: Number) -> Number:
        """`a / b`; 0 where ``a`` is 0, whatever ``b`` is."""
        return choose(a.is_zero(), self.nothing, a / b)

    @property
    def letter(self) -> Value:
        """What the element type is called in BLAS and LAPACK."""
        return const_int(types.I8, ord(self.element.letter))

    # -------------------------------------------------------------------------------------------- products

    def multiply(
        self,
        rows: Value,
        columns: Value,
        inner: Value,
        a: Factor,
        b: Factor,
        c: Matrix,
        *,
        scale: float = 1.0,
        keep: float = 0.0,
    ) -> None:
        """`c = scale op(a) op(b) + keep c`, by BLAS."""
        gemm = self.build.module.declare("numba_xxgemm", _GEMM)
        letters = [const_int(types.I8, ord(self._transposition(flag))) for flag, _ in (a, b)]
        left = [self._constant(scale), a[1].data, a[1].leading, b[1].data, b[1].leading]
        arguments = [*letters, rows, columns, inner, *left, self._constant(keep), c.data, c.leading]
        self.build.call(gemm, [self.letter, *arguments])

    def _transposition(self, flag: str) -> str:
        return "t" if flag == "c" and not self.element.is_complex else flag

    def _constant(self, value: float) -> Value:
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


Body = Callable[..., Value | None]


def kernel(
    module: Module, name: str, element: Element, parameters: Sequence[Type], body: Body, result: Type = types.VOID
) -> Function:
    """The function ``irad_<name>_<element>``, defined on first use.

    Args:
        module: the derivative module.
        name: for the symbol; it stands for ``body`` and whatever ``body`` was made from.
        element: what its matrices hold.
        parameters: their types.
        body: is called with a `Kernel` and the parameters and returns the result.
        result: type of the result.
    """
    symbol = f"irad_{name}_{element.name}"
    found = module.functions.get(symbol)
    if found is None:
        found = module.define(symbol, types.function_type(result, tuple(parameters)))
        found.prefix, found.attributes = ("internal",), _ATTRIBUTES
        emitter = Kernel(Builder(found.add_block("entry")), element)
        emitter.build.ret(body(emitter, *found.params))
    return found


# ------------------------------------------------------------------------------------------------ whole matrices


def any_nonzero(k: Kernel, rows: Value, columns: Value, a: Matrix) -> Value:
    """Whether a matrix has an element that is not 0; NaN counts."""
    function = kernel(k.build.module, "any_nonzero", k.element, (I64, I64, PTR, I64), _any_nonzero, types.I1)
    return k.build.call(function, [rows, columns, a.data, a.leading])


def _any_nonzero(k: Kernel, rows: Value, columns: Value, data: Value, leading: Value) -> Value:
    a, found = Matrix(data, leading), Builder.at_start(k.build.function.entry).alloca(types.I1)
    k.build.store(const_int(types.I1, 0), found)
    with k.loop(columns) as j, k.loop(rows) as i:
        here = k.load(a, i, j).is_nonzero()
        k.build.store(k.build.or_(k.build.load(types.I1, found), here), found)
    return k.build.load(types.I1, found)


def copy_part(k: Kernel, part: str, rows: Value, columns: Value, source: Matrix, target: Matrix) -> None:
    """Copies a part of a matrix, the rest of the target becomes 0.

    Args:
        k: where to.
        part: "all", "upper" (with the diagonal), "strictly_lower", or "unit_lower" (the diagonal becomes 1).
        rows, columns: of both matrices.
        source, target: apart from each other.
    """

    def body(k: Kernel, rows: Value, columns: Value, *memory: Value) -> None:
        source, target = Matrix(*memory[:2]), Matrix(*memory[2:])
        with k.loop(columns) as j, k.loop(rows) as i:
            k.store(_in_part(k, part, i, j, k.load(source, i, j)), target, i, j)

    function = kernel(k.build.module, f"copy_{part}", k.element, (I64, I64, PTR, I64, PTR, I64), body)
    k.build.call(function, [rows, columns, source.data, source.leading, target.data, target.leading])


def _in_part(k: Kernel, part: str, i: Value, j: Value, element: Number) -> Number:
    if part == "all":
        return element
    predicate = "sle" if part == "upper" else "sgt"
    inside = choose(k.build.icmp(predicate, i, j), element, k.nothing)
    on_diagonal = k.build.icmp("eq", i, j)
    return choose(on_diagonal, k.number(1.0), inside) if part == "unit_lower" else inside


def transpose(k: Kernel, size: Value, a: Matrix) -> None:
    """Replaces a square matrix by its conjugate transpose."""
    function = kernel(k.build.module, "transpose", k.element, (I64, PTR, I64), _transpose)
    k.build.call(function, [size, a.data, a.leading])


def _transpose(k: Kernel, size: Value, data: Value, leading: Value) -> None:
    a = Matrix(data, leading)
    with k.loop(size) as j:
        with k.loop(j) as i:
            upper, lower = k.load(a, i, j), k.load(a, j, i)
            k.store(lower.conj(), a, i, j)
            k.store(upper.conj(), a, j, i)
        if k.element.is_complex:
            k.store(k.load(a, j, j).conj(), a, j, j)


def take_vector(k: Kernel, count: Value, shadow: Value, target: Value) -> None:
    """Moves a cotangent from a shadow, or 0 where there is none; the shadow becomes 0."""

    def body(k: Kernel, count: Value, shadow: Value, target: Value) -> None:
        with k.loop(count) as i:
            k.put(k.nothing, target, i)
        with k.when(given(k, shadow)), k.loop(count) as i:
            k.put(k.item(shadow, i), target, i)
            k.put(k.nothing, shadow, i)

    k.build.call(kernel(k.build.module, "take_vector", k.element, (I64, PTR, PTR), body), [count, shadow, target])


def transpose_into(k: Kernel, rows: Value, columns: Value, source: Matrix, target: Matrix) -> None:
    """`target = sourceᴴ`."""
    function = kernel(k.build.module, "transpose_into", k.element, (I64, I64, PTR, I64, PTR, I64), _transpose_into)
    k.build.call(function, [rows, columns, source.data, source.leading, target.data, target.leading])


def _transpose_into(k: Kernel, rows: Value, columns: Value, *memory: Value) -> None:
    source, target = Matrix(*memory[:2]), Matrix(*memory[2:])
    with k.loop(columns) as j, k.loop(rows) as i:
        k.store(k.load(source, i, j).conj(), target, j, i)


def given(k: Kernel, shadow: Value) -> Value:
    """Whether a pointer is not null."""
    return k.build.icmp("ne", k.build.ptrtoint(shadow, I64), NONE)


# ------------------------------------------------------------------------------------------------ row exchanges


def read_pivots(build: Builder, count: Value, pivots: Value, target: Value) -> None:
    """Stores LAPACK's row numbers, from 1 on, as i64.

    LAPACK's integers have 32 or 64 bits, as the library at hand was built. No row number is 0, so the second word of
    the first two numbers tells which.
    """
    function = kernel(build.module, "read_pivots", Element(types.DOUBLE, False), (I64, PTR, PTR), _read_pivots)
    build.call(function, [count, pivots, target])


def _read_pivots(k: Kernel, count: Value, pivots: Value, target: Value) -> None:
    build = k.build
    several = build.icmp("sgt", count, ONE)
    second = build.load(types.I32, build.gep(types.I32, pivots, [build.zext(several, I64)]))
    wide = build.and_(several, build.icmp("eq", second, const_int(types.I32, 0)))
    step = build.select(wide, const_int(I64, 2), ONE)
    with k.loop(count) as i:
        word = build.load(types.I32, build.gep(types.I32, pivots, [build.mul(i, step)]))
        build.store(build.zext(word, I64), build.gep(I64, target, [i]))


def exchange_rows(k: Kernel, size: Value, columns: Value, pivots: Value, a: Matrix, *, backward: bool) -> None:
    """Exchanges rows as a factorisation did (`a = Pᵀ a` for A = P L U), or takes that back (`a = P a`)."""

    def body(k: Kernel, size: Value, columns: Value, pivots: Value, data: Value, leading: Value) -> None:
        a = Matrix(data, leading)
        with k.loop(columns) as j, k.loop_down(size) if backward else k.loop(size) as i:
            other = k.build.sub(k.build.load(I64, k.build.gep(I64, pivots, [i])), ONE)
            x, y = k.load(a, i, j), k.load(a, other, j)
            k.store(y, a, i, j)
            k.store(x, a, other, j)

    name = "restore_rows" if backward else "exchange_rows"
    function = kernel(k.build.module, name, k.element, (I64, I64, PTR, PTR, I64), body)
    k.build.call(function, [size, columns, pivots, a.data, a.leading])


# ------------------------------------------------------------------------------------------------ triangular systems


def solve_triangular(k: Kernel, form: str, size: Value, columns: Value, factor: Matrix, b: Matrix) -> None:
    """Solves with a triangular matrix in place of the right-hand sides, in blocks: most of the work is matrix products.

    Args:
        k: where to.
        form: "upper" (U x = b), "upper_adjoint" (Uᴴ x = b) or "unit_lower_adjoint" (Lᴴ x = b, diagonal 1).
        size: of the triangular matrix.
        columns: number of right-hand sides.
        factor: only its triangle is read.
        b: the right-hand sides, then the solutions.
    """

    def body(k: Kernel, size: Value, columns: Value, *memory: Value) -> None:
        _solve_blocks(k, form, size, columns, Matrix(*memory[:2]), Matrix(*memory[2:]))

    function = kernel(k.build.module, f"solve_{form}", k.element, (I64, I64, PTR, I64, PTR, I64), body)
    k.build.call(function, [size, columns, factor.data, factor.leading, b.data, b.leading])


def _solve_blocks(k: Kernel, form: str, size: Value, columns: Value, factor: Matrix, b: Matrix) -> None:
    build = k.build
    blocks = build.sdiv(build.add(size, build.sub(_BLOCK, ONE)), _BLOCK)
    ascending = form == "upper_adjoint"
    with k.loop(blocks) if ascending else k.loop_down(blocks) as block:
        start = build.mul(block, _BLOCK)
        width = k.smaller(_BLOCK, build.sub(size, start))
        diagonal, solved = k.part(factor, start, start), k.part(b, start, NONE)
        with k.loop(columns) as j:
            _SOLVE[form](k, width, diagonal, k.at(solved, NONE, j))
        first, count = (build.add(start, width), None) if ascending else (NONE, start)
        count = build.sub(size, first) if count is None else count
        with k.when(build.icmp("sgt", count, NONE)):
            flag = "n" if form == "upper" else "c"
            corner = (first, start) if form == "upper" else (start, first)
            rest = k.part(b, first, NONE)
            k.multiply(
                count, columns, width, (flag, k.part(factor, *corner)), ("n", solved), rest, scale=-1.0, keep=1.0
            )


def _solve_upper(k: Kernel, size: Value, factor: Matrix, x: Value) -> None:
    with k.loop_down(size) as i:
        value = k.item(x, i) / k.load(factor, i, i)
        k.put(value, x, i)
        with k.loop(i) as row:
            k.put(k.item(x, row) - value * k.load(factor, row, i), x, row)


def _solve_upper_adjoint(k: Kernel, size: Value, factor: Matrix, x: Value) -> None:
    with k.loop(size) as i:
        rest = k.item(x, i) - _inner_product(k, NONE, i, k.at(factor, NONE, i), x)
        k.put(rest / k.load(factor, i, i).conj(), x, i)


def _solve_unit_lower_adjoint(k: Kernel, size: Value, factor: Matrix, x: Value) -> None:
    with k.loop_down(size) as i:
        below = k.build.add(i, ONE)
        k.put(k.item(x, i) - _inner_product(k, below, size, k.at(factor, NONE, i), x), x, i)


_SOLVE: Final[dict[str, Callable[[Kernel, Value, Matrix, Value], None]]] = {
    "upper": _solve_upper,
    "upper_adjoint": _solve_upper_adjoint,
    "unit_lower_adjoint": _solve_unit_lower_adjoint,
}


def _inner_product(k: Kernel, start: Value, end: Value, x: Value, y: Value) -> Number:
    """`xᴴ y`."""
    total = k.variable(k.nothing)
    with k.loop(end, start) as i:
        k.add_to(total, k.item(x, i).conj() * k.item(y, i))
    return k.read(total)
