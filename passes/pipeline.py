"""The passes in the order in which they run: adding one is a file and a row here.

Each works on one record and sets what it finds there. By stage that is

PREPARE    the `Module` of the program
PROGRAM    the `Program`: all of it, before anything is differentiated
FUNCTION   a `Unit`: one variant of a function, analysed
PAIR       a `GeneratedPair`: the two functions that are made of it
DERIVATIVE the `Generated` derivative with all its pairs
FINISH     the same, when what is to be told of the places of its instructions has been read off
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from irad.ir.cfg import remove_unreachable_blocks
from irad.ir.module import Function, Module
from irad.ir.types import I64
from irad.ir.values import const_int
from irad.ir.verifier import verify
from irad.passes.agreement.check import check_agreement
from irad.passes.analysis.activity import find_activity
from irad.passes.analysis.callees import returns_new
from irad.passes.analysis.effects import find_effects
from irad.passes.analysis.keep import keepable
from irad.passes.analysis.liveness import live_blocks
from irad.passes.analysis.oracle_activity import everything
from irad.passes.analysis.promises import check_promises
from irad.passes.analysis.refusals import check_unit
from irad.passes.analysis.summary import summarise
from irad.passes.augmented.deferred_frees import defer_frees
from irad.passes.augmented.exhaustion import check_allocations, check_stack
from irad.passes.augmented.forward import build_forward
from irad.passes.generated import Generated, GeneratedPair
from irad.passes.instrument.marks import TapeMark
from irad.passes.instrument.meter import note_launcher, note_tape
from irad.passes.instrument.sweep_marks import mark_reverse_sweeps
from irad.passes.instrument.watch import watch_pair
from irad.passes.leftovers import drop_leftovers
from irad.passes.memory.memory_types import find_memory_types
from irad.passes.memory.points_to import find_objects
from irad.passes.memory.signatures import match_signatures
from irad.passes.parallel.bulk import spread_bulk
from irad.passes.parallel.flatten import flatten_parallel_loops, launches_of
from irad.passes.parallel.launch import LAUNCHER_FRAME, build_launchers, lane_head, launch_loops
from irad.passes.parallel.sharing import find_sharing
from irad.passes.plan.materialise import Materialiser
from irad.passes.plan.plan import make_plan
from irad.passes.plan.recipes import Recipes
from irad.passes.prepare.invariant_choices import settle_invariant_choices
from irad.passes.prepare.invariant_loads import hoist_invariant_loads
from irad.passes.prepare.normal_form import prepare
from irad.passes.prepare.retype import retype_copies
from irad.passes.prepare.split_aggregates import split_aggregates
from irad.passes.program import Program
from irad.passes.reverse.generate import generate_reverse
from irad.passes.unit import Unit

COMPLETE: Final = "instrument.marks"
"""The pass after which all code is there, that of the primal as well."""

_FRAME_ALIGNMENT: Final = 64


class Stage(enum.Enum):
    """What a pass works on."""

    PREPARE = "prepare"
    PROGRAM = "program"
    FUNCTION = "function"
    PAIR = "pair"
    DERIVATIVE = "derivative"
    FINISH = "finish"


def _always(record: Any) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass.

    Attributes:
        name: its module in `irad.passes`.
        purpose: in a sentence.
        run: does the work.
        applies: whether there is any for a record.
        changes: the code, so that it is worth verifying afterwards.
    """

    name: str
    purpose: str
    stage: Stage
    run: Callable[[Any], None]
    applies: Callable[[Any], bool] = _always
    changes: bool = False


def run_stage(stage: Stage, record: Any, program: Program | None = None, *, last: str | None = None) -> None:
    """Runs the passes of a stage.

    Args:
        stage: the stage.
        record: what its passes work on.
        program: tells whether to verify, and whom to show the record.
        last: name of the pass to stop after.
    """
    for each in PIPELINE:
        if each.stage is not stage:
            continue
        if each.applies(record):
            each.run(record)
            if program is not None:
                _after(each, record, program)
        if each.name == last:
            return


def _after(done: Pass, record: Any, program: Program) -> None:
    if program.verifies and done.changes:
        for code in _code_of(record):
            verify(code)
    if program.observe is not None:
        program.observe(done.name, record)


