"""Memory that belongs to the arguments of one derivative call: copies, shadows, scratch.

All code emitted here runs before the primal does, except what returns results or releases memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from llvmlite.ir import Value
from numba.core import cgutils, types

from irad.errors import InternalError
from irad.frontend.calls.task import Role
from irad.frontend.derivation import Derivation
from irad.frontend.emit import INTP, VOID_POINTER, Emit
from irad.frontend.memory.arrays import (
    allocate_buffers,
    has_same_layout,
    item_at,
    memory_at,
    returned_shadow,
    unalias_elements,
)
from irad.frontend.memory.caller_values import (
    TANGENT,
    CallerShadows,
    CallerValues,
    Differing,
    GivenObject,
    copy_in,
    follower,
)
from irad.frontend.memory.list_shadows import ListBlock, fill_block, head_size, items_size, list_of_block, open_block
from irad.frontend.memory.object_shadows import ObjectShadows, SeparateObjects
from irad.frontend.memory.references import References, Refusals
from irad.frontend.memory.regions import Owner, Regions
from irad.frontend.memory.shadow_contract import ShadowContract, Tracked
from irad.frontend.memory.shadows import (
    MEMINFO_TYPE,
    Extent,
    array_at,
    bytes_at,
    clear,
    extent_of,
    extent_of_array,
    shadow_pointer,
    shape_of,
    strides_of,
)
from irad.frontend.numba import private
from irad.frontend.numba.boxing import owned_record
from irad.frontend.values import abi
from irad.frontend.values.abi import Argument
from irad.frontend.values.gradients import gradient_of_content
from irad.frontend.values.tree import (
    Content,
    LeafKind,
    content_of,
)


class ArgumentMemory:
    """Shadows of all arguments of a call.

    Args:
        derivation: derivation of the called derivative.
        flat: all LLVM arguments of the primal; read-only arrays that repeat elements are replaced by copies in it.
        targets: for positions with a destination the caller's value and its type.
        references: references of the call.
        other_lanes: the memory of the directions before this one.
        is_separate: the reverse sweep is called separately, and reads the memory that the caller gives for objects.
    """

    def __init__(
        self,
        emit: Emit,
        derivation: Derivation,
        flat: list[Any],
        targets: Mapping[int, tuple[Any, Any]],
        references: References,
        other_lanes: Sequence[ArgumentMemory] = (),
        *,
        is_separate: bool = False,
    ) -> None:
        self.emit, self.context, self.builder = emit, emit.context, emit.builder
        self.derivation, self.flat = derivation, flat
        self.references = references
        self._targets, self._other_lanes, self._is_separate = targets, other_lanes, is_separate
        self._scratch: dict[int, Any] = {}
        self._objects: ObjectShadows | SeparateObjects | None = None
        self.given_shadows: CallerShadows | None = None
        workspace = derivation.workspace()
        self.tracked = [
            *(
                self._track(a, leaf, targets, derivation.task.role_of(a.position))
                for a, leaf in derivation.active_memory()
            ),
            *(self._track(argument, leaf, targets, Role.WORKSPACE) for argument, leaf in workspace),
        ]
        refusals = Refusals(emit, self.references.release)
        others = [tracked for memory in other_lanes for tracked in memory.tracked]
        ShadowContract(emit.builder, derivation, flat, self.tracked, refusals.refuse, others).run()
        refusals.finish()
        self._allocate()
        self._lists = {leaf.data_index: self._list_block(a, leaf) for a, leaf in derivation.active_lists()}

    # --- the caller's memory ------------------------------------------------------------------------------------------

    def _track(self, argument: Argument, leaf: Content, targets: Mapping[int, tuple[Any, Any]], role: Role) -> Tracked:
        is_apart = role in (Role.GRADIENT, Role.INTO, Role.TANGENT)
        if is_apart and not self._other_lanes and leaf.is_array and leaf.type.layout == "A" and not leaf.type.mutable:
            unalias_elements(self.emit, leaf, self.flat, self.references)
        tracked = Tracked(argument, leaf, role, extent_of(self.builder, leaf, self.flat))
        if role.has_destination:
            tracked.target = memory_at(self.emit, *targets[argument.position], leaf.path)
            tracked.target_extent = self._extent_of_target(tracked)
        return tracked

    def _extent_of_target(self, tracked: Tracked) -> Extent:
        assert tracked.target is not None
        target, target_type = tracked.target
        if tracked.leaf.is_array:
            return extent_of_array(self.emit, target, target_type)
        return extent_of(self.builder, content_of(target_type), [target])

    # --- allocation ---------------------------------------------------------------------------------------------------

    def _allocate(self) -> None:
        automatic = [t for t in self.tracked if t.role in (Role.GRADIENT, Role.INTO, Role.WORKSPACE)]
        for tracked in self.tracked:
            if tracked.target is not None and tracked not in automatic:
                tracked.shadow = self._copied_tangent(tracked) if self._is_copied(tracked) else self._data_of(tracked)
        if self.derivation.active_objects() and private.shadow().differentiates():
            self._allocate_separately(automatic)
        elif self.derivation.active_objects():
            self._allocate_objects(automatic)
        elif len(automatic) > 1 and self._is_written([t.leaf for t in automatic]):
            self._allocate_joined(automatic)
        else:
            for tracked in automatic:
                self._allocate_alone(tracked)
        if not self.derivation.active_objects():
            self._check_constant_objects()
        self._allocate_scratch()

    def _allocate_objects(self, automatic: Sequence[Tracked]) -> None:
        """Objects may hold any of the arrays, so these have their shadows in the same buffer."""
        objects = [leaf for _, leaf in self.derivation.active_objects()]
        found = self._objects = self._object_memory(objects, automatic)
        self.references.loops.append(found.release)
        found.survey(self.references.scratch)
        self._refuse_targets(found)
        everything = [leaf for argument in self.derivation.arguments for leaf in argument.leaves]
        given = self._objects_given()
        joined = bool(given) or self._is_written((*objects, *(t.leaf for t in automatic)))
        if joined or self._is_written(everything):
            are_mixed = found.place(joined=True)
            if self._is_written(everything):
                self._refuse_mixed(are_mixed)
        if not joined:
            found.place(joined=False)
        found.connect(self.references.scratch)
        if given:
            self._take_given(found, found.regions, given)
        self._put_tangents(found, joined=joined)
        for tracked in automatic:
            slot = tracked.meminfo = self.references.slot(self._group_of(tracked))
            self.context.nrt.incref(self.builder, MEMINFO_TYPE, found.meminfo)
            self.builder.store(found.meminfo, slot)
            tracked.shadow = found.shadows[tracked.leaf.data_index]

    def _allocate_separately(self, automatic: Sequence[Tracked]) -> None:
        """Shadows of objects in code that is differentiated itself: written memory must not be reached in two ways."""
        objects = [leaf for _, leaf in self.derivation.active_objects()]
        everything = [leaf for argument in self.derivation.arguments for leaf in argument.leaves]
        given = self._objects_given()
        is_changed = bool(given) or self._is_written(everything)
        found = self._object_memory(objects, automatic, keeps_apart=True)
        if is_changed or any(tracked.target_extent is not None for tracked in self.tracked):
            self.references.loops.append(found.release)
            found.survey(self.references.scratch)
            self._refuse_targets(found)
        if is_changed:
            self.references.refuse(
                found.place(joined=True),
                "arguments, or parts of one, share memory",
                "pass a copy of what is shared",
                "where a derivative is differentiated again, shadows of objects lie apart, and the function may write "
                "to that memory, or the derivative is written to a shadow that was passed",
            )
        separate = self._objects = SeparateObjects(self.emit, objects, self.flat, self.references)
        if given:
            self._take_given(separate, found.regions, given)
        self._put_tangents(separate, joined=False)
        for tracked in automatic:
            self._allocate_alone(tracked)

    def _refuse_targets(self, objects: ObjectShadows) -> None:
        for tracked in self.tracked:
            if tracked.target_extent is not None:
                self.references.refuse(
                    objects.meets(tracked.target_extent),
                    f"the memory given for the derivative of {tracked.argument} overlaps an argument",
                    "pass a separate array",
                    "writing the derivative there would overwrite values that the function uses",
                )

    def _objects_given(self) -> list[GivenObject]:
        """All objects, if the caller gives memory for derivatives with respect to some."""
        found = []
        for argument, leaf in self.derivation.active_objects():
            role = self._role_of((argument, leaf))
            value = self._given(argument, leaf) if role.takes_derivative else None
            way = "".join(f"[{step}]" for step in leaf.path)
            found.append(GivenObject(abi.reference_of(leaf), f"{argument.name}{way}", role, value))
        return found if any(each.value is not None for each in found) else []

    def _take_given(
        self, objects: ObjectShadows | SeparateObjects, regions: Regions, given: Sequence[GivenObject]
    ) -> None:
        follow = follower(objects.given, self.references)
        shadows = self.given_shadows = CallerShadows(self.emit, self.references, given, follow)
        others = [each for lane in self._other_lanes if (each := lane.given_shadows) is not None]
        arrays = [t.target_extent for lane in (self, *self._other_lanes) for t in lane.tracked]
        shadows.check(regions, [each for each in arrays if each is not None], others)
        if not self._is_separate:
            shadows.put()

    def _role_of(self, found: tuple[Argument, Content]) -> Role:
        return self.derivation.task.role_of(found[0].position)

    def _put_tangents(self, objects: ObjectShadows | SeparateObjects, *, joined: bool) -> None:
        """Puts the given tangents, if any, into shadows; memory reached in several ways must have one tangent."""
        if all(role is not Role.TANGENT for role in map(self._role_of, self.derivation.active_objects())):
            return
        self._put_each(objects.given(self.references, TANGENT, copy_in))
        if joined:
            differing = Differing(self.emit)
            self._put_each(objects.given(self.references, TANGENT, differing.compare))
            self.references.refuse(
                differing.found(),
                "an element of an object has two tangents, which differ",
                "pass equal tangents for what is the same in the arguments",
                "the function may write to it, and an element that is reached in two ways has only one tangent",
            )

    def _put_each(self, tangents: CallerValues) -> None:
        for argument, leaf in self.derivation.active_objects():
            given: tuple[Any, Any] = (None, types.none)  # a workspace
            if self._role_of((argument, leaf)) is Role.TANGENT:
                given = self._given(argument, leaf)
            tangents.value(abi.reference_of(leaf), *given, argument.name)

    def _given(self, argument: Argument, leaf: Content) -> tuple[Any, Any]:
        """The tangent that is given for a part of an argument, and its type."""
        value, given_type = self._targets[argument.position]
        for step in leaf.path:
            value, given_type = self.builder.extract_value(value, step), given_type.types[step]
        return value, given_type

    def _check_constant_objects(self) -> None:
        """Constant objects next to arrays that are differentiated."""
        active = [*(leaf for _, leaf in self.derivation.active_lists()), *(t.leaf for t in self.tracked)]
        if self._constant_objects() and active and self._is_written((*self._constant_objects(), *active)):
            found = self._object_memory((), ())
            found.survey(self.references.scratch)
            self._refuse_mixed(found.place(joined=True))

    def _object_memory(
        self, objects: Sequence[Content], automatic: Sequence[Tracked], *, keeps_apart: bool = False
    ) -> ObjectShadows:
        others: list[tuple[Owner, Content | Extent]] = [(Owner.NOBODY, leaf) for leaf in self._constant_objects()]
        others += [(Owner.CALLER, t.extent) for t in self.tracked if t not in automatic]
        others += [(Owner.CALLER, leaf) for _, leaf in self.derivation.active_lists()]
        others += [
            (Owner.NOBODY, extent_of(self.builder, leaf, self.flat))
            for leaf in self._constant_leaves()
            if leaf.has_memory
        ]
        return ObjectShadows(self.emit, objects, self.flat, automatic, others, keeps_apart=keeps_apart)

    def _constant_leaves(self) -> list[Content]:
        return [leaf for _, leaf in self.derivation.constant_leaves()]

    def _constant_objects(self) -> list[Content]:
        """They may hold lists of numbers; that these are arguments themselves is checked elsewhere."""
        kinds = (LeafKind.OBJECT, *((LeafKind.LIST,) if self.derivation.active_objects() else ()))
        return [leaf for leaf in self._constant_leaves() if leaf.kind in kinds]

    def _is_written(self, leaves: Sequence[Content]) -> bool:
        """True if the function may write to the memory of a leaf, or to memory that it points to."""
        return any(leaf.data_index in self.derivation.compiled.written for leaf in leaves)

    def _refuse_mixed(self, are_mixed: Value) -> None:
        self.references.refuse(
            are_mixed,
            "a constant argument, or one whose shadow was passed, shares memory with an object in another argument",
            "(a) differentiate with respect to both, with irad.grad, irad.value_and_grad or irad.vjp or (b) pass a "
            "copy",
            "the function may write to that memory, and an element that is reached in two ways has only one derivative",
        )

    def _data_of(self, tracked: Tracked) -> Any:
        assert tracked.target is not None
        target, _ = tracked.target
        return self.builder.bitcast(target.data if tracked.leaf.is_array else target, VOID_POINTER)

    def _allocate_alone(self, tracked: Tracked) -> None:
        if tracked.target is not None and has_same_layout(tracked.leaf.type, tracked.target[1]):
            assert tracked.target_extent is not None
            tracked.shadow = self._data_of(tracked)
            size = tracked.target_extent.size(self.builder)
            clear(self.builder, tracked.shadow, size, self.derivation.compiled.clear)
            return
        tracked.meminfo = self.references.slot(self._group_of(tracked))
        meminfo = self.references.allocated(tracked.extent.size(self.builder), tracked.meminfo)
        tracked.shadow = shadow_pointer(self.emit, meminfo, tracked.extent)

    def _is_copied(self, tracked: Tracked) -> bool:
        """True if a tangent may have another layout than its argument: if nothing at all is written, a copy will do."""
        assert tracked.target is not None
        return (
            tracked.role is Role.TANGENT
            and self.derivation.writes_nothing
            and not has_same_layout(tracked.leaf.type, tracked.target[1])
        )

    def _copied_tangent(self, tracked: Tracked) -> Any:
        """A shadow with the elements of a given tangent."""
        assert tracked.target is not None
        array, array_type = tracked.target
        meminfo = self.references.scratch(tracked.extent.size(self.builder))
        shadow = shadow_pointer(self.emit, meminfo, tracked.extent)
        shape, strides = shape_of(tracked.leaf, self.flat), strides_of(tracked.leaf, self.flat)
        data = self.builder.bitcast(shadow, self.flat[tracked.leaf.data_index].type)
        with cgutils.loop_nest(self.builder, shape, INTP) as indices:
            item = cgutils.get_item_pointer(self.context, self.builder, array_type, array, indices)
            self.builder.store(
                self.builder.load(item),
                item_at(self.emit, tracked.leaf, data, shape, strides, indices),
            )
        return shadow

    def _group_of(self, tracked: Tracked) -> list[Any]:
        return self.references.results if tracked.role is Role.GRADIENT else self.references.transient

    def _allocate_joined(self, members: Sequence[Tracked]) -> None:
        """Shadows of arrays that may overlap."""
        slots = [self.references.slot(self._group_of(member)) for member in members]
        extents = [member.extent for member in members]
        found = allocate_buffers(self.emit, extents, slots, self.references.allocated)
        for member, slot, shadow in zip(members, slots, found, strict=True):
            member.meminfo, member.shadow = slot, shadow

    def _allocate_scratch(self) -> None:
        """Shadows of constant pointers that the engine asks for, because they meet active ones."""
        leaves = {leaf.data_index: leaf for a in self.derivation.arguments for leaf in a.leaves if leaf.has_memory}
        known = {tracked.leaf.data_index for tracked in self.tracked}
        known |= {leaf.data_index for _, leaf in self.derivation.active_lists()}
        known |= {leaf.data_index for _, leaf in self.derivation.active_objects()}
        for index in self.derivation.compiled.derivative.shadows:
            if index == abi.RETURN_INDEX or index in known:
                continue
            if index not in leaves:
                raise InternalError(f"the derivative asks for a shadow of LLVM parameter {index}, which is not memory")
            extent = extent_of(self.builder, leaves[index], self.flat)
            meminfo = self.references.scratch(extent.size(self.builder))
            self._scratch[index] = shadow_pointer(self.emit, meminfo, extent)

    def _list_block(self, argument: Argument, leaf: Content) -> ListBlock:
        head, of_items = INTP(head_size(leaf.type)), items_size(self.emit, leaf, self.flat)
        size = self.builder.add(head, of_items)
        if private.shadow().differentiates():
            meminfo = self.references.scratch(head)
            items = self.context.nrt.meminfo_data(self.builder, self.references.scratch(of_items))
            data = self.context.nrt.meminfo_data(self.builder, meminfo)
        else:
            meminfo = self.references.scratch(size)
            data = self.context.nrt.meminfo_data(self.builder, meminfo)
            items = self.builder.gep(data, [head])
        opened = open_block(self.emit, leaf, self.flat, data, items, of_items)
        block = ListBlock(meminfo, size, data, items, opened)
        if self.derivation.task.role_of(argument.position) is Role.TANGENT:
            fill_block(self.emit, leaf, block, self._given(argument, leaf), self.references, argument.name)
        return block

    # --- use ----------------------------------------------------------------------------------------------------------

    def shadow_of(self, index: int) -> Any:
        """The shadow pointer for an LLVM parameter of the primal."""
        for tracked in self.tracked:
            if tracked.leaf.data_index == index:
                return tracked.shadow
        if index in self._lists:
            return self._lists[index].shadow
        if self._objects is not None and index in self._objects.shadows:
            return self._objects.shadows[index]
        return self._scratch[index]

    def copy_out(self) -> None:
        """Copies derivatives to the caller's destinations if they were accumulated elsewhere."""
        builder = self.builder
        if self.given_shadows is not None:
            self.given_shadows.take()
        for tracked in self.tracked:
            if tracked.role is not Role.INTO or tracked.meminfo is None:
                continue
            assert tracked.target is not None
            array, array_type = tracked.target
            if not tracked.leaf.is_array:
                size = tracked.extent.size(builder)
                cgutils.raw_memcpy(builder, self._data_of(tracked), tracked.shadow, size, 1)
                continue
            shape, strides = shape_of(tracked.leaf, self.flat), strides_of(tracked.leaf, self.flat)
            data = builder.bitcast(tracked.shadow, self.flat[tracked.leaf.data_index].type)
            with cgutils.loop_nest(builder, shape, INTP) as indices:
                item = builder.load(item_at(self.emit, tracked.leaf, data, shape, strides, indices))
                place = cgutils.get_item_pointer(self.context, builder, array_type, array, indices)
                builder.store(item, place)

    def gradient_of(self, leaf: Content, gradient_type: Any) -> Any:
        """The derivative of an array or record as a Numba value, a new reference."""
        tracked = next(t for t in self.tracked if t.leaf.index == leaf.index)
        if tracked.role is Role.MIXED:
            assert tracked.target is not None
            return returned_shadow(self.emit, *tracked.target, leaf, self.references)
        if not leaf.is_array:
            meminfo = self.builder.load(tracked.meminfo)
            return owned_record(self.context, self.builder, leaf.type, meminfo, tracked.shadow)
        shape, strides = shape_of(leaf, self.flat), strides_of(leaf, self.flat)
        meminfo = self.builder.load(tracked.meminfo)
        return array_at(self.emit, gradient_type, tracked.shadow, shape, strides, meminfo)

    def given_to(self, leaf: Content) -> Any:
        """The shadow that the caller gave for an array or record, as an array: a new reference."""
        target, target_type = next(t.target for t in self.tracked if t.leaf.index == leaf.index and t.target)
        if not leaf.is_array:
            return array_at(self.emit, types.Array(leaf.type, 0, "C"), target, (), (), None)
        self.context.nrt.incref(self.builder, target_type, target._getvalue())
        return target._getvalue()

    def object_given(self, argument: Argument, leaf: Content) -> Any:
        """The memory that the caller gave for an object: a new reference."""
        given, given_type = self._given(argument, leaf)
        self.context.nrt.incref(self.builder, given_type, given)
        return given

    def list_gradient(self, leaf: Content, gradient_type: types.Type) -> Any:
        """The derivative of a list as a new list."""
        block = self._lists[leaf.data_index]
        return list_of_block(self.emit, gradient_type, block.data, block.items, self.references)

    def object_gradients(self) -> dict[int, Any]:
        """The derivatives of all objects, by their first LLVM parameter: new references."""
        roles = {leaf.index: self._role_of((a, leaf)) for a, leaf in self.derivation.active_objects()}
        if self._objects is None or not any(role.is_returned for role in roles.values()):
            return {}
        notes, found = self._objects.notes(self.references.fail), dict[int, Any]()
        for argument, leaf in self.derivation.active_objects():
            content = abi.reference_of(leaf)
            if roles[leaf.index] in (Role.GRADIENT, Role.ACTIVE):
                found[leaf.index] = self.references.keep(gradient_of_content(content), notes.visit(content))
                continue
            notes.skip(content)
            if roles[leaf.index] is Role.MIXED:
                given = self.object_given(argument, leaf)
                found[leaf.index] = self.references.keep(self._given(argument, leaf)[1], given)
        return found

    def object_state(self) -> tuple[Any, ...]:
        """State of the objects for a pullback, as arrays of bytes: new references."""
        assert not isinstance(self._objects, SeparateObjects)  # tapes have no derivative
        return () if self._objects is None else self._objects.state()

    def list_shadow(self, leaf: Content) -> Any:
        """The shadow of a list as an array of bytes, a new reference."""
        assert not private.shadow().differentiates()  # there the items are not in the block
        block = self._lists[leaf.data_index]
        self.context.nrt.incref(self.builder, MEMINFO_TYPE, block.meminfo)
        return bytes_at(self.emit, block.data, block.size, block.meminfo)

    def new_record(self, record: Any) -> Any:
        """Memory for a record among the results; its meminfo."""
        return self.references.allocated(INTP(record.size), self.references.slot(self.references.results))
