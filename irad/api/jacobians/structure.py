"""The structure of a Jacobian: a block for each number or array returned and each one that is differentiated.

The blocks are arranged as the value is, and in each place of the value as the arguments are:

    f(x: float64[:], t: float64) -> (float64[:, :], float64)        ((float64[:, :, :], float64[:, :]),
    with respect to both                                             (float64[:], float64))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba.core import types
from numba.core.types import Type
from numba.np.numpy_support import as_dtype

from irad.errors import SignatureError, UnsupportedError
from irad.frontend.numba.messages import described, location_of
from irad.frontend.packing.packed import have_parts_alike
from irad.frontend.values import layouts, tree
from irad.frontend.values.tree import LeafKind


@dataclass(frozen=True)
class Part:
    """A number or array that is returned or differentiated.

    Attributes:
        number: counts them.
        position: the argument that it is a part of; 0 for what is returned.
        path: the way to it through tuples.
        type: its Numba type.
    """

    number: int
    position: int
    path: tuple[int, ...]
    type: Any

    @property
    def is_array(self) -> bool:
        """True if it has a shape."""
        return isinstance(self.type, types.Array)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """Of its numbers."""
        return np.dtype(as_dtype(self.type.dtype if self.is_array else self.type))

    @property
    def is_complex(self) -> bool:
        """True if its numbers are complex."""
        return self.dtype.kind == "c"

    def of(self, whole: str) -> str:
        """The expression for it in that for the whole value."""
        return whole + "".join(f"[{step}]" for step in self.path)


@dataclass(frozen=True)
class Block:
    """The derivatives of a part of the value with respect to a part of the arguments.

    Attributes:
        output: the differentiated result.
        input: with respect to what.
        holomorphic: the convention for complex functions of complex numbers.
    """

    output: Part
    input: Part
    holomorphic: bool | None

    @property
    def names(self) -> tuple[str, ...]:
        """Variables of the block; two for the derivatives with respect to z and to its conjugate."""
        name = f"{self.output.number}_{self.input.number}"
        return (name, f"{name}c") if self.is_pair else (name,)

    @property
    def is_pair(self) -> bool:
        """True if there are two derivatives, with respect to z and to its conjugate."""
        return self.is_complex_function and not self.holomorphic

    @property
    def is_complex_function(self) -> bool:
        """True if it is a complex function of complex numbers."""
        return self.output.is_complex and self.input.is_complex

    @property
    def is_number(self) -> bool:
        """True if it has no shape."""
        return not (self.output.is_array or self.input.is_array)

    @property
    def dtype(self) -> str:
        """The name of its dtype."""
        return str(np.result_type(self.output.dtype, self.input.dtype))

    @property
    def ndim(self) -> int:
        """Number of dimensions of the part."""
        return sum(part.type.ndim for part in (self.output, self.input) if part.is_array)


class Structure:
    """The blocks of one Jacobian.

    Args:
        function: that is differentiated, for messages.
        return_type: its Numba type.
        argument_types: Numba types of the arguments by position.
        argnums: the positions that are differentiated.
        single: one of them stands for itself, not for a tuple of one.
        holomorphic: the convention.

    Attributes:
        function: as above.
        outputs: the results.
        inputs: the differentiated arguments.
        scope: classes of named tuples by the names that expressions have for them.

    Raises:
        SignatureError: nothing is returned that has a derivative, or a convention is missing.
        UnsupportedError: some part is neither a number nor an array.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        return_type: Type,
        argument_types: dict[int, Any],
        argnums: tuple[int, ...],
        single: bool,
        holomorphic: bool | None,
    ) -> None:
        self.function, self._types, self._single = function, argument_types, single
        self.return_type, self.argnums, self.holomorphic = return_type, argnums, holomorphic
        self.scope: dict[str, Any] = {}
        self.outputs = self._parts(return_type, 0, 0, "returns")
        self.inputs: list[Part] = []
        for position in argnums:
            kind = argument_types[position]
            self.inputs += self._parts(kind, position, len(self.inputs), f"takes as argument {position}")
        if not self.outputs:
            raise self._without_derivative()
        self._check_convention()

    def _parts(self, numba_type: Type, position: int, first: int, what: str) -> list[Part]:
        found: list[Part] = []
        for leaf in tree.returned_leaves(numba_type):
            if leaf.kind is LeafKind.INERT:
                continue
            dtype = leaf.type.dtype if leaf.kind is LeafKind.ARRAY else leaf.type
            if dtype not in layouts.FLOATS and dtype not in layouts.COMPLEX:
                raise UnsupportedError(
                    f"{self.function.__qualname__} {what} {described(leaf.type)}, "
                    "which cannot be an entry of a Jacobian",
                    "(a) numbers, arrays of numbers and tuples of these or (b) irad.vjp and irad.pushforward",
                    "a Jacobian has an index for each number",
                    location_of(self.function),
                )
            found.append(Part(first + len(found), position, leaf.path, leaf.type))
        return found

    def _without_derivative(self) -> SignatureError:
        name, nothing = self.function.__qualname__, self.return_type == types.none
        return SignatureError(
            f"{name} returns {'nothing' if nothing else described(self.return_type) + ', which has no derivative'}",
            "(a) return floats or arrays of floats or (b) name the arrays that the function writes its results to: "
            "outputs=0",
            "a Jacobian has the derivatives of the results",
            location_of(self.function),
        )

    def _check_convention(self) -> None:
        name = self.function.__qualname__
        if self.holomorphic is None and any(block.is_complex_function for block in self.blocks()):
            raise SignatureError(
                f"{name} is a complex function of complex numbers, whose Jacobian depends on a convention",
                "(a) holomorphic=True, which gives df/dz of a function that is complex differentiable or "
                "(b) holomorphic=False, which gives the pair df/dz, df/dz̄ of any function",
                "a complex function is differentiable as two real functions of two real numbers each",
                location_of(self.function),
            )
        if self.holomorphic and any(b.input.is_complex and not b.output.is_complex for b in self.blocks()):
            raise SignatureError(
                f"{name} returns a real number where holomorphic=True was given",
                "leave holomorphic out: the derivative of a real number is d/dRe + i·d/dIm, as that of irad.grad",
                "a function with real values is complex differentiable only where it is constant",
                location_of(self.function),
            )

    def blocks(self) -> list[Block]:
        """All of them, by output, then by input."""
        return [Block(o, i, self.holomorphic) for o in self.outputs for i in self.inputs]

    def steps(self, block: Block) -> list[tuple[int, Any]]:
        """The way to a block through the tuples of the Jacobian: positions, each with a structure of these parts."""
        among = [] if self._single else [(self.argnums.index(block.input.position), None)]
        of_input = _steps(self._types[block.input.position], block.input.path)
        return [*_steps(self.return_type, block.output.path), *among, *of_input]

    def input_directions(self, part: Part) -> int:
        """Number of directions of a number among the inputs."""
        return 2 if part.is_complex and not self.holomorphic else 1

    def output_directions(self, part: Part) -> int:
        """Number of cotangents of a number among the outputs."""
        is_one = self.holomorphic and all(other.is_complex for other in self.inputs)
        return 2 if part.is_complex and not is_one else 1

    # ------------------------------------------------------------------------------------------------ expressions

    def of_value(self, leaf: Callable[[Part], str]) -> str:
        """An expression with the structure of the value."""
        return self._expression(self.return_type, iter(self.outputs), leaf)

    def of_arguments(self, leaf: Callable[[Part], str], *, always_tuple: bool = False) -> str:
        """An expression with the structure of the arguments that are differentiated."""
        parts = iter(self.inputs)
        found = [self._expression(self._types[position], parts, leaf) for position in self.argnums]
        return found[0] if self._single and not always_tuple else _tuple(found)

    def result(self, block: Callable[[Block], str]) -> str:
        """An expression with the structure of the Jacobian."""
        return self.of_value(lambda o: self.of_arguments(lambda i: block(Block(o, i, self.holomorphic))))

    def _expression(self, numba_type: Type, parts: Any, leaf: Callable[[Part], str]) -> str:
        if isinstance(numba_type, types.BaseTuple):
            items = [self._expression(item, parts, leaf) for item in numba_type.types]
            made = getattr(numba_type, "instance_class", None)
            if made is None:
                return _tuple(items)
            name = f"irad_class_{id(made)}"
            self.scope[name] = made
            return f"{name}({', '.join(items)})"
        return "None" if tree.kind_of(numba_type) is LeafKind.INERT else leaf(next(parts))


def _steps(numba_type: Any, path: tuple[int, ...]) -> Iterator[tuple[int, Any]]:
    for step in path:
        yield step, numba_type
        numba_type = numba_type.types[step]


def _tuple(items: list[str]) -> str:
    return f"({''.join(item + ', ' for item in items)})"


# Arrays of the caller that a Jacobian is written to.

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
