"""A kernel's text for the machine that runs it: one address space, no attributes of NVIDIA's, plain conventions.

    define ptx_kernel void @k(ptr noalias %x) #0        →   define void @k(ptr %x)
    %p = addrspacecast ptr addrspace(3) %s to ptr       →   %s

Shared arrays are found by their address space, so they are given their places first (`arrays.place_shared`).
"""

from __future__ import annotations

from typing import cast

from irad.errors import UnsupportedError
from irad.ir import instructions as ir, types
from irad.ir.module import Function, Module
from irad.ir.types import Type
from irad.ir.values import Constant, ConstantAggregate, ConstantExpression, TrackedValue, Value

_DEBUG = ("llvm.dbg.cu", "llvm.module.flags")


def retarget(module: Module, triple: str, layout: str) -> None:
    """Rewrites a module for another machine.

    Args:
        module: changed in place.
        triple, layout: of the machine.

    Raises:
        UnsupportedError: a parameter of the kernel is a copy of memory (``byval``).
    """
    module.triple, module.layout = triple, layout
    module.attribute_groups.clear()
    module.trailer.clear()
    module.named_metadata = {name: nodes for name, nodes in module.named_metadata.items() if name in _DEBUG}
    for name in ("llvm.used", "llvm.compiler.used"):
        module.globals.pop(name, None)
    one_space = _OneSpace()
    for variable in module.globals.values():
        variable.type = types.PTR
        variable.prefix = tuple(word for word in variable.prefix if not word.startswith("addrspace("))
        variable.value_type = one_space.type_of(variable.value_type)
        if variable.initializer is not None:
            variable.initializer = one_space.value_of(variable.initializer)
    for function in list(module.functions.values()):
        _retarget_function(module, function, one_space)


def _retarget_function(module: Module, function: Function, one_space: _OneSpace) -> None:
    function.convention = None
    function.attributes = function.suffix = function.result_attributes = ()
    function.function_type = one_space.function_type_of(function.function_type)
    for param in function.params:
        if any(word.startswith("byval") for word in param.attributes):
            raise UnsupportedError(
                f"parameter {param.name} of the kernel is a copy of memory",
                "pass an array, or numbers",
                "the executor passes integers, addresses and numbers only",
            )
        param.type, param.attributes = one_space.type_of(param.type), ()
    if function.is_declaration and function.name is not None:
        _rename(module, function)
    for block in function.blocks:
        for inst in list(block.instructions):
            _retarget_instruction(inst, one_space)


def _rename(module: Module, function: Function) -> None:
    """Names of LLVM's intrinsics tell the address spaces of their pointers: ``llvm.memcpy.p0.p3.i64``."""
    name = function.name
    assert name is not None
    if not name.startswith("llvm.") or name.startswith("llvm.nvvm."):
        return
    parts = ["p0" if part[:1] == "p" and part[1:].isdecimal() else part for part in name.split(".")]
    renamed = ".".join(parts)
    if renamed == name:
        return
    del module.functions[name]
    known = module.functions.get(renamed)
    if known is None:
        function.name = renamed
        module.functions[renamed] = function
    else:
        ir.replace_uses(function, known)


def _retarget_instruction(inst: ir.Instruction, one_space: _OneSpace) -> None:
    inst.type = one_space.type_of(inst.type)
    inst.debug_records = ()
    for index, operand in enumerate(inst.operands):
        changed = one_space.value_of(operand)
        if changed is not operand:
            inst.set_operand(index, changed)
    match cast("ir.AnyInstruction", inst):
        case ir.Cast(opcode="addrspacecast") as cast_:
            ir.replace_uses(cast_, cast_.operands[0])
            cast_.erase()
        case ir.GetElementPtr() as address:
            address.source_type = one_space.type_of(address.source_type)
        case ir.Alloca() as local:
            local.allocated_type = one_space.type_of(local.allocated_type)
        case ir.Call() | ir.Invoke() | ir.CallBr() as site:
            site.convention, site.attributes, site.result_attributes = None, (), ()
            site.argument_attributes = ((),) * len(site.arguments)
            site.function_type = one_space.function_type_of(site.function_type)
        case ir.AtomicRMW() | ir.CmpXchg() | ir.Fence() | ir.Load() | ir.Store() as access:
            access.syncscope = None
        case _:
            pass


class _OneSpace:
    """Types and constants with all pointers in one address space."""

    def __init__(self) -> None:
        self._types: dict[Type, Type] = {}

    def type_of(self, type_: Type) -> Type:
        """A type for the target; named structs are changed in place."""
        known = self._types.get(type_)
        if known is None:
            self._types[type_] = type_  # a named struct may contain a pointer to itself
            known = self._types[type_] = self._changed(type_)
        return known

    def function_type_of(self, type_: types.FunctionType) -> types.FunctionType:
        """A type of a function for the target."""
        params = [self.type_of(param) for param in type_.params]
        return types.function_type(self.type_of(type_.result), params, variadic=type_.variadic)

    def _changed(self, type_: Type) -> Type:
        match type_:
            case types.PointerType():
                return types.PTR
            case types.VectorType(count=count, element=element, scalable=scalable):
                return types.vector_type(count, self.type_of(element), scalable=scalable)
            case types.ArrayType(count=count, element=element):
                return types.array_type(count, self.type_of(element))
            case types.StructType(elements=elements, packed=packed):
                return types.struct_type([self.type_of(each) for each in elements], packed=packed)
            case types.NamedStructType(body=types.StructType() as body):
                changed = self.type_of(body)
                assert isinstance(changed, types.StructType)
                type_.body = changed
                return type_
            case _:
                return type_

    def value_of(self, value: Value) -> Value:
        """A constant of the same meaning; values that are not constant are changed at their definition."""
        if isinstance(value, TrackedValue) or not isinstance(value, Constant):
            return value
        value.type = self.type_of(value.type)
        match value:
            case ConstantExpression(opcode="addrspacecast", operands=(inner,)):
                return self.value_of(inner)
            case ConstantExpression(operands=parts):
                value.operands = tuple(map(self.value_of, parts))
                value.source_type = None if value.source_type is None else self.type_of(value.source_type)
            case ConstantAggregate(elements=parts):
                value.elements = tuple(map(self.value_of, parts))
            case _:
                pass
        return value
