"""Rules: five kinds, all data.

`Elementwise`  a scalar function given by its partial derivatives as expressions; the generator does the rest.
`Inactive`     a callee through which no derivative flows.
`CallRule`     a callee that reads or writes memory, or whose adjoint is code: two functions emit it.
`PairRule`     a callee whose augmented primal and reverse are compiled elsewhere, from functions that a user wrote.
`ConstantParameters`  a callee that is differentiated, but not with respect to some of its parameters.

The generator works in two steps. The *forward sweep* is the primal with shadow pointers computed beside the primal
ones; a `CallRule.augmented` may add instructions to it and names the values that its adjoint will want. The *reverse
sweep* visits the calls backwards; `CallRule.reverse` emits the adjoint and adds into cotangents and shadows. Which of
the wanted values are saved and which are recomputed is the plan's business, not the rule's.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Protocol, TypeAlias

from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.module import Function
from irad.ir.types import FunctionType
from irad.ir.values import Value
from irad.records import dataclass
from irad.ruleset.expr import Expr
from irad.ruleset.memory_type import MemoryType

# Memory that a callee reaches: what an argument points to; for each byte offset that follows, what the pointer stored
# there points to. Of an object that only callees look into, offsets are names of its parts.
MemoryPath: TypeAlias = tuple[int, ...]


class Origin(enum.Enum):
    """Memory that a pointer returned by a callee points to."""

    FRESH = "fresh"  # an allocation of this call; nothing else points to it
    ARGUMENT = "argument"  # into what argument `Effects.result_argument` points to
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Effects:
    """Effects of a callee on memory, by argument index.

    Attributes:
        reads, writes: arguments through whose pointer it may read or write (the pointee itself, not what that points
        to). frees: arguments whose pointee may be freed by it.
        captures: arguments whose pointer it may store in ``captures_into``'s pointees.
        captures_into: see ``captures``.
        fills: arguments into whose memory pointers to new memory of the callee's may be stored.
        copies: pairs (to, from): the pointers stored in from's pointee may end up in to's.
        makes: pairs (argument, parts): the address of a new object is stored where the argument points to; the object
        has a pointer to further new memory at each byte of ``parts``.
        moves: pairs (to, from) of places: bytes are copied, with the numbers and pointers in them.
        alters: places where bytes are moved or cleared. links: pairs (argument, place): the address of the place is
        stored where the argument points to.
        result: where a pointer result points to; ``result_argument`` for Origin.ARGUMENT.
        header: the allocation that a FRESH result points to is a header, and the address of its data is stored at
            this byte of it; for Origin.ARGUMENT: the result is what is stored there.
        is_lent: a FRESH result ends with what it is a part of, without a call that is passed its address.
        keeps: a FRESH result begins with the bytes of what this argument points to.
        integer_prefix: number of bytes at the start of allocated data that hold integers only (the size of a list).
        writes_no_floats: the written memory holds no floating-point data (sizes, status words, keys).
        raw: it moves bytes whatever they hold.
        other: it has effects beyond memory reached by its arguments (prints, draws random numbers, raises): never
        repeat it.
        remote: numbers leave the program there, or come into it, so that an output may depend on what it reads and what
        it writes on an input, whatever is active here; its rule applies to every call.
        lends: arguments whose address it keeps, for calls to come that read and write memory that was lent.
        takes_lent: whether it is such a call.
        integers: arguments in whose memory it reads or writes integers, and is refused where numbers lie there.
    """

    reads: frozenset[int] = frozenset()
    writes: frozenset[int] = frozenset()
    frees: frozenset[int] = frozenset()
    captures: frozenset[int] = frozenset()
    captures_into: frozenset[int] = frozenset()
    fills: frozenset[int] = frozenset()
    copies: tuple[tuple[int, int], ...] = ()
    makes: tuple[tuple[int, tuple[int, ...]], ...] = ()
    moves: tuple[tuple[MemoryPath, MemoryPath], ...] = ()
    alters: tuple[MemoryPath, ...] = ()
    links: tuple[tuple[int, MemoryPath], ...] = ()
    result: Origin = Origin.UNKNOWN
    result_argument: int = 0
    header: int | None = None
    is_lent: bool = False
    keeps: int | None = None
    integer_prefix: int = 0
    writes_no_floats: bool = False
    raw: bool = False
    other: bool = True
    remote: bool = False
    lends: frozenset[int] = frozenset()
    takes_lent: bool = False
    integers: frozenset[int] = frozenset()


PURE = Effects(result=Origin.UNKNOWN, other=False)


@dataclass(frozen=True, slots=True)
class Domain:
    """Points to test a rule at: an interval to sample, and points to add (kinks, branch edges, singular points)."""

    low: float
    high: float
    also: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Elementwise:
    """A scalar function of float arguments, side-effect free.

    Attributes:
        name: canonical name; `irad.ruleset.symbols` maps it to LLVM symbols of every precision.
        arity: number of arguments (integer ones, as of `ldexp` and `llvm.powi`, included).
        partials: derivative with respect to each argument as an expression in the arguments ("x0", "x1", …) and the
            result ("y"); None for an argument that carries no derivative.
        domains: one for each argument.
        refused: arguments with respect to which no derivative is known; a program that needs one is refused.
        policy: the convention at kinks and singular points, in words, or "".
        source: where the formula is from, or "" for textbook calculus.
    """

    name: str
    arity: int
    partials: tuple[Expr | None, ...]
    domains: tuple[Domain, ...]
    refused: frozenset[int] = frozenset()
    policy: str = ""
    source: str = ""

    def depends_on(self, index: int) -> bool:
        """True if the result changes smoothly with an argument."""
        return self.partials[index] is not None or index in self.refused


@dataclass(frozen=True, slots=True)
class Inactive:
    """A callee that carries no derivative: whatever it returns or writes is constant.

    ``effects=None``: they are not known; it may do anything to memory that it can reach. ``name`` is what the user who
    declared it calls it. ``tangent`` is what it does to shadows in forward mode, if anything: freeing them. ``adjoint``
    is what the reverse sweep does in its place, whatever is active: threads that waited for each other wait again.
    """

    symbols: tuple[str, ...]
    why: str
    effects: Effects | None = field(default_factory=Effects)
    name: str = ""
    tangent: TangentPart | None = None
    adjoint: Callable[[ReverseContext, CallSite], None] | None = None


class Context(Protocol):
    """Context of every part of a `CallRule`."""

    def is_active(self, value: Value) -> bool:
        """True if a float value carries a derivative, or a pointer has a shadow."""
        ...

    def value(self, primal: Value) -> Value:
        """Value of the primal in this sweep.

        In the forward sweep an argument of the call; in the reverse sweep also the result or one of the `saved` values,
        saved or recomputed.
        """
        ...

    def shadow(self, pointer: Value) -> Value:
        """The shadow pointer of an active pointer."""
        ...

    @property
    def is_exact(self) -> bool:
        """True if values have to be those of the plain function, to the bit."""
        ...

    def layout(self, pointer: Value, *path: int) -> MemoryType | None:
        """Layout of the memory at a pointer, or None if that is not known.

        ``path`` is the rest of a `MemoryPath`.
        """
        ...

    def holds_floats(self, pointer: Value, *path: int) -> bool:
        """True if the memory at a pointer may hold floating-point numbers."""
        ...

    def holds_pointers(self, pointer: Value, *path: int) -> bool:
        """True if pointers are stored in the memory at a pointer."""
        ...

    def is_read(self, pointer: Value, call: CallSite) -> bool:
        """True if the function reads the memory at a pointer anywhere but in a call."""
        ...

    def number_places(self, pointer: Value, size: Value | None = None) -> MemoryType | None:
        """Like `layout`, but where that is not known, the numbers that the function itself accesses there.

        None also where the function does not know what all of ``size`` bytes of its caller's memory are.
        """
        ...

    def declare(self, name: str, call_type: FunctionType, attributes: tuple[str, ...] = ()) -> Function:
        """A declaration (a `Function` of a `FunctionType`) in the derivative module."""
        ...


class CopyContext(Context, Protocol):
    """Context of a part that emits beside a copy of the call, on either side of it."""

    @property
    def before(self) -> Builder:
        """Emits just before the call."""
        ...

    @property
    def after(self) -> Builder:
        """Emits just after the call (after what was emitted there before)."""
        ...

    @property
    def lane(self) -> int:
        """The number of the direction, from 0; a rule that asks for it is called for each direction."""
        ...

    @property
    def width(self) -> int:
        """The number of directions."""
        ...

    def restate(self, index: int, value: Value) -> None:
        """Changes an argument of the copy of the call, by its number."""
        ...

    def set_shadow(self, shadow: Value) -> None:
        """States the shadow of the call's own (pointer) result."""
        ...

    def allocate(self, size: Value) -> Value:
        """Emits, before the call, an allocation of ``size`` (i64) bytes of tape memory, 64-byte aligned, not zeroed.

        It lives until the derivative ends. Failure is handled by the generator.
        """
        ...

    def is_carried(self, pointer: Value, *path: int) -> bool:
        """True if what moves the memory at a pointer moves its shadow: pointers in it, or tangents."""
        ...

    def is_made_here(self, pointer: Value) -> bool:
        """True if the memory is the function's own: its shadow holds no derivatives yet."""
        ...


