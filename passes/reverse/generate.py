"""Generates the reverse sweep of a pair: visits live blocks and their instructions in reverse order."""

from __future__ import annotations

from irad.errors import IradError
from irad.ir.builder import Builder
from irad.ir.cfg import remove_unreachable_blocks
from irad.ir.instructions import Call, CallBr, CallSite, Instruction, Invoke, Ret, Store
from irad.ir.module import Block
from irad.ir.values import Parameter, Value
from irad.passes.augmented.primal import AugmentedPrimal
from irad.passes.callee_variants import takes_part
from irad.passes.callees import resolve
from irad.passes.request import ParameterKind
from irad.passes.reverse.adjoints import reverse_instruction
from irad.passes.reverse.calls import reverse_call
from irad.passes.reverse.control import AugmentedLoops, Control, enter_loops, reversed_order
from irad.passes.reverse.sweep import ReversePlace, Sweep
from irad.passes.unit import Unit
from irad.ruleset.guards import zero_of
from irad.ruleset.interface import Inactive


def generate_reverse(augmented: AugmentedPrimal) -> tuple[Sweep, AugmentedLoops]:
    """Builds the reverse function of a pair, with placeholders for the values that it needs of the forward sweep."""
    sweep = Sweep(augmented)
    _name_parameters(sweep)
    loops = AugmentedLoops(augmented)
    enter_loops(sweep)
    order = reversed_order(sweep)
    for block in order:
        made = sweep.function.add_block(f"{block.name}.adjoint")
        sweep.places[block] = ReversePlace(made, block)
    control = Control(sweep, loops, busy_blocks(augmented.unit))
    for block in order:
        _reverse_block(sweep, control, block)
    _finish(sweep, order)
    _drop_unreachable(sweep)
    return sweep, loops


def _drop_unreachable(sweep: Sweep) -> None:
    """Removes adjoint blocks that were skipped, with their needs."""
    remove_unreachable_blocks(sweep.function)
    left = set(sweep.function.blocks)
    sweep.needs = [need for need in sweep.needs if need.place.block in left]
    for state in sweep.loops.values():
        state.entries = [(place, block) for place, block in state.entries if place.block in left]
        if state.back is not None and state.back.block not in left:
            state.back = None


def _name_parameters(sweep: Sweep) -> None:
    pair, params = sweep.augmented.pair, sweep.function.params
    params[0].name, params[1].name = "frame", "arena"
    rest = params[2:]
    if pair.variant.result_active:
        for seed in rest[: len(sweep.lanes)]:
            seed.name = "result.cotangent"
        rest = rest[len(sweep.lanes) :]
    for index, out in zip(_active_parameters(sweep.augmented.unit) * len(sweep.lanes), rest, strict=True):
        out.name = f"{sweep.augmented.unit.function.params[index].name}.cotangent"
        # Callers pass a place of its own for each cotangent.
        out.attributes = ("noalias",)


def _active_parameters(unit: Unit) -> list[int]:
    return [i for i, kind in enumerate(unit.variant.kinds) if kind is ParameterKind.ACTIVE]


def _reverse_block(sweep: Sweep, control: Control, block: Block) -> None:
    place = sweep.places[block]
    sweep.place = place
    sweep.build = Builder(place.block)
    for lane in sweep.lanes:
        lane.local.clear()
    _seed_result(sweep, block)
    for inst in reversed(block.instructions):
        sweep.build.origin, sweep.build.metadata = inst, inst.metadata
        try:
            _reverse(sweep, inst)
        except IradError as error:
            error.instruction = error.instruction or inst
            raise
    control.finish(block)


def _reverse(sweep: Sweep, inst: Instruction) -> None:
    if isinstance(inst, Call | Invoke | CallBr):
        reverse_call(sweep, inst)
    elif not inst.targets:
        for _ in sweep.each_lane():
            reverse_instruction(sweep, inst)


def _seed_result(sweep: Sweep, block: Block) -> None:
    variant = sweep.augmented.pair.variant
    last = block.terminator
    if variant.result_active and not last.targets and last.operands:
        for number, _ in enumerate(sweep.each_lane()):
            sweep.accumulate(last.operands[0], sweep.function.params[2 + number])


def _finish(sweep: Sweep, order: list[Block]) -> None:
    """Enters the sweep at the adjoint of the return, and returns the cotangents of active parameters at its end."""
    unit = sweep.augmented.unit
    start = Builder(sweep.allocas)
    returns = [block for block in order if isinstance(block.terminator, Ret)]
    assert len(returns) <= 1, "the normal form has one return"
    if returns:
        start.br(sweep.places[returns[0]].block)
    build = sweep.build if order else start  # the entry block's adjoint is emitted last and has no terminator yet
    outs = iter(sweep.function.params[2 + unit.variant.result_active * len(sweep.lanes) :])
    for _ in sweep.each_lane():
        for index in _active_parameters(unit):
            param = unit.function.params[index]
            build.store(_final_cotangent(sweep, build, param), next(outs))
    build.ret()


def _final_cotangent(sweep: Sweep, build: Builder, param: Parameter) -> Value:
    """Cotangent that is returned: 0.0 and not -0.0 where nothing was added."""
    slot, nothing = sweep.slots.get(param), zero_of(param.type)
    return nothing if slot is None else sweep.add(build.load(param.type, slot), nothing)


def busy_blocks(unit: Unit) -> frozenset[Block]:
    """The blocks with a nonempty adjoint."""
    return frozenset(b for b in unit.cfg.order if any(_is_busy(unit, inst) for inst in b.instructions))


def _is_busy(unit: Unit, inst: Instruction) -> bool:
    if inst in unit.activity.active:
        return True
    match inst:
        case Store(operands=[_, pointer]):
            return unit.activity.has_shadow(pointer)
        case CallSite():
            match resolve(inst, unit.registry):
                case Inactive(adjoint=adjoint):
                    return adjoint is not None
                case _:
                    return takes_part(unit, inst)
        case _:
            return False
