"""Numba types of a rule's arguments and results, from the signature of the primal and from its active parts.

Input   the primal's signature and the `Variant` in which a derivative calls it.
Output  `Annotated` arguments, the types of cotangents and of shadows; errors for what a rule returned instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from numba import typeof
from numba.core import types
from numba.core.types import Type
from numba.core.typing import Signature

from irad.driver import ParameterKind
from irad.errors import RuleError
from irad.frontend.custom import rule_arguments
from irad.frontend.custom.catalogue import CustomRule, location_of
from irad.frontend.numba.messages import described
from irad.frontend.packing.packed import way_through
from irad.frontend.values import abi, layouts
from irad.frontend.values.tree import Content, LeafKind
from irad.ir.types import FunctionType
from irad.passes.variant import Variant
from irad.records import dataclass

_PLAIN = (LeafKind.NUMBER, LeafKind.ARRAY)


@dataclass(frozen=True)
class Annotated:
    """An argument of a ruled function in one variant.

    Attributes:
        type: as the primal takes it.
        value_type: as the rule sees it.
        leaves: its parts.
        active: those that take part.
        is_needed: whether anybody reads the memory after the call.
        is_forward: whether it is given to a forward rule: with its tangent.
        lanes: number of directions if the rule takes all at once, in tuples of tangents or shadows; else None.
    """

    type: Type
    value_type: Type
    leaves: tuple[Content, ...]
    active: frozenset[Content]
    is_needed: bool = True
    is_forward: bool = False
    lanes: int | None = None

    @property
    def held_type(self) -> Type:
        """As it is kept for the reverse: not at all, if the caller has left it out."""
        return types.none if isinstance(self.type, types.Omitted) else self.type

    @property
    def has_numbers(self) -> bool:
        """True if a number takes part."""
        return any(leaf.kind is LeafKind.NUMBER for leaf in self.active)

    @property
    def has_memory(self) -> bool:
        """True if memory takes part."""
        return any(leaf.kind is not LeafKind.NUMBER for leaf in self.active)

    @property
    def numba_type(self) -> Type:
        """The type of the annotated argument."""
        kind: type
        if self.is_forward and self.companion_type is not None:
            items = (self.value_type, self.companion_type)
            return rule_arguments.AnnotatedType(items, rule_arguments.TangentArgument, self._active_parts)
        if self.has_memory:
            duplicated = (
                rule_arguments.DuplicatedArgument if self.is_needed else rule_arguments.DuplicatedNoNeedArgument
            )
            kind = rule_arguments.MixedDuplicatedArgument if self.has_numbers else duplicated
            return rule_arguments.AnnotatedType((self.value_type, self.companion_type), kind, self._active_parts)
        kind = rule_arguments.ActiveArgument if self.has_numbers else rule_arguments.ConstArgument
        return rule_arguments.AnnotatedType((self.value_type,), kind, self._active_parts)

    @property
    def _active_parts(self) -> tuple[tuple[int, ...], ...]:
        return tuple(leaf.path for leaf in self.leaves if leaf in self.active)

    @property
    def shadow_type(self) -> Type:
        """The structure of the argument, with a shadow for each part that has one."""
        return structure(self.type, self.leaves, self._shadow_of)

    @property
    def companion_type(self) -> Type | None:
        """Type of the tangent (forward mode) or shadow that the rule gets with the value; None for nothing."""
        if not (self.active if self.is_forward else self.has_memory):
            return None
        return in_lanes_of(self.direction_type, self.lanes)

    @property
    def direction_type(self) -> Type:
        """Type of the tangent or shadow in one direction, in the structure of the argument."""
        return structure(self.type, self.leaves, self._tangent_of) if self.is_forward else self.shadow_type

    @property
    def cotangent_type(self) -> Type:
        """Type of the cotangent that the reverse returns: the structure of the argument, None where there is none."""
        if not self.has_numbers:
            return types.none
        return structure(self.type, self.leaves, self._cotangent_of)

    def _shadow_of(self, leaf: Content) -> Type:
        if leaf not in self.active or leaf.kind is LeafKind.NUMBER:
            return types.none
        return writable(leaf.type)

    def _tangent_of(self, leaf: Content) -> Type:
        return writable(leaf.type) if leaf in self.active else types.none

    def _cotangent_of(self, leaf: Content) -> Type:
        return leaf.type if leaf in self.active and leaf.kind is LeafKind.NUMBER else types.none


def in_lanes_of(one: Type, lanes: int | None) -> Type:
    """The type of the values that a rule is given for all directions, from that for one; None stays None."""
    return one if lanes is None or one == types.none else types.UniTuple(one, lanes)


def writable(array_type: Type) -> Type:
    """The type of an array that may be written to."""
    return array_type.copy(readonly=False) if isinstance(array_type, types.Array) else array_type


def structure(numba_type: Type, leaves: tuple[Content, ...], of: Callable[[Content], Type]) -> Type:
    """The type of a value with its leaves replaced."""
    found = iter(leaves)
    return layouts.mapped(numba_type, lambda _: of(next(found)))


def pointer_index(leaf: Content) -> int:
    """LLVM parameter that points to the memory of an array, or is a bare pointer."""
    return leaf.index if leaf.type == types.voidptr else leaf.data_index


def arguments_of(
    rule: CustomRule,
    signature: Signature,
    variant: Variant,
    first: int,
    *,
    is_forward: bool,
    lanes: int | None = None,
) -> tuple[Annotated, ...]:
    """The arguments of a ruled function.

    Args:
        rule: its.
        signature: its.
        variant: the roles of its parameters.
        first: the LLVM parameter at which the arguments begin.
        is_forward: whether they are for a forward rule.
        lanes: number of directions if the rule takes all at once; else None.

    Raises:
        RuleError: one of a type takes part that rules cannot be given yet.
    """
    found, index = [], first
    for position, numba_type in enumerate(map(types.unliteral, signature.args)):  # as Numba types what is compiled
        leaves = tuple(abi.leaves_of(numba_type, index))
        active = frozenset(leaf for leaf in leaves if _takes_part(leaf, variant))
        for leaf in active:
            if leaf.kind not in _PLAIN and leaf.type != types.voidptr:
                raise RuleError(
                    f"argument {position} of {rule.name}, which has a rule, holds {described(leaf.type)} that takes "
                    "part in the derivative",
                    "give functions with rules numbers, arrays and tuples of these",
                    "a rule receives the shadow of each active argument, and only numbers and arrays have one",
                    location_of(next(iter(rule.parts.values()))),
                )
        seen = typeof(numba_type.value) if isinstance(numba_type, types.Omitted) else numba_type
        memory = [pointer_index(leaf) for leaf in active if leaf.kind is not LeafKind.NUMBER]
        is_needed = not memory or not variant.unneeded.issuperset(memory)
        found.append(Annotated(numba_type, seen, leaves, active, is_needed, is_forward, lanes))
        index += layouts.width_of(numba_type)
    return tuple(found)


def _takes_part(leaf: Content, variant: Variant) -> bool:
    if leaf.type == types.voidptr:
        return variant.kinds[leaf.index] is ParameterKind.SHADOW
    if leaf.kind is LeafKind.INERT:
        return False  # integers may have one, where a pointer may reach floats too
    if leaf.kind is LeafKind.NUMBER:
        return any(k is ParameterKind.ACTIVE for k in parts_of(leaf, variant))
    if leaf.kind is LeafKind.ARRAY:
        return variant.kinds[leaf.data_index] is ParameterKind.SHADOW
    width = range(leaf.index, leaf.index + layouts.width_of(leaf.type))
    return any(variant.kinds[i] is not ParameterKind.CONST for i in width)


def parts_of(leaf: Content, variant: Variant) -> tuple[ParameterKind, ...]:
    """The kinds of parameters of the floats of a number."""
    return variant.kinds[leaf.index : leaf.index + leaf.float_count]


BY_LLVM: Final = {
    "double": types.float64,
    "float": types.float32,
    "ptr": types.voidptr,
    "i64": types.int64,
    "i32": types.int32,
    "i16": types.int16,
    "i8": types.int8,
    "void": types.none,
}


def c_signature(rule: CustomRule, function_type: FunctionType, *, is_read: bool) -> Signature:
    """The signature of a C function as Numba types, as far as LLVM tells it: pointers are bare.

    Numba calls a function that returns nothing as if it returned a pointer, which is never read.

    Args:
        rule: its.
        function_type: its.
        is_read: whether anybody reads what it returns.

    Raises:
        RuleError: a value of another type is passed.
    """
    found: list[Any] = [BY_LLVM.get(str(each)) for each in (function_type.result, *function_type.params)]
    if found[0] == types.voidptr and not is_read:
        found[0] = types.none
    if None in found or found[0] == types.voidptr:
        raise RuleError(
            f"{rule.name}, which has a rule, has the type {function_type}",
            "give rules to C functions of numbers and pointers that return a number or nothing",
            "how structures are passed differs from machine to machine",
            location_of(next(iter(rule.parts.values()))),
        )
    result, *parameters = found
    return result(*parameters)


@dataclass(frozen=True)
class Result:
    """The result of a ruled function in one variant: its type, its parts, whether they have a shadow."""

    type: Type
    leaves: tuple[Content, ...]
    is_active: bool

    @property
    def arrays(self) -> tuple[Content, ...]:
        """The arrays in it that a shadow is wanted of."""
        return tuple(leaf for leaf in self.leaves if leaf.kind is LeafKind.ARRAY) if self.is_active else ()

    @property
    def cotangent_type(self) -> Type:
        """The cotangent that the reverse gets: numbers, and the shadows of arrays, in the structure of the value."""
        if not self.is_active:
            return types.none
        return structure(self.type, self.leaves, lambda leaf: leaf.type if leaf.kind in _PLAIN else types.none)


def result_of(rule: CustomRule, signature: Signature, is_active: bool) -> Result:
    """The result of a ruled function.

    Raises:
        RuleError: it is of a type that rules cannot return yet.
    """
    returned: Any = types.unliteral(signature.return_type)
    leaves = tuple(abi.leaves_of(returned))
    for leaf in leaves:
        if isinstance(leaf.type, types.Optional) or (is_active and leaf.kind not in (*_PLAIN, LeafKind.INERT)):
            raise RuleError(
                f"{rule.name}, which has a rule, returns {described(leaf.type)}",
                "give rules to functions that return numbers, arrays and tuples of these",
                "a rule returns the shadow of the function's value, and only numbers and arrays have one",
                location_of(next(iter(rule.parts.values()))),
            )
    return Result(returned, leaves, is_active)


# ------------------------------------------------------------------------------------------------ what a rule returned


_CONTRACT: Final = {
    "augmented_primal": "it returns the value, its shadow (zeros for arrays that have a derivative, otherwise None) "
    "and the tape",
    "reverse": "it returns a cotangent for each number that has a derivative and None for other arguments, and adds "
    "to the shadows of arrays",
    "forward": "it gives the value and its tangent, which has the structure of the value",
}


def misfit(rule: CustomRule, kind: str, what: str, expected: object, got: object) -> RuleError:
    """The error for something that a function of a rule returned."""
    return RuleError(
        f"the {kind} of the rule for {rule.name} returns {what}",
        f"return {expected}",
        f"expected {expected}, got {got}; {_CONTRACT[kind]}",
        location_of(rule.parts[kind]),
    )


def check_augmented(
    rule: CustomRule,
    result: Result,
    returned: Type,
    can_convert: Callable[[Type, Type], bool],
    *,
    needs_primal: bool,
    lanes: int | None,
) -> None:
    """Checks the type of the augmented primal's result; if the primal is not needed, it may be None.

    Args:
        rule: it.
        result: return value of the function.
        returned: return type of the augmented primal.
        can_convert: whether a value of one type may be returned where another is expected.
        needs_primal: whether the value is needed.
        lanes: number of directions if the rule takes all at once and returns a tuple of shadows; else None.

    Raises:
        RuleError: it does not fit.
    """
    kind = "augmented_primal"
    if getattr(returned, "instance_class", None) is not rule_arguments.AugmentedReturn:
        expected = "irad.rules.AugmentedReturn(primal, shadow, tape)"
        raise misfit(rule, kind, "no AugmentedReturn", expected, described(returned))
    assert isinstance(returned, types.BaseTuple)
    primal, shadow, _ = returned.types
    may_lack = primal == types.none and not needs_primal
    if primal != result.type and not may_lack and not can_convert(primal, result.type):
        raise misfit(rule, kind, "a primal of the wrong type", described(result.type), described(primal))
    for each in of_directions(rule, kind, "shadow", shadow, lanes) if result.arrays else ():
        for leaf in result.arrays:
            found, wanted = at_path(each, leaf.path), writable(leaf.type)
            if not fits(found, wanted, can_convert):
                raise misfit(
                    rule, kind, "the wrong shadow" + way_through(each, leaf.path), described(wanted), described(found)
                )


def of_directions(rule: CustomRule, kind: str, what: str, found: Type, lanes: int | None) -> tuple[Type, ...]:
    """The types of the results of a rule's function, one for each direction.

    Raises:
        RuleError: it is given all directions at once, and returned no tuple with an item for each.
    """
    if lanes is None:
        return (found,)
    if isinstance(found, types.BaseTuple) and len(found.types) == lanes:
        return tuple(found.types)
    wanted = f"a tuple of {lanes} {what}{'s' * (lanes != 1)}, one for each direction"
    raise misfit(rule, kind, f"no tuple of {what}s", wanted, described(found))


def fits(found: Type | None, wanted: Type, can_convert: Callable[[Type, Type], bool]) -> bool:
    """True if a rule's result, or None, can be the shadow or the tangent of a number or an array."""
    if isinstance(found, types.Array) and isinstance(wanted, types.Array):
        alike = (found.dtype, found.ndim) == (wanted.dtype, wanted.ndim)
    else:
        alike = found is not None and not isinstance(wanted, types.Array)
    return alike and found is not None and can_convert(found, wanted)


