"""Where an error is: the line of the source if the module has debug information, else the operation in words."""

from __future__ import annotations

from typing import Final

from irad.driver import locate
from irad.errors import IradError, UnsupportedProgram
from irad.frontend.raw.program import ENTRY
from irad.ir.instructions import CallSite, Instruction, LandingPad, Load, Store
from irad.ir.module import Function, Module

_HINT: Final = "compile with -g to see the line"


def name_places(error: IradError, module: Module, primal: str | None = None) -> None:
    """Gives an error, and those it lists, its place.

    Args:
        error: with its instruction, of this module or of one made from it.
        module: the module.
        primal: the function that is differentiated.
    """
    locate(error, module)
    for item in error.errors if isinstance(error, UnsupportedProgram) else (error,):
        if item.location is None and item.detail is None and isinstance(item.instruction, Instruction):
            item.detail = _in_words(item.instruction, primal)


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
