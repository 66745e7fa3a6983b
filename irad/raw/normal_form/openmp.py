"""Parallel regions of OpenMP, as clang compiles them, run with a team of one thread.

Input   a module as its front end made it.
Output  none; the module is rewritten in place.
Method  OpenMP lets a region run with any number of threads. With one, launching a region is a call of its body, a
        share of a loop is all of it, and barriers, critical sections and atomic updates have nothing to wait for. So
        the run-time library's functions get the answers that they give to a team of one, and what is left is an
        ordinary program, whose order of additions is that of the source.
Limit   tasks, teams of devices and thread-private variables keep their calls, which are refused by name.

    call void (…) @__kmpc_fork_call(ptr @loc, i32 1, ptr @body, ptr %x)      call void @body(ptr %0, ptr %0, ptr %x)
    call i32 @__kmpc_single(ptr @loc, i32 %thread)                           1
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import (
    Alloca,
    AtomicRMW,
    CallSite,
    Cast,
    CmpXchg,
    ExtractValue,
    Fence,
    Load,
    Phi,
    Store,
)
from irad.ir.module import Function, Module
from irad.ir.types import FloatType, IntType
from irad.ir.values import ConstantInt, Value, const_int
from irad.raw.normal_form.replacement import function_of, instead_of, replace

_FORK: Final = "__kmpc_fork_call"
_ANSWERS: Final[Mapping[str, int]] = {
    "__kmpc_global_thread_num": 0,
    "__kmpc_single": 1,
    "__kmpc_master": 1,
    "__kmpc_reduce": 1,  # combine your part with the result, and call __kmpc_end_reduce
    "__kmpc_reduce_nowait": 1,
    "__kmpc_cancel_barrier": 0,
    "omp_get_thread_num": 0,
    "omp_get_num_threads": 1,
    "omp_get_max_threads": 1,
    "omp_get_num_procs": 1,
    "omp_in_parallel": 0,
    "omp_get_level": 0,
}
_NOTHING: Final = frozenset(
    {
        *("__kmpc_barrier", "__kmpc_flush", "__kmpc_for_static_fini", "__kmpc_end_single", "__kmpc_end_master"),
        *("__kmpc_critical", "__kmpc_critical_with_hint", "__kmpc_end_critical", "__kmpc_end_masked"),
        *("__kmpc_ordered", "__kmpc_end_ordered", "__kmpc_end_reduce", "__kmpc_end_reduce_nowait"),
        *("__kmpc_push_num_threads", "__kmpc_push_proc_bind", "__kmpc_serialized_parallel"),
        *("__kmpc_end_serialized_parallel", "__kmpc_dispatch_deinit", "__kmpc_dispatch_fini_4"),
        *("__kmpc_dispatch_fini_4u", "__kmpc_dispatch_fini_8", "__kmpc_dispatch_fini_8u"),
        *("omp_set_num_threads", "omp_set_dynamic"),
    }
)
_STATIC: Final = re.compile(r"__kmpc_for_static_init_[48]u?")
_DISPATCH_INIT: Final = re.compile(r"__kmpc_dispatch_init_[48](u?)")
_DISPATCH_NEXT: Final = re.compile(r"__kmpc_dispatch_next_[48]u?")


def run_with_one_thread(module: Module) -> None:
    """Rewrites every function of a module that has parallel regions."""
    if not any((name or "").startswith("__kmpc_") for name in module.functions):
        return
    for function in module.defined_functions():
        _rewrite(function)


def _rewrite(function: Function) -> None:
    shares: dict[str, Alloca] = {}
    for inst in list(function.instructions()):
        match inst:
            case CallSite(callee=Function(name=str(name), is_declaration=True)):
                _rewrite_call(inst, name, shares)
            case AtomicRMW() if (combine := _combination(inst)) is not None:
                build = instead_of(inst)
                old = build.load(inst.type, inst.operands[0], align=inst.align)
                build.store(combine(build, old, inst.operands[1]), inst.operands[0], align=inst.align)
                replace(inst, old)
            case CmpXchg() if _is_update(inst):
                _succeed(inst)
            case Load() | Store():
                inst.ordering = inst.syncscope = None
            case Fence():
                inst.erase()
            case _:
                pass


def _rewrite_call(call: CallSite, name: str, shares: dict[str, Alloca]) -> None:
    arguments = call.arguments
    if name == _FORK:
        _call_body(call)
    elif name in _NOTHING:
        call.erase()
    elif name == "__kmpc_masked":
        is_first = instead_of(call).icmp("eq", arguments[2], const_int(types.I32, 0))
        replace(call, instead_of(call).zext(is_first, call.type))
    elif name in _ANSWERS and isinstance(call.type, IntType):
        replace(call, const_int(call.type, _ANSWERS[name]))
    elif _STATIC.fullmatch(name):
        _give_all(call)
    elif (found := _DISPATCH_INIT.fullmatch(name)) is not None:
        _keep_share(call, shares, is_signed=not found[1])
    elif _DISPATCH_NEXT.fullmatch(name) and shares:
        _hand_out_share(call, shares)


# ------------------------------------------------------------------------------------------------ regions and loops


def _call_body(call: CallSite) -> None:
    """A call of the region's body by the one thread, whose number is 0."""
    _, _, body, *given = call.arguments
    if not isinstance(body, Function):
        return
    head = Builder.at_start(function_of(call).entry)
    number = head.alloca(types.I32, align=4)
    build = instead_of(call)
    build.store(const_int(types.I32, 0), number, align=4)
    build.call(body, [number, number, *given])
    call.erase()


