"""The function around a forward rule: gives the arguments tangents, calls the rule, stores what it returned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Final

from llvmlite.ir import IRBuilder, Value
from numba.core import cgutils, types
from numba.core.base import BaseContext
from numba.core.compiler import CompileResult
from numba.core.types import Type
from numba.core.typing import Signature

from irad.errors import RuleError
from irad.frontend.calls import seeding
from irad.frontend.calls.seeding import part_of, place_of
from irad.frontend.custom import emit
from irad.frontend.custom.catalogue import CustomRule
from irad.frontend.custom.glue import Glue, Typed, calling, can_convert, compile_part
from irad.frontend.custom.signature import Result, at_path, fits, misfit, of_directions, writable
from irad.frontend.custom.specialise import rule_dispatcher
from irad.frontend.custom.workspace.slots import TAKING
from irad.frontend.generated import function_from
from irad.frontend.memory.shadows import differ
from irad.frontend.numba.messages import described
from irad.frontend.values import abi
from irad.frontend.values.tree import Content, LeafKind

_KIND: Final = "forward"
_NOTHING: Final = types.Tuple([types.none, types.none])
_SHAPE_MISFIT: Final = (
    "the forward of a rule returns a tangent whose shape differs from its array",
    "return a tangent of the same shape: np.zeros_like(y)",
    "it needs an element for the tangent of each element",
)
_STRIDE_MISFIT: Final = (
    "the forward of a rule returns a tangent whose strides differ from those of its array",
    "make the tangent in the same way as the array: the same view, the same order of the axes",
    "an element of the array and its tangent lie at the same distance from the beginning",
)


def compile_tangent(glue: Glue, width: int) -> CompileResult:
    """Numba's compile result of the function around a forward rule, without machine code."""
    dispatcher = rule_dispatcher(_tangent(glue, width), only_linked=True)
    made = compile_part(glue.rule, _KIND, dispatcher, _types(glue, width))
    made.library.environments = (*glue.environments, made.environment)
    made.library.slots = glue.slots  # as long as code that takes slots lives, so do they
    return made


def _types(glue: Glue, width: int) -> tuple[Type, ...]:
    pointers = (types.voidptr,) * (2 + width * (1 + len(glue.shadowed)))
    return (*pointers, *glue.float_types * width, *(argument.type for argument in glue.arguments))


def _tangent(glue: Glue, width: int) -> Callable[..., object]:
    """(arena, returned, its shadows, shadows…, tangents of floats…, arguments…) → None.

    The rule is called for all lanes at once, or for each, for the first at last: its value is the one that stays.
    """
    shadow_count, float_count = len(glue.shadowed), len(glue.float_types)
    lanes = range(width)
    groups = [lanes] if glue.rule.takes_lanes(_KIND) else [range(lane, lane + 1) for lane in reversed(lanes)]
    returned = [f"returned_shadow{lane}" for lane in lanes]
    shadows = [[f"shadow{i}_{lane}" for i in range(shadow_count)] for lane in lanes]
    numbers = [[f"tangent{i}_{lane}" for i in range(float_count)] for lane in lanes]
    arguments = [f"argument{i}" for i in range(len(glue.arguments))]
    called = [[*chain(*(shadows[i] + numbers[i] for i in group)), *arguments] for group in groups]

    def annotate(context: BaseContext, builder: IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
        rest, beside = iter(values), []
        for _ in groups[0]:
            pointers = iter([next(rest) for _ in range(shadow_count)])
            floats = iter([next(rest) for _ in range(float_count)])
            beside.append((pointers, emit.numbers(context, builder, glue.number_parts, floats)))
        items = emit.annotate(context, builder, glue.arguments, list(rest), beside)
        return context.make_tuple(builder, signature.return_type, items)

    def define_annotate(given: tuple[Type, ...]) -> Typed:
        return types.Tuple([argument.numba_type for argument in glue.arguments])(*given), annotate

    slot, taking = ([], "") if glue.slots is None else (["slot"], TAKING)
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
        **({} if glue.slots is None else glue.slots.scope(glue.define)),
        "call": glue.define(["given", *slot, *names], calling(glue, _KIND, len(slot))),
        "annotate": glue.define(names, define_annotate),
        "hand_on": glue.define(first, _handing_on(glue, keeps_value=True)),
        "hand_on_tangent": glue.define(first, _handing_on(glue, keeps_value=False)),
    }
    return function_from("tangent", source, "irad.rules forward", scope)


def _handing_on(glue: Glue, *, keeps_value: bool) -> Callable[[tuple[Type, ...]], Typed]:
    """Puts what the rule returned where its caller expects it; the value as well, or it is dropped."""

    def hand_on(context: BaseContext, builder: IRBuilder, signature: Signature, values: Sequence[Value]) -> Value:
        arena, returned, value, *returned_shadows = values
        value_type = signature.args[2]
        if value_type == types.none:
            value_type = _NOTHING
            value = context.make_tuple(builder, value_type, [context.get_dummy_value()] * 2)
        for lane, returned_shadow in enumerate(returned_shadows):
            place = returned if keeps_value and lane == 0 else None
            one = (value_type, value)
            if glue.rule.takes_lanes(_KIND):
                one = emit.of_lane(context, builder, *one, lane)
            shadow = emit.store_result(context, builder, glue.result, place, returned_shadow, *one, _SHAPE_MISFIT)
            _store_tangents(context, builder, glue.result, returned_shadow, *one)
            emit.give_to_arena(context, builder, arena, glue.result.cotangent_type, shadow)
        return context.get_dummy_value()

    def define(given: tuple[Type, ...]) -> Typed:
        _check(glue, given[2])
        return types.none(*given), hand_on

    return define


def _store_tangents(
    context: BaseContext, builder: IRBuilder, result: Result, returned_shadow: Value, value_type: Type, value: Value
) -> None:
    """Puts the tangents of the numbers in the value where the caller expects them; compares strides of arrays."""
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
            number = context.cast(builder, part_of(builder, tangent, leaf.path), given, leaf.type)
            builder.store(number, place_of(builder, place, leaf.path))
        elif leaf in result.arrays and leaf.type.layout == "A" and primal_type != types.none:
            pairs = ((primal, at_path(primal_type, leaf.path)), (tangent, given))
            _check_strides(context, builder, leaf, pairs)


def _check_strides(context: BaseContext, builder: IRBuilder, leaf: Content, pairs: Sequence[tuple[Value, Any]]) -> None:
    arrays = [context.make_array(each)(context, builder, part_of(builder, value, leaf.path)) for value, each in pairs]
    strides = [tuple(cgutils.unpack_tuple(builder, array.strides)) for array in arrays]
    misfit_there = seeding.Misfit(differ(builder, *strides), _STRIDE_MISFIT)
    with builder.if_then(misfit_there.is_there, likely=False):
        misfit_there.raise_it(context, builder, RuleError)


def _check(glue: Glue, returned: Type) -> None:
    """Checks the type of what a forward rule returned; if the primal is not needed, it may be None.

    Raises:
        RuleError: it does not fit.
    """
    rule, result, width = glue.rule, glue.result, glue.config.width
    if returned == types.none:
        returned = _NOTHING
    if not isinstance(returned, types.BaseTuple) or len(returned.types) != 2:
        raise misfit(rule, _KIND, "no pair", "(value, tangent)", described(returned))
    primal, tangent = returned.types
    may_lack = primal == types.none and not glue.config.needs_primal
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
