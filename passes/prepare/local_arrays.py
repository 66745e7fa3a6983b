"""Ownership of local arrays: which pointers point into which array of the function, and which phis take one over.

Input   calls that allocate.
Output  a `Owner` for each of them, and for each phi by which a variable of the program gets another array: what an
        iteration made and the next one reads, or two arrays that are swapped. Where one of the pointers is used for
        more than to read, write, clear, copy, compare and count, or may point elsewhere as well, there is none.
Method  an address is traced to its root: the call, or a phi whose inputs have different roots. A phi takes over what
        comes in: of the memory that was there, no other pointer is used any more, so that its contents may move into
        memory of the phi's own. Where that is not certain there is no owner, nor for what it may get or give.
Limit   only whole arrays change hands, no views; selects choose between addresses in one array.

    %before = phi ptr [ %d0, %entry ], [ %d1, %latch ]       root of %before, and of what is computed from it: itself
    %p = getelementptr i8, ptr %d1, i64 8                    root of %p: the call that made %d1
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from typing import Final

from irad.ir import types
from irad.ir.cfg import ControlFlow
from irad.ir.instructions import (
    Call,
    Freeze,
    GetElementPtr,
    ICmp,
    Instruction,
    Load,
    Phi,
    Select,
    Store,
)
from irad.ir.module import Block, Function
from irad.ir.trip_count import constant_offset
from irad.ir.types import Type
from irad.ir.values import ConstantInt, ConstantNull, Poison, Undef, Value
from irad.ir.worklist import Worklist
from irad.passes.convention import ReferenceCounts
from irad.records import dataclass

_CLEARS: Final = "llvm.memset.p0."
BULK: Final = (_CLEARS, "llvm.memcpy.p0.p0.", "llvm.memmove.p0.p0.")
"""Beginnings of the names of the functions that clear or copy bytes."""


@dataclass(eq=False, slots=True)
class Owner:
    """An array that a variable of the program refers to.

    Attributes:
        root: the call that makes it, or the phi that takes it over.
        size: its bytes, at most.
        checks: comparisons of its header with null.
        fields: loads from its header.
        addresses: values computed from the address of its data, including loads of the address and the phi.
        lengths: numbers of bytes cleared or copied at a time.
        copies: from there or to there, as a whole.
        reads: all that reads the data.
        kinds: the types that are loaded and stored there, or where its array may be otherwise.
        sources: of a phi, whose array it takes over from a block; None where there is none.
    """

    root: Call | Phi
    size: int
    checks: list[ICmp] = field(default_factory=list)
    fields: list[Load] = field(default_factory=list)
    addresses: dict[Instruction, None] = field(default_factory=dict)
    lengths: list[Value] = field(default_factory=list)
    copies: list[Call] = field(default_factory=list)
    reads: list[Instruction] = field(default_factory=list)
    kinds: dict[Type, None] = field(default_factory=dict)
    sources: dict[Block, Owner | None] = field(default_factory=dict)


def find_owners(sizes: Mapping[Call, int], cfg: ControlFlow, host: ReferenceCounts) -> list[tuple[Owner, ...]]:
    """The owners of the arrays that calls make, those together that arrays may pass between."""
    made = [owner for call, size in sizes.items() if (owner := _from_header(call, size, host)) is not None]
    addresses, misused = _addresses(made)
    order = {block: [i for i in block.instructions if i in addresses] for block in cfg.order}
    roots = _roots(made, [inst for found in order.values() for inst in found])
    owners: dict[Instruction, Owner] = {owner.root: owner for owner in made}
    owners |= {inst: Owner(inst, 0) for inst in addresses if isinstance(inst, Phi) and roots.get(inst) is inst}
    for inst in addresses:
        if (root := roots.get(inst)) is not None:
            _add_uses(owners[root], inst)
    groups = _Groups(owners, roots)
    for inst in addresses:
        if inst in misused or roots.get(inst) is None:
            groups.reject(*(roots.get(each) for each in (inst, *inst.operands) if isinstance(each, Instruction)))
    for owner in owners.values():
        groups.connect(owner)
        groups.connect_copies(owner)
        if _outlives(owner, cfg):
            groups.reject(owner.root)
    return groups.left()


def allocated_by(data: Value, host: ReferenceCounts) -> Call | None:
    """The call that allocated what a pointer points to, where it is the address of the data as the header has it."""
    match data:
        case Load(operands=[GetElementPtr(operands=[Call() as call, *_]) as field]):
            is_data = call.callee.name in host.plain and constant_offset(field) == host.data
            return call if is_data else None
        case _:
            return None


# --- the header -------------------------------------------------------------------------------------------------------


def _from_header(call: Call, size: int, host: ReferenceCounts) -> Owner | None:
    """Owner that is read from the header of an array; None if it is used in an unsupported way."""
    owner = Owner(call, size)
    headers = Worklist[Instruction]([call])
    for header in headers:
        for user in header.users:
            match user:
                case Phi() | Select():
                    headers.add(user)
                case Call() if _counts(user, host):
                    pass
                case ICmp(predicate="eq" | "ne") if header is call and _is_with_null(user):
                    owner.checks.append(user)
                case GetElementPtr() if header is call and _reads_field(user, host):
                    owner.fields.extend(load for load in user.users if isinstance(load, Load))
                case _:
                    return None
    return owner


def _counts(call: Call, host: ReferenceCounts) -> bool:
    return isinstance(call.callee, Function) and call.callee.name in (host.takes, host.drops)


def _is_with_null(compare: ICmp) -> bool:
    return any(isinstance(each, ConstantNull) for each in compare.operands)


def _reads_field(address: GetElementPtr, host: ReferenceCounts) -> bool:
    offset = constant_offset(address)
    kind = {host.data: types.PTR, host.size: types.I64}.get(-1 if offset is None else offset)
    return all(isinstance(user, Load) and user.is_plain and user.type is kind for user in address.users)


# --- the data ---------------------------------------------------------------------------------------------------------


def _addresses(owners: Iterable[Owner]) -> tuple[dict[Instruction, None], set[Instruction]]:
    """Values computed from the addresses of data, and those that are used for more than they may be."""
    found = Worklist[Instruction](load for owner in owners for load in owner.fields if load.type is types.PTR)
    misused = set[Instruction]()
    for address in found:
        for user in address.users:
            match user:
                case GetElementPtr() | Freeze() | Phi() | Select():
                    found.add(user)
                case Load() if user.is_plain:
                    pass
                case Store(volatile=False, ordering=None, operands=[value, _]) if value is not address:
                    pass
                case ICmp():
                    pass
                case Call() if _is_bulk(user):
                    pass
                case _:
                    misused.add(address)
    return found.seen, misused


def _is_bulk(call: Call) -> bool:
    """True if a call clears or copies memory."""
    if not (isinstance(call.callee, Function) and (call.callee.name or "").startswith(BULK)):
        return False
    volatile = call.arguments[3]
    return isinstance(volatile, ConstantInt) and volatile.value == 0


def _add_uses(owner: Owner, address: Instruction) -> None:
    owner.addresses[address] = None
    for user in address.users:
        match user:
            case Load():
                owner.reads.append(user)
                owner.kinds[user.type] = None
            case Store(operands=[value, _]):
                owner.kinds[value.type] = None
            case Call() if _is_bulk(user):
                owner.lengths.append(user.arguments[2])
                if not str(user.callee.name).startswith(_CLEARS):
                    owner.reads.append(user)
                    owner.copies.append(user)
            case _:
                pass


def _roots(owners: Iterable[Owner], addresses: list[Instruction]) -> dict[Instruction, Call | Phi | None]:
    """The root of each address; None if it may point to different arrays, or elsewhere."""
    first: dict[Instruction, Call | Phi | None] = {
        load: owner.root for owner in owners for load in owner.fields if load.type is types.PTR
    }
    inside = set(addresses)
    while True:  # each time one more phi is a root
        roots = dict(first)
        joining = _spread(roots, addresses, inside)
        if joining is None:
            return roots
        first[joining] = joining


def _spread(
    roots: dict[Instruction, Call | Phi | None], addresses: list[Instruction], inside: set[Instruction]
) -> Phi | None:
    """Traces addresses to roots, until one is found that different roots meet in."""
    changed = True
    while changed:
        changed = False
        for inst in addresses:
            if roots.get(inst, inst) is None or roots.get(inst) is inst or isinstance(inst, Load):
                continue
            came = _pointers_of(inst)
            known = {roots[each]: None for each in came if isinstance(each, Instruction) and each in roots}
            if not all(isinstance(each, Instruction) and each in inside for each in came) or None in known:
                root = None
            elif len(known) > 1:
                if isinstance(inst, Phi):
                    return inst
                root = None
            elif known:
                root = next(iter(known))
            else:
                continue
            if inst not in roots or roots[inst] is not root:
                roots[inst], changed = root, True
    return None


def _pointers_of(inst: Instruction) -> list[Value]:
    """The pointers that an address is made of; not those that point nowhere."""
    operands = inst.operands[1:] if isinstance(inst, Select) else inst.operands
    operands = operands[:1] if isinstance(inst, GetElementPtr) else operands
    return [each for each in operands if not isinstance(each, ConstantNull | Undef | Poison) and each is not inst]


# --- what has no owner ------------------------------------------------------------------------------------------------


@dataclass(eq=False, slots=True)
class _Groups:
    """Owners between which arrays pass, and roots that own none."""

    owners: dict[Instruction, Owner]
    roots: dict[Instruction, Call | Phi | None]
    rejected: dict[Owner, None] = field(default_factory=dict)
    links: dict[Owner, list[Owner]] = field(default_factory=dict)

    def reject(self, *roots: Instruction | None) -> None:
        """Gives up the owner of arrays with these roots."""
        self.rejected.update(dict.fromkeys(self.owners[root] for root in roots if root is not None))

    def connect(self, owner: Owner) -> None:
        """Notes whose arrays a phi takes over."""
        if not isinstance(owner.root, Phi):
            return
        phi, block = owner.root, owner.root.block
        assert block is not None
        for value, origin in phi.incoming():
            if isinstance(value, ConstantNull | Undef | Poison):
                owner.sources[origin] = None
                continue
            root = self._root(value)
            is_whole = root is not None and (value is root or isinstance(value, Load))
            if root is None or not is_whole:
                self.reject(phi, root)
                continue
            source = self.owners[root]
            owner.sources[origin] = source
            self._link(owner, source)
            others = (each for each in block.phis() if each is not phi and self.roots.get(each) is each)
            # Two phis would take over one array, and what is written by one name would be missing under the other.
            if any(self._root(each.value_from(origin)) is root for each in others):
                self.reject(phi)

    def connect_copies(self, owner: Owner) -> None:
        """Records the arrays that one is copied from or to; what is copied elsewhere may be read there as anything."""
        for call in owner.copies:
            target, source = map(self._root, call.arguments[:2])
            if target is None:
                self.reject(owner.root)
            else:
                self._link(owner, self.owners[target])
            if source is not None:
                self._link(owner, self.owners[source])

    def _link(self, one: Owner, other: Owner) -> None:
        self.links.setdefault(one, []).append(other)
        self.links.setdefault(other, []).append(one)

    def _root(self, value: Value) -> Call | Phi | None:
        return self.roots.get(value) if isinstance(value, Instruction) else None

    def left(self) -> list[tuple[Owner, ...]]:
        """The groups in which each owner is one."""
        found, seen = list[tuple[Owner, ...]](), set[Owner]()
        for owner in self.owners.values():
            if owner not in seen:
                group = Worklist([owner])
                for each in group:
                    group.add(*self.links.get(each, ()))
                seen.update(group.seen)
                if not any(each in self.rejected for each in group.seen):
                    found.append(_sized(tuple(group.seen)))
        return found


def _sized(group: tuple[Owner, ...]) -> tuple[Owner, ...]:
    """The owners, with facts about all of them: the size of the largest array is that of the phis."""
    largest = max(owner.size for owner in group)
    kinds = {kind: None for owner in group for kind in owner.kinds}
    for owner in group:
        owner.size, owner.kinds = owner.size or largest, kinds
    return group


def _outlives(owner: Owner, cfg: ControlFlow) -> bool:
    """True if a pointer to an array may be used after its owner has got another one, or after a phi has taken it over.

    Addresses that are not phis, nor made of any, belong to the array that the owner got last: each is computed after
    the root on every way to its use.
    """
    root = owner.root
    assert root.block is not None
    if isinstance(root, Call):
        is_simple = not any(isinstance(each, Phi) for each in owner.addresses)
        return not is_simple and any(_is_live_at(each, root, cfg) for each in owner.addresses)
    block = root.block
    if any(block in _live_in(each, cfg) for each in owner.addresses if each is not root):
        return True
    for source in {each for each in owner.sources.values() if each is not None and each is not owner}:
        if any(block in _live_in(each, cfg) for each in source.addresses):
            return True
        if isinstance(source.root, Call) and block in _live_in_header(source, cfg):
            return True
    return False


def _live_in_header(owner: Owner, cfg: ControlFlow) -> set[Block]:
    """The blocks at whose start the header may yet be asked for the address of the data."""
    found = set[Block]()
    for load in owner.fields:
        address = load.operands[0]
        assert isinstance(address, Instruction)
        found |= _live_in(address, cfg)
        found |= _live_in(owner.root, cfg, users=[address])
    return found


def _live_in(value: Instruction, cfg: ControlFlow, users: Iterable[Instruction] | None = None) -> set[Block]:
    """The blocks at whose start a value may yet be used, other than by the phis there."""
    assert value.block is not None
    pending = Worklist[Block]()
    for user in value.users if users is None else users:
        assert user.block is not None
        if isinstance(user, Phi):
            pending.add(*(block for each, block in user.incoming() if each is value))
        else:
            pending.add(user.block)
    found = set[Block]()
    for block in pending:
        if block is not value.block:
            found.add(block)
            pending.add(*cfg.predecessors[block])
    return found


def _is_live_at(value: Instruction, place: Instruction, cfg: ControlFlow) -> bool:
    """True if a value that was computed before a place may be used after it, without being recomputed."""
    defined_in, block = value.block, place.block
    assert defined_in is not None
    assert block is not None
    position = block.instructions.index(place)
    if defined_in is block and block.instructions.index(value) > position:
        return False
    if any(user in value.users and not isinstance(user, Phi) for user in block.instructions[position:]):
        return True
    return any(block in used for used in _blocks_left_with(value, cfg))


def _blocks_left_with(value: Instruction, cfg: ControlFlow) -> Iterator[tuple[Block, ...]]:
    """The blocks at whose end a value may yet be used."""
    yield tuple(predecessor for block in _live_in(value, cfg) for predecessor in cfg.predecessors[block])
    yield tuple(b for user in value.users if isinstance(user, Phi) for each, b in user.incoming() if each is value)
