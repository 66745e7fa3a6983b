"""The passes in the order in which they run: adding one is a file and a row here.

Each works on one record, which depends on its stage (`irad.passes.stages`), and sets what it finds there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from irad.ir.cfg import remove_unreachable_blocks
from irad.ir.module import Function, Module
from irad.ir.types import I64
from irad.ir.values import const_int
from irad.ir.verifier import verify
from irad.passes import stages
from irad.passes.analysis.activity import everything, find_activity
from irad.passes.analysis.effects import find_effects
from irad.passes.analysis.liveness import live_blocks
from irad.passes.analysis.promises import check_promises
from irad.passes.analysis.refusals import check_unit
from irad.passes.analysis.summary import summarise
from irad.passes.augmented.allocation_failure import check_allocations, check_stack
from irad.passes.augmented.deferred_frees import defer_frees, keepable
from irad.passes.augmented.shadows import build_augmented
from irad.passes.augmented.unroll_and_jam import unroll_and_jam
from irad.passes.callees import callees_first, is_from_outside, mark_remote, returns_new
from irad.passes.dead_functions import drop_leftovers
from irad.passes.generated import Generated, GeneratedPair
from irad.passes.instrument.marks import TapeMark
from irad.passes.instrument.meter import note_launcher, note_tape
from irad.passes.instrument.sweep_marks import mark_reverse_sweeps
from irad.passes.instrument.watch import watch_pair, watch_tangent
from irad.passes.memory.memory_types import find_memory_types
from irad.passes.memory.mod_ref import ModRef
from irad.passes.memory.points_to import find_objects
from irad.passes.memory.signatures import match_signatures
from irad.passes.mode import AUGMENTED, REVERSE
from irad.passes.parallel.bulk import spread_bulk
from irad.passes.parallel.flatten import flatten_parallel_loops, launches_of
from irad.passes.parallel.launch import LAUNCHER_FRAME, build_launchers, lane_head, launch_loops
from irad.passes.parallel.ownership import find_meetings
from irad.passes.parallel.sharing import find_sharing
from irad.passes.plan.agreement import check_agreement
from irad.passes.plan.materialise import Materialiser
from irad.passes.plan.plan import make_plan
from irad.passes.plan.rematerialisation import Rematerialisation
from irad.passes.prepare.deferred_checks import postpone_checks_of_a_loop
from irad.passes.prepare.loop_invariants import hoist_invariant_loads, settle_invariant_choices
from irad.passes.prepare.normal_form import prepare
from irad.passes.prepare.powers_of_roots import smooth_powers
from irad.passes.prepare.reference_pairs import pair_references
from irad.passes.prepare.retype import retype_addresses, retype_copies
from irad.passes.prepare.running_extremes import load_extremes
from irad.passes.prepare.sinking import sink_to_branches
from irad.passes.prepare.split_aggregates import split_aggregates
from irad.passes.program import Program
from irad.passes.reverse.ascend import let_loops_ascend
from irad.passes.reverse.ascending_nests import find_nests, turn_nests
from irad.passes.reverse.gather import gather_additions
from irad.passes.reverse.generate import generate_reverse
from irad.passes.reverse.peepholes import share_reciprocals, simplify_guards
from irad.passes.reverse.stored_once import store_once
from irad.passes.stages import Pass, PassStage
from irad.passes.subscripts.dimensions import take_dimensions
from irad.passes.subscripts.forms import Forms
from irad.passes.subscripts.separation import Separation
from irad.passes.unit import Unit

COMPLETE: Final = "instrument.marks"
"""The pass after which all code is there, that of the primal as well."""

_FRAME_ALIGNMENT: Final = 64


def run_stage(stage: PassStage, record: Any, program: Program | None = None, *, last: str | None = None) -> None:
    """Runs the passes of a stage.

    Args:
        stage: the stage.
        record: the object that its passes work on.
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


def _code_of(record: Module | Program | Unit | GeneratedPair | Generated) -> Iterator[Module | Function]:
    match record:
        case Unit():
            yield record.function
        case GeneratedPair():
            yield from record.pair.functions.values()
        case Program() | Generated():
            yield (record if isinstance(record, Program) else record.program).module
        case Module():
            yield record


