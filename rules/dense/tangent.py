"""The tangent of a routine of BLAS or LAPACK: the notation, what its bodies see, and the calls of what they emit.

    def system(r: Tangent) -> None:                              X = A⁻¹ B:  Ẋ = A⁻¹ (Ḃ - Ȧ X)
        with r.moving("a") as a_dot:
            r.call("gemm", "n", "n", n, nrhs, n, minus, a_dot, r.matrix("b"), one, r.tangent("b"))
        ...

    Routine("gesv", …, tangent=Differential(after=system))

One part is emitted before the call, one after it, or both. Each sees the operands in the memory of the primal, as the
call finds them or as it leaves them, and the tangents in their shadows. So a product, whose tangent is made of the
operands and of the old tangents, copies nothing. Shadows are assigned: at the end that of each array that the call
writes holds the tangent of its new content.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Final, Literal, TypeAlias

from irad.ir import types
from irad.ir.instructions import CallSite
from irad.ir.types import StructType, Type
from irad.ir.values import Value, zero
from irad.records import dataclass
from irad.rules.dense.adjoint import IsActive, Operands, Room, Shapes, Sizes
from irad.rules.dense.elements import Scalar, choose, product_or_zero
from irad.rules.dense.kernel import I64, NONE, Kernel
from irad.rules.dense.library import Library
from irad.rules.dense.matrix import NOWHERE, Matrix, Vector, as_matrix, is_given
from irad.rules.dense.saved import copied, kept_pivots, shadow_or_null, workspace
from irad.ruleset.guards import partial_zero, strong_zero
from irad.ruleset.interface import TangentContext

_FACTORS: Final = frozenset({"alpha", "beta"})
_OTHER: Final = frozenset({"kind", "ipiv", "info", "rank"})


# ------------------------------------------------------------------------------------------------ what bodies see


@dataclass(frozen=True, slots=True)
class Tangent(Operands):
    """Context for the body of a tangent.

    ``arrays`` are all operands by name, and in the part after the call what `Differential.needs` says; shadows hold
    tangents.

    Attributes:
        result: the number that the routine returned; known after the call.
        zero_wins: whether a zero partial makes zero of an infinite tangent.
    """

    result: Scalar | None
    zero_wins: bool

    def tangent(self, name: str) -> Matrix:
        """The tangent of a matrix that is written."""
        return self._matrix(name, self.shadows[name])

    def vector_tangent(self, name: str) -> Vector:
        """The tangent of a vector that is written."""
        return self._vector(name, self.shadows[name])

    def operand_tangent(self, name: str) -> Matrix | Vector:
        """Either of them, as its shape says."""
        return self._array(name, self.shadows[name])

    def is_active(self, name: str) -> Value:
        """Test that an operand has a shadow."""
        return is_given(self.k, self.shadows[name])

    def clear(self, *names: str) -> None:
        """Clears the shadows of those operands that have one."""
        for name in names:
            with self._if_given(name):
                as_matrix(self.operand_tangent(name)).clear()

    @contextmanager
    def moving(self, name: str) -> Iterator[Matrix]:
        """Emits what is done if a matrix has a tangent that is not 0 throughout; gives that.

        It keeps what a product makes of zeros and infinities out, and saves the product.
        """
        with self.active(name) as tangent, self.k.when(tangent.counts()):
            yield tangent

    @contextmanager
    def moving_operand(self, name: str) -> Iterator[Matrix | Vector]:
        """Like `moving`, for a matrix or a vector, as its shape says."""
        with self._if_given(name):
            tangent = self.operand_tangent(name)
            with self.k.when(as_matrix(tangent).counts()):
                yield tangent

    @contextmanager
    def moving_factor(self, name: str) -> Iterator[Scalar]:
        """Emits what is done if alpha or beta has a tangent that is not 0; gives that."""
        with self.active_factor(name) as cell:
            tangent = cell.value
            with self.k.when(tangent.counts()):
                yield tangent

    def scaled(self, tangent: Scalar, partial: Scalar) -> Scalar:
        """A tangent times a partial; zero where the tangent is, and where the partial is if that wins."""
        build, product = self.k.build, product_or_zero(tangent, partial)
        if not self.zero_wins:
            return product
        if build.module.opaque_guards:
            return tangent.product(
                partial, lambda x, y: partial_zero(build, x, y, strong_zero(build, x, build.fmul(x, y)))
            )
        # A partial of zero must not hide a tangent that is NaN.
        parts = (self.k.build.fcmp("oeq", part, part) for part in tangent.parts)
        wins = partial.is_zero()
        for is_number in parts:
            wins = self.k.build.and_(wins, is_number)
        return choose(wins, 0.0, product)


_Part: TypeAlias = Literal["before", "after", "alone"]
TangentBody: TypeAlias = Callable[[Tangent], "Scalar | None"]


@dataclass(frozen=True, slots=True)
class Differential:
    """The tangent of a routine.

    Attributes:
        before: emits the part before the call.
        after: emits the part after the call; of a routine that returns a number it returns the tangent of that.
        needs: what the part after the call needs for the tangents of which operands, as `Routine.needs`: `old c` (a
            copy of the array before the call), `rows ipiv` (row exchanges), `int rank` (an integer that is written).
        also_written: arrays that the call writes besides the outputs. The parts are emitted if one of them or of the
            outputs has a shadow, and then look which has (`Tangent.is_active`).
        work: the memory that both parts work in.
        alone: emits the part after the call where the function reads nothing of `also_written`; None: as ``after``.
    """

    before: TangentBody | None = None
    after: TangentBody | None = None
    needs: Mapping[str, str] = field(default_factory=dict)
    also_written: str = ""
    work: Callable[[Sizes, IsActive], Room] = field(default=lambda sizes, active: Room())
    alone: TangentBody | None = None


# ------------------------------------------------------------------------------------------------ calls


@dataclass(frozen=True, slots=True)
class Interface:
    """The parameters of a routine: see `Routine`, which has the same attributes."""

    name: str
    parameters: str
    shapes: Shapes
    outputs: str = ""
    extra: Mapping[str, Callable[[CallSite], Value]] = field(default_factory=dict)
    constant: str = ""

    @property
    def names(self) -> list[str]:
        """All parameters."""
        return self.parameters.split()

    @property
    def read(self) -> list[str]:
        """Letters and sizes."""
        others = self.shapes.keys() | _FACTORS | _OTHER
        return [name for name in self.names if name not in others and not name.startswith("_")]

    @property
    def factors(self) -> list[str]:
        """Alpha and beta."""
        return [name for name in self.names if name in _FACTORS]

    @property
    def differentiable(self) -> list[str]:
        """Names of operands that have a shadow."""
        found = [name for name in self.names if name in _FACTORS or name in self.shapes]
        return [name for name in found if name not in self.constant.split()]

    def arguments(self, call: CallSite) -> dict[str, Value]:
        """Arguments of a call, by parameter."""
        return dict(zip(self.names, call.arguments, strict=True))


def emit_tangent(
    routine: Interface, differential: Differential, library: Library, context: TangentContext, call: CallSite
) -> None:
    """Emits the tangent of a call."""
    _Emission(routine, differential, library, context, call).emit()


@dataclass(frozen=True, slots=True)
class _Emission:
    routine: Interface
    differential: Differential
    library: Library
    context: TangentContext
    call: CallSite

    def emit(self) -> None:
        """Calls the parts where they belong."""
        routine, context, differential = self.routine, self.context, self.differential
        arguments = routine.arguments(self.call)
        written = [*routine.outputs.split(), *differential.also_written.split()]
        if not any(context.is_active(arguments[name]) for name in written) if written else not self._returns_active():
            return
        build, element = context.before, self.library.element
        sizes = {name: self.library.read(context, name, arguments[name]) for name in routine.read}
        sizes |= {name: context.value(of(self.call)) for name, of in routine.extra.items()}
        given = list(sizes.values())
        given += [p for name in routine.factors for p in element.load(build, context.value(arguments[name]))]
        given += [context.value(arguments[name]) for name in routine.shapes]
        given += [shadow_or_null(context, arguments[name]) for name in routine.differentiable]
        room = differential.work(Sizes(build, sizes), lambda name: context.is_active(arguments[name]))
        size = room.size(build)
        mark = context.mark() if size is not None or differential.needs else None
        given.append(NOWHERE if size is None else workspace(context, element, size))
        if differential.before is not None:
            self._outline("before", differential.before, given)
        if differential.after is not None:
            kept = [self._kept(key, sizes) for key in differential.needs]
            also = differential.also_written.split()
            if differential.alone is None or any(context.is_read(arguments[name], self.call) for name in also):
                self._after("after", differential.after, given, kept)
            else:
                self._after("alone", differential.alone, given, kept)
        if mark is not None:
            context.release(mark)

    def _returns_active(self) -> bool:
        return self.context.is_active(self.call)

    def _kept(self, key: str, sizes: Mapping[str, Value]) -> Value:
        """Values that the part after the call needs."""
        context, (when, _, name) = self.context, key.rpartition(" ")
        arguments = self.routine.arguments(self.call)
        if not any(context.is_active(arguments[reason]) for reason in self.differential.needs[key].split()):
            return zero(I64) if when == "int" else NOWHERE
        pointer, build = arguments[name], context.before
        if when == "rows":
            return kept_pivots(context, pointer, sizes["n"])
        if when == "int":
            return context.after.zext(context.after.load(types.I32, context.value(pointer)), I64)
        assert when == "old", key
        shape = self.routine.shapes[name]
        count = shape.count(Sizes(build, sizes))
        return copied(context, build, pointer, shape.element(self.library.element), count)

    def _after(self, part: _Part, body: TangentBody, given: Sequence[Value], kept: Sequence[Value]) -> None:
        if self.routine.outputs:
            self._outline(part, body, [*given, *kept])
            return
        result = self.context.value(self.call)
        build, is_complex = self.context.after, isinstance(result.type, StructType)
        parts = [build.extract_value(result, i) for i in (0, 1)] if is_complex else [result]
        self.context.set_tangent(self._outline(part, body, [*given, *kept, *parts], result.type))

    def _outline(self, when: _Part, body: TangentBody, given: Sequence[Value], returned: Type = types.VOID) -> Value:
        context = self.context
        name = f"{when}_tangent" + "_zero_wins" * context.zero_wins

        def emitted(k: Kernel, *values: Value) -> Value | None:
            tangent = body(self._seen(k, when, iter(values)))
            return None if tangent is None else _packed(k, tangent, returned)

        k = Kernel(context.before if when == "before" else context.after, self.library.element)
        return k.outline(self.library.derivative_name(self.routine.name, name), emitted, *given, result=returned)

    def _seen(self, k: Kernel, when: _Part, rest: Iterator[Value]) -> Tangent:
        routine, differential = self.routine, self.differential
        width = 2 if self.library.element.is_complex else 1
        sizes = Sizes(k.build, {name: next(rest) for name in (*routine.read, *routine.extra)})
        factors = {name: Scalar(k.build, tuple(next(rest) for _ in range(width))) for name in routine.factors}
        arrays = {name: next(rest) for name in routine.shapes}
        shadows = {name: next(rest) for name in routine.differentiable}
        memory = next(rest)
        if when != "before":
            arrays |= {key: next(rest) for key in differential.needs}
        room = differential.work(sizes, lambda _: True)
        result = tuple(rest)
        return Tangent(
            k,
            self.library,
            sizes,
            factors,
            routine.shapes,
            arrays,
            shadows,
            memory,
            room,
            Scalar(k.build, result) if result else None,
            self.context.zero_wins,
        )


def _packed(k: Kernel, number: Scalar, type_: Type) -> Value:
    """A number as a routine returns it."""
    if not isinstance(type_, StructType):
        return number.parts[0]
    packed: Value = zero(type_)
    for i, part in enumerate(number.as_complex().parts):
        packed = k.build.insert_value(packed, part, i)
    return packed


def without_diagonal(r: Tangent, tangent: Matrix, copy: Matrix) -> Matrix:
    """A tangent, or where the diagonal counts as 1 a copy with 0 there."""
    k, unit = r.k, r.sizes.is_unit()
    with k.when(unit), r.triangle(tangent.rows) as (i, j):
        copy[i, j] = choose(k.same(i, j), 0.0, tangent[i, j])
    return copy.or_else(unit, tangent)


def room_for_copy(sizes: Sizes, count: Value) -> tuple[Value, Value]:
    """Room for the copy that `without_diagonal` may make: rows and columns."""
    return sizes.build.select(sizes.is_unit(), count, NONE), count
