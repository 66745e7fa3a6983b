"""Functions around those of a rule: annotate the arguments, call the rule, pass on its result.

Numba compiles rules as it compiles everything else; they may call what njit code may call, derivatives included, and
are inlined into the derivative where they are small.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import field
from itertools import chain
from typing import Any, Final, TypeAlias

from llvmlite.ir import Value
from numba.core import cgutils, errors as numba_errors, types
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher
from numba.core.registry import CPUDispatcher
from numba.core.types import Type
from numba.core.typing import Signature

from irad.driver import ParameterKind
from irad.errors import RuleError, SourceLocation
from irad.frontend.calls import seeding
from irad.frontend.calls.definition import Definition
from irad.frontend.calls.exceptions import raise_status
from irad.frontend.calls.seeding import part_of, place_of
from irad.frontend.custom import adapter_code
from irad.frontend.custom.catalogue import CustomRule, location_of
from irad.frontend.custom.partial_evaluation import rule_dispatcher
from irad.frontend.custom.rule_arguments import ConfigType, RuleConfig
from irad.frontend.custom.rule_types import (
    BY_LLVM,
    Annotated,
    Result,
    at_path,
    check_augmented,
    check_cotangents,
    fits,
    in_lanes_of,
    misfit,
    of_directions,
    parts_of,
    pointer_index,
    writable,
)
from irad.frontend.custom.rule_workspace import TAKING, Slots
from irad.frontend.emit import Emit
from irad.frontend.generated import function_from
from irad.frontend.memory.shadows import differ
from irad.frontend.numba import internals
from irad.frontend.numba.messages import REFUSALS, described, explanation
from irad.frontend.numba.target import target_context, typing_context
from irad.frontend.values import abi, tree
from irad.frontend.values.tree import Content, LeafKind
from irad.passes.variant import Variant
from irad.records import dataclass

# Reverse mode: a pair of functions, the augmented primal and the reverse.

Typed: TypeAlias = tuple[Signature, Callable[..., Value]]
"""The signature of an intrinsic, and the function that lowers a call."""


@dataclass
class RulePairAdapter:
    """A rule and the call that it is adapted to, as the functions around the rule share them.

    Attributes:
        rule: the rule of the user.
        variant: variant of the primal that the functions are for.
        arguments: arguments of the primal.
        result: result of the primal.
        config: configuration that the rule is compiled for.
        width: number of directions of the derivative.
        slots: workspace of a stateful rule.
        held: type of the value in the frame; known when the augmented primal has been typed.
        tape_type: type of the tape; known when the augmented primal has been typed.
        definitions: intrinsics that the functions call.
        dispatchers: dispatchers of the rule's functions, kept alive.
        environments: Numba's environments of the rule's functions.
    """

    rule: CustomRule
    variant: Variant
    arguments: tuple[Annotated, ...]
    result: Result
    config: RuleConfig
    width: int = 1
    slots: Slots | None = None
    held: types.Tuple = field(init=False)
    tape_type: Type = field(init=False)
    definitions: list[Definition] = field(default_factory=list)
    dispatchers: list[CPUDispatcher] = field(default_factory=list)
    environments: list[object] = field(default_factory=list)

    def define(
        self, names: Sequence[str], types_and_lowers: Callable[[tuple[Type, ...]], Typed]
    ) -> Callable[..., object]:
        """An intrinsic that lives as long as this object."""
        self.definitions.append(Definition(names, types_and_lowers))
        return self.definitions[-1].intrinsic

    @property
    def shadowed(self) -> list[int]:
        """LLVM parameters of the arguments' arrays that take part."""
        leaves = (leaf for argument in self.arguments for leaf in argument.leaves if leaf in argument.active)
        return [pointer_index(leaf) for leaf in leaves if leaf.kind is not tree.LeafKind.NUMBER]

    @property
    def float_types(self) -> list[Type]:
        """The types of the floats that take part, in the order of the LLVM parameters."""
        kinds = zip(self.variant.function_type.params, self.variant.kinds, strict=True)
        return [BY_LLVM[str(type_)] for type_, kind in kinds if kind is ParameterKind.ACTIVE]

    @property
    def number_parts(self) -> dict[tree.Content, list[bool]]:
        """The numbers that take part, in the order of the LLVM parameters: for each which of its floats do."""
        return {
            leaf: [kind is ParameterKind.ACTIVE for kind in parts_of(leaf, self.variant)]
            for argument in self.arguments
            for leaf in argument.leaves
            if leaf in argument.active and leaf.kind is tree.LeafKind.NUMBER
        }

    def lanes(self, kind: str) -> int | None:
        """Number of directions that a function of the rule takes at once; None if it is called for each."""
        return self.width if self.rule.takes_lanes(kind) else None

    def groups(self, kind: str) -> list[range]:
        """The directions for which a function of the rule is called, call by call."""
        each = [range(lane, lane + 1) for lane in range(self.width)]
        return each if self.lanes(kind) is None else [range(self.width)]

    @property
    def cotangent_type(self) -> Type:
        """The cotangent of the result as the reverse is given it."""
        return in_lanes_of(self.result.cotangent_type, self.lanes("reverse"))

    @property
    def slot_types(self) -> list[Type]:
        """The types of the additional arguments of a stateful rule's functions."""
        return [] if self.slots is None else [self.slots.type]


