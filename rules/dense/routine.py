"""A routine of BLAS or LAPACK with its adjoint and its tangent, in one notation for all ways of calling it (`library`).

A `Routine` names the parameters, says what shapes the arrays have and which of them the adjoint needs, and emits the
adjoint as a function of its own, whose body sees matrices and vectors (`Adjoint`). Its tangent: see `tangent`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import TypeAlias

from irad.errors import UnsupportedError
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.types import I32, StructType
from irad.ir.values import Value
from irad.records import dataclass
from irad.rules.dense.adjoint import Adjoint, IsActive, Room, Shapes, Sizes
from irad.rules.dense.elements import Scalar, element_of
from irad.rules.dense.kernel import I64, PTR, Kernel
from irad.rules.dense.library import FortranLibrary, Library, NumbaLibrary, symbols
from irad.rules.dense.matrix import NOWHERE
from irad.rules.dense.saved import copied, kept_operand, kept_pivots, kept_result, shadow_or_null, workspace
from irad.rules.dense.tangent import Differential, Interface, emit_tangent
from irad.ruleset.interface import AugmentedContext, CallRule, Effects, ReverseContext, TangentContext

Body: TypeAlias = Callable[[Adjoint], None]
Work: TypeAlias = Callable[[Sizes, IsActive], Room]


@dataclass(frozen=True, slots=True)
class Routine:
    """A routine with its derivatives.

    Attributes:
        name: without the letter of the element type; names the adjoint.
        parameters: their names; one that begins with `_` does not matter.
        shapes: shapes of the arrays that carry derivatives.
        needs: what the adjoint needs for the shadows of which operands: `c`, `old c` (the array before the call),
            `new c` (after it), `rows ipiv` (row exchanges), `int rank` (an integer that is written).
        adjoint: emits the body of the adjoint.
        outputs: the arrays that carry the results' cotangents; without any the routine returns a number.
        work: the memory that the adjoint works in.
        extra: integers for the adjoint that are not parameters.
        constant: arrays with a shape whose shadows the adjoint does not see.
        tangent: its tangent.
    """

    name: str
    parameters: str
    shapes: Shapes
    needs: Mapping[str, str]
    adjoint: Body
    outputs: str = ""
    work: Work = field(default=lambda sizes, active: Room())
    extra: Mapping[str, Callable[[CallSite], Value]] = field(default_factory=dict)
    constant: str = ""
    tangent: Differential = field(kw_only=True)

    @property
    def interface(self) -> Interface:
        """Parameters of the routine."""
        return Interface(self.name, self.parameters, self.shapes, self.outputs, self.extra, self.constant)

    # -------------------------------------------------------------------------------------------- forward sweep

    def augmented(self, library: Library, context: AugmentedContext, call: CallSite) -> Sequence[Value]:
        """Reads and keeps what the adjoint needs."""
        interface = self.interface
        arguments = interface.arguments(call)

        def active(name: str) -> bool:
            return context.is_active(arguments[name])

        if not any(map(active, interface.differentiable)):
            return ()
        build, element = context.before, library.element
        read = {name: library.read(context, name, arguments[name]) for name in interface.read}
        factors = [p for name in interface.factors for p in element.load(build, context.value(arguments[name]))]
        sizes = Sizes(build, read)
        kept = [
            self._kept(library, context, sizes, key, arguments) if any(map(active, reasons.split())) else NOWHERE
            for key, reasons in self.needs.items()
        ]
        size = self.work(sizes, active).size(build)
        work = NOWHERE if size is None else workspace(context, element, size)
        return *(() if library.by_value else read.values()), *factors, *kept, work

    def _kept(
        self, library: Library, context: AugmentedContext, sizes: Sizes, key: str, arguments: Mapping[str, Value]
    ) -> Value:
        when, _, name = key.rpartition(" ")
        pointer = arguments[name]
        if when == "rows":
            return kept_pivots(context, pointer, sizes["n"])
        if when == "int":
            return context.after.zext(context.after.load(I32, context.value(pointer)), I64)
        shape = self.shapes[name]
        element, count = shape.element(library.element), shape.count(sizes)
        if when == "old":
            return copied(context, context.before, pointer, element, count)
        return (kept_result if when == "new" else kept_operand)(context, pointer, element, count)

    # -------------------------------------------------------------------------------------------- reverse sweep

    def reverse(self, library: Library, context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
        """Calls the adjoint."""
        interface = self.interface
        arguments = interface.arguments(call)
        outputs = self.outputs.split()
        if not saved or (outputs and not any(context.is_active(arguments[name]) for name in outputs)):
            return
        given = [context.value(arguments[name]) for name in interface.read] if library.by_value else []
        given += [context.value(value) for value in saved]
        given += [context.value(of(call)) for of in self.extra.values()]
        given += [shadow_or_null(context, arguments[name]) for name in interface.differentiable]
        if not outputs:
            given += _parts(context.builder, context.cotangent(call))

        def body(k: Kernel, *values: Value) -> None:
            self.adjoint(self._seen(k, library, iter(values)))

        Kernel(context.builder, library.element).outline(library.derivative_name(self.name, "adjoint"), body, *given)

    def _seen(self, k: Kernel, library: Library, rest: Iterator[Value]) -> Adjoint:
        interface, width = self.interface, 2 if library.element.is_complex else 1
        sizes = {name: next(rest) for name in interface.read}
        factors = {name: Scalar(k.build, tuple(next(rest) for _ in range(width))) for name in interface.factors}
        arrays = {key: next(rest) for key in self.needs}
        work = next(rest)
        sizes |= {name: next(rest) for name in self.extra}
        bars = {name: next(rest) for name in interface.differentiable}
        result = None if self.outputs else Scalar(k.build, tuple(rest))
        seen = Sizes(k.build, sizes)
        return Adjoint(
            k, library, seen, factors, self.shapes, arrays, bars, work, self.work(seen, lambda _: True), result
        )


def _parts(build: Builder, number: Value) -> list[Value]:
    """A returned number: a float, or the two of a complex one."""
    return [build.extract_value(number, i) for i in (0, 1)] if isinstance(number.type, StructType) else [number]


# ------------------------------------------------------------------------------------------------ rules

Pick: TypeAlias = Callable[[CallSite], Routine | None]


@dataclass(frozen=True, slots=True)
class _Calls:
    """The parts of a `CallRule`: which routine a call is, of which library; None if it adds nothing."""

    pick: Pick
    library: Callable[[CallSite], Library]

    def augmented(self, context: AugmentedContext, call: CallSite) -> Sequence[Value]:
        library, routine = self.library(call), self.pick(call)
        return () if routine is None else routine.augmented(library, context, call)

    def reverse(self, context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
        routine = self.pick(call)
        if routine is not None:
            routine.reverse(self.library(call), context, call, saved)

    def tangent(self, context: TangentContext, call: CallSite) -> None:
        routine = self.pick(call)
        if routine is not None:
            emit_tangent(routine.interface, routine.tangent, self.library(call), context, call)


def fortran_rule(
    routine: Routine,
    *,
    letters: Sequence[str] = "sd",
    collection: str = "BLAS",
    also_written: str = "",
    source: str = "",
) -> CallRule:
    """The rule of a routine as Fortran compiles it, under all its symbols.

    Args:
        routine: the routine.
        letters: element types.
        collection: "BLAS" or "LAPACK".
        also_written: arguments that are written besides the outputs.
        source: source of the formula.
    """
    names, written = routine.parameters.split(), (routine.outputs + " " + also_written).split()
    writes = frozenset(i for i, name in enumerate(names) if name in written)
    effects = Effects(reads=frozenset(range(len(names))), writes=writes, other=False)

    def library(call: CallSite) -> Library:
        if len(call.arguments) != len(names) or any(argument.type is not PTR for argument in call.arguments):
            raise UnsupportedError(
                f"'{call.callee.name}' is not called with {len(names)} pointers as its arguments",
                f"declare its parameters as pointers: {', '.join(names)}",
                "the routine takes addresses, as Fortran routines do",
            )
        return FortranLibrary.of(call.callee.name or "", routine.name, collection)

    calls = _Calls(lambda _: routine, library)
    claimed = symbols(routine.name, letters, collection)
    return CallRule(claimed, effects, calls.reverse, calls.augmented, source, tangent=calls.tangent)


def numba_rule(
    symbol: str,
    operation: str,
    pick: Routine | Pick,
    *,
    reads: tuple[int, ...],
    writes: tuple[int, ...],
    source: str = "",
    policy: str = "",
    factors: tuple[tuple[int, ...], ...] | None = None,
    own: tuple[int, ...] = (),
) -> CallRule:
    """The rule of an entry point of Numba's.

    Args:
        symbol: its symbol.
        operation: its name in Python, for messages.
        pick: the routine, or which one a call is; None: the call adds nothing. It may refuse the call.
        reads, writes: arguments that point to memory.
        source, policy, factors, own: as `CallRule`.
    """
    calls = _Calls(
        (lambda _: pick) if isinstance(pick, Routine) else pick,
        lambda call: NumbaLibrary(element_of(call.arguments[0], operation)),
    )
    effects = Effects(reads=frozenset(reads), writes=frozenset(writes), other=False)
    parts = calls.reverse, calls.augmented, source, policy, calls.tangent
    return CallRule((symbol,), effects, *parts, factors=factors, own=own)
