"""Vectors become scalars: the engine differentiates scalar code, and LLVM vectorises what comes out.

Input   a module in normal form.
Output  whether anything was changed; the module is rewritten in place.
Method  each vector is a list of its elements; an operation on vectors becomes one operation for each element, a
        reduction a chain. Where a vector has to stay one (arguments and results of functions), it is taken apart and
        put together by extractelement and insertelement.
Limit   scalable vectors and the intrinsics of one processor stay: the engine refuses them by name.

    %s = fadd <2 x double> %a, %b        %s0 = fadd double %a0, %b0        %s1 = fadd double %a1, %b1
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import field
from typing import Final

from irad.ir import instructions as ir, types
from irad.ir.builder import Builder
from irad.ir.cfg import control_flow
from irad.ir.module import Function, Module
from irad.ir.types import FloatType, IntType, PointerType, Type, VectorType
from irad.ir.values import (
    Constant,
    ConstantAggregate,
    ConstantInt,
    ConstantZero,
    Parameter,
    Poison,
    Undef,
    Value,
    const_int,
    zero,
)
from irad.raw.normal_form.replacement import element_of, instead_of, kept_metadata, vector_of
from irad.records import dataclass

# The bits of numbers as other numbers: what a bitcast between vectors of different elements means, element by element.
#
# Little-endian, as all targets that irad takes: the first element has the lowest bits.


def repack(build: Builder, parts: Sequence[Value], wanted: Type, count: int) -> list[Value]:
    """Reinterprets the bits as ``count`` values of another type."""
    given, taken = _bits(parts[0].type), _bits(wanted)
    numbers = [_as_integer(build, part) for part in parts]
    if given < taken:
        step = taken // given
        joined = [_join(build, numbers[i * step : (i + 1) * step], taken) for i in range(count)]
    else:
        step = given // taken
        joined = [_cut(build, number, taken, i) for number in numbers for i in range(step)]
    return [_from_integer(build, number, wanted) for number in joined]


def _bits(type_: Type) -> int:
    match type_:
        case IntType(bits=bits) | FloatType(bits=bits):
            return bits
        case _:
            return 64


def _as_integer(build: Builder, value: Value) -> Value:
    integer = types.int_type(_bits(value.type))
    if isinstance(value.type, PointerType):
        return build.ptrtoint(value, integer)
    return value if value.type is integer else build.bitcast(value, integer)


def _from_integer(build: Builder, value: Value, wanted: Type) -> Value:
    if isinstance(wanted, PointerType):
        return build.inttoptr(value, wanted)
    return value if value.type is wanted else build.bitcast(value, wanted)


def _join(build: Builder, parts: Sequence[Value], bits: int) -> Value:
    wide = types.int_type(bits)
    made = build.zext(parts[0], wide)
    width = bits // len(parts)
    for index, part in enumerate(parts[1:], 1):
        made = build.or_(made, build.shl(build.zext(part, wide), const_int(wide, index * width)))
    return made


def _cut(build: Builder, whole: Value, bits: int, index: int) -> Value:
    shifted = build.lshr(whole, const_int(whole.type, index * bits)) if index else whole
    return build.trunc(shifted, types.int_type(bits))


_SUFFIX: Final = re.compile(r"\.v\d+(?=[ifp]\d|bf16|p\d)")
_WHOLE: Final = ("llvm.vector.", "llvm.masked.", "llvm.matrix.", "llvm.experimental.", "llvm.x86.", "llvm.aarch64.")
_REDUCTION: Final = re.compile(r"llvm\.vector\.reduce\.(\w+)\.v\d+(\w+)")
_BINARY: Final = {"add": "add", "mul": "mul", "and": "and", "or": "or", "xor": "xor", "fadd": "fadd", "fmul": "fmul"}
_CHOICE: Final = {
    **{word: f"llvm.{word}" for word in ("smax", "smin", "umax", "umin")},
    "fmax": "llvm.maxnum",
    "fmin": "llvm.minnum",
    "fmaximum": "llvm.maximum",
    "fminimum": "llvm.minimum",
}


def split_vectors(module: Module) -> bool:
    """Rewrites every function with vectors in it."""
    changed = False
    for function in module.defined_functions():
        if any(_has_vector(inst) for inst in function.instructions()):
            _Splitter(function).run()
            changed = True
    return changed


def _has_vector(inst: ir.Instruction) -> bool:
    return _is_vector(inst.type) or any(_is_vector(value.type) for value in inst.operands)


def _is_vector(type_: Type) -> bool:
    return isinstance(type_, VectorType) and not type_.scalable


def _element(type_: Type) -> Type:
    assert isinstance(type_, VectorType)
    return type_.element


def _count(type_: Type) -> int:
    assert isinstance(type_, VectorType)
    return type_.count


@dataclass(eq=False, slots=True)
class _Splitter:
    """Takes the vectors of one function apart. ``parts`` are the elements of each vector so far."""

    function: Function
    parts: dict[Value, list[Value]] = field(default_factory=dict)
    gone: dict[ir.Instruction, None] = field(default_factory=dict)
    phis: list[ir.Phi] = field(default_factory=list)

    def run(self) -> None:
        for block in control_flow(self.function).order:
            for inst in list(block.instructions):
                if _has_vector(inst):
                    self.split(inst)
        for phi in self.phis:
            for value, block in phi.incoming():
                for twin, part in zip(self.parts[phi], self.elements(value), strict=True):
                    assert isinstance(twin, ir.Phi)
                    twin.add_incoming(part, block)
        for inst in self.gone:
            inst.set_operands(())
        for inst in self.gone:
            inst.erase()

    def split(self, inst: ir.Instruction) -> None:
        """Replaces one instruction."""
        made = self.made(inst)
        if made is None:
            self.keep(inst)
            return
        if _is_vector(inst.type):
            self.parts[inst] = made
        elif made:
            ir.replace_uses(inst, made[0])
        self.gone[inst] = None

    def keep(self, inst: ir.Instruction) -> None:
        """An instruction that goes on with whole vectors."""
        for index, value in enumerate(inst.operands):
            if value in self.parts and not isinstance(value, Constant | Parameter) and value in self.gone:
                inst.set_operand(index, self.whole(value, inst))

    def made(self, inst: ir.Instruction) -> list[Value] | None:
        """The elements of the result, or the one scalar that it is; None: it stays."""
        build = instead_of(inst)
        match inst:
            case ir.Phi():
                self.phis.append(inst)
                return [Builder.before(inst).phi(_element(inst.type)) for _ in range(_count(inst.type))]
            case ir.Binary(operands=[a, b]):
                return [build.binary(inst.opcode, x, y, inst.flags) for x, y in self.pairs(a, b)]
            case ir.ICmp(operands=[a, b]):
                return [build.icmp(inst.predicate, x, y) for x, y in self.pairs(a, b)]
            case ir.FCmp(operands=[a, b]):
                return [build.fcmp(inst.predicate, x, y, inst.flags) for x, y in self.pairs(a, b)]
            case ir.Unary(operands=[a]):
                return [build.fneg(x, inst.flags) for x in self.elements(a)]
            case ir.Freeze(operands=[a]):
                return [build.freeze(x) for x in self.elements(a)]
            case ir.Cast():
                return self.cast(inst, build)
            case ir.Select():
                return self.select(inst, build)
            case ir.ExtractElement(operands=[a, index]):
                return [self.chosen(build, self.elements(a), index)]
            case ir.InsertElement(operands=[a, value, index]):
                return self.inserted(build, self.elements(a), value, index)
            case ir.ShuffleVector():
                return self.shuffled(inst)
            case ir.Load() if _is_bytes(_element(inst.type)) and not inst.volatile and inst.ordering is None:
                return self.load(inst, build)
            case ir.Store(operands=[value, _]) if _is_bytes(_element(value.type)) and not inst.volatile:
                return self.store(inst, build)
            case ir.GetElementPtr():
                return self.address(inst, build)
            case ir.Call():
                return self.call(inst, build)
            case _:
                return None

    def pairs(self, a: Value, b: Value) -> list[tuple[Value, Value]]:
        return list(zip(self.elements(a), self.elements(b), strict=True))

    # -------------------------------------------------------------------------------------------- elements

    def elements(self, vector: Value) -> list[Value]:
        """The elements of a vector; of one that stays whole they are extracted where it is made."""
        found = self.parts.get(vector)
        if found is None:
            found = self.parts[vector] = self.constants(vector) or self.extracted(vector)
        return found

    def constants(self, vector: Value) -> list[Value] | None:
        element, count = _element(vector.type), _count(vector.type)
        match vector:
            case ConstantAggregate(elements=(only,), splat=True):
                return [only for _ in range(count)]
            case ConstantAggregate(elements=elements):
                return list(elements)
            case ConstantZero():
                return [zero(element) for _ in range(count)]
            case Undef():
                return [Undef(element) for _ in range(count)]
            case Poison():
                return [Poison(element) for _ in range(count)]
            case _:
                return None

    def extracted(self, vector: Value) -> list[Value]:
        build = self.behind(vector)
        return [element_of(build, vector, index) for index in range(_count(vector.type))]

    def behind(self, vector: Value) -> Builder:
        if isinstance(vector, ir.Instruction):
            return Builder.after(vector)
        assert isinstance(vector, Parameter | Constant)
        entry = self.function.entry
        return Builder.before(next(i for i in entry.instructions if not isinstance(i, ir.Alloca)))

    def whole(self, vector: Value, user: ir.Instruction) -> Value:
        """The vector put together again."""
        return vector_of(Builder.before(user), vector.type, self.parts[vector])

    # -------------------------------------------------------------------------------------------- operations

    def cast(self, inst: ir.Cast, build: Builder) -> list[Value] | None:
        [source] = inst.operands
        given = self.elements(source) if _is_vector(source.type) else [source]
        wanted = _element(inst.type) if _is_vector(inst.type) else inst.type
        count = _count(inst.type) if _is_vector(inst.type) else 1
        if inst.opcode != "bitcast" or (len(given) == count and _is_vector(source.type)):
            return [build.cast(inst.opcode, x, wanted, inst.flags) for x in given]
        return repack(build, given, wanted, count)

    def select(self, inst: ir.Select, build: Builder) -> list[Value]:
        condition, a, b = inst.operands
        count = _count(inst.type)
        conditions = self.elements(condition) if _is_vector(condition.type) else [condition] * count
        choices = zip(conditions, self.elements(a), self.elements(b), strict=True)
        return [build.select(c, x, y, inst.flags) for c, x, y in choices]

    def chosen(self, build: Builder, parts: Sequence[Value], index: Value) -> Value:
        if isinstance(index, ConstantInt):
            return parts[index.value] if 0 <= index.value < len(parts) else Poison(parts[0].type)
        made = parts[0]
        for number, part in enumerate(parts[1:], 1):
            made = build.select(build.icmp("eq", index, const_int(index.type, number)), part, made)
        return made

    def inserted(self, build: Builder, parts: Sequence[Value], value: Value, index: Value) -> list[Value]:
        if isinstance(index, ConstantInt):
            return [value if number == index.value else part for number, part in enumerate(parts)]
        return [
            build.select(build.icmp("eq", index, const_int(index.type, number)), value, part)
            for number, part in enumerate(parts)
        ]

    def shuffled(self, inst: ir.ShuffleVector) -> list[Value]:
        a, b, mask = inst.operands
        given = [*self.elements(a), *self.elements(b)]
        return [
            given[place.value] if isinstance(place, ConstantInt) else Poison(_element(inst.type))
            for place in self.constants(mask) or ()
        ]

    def load(self, inst: ir.Load, build: Builder) -> list[Value]:
        kind = _element(inst.type)
        made: list[Value] = []
        for index in range(_count(inst.type)):
            offset = index * types.size_of(kind)
            part = build.load(kind, build.byte_offset(inst.operands[0], offset), _alignment(inst.align, offset))
            part.metadata = kept_metadata(inst, "dbg", "tbaa")
            made.append(part)
        return made

    def store(self, inst: ir.Store, build: Builder) -> list[Value]:
        value, pointer = inst.operands
        for index, part in enumerate(self.elements(value)):
            offset = index * types.size_of(part.type)
            stored = build.store(part, build.byte_offset(pointer, offset), _alignment(inst.align, offset))
            stored.metadata = kept_metadata(inst, "dbg", "tbaa")
        return []

    def address(self, inst: ir.GetElementPtr, build: Builder) -> list[Value]:
        count = _count(inst.type)
        columns = [self.elements(v) if _is_vector(v.type) else [v] * count for v in inst.operands]
        rows = zip(*columns, strict=True)
        return [build.gep(inst.source_type, base, indices, inst.flags) for base, *indices in rows]

    def call(self, inst: ir.Call, build: Builder) -> list[Value] | None:
        """Intrinsics that work on each element, and reductions."""
        name = inst.callee.name if isinstance(inst.callee, Function) else None
        reduction = _REDUCTION.fullmatch(name or "")
        if reduction is not None:
            return self.reduce(inst, build, reduction[1], reduction[2])
        if name is None or not name.startswith("llvm.") or name.startswith(_WHOLE) or not _is_vector(inst.type):
            return None
        count = _count(inst.type)
        if any(_is_vector(a.type) and _count(a.type) != count for a in inst.arguments):
            return None
        columns = [self.elements(a) if _is_vector(a.type) else [a] * count for a in inst.arguments]
        symbol = _SUFFIX.sub(".", name)
        rows = zip(*columns, strict=True)
        return [build.intrinsic(symbol, _element(inst.type), row, inst.flags) for row in rows]

    def reduce(self, inst: ir.Call, build: Builder, word: str, kind: str) -> list[Value] | None:
        parts = [*inst.arguments[:-1], *self.elements(inst.arguments[-1])]
        made = parts[0]
        for part in parts[1:]:
            if word in _BINARY:
                made = build.binary(_BINARY[word], made, part, inst.flags)
            elif word in _CHOICE:
                made = build.intrinsic(f"{_CHOICE[word]}.{kind}", inst.type, [made, part], inst.flags)
            else:
                return None
        return [made]


def _is_bytes(type_: Type) -> bool:
    return not isinstance(type_, IntType) or type_.bits % 8 == 0


def _alignment(whole: int | None, offset: int) -> int:
    return math.gcd(whole or 1, offset) if offset else (whole or 1)