# --- the program ------------------------------------------------------------------------------------------------------


def _split(module: Module) -> None:
    """Splits phis and selects of array descriptors, so that each pointer in them is told apart."""
    for function in module.defined_functions():
        remove_unreachable_blocks(function)
        split_aggregates(function)


def _settle(module: Module) -> None:
    """Removes loop-carried values that every iteration chooses in the same way, as in broadcasting."""
    for function in module.defined_functions():
        settle_invariant_choices(function)


def _retype_addresses(module: Module) -> None:
    """Gives addresses that LLVM keeps as integers in local variables the type of pointers back."""
    for function in module.defined_functions():
        retype_addresses(function)


def _normalise(module: Module) -> None:
    """Drops promises (attributes, metadata) that hold for the primal but not for its derivative."""
    prepare(module)


def _smooth_powers(module: Module) -> None:
    """Gives powers of roots the derivatives of the radicand."""
    smooth_powers(module)


def _take_dimensions(program: Program) -> None:
    """Notes which numbers the subscripts of elements are multiplied by."""
    program.dimensions = take_dimensions(program.module)


def _pair_references(program: Program) -> None:
    """Removes reference counting in loops for memory that stays held while they run."""
    host = program.request.host.references
    assert host is not None
    pair_references(program.module, host)


def _summarise_ruled(program: Program) -> None:
    """Infers the effects of functions with a rule on memory from their bodies, callees first."""
    request = program.request
    signatures = match_signatures(program.module, request.signatures) if request.ruled else {}
    memory = dict(request.ruled)
    for function in callees_first([f for f in program.module.defined_functions() if f.name in memory]):
        known = dict(zip(function.params, memory[str(function.name)], strict=True))
        summarise(
            function,
            known,
            program.registry,
            function.params[request.host.result],
            returns_new=returns_new(function, program.registry),
            has_rule=is_from_outside(function, program.registry),
            signatures=signatures,
        )


def _mark_remote(program: Program) -> None:
    """Marks the functions by whose calls numbers leave the program or come into it."""
    mark_remote(list(program.module.functions.values()), program.registry)


def _flatten(program: Program) -> None:
    """Turns parallel loops into calls of their bodies, with plain parameters."""
    request = program.request
    assert request.host.parallel is not None
    program.loops = flatten_parallel_loops(
        program.module, program.registry, request.host.parallel, dict(request.kernels)
    )
    program.launches = launches_of(program.module) if program.loops else {}


def _match_signatures(program: Program) -> None:
    """Matches the callers' types of functions with the parameters that LLVM left."""
    program.signatures = match_signatures(program.module, program.request.signatures)


# --- a function -------------------------------------------------------------------------------------------------------


def _find_objects(unit: Unit) -> None:
    """Finds the memory objects and which of them each pointer may point to."""
    program = unit.program
    points_to = find_objects(
        *(unit.function, unit.memory, unit.registry, unit.variant.noalias),
        *(program.signatures, unit.kinds, program.addresses),
        is_entry=unit.variant.is_entry,
    )
    unit.mod_ref = ModRef(points_to, unit.registry)


def _find_memory_types(unit: Unit) -> None:
    """Finds the contents of each object's bytes."""
    unit.memory_types = find_memory_types(unit.function, unit.mod_ref, unit.memory)


def _retype(unit: Unit) -> None:
    """Gives floats and pointers that are moved as integers their type back."""
    if retype_copies(unit.function, unit.memory_types):
        unit.program.addresses.forget(unit.function)
        _find_objects(unit)
        _find_memory_types(unit)


def _hoist(unit: Unit) -> None:
    """Moves loads that a loop repeats with the same outcome to before the loop."""
    hoist_invariant_loads(unit.loops, unit.dominators, unit.mod_ref, _separation(unit))


def _sink(unit: Unit) -> None:
    """Computes on one side of a branch what is differentiated there only."""
    sink_to_branches(unit.loops, unit.dominators, unit.mod_ref, unit.live)