def compile_both(adapter: RulePairAdapter) -> tuple[tuple[CompileResult, CompileResult], int]:
    """Numba's compile results of the two functions around a rule, and the size of their frame.

    They have no machine code: a derivative links them, and sets the environments that their libraries name.
    """
    forward, backward = (rule_dispatcher(f(adapter), is_part=True) for f in (_augmented, _reverse))
    # First: what it returns decides the types in the frame, which the reverse reads.
    augmented = compile_part(adapter.rule, "augmented_primal", forward, _augmented_types(adapter))
    reverse = compile_part(
        adapter.rule, "reverse", backward, (types.voidptr,) * (1 + adapter.width * len(adapter.float_types))
    )
    for each in (augmented, reverse):
        each.library.environments = (*adapter.environments, each.environment)
    context = target_context()
    groups = adapter.groups("reverse")
    pointers = len(groups[0]) * (len(adapter.shadowed) + 1)
    size = len(groups) * context.get_abi_sizeof(adapter_code.frame_type(context, adapter.held, pointers))
    augmented.library.slots = adapter.slots  # as long as code that takes slots lives, so do they
    return (augmented, reverse), size


def compile_part(
    rule: CustomRule, kind: str, dispatcher: Dispatcher, argument_types: tuple[Type, ...]
) -> CompileResult:
    """Numba's compile result; the dispatcher remembers none, for there is no entry point."""
    try:
        return internals.compile_only(dispatcher, argument_types, None)
    except REFUSALS as error:
        raise _refused(rule, kind, error) from error


def _refused(rule: CustomRule, kind: str, error: Exception) -> RuleError:
    function = rule.parts[kind]
    place = location_of(function)
    assert place is not None
    found = explanation(error)
    line = next((line for file, line in found.places if file == place.file), place.line)
    return RuleError(
        f"Numba cannot compile the {kind} of the rule for {rule.name}: {found.problem}",
        f"write it so that numba.njit compiles it; its arguments are {_PARAMETERS[kind]}",
        f"a rule is compiled like the function; its arguments have a value, and a {_COMPANIONS[kind]}",
        SourceLocation(place.file, line, place.function),
        focus=found.focus,
    )


_PARAMETERS: Final = {
    "augmented_primal": "(config, annotated arguments…)",
    "reverse": "(config, cotangent, tape, annotated arguments…)",
    "forward": "(config, annotated arguments…)",
}
_COMPANIONS: Final = {
    "augmented_primal": "shadow if they are active memory",
    "reverse": "shadow if they are active memory",
    "forward": "tangent if they are active",
}


# ------------------------------------------------------------------------------------------------ the two functions


def _augmented_types(adapter: RulePairAdapter) -> tuple[Type, ...]:
    pointers = (types.voidptr,) * (3 + adapter.width * (1 + len(adapter.shadowed)))
    return (*pointers, *(argument.type for argument in adapter.arguments))


