"""Operations that are calls with a rule while a kernel is differentiated, and other code before and after.

    %old = atomicrmw fadd ptr %y, double %v monotonic        call void @irad.cuda.atomic.add.f64(ptr %y, double %v)
    define double @irad.cuda.linear.1.f64(…) { ret %v }      declare double @irad.cuda.linear.1.f64(…)

An atomic operation whose result is used stays as it is: the engine refuses it where it updates active memory. What
device functions with a rule become (`irad.rules.cuda`, `ruled`) has a body but in between; the functions of
their rules are set aside.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import AtomicRMW, CallSite
from irad.ir.module import Function, Module
from irad.ir.text.parser import parse_module
from irad.ir.text.printer import print_module
from irad.ir.types import VOID, function_type
from irad.rules.cuda import ATOMIC_ADD, ATOMIC_SUBTRACT, LINEAR, RULE_PART, RULED, STOP, is_subtraction
from irad.ruleset.expr import define_helper
from irad.ruleset.guards import GUARDS, guarded
from irad.ruleset.shortcut_slopes import WITH_RULES
from irad.ruleset.symbols import helper_symbol, symbols_of_function

_OPERATIONS: Final = {"fadd": ATOMIC_ADD, "fsub": ATOMIC_SUBTRACT}
_SUFFIXES: Final[Mapping[types.Type, str]] = {types.FLOAT: "f32", types.DOUBLE: "f64"}
_STOPPED: Final = "irad.stop.f"  # f64 or f32: what `irad.stop_gradient` calls
_PURE: Final = ("nounwind", "willreturn", "speculatable", "memory(none)")
_ATTRIBUTES: Final = ("nounwind", "memory(argmem: readwrite)")


def call_atomics(module: Module) -> None:
    """Makes calls of atomic sums."""
    for function in module.defined_functions():
        for inst in list(function.instructions()):
            if isinstance(inst, AtomicRMW) and not inst.users:
                _make_call(module, inst)


def drop_bodies(module: Module) -> None:
    """Makes declarations of the operations that stand for rules of users."""
    for function in module.defined_functions():
        if _stands_for_rule(function) or function.name in _shortcuts():
            drop_body(function)
            function.attributes = _PURE


def give_bodies(module: Module) -> None:
    """Defines them again: each gives its first argument, a guard what it guards, a shortcut its value."""
    for symbol, function in list(module.functions.items()):
        if symbol in _shortcuts() and function.is_declaration:
            define_helper(module, *_shortcuts()[symbol], len(function.params))
        elif _stands_for_rule(function) and function.is_declaration:
            function.prefix, function.attributes = ("internal",), ("alwaysinline",)
            build = Builder(function.add_block("entry"))
            build.ret(guarded(build, *function.params) if _is_guard(function) else function.params[0])


@cache
def _shortcuts() -> dict[str, tuple[str, types.FloatType]]:
    """Marks that values of Numba's shortcuts pass through (`irad.rules.shortcuts`), and derivatives, by symbol."""
    return {helper_symbol(name, type_): (name, type_) for name in WITH_RULES for _, type_ in symbols_of_function(name)}


def set_aside(module: Module) -> str:
    """Leaves declarations of the functions of rules; gives a module that defines them, or nothing."""
    if not any(is_part(function) for function in module.defined_functions()):
        return ""
    apart = parse_module(print_module(module))
    for function in list(apart.defined_functions()):
        function.prefix = ()
        if not is_part(function):
            drop_body(function)
            del apart.functions[str(function.name)]
    for function in module.defined_functions():
        if is_part(function):
            drop_body(function)
            function.attributes = ("nounwind",)
    return print_module(apart)


def end_stops(module: Module) -> None:
    """Lets derivatives flow through partial derivatives again, in a derivative that is differentiated itself.

    In the operation `linear` they stay stopped: its value has the derivative that the rule says.
    """
    for function in module.defined_functions():
        for inst in list(function.instructions()):
            if not isinstance(inst, CallSite) or not _is_named(inst, STOP):
                continue
            for user in list(inst.users):
                if isinstance(user, CallSite) and _is_named(user, LINEAR):
                    continue
                for index, operand in enumerate(user.operands):
                    if operand is inst:
                        user.set_operand(index, inst.arguments[0])


def _is_named(call: CallSite, start: str) -> bool:
    return isinstance(call.callee, Function) and str(call.callee.name).startswith(start)


def is_part(function: Function) -> bool:
    """True if it is a function of a rule."""
    return str(function.name).startswith(RULE_PART)


def drop_body(function: Function) -> None:
    """Makes a declaration of a function."""
    for inst in list(function.instructions()):
        inst.set_operands(())
    function.blocks.clear()
    function.prefix, function.suffix, function.convention, function.metadata = (), (), None, ()


def _stands_for_rule(function: Function) -> bool:
    return str(function.name).startswith((LINEAR, STOP, RULED, _STOPPED)) or _is_guard(function)


def _is_guard(function: Function) -> bool:
    """True if it is the guard of a product in a derivative that may be differentiated itself."""
    return str(function.name) in GUARDS.values()


def _make_call(module: Module, inst: AtomicRMW) -> None:
    pointer, amount = inst.operands
    name, suffix = _OPERATIONS.get(inst.opcode), _SUFFIXES.get(amount.type)
    if name is None or suffix is None:
        return
    build = Builder.before(inst)
    if pointer.type is not types.PTR:  # rules take generic pointers
        pointer = build.cast("addrspacecast", pointer, types.PTR)
    callee = module.declare(f"{name}.{suffix}", function_type(VOID, [types.PTR, amount.type]), _ATTRIBUTES)
    build.call(callee, [pointer, amount])
    inst.erase()


def restore_atomics(module: Module) -> None:
    """Makes atomic sums of calls again."""
    for function in module.defined_functions():
        for inst in list(function.instructions()):
            if isinstance(inst, CallSite) and _is_operation(inst.callee):
                pointer, amount = inst.arguments
                opcode = "fsub" if is_subtraction(str(inst.callee.name)) else "fadd"
                Builder.before(inst).atomic(opcode, amount, pointer)
                inst.erase()
    for name, declared in list(module.functions.items()):
        if _is_operation(declared) and declared.is_declaration:
            del module.functions[name]


def _is_operation(callee: object) -> bool:
    return isinstance(callee, Function) and str(callee.name).startswith((ATOMIC_ADD, ATOMIC_SUBTRACT))