def _code_of(record: Any) -> Iterator[Module | Function]:
    match record:
        case Unit():
            yield record.function
        case GeneratedPair():
            yield record.pair.augmented
            yield record.pair.reverse
        case Program() | Generated():
            yield (record if isinstance(record, Program) else record.program).module
        case Module():
            yield record


# --- the program ------------------------------------------------------------------------------------------------------


def _split(module: Module) -> None:
    for function in module.defined_functions():
        remove_unreachable_blocks(function)
        split_aggregates(function)


def _settle(module: Module) -> None:
    for function in module.defined_functions():
        settle_invariant_choices(function)


def _summarise_ruled(program: Program) -> None:
    for symbol, memory in program.request.ruled:
        function = program.module.functions.get(symbol)
        if function is not None and not function.is_declaration:
            known = dict(zip(function.params, memory, strict=True))
            new = returns_new(function, program.registry)
            summarise(function, known, program.registry, function.params[0], returns_new=new)


def _flatten(program: Program) -> None:
    program.loops = flatten_parallel_loops(program.module, program.registry, dict(program.request.kernels))
    program.launches = launches_of(program.module) if program.loops else {}


def _match_signatures(program: Program) -> None:
    program.signatures = match_signatures(program.module, program.request.signatures)


# --- a function -------------------------------------------------------------------------------------------------------


def _find_objects(unit: Unit) -> None:
    program = unit.program
    unit.points_to = find_objects(
        *(unit.function, unit.memory, unit.registry, unit.variant.apart),
        *(program.signatures, unit.kinds, program.addresses),
    )


def _find_memory_types(unit: Unit) -> None:
    unit.memory_types = find_memory_types(unit.function, unit.points_to, unit.memory, unit.registry)


def _retype(unit: Unit) -> None:
    if retype_copies(unit.function, unit.memory_types):
        unit.program.addresses.forget(unit.function)
        _find_objects(unit)
        _find_memory_types(unit)


def _hoist(unit: Unit) -> None:
    hoist_invariant_loads(unit.loops, unit.dominators, unit.points_to, unit.registry)


def _arguments_change(unit: Unit) -> bool:
    return unit.program.request.arguments_may_change or not unit.variant.is_entry


def _keep(unit: Unit) -> None:
    unit.kept = keepable(unit.function, unit.points_to, unit.registry, results_change=_arguments_change(unit))


def _find_effects(unit: Unit) -> None:
    stays = 0
    for number in sorted(unit.variant.stays):
        stays |= unit.points_to.mask(unit.function.params[number])
    unit.effects = find_effects(
        unit.cfg,
        unit.points_to,
        unit.registry,
        arguments_change=_arguments_change(unit),
        kept=unit.kept,
        stays=stays,
        restores=unit.program.request.restores,
    )


def _find_activity(unit: Unit) -> None:
    result_active = unit.variant.result_active
    unit.activity = find_activity(
        unit.function, unit.kinds, unit.points_to, unit.shadowable, unit.registry, result_active=result_active
    )


def _find_live_blocks(unit: Unit) -> None:
    unit.live = live_blocks(unit.cfg, unit.variant.is_entry)


def _take_everything(unit: Unit) -> None:
    unit.activity = everything(
        *(unit.function, unit.points_to, unit.memory_types, unit.shadowable),
        *(unit.registry, unit.activity, unit.program.signatures),
    )
    unit.everything = True
    check_unit(unit)


def _find_sharing(unit: Unit) -> None:
    unit.sharing = find_sharing(unit, unit.program.loops[unit.function])


# --- a pair -----------------------------------------------------------------------------------------------------------


def _build_forward(made: GeneratedPair) -> None:
    made.forward = build_forward(made.program, made.unit, made.pair)


def _build_reverse(made: GeneratedPair) -> None:
    made.sweep, made.loops = generate_reverse(made.forward)


def _plan(made: GeneratedPair) -> None:
    made.recipes = Recipes.of(made.sweep, made.loops)
    needs = (need.value for need in made.sweep.needs if need.placeholder.users)
    made.plan = make_plan(made.forward, made.recipes, needs)


def _materialise(made: GeneratedPair) -> None:
    made.storage = Materialiser(made.sweep, made.loops, made.recipes)
    made.storage.carry_out(made.plan)


def _defer_frees(made: GeneratedPair) -> None:
    defer_frees(made.forward, made.forward.kept & made.unit.effects.kept)


