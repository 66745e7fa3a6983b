"""Stack promotion: small arrays that never leave a function become local variables, and those become values.

Input   the functions of a module, inlined and simplified, with the calls that allocate in them.
Output  whether any was rewritten: an allocation of few bytes, of a number that is known, is a variable in the entry
        block, its reference counts and the check whether it failed are gone, and the loops that its elements are
        indexed by are marked to be unrolled. LLVM's pipeline, which has to follow, makes values of the elements.
Method  the pointers into an array are all known, and no memory holds one (`array_homes`). One variable stands for all
        arrays that the same call makes, one after the other. It is cleared there, so that an element that was not set
        is a zero and not what the iteration before left behind. A phi that arrays change hands by has a variable, too,
        into which they are copied; and one that the copies wait in, since phis of a block choose at the same time.
Why     an array in memory has a shadow, what is overwritten in it goes on the tape, and each element keeps its
        instructions in order. A value costs what a scalar of the program costs.
Limit   where the place of an element is not known after unrolling (`known_places`), the array stays in memory: as a
        variable if it is not read too often, and does not change hands; else as it was.

    %m = call ptr @allocate(i64 24, i32 32)                       %m = alloca [24 x i8], align 64       (in the entry)
    %failed = icmp eq ptr %m, null                                call void @llvm.memset.p0.i64(ptr %m, i8 0, i64 24, …)
    %f = getelementptr i8, ptr %m, i64 24
    %d = load ptr, ptr %f
    store double %x, ptr %d                                       store double %x, ptr %m
    call void @release(ptr %m)
"""

from __future__ import annotations

from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.cfg import control_flow, remove_unreachable_blocks
from irad.ir.dominance import dominators
from irad.ir.instructions import Call, GetElementPtr, Phi, replace_uses
from irad.ir.loops import loop_nest
from irad.ir.module import Function, Module
from irad.ir.trip_count import constant_offset
from irad.ir.values import ConstantInt, ConstantNull, Value, const_int
from irad.passes.convention import ReferenceCounts
from irad.passes.prepare.array_homes import Home, find_homes
from irad.passes.prepare.dimensions import drop_dimensions
from irad.passes.prepare.known_places import Unrolling

LARGEST: Final = 512
"""Bytes of an array, 8 by 8 doubles: what is larger has too many elements to be values."""

_LARGEST_FRAME: Final = 8 * LARGEST
_MOST_READS: Final = 32  # of each element, on average: a product of two matrices of 8 by 8 reads each 16 times
_ELEMENT: Final = 8  # bytes
_ALIGNMENT: Final = 64  # at least what the host gives


def promote_small_arrays(module: Module, host: ReferenceCounts) -> bool:
    """Rewrites all functions of a module; whether there was anything to do."""
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
    promoted = _chosen(find_homes(_small_allocations(function, host), cfg, host), unrolling)
    if not promoted:
        return False
    unrolling.mark()
    for inst in function.instructions():
        inst.debug_records = ()  # they name what goes away
    variables = _Variables(function)
    for home in promoted:
        variables.replace(home)
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


def _chosen(groups: list[tuple[Home, ...]], unrolling: Unrolling) -> list[Home]:
    """The homes that become variables: those that become values then, and others where that costs less."""
    groups = [group for group in groups if has_elements(group)]
    needed = {group: [unrolling.needed(home.root, home.addresses, home.lengths) for home in group] for group in groups}
    loops = {group: {loop: None for one in several for loop in one or ()} for group, several in needed.items()}
    settled = [group for group, several in needed.items() if None not in several]
    unrolling.choose(loops[group] for group in settled)
    chosen, frame = list[Home](), 0
    for group in groups:
        is_settled = group in settled and loops[group].keys() <= unrolling.chosen.keys()
        size = sum(home.size for home in group)
        if frame + size <= _LARGEST_FRAME and (is_settled or (len(group) == 1 and _is_read_little(*group, unrolling))):
            frame += size
            chosen += group
    return chosen