def _postpone(unit: Unit) -> None:
    """Moves checks of divisors after their loops."""
    host = unit.program.request.host
    result = unit.function.params[host.result]
    while postpone_checks_of_a_loop(
        *(unit.cfg, unit.dominators, unit.loops.loops, live_blocks(unit.cfg, host.returned), unit.mod_ref, result)
    ):
        unit.find_loops()


def _arguments_change(unit: Unit) -> bool:
    return unit.program.request.arguments_may_change or not unit.variant.is_entry


def _keep(unit: Unit) -> None:
    """Finds allocations that may stay alive until the reverse sweep has ended."""
    host = unit.program.request.host
    unit.kept = keepable(unit.function, unit.mod_ref, host, results_change=_arguments_change(unit))


def _separation(unit: Unit) -> Separation | None:
    """Analysis that separates elements of arrays: only if no other thread writes there, and not for the oracle."""
    # The oracle tells no elements apart; in lanes and kernels other threads write between two accesses of this one; and
    # iterations of irreducible loops have no numbers.
    if unit.program.saves_all or unit.variant.is_lane or unit.program.request.host.is_shared or unit.loops.irreducible:
        return None
    return Separation(Forms(unit.cfg, unit.dominators, unit.loops, unit.program.dimensions))


def _find_effects(unit: Unit) -> None:
    """Finds which memory may have changed when the reverse sweep comes back to a load."""
    stays = 0
    for number in sorted(unit.variant.stays):
        stays |= unit.points_to.mask(unit.function.params[number])
    unit.effects = find_effects(
        unit.cfg,
        unit.mod_ref,
        arguments_change=_arguments_change(unit),
        kept=unit.kept,
        stays=stays,
        restores=unit.program.request.restores,
        separation=_separation(unit),
    )


def _find_activity(unit: Unit) -> None:
    """Finds which values carry a derivative and which objects have a shadow."""
    result_active = unit.variant.result_active
    unit.activity = find_activity(unit.function, unit.kinds, unit.mod_ref, unit.shadowable, result_active=result_active)


def _load_extremes(unit: Unit) -> None:
    """Takes running extremes that carry a derivative from where they lie, so that loops only compare them."""
    if load_extremes(unit, _separation(unit)):
        unit.program.addresses.forget(unit.function)
        # The loads that were added are new values, about which earlier analyses say nothing.
        for find in (_find_objects, _find_memory_types, _keep, _find_effects, _find_activity):
            find(unit)


def _find_live_blocks(unit: Unit) -> None:
    """Finds the blocks that the reverse sweep visits: those from which the function returns normally."""
    unit.live = live_blocks(unit.cfg, unit.program.request.host.returned if unit.variant.is_entry else None)


def _refuse(unit: Unit) -> None:
    """Raises all that cannot be differentiated, before any code is generated."""
    check_unit(unit)


def _check_linearity(unit: Unit) -> None:
    """Refuses a function that is to be transposed and is not linear."""
    from irad.passes.analysis.linearity import check_linearity  # gradients do not need it

    check_linearity(unit)


def _take_everything(unit: Unit) -> None:
    """For the oracle, makes everything active; values for which that is impossible are refused again."""
    unit.activity = everything(
        *(unit.function, unit.points_to, unit.memory_types, unit.shadowable),
        *(unit.registry, unit.activity, unit.program.signatures),
    )
    unit.everything = True
    check_unit(unit)


def _find_meetings(unit: Unit) -> None:
    """Finds memory that only one thread of a kernel accesses, and memory that all threads of a block access."""
    unit.meetings = find_meetings(unit.function, unit.mod_ref, unit.loops, unit.program.request.axes)


def _find_sharing(unit: Unit) -> None:
    """Finds how the lanes of a parallel loop share shadows."""
    unit.sharing = find_sharing(unit, unit.program.loops[unit.function])


# --- a pair -----------------------------------------------------------------------------------------------------------


def _build_augmented(made: GeneratedPair) -> None:
    """Builds the augmented primal: a copy with shadow pointers beside the pointers."""
    made.augmented = build_augmented(made.program, made.unit, made.pair)


