"""Calls of the C library that are variants of other calls get the plain form, which has a rule.

Input   a module as its front end made it.
Output  none; the module is rewritten in place.
Method  copies and fills that check the size of their target (`-D_FORTIFY_SOURCE`) become a branch and the plain copy;
        absolute value and angle of a complex number the functions of two numbers that they are, however a complex
        number is passed; `posix_memalign` checks its arguments, calls `memalign` and stores the address. A request for
        the address of a thread-local variable becomes the variable.

    %r = call float @cabsf(<2 x float> %z)        %r = call float @hypotf(float %re, float %im)
"""

from __future__ import annotations

from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Call
from irad.ir.module import Function, Module
from irad.ir.types import VOID, ArrayType, FloatType, VectorType, function_type
from irad.ir.values import ConstantNull, Value, const_int
from irad.raw.normal_form.replacement import branch_before, element_of, instead_of, on_behalf_of, replace

_CHECKED: Final = {"__memcpy_chk": "memcpy", "__memmove_chk": "memmove", "__memset_chk": "memset"}
_OF_PARTS: Final = {"cabs": "hypot", "cabsf": "hypotf", "carg": "atan2", "cargf": "atan2f"}
_FAILURE: Final = "__chk_fail"
_THREAD_LOCAL: Final = "llvm.threadlocal.address."
_EINVAL, _ENOMEM, _WORD = 22, 12, 8


def plain_library_calls(module: Module) -> None:
    """Rewrites the calls of every function."""
    for function in module.defined_functions():
        for inst in list(function.instructions()):
            callee = inst.callee if isinstance(inst, Call) else None
            if isinstance(inst, Call) and isinstance(callee, Function) and callee.is_declaration:
                if callee.name in _CHECKED and len(inst.arguments) == 4:
                    _check_and_copy(inst, _CHECKED[callee.name])
                elif callee.name in _OF_PARTS and isinstance(inst.type, FloatType):
                    _call_with_parts(inst, _OF_PARTS[callee.name])
                elif (callee.name or "").startswith(_THREAD_LOCAL):
                    replace(inst, inst.arguments[0])
                elif callee.name == "posix_memalign" and len(inst.arguments) == 3:
                    _allocate_aligned(inst)


def _check_and_copy(call: Call, symbol: str) -> None:
    """Ends the process as the library does if more is copied than there is room for."""
    *plain, limit = call.arguments
    function, before, rest = branch_before(call)
    failure = function.add_block("overflow", after=before)
    build = on_behalf_of(call, Builder(before))
    build.cond_br(build.icmp("ugt", plain[2], limit), failure, rest)
    stop = on_behalf_of(call, Builder(failure))
    stop.call(stop.module.declare(_FAILURE, function_type(VOID, []), ("noreturn",)), [])
    stop.unreachable()
    _call_instead(call, instead_of(call), symbol, plain)


def _allocate_aligned(call: Call) -> None:
    """Returns an error where the alignment is not a power of two, or memory has run out, as the library does."""
    place, alignment, size = call.arguments
    function, before, rest = branch_before(call)
    allocate, keep = (function.add_block(name, after=before) for name in ("allocate", "keep"))
    none, word = const_int(types.I64, 0), const_int(types.I64, _WORD)
    build = on_behalf_of(call, Builder(before))
    is_power = build.icmp("eq", build.and_(alignment, build.sub(alignment, const_int(types.I64, 1))), none)
    build.cond_br(build.and_(is_power, build.icmp("uge", alignment, word)), allocate, rest)
    build = on_behalf_of(call, Builder(allocate))
    memalign = build.module.declare("memalign", function_type(types.PTR, [types.I64, types.I64]))
    memory = build.call(memalign, [alignment, size])
    build.cond_br(build.icmp("eq", memory, ConstantNull(types.PTR)), rest, keep)
    build = on_behalf_of(call, Builder(keep))
    build.store(memory, place, align=_WORD)
    build.br(rest)
    codes = [(_EINVAL, before), (_ENOMEM, allocate), (0, keep)]
    status = Builder.at_start(rest).phi(call.type, [(const_int(call.type, code), block) for code, block in codes])
    replace(call, status)


def _call_with_parts(call: Call, symbol: str) -> None:
    build, arguments = instead_of(call), call.arguments
    parts = arguments if len(arguments) == 2 else _parts(build, arguments[0])
    if [part.type for part in parts] == [call.type] * 2:
        _call_instead(call, build, symbol, parts if symbol.startswith("hypot") else parts[::-1])


def _parts(build: Builder, number: Value) -> list[Value]:
    """The real and the imaginary part of a complex number that is one argument."""
    match number.type:
        case VectorType(count=2):
            return [element_of(build, number, index) for index in range(2)]
        case ArrayType(count=2):
            return [build.extract_value(number, index) for index in range(2)]
        case _:
            return []


def _call_instead(call: Call, build: Builder, symbol: str, arguments: list[Value]) -> None:
    type_ = function_type(call.type, [argument.type for argument in arguments])
    replace(call, build.call(build.module.declare(symbol, type_), arguments))
