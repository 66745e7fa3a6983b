"""Masked loads, stores, gathers and scatters become branches around the accesses of their elements.

Input   a module in normal form.
Output  whether anything was changed; the module is rewritten in place.
Method  an element that is masked out is not accessed at all: its address may lead nowhere. So the access of each
        element gets a block of its own, as `if (m[i]) … x[i] …` of the source had. `vectors` then takes the rest apart.
Limit   scalable vectors, expanding loads and compressing stores stay: the engine refuses them by name.

    %v = call <2 x double> @llvm.masked.load(ptr %p, <2 x i1> %m, <2 x double> %other)

      %m0 = extractelement <2 x i1> %m, i64 0
      br i1 %m0, label %access, label %rest
    access:
      %x0 = load double, ptr %p                            in %rest: %v0 = phi double [ %x0, … ], [ %other0, … ]
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Call, ExtractElement, InsertElement, Instruction, replace_uses
from irad.ir.module import Function, Module
from irad.ir.types import Type, VectorType
from irad.ir.values import ConstantInt, Poison, Value, const_int
from irad.passes.augmented.allocation_failure import split_before

_NAME: Final = re.compile(r"llvm\.masked\.(load|gather|store|scatter)\.v\d+.*")
_ALIGN: Final = "align "


def expand_masked(module: Module) -> bool:
    """Rewrites every function."""
    calls = [
        (inst, found[1])
        for function in module.defined_functions()
        for inst in function.instructions()
        if isinstance(inst, Call)
        and isinstance(inst.callee, Function)
        and (found := _NAME.fullmatch(inst.callee.name or ""))
    ]
    for call, kind in calls:
        _Expansion.of(call, kind).run()
    return bool(calls)


@dataclass(eq=False, slots=True)
class _Expansion:
    """One call.

    Attributes:
        pointer: an address, or a vector of them.
        values: what is stored, or what stands for elements that are not loaded.
    """

    call: Call
    pointer: Value
    mask: Value
    values: Value
    loads: bool
    align: int

    @staticmethod
    def of(call: Call, kind: str) -> _Expansion:
        """Its operands; older releases of LLVM have the alignment among them."""
        loads = kind in ("load", "gather")
        arguments = [a for a in call.arguments if not (isinstance(a, ConstantInt) and a.type is types.I32)]
        aligns = [a.value for a in call.arguments if isinstance(a, ConstantInt) and a.type is types.I32]
        aligns += [int(w.removeprefix(_ALIGN)) for ws in call.argument_attributes for w in ws if w.startswith(_ALIGN)]
        if loads:
            pointer, mask, values = arguments
        else:
            values, pointer, mask = arguments
        return _Expansion(call, pointer, mask, values, loads, aligns[0] if aligns else 1)

    def run(self) -> None:
        """Puts the branches in the place of the call."""
        vector = self.values.type
        assert isinstance(vector, VectorType)
        elements = [self.element(index, vector.element) for index in range(vector.count)]
        if self.loads:
            made: Value = Poison(vector)
            for index, element in enumerate(elements):
                step = InsertElement(vector, operands=[made, element, const_int(types.I64, index)])
                self.insert(step)
                made = step
            replace_uses(self.call, made)
        self.call.erase()

    def element(self, index: int, kind: Type) -> Value:
        """Accesses one element, if its mask says so; what is there afterwards."""
        condition, value = self.part(self.mask, index), self.part(self.values, index)
        before = self.call.block
        assert before is not None
        assert before.function is not None
        rest = split_before(self.call)
        access = before.function.add_block(f"{before.name}.access", after=before)
        self.stamped(Builder(before)).cond_br(condition, access, rest)
        build = self.stamped(Builder(access))
        address, align = self.address(build, index, kind)
        if not self.loads:
            build.store(value, address, align).metadata = self.metadata("dbg", "tbaa")
            build.br(rest)
            return value
        loaded = build.load(kind, address, align)
        loaded.metadata = self.metadata("dbg", "tbaa")
        build.br(rest)
        return Builder.at_start(rest).phi(kind, [(loaded, access), (value, before)])

    def address(self, build: Builder, index: int, kind: Type) -> tuple[Value, int]:
        """Where an element is, and the alignment there."""
        if isinstance(self.pointer.type, VectorType):
            part = ExtractElement(types.PTR, operands=[self.pointer, const_int(types.I64, index)])
            build.insert(part)
            return part, self.align
        offset = index * types.size_of(kind)
        return build.byte_offset(self.pointer, offset), math.gcd(self.align, offset) or 1

    def part(self, vector: Value, index: int) -> Value:
        """An element of an operand."""
        assert isinstance(vector.type, VectorType)
        part = ExtractElement(vector.type.element, operands=[vector, const_int(types.I64, index)])
        self.insert(part)
        return part

    def insert(self, inst: Instruction) -> None:
        self.stamped(Builder.before(self.call)).insert(inst)

    def stamped(self, build: Builder) -> Builder:
        build.origin, build.metadata = self.call, self.metadata("dbg")
        return build

    def metadata(self, *kinds: str) -> dict[str, str]:
        return {kind: node for kind, node in self.call.metadata.items() if kind in kinds}