def _build_tangent(made: GeneratedPair) -> None:
    """Builds the primal with shadow pointers beside the pointers and tangents beside the floats."""
    from irad.passes.forward.generate import (
        build_tangent,  # forward mode is code of its own, which gradients do not need
    )

    made.augmented = build_tangent(made.program, made.unit, made.pair)


def _build_reverse(made: GeneratedPair) -> None:
    """Builds the reverse sweep, with a placeholder for each primal value it needs."""
    made.sweep, made.loops = generate_reverse(made.augmented)


def _plan(made: GeneratedPair) -> None:
    """Chooses by a minimum cut which needed values are saved and which are recomputed."""
    made.remat = Rematerialisation.of(made.sweep, made.loops)
    needs = (need.value for need in made.sweep.needs if need.placeholder.users)
    made.plan = make_plan(made.augmented, made.remat, needs)


def _materialise(made: GeneratedPair) -> None:
    """Carries the plan out: saves in the forward sweep, loads and recomputed code in the reverse."""
    made.storage = Materialiser(made.sweep, made.loops, made.remat)
    made.storage.carry_out(made.plan)


def _simplify_guards(made: GeneratedPair) -> None:
    """Gives guards of zero cotangents a form that suits scalar code, where no vectors are made."""
    simplify_guards(made.sweep)


def _share_reciprocals(made: GeneratedPair) -> None:
    """Multiplies by reciprocals where quotients would be divided again."""
    share_reciprocals(made.sweep)


def _store_once(made: GeneratedPair) -> None:
    """Stores the cotangents of elements that are overwritten in place once."""
    store_once(made.sweep)


def _gather(made: GeneratedPair) -> None:
    """Has innermost loops add to each element of a shadow once, and go upwards, as do the loops around them."""
    nests = find_nests(made.sweep)
    upwards, others = gather_additions(made.sweep)
    # loops that merely ascend are rewritten in place, after which the bounds that were found no longer hold
    turn_nests(nests, upwards)
    let_loops_ascend(made.sweep, others)


def _defer_frees(made: GeneratedPair) -> None:
    """Hands references to memory that the reverse sweep reads again to the arena."""
    defer_frees(made.augmented, made.augmented.kept & made.unit.effects.kept)


def _declare_scopes(made: GeneratedPair) -> None:
    """Tells LLVM which accesses never touch the same bytes."""
    made.augmented.scopes.declare(made.pair.first)
    if REVERSE in made.pair.functions:
        made.sweep.scopes.declare(made.pair[REVERSE])


def _note_tape(made: GeneratedPair) -> None:
    """Records the contents of the tape; on request counts its bytes, place by place."""
    made.tape = note_tape(made.augmented, made.storage)


def _watch(made: GeneratedPair) -> None:
    """In debug mode, looks for NaNs, infinities and ties after each operation of the derivative."""
    if stages.is_forward(made):
        watch_tangent(made.augmented)
    else:
        watch_pair(made.augmented, made.sweep, made.loops)


def _check_allocations(made: GeneratedPair) -> None:
    """Checks every tape allocation and leaves the forward sweep when one failed."""
    check_allocations(made.augmented)
    check_stack(made.augmented)


