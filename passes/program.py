"""All variants of one derivative: declares their functions, hands them out, lists what is still to be generated."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, Final, TypeAlias

from irad.ir import types
from irad.ir.instructions import CallSite
from irad.ir.module import Function, Module
from irad.ir.values import GlobalVariable, Value, zero
from irad.passes.callees import is_from_outside
from irad.passes.instrument.marks import FrameParts, Mark, TapeMark
from irad.passes.memory.returned_addresses import KnownAddresses
from irad.passes.memory.signatures import Signatures
from irad.passes.mode import ModeFunction
from irad.passes.parallel.flatten import LoopFunctions
from irad.passes.request import Request
from irad.passes.subscripts.dimensions import Dimension
from irad.passes.variant import PointerVariant, Variant, shadowed
from irad.records import dataclass
from irad.ruleset.registry import Registry

_GLOBAL_SPACE: Final = 1  # of NVIDIA's GPUs, as is the next
_CONSTANT_SPACE: Final = 4  # LLVM's address space of constant memory on NVPTX


@dataclass(eq=False, slots=True)
class DerivedFunctions:
    """Functions derived for one variant. Declared first, so that recursion finds it; filled later.

    Attributes:
        functions: those of the mode.
        frame_size: global constant, the bytes of frame that they share.
        shadows: indices of the parameters whose shadow they are given, in order.
    """

    variant: Variant
    functions: Mapping[ModeFunction, Function]
    frame_size: GlobalVariable
    shadows: tuple[int, ...]

    @property
    def first(self) -> Function:
        """The one that runs first, and with it the primal."""
        return next(iter(self.functions.values()))

    def __getitem__(self, wanted: ModeFunction) -> Function:
        """One of the functions."""
        return self.functions[wanted]


Observer: TypeAlias = Callable[[str, Any], None]
"""Called with the name of a pass and the record that it worked on: see `irad.passes.pipeline`."""


@dataclass(eq=False, repr=False, slots=True)  # one of all that it holds would have no end
class Program:
    """The module under construction and the derived functions in it.

    Attributes:
        verifies: the code is verified after each pass.
        observe: is shown each pass after it has run, with the record that it worked on.
        is_read: the sweeps are made to be written as Python, not to run.
        loops: the bodies of its parallel loops.
        launches: the call of each parallel loop, by its function.
        signatures: memory that the parameters of its functions point to.
        addresses: facts about the addresses that its functions return and store.
        dimensions: the numbers that the subscripts of elements are multiplied by.
        derived: by variant. owners: what a derived function belongs to.
        marks, tape_marks: the places that are watched and metered, by number; what frames hold, for the latter.
        pending: those that are declared and not yet generated. ruled: those that come from outside.
    """

    module: Module
    registry: Registry
    request: Request
    verifies: bool = False
    observe: Observer | None = None
    is_read: bool = False
    loops: LoopFunctions = field(default_factory=dict)
    launches: dict[Function, CallSite] = field(default_factory=dict)
    signatures: Signatures = field(default_factory=dict)
    addresses: KnownAddresses = field(default_factory=KnownAddresses)
    dimensions: Mapping[Value, Dimension] = field(default_factory=dict)
    derived: dict[Variant, DerivedFunctions] = field(default_factory=dict)
    owners: dict[Function, DerivedFunctions] = field(default_factory=dict)
    pending: list[DerivedFunctions] = field(default_factory=list)
    ruled: list[DerivedFunctions] = field(default_factory=list)
    shadow_globals: dict[tuple[GlobalVariable, int], GlobalVariable] = field(default_factory=dict)
    tables: dict[PointerVariant, GlobalVariable] = field(default_factory=dict)
    marks: list[Mark] = field(default_factory=list)
    tape_marks: list[TapeMark] = field(default_factory=list)
    frame_parts: dict[Variant, FrameParts] = field(default_factory=dict)
    _places: GlobalVariable | None = None

    @property
    def saves_all(self) -> bool:
        """True if the plan is the oracle."""
        return self.request.plan == "save_all"

    def derive(self, variant: Variant, shadows: tuple[int, ...] | None = None) -> DerivedFunctions:
        """The functions of a variant; new ones are declared and put on the list.

        Args:
            variant: the function and how its parameters take part.
            shadows: the parameters that get a shadow, when they are more than those of kind SHADOW.
        """
        found = self.derived.get(variant)
        if found is not None:
            return found
        if shadows is None:
            shadows = shadowed(variant.kinds)
        is_ruled = is_from_outside(variant.function, self.registry)
        name = f"{str(variant.function.name).removeprefix('llvm.')}.irad{len(self.derived)}"  # LLVM reserves its prefix
        make = self.module.declare if is_ruled else self.module.define
        functions = {
            each: make(f"{name}.{each.name}", each.type_of(variant, shadows)) for each in self.request.mode.functions
        }
        linkage = "external" if is_ruled else "internal"
        size = GlobalVariable(types.PTR, f"{name}.frame", value_type=types.I64, constant=True, prefix=(linkage,))
        assert size.name is not None
        self.module.globals[size.name] = size
        made = DerivedFunctions(variant, functions, size, shadows)
        for function in functions.values():
            function.prefix = () if is_ruled or variant.is_entry else ("internal",)
            self.owners[function] = made
        self.derived[variant] = made
        (self.ruled if is_ruled else self.pending).append(made)
        return made

    def table(self, variant: PointerVariant) -> GlobalVariable:
        """The table in which calls through a pointer look pairs up; it lives outside the module.

        Its name says what it holds, so that all programs share it.
        """
        found = self.tables.get(variant)
        if found is None:
            request = self.request
            options: tuple[object, ...] = request.mode.name, request.plan, request.strict, self.registry.fingerprint()
            options += (request.watches, request.meters) if request.watches or request.meters else ()
            options += ("zero wins",) if request.zero_wins else ()
            options += ("no zero wins",) if request.no_zero_wins else ()
            options += ("shows zeros",) if request.shows_zeros else ()
            options += ("checks bounds",) if request.checks_bounds else ()
            key = repr((str(variant.function_type), variant, options))
            name = f"irad.pointers.{hashlib.sha256(key.encode()).hexdigest()[:16]}"
            found = GlobalVariable(types.PTR, name, value_type=types.I8, prefix=("external",))
            self.module.globals[name] = found
            self.tables[variant] = found
        return found

    def tables_by_symbol(self) -> dict[str, PointerVariant]:
        """Variants that calls through pointers look up."""
        return {str(table.name): variant for variant, table in self.tables.items()}

    def places(self) -> GlobalVariable:
        """The table of the places that are watched; it lives outside the module and gets its name at the end."""
        if self._places is None:
            self._places = GlobalVariable(types.PTR, "irad.places", value_type=types.I8, prefix=("external",))
            self.module.globals["irad.places"] = self._places
        return self._places

    def shadow_global(self, primal: GlobalVariable, lane: int = 0) -> GlobalVariable:
        """Zeroed memory of the size of a global, which receives cotangents and is never read.

        That of a GPU's constant memory, which no thread can write, is in global memory.
        """
        found = self.shadow_globals.get((primal, lane))
        if found is None:
            value_type = types.array_type(types.size_of(primal.value_type), types.I8)
            name = f"{primal.name}.shadow{lane or ''}"
            space = [word for word in primal.prefix if word.startswith("addrspace(")]
            type_ = primal.type
            if space == [f"addrspace({_CONSTANT_SPACE})"]:
                space, type_ = [f"addrspace({_GLOBAL_SPACE})"], types.pointer_type(_GLOBAL_SPACE)
            prefix = ("internal", *space)
            found = GlobalVariable(type_, name, value_type=value_type, prefix=prefix, suffix=("align 16",))
            found.initializer = zero(value_type)
            self.module.globals[name] = found
            self.shadow_globals[primal, lane] = found
        return found
