"""Shared memory as arguments: the engine knows what an argument may point to, and gives it a shadow.

@s = internal addrspace(3) global [64 x double] undef        ptr addrspace(3) %s, an argument of the entry
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from irad.backend.cuda.kernel import DYNAMIC_SHARED
from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Instruction, Phi, replace_operand
from irad.ir.module import Function, Module
from irad.ir.types import pointer_type
from irad.ir.values import ConstantExpression, GlobalVariable, Parameter, Value
from irad.passes.memory.record_layouts import scalars
from irad.records import dataclass
from irad.ruleset.memory_type import MemoryType

SPACE: Final = pointer_type(3)


@dataclass(frozen=True, slots=True)
class SharedArray:
    """An array in the shared memory of a block.

    Attributes:
        name: symbol of the variable.
        type: its element type; bytes, if it is the dynamic one.
        align: of the variable, in bytes.
    """

    name: str
    type: types.Type
    align: str

    @property
    def is_dynamic(self) -> bool:
        """True if the launch says how large it is."""
        return self.name == DYNAMIC_SHARED

    @property
    def memory(self) -> MemoryType | None:
        """Content of the memory, None if that is not known."""
        if self.is_dynamic:
            return None
        element = self.type.element if isinstance(self.type, types.ArrayType) else self.type
        # For Numba halves are integers and records are bytes: then accesses show what there is.
        if element is types.I16 or (isinstance(element, types.ArrayType) and element.element is types.I8):
            return None
        return MemoryType(types.size_of(element), tuple((offset, str(kind)) for offset, kind in scalars(element)))


def shared_arrays(module: Module) -> list[SharedArray]:
    """The variables of a module in shared memory that are used."""
    found = [each for each in module.globals.values() if each.type is SPACE]
    used = {item for function in module.defined_functions() for item in _used(function)}
    return [SharedArray(str(each.name), each.value_type, _alignment(each)) for each in found if each in used]


def _alignment(variable: GlobalVariable) -> str:
    return next((word for word in variable.suffix if word.startswith("align")), "align 16")


def _used(function: Function) -> Iterator[GlobalVariable]:
    for inst in function.instructions():
        for operand in inst.operands:
            yield from _variables(operand)


def _variables(value: Value) -> Iterator[GlobalVariable]:
    if isinstance(value, GlobalVariable):
        yield value
    elif isinstance(value, ConstantExpression):
        for part in value.operands:
            yield from _variables(part)


def pass_shared(function: Function, arrays: list[SharedArray]) -> list[Parameter]:
    """Makes a function take its shared arrays as arguments, after the others; returns the new parameters."""
    module = function.module
    assert module is not None
    given: dict[Value, Value] = {}
    added: list[Parameter] = []
    for array in arrays:
        param = Parameter(SPACE, array.name, attributes=("nonnull",))
        given[module.globals.pop(array.name)] = param
        added.append(param)
    function.params = [*function.params, *added]
    function.function_type = types.function_type(
        function.function_type.result, [param.type for param in function.params]
    )
    for inst in list(function.instructions()):
        for index, operand in enumerate(inst.operands):
            if any(item in given for item in _variables(operand)):
                replace_operand(inst, index, _in_code(_place(inst, index), operand, given))
    return added


def _place(inst: Instruction, index: int) -> Builder:
    """Builder at a place where an operand can be computed."""
    if isinstance(inst, Phi):
        return Builder.before(inst.blocks[index].terminator)
    return Builder.before(inst)


def _in_code(build: Builder, value: Value, given: dict[Value, Value]) -> Value:
    """A constant with addresses of shared arrays, as instructions."""
    if value in given:
        return given[value]
    if not isinstance(value, ConstantExpression) or not any(item in given for item in _variables(value)):
        return value
    operands = [_in_code(build, part, given) for part in value.operands]
    if value.opcode == "getelementptr":
        assert value.source_type is not None
        return build.gep(value.source_type, operands[0], operands[1:], value.flags)
    return build.cast(value.opcode, operands[0], value.type)
