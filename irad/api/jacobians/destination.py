"""Arrays of the caller that a Jacobian is written to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from numba.core import types
from numba.np.numpy_support import as_dtype

from irad.api.jacobians.structure import Block, Structure
from irad.errors import SignatureError
from irad.frontend.numba.cpu import location_of
from irad.frontend.numba.messages import described
from irad.frontend.packing.packed import have_parts_alike

OUT = "irad_out"
"""The parameter that holds them."""


@dataclass(frozen=True)
class Place:
    """The array for a block.

    Attributes:
        at: an expression for it.
        is_direct: it is written element by element, not copied to at the end.
    """

    at: str
    is_direct: bool


def places_in(structure: Structure, given: Any) -> dict[str, Place]:
    """The array for each variable of a block.

    Args:
        structure: of the Jacobian.
        given: the Numba type of what the caller passes.

    Raises:
        SignatureError: it does not have the structure of the Jacobian, or an array has another dtype.
    """
    return dict(_places(structure, given))


def _places(structure: Structure, given: Any) -> Iterator[tuple[str, Place]]:
    for block in structure.blocks():
        for i, name in enumerate(block.names):
            steps = [*structure.steps(block), *([(i, None)] if block.is_pair else [])]
            found = given
            for step, like in steps:
                is_there = isinstance(found, types.BaseTuple) and step < len(found.types)
                is_there = is_there and (like is None or have_parts_alike(like, found))
                found = found.types[step] if is_there else None
            yield name, _place(structure, block, found, OUT + "".join(f"[{step}]" for step, _ in steps))


def _place(structure: Structure, block: Block, found: Any, at: str) -> Place:
    is_array = isinstance(found, types.Array) and found.mutable and str(as_dtype(found.dtype)) == block.dtype
    if not is_array or (found.ndim != block.ndim and not block.is_number):
        wanted = f"an array of {block.dtype} with " + ("one element" if block.is_number else f"{block.ndim} dimensions")
        raise SignatureError(
            f"a part of the Jacobian of {structure.function.__qualname__} is to be written to "
            + ("nothing" if found is None else described(found)),
            f"pass {wanted}, in the structure of what irad.jacobian returns",
            "the Jacobian has an array for each pair of a number or array returned and one that is differentiated",
            location_of(structure.function),
        )
    return Place(at, is_direct=found.layout == "C" and not block.is_number)