def _augmented(adapter: RulePairAdapter) -> Callable[..., object]:
    """(frame, arena, returned, its shadows, shadows…, arguments…) → None.

    The rule is called for all lanes at once, or once per lane; lane 0 comes last, so its value is the one kept.
    """
    arguments = [f"argument{i}" for i in range(len(adapter.arguments))]
    returned = [f"returned_shadow{lane}" for lane in range(adapter.width)]
    shadows = [[f"shadow{i}_{lane}" for i in range(len(adapter.shadowed))] for lane in range(adapter.width)]
    slot, taking = ([], "") if adapter.slots is None else (["slot"], TAKING)
    scope: dict[str, object] = {} if adapter.slots is None else adapter.slots.scope(adapter.define)
    source = f"def augmented({', '.join(['frame', 'arena', 'returned', *returned, *chain(*shadows), *arguments])}):\n"
    for number, group in reversed(list(enumerate(adapter.groups("augmented_primal")))):
        mine = [*chain.from_iterable(shadows[lane] for lane in group), *arguments]
        places = ["frame", "arena", "returned", *(returned[lane] for lane in group)]
        source += (
            f"{taking}"
            f"    given{number} = annotate{number}({', '.join(mine)})\n"
            f"    result{number} = call{number}({', '.join([f'given{number}', *slot, *mine])})\n"
            f"    hand_on{number}({', '.join([*places, f'result{number}', *mine, *slot])})\n"
        )
        called = calling(adapter, "augmented_primal", len(slot))
        scope |= {
            f"annotate{number}": adapter.define(mine, _annotating(adapter, len(group))),
            f"call{number}": adapter.define([f"given{number}", *slot, *mine], called),
            f"hand_on{number}": adapter.define(
                [*places, f"result{number}", *mine, *slot], _keeping(adapter, number, group)
            ),
        }
    return function_from("augmented", source, "irad.rules augmented", scope)


def _annotating(adapter: RulePairAdapter, width: int) -> Callable[[tuple[Type, ...]], Typed]:
    """Packs the shadows of lanes, and the arguments, as annotated arguments."""

    def annotate(emit: Emit, signature: Signature, values: Sequence[Value]) -> Value:
        pointers = iter(values)
        lanes = [(iter([next(pointers) for _ in adapter.shadowed]), iter(())) for _ in range(width)]
        items = adapter_code.annotate(emit, adapter.arguments, list(pointers), lanes)
        return emit.context.make_tuple(emit.builder, signature.return_type, items)

    def define(given: tuple[Type, ...]) -> Typed:
        return types.Tuple([argument.numba_type for argument in adapter.arguments])(*given), annotate

    return define


def _keeping(adapter: RulePairAdapter, number: int, group: range) -> Callable[[tuple[Type, ...]], Typed]:
    """Passes on the result of the augmented primal, and keeps in the frame the values that the reverse needs."""
    count = len(adapter.shadowed) * len(group)
    lanes = adapter.lanes("augmented_primal")

    def hand_on(emit: Emit, signature: Signature, values: Sequence[Value]) -> Value:
        context, builder = emit.context, emit.builder
        frame, arena, returned, *rest = values
        returned_shadows, value, rest = rest[: len(group)], rest[len(group)], rest[len(group) + 1 :]
        value_type = signature.args[3 + len(group)]
        found = []
        for lane, returned_shadow in zip(group, returned_shadows, strict=True):
            one = (value_type, value)
            if lanes is not None:
                one = adapter_code.of_lane(emit, *one, lane)
            place = returned if lane == 0 else None
            found.append(adapter_code.store_result(emit, adapter.result, place, returned_shadow, *one))
        tape = builder.extract_value(value, 2)
        held = [
            context.get_dummy_value() if numba_type == types.none else each
            for each, numba_type in zip(rest[count:], adapter.held.types, strict=False)
        ]
        shadow = adapter_code.in_lanes(emit, adapter.cotangent_type, found, lanes)
        items = context.make_tuple(builder, adapter.held, [*held, shadow, tape])
        pointers = [*rest[:count], *returned_shadows]
        adapter_code.keep(emit, arena, frame, number, pointers, adapter.held, items)
        return context.get_dummy_value()

    def define(given: tuple[Type, ...]) -> Typed:
        returned, needs_primal = given[3 + len(group)], adapter.config.needs_primal
        check_augmented(adapter.rule, adapter.result, returned, can_convert, needs_primal=needs_primal, lanes=lanes)
        assert isinstance(returned, types.BaseTuple)
        adapter.tape_type = returned.types[2]
        kept = [*(argument.held_type for argument in adapter.arguments), *adapter.slot_types]
        adapter.held = types.Tuple([*kept, adapter.cotangent_type, adapter.tape_type])
        return types.none(*given), hand_on

    return define