def has_elements(group: tuple[Home, ...]) -> bool:
    """Whether arrays hold numbers of one type, side by side, and can be copied one by one.

    Of numbers that overlap, and of bytes that are copied together, LLVM would make integers.
    """
    kinds = list(group[0].kinds)
    if len(kinds) > 1:
        return False
    offsets = [constant_offset(each) for home in group for each in home.addresses if isinstance(each, GetElementPtr)]
    if any(offset is not None and offset % types.size_of(kind) for kind in kinds for offset in offsets):
        return False
    copies = [call for home in group for call in home.copies]
    if len(group) == 1 and not copies:
        return True
    lengths = [call.arguments[2] for call in copies]
    if len(kinds) != 1 or not all(isinstance(length, ConstantInt) for length in lengths):
        return False
    sizes = [*(home.size for home in group), *(each.value for each in lengths if isinstance(each, ConstantInt))]
    return all(size % types.size_of(kinds[0]) == 0 for size in sizes)


def _is_read_little(home: Home, unrolling: Unrolling) -> bool:
    """Whether an array that stays in memory may be a variable: its elements go on the tape each time they are read."""
    return unrolling.most_runs(home.reads, home.root) <= _MOST_READS * home.size / _ELEMENT


class _Variables:
    """The variables of a function, and the code around them."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.known: dict[Home, Value] = {}

    def replace(self, home: Home) -> None:
        """Puts a variable in place of an array."""
        for call in home.copies:
            if call.block is not None:  # else the other array that takes part came first
                target, source, length, _ = call.arguments
                assert isinstance(length, ConstantInt)
                build = Builder.before(call)
                build.metadata = {"dbg": call.metadata["dbg"]} if "dbg" in call.metadata else {}
                _copy(build, target, source, length.value, home)
                call.erase()
        if isinstance(home.root, Phi):
            self._replace_phi(home, home.root)
        else:
            self._replace_call(home, home.root)

    def _of(self, home: Home) -> Value:
        if home not in self.known:
            self.known[home] = new_variable(self.function, home.size, home.root.name)
        return self.known[home]

    def _replace_call(self, home: Home, call: Call) -> None:
        variable, size = self._of(home), const_int(types.I64, home.size)
        build = Builder.before(call)
        build.metadata = call.metadata
        clear(build, variable, home.size)
        for check in home.checks:
            replace_uses(check, const_int(types.I1, check.predicate == "ne"))
            check.erase()
        for load in home.fields:
            replace_uses(load, variable if load.type is types.PTR else size)
            load.erase()
        for user in list(call.users):
            if isinstance(user, GetElementPtr | Call):
                user.erase()
        replace_uses(call, ConstantNull(types.PTR))  # in phis, of which references are counted: to null none are
        call.erase()

    def _replace_phi(self, home: Home, phi: Phi) -> None:
        assert phi.block is not None
        variable, waiting = self._of(home), new_variable(self.function, home.size)
        for block, source in home.sources.items():
            build = Builder.before(block.terminator)
            if source is None:
                clear(build, waiting, home.size)
            else:
                _copy(build, waiting, self._of(source), source.size, home)
        _copy(Builder.at_start(phi.block), variable, waiting, home.size, home)
        replace_uses(phi, variable)
        phi.erase()


def new_variable(function: Function, size: int, name: str | None = None) -> Value:
    """Memory of a function for the elements of an array."""
    type_ = types.array_type(size, types.I8)
    return Builder.before(function.entry.instructions[0]).alloca(type_, align=_ALIGNMENT, name=name)


def clear(build: Builder, place: Value, size: int) -> None:
    """Clears memory."""
    values = [place, const_int(types.I8, 0), const_int(types.I64, size), const_int(types.I1, 0)]
    kind = types.function_type(types.VOID, [each.type for each in values])
    build.call(build.module.declare("llvm.memset.p0.i64", kind), values)


def _copy(build: Builder, place: Value, source: Value, size: int, home: Home) -> None:
    """Copies an array, element by element; where they overlap, too."""
    (kind,) = home.kinds
    offsets = range(0, size, types.size_of(kind))
    elements = [build.load(kind, build.byte_offset(source, offset), align=1) for offset in offsets]
    for element, offset in zip(elements, offsets, strict=True):
        build.store(element, build.byte_offset(place, offset), align=1)
