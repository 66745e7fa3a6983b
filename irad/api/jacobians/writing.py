"""Python code of Jacobians: what code for columns and code for rows have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from irad.api.jacobians.destination import Place
from irad.api.jacobians.structure import Block, Part, Structure
from irad.frontend.calls.task import Returns

Places: TypeAlias = Mapping[str, Place]

_MISFIT: Final = (
    'raise irad_misfit("a part of the Jacobian is written to an array of another shape", "pass arrays with the shapes '
    'of what irad.jacobian returns", "the Jacobian has the shape of the value, and then that of the argument")'
)
_SHARED: Final = (
    'raise irad_misfit("an array for the Jacobian shares memory with an argument, or with another one", "pass an array '
    'of its own", "the function reads its arguments while the Jacobian is written")'
)


def starts(name: str, parts: Sequence[Part], sizes: Sequence[str]) -> Iterator[str]:
    """Where the directions of each part begin: `irad_x0`, `irad_x1`, …; the last one is the number of directions."""
    yield f"irad_{name}0 = 0"
    for part, size in zip(parts, sizes, strict=True):
        yield f"irad_{name}{part.number + 1} = irad_{name}{part.number} + {size}"


def size_of(part: Part, at: str, directions: int) -> str:
    """How many directions a part has."""
    count = f"{at}.size" if part.is_array else "1"
    return count if directions == 1 else f"2 * {count}"


def is_in(direction: str, name: str, part: Part) -> str:
    """Whether a direction is one of a part's."""
    return f"irad_{name}{part.number} <= {direction} < irad_{name}{part.number + 1}"


def unit(part: Part, is_second: str | None) -> str:
    """What is put in one place of a part: 1, or i in the second of two directions."""
    kind = f"irad_np.{part.dtype}"
    return f"{kind}(1)" if is_second is None else f"({kind}(1j) if {is_second} else {kind}(1))"


def number(part: Part, distance: str, directions: int) -> str:
    """What is put in place of a number, ``distance`` directions after its first one."""
    kind = f"irad_np.{part.dtype}"
    second = f"{kind}(1j) if {distance} == 1 else " if directions == 2 else ""
    return f"({kind}(1) if {distance} == 0 else {second}{kind}(0))"


def placeholders(blocks: Iterable[Block], places: Places) -> Iterator[str]:
    """Gives the variables of blocks their types; those of the caller's arrays are these."""
    for block in blocks:
        for name in block.names:
            if block.is_number:
                yield f"irad_j{name} = irad_np.{block.dtype}(0)"
                continue
            zeros = f"irad_np.zeros(({'0, ' * block.ndim}), irad_np.{block.dtype})"
            is_given = name in places and places[name].is_direct
            yield f"irad_j{name} = {places[name].at if is_given else zeros}"
            yield f"irad_b{name} = irad_np.zeros((0, 0), irad_np.{block.dtype})"


def allocations(blocks: Iterable[Block], output: str, inputs: Sequence[str], places: Places) -> Iterator[str]:
    """Makes the blocks.

    Args:
        blocks: all of them.
        output: an expression for the value, or for something of its structure.
        inputs: expressions for the parts that are differentiated.
        places: arrays of the caller for the blocks; empty where they are returned.
    """
    for block in blocks:
        ends = [(block.output, block.output.of(output)), (block.input, inputs[block.input.number])]
        shape = " + ".join(f"{at}.shape" for part, at in ends if part.is_array)
        flat = ", ".join(f"{at}.size" if part.is_array else "1" for part, at in ends)
        for name in block.names:
            place = places.get(name)
            if place is not None:
                misfits = f"{place.at}.size != 1" if block.is_number else f"{place.at}.shape != {shape}"
                yield from when(misfits, [_MISFIT])
            if block.is_number:
                continue
            if place is not None and place.is_direct:
                yield f"irad_j{name}[...] = 0"
            else:
                yield f"irad_j{name} = irad_np.zeros({shape}, irad_np.{block.dtype})"
            yield f"irad_b{name} = irad_j{name}.reshape(({flat}))"


def copies(places: Places) -> Iterator[str]:
    """Copies blocks to arrays of the caller that they were not written to."""
    for name, place in places.items():
        if not place.is_direct:
            yield f"{place.at}[...] = irad_j{name}"


def separations(places: Places, arrays: Iterable[str]) -> Iterator[str]:
    """Refuses arrays of the caller that share memory with each other or with the arguments."""
    known = list(arrays)
    for place in places.values():
        yield from (line for at in known for line in when(f"irad_share_memory({place.at}, {at})", [_SHARED]))
        known.append(place.at)


def stored(block: Block, place: str, values: Sequence[str]) -> Iterator[str]:
    """Stores numbers in a block; what is added to is stored twice, for each of two directions."""
    for name, value in zip(block.names, values, strict=True):
        target = f"irad_j{name}" if block.is_number else f"irad_b{name}[{place}]"
        yield f"{target} = irad_np.{block.dtype}({value.replace('OLD', target)})"


def variable(block: Block) -> str:
    """The expression for a block in the result."""
    names = [f"irad_j{name}" for name in block.names]
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def forward_sweep(call: str, parameters: str, has_aux: bool) -> Iterator[str]:
    """Runs the function, and makes a pullback of what is saved.

    Args:
        call: the arguments, as the function is called.
        parameters: its parameters.
        has_aux: it returns something besides the value.
    """
    returned = "irad_both" if has_aux else "irad_value"
    yield f"irad_n, {returned}, irad_state, irad_shadows = irad_augmented({call})"
    yield f"irad_pullback = irad_make(irad_state, irad_shadows, (({parameters}, ), {returned}))"
    if has_aux:
        yield "irad_value, irad_aux = irad_both"


def result(structure: Structure, returns: Returns, has_aux: bool, is_complete: bool | None) -> str:
    """What the code returns: value, Jacobian or both; and whether the Jacobian is complete, where that is asked for."""
    found, value = structure.result(variable), "(irad_value, irad_aux)" if has_aux else "irad_value"
    jacobian = f"({found}, irad_aux)" if has_aux else found
    made = {Returns.GRADIENT: jacobian, Returns.VALUE: value}.get(returns, f"({value}, {found})")
    return made if is_complete is None else f"({made}, {is_complete})"


def indented(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a block of code."""
    return (f"    {line}" for line in lines)


def when(condition: str, lines: Iterable[str]) -> Iterator[str]:
    """Code under a condition; nothing where there is none."""
    body = list(lines)
    if body:
        yield f"if {condition}:"
        yield from indented(body)