def _reverse(adapter: RulePairAdapter) -> Callable[..., object]:
    """(frame, pointers for cotangents…) → None."""
    outs = [[f"out{i}_{lane}" for i in range(len(adapter.float_types))] for lane in range(adapter.width)]
    scope: dict[str, object] = {}
    source = f"def reverse({', '.join(['frame', *chain(*outs)])}):\n"
    for number, group in enumerate(adapter.groups("reverse")):
        mine = list(chain.from_iterable(outs[lane] for lane in group))
        source += (
            f"    kept{number} = restore{number}(frame)\n"
            f"    result{number} = call{number}(kept{number})\n"
            f"    clear{number}(kept{number}[{len(adapter.slot_types)}])\n"
            f"    deliver{number}({', '.join([f'result{number}', *mine])})\n"
        )
        scope |= {
            f"restore{number}": adapter.define(["frame"], _restoring(adapter, number, len(group))),
            f"call{number}": adapter.define([f"kept{number}"], calling(adapter, "reverse", 0)),
            f"clear{number}": adapter.define(["shadow"], _clearing(adapter)),
            f"deliver{number}": adapter.define([f"result{number}", *mine], _delivering(adapter)),
        }
    return function_from("reverse", source, "irad.rules reverse", scope)


def _restoring(adapter: RulePairAdapter, number: int, width: int) -> Callable[[tuple[Type, ...]], Typed]:
    """Builds the tuple of arguments of the reverse: slot, cotangent, tape, annotated arguments."""
    count, lanes = len(adapter.shadowed), adapter.lanes("reverse")

    def restore(emit: Emit, signature: Signature, values: Sequence[Value]) -> Value:
        context, builder = emit.context, emit.builder
        (frame,) = values
        pointers, value = adapter_code.kept(emit, frame, number, adapter.held, width * (count + 1))
        *arguments, shadow, tape = cgutils.unpack_tuple(builder, value, len(adapter.held.types))
        arguments, slot = arguments[: len(adapter.arguments)], arguments[len(adapter.arguments) :]
        shadows = adapter_code.of_lanes(builder, adapter.cotangent_type, shadow, lanes)
        pairs = zip(pointers[width * count :], shadows, strict=True)
        each = [adapter_code.cotangent(emit, adapter.result, *pair) for pair in pairs]
        found = adapter_code.in_lanes(emit, adapter.cotangent_type, each, lanes)
        context.nrt.incref(builder, adapter.cotangent_type, found)
        context.nrt.incref(builder, adapter.tape_type, tape)
        beside = [(iter(pointers[lane * count : (lane + 1) * count]), iter(())) for lane in range(width)]
        items = adapter_code.annotate(emit, adapter.arguments, arguments, beside)
        return context.make_tuple(builder, signature.return_type, [*slot, found, tape, *items])

    def define(given: tuple[Type, ...]) -> Typed:
        annotated = [argument.numba_type for argument in adapter.arguments]
        return types.Tuple([*adapter.slot_types, adapter.cotangent_type, adapter.tape_type, *annotated])(
            *given
        ), restore

    return define


def _clearing(adapter: RulePairAdapter) -> Callable[[tuple[Type, ...]], Typed]:
    """Clears the shadows of the function's result."""
    lanes = adapter.lanes("reverse")

    def clear(emit: Emit, signature: Signature, values: Sequence[Value]) -> Value:
        for each in adapter_code.of_lanes(emit.builder, adapter.cotangent_type, values[0], lanes):
            adapter_code.clear(emit, adapter.result, each)
        return emit.context.get_dummy_value()

    return lambda given: (types.none(*given), clear)