def _give_all(call: CallSite) -> None:
    """A static schedule: the thread keeps the bounds that it came with, and has the last iteration."""
    _, _, _, is_last, lower, upper, stride, step, _ = call.arguments
    build = instead_of(call)
    build.store(const_int(types.I32, 1), is_last, align=4)
    first, last = build.load(step.type, lower), build.load(step.type, upper)
    one = const_int(step.type, 1)
    goes_up = build.icmp("sgt", step, const_int(step.type, 0))
    up, down = (build.add(build.sub(a, b), one) for a, b in ((last, first), (first, last)))
    build.store(build.select(goes_up, up, build.sub(const_int(step.type, 0), down)), stride)
    call.erase()


def _keep_share(call: CallSite, shares: dict[str, Alloca], *, is_signed: bool) -> None:
    """Any other schedule: all iterations are one share, which is assigned once, if there are any."""
    _, _, _, lower, upper, step, _ = call.arguments
    if not shares:
        head = Builder.at_start(function_of(call).entry)
        shares.update({name: head.alloca(lower.type) for name in ("lower", "upper", "step")})
        shares["left"] = head.alloca(types.I1)
    build = instead_of(call)
    goes_up = build.icmp("sgt", step, const_int(step.type, 0))
    prefix = "s" if is_signed else "u"
    left = build.select(goes_up, build.icmp(f"{prefix}le", lower, upper), build.icmp(f"{prefix}ge", lower, upper))
    for name, value in (("lower", lower), ("upper", upper), ("step", step), ("left", left)):
        build.store(value, shares[name])
    call.erase()


def _hand_out_share(call: CallSite, shares: Mapping[str, Alloca]) -> None:
    """The share, unless it has been assigned: then the places for its bounds are not read."""
    _, _, is_last, lower, upper, stride = call.arguments
    build = instead_of(call)
    left = build.load(types.I1, shares["left"])
    build.store(const_int(types.I32, 1), is_last, align=4)
    for name, place in (("lower", lower), ("upper", upper), ("step", stride)):
        kind = shares[name].allocated_type
        build.store(build.load(kind, shares[name]), place)
    build.store(const_int(types.I1, 0), shares["left"])
    replace(call, build.zext(left, call.type))


# ------------------------------------------------------------------------------------------------ atomic updates


def _combination(inst: AtomicRMW) -> Callable[[Builder, Value, Value], Value] | None:
    """Operation of an atomic update on the old value and its operand; None for what is not arithmetic on it."""
    opcode = inst.opcode
    if opcode == "xchg":
        return lambda build, old, new: new
    if isinstance(inst.type, FloatType) and opcode in ("fadd", "fsub"):
        return lambda build, old, new: build.binary(opcode, old, new)
    if isinstance(inst.type, IntType) and opcode in ("add", "sub", "and", "or", "xor"):
        return lambda build, old, new: build.binary(opcode, old, new)
    return None


def _is_update(inst: CmpXchg) -> bool:
    """True if an exchange is that of an atomic update: it expects what was loaded before, or what it met last time."""
    expected, pointer = inst.operands[1], inst.operands[0]
    if not isinstance(expected, Phi):
        return False
    loads = [v for v in expected.operands if isinstance(v, Load) and _plain(v.operands[0]) is _plain(pointer)]
    again = [v for v in expected.operands if isinstance(v, ExtractValue) and v.operands[0] is inst]
    return len(loads) == 1 and len(loads) + len(again) == len(expected.operands)


def _plain(pointer: Value) -> Value:
    """A pointer without casts: each access has one of its own where pointers have types."""
    while isinstance(pointer, Cast) and pointer.opcode == "bitcast":
        pointer = pointer.operands[0]
    return pointer


def _succeed(inst: CmpXchg) -> None:
    """No other thread writes, so memory is as expected."""
    pointer, expected, new = inst.operands
    build = instead_of(inst)
    build.store(new, pointer, align=inst.align)
    for user in list(inst.users):
        assert isinstance(user, ExtractValue)
        replace(user, expected if user.indices == (0,) else ConstantInt(types.I1, None, 1))
    inst.erase()
