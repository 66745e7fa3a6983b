"""BLAS and LAPACK as Fortran compiles them: every argument is a pointer, also to letters, sizes and factors.

A `Routine` names the parameters and emits its adjoint as a `Kernel` function, which calls routines of the library that
the primal called:

    scipy.linalg.cython_blas.dgemm    the export of SciPy, known by its address
    dgemm_                            the symbol of a library that is loaded

What the pointers lead to may change before the reverse sweep comes, so letters, sizes and factors are read in the
forward sweep, and arrays that the adjoint needs are kept. Integers of a library have 32 or 64 bits; the lower half is
read, and what is passed on is valid as either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from irad.errors import UnsupportedError
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.types import StructType
from irad.ir.values import Value, const_int, zero
from irad.rules.blas.elements import Element, Number, choose, element_of
from irad.rules.lapack.matrices import I64, NONE, ONE, PTR, Kernel, Matrix, given, kernel, read_pivots
from irad.rules.lapack.parts import copied, kept_result, shadow_or_null, workspace
from irad.ruleset.interface import AugmentedContext, CallRule, Effects, ReverseContext

I1: Final = types.I1
_I8: Final = types.I8
_BLAS: Final = "scipy.linalg.cython_blas."
_LAPACK: Final = "scipy.linalg.cython_lapack."
_LIBRARIES: Final = {"BLAS": ((_BLAS, ""), ("", "_")), "LAPACK": ((_LAPACK, ""), ("", "_"))}
_OF_BLAS: Final = frozenset({"gemm", "gemv", "ger", "symm", "symv", "syrk", "trmm", "trmv", "trsm", "trsv"})
_LETTERS: Final = frozenset({"trans", "transa", "transb", "uplo", "side", "diag"})
_SIZES: Final = frozenset({"m", "n", "k", "nrhs", "lda", "ldb", "ldc", "incx", "incy"})
_FACTORS: Final = frozenset({"alpha", "beta"})
_OTHER: Final = frozenset({"ipiv", "info"})
_PLAIN, _TRANSPOSED, _UPPER, _LEFT, _UNIT = (ord(letter) for letter in "ntulu")

Shape: TypeAlias = Callable[["Sizes"], Value]
"""The number of elements that an array extends over, from its sizes."""


@dataclass(frozen=True, slots=True)
class Library:
    """Where a routine is from: what stands before and behind its name.

    The letter is that of the elements; the type of a result that differs stands before it: `dz`.
    """

    prefix: str
    suffix: str
    letter: str

    @classmethod
    def of(cls, symbol: str, routine: str, collection: str) -> Library:
        """The library of a symbol."""
        for prefix, suffix in _LIBRARIES[collection]:
            if symbol.startswith(prefix) and symbol.endswith(routine + suffix):
                return cls(prefix, suffix, symbol[len(prefix) : len(symbol) - len(routine + suffix)])
        raise AssertionError(symbol)

    def symbol(self, routine: str) -> str:
        """Another routine of the same element type."""
        prefix = _BLAS if self.prefix == _LAPACK and routine in _OF_BLAS else self.prefix
        return f"{prefix}{self.letter}{routine}{self.suffix}"

    @property
    def element(self) -> Element:
        """The element type."""
        return element_of(const_int(_I8, ord(self.letter[-1])), self.symbol(""))


def symbols(routine: str, letters: Sequence[str], collection: str) -> tuple[str, ...]:
    """A routine in all libraries."""
    return tuple(Library(*around, letter).symbol(routine) for around in _LIBRARIES[collection] for letter in letters)


# ------------------------------------------------------------------------------------------------ sizes and letters


@dataclass(frozen=True, slots=True)
class Sizes:
    """Letters (i8) and sizes (i64) of a call, where a builder stands."""

    build: Builder
    values: Mapping[str, Value]

    def __getitem__(self, name: str) -> Value:
        return self.values[name]

    def is_plain(self, name: str) -> Value:
        """Whether a transposition letter says "as it is"."""
        return self._is(name, _PLAIN)

    def is_transposed(self, name: str) -> Value:
        """Whether it says "transposed", without conjugation."""
        return self._is(name, _TRANSPOSED)

    def is_upper(self) -> Value:
        """Whether the upper triangle counts."""
        return self._is("uplo", _UPPER)

    def is_left(self) -> Value:
        """Whether the matrix stands on the left."""
        return self._is("side", _LEFT)

    def is_unit(self) -> Value:
        """Whether the diagonal counts as 1."""
        return self._is("diag", _UNIT)

    def flipped(self, name: str) -> Value:
        """The letter of the adjoint; of a matrix that is only transposed, without the conjugation."""
        adjoint, plain = (const_int(_I8, ord(letter)) for letter in "cn")
        return self.build.select(self.is_plain(name), adjoint, plain)

    def swapped(self, condition: Value, a: Value, b: Value) -> tuple[Value, Value]:
        """`(a, b)` if the condition holds, else `(b, a)`."""
        return self.build.select(condition, a, b), self.build.select(condition, b, a)

    def distance(self, step: str) -> Value:
        """Between the elements of a vector, in whichever direction."""
        return self.build.intrinsic("llvm.abs.i64", I64, [self[step], const_int(I1, 0)])

    def _is(self, name: str, letter: int) -> Value:
        lower = self.build.or_(self[name], const_int(_I8, 0x20))
        return self.build.icmp("eq", lower, const_int(_I8, letter))


def vector(of: Callable[[Sizes], Value], step: str) -> Shape:
    """A vector of as many elements as ``of`` gives, so far apart."""

    def count(sizes: Sizes) -> Value:
        build, length = sizes.build, of(sizes)
        last = build.mul(build.sub(length, ONE), sizes.distance(step))
        return build.select(build.icmp("sgt", length, NONE), build.add(last, ONE), NONE)

    return count


def matrix(of: Callable[[Sizes], tuple[Value, Value]], leading: str) -> Shape:
    """A matrix of as many rows and columns as ``of`` gives."""

    def count(sizes: Sizes) -> Value:
        rows, columns = of(sizes)
        build = sizes.build
        last = build.add(build.mul(build.sub(columns, ONE), sizes[leading]), rows)
        return build.intrinsic("llvm.smax.i64", I64, [last, NONE])

    return count


# ------------------------------------------------------------------------------------------------ adjoints


@dataclass(slots=True)
class Adjoint:
    """What the body of an adjoint sees.

    Attributes:
        k: where it emits.
        library: whose routines it calls.
        sizes: letters and sizes.
        factors: values of alpha and beta.
        arrays: operands by name, `new …` results and `old …` contents of what is overwritten, `rows …` exchanged by
            a factorisation as i64; null if not needed.
        bars: shadows of arrays and factors; null if there is none.
        work: working memory.
        result_bar: the cotangent of the number that the routine returns.
    """

    k: Kernel
    library: Library
    sizes: Sizes
    factors: Mapping[str, Number]
    arrays: Mapping[str, Value]
    bars: Mapping[str, Value]
    work: Value
    result_bar: Number | None

    @contextmanager
    def active(self, name: str) -> Iterator[Value]:
        """Emits what is done if an operand has a shadow; gives that."""
        with self.k.when(given(self.k, self.bars[name])):
            yield self.bars[name]

    @contextmanager
    def otherwise(self, condition: Value) -> Iterator[None]:
        """`if not condition:`."""
        with self.k.when(self.k.build.xor(condition, const_int(I1, 1))):
            yield

    @contextmanager
    def conjugated(self, condition: Value, rows: Value, columns: Value, *matrices: Matrix) -> Iterator[None]:
        """If the condition holds, complex matrices in memory are their conjugates for what is emitted inside."""
        self._conjugate(condition, rows, columns, matrices)
        yield
        self._conjugate(condition, rows, columns, matrices)

    def _conjugate(self, condition: Value, rows: Value, columns: Value, matrices: Sequence[Matrix]) -> None:
        k = self.k
        if k.element.is_complex:
            for a in matrices:
                with k.when(condition), k.loop(columns) as j, k.loop(rows) as i:
                    k.store(k.load(a, i, j).conj(), a, i, j)

    def conjugated_unless(self, condition: Value, factor: Number) -> Number:
        """A factor, or its conjugate where the condition does not hold."""
        return choose(condition, factor, factor.conj())

    def call(self, routine: str, *arguments: str | Value | Number) -> None:
        """Calls a routine: letters, sizes and numbers are put where pointers can lead to them."""
        build, symbol = self.k.build, self.library.symbol(routine)
        function = build.module.functions.get(symbol)
        if function is None or len(function.function_type.params) != len(arguments):
            function = build.module.declare(symbol, types.function_type(types.VOID, (PTR,) * len(arguments)))
        build.call(function, [self._place(argument) for argument in arguments])

    def _place(self, argument: str | Value | Number) -> Value:
        if isinstance(argument, str):
            argument = const_int(_I8, ord(argument))
        if isinstance(argument, Number):
            slot: Value = Builder.at_start(self.k.build.function.entry).alloca(self.k.element.type)
            self.k.write(argument, slot)
        elif argument.type is PTR:
            return argument
        else:
            slot = Builder.at_start(self.k.build.function.entry).alloca(argument.type)
            self.k.build.store(argument, slot)
        return slot

    def add_to_factor(self, name: str, amount: Number) -> None:
        """Adds to the cotangent of alpha or beta."""
        self.k.write(self.k.read(self.bars[name]) + amount, self.bars[name])

    def index(self, i: Value, step: str) -> Value:
        """Where element i of a vector of n is: with a negative step the last comes first."""
        build, distance = self.k.build, self.sizes[step]
        last = build.mul(build.sub(ONE, self.sizes["n"]), distance)
        start = build.select(build.icmp("slt", distance, NONE), last, NONE)
        return build.add(start, build.mul(i, distance))

    def line(self, pointer: Value, step: str) -> Matrix:
        """A vector as a matrix of one row; a negative step counts from the other end, for all that are seen so."""
        return Matrix(pointer, self.sizes.distance(step))

    @contextmanager
    def triangle(self, size: Value) -> Iterator[tuple[Value, Value]]:
        """Loops over the triangle that counts; gives row and column."""
        k, upper = self.k, self.sizes.is_upper()
        with k.loop(size) as j:
            first = k.build.select(upper, NONE, j)
            end = k.build.select(upper, k.build.add(j, ONE), size)
            with k.loop(end, first) as i:
                yield i, j

    def inner(self, rows: Value, columns: Value, a: Matrix, b: Matrix) -> Number:
        """`Σ conj(aᵢⱼ) bᵢⱼ` for a cotangent b; where that is 0 nothing is added."""
        k, total = self.k, self.k.variable(self.k.nothing)
        with k.loop(columns) as j, k.loop(rows) as i:
            k.add_to(total, k.product(k.load(b, i, j), k.load(a, i, j).conj()))
        return k.read(total)

    def scale(self, rows: Value, columns: Value, a: Matrix, factor: Number) -> None:
        """`a *= factor`; what is 0 stays 0."""
        k = self.k
        with k.loop(columns) as j, k.loop(rows) as i:
            k.store(k.product(k.load(a, i, j), factor), a, i, j)

    def end_output(self, rows: Value, columns: Value, bar: Matrix, name: str) -> None:
        """The part of beta: its cotangent, and that of the old content of the output."""
        with self.active("beta"):
            old = Matrix(self.arrays[f"old {name}"], bar.leading)
            self.add_to_factor("beta", self.inner(rows, columns, old, bar))
        self.scale(rows, columns, bar, self.factors["beta"].conj())


Body: TypeAlias = Callable[[Adjoint], None]
Work: TypeAlias = Callable[[Sizes, Callable[[str], bool]], Value | None]


@dataclass(frozen=True, slots=True)
class Routine:
    """A routine whose output is linear in each of its factors and operands, or nearly so.

    Attributes:
        name: without the letter of the element type.
        parameters: their names.
        output: the array that is written; None if a number is returned.
        shapes: of the arrays.
        needs: by which operands an array is needed: `c`, `old c` (before the call), `new c` (after it), `rows ipiv`.
        adjoint: emits the body of the adjoint.
        work: the number of elements of working memory, given sizes and what is active.
        also_written: further outputs.
        letters: element types.
        collection: "BLAS" or "LAPACK".
    """

    name: str
    parameters: tuple[str, ...]
    output: str | None
    shapes: Mapping[str, Shape]
    needs: Mapping[str, tuple[str, ...]]
    adjoint: Body
    work: Work = field(default=lambda sizes, active: None)
    also_written: tuple[str, ...] = ()
    letters: Sequence[str] = "sd"
    collection: str = "BLAS"

    def rule(self, source: str = "") -> CallRule:
        """The rule under all its symbols."""
        written = {self.output, *self.also_written}
        writes = frozenset(i for i, name in enumerate(self.parameters) if name in written)
        effects = Effects(reads=frozenset(range(len(self.parameters))), writes=writes, other=False)
        return CallRule(
            symbols(self.name, self.letters, self.collection), effects, self._reverse, self._forward, source
        )

    # -------------------------------------------------------------------------------------------- forward

    def _forward(self, context: AugmentedContext, call: CallSite) -> Sequence[Value]:
        library = self._library(call)
        arguments = dict(zip(self.parameters, call.arguments, strict=True))

        def active(name: str) -> bool:
            return context.is_active(arguments[name])

        if not any(map(active, self._differentiable())):
            return ()
        build, element = context.before, library.element
        read = {name: self._read(context, name, arguments[name]) for name in self._integers()}
        factors = [p for name in self._factors() for p in element.load(build, context.value(arguments[name]))]
        sizes = Sizes(build, read)
        kept: list[Value] = []
        for key, reasons in self.needs.items():
            if not any(map(active, reasons)):
                kept.append(zero(PTR))
                continue
            when, _, name = key.rpartition(" ")
            pointer = arguments[name]
            if when == "rows":
                kept.append(_rows(context, sizes["n"], pointer))
                continue
            count = self.shapes[name](sizes)
            if when == "new":
                kept.append(kept_result(context, pointer, element, count))
            elif when == "old" or context.overwritten(pointer):
                kept.append(copied(context, build, pointer, element, count))
            else:
                kept.append(context.value(pointer))
        size = self.work(sizes, active)
        return *read.values(), *factors, *kept, zero(PTR) if size is None else workspace(context, element, size)

    def _read(self, context: AugmentedContext, name: str, pointer: Value) -> Value:
        if name in _LETTERS:
            return context.before.load(_I8, context.value(pointer))
        return context.before.sext(context.before.load(types.I32, context.value(pointer)), I64)

    def _library(self, call: CallSite) -> Library:
        arguments = call.arguments
        if len(arguments) != len(self.parameters) or any(argument.type is not PTR for argument in arguments):
            raise UnsupportedError(
                f"'{call.callee.name}' is not called with {len(self.parameters)} pointers as its arguments",
                f"declare its parameters as pointers: {', '.join(self.parameters)}",
                "the routine takes addresses, as Fortran routines do",
            )
        return Library.of(call.callee.name or "", self.name, self.collection)

    def _integers(self) -> list[str]:
        return [name for name in self.parameters if name in _LETTERS | _SIZES]

    def _factors(self) -> list[str]:
        return [name for name in self.parameters if name in _FACTORS]

    def _differentiable(self) -> list[str]:
        return [name for name in self.parameters if name not in _LETTERS | _SIZES | _OTHER]

    # -------------------------------------------------------------------------------------------- reverse

    def _reverse(self, context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
        if not saved:
            return
        arguments = dict(zip(self.parameters, call.arguments, strict=True))
        if self.output is not None and not context.is_active(arguments[self.output]):
            return
        library = self._library(call)
        given_ = [context.value(value) for value in saved]
        given_ += [shadow_or_null(context, arguments[name]) for name in self._differentiable()]
        if self.output is None:
            given_ += _parts(context.builder, context.cotangent(call))
        name = f"{library.prefix}{self.name}{library.suffix}_adjoint"
        parameters = [value.type for value in given_]

        def body(k: Kernel, *values: Value) -> None:
            self.adjoint(self._adjoint(k, library, values))

        context.builder.call(kernel(context.builder.module, name, library.element, parameters, body), given_)

    def _adjoint(self, k: Kernel, library: Library, values: Sequence[Value]) -> Adjoint:
        rest = iter(values)
        width = 2 if library.element.is_complex else 1
        sizes = {name: next(rest) for name in self._integers()}
        factors = {name: Number(k.build, tuple(next(rest) for _ in range(width))) for name in self._factors()}
        arrays = {key: next(rest) for key in self.needs}
        work = next(rest)
        bars = {name: next(rest) for name in self._differentiable()}
        result = Number(k.build, tuple(rest)) if self.output is None else None
        return Adjoint(k, library, Sizes(k.build, sizes), factors, arrays, bars, work, result)


def _parts(build: Builder, number: Value) -> list[Value]:
    """A returned number: a float, or the two of a complex one."""
    return [build.extract_value(number, i) for i in (0, 1)] if isinstance(number.type, StructType) else [number]


def _rows(context: AugmentedContext, size: Value, pointer: Value) -> Value:
    """The row exchanges of a factorisation, on the tape."""
    rows = context.allocate(context.before.mul(size, const_int(I64, 8)))
    read_pivots(context.after, size, context.value(pointer), rows)
    return rows
