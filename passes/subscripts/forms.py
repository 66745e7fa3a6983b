"""Addresses as polynomials of how often the loops around them have run.

Input   the loops of a function, the dimensions that the front end has marked.
Output  `Forms`: for a pointer the value that it is offset from, and by how many bytes; for an integer its polynomial.
Method  the variable of a loop is its start and a multiple of the loop's count. Of a value that is chosen among others
        (phi, select) it is known what it exceeds, if one of those is never larger than the rest. Whatever else there is
        is an atom. All of it holds as the machine computes, modulo 2^64.
Limit   integers of 64 bits, steps that are constants.

    for k: best = k; for i in range(k + 1, n): best = i if … else best
    %p = getelementptr double, ptr %a, i64 %j        a + 8·(start of j) + 8·count of j's loop
    %best = phi i64 [ %k, … ], [ %choice, … ]        count of k's loop + something that is not negative
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import Final, NamedTuple, TypeAlias

from irad.ir import types
from irad.ir.cfg import ControlFlow
from irad.ir.dominance import DominatorTree
from irad.ir.folding import signed
from irad.ir.instructions import Binary, Cast, CondBr, GetElementPtr, ICmp, Instruction, Phi, Select
from irad.ir.loops import Loop, LoopNest
from irad.ir.module import Block
from irad.ir.trip_count import AffineVariable, affine_variables, constant_offset, trip_count
from irad.ir.types import I64
from irad.ir.values import ConstantInt, Value
from irad.ir.worklist import Worklist
from irad.passes.subscripts.dimensions import Dimension
from irad.records import dataclass

# What branches have found out about integers, where control comes from one block to another.
#
# Input   a branch on whether an integer of 64 bits is a constant, the edge that is taken.
# Output  the constant.
#
#     br (i == 0), label %join, label %loop       on the edge to %join, i is 0

_MOST_BRANCHES = 8


def constants_on_edge(
    cfg: ControlFlow, dominators: DominatorTree, start: Block, end: Block
) -> Iterator[tuple[Value, int]]:
    """Integers that are constants whenever control goes from one block to another, with those."""
    for _ in range(_MOST_BRANCHES):
        found = _constant(start, end)
        if found is not None:
            yield found
        end, above = start, dominators.immediate[start]
        if above is None or cfg.predecessors[end] != (above,):
            return
        start = above


def _constant(start: Block, end: Block) -> tuple[Value, int] | None:
    match start.terminator:
        case CondBr(operands=[ICmp(operands=[number, ConstantInt() as bound]) as test], targets=[if_true, if_false]):
            is_equal = number.type is I64 and test.predicate == ("eq" if if_true is end else "ne")
            return (number, signed(bound)) if is_equal and if_true is not if_false else None
        case _:
            return None


# Integers as polynomials: coefficients by product of atoms, which may be anything that can be compared and hashed.

Monomial: TypeAlias = tuple[Hashable, ...]
Polynomial: TypeAlias = Mapping[Monomial, int]


def monomial(*atoms: Hashable) -> Monomial:
    """A product of atoms, in an order of their own."""
    return tuple(sorted(atoms, key=hash))


def added(a: Polynomial, b: Polynomial) -> Polynomial:
    """Sum of two polynomials."""
    total = dict(a)
    for term, coefficient in b.items():
        total[term] = total.get(term, 0) + coefficient
    return {term: coefficient for term, coefficient in total.items() if coefficient}


def scaled(a: Polynomial, factor: int) -> Polynomial:
    """Multiple of a polynomial."""
    return {term: coefficient * factor for term, coefficient in a.items()} if factor else {}


def multiplied(a: Polynomial, b: Polynomial) -> Polynomial:
    """Product of two polynomials."""
    total: dict[Monomial, int] = {}
    for left, x in a.items():
        for right, y in b.items():
            term = monomial(*left, *right)
            total[term] = total.get(term, 0) + x * y
    return {term: coefficient for term, coefficient in total.items() if coefficient}


def replaced(a: Polynomial, atom: Hashable, by: Polynomial) -> Polynomial:
    """The polynomial with another one in place of an atom that occurs alone."""
    return added({term: c for term, c in a.items() if term != (atom,)}, scaled(by, a.get((atom,), 0)))


def evaluated(a: Polynomial, atom: Hashable, number: int) -> Polynomial:
    """The polynomial where an atom is a number."""
    total: dict[Monomial, int] = {}
    for term, coefficient in a.items():
        rest = tuple(each for each in term if each != atom)
        total[rest] = total.get(rest, 0) + coefficient * number ** (len(term) - len(rest))
    return {term: coefficient for term, coefficient in total.items() if coefficient}


# With the largest factor and constant below, it keeps sums of polynomials from wrapping around (`_is_small`).
_MOST_TERMS: Final = 24
_MOST_CHOICES: Final = 16
# Times fewer than 2^47 iterations a factor stays below 2^63, and sums of these constants do.
_LARGEST_CONSTANT: Final = 1 << 40
_LARGEST_FACTOR: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Count:
    """Number of times that a loop has taken its back edge since it was entered."""

    loop: Loop


@dataclass(frozen=True, slots=True)
class Excess:
    """By how much a chosen value exceeds the least one that it may be; not negative."""

    value: Value


class Form(NamedTuple):
    """An address: an offset in bytes from a value."""

    root: Value
    offset: Polynomial


@dataclass(eq=False, slots=True)
class Forms:
    """The forms of the values of one function."""

    cfg: ControlFlow
    dominators: DominatorTree
    nest: LoopNest
    dimensions: Mapping[Value, Dimension]
    _affine: dict[Value, tuple[Loop, AffineVariable]] = field(default_factory=dict)
    _integers: dict[Value, Polynomial] = field(default_factory=dict)
    _addresses: dict[Value, Form | None] = field(default_factory=dict)
    _last: dict[Loop, Polynomial | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for loop in self.nest.loops:
            for phi, each in affine_variables(loop).items():
                if phi.type is types.I64 or isinstance(phi.type, types.PointerType):  # others wrap around
                    self._affine[phi] = loop, each

    def address(self, pointer: Value) -> Form | None:
        """Form of a pointer; None where the offset is not known."""
        if pointer not in self._addresses:
            self._addresses[pointer] = self._address(pointer)
        return self._addresses[pointer]

    def _address(self, pointer: Value) -> Form | None:
        total: Polynomial = {}
        while True:
            match pointer:
                case GetElementPtr():
                    step = self._step(pointer)
                    if step is None:
                        return None
                    total, pointer = added(total, step), pointer.operands[0]
                case Cast(opcode="bitcast", operands=[base]):
                    pointer = base
                case Phi() if pointer in self._affine:
                    loop, variable = self._affine[pointer]
                    assert isinstance(variable.step, int)
                    total, pointer = added(total, {(Count(loop),): variable.step}), variable.start
                case _:
                    return Form(pointer, total) if _is_small(total) else None

    def _step(self, gep: GetElementPtr) -> Polynomial | None:
        """The bytes that a getelementptr adds."""
        constant = constant_offset(gep)
        if constant is not None:
            return {(): constant} if constant else {}
        if len(gep.operands) != 2 or gep.operands[1].type is not types.I64:
            return None
        return scaled(self.integer(gep.operands[1]), types.size_of(gep.source_type))

    def integer(self, value: Value) -> Polynomial:
        """Polynomial of an integer of 64 bits."""
        found = self._integers.get(value)
        if found is None:
            atom: Polynomial = {(value,): 1}
            self._integers[value] = atom  # of a value in a cycle
            found = self._computed(value)
            if found is None or not _is_small(found):
                found = atom
            self._integers[value] = found
        return found

    def _computed(self, value: Value) -> Polynomial | None:
        if value in self.dimensions:
            return {(self.dimensions[value],): 1}
        match value:
            case ConstantInt():
                number = signed(value)
                return {(): number} if number else {}
            case Phi() if value in self._affine:
                loop, variable = self._affine[value]
                if not isinstance(variable.step, int):
                    return None
                return added(self.integer(variable.start), {(Count(loop),): variable.step})
            case Select(operands=[ICmp() as test, if_true, if_false]) if (known := self._decided(test)) is not None:
                return self.integer(if_true if known else if_false)
            case Phi() | Select():
                same = self._same_on_all_ways(value)
                return self._chosen(value) if same is None else same
            case Binary(operands=[a, b]):
                return self._binary(value, a, b)
            case _:
                return None

    def _binary(self, value: Binary, a: Value, b: Value) -> Polynomial | None:
        match value.opcode:
            case "add":
                return added(self.integer(a), self.integer(b))
            case "or" if "disjoint" in value.flags:
                return added(self.integer(a), self.integer(b))
            case "sub":
                return added(self.integer(a), scaled(self.integer(b), -1))
            case "mul":
                return multiplied(self.integer(a), self.integer(b))
            case "shl" if isinstance(b, ConstantInt) and 0 <= b.value < 32:
                return scaled(self.integer(a), 1 << b.value)
            case _:
                return None

    def _decided(self, test: ICmp) -> bool | None:
        """The outcome of a comparison with a constant that the number always reaches, as of an index with zero."""
        number, bound = test.operands
        if not isinstance(bound, ConstantInt) or number.type is not types.I64:
            return None
        limit = signed(bound)
        match test.predicate:
            case "slt" if is_at_least(self.integer(number), limit):
                return False
            case "sgt" if is_at_least(self.integer(number), limit + 1):
                return True
            case _:
                return None

    def _same_on_all_ways(self, value: Phi | Select) -> Polynomial | None:
        """Value of a phi whichever way control comes: LLVM writes a constant where a branch has found one out."""
        if not isinstance(value, Phi) or self._carrier(value) is not None:
            return None
        assert value.block is not None
        known = [(self.integer(each), block) for each, block in value.incoming()]
        for base, _ in known:
            lasting = all(self._lasts(atom, [value], ()) for term in base for atom in term)
            if lasting and all(self._agree(base, each, block, value.block) for each, block in known):
                return base
        return None

    def _agree(self, one: Polynomial, other: Polynomial, start: Block, end: Block) -> bool:
        """True if two numbers are equal on an edge."""
        for number, constant in constants_on_edge(self.cfg, self.dominators, start, end):
            match list(self.integer(number).items()):
                case [((atom,), 1)]:
                    one, other = evaluated(one, atom, constant), evaluated(other, atom, constant)
                case _:
                    pass
        return one == other

    def _chosen(self, value: Phi | Select) -> Polynomial | None:
        """The least of the values that may have been chosen, and the excess."""
        members, leaves = self._choices(value)
        if not 0 < len(members) <= _MOST_CHOICES:
            return None
        across = [loop for each in members if (loop := self._carrier(each)) is not None]
        known = [self.integer(leaf) for leaf in leaves]
        for base in known:
            lasting = all(self._lasts(atom, members, across) for term in base for atom in term)
            if lasting and all(is_at_least(added(each, scaled(base, -1)), 0) for each in known):
                return added(base, {(Excess(value),): 1})
        return None

    def _choices(self, value: Value) -> tuple[list[Phi | Select], list[Value]]:
        """The phis and selects that hand a value on, and the values that they start from."""
        members: list[Phi | Select] = []
        leaves: list[Value] = []
        pending = Worklist([value])
        for each in pending:
            match each:
                case Phi() if each not in self._affine:
                    members.append(each)
                    pending.add(*each.operands)
                case Select():
                    members.append(each)
                    pending.add(*each.operands[1:])
                case _:
                    leaves.append(each)
            if len(members) > _MOST_CHOICES:
                return [], []
        return members, leaves

    def _carrier(self, member: Phi | Select) -> Loop | None:
        """The loop in which a phi hands a value on to the next iteration."""
        assert member.block is not None
        loop = self.nest.loop_of(member.block)
        return loop if isinstance(member, Phi) and loop is not None and loop.header is member.block else None

    def _lasts(self, atom: object, members: Iterable[Instruction], across: Iterable[Loop]) -> bool:
        """True if an atom is, wherever a choice is used, what it was when the choice was made."""
        home = self.home(atom)
        if home is None:
            return True
        inside = all(each.block in home.blocks for each in members)
        return inside and all(home.contains(loop) and loop is not home for loop in across)

    def home(self, atom: object) -> Loop | None:
        """The innermost loop in each of whose iterations an atom is recomputed; None for what is computed once."""
        match atom:
            case Count(loop=loop):
                return loop
            case Excess(value=Instruction(block=block)) | Instruction(block=block) if block is not None:
                return self.nest.loop_of(block)
            case Dimension(size=size, start=start):
                loops = [home for each in (size, start) if (home := self.home(each)) is not None]
                return max(loops, key=lambda loop: loop.depth, default=None)
            case _:
                return None

    def last(self, loop: Loop) -> Polynomial | None:
        """The count of a loop in its last iteration, when it leaves in one way only."""
        if loop not in self._last:
            self._last[loop] = self._find_last(loop)
        return self._last[loop]

    def _find_last(self, loop: Loop) -> Polynomial | None:
        count = trip_count(loop, self.cfg, self.dominators) if len(loop.exits) == 1 else None
        if count is None or count.predicate != "ne" or abs(count.step) != 1 or count.bound.type is not types.I64:
            return None
        first = self.integer(count.start)
        if count.compares_next:
            first = added(first, {(): count.step})
        return scaled(added(self.integer(count.bound), scaled(first, -1)), count.step)


def is_at_least(number: Polynomial, least: int) -> bool:
    """True if a number is: counts and excesses are not negative, nor so large that sums of a few wrap around."""
    constant = number.get((), 0)
    return constant >= least and all(
        coefficient > 0 and len(term) == 1 and isinstance(term[0], Count | Excess)
        for term, coefficient in number.items()
        if term
    )


def _is_small(number: Polynomial) -> bool:
    """True if sums of such numbers do not wrap around, however often loops run: less than 2^47 times."""
    return len(number) <= _MOST_TERMS and all(
        abs(coefficient) < (_LARGEST_FACTOR if term else _LARGEST_CONSTANT) for term, coefficient in number.items()
    )
