"""Invokes become calls: in a derivative no exception is caught, and none runs clean-ups.

Input   a module in normal form.
Output  whether anything was changed; the module is rewritten in place.
Method  the normal way is kept. An exception that leaves the differentiated function ends the process (the function that
        takes the place of the call for the derivative sees to that), so what a landing pad cleans up does not matter,
        unless it leads back to ordinary code: then the program catches what it throws, which is refused.

    invoke void @g() to label %next unwind label %pad        call void @g()
                                                             br label %next
"""

from __future__ import annotations

from irad.errors import IradError, UnsupportedError, UnsupportedProgram
from irad.ir.cfg import remove_unreachable_blocks
from irad.ir.instructions import Br, Call, Invoke, LandingPad, Ret, replace_uses
from irad.ir.module import Block, Function, Module
from irad.ir.types import VOID
from irad.ir.worklist import reachable


def lower_unwinding(module: Module) -> bool:
    """Rewrites every function.

    Raises:
        IradError: an exception is caught.
    """
    functions = [f for f in module.defined_functions() if any(isinstance(b.terminator, Invoke) for b in f.blocks)]
    errors = [error for function in functions for error in _caught(function)]
    if errors:
        raise errors[0] if len(errors) == 1 else UnsupportedProgram(errors)
    for function in functions:
        for block in list(function.blocks):
            if isinstance(block.terminator, Invoke):
                _lower(block, block.terminator)
        remove_unreachable_blocks(function)
        function.operands = tuple(pair for pair in function.operands if pair[0] != "personality")
    return bool(functions)


def _caught(function: Function) -> list[IradError]:
    """An error for each landing pad that the function comes back from."""
    errors: list[IradError] = []
    for block in function.blocks:
        pads = [inst for inst in block.instructions if isinstance(inst, LandingPad)]
        if pads and _returns(block):
            error = UnsupportedError(
                "an exception is caught in a function that is differentiated",
                "(a) decide by a condition instead, or (b) catch it outside of the function",
                "the reverse sweep retraces the path of the program, and an exception leaves none",
            )
            error.instruction = pads[0]
            errors.append(error)
    return errors


def _returns(start: Block) -> bool:
    return any(isinstance(block.terminator, Ret) for block in reachable([start], lambda block: block.successors))


def _lower(block: Block, invoke: Invoke) -> None:
    normal, unwind = invoke.targets
    call = Call(
        invoke.type,
        invoke.name,
        metadata=dict(invoke.metadata),
        operands=list(invoke.operands),
        function_type=invoke.function_type,
        convention=invoke.convention,
        result_attributes=invoke.result_attributes,
        argument_attributes=invoke.argument_attributes,
        attributes=invoke.attributes,
        bundles=invoke.bundles,
        flags=invoke.flags,
        addrspace=invoke.addrspace,
    )
    for phi in unwind.phis():
        pairs = [(value, source) for value, source in phi.incoming() if source is not block]
        phi.set_operands([value for value, _ in pairs])
        phi.blocks = [source for _, source in pairs]
    block.append(call)
    if invoke.type is not VOID:
        replace_uses(invoke, call)
    invoke.targets = []
    invoke.erase()
    block.append(Br(VOID, targets=[normal]))
