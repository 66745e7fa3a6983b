"""From a prepared module and a request to the derivative: analyses each wanted variant and generates its pair.

analyse     objects → memory types → effects → activity
forward     the augmented primal, without saves
reverse     the reverse sweep, with placeholders
materialise the plan, carried out in both
meter       what is on the tape; on request it is counted
watch       on request: looks for NaNs, infinities and ties
exhaustion  checks of tape allocations
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from irad.errors import UnsupportedError
from irad.ir.cfg import control_flow
from irad.ir.dominance import dominators
from irad.ir.instructions import CallSite
from irad.ir.loops import loop_nest
from irad.ir.module import Function, Module
from irad.ir.types import I64, PointerType
from irad.ir.values import GlobalVariable, const_int
from irad.passes.activity import everything, find_activity
from irad.passes.callees import returns_new
from irad.passes.effects import find_effects
from irad.passes.exhaustion import check_allocations, check_stack
from irad.passes.forward import Forward, build_forward
from irad.passes.instrument.marks import FrameParts, Mark, TapeMark, TapePart
from irad.passes.instrument.meter import note_launcher, note_tape
from irad.passes.instrument.watch import watch_pair
from irad.passes.invariant_loads import hoist_invariant_loads
from irad.passes.keep import defer_frees, keepable
from irad.passes.liveness import live_blocks
from irad.passes.materialise import Materialiser
from irad.passes.memory_types import find_memory_types
from irad.passes.parallel.bulk import spread_bulk
from irad.passes.parallel.flatten import flatten_parallel_loops, is_loop_function
from irad.passes.parallel.launch import LAUNCHER_FRAME, build_launchers, lane_head, launch_loops
from irad.passes.parallel.sharing import find_sharing
from irad.passes.plan import Plan
from irad.passes.points_to import find_objects
from irad.passes.program import Pair, Program
from irad.passes.promises import check_promises
from irad.passes.recipes import Recipes
from irad.passes.refusals import check_unit
from irad.passes.request import MemoryType, ParameterKind, Request
from irad.passes.retype import retype_copies
from irad.passes.reverse.generate import generate_reverse
from irad.passes.signatures import match_signatures
from irad.passes.summary import summarise
from irad.passes.unit import PointerVariant, Unit, Variant
from irad.ruleset.registry import Registry


@dataclass(frozen=True, slots=True)
class GeneratedPair:
    """A finished pair with its analyses, for reports.

    Attributes:
        forward: the forward sweep, with the maps from primal values to its own.
        tape: what it allocates, where the values that ``plan`` saves live, and those that storage itself needs.
    """

    pair: Pair
    unit: Unit
    plan: Plan
    forward: Forward
    tape: tuple[TapeMark, ...]


@dataclass(frozen=True, slots=True)
class Generated:
    """What was added to a module.

    Attributes:
        pairs: the pair of the entry first.
        tables: what calls through pointers look up, by symbol.
        ruled: pairs that are called and come from elsewhere.
        marks: the places that are watched, by number.
        tape: the places of the tape, by number; the last is the frame that the caller provides.
        frames: what the frames of pairs hold.
        places: the table of what is watched, to be named.
        launches: the call of each parallel loop, by its function.
    """

    pairs: tuple[GeneratedPair, ...]
    tables: Mapping[str, PointerVariant]
    ruled: tuple[Pair, ...]
    marks: tuple[Mark, ...] = ()
    tape: tuple[TapeMark, ...] = ()
    frames: Mapping[Variant, FrameParts] = field(default_factory=dict)
    places: GlobalVariable | None = None
    launches: Mapping[Function, CallSite] = field(default_factory=dict)


def generate(
    module: Module,
    request: Request,
    registry: Registry,
    make_pair: Callable[[Program, Unit, Pair], GeneratedPair] | None = None,
) -> Generated:
    """Adds the derivatives of the requested entry and of all callees it needs to the module.

    ``make_pair`` stands in for `generate_pair`: reports stop before the plan is carried out.
    """
    _summarise_ruled(module, request, registry)
    loops = flatten_parallel_loops(module, registry, dict(request.kernels))
    launches = launches_of(module) if loops else {}
    program = Program(module, registry, request, loops, match_signatures(module, request.signatures))
    program.tape_marks.append(TapeMark(None, (TapePart(None, 1, "frame"),)))  # `meter.BY_POINTER`
    entry = module.functions[request.entry]
    if request.callee is None:
        variant = Variant(entry, request.kinds, request.memory, False, False, is_entry=True)
    else:
        expected = request.callee
        if entry.function_type is not expected.function_type:
            raise UnsupportedError(
                f"a function of type {entry.function_type} is called as {expected.function_type}",
                "call functions with arguments of the types they were compiled for",
                "a function called through a pointer has one type",
            )
        variant = Variant(entry, request.kinds, request.memory, expected.result_active, expected.result_has_shadow)
    unit = analyse(program, variant)
    made = program.pair(variant, None if request.callee is not None else _entry_shadows(unit))
    made.augmented.prefix = made.reverse.prefix = ()
    finished: list[GeneratedPair] = []
    launched: list[tuple[Pair, Pair]] = []
    while program.pending:
        pair = program.pending.pop(0)
        if is_loop_function(pair.variant.function) and not pair.variant.is_lane:
            launched.append((pair, program.pair(replace(pair.variant, is_lane=True))))
            continue
        known = unit if pair.variant is variant else analyse(program, pair.variant)
        finished.append((make_pair or generate_pair)(program, known, pair))
    units = {generated.pair: generated.unit for generated in finished}
    if request.callee is None:
        check_promises(unit, {each.function: each for each in units.values() if each is not unit})
    for pair, lane in launched:
        build_launchers(program, pair, lane, units[lane])
        note_launcher(program, pair, lane, lane_head(pair), LAUNCHER_FRAME)
    launch_loops(module)
    spread_bulk(module)
    tables = {str(table.name): variant for variant, table in program.tables.items()}
    program.tape_marks.append(TapeMark(None, (), made.variant))  # the caller provides this frame
    places = program.places() if request.watches else None
    return Generated(
        tuple(finished),
        tables,
        tuple(program.ruled),
        tuple(program.marks),
        tuple(program.tape_marks),
        program.frame_parts,
        places,
        launches,
    )


def launches_of(module: Module) -> dict[Function, CallSite]:
    """The first call of each function of a parallel loop."""
    found: dict[Function, CallSite] = {}
    for function in module.defined_functions():
        for call in function.instructions():
            if isinstance(call, CallSite) and isinstance(call.callee, Function) and is_loop_function(call.callee):
                found.setdefault(call.callee, call)
    return found


def _summarise_ruled(module: Module, request: Request, registry: Registry) -> None:
    """Finds what functions with a rule do to memory, from their bodies."""
    for symbol, memory in request.ruled:
        function = module.functions.get(symbol)
        if function is not None and not function.is_declaration:
            known = dict(zip(function.params, memory, strict=True))
            summarise(function, known, registry, function.params[0], returns_new=returns_new(function, registry))


def analyse(program: Program, variant: Variant) -> Unit:
    """Runs the analyses on one variant and refuses what cannot be differentiated."""
    function, registry = variant.function, program.registry
    kinds = dict(zip(function.params, variant.kinds, strict=True))
    memory = dict(zip(function.params, variant.memory, strict=True))
    known = program.addresses
    points_to = find_objects(function, memory, registry, variant.apart, program.signatures, kinds, known)
    memory_types = find_memory_types(function, points_to, memory, registry)
    if retype_copies(function, memory_types):
        known.forget(function)
        points_to = find_objects(function, memory, registry, variant.apart, program.signatures, kinds, known)
        memory_types = find_memory_types(function, points_to, memory, registry)
    cfg = control_flow(function)
    tree = dominators(cfg)
    loops = loop_nest(cfg, tree)
    if not program.saves_all:
        hoist_invariant_loads(loops, tree, points_to, registry)
    arguments_change = program.request.arguments_may_change or not variant.is_entry
    kept = 0 if program.saves_all else keepable(function, points_to, registry, results_change=arguments_change)
    stays = 0
    for number in sorted(variant.stays):
        stays |= points_to.mask(function.params[number])
    effects = find_effects(
        cfg,
        points_to,
        registry,
        arguments_change=arguments_change,
        kept=kept,
        stays=stays,
        restores=program.request.restores,
    )
    shadowable = frozenset(
        p for p, kind in kinds.items() if kind is ParameterKind.SHADOW or (variant.is_entry and _has_floats(memory[p]))
    )
    activity = find_activity(function, kinds, points_to, shadowable, registry, result_active=variant.result_active)
    unit = Unit(
        program.module,
        function,
        variant,
        registry,
        points_to,
        memory_types,
        activity,
        cfg,
        tree,
        loops,
        live_blocks(cfg, variant.is_entry),
        effects,
        everything=False,
        strict=program.request.strict,
        zero_wins=program.request.zero_wins,
        unneeded=frozenset(function.params[i] for i in program.request.unneeded) if variant.is_entry else frozenset(),
        signatures=program.signatures,
        has_types=program.request.has_types,
        workspace=frozenset(function.params[i] for i in program.request.workspace) if variant.is_entry else frozenset(),
    )
    check_unit(unit)
    if program.saves_all:
        activity = everything(function, points_to, memory_types, shadowable, registry, activity, program.signatures)
        unit = replace(unit, activity=activity, everything=True)
        check_unit(unit)
    if variant.is_lane:
        unit = replace(unit, sharing=find_sharing(unit, program.loops[function]))
    return unit


def generate_pair(program: Program, unit: Unit, pair: Pair) -> GeneratedPair:
    """Generates both functions of a pair."""
    forward = build_forward(program, unit, pair)
    sweep, loops = generate_reverse(forward)
    materialiser = Materialiser(sweep, loops, Recipes.of(sweep, loops))
    plan = materialiser.run()
    defer_frees(forward, forward.kept & unit.effects.kept)
    forward.scopes.declare(pair.augmented)
    sweep.scopes.declare(pair.reverse)
    tape = note_tape(forward, materialiser)
    if program.request.watches:
        watch_pair(forward, sweep, loops)
    check_allocations(forward)
    check_stack(forward)
    size = -(-max(forward.frame.size, 1) // 64) * 64
    pair.frame_size.initializer = const_int(I64, size)
    return GeneratedPair(pair, unit, plan, forward, tape)


def _entry_shadows(unit: Unit) -> tuple[int, ...]:
    """The parameters whose memory has a shadow, asked for or for company of another."""
    return tuple(
        i
        for i, param in enumerate(unit.function.params)
        if isinstance(param.type, PointerType) and unit.activity.has_shadow(param)
    )


def _has_floats(memory: MemoryType | None) -> bool:
    return memory is not None and bool(memory.floats())