def _close_frame(made: GeneratedPair) -> None:
    """Fixes the size of the frame that both sweeps share."""
    size = -(-max(made.augmented.frame.size, 1) // _FRAME_ALIGNMENT) * _FRAME_ALIGNMENT
    made.pair.frame_size.initializer = const_int(I64, size)


def _unroll_and_jam(made: GeneratedPair) -> None:
    """Runs iterations of the forward sweep side by side where one alone would wait for its sums."""
    separation = _separation(made.unit)
    if separation is not None:
        unroll_and_jam(made.augmented, made.remat.primal_of, separation)


# --- the derivative ---------------------------------------------------------------------------------------------------


def _check_promises(generated: Generated) -> None:
    """Raises an error if a callee stores active values in memory that was passed as constant."""
    entry, *callees = (made.unit for made in generated.pairs)
    check_promises(entry, {unit.function: unit for unit in callees})


def _launch(generated: Generated) -> None:
    """Writes the functions that run parallel loops in lanes."""
    units, parallel = generated.units(), generated.program.request.host.parallel
    assert parallel is not None
    for pair, lane in generated.launched:
        build_launchers(generated.program, pair, lane, units[lane], parallel)
        if stages.is_reverse(generated):
            note_launcher(generated.program, pair, lane, lane_head(pair), LAUNCHER_FRAME)
    launch_loops(generated.program.module, parallel)


def _spread_bulk(generated: Generated) -> None:
    """Clears and copies arrays beside parallel loops with all threads."""
    parallel = generated.program.request.host.parallel
    assert parallel is not None
    spread_bulk(generated.program.module, parallel)


def _note_frame(generated: Generated) -> None:
    """Notes the frame of the entry, which the caller provides."""
    generated.program.tape_marks.append(TapeMark(None, (), generated.pairs[0].pair.variant))


def _mark_sweeps(generated: Generated) -> None:
    """Gives the reverse sweeps line numbers of their own, for profiles."""
    mark_reverse_sweeps(generated.program.module, (made.pair[REVERSE] for made in generated.pairs))


def _drop_leftovers(generated: Generated) -> None:
    """Drops the functions that the derivative does not call."""
    drop_leftovers(generated.program.module, generated.pairs[0].pair)


def _check_agreement(generated: Generated) -> None:
    """On request, checks that the reverse sweep decides nothing by numbers that it rounds itself."""
    for made in generated.pairs:
        check_agreement(made.pair[AUGMENTED], made.pair[REVERSE])


# --- all of it --------------------------------------------------------------------------------------------------------

PIPELINE: Final[tuple[Pass, ...]] = (
    # first: a pointer inside an aggregate has neither a shadow nor a target of its own
    Pass("prepare.split_aggregates", PassStage.PREPARE, _split, changes=True),
    Pass("prepare.loop_invariants.choices", PassStage.PREPARE, _settle, changes=True),
    # an address that is kept as an integer would have no shadow
    Pass("prepare.retype.addresses", PassStage.PREPARE, _retype_addresses, changes=True),
    Pass("prepare.normal_form", PassStage.PREPARE, _normalise, changes=True),
    # after the normal form, whose sum for the absolute value of a root is a root to this pass
    Pass("prepare.powers_of_roots", PassStage.PREPARE, _smooth_powers, changes=True),
    # before all analyses: the marks are calls of a function of which nothing is known
    Pass("subscripts.dimensions", PassStage.PROGRAM, _take_dimensions, changes=True),
    Pass("prepare.reference_pairs", PassStage.PROGRAM, _pair_references, stages.has_references, changes=True),
    Pass("analysis.summary", PassStage.PROGRAM, _summarise_ruled),
    # before functions are analysed: a launch becomes a call of a function with plain arguments
    Pass("parallel.flatten", PassStage.PROGRAM, _flatten, applies=stages.has_parallel_loops, changes=True),
    Pass("callees.remote", PassStage.PROGRAM, _mark_remote),
    Pass("memory.signatures", PassStage.PROGRAM, _match_signatures),
    Pass("memory.points_to", PassStage.FUNCTION, _find_objects),
    Pass("memory.memory_types", PassStage.FUNCTION, _find_memory_types),
    # before activity: an integer that only moves the bits of a float has to carry its derivative
    Pass("prepare.retype", PassStage.FUNCTION, _retype, changes=True),
    Pass("prepare.loop_invariants.loads", PassStage.FUNCTION, _hoist, applies=stages.is_default, changes=True),
    # after invariant loads: it takes loops only whose addresses are made of counters and of what is known before them
    Pass("prepare.deferred_checks", PassStage.FUNCTION, _postpone, applies=stages.may_raise_late, changes=True),
    # after checks move; before the refusals: code that only raises may do what is refused elsewhere
    Pass("analysis.liveness", PassStage.FUNCTION, _find_live_blocks),
    # after invariant loads, which move only what every iteration runs
    Pass("prepare.sinking", PassStage.FUNCTION, _sink, applies=stages.may_sink, changes=True),
    # before effects: what can be kept alive is not lost to the reverse sweep where it is freed
    Pass("augmented.deferred_frees.candidates", PassStage.FUNCTION, _keep, applies=stages.keeps_memory),
    Pass("analysis.effects", PassStage.FUNCTION, _find_effects),
    Pass("analysis.activity", PassStage.FUNCTION, _find_activity),
    # after activity: only an active extreme costs tape, which its load after the loop saves
    Pass("prepare.running_extremes", PassStage.FUNCTION, _load_extremes, stages.may_move_cotangents, changes=True),
    Pass("analysis.refusals", PassStage.FUNCTION, _refuse),
    Pass("analysis.linearity", PassStage.FUNCTION, _check_linearity, applies=stages.is_transposed),
    Pass("analysis.activity.oracle", PassStage.FUNCTION, _take_everything, applies=stages.is_oracle),
    Pass("parallel.sharing", PassStage.FUNCTION, _find_sharing, applies=stages.is_reversed_lane),
    Pass("parallel.ownership", PassStage.FUNCTION, _find_meetings, applies=stages.is_reversed_kernel),
    Pass("forward.generate", PassStage.PAIR, _build_tangent, applies=stages.is_forward, changes=True),
    Pass("augmented.shadows", PassStage.PAIR, _build_augmented, applies=stages.is_reverse, changes=True),
    Pass("reverse.generate", PassStage.PAIR, _build_reverse, applies=stages.is_reverse, changes=True),
    Pass("reverse.peepholes.guards", PassStage.PAIR, _simplify_guards, applies=stages.is_tuned, changes=True),
    # after both sweeps: only the placeholders that the reverse sweep left show what is needed
    Pass("plan.plan", PassStage.PAIR, _plan, applies=stages.is_reverse),
    Pass("plan.materialise", PassStage.PAIR, _materialise, applies=stages.is_reverse, changes=True),
    # after the plan is carried out: the quotients that are recomputed are there only then
    Pass("reverse.peepholes.reciprocals", PassStage.PAIR, _share_reciprocals, stages.may_gather, changes=True),
    # before additions are gathered: an element that is cleared and added to is none that is gathered
    Pass("reverse.stored_once", PassStage.PAIR, _store_once, applies=stages.may_gather, changes=True),
    # after the plan is carried out: it has to see all accesses of a loop, those of the tape among them
    Pass("reverse.gather", PassStage.PAIR, _gather, applies=stages.may_gather, changes=True),
    Pass("augmented.deferred_frees", PassStage.PAIR, _defer_frees, applies=stages.is_reverse, changes=True),
    Pass("augmented.alias_scopes", PassStage.PAIR, _declare_scopes),
    # on finished sweeps, so that no other pass has to know of what is counted and watched
    Pass("instrument.meter", PassStage.PAIR, _note_tape, applies=stages.is_reverse, changes=True),
    Pass("instrument.watch", PassStage.PAIR, _watch, applies=stages.is_watched, changes=True),
    Pass("augmented.allocation_failure", PassStage.PAIR, _check_allocations, changes=True),
    # after all that takes room in the frame
    Pass("augmented.tape", PassStage.PAIR, _close_frame),
    # last of the pair: it copies loops of the finished forward sweep, with what they save
    Pass("augmented.unroll_and_jam", PassStage.PAIR, _unroll_and_jam, applies=stages.is_tuned, changes=True),
    # needs the units of all callees
    Pass("analysis.promises", PassStage.DERIVATIVE, _check_promises, applies=stages.is_entry),
    Pass("parallel.launch", PassStage.DERIVATIVE, _launch, applies=stages.has_parallel_loops, changes=True),
    Pass("parallel.bulk", PassStage.DERIVATIVE, _spread_bulk, applies=stages.has_parallel_loops, changes=True),
    Pass("instrument.marks", PassStage.DERIVATIVE, _note_frame),
    # after the places of instructions have been read off, which it overwrites
    Pass("instrument.sweep_marks", PassStage.FINISH, _mark_sweeps, applies=stages.is_reverse),
    Pass("dead_functions", PassStage.FINISH, _drop_leftovers, changes=True),
    Pass("plan.agreement", PassStage.FINISH, _check_agreement, applies=stages.is_verified),
)