def check_cotangents(
    rule: CustomRule,
    arguments: tuple[Annotated, ...],
    returned: Type,
    can_convert: Callable[[Type, Type], bool],
    lanes: int | None,
) -> None:
    """Checks the type of the reverse's result; for several directions at once, tuples for the numbers.

    Raises:
        RuleError: it does not fit.
    """
    wanted = tuple(in_lanes_of(a.cotangent_type, lanes) if a.has_numbers else types.none for a in arguments)
    expected = f"a tuple of {len(wanted)}: ({', '.join(described(each) for each in wanted)}{',' * (len(wanted) == 1)})"
    if returned == types.none and all(each == types.none for each in wanted):
        return
    if not isinstance(returned, types.BaseTuple) or len(returned.types) != len(wanted):
        count = f"a tuple of {len(returned.types)}" if isinstance(returned, types.BaseTuple) else described(returned)
        raise misfit(rule, "reverse", "the wrong number of cotangents", expected, count)
    for position, (argument, found) in enumerate(zip(arguments, returned.types, strict=True)):
        if not argument.active:
            continue  # what belongs to a constant is dropped
        if not argument.has_numbers:
            if not _is_nothing(found):
                what = f"a cotangent for argument {position}, which has a shadow"
                raise misfit(rule, "reverse", what, "None", described(found))
            continue
        for one in of_directions(rule, "reverse", "cotangent", found, lanes):
            _check_cotangent(rule, argument, position, one, can_convert)


def _check_cotangent(
    rule: CustomRule, argument: Annotated, position: int, found: Type, can_convert: Callable[[Type, Type], bool]
) -> None:
    for leaf in argument.leaves:
        part, each = at_path(found, leaf.path), at_path(argument.cotangent_type, leaf.path)
        assert each is not None
        good = _is_nothing(part) if each == types.none else part is not None and can_convert(part, each)
        if not good:
            what = f"the wrong cotangent for argument {position}{way_through(argument.type, leaf.path)}"
            raise misfit(rule, "reverse", what, described(each), described(part))


def _is_nothing(numba_type: Type | None) -> bool:
    """True if a type is that of None, or of a tuple of nothing else."""
    return numba_type == types.none or (
        isinstance(numba_type, types.BaseTuple) and all(map(_is_nothing, numba_type.types))
    )


def at_path(numba_type: Type, path: tuple[int, ...]) -> Type | None:
    """The type at a path of nested tuples; None if there is no such place."""
    for index in path:
        if not isinstance(numba_type, types.BaseTuple) or index >= len(numba_type.types):
            return None
        numba_type = numba_type.types[index]
    return numba_type
