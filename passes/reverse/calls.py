"""Adjoints of calls: elementwise functions, ruled callees, and pairs."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

from irad.ir import types
from irad.ir.builder import Builder
from irad.ir.instructions import CallSite
from irad.ir.module import Function
from irad.ir.types import FloatType
from irad.ir.values import TrackedValue, Value
from irad.passes.analysis.refusals import no_rule
from irad.passes.callees import Pointer, Unknown, resolve
from irad.passes.mode import REVERSE
from irad.passes.request import ParameterKind
from irad.passes.reverse.adjoints import scaled
from irad.passes.reverse.sweep import Sweep
from irad.passes.reverse.windows import reverse_shared_move, window_of
from irad.passes.rule_context import RuleContext
from irad.passes.runtime import PAIR_REVERSE
from irad.passes.unit import Unit
from irad.passes.variant import PointerVariant, Variant
from irad.records import dataclass
from irad.ruleset.expr import Apply, Expr, Symbol, applied, compared_symbols, emit, symbols_of
from irad.ruleset.guards import zero_of
from irad.ruleset.interface import CallRule, Elementwise, Inactive
from irad.ruleset.sharing import Terms


def reverse_call(sweep: Sweep, call: CallSite) -> None:
    """Emits the adjoint of a call; nothing when nothing active touches it."""
    callee = resolve(call, sweep.augmented.unit.registry)
    match callee:
        case Elementwise():
            for _ in sweep.each_lane():
                _reverse_elementwise(sweep, call, callee)
        case Inactive(adjoint=adjoint):
            if adjoint is not None:
                adjoint(_ReverseRule(sweep, call), call)
        case CallRule():
            for lane in sweep.each_lane():
                if call in lane.augmented.rule_values and not reverse_shared_move(sweep, call):
                    callee.reverse(_ReverseRule(sweep, call), call, lane.augmented.rule_values[call])
        case Function():
            if call in sweep.augmented.callee_frames:
                _reverse_pair(sweep, call)
        case Pointer():
            if call in sweep.augmented.pointer_frames:
                _reverse_pointer(sweep, call)
        case Unknown(name=name):
            if sweep.take(call) is not None:
                raise no_rule(name)


def _reverse_elementwise(sweep: Sweep, call: CallSite, rule: Elementwise) -> None:
    cotangent = sweep.take(call)
    if cotangent is None:
        return
    for number, (argument, partial) in enumerate(zip(call.arguments, rule.partials, strict=False)):
        if partial is not None and sweep.is_active(argument):
            slope = sweep.once(call, number, _partial(sweep, call, partial))
            sweep.accumulate(argument, scaled(sweep, cotangent, slope))


def _partial(sweep: Sweep, call: CallSite, partial: Expr) -> Callable[[], Value]:
    """Emits a partial derivative of the function that is called."""

    def make() -> Value:
        assert isinstance(call.type, FloatType)
        expr, primals = _with_twins(sweep.augmented.unit, call, partial)
        compared = compared_symbols(expr)
        values = {
            name: (sweep.deciding_value if name in compared else sweep.factor)(primals[name])
            for name in sorted(symbols_of(expr))
        }
        return emit(expr, sweep.build, values, call.type)

    return make


def _with_twins(unit: Unit, call: CallSite, partial: Expr) -> tuple[Expr, dict[str, Value]]:
    """A partial derivative with a symbol for each function in it that the program computes as well, its *twin*.

    The slope of cos(x) is -sin(x), and programs that compute one often compute the other. The oracle does without.
    """
    values: dict[str, Value] = {"y": call} | {f"x{i}": each for i, each in enumerate(call.arguments)}
    terms = Terms()
    for function in () if unit.everything else applied([partial]):
        names = [each.name for each in function.arguments if isinstance(each, Symbol)]
        arguments = [values[name] for name in names]
        twin = _twin(unit, call, function.function, arguments) if len(names) == len(function.arguments) else None
        if twin is not None:
            symbol = Symbol(f"twin{len(values)}")
            values[symbol.name] = twin
            terms.equate(Apply(function.function, tuple(map(terms.of, function.arguments))), symbol)
    return terms.of(partial), values


def _twin(unit: Unit, call: CallSite, function: str, arguments: list[Value]) -> Value | None:
    """A call of a function whose value is known wherever that of another call is: it has run, in the same iteration."""
    assert call.block is not None
    for user in arguments[0].users if isinstance(arguments[0], TrackedValue) else ():
        if isinstance(user, CallSite) and user.arguments == arguments and user.block is not None:
            callee = resolve(user, unit.registry)
            loop = unit.loops.loop_of(user.block)
            is_known = unit.dominators.dominates(user.block, call.block) and (loop is None or loop.contains(call.block))
            if is_known and isinstance(callee, Elementwise) and callee.name == function:
                return user
    return None


def _reverse_pair(sweep: Sweep, call: CallSite) -> None:
    """Runs the callee's reverse on its frame; it stores the cotangents of its active arguments."""
    augmented = sweep.augmented
    frame, pair = augmented.callee_frames[call]
    _call_reverse(sweep, call, frame, pair[REVERSE], pair.variant)


def _reverse_pointer(sweep: Sweep, call: CallSite) -> None:
    """Reverses an indirect call, with the pair that the forward sweep found."""
    made = sweep.augmented.pointer_frames[call]
    place = sweep.build.byte_offset(sweep.need(made.pair), PAIR_REVERSE)
    _call_reverse(sweep, call, made.frame, sweep.build.load(types.PTR, place), made.variant)


def _call_reverse(
    sweep: Sweep, call: CallSite, frame: Value, reverse: Value, variant: Variant | PointerVariant
) -> None:
    arguments: list[Value] = [sweep.need(frame), sweep.arena]
    if variant.result_active:
        arguments += [sweep.take(call) or zero_of(call.type) for _ in sweep.each_lane()]
    active = [a for a, k in zip(call.arguments, variant.kinds, strict=False) if k is ParameterKind.ACTIVE]
    outs = [[sweep.new_slot(a.type, zero_of(a.type)) for a in active] for _ in sweep.lanes]
    mode = sweep.augmented.program.request.mode
    sweep.build.call(reverse, [*arguments, *chain(*outs)], mode[REVERSE].type_of(variant, ()))
    for _, mine in zip(sweep.each_lane(), outs, strict=True):
        for argument, out in zip(active, mine, strict=True):
            sweep.accumulate(argument, sweep.build.load(argument.type, out))


@dataclass(eq=False, slots=True)
class _ReverseRule(RuleContext):
    """The `ReverseContext` of one call."""

    sweep: Sweep
    call: CallSite

    @property
    def unit(self) -> Unit:
        return self.sweep.augmented.unit

    @property
    def builder(self) -> Builder:
        return self.sweep.build

    def value(self, primal: Value) -> Value:
        return self.sweep.deciding_value(primal)  # what a rule does with it is not known here

    def shadow(self, pointer: Value) -> Value:
        window = window_of(self.sweep, pointer)
        return self.sweep.shadow(pointer) if window is None else window.partial(pointer)

    def cotangent(self, result: Value) -> Value:
        return self.sweep.take(result) or zero_of(result.type)

    def accumulate(self, value: Value, amount: Value) -> None:
        self.sweep.accumulate(value, amount)
