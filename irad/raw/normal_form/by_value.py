"""Structures that are passed by value in memory become pointers: the callee makes the copy.

Input   a module as its front end made it.
Output  none; the module is rewritten in place.
Method  a function with such a parameter copies what it is given to a local variable and works on that; calls of it pass
        the pointer. Where the address of the function is used, its name goes to a function that takes the structure as
        before and calls it, so that whoever calls through a pointer passes what the other end expects.

    define double @f(ptr byval(%S) %s)        define double @f(ptr %s)
                                                %s.copy = alloca %S
                                                call void @llvm.memcpy…(ptr %s.copy, ptr %s, i64 24, i1 false)
"""

from __future__ import annotations

from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Call, CallSite, replace_uses
from irad.ir.module import Function, Module
from irad.ir.text.parser_types import read_type
from irad.ir.types import Type
from irad.ir.values import Parameter, const_int
from irad.passes.prepare.devirtualise import taken_functions

_BY_VALUE: Final = "byval("
_RESULT: Final = "sret("
_ALIGN: Final = "align "
_MEMORY: Final = ("memory(", "readnone", "readonly", "writeonly", "argmemonly", "speculatable")


def structure_of(attributes: tuple[str, ...], module: Module) -> Type | None:
    """The type of the structure that is passed by value where these attributes stand, or None."""
    return _named_by(_BY_VALUE, attributes, module)


def returned_structure(attributes: tuple[str, ...], module: Module) -> Type | None:
    """The type of the structure that a function writes where a parameter with these attributes leads, or None."""
    return _named_by(_RESULT, attributes, module)


def _named_by(start: str, attributes: tuple[str, ...], module: Module) -> Type | None:
    word = next((word for word in attributes if word.startswith(start)), None)
    return read_type(word[len(start) : -1], module.structs.values()) if word is not None else None


def pass_pointers(module: Module) -> None:
    """Rewrites every function with a body, and the calls of it."""
    taken = taken_functions(module)
    changed = [f for f in module.defined_functions() if any(structure_of(p.attributes, module) for p in f.params)]
    bodies = {function: _set_apart(function) if function in taken else function for function in changed}
    for function in bodies.values():
        function.attributes = _without_memory(function.attributes, module)
        for param in function.params:
            structure = structure_of(param.attributes, module)
            if structure is not None:
                _copy(param, structure, function)
    for function in module.defined_functions():
        for inst in function.instructions():
            if isinstance(inst, CallSite) and isinstance(inst.callee, Function) and inst.callee in bodies:
                inst.set_operand(len(inst.operands) - 1, bodies[inst.callee])
                inst.argument_attributes = tuple(map(_without_copy, inst.argument_attributes))
                inst.attributes = _without_memory(inst.attributes, module)
                if isinstance(inst, Call):
                    inst.tail = None  # a callee may be given a pointer to a local variable now


def _set_apart(function: Function) -> Function:
    """Moves the body of a function to one of its own, which the function then calls."""
    module = function.module
    assert module is not None
    body = module.define(f"irad.body.{function.name}", function.function_type)
    body.blocks, function.blocks = function.blocks, []
    for block in body.blocks:
        block.function = body
    for param, own in zip(function.params, body.params, strict=True):
        own.name, own.attributes = param.name, param.attributes
        replace_uses(param, own)
    body.prefix, body.convention, body.attributes = ("internal",), function.convention, function.attributes
    body.operands, body.metadata = function.operands, function.metadata
    function.operands, function.metadata = (), ()
    build = Builder(function.add_block("entry"))
    call = build.call(body, function.params)
    call.convention = body.convention
    build.ret(call if call.type is not types.VOID else None)
    return body


def _copy(param: Parameter, structure: Type, function: Function) -> None:
    """Works on a copy from here on."""
    align = next((int(word.removeprefix(_ALIGN)) for word in param.attributes if word.startswith(_ALIGN)), None)
    build = Builder.at_start(function.entry)
    copy = build.alloca(structure, align=align or types.alignment_of(structure), name="by.value")
    replace_uses(param, copy)
    size = const_int(types.I64, types.size_of(structure))
    build.intrinsic("llvm.memcpy.p0.p0.i64", types.VOID, [copy, param, size, const_int(types.I1, 0)])
    param.attributes = ()


def _without_copy(attributes: tuple[str, ...]) -> tuple[str, ...]:
    return () if any(word.startswith(_BY_VALUE) for word in attributes) else attributes


def _without_memory(attributes: tuple[str, ...], module: Module) -> tuple[str, ...]:
    """Without what holds no more: the copy was made by the caller, so the function may have read no memory at all."""
    words = (w for word in attributes for w in module.attribute_groups.get(word, (word,)))
    return tuple(word for word in words if not word.startswith(_MEMORY))
