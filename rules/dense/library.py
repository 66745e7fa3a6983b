"""Calls of routines of BLAS and LAPACK: as Fortran compiles them, and by Numba's entry points.

    scipy.linalg.cython_blas.dgemm    the export of SciPy, known by its address; every argument is a pointer
    dgemm_                            the symbol of a library that is loaded; every argument is a pointer
    numba_xxgemm                      a letter for the element type, sizes by value

Memory may change before the reverse sweep comes, so letters, sizes and factors passed by pointer are read
in the forward sweep. Integers of a library have 32 or 64 bits; the lower half is read, and what is passed on is valid
as either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final, TypeAlias

from irad.ir import types
from irad.ir.values import Value, const_int
from irad.records import dataclass
from irad.rules.dense.elements import ElementType, Scalar, element_of
from irad.rules.dense.kernel import I8, I64, ONE, PTR, Kernel, KernelArgument, values_of
from irad.rules.dense.matrix import Matrix, Vector
from irad.ruleset.interface import CopyContext

LETTERS: Final = frozenset({"trans", "transa", "transb", "uplo", "side", "diag", "jobz"})
_BLAS: Final = "scipy.linalg.cython_blas."
_LAPACK: Final = "scipy.linalg.cython_lapack."
_AROUND: Final = {"BLAS": ((_BLAS, ""), ("", "_")), "LAPACK": ((_LAPACK, ""), ("", "_"))}
_OF_BLAS: Final = frozenset({"gemm", "gemv", "ger", "symm", "symv", "syrk", "trmm", "trmv", "trsm", "trsv"})


@dataclass(frozen=True, slots=True)
class FortranLibrary:
    """Prefix and suffix of the names of routines; letters and sizes are passed by pointer.

    The letter is that of the elements; the type of a result that differs stands before it: `dz`.
    """

    prefix: str
    suffix: str
    letter: str
    by_value: ClassVar[bool] = False

    @classmethod
    def of(cls, symbol: str, routine: str, collection: str) -> FortranLibrary:
        """The library of a symbol."""
        for prefix, suffix in _AROUND[collection]:
            if symbol.startswith(prefix) and symbol.endswith(routine + suffix):
                return cls(prefix, suffix, symbol[len(prefix) : len(symbol) - len(routine + suffix)])
        raise AssertionError(symbol)

    @property
    def element(self) -> ElementType:
        """Type of the elements of its arrays."""
        return element_of(const_int(I8, ord(self.letter[-1])), self.symbol(""))

    def symbol(self, routine: str) -> str:
        """Another routine of the same element type."""
        prefix = _BLAS if self.prefix == _LAPACK and routine in _OF_BLAS else self.prefix
        return f"{prefix}{self.letter}{routine}{self.suffix}"

    def derivative_name(self, routine: str, what: str) -> str:
        """The name of the function with a part of a routine's derivative."""
        return f"{self.prefix}{routine}{self.suffix}_{what}"

    def read(self, context: CopyContext, name: str, argument: Value) -> Value:
        """A letter or size, in the forward sweep."""
        if name in LETTERS:
            return context.before.load(I8, context.value(argument))
        return context.before.sext(context.before.load(types.I32, context.value(argument)), I64)

    def call(self, k: Kernel, routine: str, *operands: str | KernelArgument) -> None:
        """Calls another routine of the same element type; letters, sizes and numbers are put into memory for that."""
        build, symbol = k.build, self.symbol(routine)
        given = [place for operand in operands for place in _places(k, operand)]
        function = build.module.functions.get(symbol)
        if function is None or len(function.function_type.params) != len(given):
            function = build.module.declare(symbol, types.function_type(types.VOID, (PTR,) * len(given)))
        build.call(function, given)


def scipy_blas(element: ElementType) -> FortranLibrary:
    """SciPy's exports of BLAS, for routines to which Numba has no entry points."""
    return FortranLibrary(_BLAS, "", element.letter)


def scipy_lapack(element: ElementType) -> FortranLibrary:
    """SciPy's exports of LAPACK."""
    return FortranLibrary(_LAPACK, "", element.letter)


def _places(k: Kernel, operand: str | KernelArgument) -> list[Value]:
    match operand:
        case str():
            return [_place(k, const_int(I8, ord(operand)))]
        case Scalar():
            return [_number(k, operand)]
        case Matrix():
            return [operand.data, _place(k, operand.leading)]
        case Vector():
            return [operand.data, _place(k, ONE if operand.step is None else operand.step)]
        case _:
            return [_place(k, value) for value in values_of(operand)]


def _number(k: Kernel, value: Scalar) -> Value:
    slot = k.slot(k.element.type)
    k.store(value, slot)
    return slot


def _place(k: Kernel, value: Value) -> Value:
    if value.type is PTR:
        return value
    slot = k.slot(value.type)
    k.build.store(value, slot)
    return slot


def symbols(routine: str, letters: Sequence[str], collection: str) -> tuple[str, ...]:
    """A routine in all libraries."""
    return tuple(
        FortranLibrary(*around, letter).symbol(routine) for around in _AROUND[collection] for letter in letters
    )


@dataclass(frozen=True, slots=True)
class NumbaLibrary:
    """Numba's entry points, which call what SciPy exports; letters and sizes come by value."""

    element: ElementType
    by_value: ClassVar[bool] = True

    def read(self, context: CopyContext, name: str, argument: Value) -> Value:
        """A letter or size, in the forward sweep."""
        return context.value(argument)

    def derivative_name(self, routine: str, what: str) -> str:
        """The name of the function with a part of a routine's derivative."""
        return f"{routine}_{what}"

    def call(self, k: Kernel, routine: str, *operands: str | KernelArgument) -> None:
        """Calls another routine of the same element type; numbers are put into memory, vectors have no gaps."""
        k.entry(f"numba_xx{routine}", *(value for operand in operands for value in _numba_operand(k, operand)))


def _numba_operand(k: Kernel, operand: str | KernelArgument) -> list[Value]:
    match operand:
        case str():
            return [const_int(I8, ord(operand))]
        case Scalar():
            return [_number(k, operand)]
        case Matrix():
            return [operand.data, operand.leading]
        case Vector():
            return [operand.data]
        case _:
            return values_of(operand)


Library: TypeAlias = FortranLibrary | NumbaLibrary
