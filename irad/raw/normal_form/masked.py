"""Masked loads, stores, gathers and scatters become branches around the accesses of their elements.

Input   a module in normal form.
Output  whether anything was changed; the module is rewritten in place.
Method  an element that is masked out is not accessed at all: its address may be invalid. So the access of each
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
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Call, replace_uses
from irad.ir.module import Function, Module
from irad.ir.types import Type, VectorType
from irad.ir.values import ConstantInt, Value
from irad.raw.normal_form.replacement import (
    branch_before,
    element_of,
    instead_of,
    kept_metadata,
    on_behalf_of,
    vector_of,
)
from irad.records import dataclass

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
        values: the stored values, or the values of elements that are not loaded.
    """

    call: Call
    pointer: Value
    mask: Value
    values: Value
    loads: bool
    align: int

    @staticmethod
    def of(call: Call, kind: str) -> _Expansion:
        """Operands of a masked access; older releases of LLVM have the alignment among them."""
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
            replace_uses(self.call, vector_of(instead_of(self.call), vector, elements))
        self.call.erase()

    def element(self, index: int, kind: Type) -> Value:
        """Accesses one element, if its mask says so; what is there afterwards."""
        condition, value = (element_of(instead_of(self.call), vector, index) for vector in (self.mask, self.values))
        function, before, rest = branch_before(self.call)
        access = function.add_block(f"{before.name}.access", after=before)
        on_behalf_of(self.call, Builder(before)).cond_br(condition, access, rest)
        build = on_behalf_of(self.call, Builder(access))
        address, align = self.address(build, index, kind)
        if not self.loads:
            build.store(value, address, align).metadata = kept_metadata(self.call, "dbg", "tbaa")
            build.br(rest)
            return value
        loaded = build.load(kind, address, align)
        loaded.metadata = kept_metadata(self.call, "dbg", "tbaa")
        build.br(rest)
        return Builder.at_start(rest).phi(kind, [(loaded, access), (value, before)])

    def address(self, build: Builder, index: int, kind: Type) -> tuple[Value, int]:
        """Address of an element, and the alignment there."""
        if isinstance(self.pointer.type, VectorType):
            return element_of(build, self.pointer, index), self.align
        offset = index * types.size_of(kind)
        return build.byte_offset(self.pointer, offset), math.gcd(self.align, offset) or 1
