"""The closed set of instruction shapes.

Passes dispatch with ``match`` over these classes. Operands change only through `set_operand`, `set_operands` and
`replace_uses`, which keep ``users`` right. Blocks are not operands: terminators hold them in ``targets`` and phis in
``blocks`` (parallel to their operands), so the CFG is read off terminators alone.

Conventions for ``operands``:
    Binary a, b · Unary a · Cast a · ICmp/FCmp a, b · Select cond, a, b · Phi incoming values · Load ptr
    Store value, ptr · GetElementPtr base, indices… · Alloca [count]
    Call/Invoke/CallBr args…, bundle operands…, callee (last)
    Ret [value] · Br none · CondBr cond · Switch value, case constants… · IndirectBr address · Resume value
    ExtractValue agg · InsertValue agg, value · ExtractElement vec, index · InsertElement vec, value, index
    ShuffleVector a, b, mask · AtomicRMW ptr, value · CmpXchg ptr, cmp, new · Fence none · Freeze a · VAArg list
    LandingPad clause constants… · the pads of Windows exceptions: operands as printed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias, assert_never, cast

from irad.ir import types
from irad.ir.types import Type
from irad.ir.values import TrackedValue, Value
from irad.records import dataclass

if TYPE_CHECKING:
    from irad.ir.module import Block

Metadata: TypeAlias = dict[str, str]  # kind → node as printed: {"dbg": "!12", "prof": "!3"}


@dataclass(eq=False, slots=True)
class Instruction(TrackedValue):
    """Base of all instructions.

    Attributes:
        operands: see the module's docstring for the order; read only, change with `set_operand`.
        metadata: attachments, kind → printed node (`!12`, or inline `!DIExpression(…)`).
        block: the block that holds it, None while detached.
        origin: the instruction this one was cloned from or made for (chains end in the primal).
        debug_records: `#dbg_value(…)` lines printed just before it, without indentation.
        targets: the successors of a terminator, in printed order, with repeats; empty for all else.
    """

    operands: list[Value] = field(default_factory=list, repr=False)
    metadata: Metadata = field(default_factory=dict, repr=False)
    block: Block | None = field(default=None, repr=False)
    origin: Instruction | None = field(default=None, repr=False)
    debug_records: tuple[str, ...] = field(default=(), repr=False)
    targets: list[Block] = field(default_factory=list, repr=False)

    def __post_init__(self) -> None:
        for value in self.operands:
            _add_use(value, self)

    def set_operand(self, index: int, value: Value) -> None:
        """Replaces one operand."""
        _drop_use(self.operands[index], self)
        self.operands[index] = value
        _add_use(value, self)

    def set_operands(self, values: Sequence[Value]) -> None:
        """Replaces all operands."""
        for old in self.operands:
            _drop_use(old, self)
        self.operands = list(values)
        for new in self.operands:
            _add_use(new, self)

    def erase(self) -> None:
        """Takes the instruction out of its block and drops its operands. It must have no users left."""
        assert not self.users, f"{self!r} still has users"
        if self.block is not None:
            self.block.instructions.remove(self)
            self.block = None
        self.set_operands(())


def replace_uses(old: TrackedValue, new: Value) -> None:
    """Makes every user of ``old`` use ``new``."""
    for user in list(old.users):
        for index, value in enumerate(user.operands):
            if value is old:
                user.set_operand(index, new)


def replace_operand(user: Instruction, index: int, new: Value) -> None:
    """Replaces one operand; in a phi, that of all edges from the same block, which must agree."""
    same = [index]
    if isinstance(user, Phi):
        same = [other for other, source in enumerate(user.blocks) if source is user.blocks[index]]
    for other in same:
        user.set_operand(other, new)


def _add_use(value: Value, user: Instruction) -> None:
    if isinstance(value, TrackedValue):
        value.users[user] = value.users.get(user, 0) + 1


def _drop_use(value: Value, user: Instruction) -> None:
    if isinstance(value, TrackedValue):
        count = value.users[user]
        if count == 1:
            del value.users[user]
        else:
            value.users[user] = count - 1


# ------------------------------------------------------------------------------------------------ values


@dataclass(eq=False, slots=True)
class Binary(Instruction):
    """`%r = add nuw nsw i64 %a, %b`.

    Opcodes: add sub mul udiv sdiv urem srem shl lshr ashr and or xor fadd fsub fmul fdiv frem.
    ``flags``: nuw nsw exact disjoint, or fast-math words, as printed.
    """

    opcode: str = "add"
    flags: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class Unary(Instruction):
    """`%r = fneg double %a`."""

    opcode: str = "fneg"
    flags: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class Cast(Instruction):
    """`%r = sext i32 %a to i64`.

    Opcodes: trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint ptrtoaddr inttoptr bitcast
    addrspacecast.
    """

    opcode: str = "bitcast"
    flags: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class ICmp(Instruction):
    """`%r = icmp samesign slt i64 %a, %b`."""

    predicate: str = "eq"
    flags: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class FCmp(Instruction):
    """`%r = fcmp fast olt double %a, %b`."""

    predicate: str = "oeq"
    flags: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class Select(Instruction):
    """`%r = select i1 %c, T %a, T %b`."""

    flags: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class Phi(Instruction):
    """`%r = phi T [ %a, %x ], [ %b, %y ]`: operands are the incoming values, ``blocks`` where they come from."""

    blocks: list[Block] = field(default_factory=list, repr=False)
    flags: tuple[str, ...] = ()

    def incoming(self) -> list[tuple[Value, Block]]:
        """(value, predecessor) pairs."""
        return list(zip(self.operands, self.blocks, strict=True))

    def add_incoming(self, value: Value, block: Block) -> None:
        """Appends one pair."""
        self.operands.append(value)
        _add_use(value, self)
        self.blocks.append(block)

    def value_from(self, block: Block) -> Value:
        """The value that comes from ``block``."""
        return self.operands[self.blocks.index(block)]


@dataclass(eq=False, slots=True)
class Freeze(Instruction):
    """`%r = freeze T %a`."""


@dataclass(eq=False, slots=True)
class ExtractValue(Instruction):
    """`%r = extractvalue {…} %a, 0, 1`."""

    indices: tuple[int, ...] = ()


@dataclass(eq=False, slots=True)
class InsertValue(Instruction):
    """`%r = insertvalue {…} %a, T %v, 0, 1`."""

    indices: tuple[int, ...] = ()


@dataclass(eq=False, slots=True)
class ExtractElement(Instruction):
    """`%r = extractelement <4 x T> %v, i64 %i`."""


@dataclass(eq=False, slots=True)
class InsertElement(Instruction):
    """`%r = insertelement <4 x T> %v, T %a, i64 %i`."""


@dataclass(eq=False, slots=True)
class ShuffleVector(Instruction):
    """`%r = shufflevector <4 x T> %a, <4 x T> %b, <4 x i32> mask`."""


# ------------------------------------------------------------------------------------------------ memory


@dataclass(eq=False, slots=True)
class Alloca(Instruction):
    """`%p = alloca T, i64 n, align 8`: ``allocated_type``; an operand only when a count is printed.

    ``words``: `inalloca` / `swifterror` before the type.
    """

    allocated_type: Type = types.I8
    align: int | None = None
    words: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class Load(Instruction):
    """`%r = load [atomic] [volatile] T, ptr %p [syncscope("…")] [ordering], align n`."""

    align: int | None = None
    volatile: bool = False
    ordering: str | None = None
    syncscope: str | None = None

    @property
    def is_plain(self) -> bool:
        """True if it is neither volatile nor atomic."""
        return not self.volatile and self.ordering is None


@dataclass(eq=False, slots=True)
class Store(Instruction):
    """`store [atomic] [volatile] T %v, ptr %p [syncscope("…")] [ordering], align n`."""

    align: int | None = None
    volatile: bool = False
    ordering: str | None = None
    syncscope: str | None = None

    @property
    def is_plain(self) -> bool:
        """True if it is neither volatile nor atomic."""
        return not self.volatile and self.ordering is None


@dataclass(eq=False, slots=True)
class GetElementPtr(Instruction):
    """`%r = getelementptr inbounds nuw T, ptr %p, i64 %i, …`.

    ``source_type`` is T; ``flags`` as printed (`inrange(…)` included).
    """

    source_type: Type = types.I8
    flags: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class AtomicRMW(Instruction):
    """`%r = atomicrmw [volatile] fadd ptr %p, T %v [syncscope] ordering, align n`."""

    opcode: str = "add"
    ordering: str = "seq_cst"
    align: int | None = None
    volatile: bool = False
    syncscope: str | None = None


@dataclass(eq=False, slots=True)
class CmpXchg(Instruction):
    """`%r = cmpxchg [weak] [volatile] ptr %p, T %cmp, T %new [syncscope] success failure, align n`."""

    success: str = "seq_cst"
    failure: str = "seq_cst"
    weak: bool = False
    volatile: bool = False
    syncscope: str | None = None
    align: int | None = None


@dataclass(eq=False, slots=True)
class Fence(Instruction):
    """`fence [syncscope("…")] ordering`."""

    ordering: str = "seq_cst"
    syncscope: str | None = None


@dataclass(eq=False, slots=True)
class VAArg(Instruction):
    """`%r = va_arg ptr %list, T`."""


# ------------------------------------------------------------------------------------------------ calls


@dataclass(eq=False, slots=True)
class CallSite(Instruction):
    """Common part of `call`, `invoke` and `callbr`.

    The callee is the last operand, before it bundle operands, before them arguments.

    Attributes:
        function_type: the callee's type at the site.
        convention: `fastcc`, `cc 10`, … or None for C.
        result_attributes, attributes: of the result and of the call (`#4`, `nounwind`), as printed.
        argument_attributes: one tuple for each argument.
        bundles: (tag, number of operands) of each operand bundle, in order.
        flags: fast-math words.
        addrspace: of the callee, when printed.
    """

    function_type: types.FunctionType = field(default_factory=lambda: types.function_type(types.VOID, ()))
    convention: str | None = None
    result_attributes: tuple[str, ...] = ()
    argument_attributes: tuple[tuple[str, ...], ...] = ()
    attributes: tuple[str, ...] = ()
    bundles: tuple[tuple[str, int], ...] = ()
    flags: tuple[str, ...] = ()
    addrspace: int | None = None

    @property
    def callee(self) -> Value:
        """Callee: usually a `Function`."""
        return self.operands[-1]

    @property
    def arguments(self) -> list[Value]:
        """The actual arguments."""
        return self.operands[: len(self.operands) - 1 - sum(count for _, count in self.bundles)]


@dataclass(eq=False, slots=True)
class Call(CallSite):
    """`%r = [tail|musttail|notail] call …`."""

    tail: str | None = None


@dataclass(eq=False, slots=True)
class Terminator(Instruction):
    """Base of terminators that are not calls (`Invoke` and `CallBr` end a block too)."""


@dataclass(eq=False, slots=True)
class Invoke(CallSite):
    """`%r = invoke … to label %normal unwind label %lpad`: ``targets`` = [normal, unwind]."""


@dataclass(eq=False, slots=True)
class CallBr(CallSite):
    """`callbr … to label %fallthrough [label %a, …]`: ``targets`` = [fallthrough, indirect…]."""


# ------------------------------------------------------------------------------------------------ terminators


@dataclass(eq=False, slots=True)
class Ret(Terminator):
    """`ret void` (no operand) or `ret T %v`."""


@dataclass(eq=False, slots=True)
class Br(Terminator):
    """`br label %t`."""


@dataclass(eq=False, slots=True)
class CondBr(Terminator):
    """`br i1 %c, label %t, label %f`: ``targets`` = [true, false]."""


@dataclass(eq=False, slots=True)
class Switch(Terminator):
    """`switch T %v, label %default [ T c, label %b … ]`.

    ``targets`` = [default, case targets…], operands[1:] the case constants.
    """


@dataclass(eq=False, slots=True)
class IndirectBr(Terminator):
    """`indirectbr ptr %a, [label %x, …]`."""


@dataclass(eq=False, slots=True)
class Unreachable(Terminator):
    """`unreachable`."""


@dataclass(eq=False, slots=True)
class Resume(Terminator):
    """`resume T %v`."""


@dataclass(eq=False, slots=True)
class LandingPad(Instruction):
    """`%r = landingpad T [cleanup] [catch T v | filter T v] …`.

    ``clauses`` = the clause words, parallel to the operands.
    """

    cleanup: bool = False
    clauses: tuple[str, ...] = ()


@dataclass(eq=False, slots=True)
class ExceptionPad(Instruction):
    """`catchpad within %p [args]` and `cleanuppad within %p [args]`.

    Operands = [within, args…]; ``opcode`` the keyword.
    """

    opcode: str = "cleanuppad"


@dataclass(eq=False, slots=True)
class ExceptionTerminator(Terminator):
    """`catchswitch`, `catchret`, `cleanupret`: operands = [pad]; ``unwind_to_caller`` where printed so.

    catchswitch: ``targets`` = handlers…, then the unwind block if there is one.
    """

    opcode: str = "cleanupret"
    unwind_to_caller: bool = False


AnyInstruction: TypeAlias = (
    Binary | Unary | Cast | ICmp | FCmp | Select | Phi | Freeze | ExtractValue | InsertValue | ExtractElement
    | InsertElement | ShuffleVector | Alloca | Load | Store | GetElementPtr | AtomicRMW | CmpXchg | Fence | VAArg | Call
    | Invoke | CallBr | Ret | Br | CondBr | Switch | IndirectBr | Unreachable | Resume | LandingPad | ExceptionPad
    | ExceptionTerminator
)  # fmt: skip


def accessed(inst: Instruction) -> Value | None:
    """The address at which an instruction other than a call reads or writes; None if it touches no memory."""
    match cast("AnyInstruction", inst):
        case Load() | AtomicRMW() | CmpXchg() | VAArg():
            return inst.operands[0]
        case Store():
            return inst.operands[1]
        case (
            GetElementPtr() | Binary() | Phi() | ICmp() | Br() | CondBr() | Cast() | Call() | Select() | FCmp()
            | Unary() | ExtractValue() | InsertValue() | Freeze() | ExtractElement() | InsertElement() | Ret()
            | ShuffleVector() | Alloca() | Switch() | Unreachable() | Fence() | IndirectBr() | Resume() | LandingPad()
            | Invoke() | CallBr() | ExceptionPad() | ExceptionTerminator()
        ):  # fmt: skip
            return None
        case shape:
            assert_never(shape)


def stored(inst: Instruction) -> Value | None:
    """Value that an instruction other than a call stores, or combines with memory; None if there is none."""
    match cast("AnyInstruction", inst):
        case Store():
            return inst.operands[0]
        case AtomicRMW() | CmpXchg():
            return inst.operands[-1]
        case (
            GetElementPtr() | Binary() | Phi() | ICmp() | Br() | CondBr() | Cast() | Call() | Select() | FCmp()
            | Unary() | ExtractValue() | InsertValue() | Freeze() | ExtractElement() | InsertElement() | Ret() | Load()
            | ShuffleVector() | Alloca() | Switch() | Unreachable() | Fence() | IndirectBr() | Resume() | LandingPad()
            | Invoke() | CallBr() | ExceptionPad() | ExceptionTerminator() | VAArg()
        ):  # fmt: skip
            return None
        case shape:
            assert_never(shape)
