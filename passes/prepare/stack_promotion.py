"""Stack promotion: small arrays that never leave a function become local variables, and those become values.

Input   the functions of a module, inlined and simplified, with the calls that allocate in them.
Output  whether any was rewritten: an allocation of few bytes, of a number that is known, is a variable in the entry
        block, its reference counts and the check whether it failed are gone, and the loops that its elements are
        indexed by are marked to be unrolled. LLVM's pipeline, which has to follow, makes values of the elements.
Method  the pointers into an array are all known, and no memory holds one (`local_arrays`). One variable stands for all
        arrays that the same call makes, one after the other. It is cleared there, so that an element that was not set
        is a zero and not what the iteration before left there. A phi that arrays change hands by has a variable, too,
        into which they are copied; and one that the copies wait in, since phis of a block choose at the same time.
Why     an array in memory has a shadow, what is overwritten in it goes on the tape, and each element keeps its
        instructions in order. A value costs what a scalar of the program costs.
Limit   where the place of an element is not known after unrolling (`Unrolling`), the array stays in memory: as a
        variable if it is not read too often, and does not change hands; else as it was.

    %m = call ptr @allocate(i64 24, i32 32)                       %m = alloca [24 x i8], align 64       (in the entry)
    %failed = icmp eq ptr %m, null                                call void @llvm.memset.p0.i64(ptr %m, i8 0, i64 24, …)
    %f = getelementptr i8, ptr %m, i64 24
    %d = load ptr, ptr %f
    store double %x, ptr %d                                       store double %x, ptr %m
    call void @release(ptr %m)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import field
from functools import partial
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.cfg import ControlFlow, control_flow, remove_unreachable_blocks
from irad.ir.dominance import DominatorTree, dominators
from irad.ir.instructions import (
    Binary,
    Call,
    Cast,
    CondBr,
    Freeze,
    GetElementPtr,
    ICmp,
    Instruction,
    Load,
    Phi,
    Select,
    replace_uses,
)
from irad.ir.loops import Loop, LoopNest, loop_nest
from irad.ir.module import Function, Module
from irad.ir.trip_count import constant_offset, trip_count
from irad.ir.values import ConstantInt, ConstantNull, Value, const_int
from irad.ir.worklist import Worklist
from irad.passes.convention import ReferenceCounts
from irad.passes.prepare.local_arrays import Owner, find_owners
from irad.passes.subscripts.dimensions import drop_dimensions
from irad.records import dataclass

# Known places: after which loops are unrolled all addresses are constant offsets, so that memory becomes values.
#
# Input   the loops of a function, and addresses that are computed from that of one piece of memory.
# Output  `Unrolling.needed`: the loops to unroll, so that each would be at a constant offset; None if that is not
#         enough. `mark` asks LLVM for those that `choose` took.
# Method  an index is traced to constants and to the variables that its loops count, whose numbers of iterations must be
#         known. Loops that no index asks for are left alone.
# Limit   the code that unrolling makes of a nest, and of a function: `_LARGEST_NEST`, `_LARGEST_GROWTH` instructions.

_LARGEST_NEST: Final = 1_000
_LARGEST_GROWTH: Final = 4_000
_FULL: Final = '!{!"llvm.loop.unroll.full"}'


@dataclass(eq=False, slots=True)
class Unrolling:
    """Loops of a function that are to be unrolled.

    Attributes:
        loops, cfg, dominators: of the function.
        chosen: the loops, so far.
    """

    loops: LoopNest
    cfg: ControlFlow
    dominators: DominatorTree
    chosen: dict[Loop, None] = field(default_factory=dict)
    _counts: dict[Loop, int | None] = field(default_factory=dict, repr=False)

    def choose(self, needed: Iterable[dict[Loop, None]]) -> None:
        """Chooses the loops that each of several pieces of memory needs unrolled, or none of a nest that is too large.

        Half of a nest unrolled would make more code and leave its memory what it is.
        """
        pending = list(needed)
        while True:
            chosen = {loop: None for each in pending for loop in each}
            large = [loop for loop in chosen if self._size(loop, chosen) > _LARGEST_NEST]
            if not large and sum(map(partial(self._growth, chosen), self.loops.roots())) > _LARGEST_GROWTH:
                large = [max(self.loops.roots(), key=partial(self._growth, chosen))]
            if not large:
                self.chosen = chosen
                return
            pending = [each for each in pending if not any(one.contains(inner) for one in large for inner in each)]

    def needed(
        self, root: Instruction, addresses: Iterable[Instruction], lengths: Iterable[Value]
    ) -> dict[Loop, None] | None:
        """The loops after whose unrolling offsets from a root are known; None if they are not, or lengths vary."""
        if not all(isinstance(length, ConstantInt) for length in lengths):
            return None
        indices = list[Value]()
        for address in addresses:
            match address:
                case GetElementPtr():
                    indices += address.operands[1:]
                case Phi() if address is root:
                    pass
                case Phi():
                    indices.append(address)
                case Load() | Freeze():
                    pass
                case _:
                    return None
        return self._loops_behind(indices, set(addresses))

    def most_runs(self, places: Iterable[Instruction], start: Instruction) -> float:
        """The most times that some instructions run, all together, from one time that another runs to the next."""
        return sum(self._most_runs(place, start) for place in places)

    def _most_runs(self, place: Instruction, start: Instruction) -> float:
        assert place.block is not None
        assert start.block is not None
        loop, runs = self.loops.loop_of(place.block), 1.0
        while loop is not None and not loop.contains(start.block):
            runs *= self._iterations(loop) or math.inf
            loop = loop.parent
        return runs

    def mark(self) -> None:
        """Asks LLVM to unroll the chosen loops."""
        module = self.cfg.function.module
        assert module is not None
        for loop in self.chosen:
            assert loop.latch is not None
            loop.latch.terminator.metadata["llvm.loop"] = module.loop_mark(_FULL)

    def _loops_behind(self, indices: Iterable[Value], addresses: set[Instruction]) -> dict[Loop, None] | None:
        """The loops whose variables some values are computed from; None if they depend on anything else."""
        found: dict[Loop, None] = {}
        values = Worklist(indices)
        for value in values:
            match value:
                case ConstantInt():
                    pass
                case Phi() if len(value.operands) > 1:
                    assert value.block is not None
                    loop = self.loops.loop_of(value.block)
                    if loop is None or loop.header is not value.block or self._iterations(loop) is None:
                        return None
                    found[loop] = None
                    values.add(*(each for each in value.operands if each not in addresses))
                case Phi() | Binary() | Cast() | ICmp() | Select() | Freeze():
                    values.add(*(each for each in value.operands if each not in addresses))
                case Call() if (value.callee.name or "").startswith(("llvm.smax.", "llvm.smin.", "llvm.abs.")):
                    values.add(*value.arguments)
                case _:
                    return None
        return found

    def _iterations(self, loop: Loop) -> int | None:
        """The most times that a loop runs, if known."""
        if loop not in self._counts:
            self._counts[loop] = self._counted(loop)
        return self._counts[loop]

    def _counted(self, loop: Loop) -> int | None:
        found = trip_count(loop, self.cfg, self.dominators)
        if found is None and self._ends_after_two(loop):
            return 2
        if found is None or not (isinstance(found.start, ConstantInt) and isinstance(found.bound, ConstantInt)):
            return None
        assert loop.preheader is not None
        count = found.emit(Builder.before(loop.preheader.terminator))
        return count.value + 1 if isinstance(count, ConstantInt) else None

    def _ends_after_two(self, loop: Loop) -> bool:
        """True if a loop leaves by a flag that its first iteration sets: LLVM makes one of a counter that ends at 2."""
        if loop.preheader is None or loop.latch is None:
            return False
        for exiting, target in loop.exits:
            match exiting.terminator:
                case CondBr(operands=[Phi() as flag, *_]) as branch if flag.block is loop.header:
                    last = flag.value_from(loop.latch)
                    leaves = isinstance(last, ConstantInt) and branch.targets[0 if last.value else 1] is target
                    if leaves and self.dominators.dominates(exiting, loop.latch):
                        return True
                case _:
                    pass
        return False

    def _growth(self, chosen: dict[Loop, None], loop: Loop) -> int:
        """Number of instructions that unrolling adds to a loop."""
        return self._size(loop, chosen) - self._size(loop, {})

    def _size(self, loop: Loop, unrolled: dict[Loop, None]) -> int:
        """The instructions of a loop."""
        inner = sum(self._size(child, unrolled) for child in loop.children)
        own = sum(len(block.instructions) for block in loop.order if self.loops.loop_of(block) is loop)
        return (own + inner) * ((self._iterations(loop) or 1) if loop in unrolled else 1)


LARGEST: Final = 512
"""Bytes of an array, 8 by 8 doubles: larger arrays have too many elements to become values."""

_LARGEST_FRAME: Final = 8 * LARGEST
_MOST_READS: Final = 32  # of each element, on average: a product of two matrices of 8 by 8 reads each 16 times
_ELEMENT: Final = 8  # bytes
_ALIGNMENT: Final = 64  # at least what the host gives


def promote_small_arrays(module: Module, host: ReferenceCounts) -> bool:
    """Rewrites all functions of a module; returns whether anything changed."""
    drop_dimensions(module, LARGEST // _ELEMENT)
    changed = [_promote_in(function, host) for function in module.defined_functions()]
    return any(changed)


def _promote_in(function: Function, host: ReferenceCounts) -> bool:
    if not _small_allocations(function, host):
        return False
    remove_unreachable_blocks(function)
    cfg = control_flow(function)
    dominator_tree = dominators(cfg)
    unrolling = Unrolling(loop_nest(cfg, dominator_tree), cfg, dominator_tree)
    # Looked for once more, since calls in unreachable blocks are gone.
    promoted = _chosen(find_owners(_small_allocations(function, host), cfg, host), unrolling)
    if not promoted:
        return False
    unrolling.mark()
    for inst in function.instructions():
        inst.debug_records = ()  # they name what goes away
    variables = _Variables(function)
    for owner in promoted:
        variables.replace(owner)
    return True


def _small_allocations(function: Function, host: ReferenceCounts) -> dict[Call, int]:
    """The calls that allocate few bytes, and how many."""
    return {
        inst: inst.arguments[0].value
        for inst in function.instructions()
        if isinstance(inst, Call)
        and inst.callee.name in host.plain
        and isinstance(inst.arguments[0], ConstantInt)
        and 0 < inst.arguments[0].value <= LARGEST
    }


def _chosen(groups: list[tuple[Owner, ...]], unrolling: Unrolling) -> list[Owner]:
    """The owners that become variables: those that become values then, and others where that costs less."""
    groups = [group for group in groups if has_elements(group)]
    needed = {group: [unrolling.needed(each.root, each.addresses, each.lengths) for each in group] for group in groups}
    loops = {group: {loop: None for one in several for loop in one or ()} for group, several in needed.items()}
    settled = [group for group, several in needed.items() if None not in several]
    unrolling.choose(loops[group] for group in settled)
    chosen, frame = list[Owner](), 0
    for group in groups:
        is_settled = group in settled and loops[group].keys() <= unrolling.chosen.keys()
        size = sum(owner.size for owner in group)
        # An array that changes hands and stays in memory would be copied whole each time.
        if frame + size <= _LARGEST_FRAME and (is_settled or (len(group) == 1 and _is_read_little(*group, unrolling))):
            frame += size
            chosen += group
    return chosen


def has_elements(group: tuple[Owner, ...]) -> bool:
    """True if arrays hold numbers of one type, side by side, and can be copied one by one.

    Of numbers that overlap, and of bytes that are copied together, LLVM would make integers.
    """
    kinds = list(group[0].kinds)
    if len(kinds) > 1:
        return False
    offsets = [constant_offset(each) for owner in group for each in owner.addresses if isinstance(each, GetElementPtr)]
    if any(offset is not None and offset % types.size_of(kind) for kind in kinds for offset in offsets):
        return False
    copies = [call for owner in group for call in owner.copies]
    if len(group) == 1 and not copies:
        return True
    lengths = [call.arguments[2] for call in copies]
    if len(kinds) != 1 or not all(isinstance(length, ConstantInt) for length in lengths):
        return False
    sizes = [*(owner.size for owner in group), *(each.value for each in lengths if isinstance(each, ConstantInt))]
    return all(size % types.size_of(kinds[0]) == 0 for size in sizes)


def _is_read_little(owner: Owner, unrolling: Unrolling) -> bool:
    """True if an array that stays in memory may be a variable: its elements go on the tape each time they are read."""
    return unrolling.most_runs(owner.reads, owner.root) <= _MOST_READS * owner.size / _ELEMENT


class _Variables:
    """The variables of a function, and the code around them."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.known: dict[Owner, Value] = {}

    def replace(self, owner: Owner) -> None:
        """Puts a variable in place of an array."""
        for call in owner.copies:
            if call.block is not None:  # else the other array that takes part came first
                target, source, length, _ = call.arguments
                assert isinstance(length, ConstantInt)
                build = Builder.before(call)
                build.metadata = {"dbg": call.metadata["dbg"]} if "dbg" in call.metadata else {}
                _copy(build, target, source, length.value, owner)
                call.erase()
        if isinstance(owner.root, Phi):
            self._replace_phi(owner, owner.root)
        else:
            self._replace_call(owner, owner.root)

    def _of(self, owner: Owner) -> Value:
        if owner not in self.known:
            self.known[owner] = new_variable(self.function, owner.size, owner.root.name)
        return self.known[owner]

    def _replace_call(self, owner: Owner, call: Call) -> None:
        variable, size = self._of(owner), const_int(types.I64, owner.size)
        build = Builder.before(call)
        build.metadata = call.metadata
        clear(build, variable, owner.size)
        for check in owner.checks:
            replace_uses(check, const_int(types.I1, check.predicate == "ne"))
            check.erase()
        for load in owner.fields:
            replace_uses(load, variable if load.type is types.PTR else size)
            load.erase()
        for user in list(call.users):
            if isinstance(user, GetElementPtr | Call):
                user.erase()
        replace_uses(call, ConstantNull(types.PTR))  # in phis, of which references are counted: to null none are
        call.erase()

    def _replace_phi(self, owner: Owner, phi: Phi) -> None:
        assert phi.block is not None
        variable, waiting = self._of(owner), new_variable(self.function, owner.size)
        for block, source in owner.sources.items():
            build = Builder.before(block.terminator)
            if source is None:
                clear(build, waiting, owner.size)
            else:
                _copy(build, waiting, self._of(source), source.size, owner)
        _copy(Builder.at_start(phi.block), variable, waiting, owner.size, owner)
        replace_uses(phi, variable)
        phi.erase()


def new_variable(function: Function, size: int, name: str | None = None) -> Value:
    """Memory of a function for the elements of an array."""
    type_ = types.array_type(size, types.I8)
    return Builder.before(function.entry.instructions[0]).alloca(type_, align=_ALIGNMENT, name=name)


def clear(build: Builder, place: Value, size: int) -> None:
    """Emits the clearing of an array."""
    values = [place, const_int(types.I8, 0), const_int(types.I64, size), const_int(types.I1, 0)]
    kind = types.function_type(types.VOID, [each.type for each in values])
    build.call(build.module.declare("llvm.memset.p0.i64", kind), values)


def _copy(build: Builder, place: Value, source: Value, size: int, owner: Owner) -> None:
    """Copies an array, element by element; where they overlap, too."""
    (kind,) = owner.kinds
    offsets = range(0, size, types.size_of(kind))
    elements = [build.load(kind, build.byte_offset(source, offset), align=1) for offset in offsets]
    for element, offset in zip(elements, offsets, strict=True):
        build.store(element, build.byte_offset(place, offset), align=1)