def _delivering(adapter: RulePairAdapter) -> Callable[[tuple[Type, ...]], Typed]:
    """Stores the cotangents that the reverse returned."""
    lanes, parts = adapter.lanes("reverse"), adapter.number_parts

    def deliver(emit: Emit, signature: Signature, values: Sequence[Value]) -> Value:
        result, *pointers = values
        rest = iter(pointers)
        for lane in [()] if lanes is None else [(number,) for number in range(lanes)]:
            adapter_code.deliver(emit, adapter.arguments, parts, signature.args[0], result, rest, lane)
        return emit.context.get_dummy_value()

    def define(given: tuple[Type, ...]) -> Typed:
        check_cotangents(adapter.rule, adapter.arguments, given[0], can_convert, lanes)
        return types.none(*given), deliver

    return define


def calling(adapter: RulePairAdapter, kind: str, slots: int) -> Callable[[tuple[Type, ...]], Typed]:
    """A call of a function of the rule with the items of a tuple, after configuration and slot.

    When it raises, the references that Numba's code holds at this place are dropped: those in the tuple, and those of
    the values that the call is given only for this.
    """

    def define(given: tuple[Type, ...]) -> Typed:
        packed = given[0]
        assert isinstance(packed, types.BaseTuple)
        rule_types = (ConfigType(adapter.config), *given[1 : 1 + slots], *packed.types)
        dispatcher = rule_dispatcher(adapter.rule.part(kind), is_part=True)
        adapter.dispatchers.append(dispatcher)
        taken = _taken_types(adapter.rule, kind, dispatcher, rule_types)
        compiled = compile_part(adapter.rule, kind, dispatcher, taken)
        adapter.environments.append(compiled.environment)

        def lower(emit: Emit, signature: Signature, values: Sequence[Value]) -> Value:
            context, builder = emit.context, emit.builder
            items = cgutils.unpack_tuple(builder, values[0], len(packed.types))
            passed = [context.get_dummy_value(), *values[1 : 1 + slots], *items]
            arguments = _taken(emit, taken, passed)
            context.active_code_library.add_linking_library(compiled.library)
            status, result = context.call_internal_no_propagate(builder, compiled.fndesc, compiled.signature, arguments)
            with cgutils.if_unlikely(builder, status.is_error):
                for numba_type, value in zip(given, values, strict=True):
                    context.nrt.decref(builder, numba_type, value)
                raise_status(emit, status)
            return result

        return compiled.signature.return_type(*given), lower

    return define


def _taken_types(rule: CustomRule, kind: str, dispatcher: Dispatcher, passed: tuple[Type, ...]) -> tuple[Type, ...]:
    """The types of a rule's parameters: star arguments as one tuple, defaults where nothing is passed.

    Raises:
        RuleError: it takes another number of arguments.
    """
    try:
        _, taken = dispatcher.fold_argument_types(passed, {})
    except (TypeError, numba_errors.TypingError) as error:
        parameters = inspect.signature(rule.parts[kind])
        raise RuleError(
            f"the {kind} of the rule for {rule.name} takes {parameters}, but is called with {len(passed)} arguments",
            f"let it take {_PARAMETERS[kind]}",
            "the parameters common to all rules come first, followed by the arguments of the function",
            location_of(rule.parts[kind]),
        ) from error
    return tuple(taken)


def _taken(emit: Emit, taken: tuple[Type, ...], passed: list[Value]) -> list[Value]:
    """The values of a rule's parameters."""
    context = emit.context
    values = iter(passed)
    found = []
    for numba_type in taken:
        match numba_type:
            case types.StarArgTuple() | types.StarArgUniTuple():
                found.append(context.make_tuple(emit.builder, numba_type, [next(values) for _ in numba_type.types]))
            case types.Omitted():
                found.append(context.get_dummy_value())
            case _:
                found.append(next(values))
    return found


def can_convert(found: Type, wanted: Type) -> bool:
    """True if a value of one type may be returned where another is expected."""
    return found == wanted or typing_context().can_convert(found, wanted) is not None


# Forward mode: gives the arguments tangents, calls the rule, stores what it returned.

