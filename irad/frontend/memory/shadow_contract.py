"""The shadow contract, checked in generated code before the primal runs.

* Memory given for a derivative has the shape of its argument, a shadow also its strides, and shares nothing with any
  argument.
* Shadows of arguments that overlap, of which one may be written, lie as the arguments lie. Shadows of arguments that do
  not overlap do not overlap.
* A constant that overlaps a differentiated argument, with a write to either, is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product
from typing import Any

from llvmlite.ir import IRBuilder
from numba.core import cgutils, types

from irad.frontend.calls.task import Role
from irad.frontend.derivation import Derivation
from irad.frontend.emit import INTP
from irad.frontend.memory.shadows import Extent, any_of, differ, extent_of, overlap, shape_of, strides_of
from irad.frontend.packing.packed import way_through
from irad.frontend.values import tree
from irad.frontend.values.abi import Argument
from irad.frontend.values.tree import Content
from irad.records import dataclass

_NAMES = {Role.INTO: "destination", Role.TANGENT: "tangent"}


@dataclass
class Tracked:
    """An array or record leaf of a differentiated argument with its memory.

    Attributes:
        argument: it belongs to.
        leaf: the array or record.
        role: role of the argument.
        extent: its addresses.
        target: the caller's array (a struct proxy) or record for the derivative and its type, or None.
        target_extent: the addresses of that.
        shadow: pointer to the shadow of the first element.
        meminfo: slot with the reference that this call holds on the shadow's memory, or None if it is the caller's.
    """

    argument: Argument
    leaf: Content
    role: Role
    extent: Extent
    target: tuple[Any, Any] | None = None
    target_extent: Extent | None = None
    shadow: Any = None
    meminfo: Any = None

    @property
    def way(self) -> str:
        """The leaf in the words of Python: attributes and indices after the name of the argument."""
        return way_through(self.argument.type, self.leaf.path)


@dataclass(eq=False)
class ShadowContract:
    """Emits the checks of one call.

    Attributes:
        builder: stands where the checks are emitted.
        derivation: derivation of the called derivative.
        flat: all LLVM arguments of the primal.
        tracked: the arrays and records that are differentiated.
        refuse: `Refusals.refuse`.
        other_lanes: the arrays and records in the directions before this one.
    """

    builder: IRBuilder
    derivation: Derivation
    flat: Sequence[Any]
    tracked: Sequence[Tracked]
    refuse: Callable[..., None]
    other_lanes: Sequence[Tracked] = ()

    def run(self) -> None:
        """Emits all checks."""
        given = [tracked for tracked in self.tracked if tracked.target_extent is not None]
        memory = self._memory_of_arguments() if given else []
        for tracked in given:
            if tracked.target is not None and tracked.target_extent is not None:
                if tracked.leaf.is_array:
                    self._check_shape(tracked, *tracked.target)
                if not self._is_only_read(tracked):
                    self._check_overlap_with_arguments(tracked, tracked.target_extent, memory)
        for left, right in combinations(self.tracked, 2):
            if self._is_only_read(left) and self._is_only_read(right):
                continue
            if left.target_extent is not None and right.target_extent is not None:
                self._check_pair(left, left.target_extent, right, right.target_extent)
        for mine, other in product(given, self.other_lanes):
            self._check_lanes(mine, other)
        if self.other_lanes:
            return  # the rest concerns the arguments alone
        self._check_constants()
        self._check_workspace()
        self._check_lists()

    def _check_shape(self, tracked: Tracked, array: Any, _: Any) -> None:
        builder, leaf = self.builder, tracked.leaf
        lengths, given_lengths = shape_of(leaf, self.flat), cgutils.unpack_tuple(builder, array.shape)
        self.refuse(
            differ(self.builder, lengths, given_lengths),
            f"{_name(tracked)} has a different shape from the argument",
            f"pass an array of the same shape: np.zeros_like({tracked.argument.name}{tracked.way})",
            "a shadow needs one element for each element of the argument",
            (given_lengths, lengths),
        )
        if tracked.role is not Role.INTO and not self._is_only_read(tracked):
            given = cgutils.unpack_tuple(builder, array.strides)
            self.refuse(
                self._strides_differ(leaf, lengths, given),
                f"{_name(tracked)} has different strides from the argument",
                f"(a) make it with irad.shadow_like({tracked.argument.name}{tracked.way}) or (b) if several arguments "
                "are views of one array, make a shadow of the whole array and pass the same views of it or (c) let "
                "irad make the shadow: irad.grad or irad.vjp",
                "a shadow must have the memory layout of its argument; np.zeros_like of a view is contiguous, unlike "
                "the view",
                (given, strides_of(leaf, self.flat)),
            )

    def _is_only_read(self, tracked: Tracked) -> bool:
        """True if the given array is a tangent, in a call that writes to no memory of the caller's."""
        return tracked.role is Role.TANGENT and self.derivation.writes_nothing

    def _strides_differ(self, leaf: Content, lengths: Sequence[Any], given: Sequence[Any]) -> Any:
        """Strides of dimensions of one element, and of empty arrays, do not matter."""
        builder = self.builder
        found = [
            builder.and_(builder.icmp_signed(">", length, INTP(1)), builder.icmp_signed("!=", mine, theirs))
            for length, mine, theirs in zip(lengths, strides_of(leaf, self.flat), given, strict=True)
        ]
        is_filled = builder.icmp_signed(">", self.flat[leaf.index + tree.ITEM_COUNT], INTP(0))
        return builder.and_(any_of(builder, found), is_filled)

    def _memory_of_arguments(self) -> list[tuple[Argument, Extent]]:
        return [
            (argument, extent_of(self.builder, leaf, self.flat))
            for argument in self.derivation.arguments
            for leaf in argument.leaves
            if leaf.has_memory
        ]

    def _check_overlap_with_arguments(
        self, tracked: Tracked, target: Extent, memory: Sequence[tuple[Argument, Extent]]
    ) -> None:
        for argument, extent in memory:
            self.refuse(
                overlap(self.builder, target, extent),
                f"{_name(tracked)} shares memory with {argument}",
                f"pass a separate array, for instance np.zeros_like({tracked.argument.name}{tracked.way})",
                "writing the derivative there would overwrite values that the function uses",
            )

    def _check_pair(self, left: Tracked, left_target: Extent, right: Tracked, right_target: Extent) -> None:
        builder = self.builder
        names = f"{left.argument} and {right.argument}"
        primals_meet = overlap(builder, left.extent, right.extent)
        targets_meet = overlap(builder, left_target, right_target)
        # Shadows are added to, so arguments that overlap may share one; destinations (`Role.INTO`) are overwritten.
        are_shadows = left.role is not Role.INTO and right.role is not Role.INTO
        self.refuse(
            builder.and_(targets_meet, builder.not_(primals_meet)) if are_shadows else targets_meet,
            f"the arrays given for the derivatives of {names} share memory"
            + (", the arguments do not" if are_shadows else ""),
            "pass a separate array for each",
            "one derivative would overwrite the other",
        )
        if are_shadows and self._may_be_written(left.leaf, right.leaf):
            primals_apart = builder.sub(left.extent.data, right.extent.data)
            targets_apart = builder.sub(left_target.data, right_target.data)
            self.refuse(
                builder.and_(primals_meet, builder.icmp_signed("!=", primals_apart, targets_apart)),
                f"{names} share memory, but their shadows do not overlap in the same way",
                "(a) pass shadows that overlap as the arguments do (views of one shadow) or (b) pass arguments that do "
                "not overlap, for instance copies",
                "the function may write to that memory, and an element seen through both arguments has only one "
                "derivative",
            )

    def _check_lanes(self, mine: Tracked, other: Tracked) -> None:
        if mine.target_extent is None or other.target_extent is None:
            return
        is_tangent = mine.role is Role.TANGENT
        if is_tangent and not self._may_be_written(mine.leaf, other.leaf):
            return
        self.refuse(
            overlap(self.builder, mine.target_extent, other.target_extent),
            f"{_name(mine)} in one direction shares memory with that of {other.argument} in another",
            "pass a separate array for each direction",
            "the function writes to its arguments, and one tangent would overwrite the other"
            if is_tangent
            else "the derivatives in all directions would be added up",
        )

    def _may_be_written(self, *leaves: Content) -> bool:
        return any(leaf.data_index in self.derivation.compiled.written for leaf in leaves)

    def _check_constants(self) -> None:
        for argument, leaf in self.derivation.constant_leaves():
            if leaf.has_memory:
                self._check_constant(argument, leaf)

    def _check_constant(self, argument: Argument, leaf: Content) -> None:
        for tracked in self.tracked:
            if self._may_be_written(leaf, tracked.leaf):
                self.refuse(
                    overlap(self.builder, extent_of(self.builder, leaf, self.flat), tracked.extent),
                    f"{argument} is constant but shares memory with {tracked.argument}, which "
                    + ("takes active values" if tracked.role is Role.WORKSPACE else "is differentiated"),
                    f"(a) differentiate both or (b) pass a copy: {argument.name}.copy()",
                    "the function may write to that memory, and derivatives that pass through the constant would be "
                    "lost",
                )

    def _check_workspace(self) -> None:
        """The shadow of workspace is made by the call, and cannot lie in a tangent or shadow that the caller gives."""
        given = [tracked for tracked in self.tracked if tracked.role in (Role.TANGENT, Role.SHADOW, Role.MIXED)]
        for workspace in (tracked for tracked in self.tracked if tracked.role is Role.WORKSPACE):
            for tracked in given:
                if self._may_be_written(workspace.leaf, tracked.leaf):
                    what = "tangent" if tracked.role is Role.TANGENT else "shadow"
                    self.refuse(
                        overlap(self.builder, workspace.extent, tracked.extent),
                        f"{workspace.argument} has no {what} but shares memory with {tracked.argument}, which has one",
                        f"(a) pass {what}s for both that overlap as the arguments do (views of one array) or (b) pass "
                        f"a copy: {workspace.argument.name}.copy()",
                        "the function may write to that memory, and an element seen through both arguments has only "
                        f"one {what}",
                    )

    def _check_lists(self) -> None:
        """A list that the function changes has one derivative; its arguments would show it twice."""
        kinds = types.List | types.ListType
        lists = [(a, leaf) for a in self.derivation.arguments for leaf in a.leaves if isinstance(leaf.type, kinds)]
        for (left, one), (right, other) in combinations(lists, 2):
            roles = {self.derivation.task.role_of(argument.position) for argument in (left, right)}
            if self.derivation.active_objects() and Role.CONST not in roles:
                continue  # they share one shadow
            if roles != {Role.CONST} and self._may_be_written(one, other):
                self.refuse(
                    self.builder.icmp_unsigned("==", self.flat[one.data_index], self.flat[other.data_index]),
                    f"{left} and {right} are the same list, and the function may change it",
                    f"pass a copy for {right.name}",
                    "the list has only one derivative, which would be returned for both",
                )


def _name(tracked: Tracked) -> str:
    return f"the {_NAMES.get(tracked.role, 'shadow')} of {tracked.argument}{tracked.way}"
