"""Brings a module into the form that the generators expect.

The front end has already made LLVM lower switches, give every function one return and bring loops into canonical form
(preheader, one latch, dedicated exits, loop-closed values). What is left is to take away every promise that holds for
the primal but not for its derivative: there, argument memory is read again later, and shadows are written.

Removed: `tail` markers; alias scopes, ranges and the like on instructions; attributes inferred for functions,
parameters, results and calls. Kept: `noalias` of parameters (the return and exception slots of Numba's convention),
`noinline`, `alwaysinline`, `cold`, `optsize`, calling conventions, what a call through a pointer says of how arguments
are passed, what the front end says of a call (`ELSEWHERE`), line numbers. Phis and selects of aggregates are split, and
choices that are the same in all iterations of a loop are made independent of the iteration before.

LLVM writes ``x ** 0.5`` as the absolute value of the square root, whose sign matters for the root of -0 only. At 0 that
would put the kink of the absolute value after a root of infinite slope; a sum with zero has the same value, no kink.

    %r = call double @llvm.fabs.f64(double %root)        %r = fadd double %root, 0.0
"""

from __future__ import annotations

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import Call, CallSite, Instruction, replace_uses
from irad.ir.module import Function, Module
from irad.ir.types import PointerType
from irad.ir.values import Value, zero
from irad.passes.callees import ELSEWHERE

_KEPT_METADATA = ("dbg",)
# What the author of a function asked for; all else LLVM has inferred from the body of the primal.
_KEPT_FUNCTION_ATTRIBUTES = ("noinline", "alwaysinline", "cold", "optsize")
_PASSING = ("signext", "zeroext", "inreg", "byval(", "sret(", "align ")


def prepare(module: Module) -> None:
    """Prepares every function with a body."""
    for function in module.defined_functions():
        prepare_function(function, module)
    for node in module.metadata.values():  # `!callees` of calls through pointers name functions that may be gone later
        if node.text.startswith("!{") and "ptr @" in node.text:
            node.text = "!{}"


def prepare_function(function: Function, module: Module) -> None:
    """Prepares one function."""
    words = _expand(function.attributes, module)
    function.attributes = tuple(w for w in _KEPT_FUNCTION_ATTRIBUTES if w in words)
    function.result_attributes = ()
    for param in function.params:
        # Promises such as readonly hold for the primal alone: a derivative reads memory later, and writes to shadows.
        param.attributes = ("noalias",) if "noalias" in param.attributes else ()
    for inst in list(function.instructions()):
        _prepare_instruction(inst, module)
        if isinstance(inst, Call) and _is_call(inst, "llvm.mem"):
            _make_generic(inst, module)
        if _is_call(inst, "llvm.fabs.") and _is_call(inst.operands[0], "llvm.sqrt."):
            total = Builder.before(inst).fadd(inst.operands[0], zero(inst.type))
            replace_uses(inst, total)
            inst.erase()


def _make_generic(call: Call, module: Module) -> None:
    """Lets a fill or copy of memory in other address spaces take generic pointers, as the rules for it do."""
    assert isinstance(call.callee, Function)
    given = [types.PTR if isinstance(t, PointerType) else t for t in call.function_type.params]
    if tuple(given) == call.function_type.params:
        return
    stem, *kinds = str(call.callee.name).removeprefix("llvm.").split(".")
    name = ".".join(("llvm", stem, *("p0" if kind.startswith("p") else kind for kind in kinds)))
    build = Builder.before(call)
    arguments = [build.cast("addrspacecast", a, t) for a, t in zip(call.arguments, given, strict=True)]
    call.function_type = types.function_type(types.VOID, given)
    call.set_operands([*arguments, module.declare(name, call.function_type)])


def _prepare_instruction(inst: Instruction, module: Module) -> None:
    if inst.metadata:
        inst.metadata = {kind: node for kind, node in inst.metadata.items() if kind in _KEPT_METADATA}
    # They name locals by number, and numbers change with each unnamed value that a pass adds.
    inst.debug_records = ()
    if isinstance(inst, CallSite):
        is_direct = isinstance(inst.callee, Function)  # then the callee says it
        inst.attributes = (ELSEWHERE,) if ELSEWHERE in _expand(inst.attributes, module) else ()
        inst.result_attributes = () if is_direct else _passing(inst.result_attributes)
        inst.argument_attributes = () if is_direct else tuple(map(_passing, inst.argument_attributes))
        if isinstance(inst, Call):
            # A tail call must not use memory of its caller's frame, but the derivative's calls are given some.
            inst.tail = None


def _passing(attributes: tuple[str, ...]) -> tuple[str, ...]:
    """The attributes that decide in which registers, and how wide, a value is passed."""
    return tuple(word for word in attributes if word.startswith(_PASSING))


def _is_call(value: Value, prefix: str) -> bool:
    return isinstance(value, Call) and (value.callee.name or "").startswith(prefix)


def _expand(attributes: tuple[str, ...], module: Module) -> frozenset[str]:
    words: set[str] = set()
    for word in attributes:
        words.update(module.attribute_groups.get(word, (word,)))
    return frozenset(words)