_KIND: Final = "forward"
_NO_TANGENT: Final = types.Tuple([types.none, types.none])
_SHAPE_MISFIT: Final = (
    "the forward of a rule returns a tangent whose shape differs from that of its array",
    "return a tangent of the same shape: np.zeros_like(y)",
    "it needs an element for the tangent of each element",
)
_STRIDE_MISFIT: Final = (
    "the forward of a rule returns a tangent whose strides differ from those of its array",
    "make the tangent in the same way as the array: the same view, the same order of the axes",
    "an element of the array and its tangent must have the same offset",
)


def compile_tangent(adapter: RulePairAdapter) -> CompileResult:
    """Numba's compile result of the function around a forward rule, without machine code."""
    dispatcher = rule_dispatcher(_tangent(adapter), is_part=True)
    made = compile_part(adapter.rule, _KIND, dispatcher, _tangent_types(adapter))
    made.library.environments = (*adapter.environments, made.environment)
    made.library.slots = adapter.slots  # as long as code that takes slots lives, so do they
    return made


def _tangent_types(adapter: RulePairAdapter) -> tuple[Type, ...]:
    pointers = (types.voidptr,) * (2 + adapter.width * (1 + len(adapter.shadowed)))
    return (*pointers, *adapter.float_types * adapter.width, *(argument.type for argument in adapter.arguments))


def _tangent(adapter: RulePairAdapter) -> Callable[..., object]:
    """(arena, returned, its shadows, shadows…, tangents of floats…, arguments…) → None.

    The rule is called for all lanes at once, or once per lane; lane 0 comes last, so its value is the one kept.
    """
    shadow_count, float_count = len(adapter.shadowed), len(adapter.float_types)
    lanes, groups = range(adapter.width), adapter.groups(_KIND)[::-1]
    returned = [f"returned_shadow{lane}" for lane in lanes]
    shadows = [[f"shadow{i}_{lane}" for i in range(shadow_count)] for lane in lanes]
    numbers = [[f"tangent{i}_{lane}" for i in range(float_count)] for lane in lanes]
    arguments = [f"argument{i}" for i in range(len(adapter.arguments))]
    called = [[*chain(*(shadows[i] + numbers[i] for i in group)), *arguments] for group in groups]

    def annotate(emit: Emit, signature: Signature, values: Sequence[Value]) -> Value:
        rest, beside = iter(values), []
        for _ in groups[0]:
            pointers = iter([next(rest) for _ in range(shadow_count)])
            floats = iter([next(rest) for _ in range(float_count)])
            beside.append((pointers, adapter_code.numbers(emit, adapter.number_parts, floats)))
        items = adapter_code.annotate(emit, adapter.arguments, list(rest), beside)
        return emit.context.make_tuple(emit.builder, signature.return_type, items)

    def define_annotate(given: tuple[Type, ...]) -> Typed:
        return types.Tuple([argument.numba_type for argument in adapter.arguments])(*given), annotate

    slot, taking = ([], "") if adapter.slots is None else (["slot"], TAKING)
    calls = [
        f"    given = annotate({', '.join(names)})\n"
        f"    result = call({', '.join(['given', *slot, *names])})\n"
        f"    {'hand_on' if 0 in group else 'hand_on_tangent'}(arena, returned, result, "
        f"{', '.join(returned[lane] for lane in group)})\n"
        for group, names in zip(groups, called, strict=True)
    ]
    names, first = called[0], ["arena", "returned", "result", *(returned[lane] for lane in groups[0])]
    every = ["arena", "returned", *returned, *chain(*shadows, *numbers, arguments)]
    source = f"def tangent({', '.join(every)}):\n{taking}{''.join(calls)}"
    scope = {
        **({} if adapter.slots is None else adapter.slots.scope(adapter.define)),
        "call": adapter.define(["given", *slot, *names], calling(adapter, _KIND, len(slot))),
        "annotate": adapter.define(names, define_annotate),
        "hand_on": adapter.define(first, _storing_tangents(adapter, keeps_value=True)),
        "hand_on_tangent": adapter.define(first, _storing_tangents(adapter, keeps_value=False)),
    }
    return function_from("tangent", source, "irad.rules forward", scope)


