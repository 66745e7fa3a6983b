"""Errors in terms of the program's language: the line if the module has debug information, else the operation in words.

Remedies that name Python functions name what C has instead.
"""

from __future__ import annotations

from typing import Final

from irad.driver import locate
from irad.errors import IradError, UnsupportedProgram
from irad.ir.debug_info import DebugInfo
from irad.ir.instructions import CallSite, Instruction, LandingPad, Load, Store
from irad.ir.module import Function, Module
from irad.passes.analysis.refused.memory import ARRAY_REMEDY, CONTAINER_REMEDY
from irad.raw.program import ENTRY, C

_REPORT: Final = "report it with the function"
_SHADOW: Final = "mark that argument enzyme_dup, and pass its shadow after it"
_BY_HAND: Final = "__enzyme_register_gradient_f, which names the two functions of its derivative"
_GRADIENT: Final = "__irad_autodiff"
_FORWARD_RULE: Final = "irad.rules.forward("
_BATCHED: Final = "batched=True"
_IN_C: Final = (
    (ARRAY_REMEDY, _SHADOW),
    (CONTAINER_REMEDY, _SHADOW),
    ("irad.rules.easy_rule, or irad.rules.augmented_primal and reverse", _BY_HAND),
    ("irad.rules.augmented_primal and reverse", _BY_HAND),
    ("irad.rules.easy_rule", _BY_HAND),
    ("irad.rules.inactive", "__enzyme_inactivefn"),
    ("irad.grad, irad.vjp or irad.autodiff(irad.Reverse, …)", _GRADIENT),
    (
        "(a) pass a pointer to it, or (b) call the Python function of a numba.cfunc, compiled by numba.njit",
        "pass a pointer",
    ),
    (f"(a) {_REPORT} or (b) take the value out of the derivative: irad.stop_gradient(x)", _REPORT),
)
_NO_RULE: Final = "no derivative rule for a call to "
_ASSEMBLY: Final = (
    "inline assembly has no derivative",
    "irad does not look into assembly",
    f"(a) write it in C, with a builtin function for instance or (b) put it in a function of its own, and supply its "
    f"derivative: {_BY_HAND}",
)
_OPENMP: Final = {
    "__kmpc_omp_task": "tasks",
    "__kmpc_task": "tasks",
    "__kmpc_fork_teams": "teams",
    "__kmpc_threadprivate": "threadprivate variables",
    "__tgt_": "devices",
    "__kmpc_": "this construct",
}
"""Purpose of calls of OpenMP's run-time library, by the beginning of their names."""
_HINT: Final = "compile with -g to see the line"


def name_places(error: IradError, module: Module, primal: str | None = None, *, is_forward: bool = False) -> None:
    """Gives an error, and those it lists, its place.

    Args:
        error: with its instruction, of this module or of one made from it.
        module: the module.
        primal: the function that is differentiated.
        is_forward: whether it is in forward mode, for which hand-written derivatives are of no use.
    """
    if isinstance(error, UnsupportedProgram):
        error.is_cut = False  # nothing else would show the rest
    for item in error.errors if isinstance(error, UnsupportedProgram) else (error,):
        _name_callee(item)
        if _FORWARD_RULE in item.remedy:  # C has no rules for forward mode
            item.remedy = f"use reverse mode: {_GRADIENT}"
        if _BATCHED in item.remedy:  # nor has it any for several directions
            item.remedy = "leave out enzyme_width, and write one call for each gradient"
        for python, raw in _IN_C:
            item.remedy = item.remedy.replace(python, raw)
        if is_forward:
            item.remedy = item.remedy.replace(_BY_HAND, f"{_BY_HAND}, in reverse mode: {_GRADIENT}")
        inst = item.instruction
        if item.location is not None or not isinstance(inst, Instruction):
            continue
        home = inst.block.function.module if inst.block is not None and inst.block.function is not None else None
        item.instruction = _with_line(home or module, inst)
        locate(item, home or module, C)
        item.detail = item.detail or _in_words(inst, primal)


def _name_callee(error: IradError) -> None:
    """Says what a call without rule is, where it is not a function that could have one."""
    callee = error.problem.removeprefix(_NO_RULE)
    if callee == "inline assembly":
        error.problem, error.reason, error.remedy = _ASSEMBLY
        error.focus = None
    construct = next((words for start, words in _OPENMP.items() if callee.startswith(start)), None)
    if callee != error.problem and construct is not None:
        error.problem = f"irad does not support {construct} of OpenMP"
        error.reason = "irad follows parallel regions and loops, sections, single, critical, atomic and reductions"
        error.remedy = (
            "(a) write it with one of these or (b) compile the file without -fopenmp: a derivative runs in one thread "
            "in any case"
        )
        error.focus = None


def _with_line(module: Module, inst: Instruction) -> Instruction:
    """The instruction, or the next one that has a line: landing pads have none."""
    debug = DebugInfo(module)
    pending, seen = [inst.block], {inst.block}
    while pending:
        block = pending.pop(0)
        if block is None:
            continue
        following = block.instructions[block.instructions.index(inst) :] if inst.block is block else block.instructions
        for each in following:
            chain = debug.inline_chain(each)
            if chain and chain[0].line:
                return each
        pending += [target for target in block.successors if target not in seen]
        seen.update(block.successors)
    return inst


def _in_words(inst: Instruction, primal: str | None) -> str:
    function = inst.block.function.name if inst.block is not None and inst.block.function is not None else None
    where = primal if function in (None, ENTRY) else function
    return f"{_operation(inst)} in {where} ({_HINT})" if where is not None else f"{_operation(inst)} ({_HINT})"


def _operation(inst: Instruction) -> str:
    match inst:
        case CallSite(callee=Function(name=str(name))):
            return f"a call of {name}"
        case CallSite():
            return "a call through a pointer"
        case Load():
            return f"a load of {inst.type}"
        case Store(operands=[value, _]):
            return f"a store of {value.type}"
        case LandingPad():
            return "a catch"
        case _:
            return f"a {type(inst).__name__}"