class AugmentedContext(CopyContext, Protocol):
    """Context of `CallRule.augmented`. It emits into the forward sweep."""

    def overwritten(self, pointer: Value) -> bool:
        """True if memory that the call reads through ``pointer`` may change before the reverse sweep comes back."""
        ...

    def earlier(self, call: CallSite) -> Sequence[Value]:
        """Values that the augmented part of another call of the function returned; they need not be known here.

        Nothing where that part has not been emitted yet, and in the oracle, where calls do not depend on each other.
        """
        ...


class ReverseContext(Context, Protocol):
    """Context of `CallRule.reverse`. It emits into the reverse sweep."""

    @property
    def builder(self) -> Builder:
        """Builder of the adjoint. A rule that makes new blocks leaves it positioned in the last one."""
        ...

    @property
    def zero_wins(self) -> bool:
        """True if zero is wanted where a partial derivative is zero and the cotangent infinite."""
        ...

    def cotangent(self, result: Value) -> Value:
        """The cotangent of the call's float result; asking for it takes it (it is zero afterwards)."""
        ...

    def accumulate(self, value: Value, amount: Value) -> None:
        """Adds to the cotangent of a float argument; does nothing when it is not active."""
        ...


class TangentContext(CopyContext, Protocol):
    """Context of `CallRule.tangent`. It emits into the one function of forward mode: the primal beside its tangents.

    Shadows hold tangents there. Before the call, that of an argument holds the tangent of its memory before the call;
    when the rule is done, it has to hold that of its memory after the call. What the rule reads of memory that the call
    writes, it therefore has to read, or copy (`allocate`), ``before`` the call. Shadows are assigned, not added to;
    operands may be the same array. A shadow that the call writes and whose new content has no active part is cleared.

    Where there are tangents in several directions, the rule is called for each, with the shadows and tangents of that
    direction, beside one call.
    """

    @property
    def zero_wins(self) -> bool:
        """True if zero is wanted where a partial derivative is zero and the tangent infinite."""
        ...

    def mark(self) -> Value:
        """Emits, before the call, where allocations begin that `release` frees."""
        ...

    def release(self, mark: Value) -> None:
        """Emits, after the call, that what `allocate` gave since the mark is free: working memory of this call."""
        ...

    def reallocate_owned(self, size: Value) -> Value:
        """Emits, after a call of `realloc`, the same for the shadow of its argument; one that is new is zeroed."""
        ...

    def allocate_owned(self, size: Value) -> Value:
        """Emits, before the call, an allocation of ``size`` (i64) zeroed bytes that the rules have to have freed."""
        ...

    def allocate_attached(self, size: Value) -> tuple[Value, Value | None]:
        """Emits an allocation that is freed with what the call allocates.

        Returns:
            The memory, and the function that frees it when it is the last argument: `void (ptr, i64, ptr)`; None where
            it is freed in another way.
        """
        ...

    def allocate_beside(self, arena: Value, size: Value) -> Value:
        """Emits, before the call, an allocation of ``size`` (i64) zeroed bytes in an arena of the program's own."""
        ...

    def tangent(self, argument: Value) -> Value:
        """The tangent of a float argument, of its type; zero when it is not active."""
        ...

    @property
    def order(self) -> int:
        """Order of the coefficient of a Taylor series that `tangent` and `set_tangent` are about."""
        ...

    def coefficient(self, primal: Value, order: int) -> Value | None:
        """A Taylor coefficient of a float argument, from 1; that of 0 is its value. None for zero."""
        ...

    def shadow_of_order(self, pointer: Value, order: int) -> Value:
        """Shadow of an active pointer with the Taylor coefficients of an order, from 1."""
        ...

    def set_tangent(self, amount: Value) -> None:
        """States the tangent of the call's own float result; one that is active and not stated is zero."""
        ...


