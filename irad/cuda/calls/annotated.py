"""The annotated arguments of one call: the LLVM parameters with a derivative, and its memory.

Input   annotations of `irad` for each argument; numbers without a derivative may stand alone.
Output  `AnnotatedCall`: a kind for each LLVM parameter, arrays with their shadows, numbers with their tangents or with
        where their cotangent is added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from irad.api.annotations import (
    BATCHES,
    FORWARD_ROLES,
    ROLES,
    Active,
    Cache,
    Const,
    active_in_forward_mode,
    has_one_direction,
    shadows_of,
    width_of,
)
from irad.cuda.calls.flatten import Primal, array_of, flat_of, name_of, part_of
from irad.cuda.devices.device import ArrayView, Device
from irad.errors import SignatureError
from irad.frontend.calls.task import AutodiffAnnotation, Role
from irad.frontend.values.abi import Argument
from irad.frontend.values.tree import Content, LeafKind
from irad.message import with_article
from irad.passes.request import ParameterKind

_WHY: Final = "the annotation of an argument says whether it has a derivative, and where that goes"


@dataclass(frozen=True, slots=True)
class ArrayPart:
    """An array or record among the arguments.

    Attributes:
        name: its name in Python.
        index: LLVM parameter of its address.
        view: the array.
        shadows: one for each direction; none if it is constant.
        is_workspace: its shadows are made for the call.
    """

    name: str
    index: int
    view: ArrayView
    shadows: tuple[ArrayView, ...] = ()
    is_workspace: bool = False

    @property
    def is_active(self) -> bool:
        """True if it has a derivative."""
        return bool(self.shadows) or self.is_workspace


@dataclass(frozen=True, slots=True)
class NumberPart:
    """A number that has a derivative.

    Attributes:
        position: position of the argument.
        name: its name in Python.
        leaf: leaf of the argument.
        tangents: in forward mode, one for each direction.
        places: arrays to which its cotangent is added, one for each direction; none if it is returned.
    """

    position: int
    name: str
    leaf: Content
    tangents: tuple[Any, ...] = ()
    places: tuple[ArrayView, ...] = ()


@dataclass(slots=True)
class AnnotatedCall:
    """See above.

    Attributes:
        primal: the kernel.
        annotations: one for each argument.
        width: number of directions.
        flat: the LLVM parameters of the primal.
        kinds: one for each of them.
        arrays: all arrays and records.
        numbers: those with a derivative, in the order of the parameters.
    """

    primal: Primal
    annotations: tuple[Any, ...]
    width: int
    flat: list[int | float]
    kinds: list[ParameterKind]
    arrays: list[ArrayPart] = field(default_factory=list)
    numbers: list[NumberPart] = field(default_factory=list)


def annotated(
    given: Sequence[Any],
    load: Callable[[Sequence[Any]], Primal],
    device: Device,
    names: Sequence[str],
    *,
    forward: bool,
) -> AnnotatedCall:
    """Checks the annotations of a call.

    Args:
        given: the arguments, in order.
        load: gives the kernel for the values of the arguments.
        device: that it will run on.
        names: names of the kernel's parameters.
        forward: whether the mode is.

    Raises:
        SignatureError: an annotation or a shadow does not fit; it names the argument.
    """
    found = [_annotation(device, position, name, each) for position, (name, each) in enumerate(_named(names, given))]
    values = [each.value for each in found]
    primal = load(values)
    width = width_of(tuple(found))
    _check_widths(found, names, width)
    call = AnnotatedCall(primal, tuple(found), width or 1, [], [ParameterKind.CONST] * primal.count)
    for argument, annotation in zip(primal.arguments, found, strict=True):
        _Reader(device, call, argument, annotation, forward).read()
    call.flat = flat_of(device, primal, values)
    return call


def _named(names: Sequence[str], given: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    yield from zip(names, given, strict=False)
    yield from (("", each) for each in given[len(names) :])


def _annotation(device: Device, position: int, name: str, given: Any) -> Any:
    """The annotation of an argument; values that cannot have a derivative need none."""
    if isinstance(given, AutodiffAnnotation):
        return given
    view = device.view(given)
    is_float = isinstance(given, float | complex) or (
        view is None and hasattr(given, "dtype") and given.dtype.kind in "fc"
    )
    if not is_float and (view is None or (view.dtype.kind not in "fcV")) and not isinstance(given, tuple):
        return Const(given)
    remedy = (
        "(a) irad.Duplicated(a, da), an array with its shadow, or (b) irad.Const(a), for an array without a derivative"
        if view is not None
        else "(a) irad.Active(x), for a number whose derivative is returned, or (b) irad.Const(x), for a constant"
    )
    raise SignatureError(
        f"argument {position} ({name}) is {with_article(type(given).__name__)} without an annotation", remedy, _WHY
    )


def _check_widths(found: Sequence[Any], names: Sequence[str], width: int | None) -> None:
    if width is None:
        return
    for position, each in enumerate(found):
        if (isinstance(each, BATCHES) and len(each.shadow) != width) or width == 0:
            raise SignatureError(
                f"argument {position} ({names[position]}) has {len(each.shadow)} shadows, another one {width}",
                "give each irad.BatchDuplicated a tuple with as many shadows, at least one",
                "a direction consists of the shadows of all arguments",
            )
        if has_one_direction(type(each)):
            raise SignatureError(
                f"argument {position} ({names[position]}) has one shadow, another one several",
                "use irad.BatchDuplicated for each of them",
                "a direction consists of the shadows of all arguments",
            )


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads the annotation of one argument."""

    device: Device
    call: AnnotatedCall
    argument: Argument
    annotation: Any
    forward: bool

    @property
    def role(self) -> Role:
        """The derivative with respect to the argument that its annotation asks for."""
        return (FORWARD_ROLES if self.forward else ROLES)[type(self.annotation)]

    def read(self) -> None:
        """Adds the annotation's effect to the call."""
        if isinstance(self.annotation, Active):
            self.check_active()
        elif self.role is not Role.CONST and all(leaf.kind is LeafKind.INERT for leaf in self.argument.leaves):
            raise SignatureError(
                f"{self.argument} is {with_article(str(self.argument.type))}, which has no derivative",
                f"irad.Const({self.argument.name})",
                "derivatives are with respect to floating-point numbers",
            )
        for leaf in self.argument.leaves:
            if leaf.has_memory:
                self.array(leaf)
            elif leaf.kind is LeafKind.NUMBER and self.role is not Role.CONST:
                self.number(leaf)

    def check_active(self) -> None:
        """An active argument is a number or a tuple of numbers, and the mode is reverse."""
        if self.forward:
            raise active_in_forward_mode(
                str(self.argument), "in forward mode the derivative is in the direction that the tangents give"
            )
        wrong = next((leaf for leaf in self.argument.leaves if leaf.kind is not LeafKind.NUMBER), None)
        if wrong is None:
            return
        if wrong.has_memory:
            remedy = "(a) irad.Duplicated(a, da), an array with its shadow, or (b) irad.MixedDuplicated, for a tuple"
        else:
            remedy = "(a) pass a float, as in 3.0 in place of 3, or (b) irad.Const(n)"
        raise SignatureError(
            f"{self.argument} is {with_article(str(wrong.type))}, and irad.Active is for floats",
            remedy,
            "only a number's derivative can be returned by value",
        )

    def array(self, leaf: Content) -> None:
        """An array or record, with its shadows if it has any."""
        name, view = name_of(self.argument, leaf), self.view(leaf, self.annotation.value)
        active = leaf.kind is not LeafKind.INERT and not isinstance(self.annotation, Const)
        shadows: tuple[ArrayView, ...] = ()
        if active and not isinstance(self.annotation, Cache):
            shadows = tuple(self.shadow(leaf, name, view, each) for each in shadows_of(self.annotation))
        if active:
            self.call.kinds[leaf.data_index] = ParameterKind.SHADOW
        part = ArrayPart(name, leaf.data_index, view, shadows, active and not shadows)
        self.call.arrays.append(part)

    def view(self, leaf: Content, value: Any) -> ArrayView:
        return array_of(self.device, self.argument, leaf, value)

    def shadow(self, leaf: Content, name: str, view: ArrayView, given: Any) -> ArrayView:
        """The shadow of an array, checked against it."""
        try:
            part = part_of(given, leaf)
        except (TypeError, IndexError):
            part = None
        found = self.device.view(part)
        if found is None:
            raise SignatureError(
                f"the shadow of {name} is {with_article(type(part).__name__)}, not an array of the device",
                f"pass an array like {name}: irad.Duplicated({name}, d{name})",
                "the shadow holds the derivative with respect to each element",
            )
        for what, has, wants in (
            ("dtype", found.dtype, view.dtype),
            ("shape", found.shape, view.shape),
            ("strides", found.relevant_strides, view.relevant_strides),
        ):
            if has != wants:
                raise SignatureError(
                    f"the shadow of {name} has the {what} {has}, and {name} {wants}",
                    f"make the shadow with the dtype, shape and strides of {name}",
                    "the derivative with respect to an element has the position in the shadow that the element has in "
                    "the array",
                )
        if found.readonly:
            raise SignatureError(
                f"the shadow of {name} is read-only",
                "pass an array that can be written to",
                "the derivative is written to it",
            )
        return found

    def number(self, leaf: Content) -> None:
        """A number: its cotangent is returned or added to memory, its tangent is given."""
        name, position = name_of(self.argument, leaf), self.argument.position
        for offset in range(leaf.float_count):
            self.call.kinds[leaf.index + offset] = ParameterKind.ACTIVE
        if self.role.is_returned:
            self.call.numbers.append(NumberPart(position, name, leaf))
            return
        given = [part_of(each, leaf) for each in shadows_of(self.annotation)]
        if self.forward:
            tangents = tuple(self.tangent(name, leaf, each) for each in given)
            self.call.numbers.append(NumberPart(position, name, leaf, tangents=tangents))
        else:
            places = tuple(self.place(name, leaf, each) for each in given)
            self.call.numbers.append(NumberPart(position, name, leaf, places=places))

    def tangent(self, name: str, leaf: Content, given: Any) -> Any:
        """A number, of which the tangent is given."""
        kind = complex if leaf.float_count == 2 else float
        try:
            return kind(given)
        except (TypeError, ValueError):
            raise SignatureError(
                f"the tangent of {name} is {with_article(type(given).__name__)}",
                f"pass a number: irad.Duplicated({name}, 1.0)",
                f"{name} is a number, and so is its tangent",
            ) from None

    def place(self, name: str, leaf: Content, given: Any) -> ArrayView:
        """An array of one element, to which a cotangent is added."""
        found, dtype = self.device.view(given), self.call.primal.dtype_of(leaf)
        if found is None or found.size != 1 or found.dtype != dtype or found.readonly:
            raise SignatureError(
                f"the derivative with respect to {name} cannot be added to {with_article(type(given).__name__)}",
                f"(a) irad.Active({name}): the derivative is returned, or (b) irad.Duplicated({name}, d), with an "
                f"array of the device with one element of {dtype}",
                f"{name} is a number",
            )
        return found
