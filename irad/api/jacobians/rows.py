"""Code for Jacobians by reverse mode: one augmented run, and a reverse sweep for so many rows.

The code of f(x: float64[:]) -> float64[:], without what is there for other types:

    value, pullback = vjp of f at x, in 2 directions
    for first in range(0, value.size, 2):
        for lane in range(min(2, value.size - first)):
            cotangents[lane][first + lane] = 1.0
        found = pullback((cotangents[0], cotangents[1]))
        for lane in range(min(2, value.size - first)):
            matrix[first + lane, :] = found[0][lane]
            cotangents[lane][first + lane] = 0.0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial

from irad.api.jacobians import writing
from irad.api.jacobians.structure import Block, Part, Structure
from irad.api.jacobians.writing import Places, indented, is_in, when
from irad.frontend.calls.task import Returns


class Rows:
    """Writes the code.

    Args:
        structure: of the Jacobian.
        arguments: an expression for each argument, by position.
        is_flagged: return that the Jacobian is complete, too.
        returns: what the code returns.
        has_aux: the function returns something besides the value.
        places: arrays of the caller for the blocks.
        arrays: expressions for all arrays among the arguments.
        width: rows in each reverse sweep.
    """

    def __init__(
        self,
        structure: Structure,
        arguments: Mapping[int, str],
        *,
        is_flagged: bool,
        returns: Returns,
        has_aux: bool,
        places: Places,
        arrays: list[str],
        width: int,
    ) -> None:
        self.structure, self.is_flagged, self.returns, self.places = structure, is_flagged, returns, places
        self.arrays, self.width, self.has_aux = arrays, width, has_aux
        self.inputs = [part.of(arguments[part.position]) for part in structure.inputs]

    def lines(self, call: str, parameters: str) -> Iterator[str]:
        """The body of a function whose parameters are those of the differentiated one.

        Args:
            call: its arguments, as it is called.
            parameters: its parameters.
        """
        parts, blocks = self.structure.outputs, self.structure.blocks()
        yield from writing.separations(self.places, self.arrays)
        yield from writing.forward_sweep(call, parameters, self.has_aux)
        sizes = [writing.size_of(p, p.of("irad_value"), self._directions(p)) for p in parts]
        yield from writing.starts("start", parts, sizes)
        for part in parts:
            if part.is_array:
                zeros = f"irad_np.zeros({part.of('irad_value')}.shape, irad_np.{part.dtype}), "
                yield f"irad_cotangents{part.number} = ({zeros * self.width})"
        yield from writing.placeholders(blocks, self.places)
        yield from writing.allocations(blocks, "irad_value", self.inputs, self.places)
        end = f"irad_start{len(parts)}"
        yield f"for irad_first in range(0, {end}, {self.width}):"
        yield from indented(self._each_lane(end, (line for part in parts for line in self._seeded(part))))
        seeds = [self.structure.of_value(partial(self._cotangent, lane)) for lane in range(self.width)]
        given = (f"({seed}, None), " if self.has_aux else f"{seed}, " for seed in seeds)
        yield f"    irad_found = irad_pullback(({''.join(given)}))"
        yield from indented(self._each_lane(end, (line for part in parts for line in self._taken(part))))
        yield from writing.copies(self.places)
        flag = True if self.is_flagged else None
        yield f"return {writing.result(self.structure, self.returns, self.has_aux, flag)}"

    def _each_lane(self, end: str, lines: Iterable[str]) -> Iterator[str]:
        """Does something for each direction of a sweep; the last sweep may have fewer."""
        yield f"for irad_lane in range(min({self.width}, {end} - irad_first)):"
        yield "    irad_direction = irad_first + irad_lane"
        yield from indented(lines)

    def _directions(self, part: Part) -> int:
        return self.structure.output_directions(part)

    def _place(self, part: Part) -> Iterator[str]:
        yield f"irad_row = irad_direction - irad_start{part.number}"
        if self._directions(part) == 2:
            yield "irad_is_second = irad_row % 2 == 1"
            yield "irad_row //= 2"

    def _seeded(self, part: Part) -> Iterator[str]:
        if not part.is_array:
            return
        one = writing.unit(part, "irad_is_second" if self._directions(part) == 2 else None)
        given = f"irad_cotangents{part.number}[irad_lane].flat[irad_row] = {one}"
        yield from when(is_in("irad_direction", "start", part), [*self._place(part), given])

    def _cotangent(self, lane: int, part: Part) -> str:
        if part.is_array:
            return f"irad_cotangents{part.number}[{lane}]"
        return writing.number(part, f"irad_first + {lane} - irad_start{part.number}", self._directions(part))

    def _taken(self, part: Part) -> Iterator[str]:
        """Stores a row."""
        yield from when(is_in("irad_direction", "start", part), [*self._place(part), *self._row(part)])

    def _row(self, part: Part) -> Iterator[str]:
        if self._directions(part) == 2:
            yield "irad_weight = 1j if irad_is_second else 1 + 0j"
        for known in self.structure.inputs:
            block = Block(part, known, self.structure.holomorphic)
            at = known.of(f"irad_found[{known.position}][irad_lane]")
            if not known.is_array:
                yield from self._stored(block, "irad_row, 0", at)
                continue
            yield "irad_column = 0"
            yield f"for irad_number in {at}.flat:"
            yield from indented(self._stored(block, "irad_row, irad_column", "irad_number"))
            yield "    irad_column += 1"
        if part.is_array:
            yield f"irad_cotangents{part.number}[irad_lane].flat[irad_row] = 0"

    def _stored(self, block: Block, place: str, found: str) -> Iterator[str]:
        """With g the gradient of Re(c̄·f): g(1) = conj(∂f/∂z) + ∂f/∂z̄, and g(i) = i·(conj(∂f/∂z) - ∂f/∂z̄)."""
        two = self._directions(block.output) == 2
        if block.is_pair:
            conjugate = f"OLD + 0.5 * irad_weight * {found}.conjugate()"
            yield from writing.stored(block, place, [conjugate, f"OLD + 0.5 * irad_weight * {found}"])
        elif block.is_complex_function:
            lines = writing.stored(block, place, [f"{found}.conjugate()"])
            yield from when("not irad_is_second", lines) if two else lines
        elif two:
            yield from writing.stored(block, place, [f"OLD + irad_weight * {found}"])
        else:
            yield from writing.stored(block, place, [found])
