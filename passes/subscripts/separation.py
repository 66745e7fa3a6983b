"""Stores that never touch what a load has read: by the subscripts of both, in all iterations in question.

Input   the forms of addresses, the order in which blocks run.
Output  `Separation`: whether a store, whenever it may run after a load, or anywhere in a loop, goes to other bytes.
Method  A store runs after a load in a later iteration of a loop around both, while the loops further out are in the
        same, or later within the same iteration of all. In each of these cases the difference of the addresses is a
        polynomial of counts that are not negative: those of shared iterations are equal, that of the loop that has
        moved on is larger, all others are anything. Marked dimensions split the difference into one for each axis.
        Accesses are apart if along one axis the difference is always positive, or always negative. Where a count comes
        with the wrong sign, it is replaced by the last one less what is left to run.
Limit   addresses that come from the same value; differences that are linear, with known signs.

    for k: for i in range(k + 1, n): for j in range(k + 1, n): a[i, j] -= a[i, k] * a[k, j]
    a[i, k] in iteration k, a[i', j'] later: j' - k = (k' + 1 + count) - k ≥ 1
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final, NamedTuple

from irad.ir import types
from irad.ir.instructions import Instruction, Load, Store, accessed
from irad.ir.loops import Loop
from irad.ir.module import Block
from irad.ir.values import Value
from irad.ir.worklist import reachable
from irad.passes.subscripts.dimensions import Dimension
from irad.passes.subscripts.forms import (
    Count,
    Excess,
    Form,
    Forms,
    Monomial,
    Polynomial,
    added,
    multiplied,
    replaced,
    scaled,
)
from irad.records import dataclass

MOST_WRITES: Final = 24
"""That a load is compared with: more would cost compile time that grows with the square of a function."""

_MOST_REPLACED: Final = 6


@dataclass(frozen=True, slots=True)
class _Later:
    """Number of iterations between two of one loop."""

    loop: Loop


@dataclass(frozen=True, slots=True)
class _At:
    """An atom at the time of one of the two accesses; None where it is the same for both."""

    atom: object
    side: str | None


@dataclass(frozen=True, slots=True)
class _Left:
    """Number of iterations that a loop has left to run."""

    count: _At


class _Case(NamedTuple):
    """Iterations in which two accesses run.

    Attributes:
        shared: the loops around both, outermost first, whose iteration is the same.
        later: the loop further inside of which the store's iteration is a later one.
    """

    shared: tuple[Loop, ...]
    later: Loop | None = None


@dataclass(eq=False, slots=True)
class Separation:
    """Answers for the loads and stores of one function."""

    forms: Forms
    _within: dict[tuple[Block, Block | None], frozenset[Block]] = field(default_factory=dict)
    _order: dict[Block, dict[Instruction, int]] = field(default_factory=dict)

    def is_apart_later(self, access: Load | Store, store: Store) -> bool:
        """True if a store touches nothing that an access has touched whenever it runs after that."""
        both = self._comparable(access, store)
        return both is not None and all(
            self._is_apart(*both, access, store, case) for case in self._cases(access, store)
        )

    def is_apart_in(self, loop: Loop, first: Instruction, second: Instruction) -> bool:
        """True if two accesses in a loop go to different bytes, in whichever of its iterations."""
        both = self._comparable(first, second)
        shared = tuple(each for each in self._around(first) if each.contains(loop) and each is not loop)
        return both is not None and self._is_apart(*both, first, second, _Case(shared))

    def is_apart_across(self, loop: Loop, earlier: Instruction, later: Instruction) -> bool:
        """True if of two accesses in a loop one touches nothing that the other touched in an earlier iteration."""
        both = self._comparable(earlier, later)
        shared = tuple(each for each in self._around(earlier) if each.contains(loop) and each is not loop)
        return both is not None and self._is_apart(*both, earlier, later, _Case(shared, loop))

    def _comparable(self, first: Instruction, second: Instruction) -> tuple[Form, Form] | None:
        """The forms of both addresses if they have the same root, and the same marked dimensions."""
        read, written = (self.forms.address(_pointer(inst)) for inst in (first, second))
        if read is None or written is None or read.root is not written.root:
            return None
        marks = [_marks(each.offset) for each in (read, written)]
        if max(marks[0], key=len) != max(marks[1], key=len) or not _is_chain(marks[0] | marks[1]):
            return None
        return read, written

    def _around(self, inst: Instruction) -> tuple[Loop, ...]:
        """The loops around an instruction, outermost first."""
        assert inst.block is not None
        found: list[Loop] = []
        loop = self.forms.nest.loop_of(inst.block)
        while loop is not None:
            found.append(loop)
            loop = loop.parent
        return tuple(reversed(found))

    def _cases(self, access: Load | Store, store: Store) -> Iterable[_Case]:
        """All ways in which a store may run after another access."""
        inside = self._around(store)
        common = tuple(loop for loop in self._around(access) if loop in inside)
        for depth, loop in enumerate(common):
            yield _Case(common[:depth], loop)
        if self.may_follow(access, store, common[-1].header if common else None):
            yield _Case(common)

    def may_follow(self, access: Load | Store, store: Load | Store, header: Block | None) -> bool:
        """True if an access may run after another one before the innermost loop around both, or none, goes on."""
        start, end = access.block, store.block
        assert start is not None
        assert end is not None
        if start is end:
            if start not in self._order:
                self._order[start] = {inst: index for index, inst in enumerate(start.instructions)}
            return self._order[start][store] > self._order[start][access]
        if (start, header) not in self._within:
            following = self.forms.cfg.successors
            found = reachable(following[start], lambda block: () if block is header else following[block])
            self._within[start, header] = frozenset(found)
        return end is not header and end in self._within[start, header]

    def _is_apart(self, read: Form, written: Form, first: Instruction, second: Instruction, case: _Case) -> bool:
        at = _Instances(self.forms, case)
        marks = {
            atom for form in (read, written) for term in form.offset for atom in term if isinstance(atom, Dimension)
        }
        # An array chosen between the two accesses, or its extents, may be another one.
        if not all(map(at.is_shared, (read.root, *marks))):
            return False
        difference = added(at.of(written.offset, "store"), scaled(at.of(read.offset, "load"), -1))
        axes: dict[Monomial, dict[Monomial, int]] = {}
        for term, coefficient in difference.items():
            axis = axes.setdefault(tuple(filter(_is_mark, term)), {})
            axis[tuple(atom for atom in term if not _is_mark(atom))] = coefficient
        size = max(_size(first), _size(second))
        return any(
            at.is_at_least(scaled(axis, sign), 1 if product else size)
            for product, axis in axes.items()
            for sign in (1, -1)
        )


def _pointer(access: Instruction) -> Value:
    pointer = accessed(access)
    assert pointer is not None
    return pointer


def _size(access: Instruction) -> int:
    return types.size_of(access.operands[0].type if isinstance(access, Store) else access.type)


def _is_mark(atom: object) -> bool:
    return isinstance(atom, _At) and isinstance(atom.atom, Dimension)


def _marks(offset: Polynomial) -> frozenset[Monomial]:
    """The products of marked dimensions that occur."""
    return frozenset(tuple(a for a in term if isinstance(a, Dimension)) for term in offset) | {()}


def _is_chain(products: frozenset[Monomial]) -> bool:
    """True if products of dimensions are those of the axes of one array: each divides the next."""
    ordered = sorted(products, key=len)
    starts = {mark.start for product in products for mark in product if isinstance(mark, Dimension)}
    steps = itertools.pairwise(ordered)
    return len(starts) <= 1 and all(_divides(small, large) for small, large in steps)


def _divides(small: Sequence[object], large: Sequence[object]) -> bool:
    return len(small) < len(large) and all(small.count(mark) <= large.count(mark) for mark in small)


@dataclass(frozen=True, slots=True)
class _Instances:
    """Atoms at the times of two accesses."""

    forms: Forms
    case: _Case

    def is_shared(self, atom: object) -> bool:
        """True if an atom is the same at both times."""
        home = self.forms.home(atom)
        return home is None or home in self.case.shared

    def of(self, number: Polynomial, side: str) -> Polynomial:
        """A polynomial at one of the times."""
        total: Polynomial = {}
        for term, coefficient in number.items():
            product: Polynomial = {(): coefficient}
            for atom in term:
                product = multiplied(product, self._atom(atom, side))
            total = added(total, product)
        return total

    def _atom(self, atom: object, side: str) -> Polynomial:
        later = self.case.later
        if later is not None and atom == Count(later):
            count: Polynomial = {(_At(atom, None),): 1}
            return added(count, {(): 1, (_At(_Later(later), None),): 1}) if side == "store" else count
        return {(_At(atom, None if self.is_shared(atom) else side),): 1}

    def is_at_least(self, number: Polynomial, least: int) -> bool:
        """True if a number certainly is."""
        for _ in range(_MOST_REPLACED):
            if _is_at_least(number, least):
                return True
            wrong = [found for term, coefficient in number.items() if coefficient < 0 and (found := _count(term))]
            if not wrong:
                return False
            # The innermost first: in triangular nests its last count is a polynomial of the counts around it.
            count, loop = max(wrong, key=lambda each: each[1].depth)
            last = self._last(count, loop)
            if last is None:
                return False
            number = replaced(number, count, last)
        return False

    def _last(self, count: _At, loop: Loop) -> Polynomial | None:
        """A count as the last one of its loop less what is left."""
        last = self.forms.last(loop)
        if last is None:
            return None
        left: Polynomial = {(_At(_Left(count), None),): -1}
        if loop is self.case.later:
            left = added(left, {(): -1, (_At(_Later(loop), None),): -1})
        return added(self.of(last, count.side or "load"), left)


def _count(term: Monomial) -> tuple[_At, Loop] | None:
    """The count that a term consists of, and its loop."""
    match term:
        case (_At(atom=Count(loop=loop)) as found,):
            return found, loop
        case _:
            return None


def _is_at_least(number: Mapping[Monomial, int], least: int) -> bool:
    return number.get((), 0) >= least and all(
        coefficient > 0 and len(term) == 1 and _is_not_negative(term[0]) for term, coefficient in number.items() if term
    )


def _is_not_negative(atom: object) -> bool:
    return isinstance(atom, _At) and isinstance(atom.atom, Count | Excess | _Later | _Left)