def _declare_scopes(made: GeneratedPair) -> None:
    made.forward.scopes.declare(made.pair.augmented)
    made.sweep.scopes.declare(made.pair.reverse)


def _note_tape(made: GeneratedPair) -> None:
    made.tape = note_tape(made.forward, made.storage)


def _watch(made: GeneratedPair) -> None:
    watch_pair(made.forward, made.sweep, made.loops)


def _check_exhaustion(made: GeneratedPair) -> None:
    check_allocations(made.forward)
    check_stack(made.forward)


def _close_frame(made: GeneratedPair) -> None:
    size = -(-max(made.forward.frame.size, 1) // _FRAME_ALIGNMENT) * _FRAME_ALIGNMENT
    made.pair.frame_size.initializer = const_int(I64, size)


# --- the derivative ---------------------------------------------------------------------------------------------------


def _check_promises(generated: Generated) -> None:
    entry, *callees = (made.unit for made in generated.pairs)
    check_promises(entry, {unit.function: unit for unit in callees})


def _launch(generated: Generated) -> None:
    units = generated.units()
    for pair, lane in generated.launched:
        build_launchers(generated.program, pair, lane, units[lane])
        note_launcher(generated.program, pair, lane, lane_head(pair), LAUNCHER_FRAME)
    launch_loops(generated.program.module)


def _spread_bulk(generated: Generated) -> None:
    spread_bulk(generated.program.module)


def _note_frame(generated: Generated) -> None:
    generated.program.tape_marks.append(TapeMark(None, (), generated.pairs[0].pair.variant))


def _mark_sweeps(generated: Generated) -> None:
    mark_reverse_sweeps(generated.program.module, (made.pair.reverse for made in generated.pairs))


def _drop_leftovers(generated: Generated) -> None:
    drop_leftovers(generated.program.module, generated.pairs[0].pair)


def _check_agreement(generated: Generated) -> None:
    for made in generated.pairs:
        check_agreement(made.pair.augmented, made.pair.reverse)


# --- all of it --------------------------------------------------------------------------------------------------------

PIPELINE: Final[tuple[Pass, ...]] = (
    Pass(
        "prepare.split_aggregates",
        "Splits phis and selects of array descriptors, so that each pointer in them is told apart.",
        Stage.PREPARE,
        _split,
        changes=True,
    ),
    Pass(
        "prepare.invariant_choices",
        "Frees loops from carrying what every iteration chooses alike, as broadcasting does.",
        Stage.PREPARE,
        _settle,
        changes=True,
    ),
    Pass(
        "prepare.normal_form",
        "Drops promises (attributes, metadata) that hold for the primal but not for its derivative.",
        Stage.PREPARE,
        prepare,
        changes=True,
    ),
    Pass(
        "analysis.summary",
        "Reads off the bodies of functions with a rule what they do to memory.",
        Stage.PROGRAM,
        _summarise_ruled,
    ),
    Pass(
        "parallel.flatten",
        "Turns parallel loops into calls of their bodies, with plain parameters.",
        Stage.PROGRAM,
        _flatten,
        changes=True,
    ),
    Pass(
        "memory.signatures",
        "Matches what callers know of the types of functions with what LLVM left of their parameters.",
        Stage.PROGRAM,
        _match_signatures,
    ),
    Pass(
        "memory.points_to",
        "Finds the memory objects and which of them each pointer may point to.",
        Stage.FUNCTION,
        _find_objects,
    ),
    Pass("memory.memory_types", "Finds what the bytes of each object hold.", Stage.FUNCTION, _find_memory_types),
    Pass(
        "prepare.retype",
        "Gives floats and pointers that are moved as integers their type back.",
        Stage.FUNCTION,
        _retype,
        changes=True,
    ),
    Pass(
        "prepare.invariant_loads",
        "Moves loads that a loop repeats with the same outcome to before the loop.",
        Stage.FUNCTION,
        _hoist,
        applies=lambda unit: not unit.program.saves_all,
        changes=True,
    ),
    Pass(
        "analysis.keep",
        "Finds allocations that may stay alive until the reverse sweep has ended.",
        Stage.FUNCTION,
        _keep,
        applies=lambda unit: not unit.program.saves_all,
    ),
    Pass(
        "analysis.effects",
        "Finds which memory may have changed when the reverse sweep comes back to a load.",
        Stage.FUNCTION,
        _find_effects,
    ),
    Pass(
        "analysis.activity",
        "Finds which values carry a derivative and which objects have a shadow.",
        Stage.FUNCTION,
        _find_activity,
    ),
    Pass(
        "analysis.liveness",
        "Finds the blocks that the reverse sweep visits: those from which the function returns normally.",
        Stage.FUNCTION,
        _find_live_blocks,
    ),
    Pass(
        "analysis.refusals",
        "Raises all that cannot be differentiated, before any code is generated.",
        Stage.FUNCTION,
        check_unit,
    ),
    Pass(
        "analysis.oracle_activity",
        "For the oracle, makes everything active; what that cannot be done with is refused again.",
        Stage.FUNCTION,
        _take_everything,
        applies=lambda unit: unit.program.saves_all,
    ),
    Pass(
        "parallel.sharing",
        "Finds how the lanes of a parallel loop share shadows.",
        Stage.FUNCTION,
        _find_sharing,
        applies=lambda unit: unit.variant.is_lane,
    ),
    Pass(
        "augmented.forward",
        "Builds the augmented primal: a copy with shadow pointers beside the pointers.",
        Stage.PAIR,
        _build_forward,
        changes=True,
    ),
    Pass(
        "reverse.generate",
        "Builds the reverse sweep, with a placeholder for each primal value it needs.",
        Stage.PAIR,
        _build_reverse,
        changes=True,
    ),
    Pass(
        "plan.plan",
        "Chooses by a minimum cut which needed values are saved and which are recomputed.",
        Stage.PAIR,
        _plan,
    ),
    Pass(
        "plan.materialise",
        "Carries the plan out: saves in the forward sweep, loads and recomputed code in the reverse.",
        Stage.PAIR,
        _materialise,
        changes=True,
    ),
    Pass(
        "augmented.deferred_frees",
        "Hands references to memory that the reverse sweep reads again to the arena.",
        Stage.PAIR,
        _defer_frees,
        changes=True,
    ),
    Pass(
        "augmented.alias_scopes", "Tells LLVM which accesses never touch the same bytes.", Stage.PAIR, _declare_scopes
    ),
    Pass(
        "instrument.meter",
        "Notes what is on the tape; on request has its bytes counted, place by place.",
        Stage.PAIR,
        _note_tape,
        changes=True,
    ),
    Pass(
        "instrument.watch",
        "In debug mode, looks for NaNs, infinities and ties behind each operation of both sweeps.",
        Stage.PAIR,
        _watch,
        applies=lambda made: made.program.request.watches,
        changes=True,
    ),
    Pass(
        "augmented.exhaustion",
        "Checks every tape allocation and leaves the forward sweep when one failed.",
        Stage.PAIR,
        _check_exhaustion,
        changes=True,
    ),
    Pass("augmented.tape", "Fixes the size of the frame that both sweeps share.", Stage.PAIR, _close_frame),
    Pass(
        "analysis.promises",
        "Raises where a callee stores active values in what was passed as constant.",
        Stage.DERIVATIVE,
        _check_promises,
        applies=lambda generated: generated.program.request.callee is None,
    ),
    Pass(
        "parallel.launch",
        "Writes the functions that run parallel loops in lanes.",
        Stage.DERIVATIVE,
        _launch,
        changes=True,
    ),
    Pass(
        "parallel.bulk",
        "Clears and copies arrays beside parallel loops with all threads.",
        Stage.DERIVATIVE,
        _spread_bulk,
        changes=True,
    ),
    Pass("instrument.marks", "Notes the frame of the entry, which the caller provides.", Stage.DERIVATIVE, _note_frame),
    Pass(
        "instrument.sweep_marks",
        "Gives the reverse sweeps line numbers of their own, for profiles.",
        Stage.FINISH,
        _mark_sweeps,
    ),
    Pass(
        "leftovers",
        "Drops the functions that the derivative does not call.",
        Stage.FINISH,
        _drop_leftovers,
        changes=True,
    ),
    Pass(
        "agreement.check",
        "On request, checks that the reverse sweep decides nothing by numbers that it rounds itself.",
        Stage.FINISH,
        _check_agreement,
        applies=lambda generated: generated.program.verifies,
    ),
)