AugmentedPart: TypeAlias = Callable[[AugmentedContext, CallSite], Sequence[Value]]
ReversePart: TypeAlias = Callable[[ReverseContext, CallSite, Sequence[Value]], None]
TangentPart: TypeAlias = Callable[[TangentContext, CallSite], None]


def save_nothing(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
    """An augmented part that leaves the call as it is and wants nothing of its own."""
    return ()


def no_adjoint(context: ReverseContext, call: CallSite, saved: Sequence[Value]) -> None:
    """A reverse part for a callee whose results depend on nothing: fresh memory, addresses."""


@dataclass(frozen=True, slots=True)
class CallRule:
    """A rule that emits code.

    Attributes:
        symbols: LLVM symbols; a trailing `*` stands for any suffix (`llvm.memcpy.*`).
        effects: effects of the callee on memory.
        reverse: emits the adjoint.
        augmented: adds to the forward sweep; returns the values its reverse part gets back, in order.
        source: where the formula is from.
        policy: the convention at singular points, in words, or "".
        tangent: emits the tangent; None where nobody has written it yet.
        series: the same for a coefficient of a Taylor series, of any order; None where there is no formula.
        moves: the tangent is moved as the number is, bit by bit; so is whatever else forward mode holds beside numbers.
        factors: groups of arguments; what the call computes is linear in the active ones if these are of one group at
            most. None where it never is, or nobody has said.
        own: arguments in whose memory the call leaves what depends on nothing but the content of that memory.
    """

    symbols: tuple[str, ...]
    effects: Effects
    reverse: ReversePart
    augmented: AugmentedPart = save_nothing
    source: str = ""
    policy: str = ""
    tangent: TangentPart | None = None
    series: TangentPart | None = None
    moves: bool = False
    factors: tuple[tuple[int, ...], ...] | None = None
    own: tuple[int, ...] = ()


def carried(part: Callable[[CopyContext, CallSite], object]) -> TangentPart:
    """The tangent of a callee that only moves memory: its augmented part moves shadows, and so the tangents in them."""

    def tangent(context: TangentContext, call: CallSite) -> None:
        part(context, call)

    return tangent


def shadow_rule(
    symbols: tuple[str, ...],
    effects: Effects,
    part: Callable[[CopyContext, CallSite], object],
    tangent: TangentPart | None = None,
) -> CallRule:
    """The rule of a callee that computes no number: ``part`` sets its shadow up, in forward mode ``tangent`` if any."""

    def augmented(context: AugmentedContext, call: CallSite) -> Sequence[Value]:
        part(context, call)
        return ()

    return CallRule(symbols, effects, no_adjoint, augmented, tangent=tangent or carried(part), moves=True)


@dataclass(frozen=True, slots=True)
class PairRule:
    """A callee whose pair comes from outside: the generator declares and calls it, and reports what it needs.

    To all analyses it is a callee with a body.

    Attributes:
        symbols: symbols of the primal.
        name: the user's name for it, for messages.
        version: changes with the rule, so that what was generated for another is not taken for this one.
        parameters: the numbers of parameters through which no derivative flows.
        returns_new: the memory that it returns is new, as the user promises.
        has_tangent: there is a rule for forward mode.
        takes_lanes: it is called once for tangents in several directions.
        forward_remedy: instructions for adding one, if not by `irad.rules.forward`.
        has_cotangent: there is a rule for reverse mode.
        leaves_arguments: the rule takes no account of what the function overwrites.
        repeats: the function does the same in each run and changes nothing, whatever its body seems to do.
    """

    symbols: tuple[str, ...]
    name: str
    version: int
    parameters: frozenset[int] = frozenset()
    returns_new: bool = False
    has_tangent: bool = False
    takes_lanes: bool = False
    forward_remedy: str | None = None
    has_cotangent: bool = True
    leaves_arguments: bool = False
    repeats: bool = False


@dataclass(frozen=True, slots=True)
class ConstantParameters:
    """A callee with a body, through some of whose parameters no derivative flows.

    Attributes:
        symbols: its.
        name: the user's name for it, for messages.
        parameters: the numbers of those parameters.
        returns_new: the memory that it returns is new, as the user promises.
    """

    symbols: tuple[str, ...]
    name: str
    parameters: frozenset[int]
    returns_new: bool = False


Rule: TypeAlias = Elementwise | Inactive | CallRule | PairRule | ConstantParameters
