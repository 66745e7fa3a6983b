"""What the values of a program are in the source: variables where there are some, else operations with their line.

%total.2.082  total
%.176         element of x
%.184         exp(…) on line 11
%arg.x.2      x.size
%from         which branch ran
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from irad.decompile.naming.symbols import Namer, python_name
from irad.errors import SourceLocation
from irad.ir.debug_info import DebugInfo
from irad.ir.instructions import Binary, CallSite, GetElementPtr, Instruction, Load, Phi
from irad.ir.module import Function
from irad.ir.types import PointerType
from irad.ir.values import ConstantInt, Parameter, Value
from irad.passes.instrument.loop_sources import LoopSources
from irad.passes.memory.objects import MemoryObject, ObjectKind
from irad.passes.unit import Unit
from irad.report import words
from irad.report.source import is_library
from irad.report.variables import Copies, variables_of
from irad.source_text import loop_variable

_PHI: Final = re.compile(r"([A-Za-z_]\w*)\.\d")
_LEAF: Final = re.compile(r"arg\.([A-Za-z_]\w*)\.(\d+)(?:\.(\d+))?")
_ARRAY_PARTS: Final = {"0": "owner of {}", "1": "owner of {}", "2": "{}.size", "3": "{}.itemsize", "4": "{}"}
_NUMBA: Final = frozenset({"num_threads_var", "excinfo", "retptr"})  # variables in code that Numba writes
_REGISTER: Final = re.compile(r"cuda\.(?:\w+\.[xyz]|laneid|warpsize)")
_ENGINE: Final = {
    "from": "which branch ran",
    "slab": "tape of a loop",
    "record": "tape of a loop",
    "iterations": "how often a loop runs",
    "iteration": "number of the iteration",
}
"""Values that the forward sweep makes itself, by the first part of their names."""


@dataclass(eq=False)
class ValueWords:
    """Names the values of one function.

    Attributes:
        place_of: the user's line of a value.
        loops: where loops are.
        parameters: what the parameters of a parallel loop's body are in the function around it.
        numbers: those of them that lead to one number.
    """

    unit: Unit
    info: DebugInfo
    namer: Namer
    copies: Copies
    place_of: Callable[[Value], SourceLocation | None]
    loops: LoopSources
    parameters: Mapping[Parameter, str] = field(default_factory=dict)
    numbers: Collection[Value] = ()
    _known: dict[Value, str] = field(default_factory=dict)

    def of(self, value: Value) -> str:
        """What a value of the primal is."""
        if value not in self._known:
            self._known[value] = self._parameter(value) if isinstance(value, Parameter) else self._made(value)
        return self._known[value]

    def of_engine(self, value: Value) -> str:
        """What a value is that only the forward sweep has."""
        known = _ENGINE.get((value.name or "").partition(".")[0])
        if known is not None:
            return known
        callee = value.callee if isinstance(value, CallSite) else None
        if isinstance(callee, Function) and str(callee.name).startswith("irad."):
            return "memory that the forward sweep keeps"
        origin = value.origin if isinstance(value, Instruction) else None
        while origin is not None and origin.origin is not None:
            origin = origin.origin
        if origin is None or origin.block is None or origin.block.function is not self.unit.function:
            return "a number that the forward sweep computes"
        return f"part of {self.of(origin)}"

    def of_given(self, value: Value) -> str:
        """What is passed to a parallel loop: numbers as they are, pointers as the memory that they lead to."""
        return self._of_objects(value) if isinstance(value.type, PointerType) else self.of(value)

    def _parameter(self, value: Parameter) -> str:
        if value in self.parameters:
            return self.parameters[value]
        name = value.name or "argument"
        leaf = _LEAF.fullmatch(name)
        if leaf is None:
            special = {"retptr": "the result", "excinfo": "the place of exceptions"}
            return special.get(name.partition(".")[0], python_name(name))
        names = {param.name for param in self.unit.function.params}
        if not {f"arg.{leaf[1]}.4", f"arg.{leaf[1]}.5.0", f"arg.{leaf[1]}.6.0"} <= names:
            return leaf[1]
        if leaf[3] is not None:
            return f"{leaf[1]}.{'shape' if leaf[2] == '5' else 'strides'}[{leaf[3]}]"
        return _ARRAY_PARTS.get(leaf[2], "{}").format(leaf[1])

    def _made(self, value: Value) -> str:
        if not isinstance(value, Instruction):
            return "constant"
        chain = self.info.inline_chain(value)
        if chain and not is_library(chain[0].file):
            variables = variables_of(value, str(self.unit.function.name), self.copies, self.info)
            if variables and variables[0] not in _NUMBA:
                return variables[0]
        words_ = self._variable_of_phi(value) or self._variable_of_loop(value) or self._operation(value)
        place = self.place_of(value)
        has_line = place is None or not place.line or " line " in words_ or words_.isidentifier()
        return words_ if has_line or place is None else f"{words_} on line {place.line}"

    def _variable_of_phi(self, value: Instruction) -> str | None:
        """LLVM names a phi by the variable whose values meet there."""
        found = _PHI.match(value.name or "") if isinstance(value, Phi) else None
        return found[1] if found is not None and found[1] in self._variables - _NUMBA else None

    def _variable_of_loop(self, value: Instruction) -> str | None:
        """What counts the iterations of a ``for`` is the loop's variable, or what that is computed from."""
        loop = self.unit.loops.loop_of(value.block) if value.block is not None else None
        if not isinstance(value, Phi) or loop is None or loop.header is not value.block:
            return None
        counts = any(isinstance(step, Binary) and value in step.operands and step.opcode == "add"
                     and any(isinstance(each, ConstantInt) for each in step.operands)
                     for step in value.operands)  # fmt: skip
        place = self.loops.of(loop) if counts else None
        return loop_variable(place.file, place.line) if place is not None else None

    @cached_property
    def _variables(self) -> frozenset[str]:
        return frozenset(name.partition(".")[0] for found in self.copies.variables.values() for name in found)

    def _operation(self, value: Instruction) -> str:
        match value:
            case Load():
                objects = self.unit.points_to.of(value.operands[0])
                if objects and all(item.value in self.numbers for item in objects):
                    return self._behind(value)
                is_array = all(item.kind is ObjectKind.HEADER for item in objects)
                if isinstance(value.type, PointerType):
                    return self._behind(value) if is_array else f"pointer in {self._behind(value)}"
                return f"element of {self._behind(value)}"
            case CallSite():
                name = words.callee_name(value, self.unit, self.namer)
                if _REGISTER.fullmatch(name):
                    return name
                return f"result of {name}" if " " in name else f"{name}(…)"
            case GetElementPtr():
                return f"place in {self._behind(value)}"
            case Phi():
                loop = self.unit.loops.loop_of(value.block) if value.block is not None else None
                carried = loop is not None and loop.header is value.block
                return "value from the iteration before" if carried else "value chosen by a branch"
            case _:
                return words.describe(value, self.unit, self.namer)

    def _behind(self, value: Instruction) -> str:
        """The memory that a load or an address is of."""
        return self._of_objects(value.operands[0])

    def _of_objects(self, pointer: Value) -> str:
        objects = self.unit.points_to.of(pointer)
        names = dict.fromkeys(map(self._object, objects[:2]))
        return " or ".join(names) if 0 < len(objects) <= 2 else "memory"

    def _object(self, item: MemoryObject) -> str:
        value = item.value
        if item.kind is ObjectKind.ARGUMENT and isinstance(value, Parameter):
            return self._parameter(value)
        if not isinstance(value, Instruction):
            return words.plain(str(item))
        place = self.place_of(value)
        what = "a local variable" if item.kind is ObjectKind.LOCAL else "the array made"
        return (
            f"{what} on line {place.line}"
            if place is not None and place.line
            else what.replace(" made", " that is made")
        )
