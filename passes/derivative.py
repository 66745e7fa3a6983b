"""From a prepared module and a request to the derivative: the functions of the mode for each variant that it needs.

The work is done by the passes of `irad.passes.pipeline`; here is which variants there are, and in which order.
"""

from __future__ import annotations

from dataclasses import replace

from irad.errors import UnsupportedError
from irad.ir.module import Module
from irad.ir.types import PointerType
from irad.passes.analysis.speculation import may_speculate
from irad.passes.generated import Generated, GeneratedPair
from irad.passes.instrument.marks import TapeMark, TapePart
from irad.passes.parallel.flatten import is_loop_function
from irad.passes.pipeline import run_stage
from irad.passes.program import Observer, Program
from irad.passes.request import Request
from irad.passes.stages import PassStage
from irad.passes.unit import Unit
from irad.passes.variant import Variant
from irad.ruleset.registry import Registry


def prepare_module(module: Module) -> None:
    """Gives the functions of a program the form that the analyses read."""
    run_stage(PassStage.PREPARE, module)


def generate(
    module: Module,
    request: Request,
    registry: Registry,
    *,
    verifies: bool = False,
    observe: Observer | None = None,
    last: str | None = None,
) -> Generated:
    """Adds the derivatives of the requested entry and of all callees it needs to the module.

    Args:
        module: prepared.
        request: description of the derivative.
        registry: the rules.
        verifies: verify the code after each pass that changes some.
        observe: is shown each pass and its record.
        last: stop pairs after this pass: reports look at sweeps before the plan is carried out.
    """
    program = Program(module, registry, request, verifies, observe, is_read=last is not None)
    # In code that is differentiated itself a guard stays a call: a select would be taken for a branch of the function.
    module.opaque_guards, module.shows_zeros = request.is_primal, request.shows_zeros
    run_stage(PassStage.PROGRAM, program, program)
    program.tape_marks.append(TapeMark(None, (TapePart(None, 1, "frame"),)))  # `meter.BY_POINTER`
    variant = _wanted(program)
    unit = analyse(program, variant)
    # A call that is repeated where its result has a NaN does without guards at first.
    module.strong_zeros = not (request.no_zero_wins or may_speculate(unit))
    made = program.derive(variant, None if request.callee is not None else _entry_shadows(unit))
    for function in made.functions.values():
        function.prefix = ()
    generated = Generated(program)
    # Variants are declared when they are first asked for and filled in turn, so that recursion ends.
    while program.pending:
        pair = program.pending.pop(0)
        if is_loop_function(pair.variant.function) and not pair.variant.is_lane:
            generated.launched.append((pair, program.derive(replace(pair.variant, is_lane=True))))
            continue
        known = unit if pair.variant is variant else analyse(program, pair.variant)
        each = GeneratedPair(program, known, pair)
        run_stage(PassStage.PAIR, each, program, last=last)
        generated.pairs.append(each)
    run_stage(PassStage.DERIVATIVE, generated, program)
    return generated


def finish(generated: Generated) -> None:
    """The last passes: after them, less is known about where instructions come from."""
    run_stage(PassStage.FINISH, generated, generated.program)


def analyse(program: Program, variant: Variant) -> Unit:
    """Runs the analyses on one variant and refuses what cannot be differentiated."""
    unit = Unit(program, variant)
    run_stage(PassStage.FUNCTION, unit, program)
    return unit


def _wanted(program: Program) -> Variant:
    """The variant of the entry."""
    request = program.request
    entry, expected = program.module.functions[request.entry], request.callee
    if expected is None:
        return Variant(entry, request.kinds, request.memory, False, False, is_entry=True, stays=request.stays)
    if entry.function_type is not expected.function_type:
        raise UnsupportedError(
            f"a function of type {entry.function_type} is called as {expected.function_type}",
            "call functions with arguments of the types they were compiled for",
            "a function called through a pointer has one type",
        )
    return Variant(entry, request.kinds, request.memory, expected.result_active, expected.result_has_shadow)


def _entry_shadows(unit: Unit) -> tuple[int, ...]:
    """The parameters whose memory has a shadow: it was asked for, or a pointer may reach both it and active memory."""
    return tuple(
        i
        for i, param in enumerate(unit.function.params)
        if isinstance(param.type, PointerType) and unit.activity.has_shadow(param)
    )
