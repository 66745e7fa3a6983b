"""Builder: makes instructions at a position, in order.

Operations on constants fold, so that generated code is small before LLVM sees it (`irad.ir.folding` says what folds);
such a method returns a `Value` that need not be an instruction.

    b = Builder(block)
    b.store(b.fadd(b.load(DOUBLE, p), x, flags=("reassoc",)), p)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from irad.ir import instructions as ir, types
from irad.ir.folding import fold_binary, fold_cast, fold_icmp, fold_negation, fold_select
from irad.ir.module import Block, Function, Module
from irad.ir.types import FunctionType, Type
from irad.ir.values import ConstantInt, Value, const_int

Flags = tuple[str, ...]
_I = TypeVar("_I", bound=ir.Instruction)


class Builder:
    """Inserts instructions one after another.

    Attributes:
        block: where it inserts.
        origin: becomes ``origin`` of what it makes.
        metadata: copied onto what it makes.
    """

    __slots__ = ("_anchor", "_index", "block", "metadata", "origin")

    def __init__(self, position: Block) -> None:
        """Appends at the end of a block."""
        self.block = position
        self.origin: ir.Instruction | None = None
        self.metadata: ir.Metadata = {}
        self._anchor: ir.Instruction | None = None
        self._index = 0

    @classmethod
    def before(cls, inst: ir.Instruction) -> Builder:
        """Inserts in front of an instruction."""
        assert inst.block is not None, "the instruction is in no block"
        return cls._at(inst.block, inst)

    @classmethod
    def after(cls, inst: ir.Instruction) -> Builder:
        """Inserts after an instruction (after all phis, if it is a phi)."""
        block = inst.block
        assert block is not None, "the instruction is in no block"
        if isinstance(inst, ir.Phi):
            return cls.at_start(block)
        following = block.instructions.index(inst) + 1
        builder = cls._at(block, block.instructions[following] if following < len(block.instructions) else None)
        builder._index = following
        return builder

    @classmethod
    def at_start(cls, block: Block) -> Builder:
        """Inserts at the head of a block, after its phis and its landing pad."""
        heads = (ir.Phi, ir.LandingPad, ir.ExceptionPad)
        return cls._at(block, next((i for i in block.instructions if not isinstance(i, heads)), None))

    @classmethod
    def _at(cls, block: Block, anchor: ir.Instruction | None) -> Builder:
        builder = cls(block)
        builder._anchor = anchor
        return builder

    @property
    def function(self) -> Function:
        """The function it builds in."""
        assert self.block.function is not None, "the block is in no function"
        return self.block.function

    @property
    def module(self) -> Module:
        """The module it builds in."""
        assert self.function.module is not None, "the function is in no module"
        return self.function.module

    def insert(self, inst: ir.Instruction) -> None:
        """Inserts a detached instruction as it is; a phi goes after the phis of the block."""
        if isinstance(inst, ir.Phi):
            self.block.insert(len(self.block.phis()), inst)
        elif self._anchor is None:
            self.block.append(inst)
        else:
            self.block.insert(self._position(self._anchor), inst)
            self._index += 1

    def _position(self, anchor: ir.Instruction) -> int:
        """Index of the anchor: where it was last, unless the block was edited in between."""
        instructions = self.block.instructions
        if self._index >= len(instructions) or instructions[self._index] is not anchor:
            self._index = instructions.index(anchor)
        return self._index

    def _stamp(self, inst: _I) -> _I:
        """Inserts a new instruction and returns it."""
        inst.origin = self.origin
        if self.metadata:
            inst.metadata = dict(self.metadata)
        self.insert(inst)
        return inst

    # -------------------------------------------------------------------------------------------- arithmetic

    def binary(self, opcode: str, a: Value, b: Value, flags: Flags = (), name: str | None = None) -> Value:
        """Any two-operand operation."""
        assert a.type is b.type, f"{opcode} of {a.type} and {b.type}"
        return fold_binary(opcode, a, b) or self._stamp(
            ir.Binary(a.type, name, operands=[a, b], opcode=opcode, flags=flags)
        )

    def add(self, a: Value, b: Value, flags: Flags = (), name: str | None = None) -> Value:
        """`a + b` of integers."""
        return self.binary("add", a, b, flags, name)

    def sub(self, a: Value, b: Value, flags: Flags = (), name: str | None = None) -> Value:
        """`a - b` of integers."""
        return self.binary("sub", a, b, flags, name)

    def mul(self, a: Value, b: Value, flags: Flags = (), name: str | None = None) -> Value:
        """`a * b` of integers."""
        return self.binary("mul", a, b, flags, name)

    def sdiv(self, a: Value, b: Value, flags: Flags = (), name: str | None = None) -> Value:
        """Signed quotient, towards zero."""
        return self.binary("sdiv", a, b, flags, name)

    def udiv(self, a: Value, b: Value, flags: Flags = (), name: str | None = None) -> Value:
        """Unsigned quotient."""
        return self.binary("udiv", a, b, flags, name)

    def urem(self, a: Value, b: Value, name: str | None = None) -> Value:
        """Unsigned remainder."""
        return self.binary("urem", a, b, (), name)

    def shl(self, a: Value, b: Value, flags: Flags = (), name: str | None = None) -> Value:
        """`a << b`."""
        return self.binary("shl", a, b, flags, name)

    def lshr(self, a: Value, b: Value, flags: Flags = (), name: str | None = None) -> Value:
        """`a >> b`, filled with zeros."""
        return self.binary("lshr", a, b, flags, name)

    def and_(self, a: Value, b: Value, name: str | None = None) -> Value:
        """Bitwise and."""
        return self.binary("and", a, b, (), name)

    def or_(self, a: Value, b: Value, flags: Flags = (), name: str | None = None) -> Value:
        """Bitwise or."""
        return self.binary("or", a, b, flags, name)

    def xor(self, a: Value, b: Value, name: str | None = None) -> Value:
        """Bitwise exclusive or."""
        return self.binary("xor", a, b, (), name)

    def fadd(self, a: Value, b: Value, flags: Flags = (), name: str | None = None) -> Value:
        """`a + b` of floating-point numbers."""
        return self.binary("fadd", a, b, flags, name)

    def fsub(self, a: Value, b: Value, flags: Flags = (), name: str | None = None) -> Value:
        """`a - b` of floating-point numbers."""
        return self.binary("fsub", a, b, flags, name)

    def fmul(self, a: Value, b: Value, flags: Flags = (), name: str | None = None) -> Value:
        """`a * b` of floating-point numbers."""
        return self.binary("fmul", a, b, flags, name)

    def fdiv(self, a: Value, b: Value, flags: Flags = (), name: str | None = None) -> Value:
        """`a / b` of floating-point numbers."""
        return self.binary("fdiv", a, b, flags, name)

    def fneg(self, a: Value, flags: Flags = (), name: str | None = None) -> Value:
        """Flips the sign bit."""
        return fold_negation(a) or self._stamp(ir.Unary(a.type, name, operands=[a], opcode="fneg", flags=flags))

    def icmp(self, predicate: str, a: Value, b: Value, name: str | None = None) -> Value:
        """Comparison of integers or pointers."""
        assert a.type is b.type, f"icmp of {a.type} and {b.type}"
        return fold_icmp(predicate, a, b) or self._stamp(
            ir.ICmp(types.as_many(a.type, types.I1), name, operands=[a, b], predicate=predicate)
        )

    def fcmp(self, predicate: str, a: Value, b: Value, flags: Flags = (), name: str | None = None) -> Value:
        """Comparison of floating-point numbers."""
        assert a.type is b.type, f"fcmp of {a.type} and {b.type}"
        return self._stamp(
            ir.FCmp(types.as_many(a.type, types.I1), name, operands=[a, b], predicate=predicate, flags=flags)
        )

    def select(self, condition: Value, a: Value, b: Value, flags: Flags = (), name: str | None = None) -> Value:
        """``a`` if the condition is true, else ``b``."""
        assert a.type is b.type, f"select of {a.type} and {b.type}"
        return fold_select(condition, a, b) or self._stamp(
            ir.Select(a.type, name, operands=[condition, a, b], flags=flags)
        )

    def freeze(self, value: Value, name: str | None = None) -> Value:
        """Some fixed value in place of undef or poison."""
        return self._stamp(ir.Freeze(value.type, name, operands=[value]))

    # -------------------------------------------------------------------------------------------- casts

    def cast(self, opcode: str, value: Value, type_: Type, flags: Flags = (), name: str | None = None) -> Value:
        """Any cast; of a value that has the type already, the value itself."""
        return fold_cast(opcode, value, type_) or self._stamp(
            ir.Cast(type_, name, operands=[value], opcode=opcode, flags=flags)
        )

    def trunc(self, value: Value, type_: Type, name: str | None = None) -> Value:
        """The low bits."""
        return self.cast("trunc", value, type_, name=name)

    def zext(self, value: Value, type_: Type, name: str | None = None) -> Value:
        """Widened with zeros."""
        return self.cast("zext", value, type_, name=name)

    def sext(self, value: Value, type_: Type, name: str | None = None) -> Value:
        """Widened with the sign."""
        return self.cast("sext", value, type_, name=name)

    def fptrunc(self, value: Value, type_: Type, name: str | None = None) -> Value:
        """Rounded to a narrower floating-point type."""
        return self.cast("fptrunc", value, type_, name=name)

    def fpext(self, value: Value, type_: Type, name: str | None = None) -> Value:
        """Widened to a floating-point type."""
        return self.cast("fpext", value, type_, name=name)

    def sitofp(self, value: Value, type_: Type, name: str | None = None) -> Value:
        """Signed integer to floating point."""
        return self.cast("sitofp", value, type_, name=name)

    def ptrtoint(self, value: Value, type_: Type, name: str | None = None) -> Value:
        """Address as an integer."""
        return self.cast("ptrtoint", value, type_, name=name)

    def inttoptr(self, value: Value, type_: Type, name: str | None = None) -> Value:
        """Integer as an address."""
        return self.cast("inttoptr", value, type_, name=name)

    def bitcast(self, value: Value, type_: Type, name: str | None = None) -> Value:
        """Reinterprets the bits of a value as another type."""
        return self.cast("bitcast", value, type_, name=name)

    # -------------------------------------------------------------------------------------------- memory, aggregates

    def alloca(
        self, type_: Type, count: Value | None = None, align: int | None = None, name: str | None = None
    ) -> ir.Alloca:
        """Stack memory for one or ``count`` values."""
        operands = [] if count is None else [count]
        return self._stamp(ir.Alloca(types.PTR, name, operands=operands, allocated_type=type_, align=align))

    def load(self, type_: Type, pointer: Value, align: int | None = None, name: str | None = None) -> ir.Load:
        """Reads a value."""
        return self._stamp(ir.Load(type_, name, operands=[pointer], align=align))

    def store(self, value: Value, pointer: Value, align: int | None = None) -> ir.Store:
        """Writes a value."""
        return self._stamp(ir.Store(types.VOID, operands=[value, pointer], align=align))

    def atomic(self, opcode: str, value: Value, pointer: Value) -> ir.AtomicRMW:
        """An update of memory in one step, which orders nothing else; gives what was there."""
        return self._stamp(ir.AtomicRMW(value.type, operands=[pointer, value], opcode=opcode, ordering="monotonic"))

    def gep(
        self, source_type: Type, base: Value, indices: Sequence[Value], flags: Flags = (), name: str | None = None
    ) -> Value:
        """An address; with all indices zero the base itself."""
        type_ = types.address_type([base.type, *(index.type for index in indices)])
        if type_ is base.type and all(isinstance(i, ConstantInt) and i.value == 0 for i in indices):
            return base
        return self._stamp(
            ir.GetElementPtr(type_, name, operands=[base, *indices], source_type=source_type, flags=flags)
        )

    def byte_offset(self, base: Value, offset: Value | int, flags: Flags = (), name: str | None = None) -> Value:
        """The address ``offset`` bytes after ``base``."""
        index = const_int(types.I64, offset) if isinstance(offset, int) else offset
        return self.gep(types.I8, base, [index], flags, name)

    def extract_value(self, aggregate: Value, indices: Sequence[int] | int, name: str | None = None) -> Value:
        """An element of a struct or array value."""
        path = (indices,) if isinstance(indices, int) else tuple(indices)
        known = _inserted(aggregate, path)
        if known is not None:
            return known
        element = types.element_at(aggregate.type, path)
        assert element is not None, f"no element at {path} of {aggregate.type}"
        return self._stamp(ir.ExtractValue(element, name, operands=[aggregate], indices=path))

    def insert_value(
        self, aggregate: Value, value: Value, indices: Sequence[int] | int, name: str | None = None
    ) -> Value:
        """The struct or array value with one element replaced."""
        path = (indices,) if isinstance(indices, int) else tuple(indices)
        assert value.type is types.element_at(aggregate.type, path), f"no {value.type} at {path} of {aggregate.type}"
        return self._stamp(ir.InsertValue(aggregate.type, name, operands=[aggregate, value], indices=path))

    # -------------------------------------------------------------------------------------------- phis, calls

    def phi(self, type_: Type, incoming: Iterable[tuple[Value, Block]] = (), name: str | None = None) -> ir.Phi:
        """A phi after those of the block, wherever in the block the builder stands."""
        inst = ir.Phi(type_, name)
        for value, block in incoming:
            assert value.type is type_, f"phi of {type_} receives {value.type}"
            inst.add_incoming(value, block)
        self._stamp(inst)
        return inst

    def call(
        self,
        callee: Value,
        args: Sequence[Value],
        function_type: FunctionType | None = None,
        attributes: Flags = (),
        convention: str | None = None,
        flags: Flags = (),
        name: str | None = None,
    ) -> ir.Call:
        """A call; type and convention are those of the callee, if it is a function."""
        if isinstance(callee, Function):
            function_type = function_type or callee.function_type
            convention = convention or callee.convention
        assert function_type is not None, "an indirect call needs the type of its callee"
        _check_arguments(function_type, args)
        return self._stamp(
            ir.Call(
                function_type.result,
                name,
                operands=[*args, callee],
                function_type=function_type,
                convention=convention,
                argument_attributes=((),) * len(args),
                attributes=attributes,
                flags=flags,
            )
        )

    def intrinsic(
        self, symbol: str, result_type: Type, args: Sequence[Value], flags: Flags = (), name: str | None = None
    ) -> ir.Call:
        """A call of an intrinsic, declared in the module when it is new; ``symbol`` with its type suffixes."""
        callee = self.module.declare(symbol, types.function_type(result_type, [a.type for a in args]))
        return self.call(callee, args, flags=flags, name=name)

    # -------------------------------------------------------------------------------------------- terminators

    def br(self, target: Block) -> ir.Br:
        """Goes on at ``target``."""
        return self._stamp(ir.Br(types.VOID, targets=[target]))

    def cond_br(self, condition: Value, if_true: Block, if_false: Block) -> ir.CondBr:
        """Goes on at one of two blocks."""
        return self._stamp(ir.CondBr(types.VOID, operands=[condition], targets=[if_true, if_false]))

    def switch(self, value: Value, default: Block, cases: Iterable[tuple[ConstantInt | int, Block]]) -> ir.Switch:
        """Goes on at the block of the case that equals ``value``."""
        pairs = [(const_int(value.type, case) if isinstance(case, int) else case, block) for case, block in cases]
        return self._stamp(
            ir.Switch(
                types.VOID,
                operands=[value, *(case for case, _ in pairs)],
                targets=[default, *(block for _, block in pairs)],
            )
        )

    def ret(self, value: Value | None = None) -> ir.Ret:
        """Returns."""
        return self._stamp(ir.Ret(types.VOID, operands=[] if value is None else [value]))

    def unreachable(self) -> ir.Unreachable:
        """Ends a block that is never left."""
        return self._stamp(ir.Unreachable(types.VOID))


def _inserted(aggregate: Value, path: tuple[int, ...]) -> Value | None:
    """Value inserted at ``path``, if a chain of insertvalues shows it."""
    while isinstance(aggregate, ir.InsertValue):
        shared = min(len(path), len(aggregate.indices))
        if aggregate.indices == path:
            return aggregate.operands[1]
        if aggregate.indices[:shared] == path[:shared]:
            return None  # a part of the element, or more than it
        aggregate = aggregate.operands[0]
    return None


def _check_arguments(type_: FunctionType, args: Sequence[Value]) -> None:
    given = tuple(a.type for a in args)
    fits = given[: len(type_.params)] == type_.params and (type_.variadic or len(given) == len(type_.params))
    assert fits, f"a callee of type {type_} is given ({', '.join(map(str, given))})"