def _storing_tangents(adapter: RulePairAdapter, *, keeps_value: bool) -> Callable[[tuple[Type, ...]], Typed]:
    """Puts the rule's result where its caller expects it; the value as well, or it is dropped."""

    def hand_on(emit: Emit, signature: Signature, values: Sequence[Value]) -> Value:
        context = emit.context
        arena, returned, value, *returned_shadows = values
        value_type = signature.args[2]
        if value_type == types.none:
            value_type = _NO_TANGENT
            value = context.make_tuple(emit.builder, value_type, [context.get_dummy_value()] * 2)
        for lane, returned_shadow in enumerate(returned_shadows):
            place = returned if keeps_value and lane == 0 else None
            one = (value_type, value)
            if adapter.rule.takes_lanes(_KIND):
                one = adapter_code.of_lane(emit, *one, lane)
            shadow = adapter_code.store_result(emit, adapter.result, place, returned_shadow, *one, _SHAPE_MISFIT)
            _store_tangents(emit, adapter.result, returned_shadow, *one)
            adapter_code.give_to_arena(emit, arena, adapter.result.cotangent_type, shadow)
        return context.get_dummy_value()

    def define(given: tuple[Type, ...]) -> Typed:
        _check_forward(adapter, given[2])
        return types.none(*given), hand_on

    return define


def _store_tangents(emit: Emit, result: Result, returned_shadow: Value, value_type: Type, value: Value) -> None:
    """Puts the tangents of the numbers in the value where the caller expects them; compares strides of arrays."""
    builder = emit.builder
    if not result.is_active:
        return
    place = builder.bitcast(returned_shadow, abi.return_llvm_type(result.type).as_pointer())
    assert isinstance(value_type, types.BaseTuple)
    primal_type, tangent_type = value_type.types
    primal, tangent = (builder.extract_value(value, i) for i in (0, 1))
    for leaf in result.leaves:
        given = at_path(tangent_type, leaf.path)
        if leaf.kind is LeafKind.NUMBER:
            assert given is not None
            number = emit.context.cast(builder, part_of(builder, tangent, leaf.path), given, leaf.type)
            builder.store(number, place_of(builder, place, leaf.path))
        elif leaf in result.arrays and leaf.type.layout == "A" and primal_type != types.none:
            pairs = ((primal, at_path(primal_type, leaf.path)), (tangent, given))
            _check_strides(emit, leaf, pairs)


def _check_strides(emit: Emit, leaf: Content, pairs: Sequence[tuple[Value, Any]]) -> None:
    context, builder = emit.context, emit.builder
    arrays = [context.make_array(each)(context, builder, part_of(builder, value, leaf.path)) for value, each in pairs]
    strides = [tuple(cgutils.unpack_tuple(builder, array.strides)) for array in arrays]
    misfit_there = seeding.Misfit(differ(builder, *strides), _STRIDE_MISFIT)
    with builder.if_then(misfit_there.is_there, likely=False):
        misfit_there.raise_it(emit, RuleError)


def _check_forward(adapter: RulePairAdapter, returned: Type) -> None:
    """Checks the type of a forward rule's result; if the primal is not needed, it may be None.

    Raises:
        RuleError: it does not fit.
    """
    rule, result, width = adapter.rule, adapter.result, adapter.config.width
    if returned == types.none:
        returned = _NO_TANGENT
    if not isinstance(returned, types.BaseTuple) or len(returned.types) != 2:
        raise misfit(rule, _KIND, "no pair", "(value, tangent)", described(returned))
    primal, tangent = returned.types
    may_lack = primal == types.none and not adapter.config.needs_primal
    if primal != result.type and not may_lack and not can_convert(primal, result.type):
        raise misfit(rule, _KIND, "a value of the wrong type", described(result.type), described(primal))
    lanes = width if rule.takes_lanes(_KIND) and tangent != types.none else None
    for each in of_directions(rule, _KIND, "tangent", tangent, lanes):
        _check_tangent(rule, result, each)


def _check_tangent(rule: CustomRule, result: Result, tangent: Type) -> None:
    for leaf in result.leaves if result.is_active else ():
        found, wanted = at_path(tangent, leaf.path), writable(leaf.type)
        if leaf.kind is LeafKind.INERT:
            continue
        if not fits(found, wanted, can_convert):
            where = "".join(f"[{index}]" for index in leaf.path)
            raise misfit(rule, _KIND, f"the wrong tangent{where}", described(wanted), described(found))
