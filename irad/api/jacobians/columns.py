"""Code for Jacobians by forward mode: some columns in each run.

The code of f(x: float64[:]) -> float64[:], without what is there for other types:

    while True:
        tangent_of_x[column] = 1.0
        value, tangent = pushforward_of_f((tangent_of_x,), x)
        if column == 0: make the matrix
        matrix[:, column] = tangent
        tangent_of_x[column] = 0.0
        column += 1
        if column >= x.size: break

Every run has to begin with the same arguments: what the function writes to is copied first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from irad.api.jacobians import writing
from irad.api.jacobians.structure import Block, Part, Structure
from irad.api.jacobians.writing import Places, indented, is_in, when
from irad.frontend.calls.task import Returns

_DIFFERS = 'raise RuntimeError("the number of results differs between two runs of the function")'


class Columns:
    """Writes the code.

    Args:
        structure: of the Jacobian.
        arguments: an expression for each argument, by position.
        written: expressions for the arrays that the function may write to.
        decides: give up after the first run if reverse mode is better.
        is_flagged: return whether the Jacobian is complete, too.
        returns: what the code returns.
        has_aux: the function returns something besides the value.
        places: arrays of the caller for the blocks.
        arrays: expressions for all arrays among the arguments.
        width: directions in each run.
    """

    def __init__(
        self,
        structure: Structure,
        arguments: Mapping[int, str],
        written: list[str],
        *,
        decides: bool,
        is_flagged: bool,
        returns: Returns,
        has_aux: bool,
        places: Places,
        arrays: list[str],
        width: int,
    ) -> None:
        self.structure, self.arguments, self.written, self.width = structure, arguments, written, width
        self.decides, self.is_flagged, self.returns, self.places = decides, is_flagged, returns, places
        self.arrays, self.has_aux = arrays, has_aux
        self.inputs = [part.of(arguments[part.position]) for part in structure.inputs]

    def lines(self, call: str) -> Iterator[str]:
        """The body of a function whose parameters are those of the differentiated one.

        Args:
            call: its arguments, as it is called.
        """
        parts, blocks = self.structure.inputs, self.structure.blocks()
        sizes = [writing.size_of(p, at, self._directions(p)) for p, at in zip(parts, self.inputs, strict=True)]
        yield from writing.separations(self.places, self.arrays)
        yield from (f"irad_copy{i} = {at}.copy()" for i, at in enumerate(self.written))
        yield from writing.starts("start", parts, sizes)
        yield from (line for part in parts for line in self._tangents(part))
        yield from writing.placeholders(blocks, self.places)
        yield "irad_first = 0"
        yield "while True:"
        yield from indented(self._run(blocks, call))
        yield from writing.copies(self.places)
        yield f"return {self._result(True)}"

    def _directions(self, part: Part) -> int:
        return self.structure.input_directions(part)

    def _result(self, is_complete: bool) -> str:
        return writing.result(self.structure, self.returns, self.has_aux, is_complete if self.is_flagged else None)

    def _tangents(self, part: Part) -> Iterator[str]:
        """Those of an array: an array for each direction of a run."""
        if not part.is_array:
            return
        at = self.inputs[part.number]
        repeats = part.type.layout == "A" and at not in self.written  # elements in one place have one tangent each
        made = f"irad_np.zeros({at}.shape, irad_np.{part.dtype})" if repeats else f"irad_shadow_like({at})"
        yield f"irad_tangent{part.number} = ({f'{made}, ' * self.width})"

    def _run(self, blocks: list[Block], call: str) -> Iterator[str]:
        total = f"irad_start{len(self.structure.inputs)}"
        yield from when("irad_first > 0", self._restored())
        yield from self._lanes(self._seeded)
        lanes = [self.structure.of_arguments(self._tangents_of(lane), always_tuple=True) for lane in range(self.width)]
        aux = ", irad_aux" * self.has_aux
        yield f"irad_value, irad_columns{aux} = irad_push(({', '.join(lanes)}, ), {call})"
        yield from when("irad_first == 0", self._begun(blocks, total))
        yield from self._lanes(self._taken)
        for part in self._overwritten():
            yield from (f"irad_tangent{part.number}[{lane}][...] = 0" for lane in range(self.width))
        yield f"irad_first += {self.width}"
        yield from when(f"irad_first >= {total}", ["break"])

    def _restored(self) -> Iterator[str]:
        yield from (f"{at}[...] = irad_copy{i}" for i, at in enumerate(self.written))

    def _overwritten(self) -> list[Part]:
        return [part for part in self.structure.inputs if part.is_array and self.inputs[part.number] in self.written]

    def _lanes(self, of_part: Callable[[Part], Iterable[str]]) -> Iterator[str]:
        """What is done for each direction of a run, by the part that it belongs to."""
        yield f"for irad_lane in range({self.width}):"
        yield "    irad_direction = irad_first + irad_lane"
        for part in self.structure.inputs:
            yield from indented(when(is_in("irad_direction", "start", part), [*self._place(part), *of_part(part)]))

    def _place(self, part: Part) -> Iterator[str]:
        yield f"irad_column = irad_direction - irad_start{part.number}"
        if self._directions(part) == 2:
            yield "irad_is_second = irad_column % 2 == 1"
            yield "irad_column //= 2"

    def _seeded(self, part: Part) -> Iterator[str]:
        if part.is_array:
            one = writing.unit(part, "irad_is_second" if self._directions(part) == 2 else None)
            yield f"irad_tangent{part.number}[irad_lane].flat[irad_column] = {one}"

    def _tangents_of(self, lane: int) -> Callable[[Part], str]:
        """The tangent of each part in a direction of a run."""

        def tangent(part: Part) -> str:
            if part.is_array:
                return f"irad_tangent{part.number}[{lane}]"
            return writing.number(part, f"irad_first + {lane} - irad_start{part.number}", self._directions(part))

        return tangent

    def _begun(self, blocks: list[Block], total: str) -> Iterator[str]:
        """After the first run: how many results there are."""
        outputs = self.structure.outputs
        ats = [part.of("irad_columns[0]") for part in outputs]
        if self.decides:
            rows = [
                writing.size_of(part, at, self.structure.output_directions(part))
                for part, at in zip(outputs, ats, strict=True)
            ]
            yield f"irad_rows = {' + '.join(rows)}"
            yield from when(f"0 < irad_rows < {total}", [*self._restored(), f"return {self._result(False)}"])
        yield from writing.allocations(blocks, "irad_columns[0]", self.inputs, self.places)

    def _taken(self, part: Part) -> Iterator[str]:
        """Stores a column."""
        if self._directions(part) == 2:
            yield "irad_weight = -1j if irad_is_second else 1 + 0j"
        for output in self.structure.outputs:
            block = Block(output, part, self.structure.holomorphic)
            at = output.of("irad_columns[irad_lane]")
            if not output.is_array:
                yield from writing.stored(block, "0, irad_column", self._values(block, at))
                continue
            rows = f"irad_b{block.names[0]}.shape[0]"
            yield from when(f"{at}.size != {rows}", [_DIFFERS])
            yield "irad_row = 0"
            yield f"for irad_number in {at}.flat:"
            yield from indented(writing.stored(block, "irad_row, irad_column", self._values(block, "irad_number")))
            yield "    irad_row += 1"
        if part.is_array and part not in self._overwritten():
            yield f"irad_tangent{part.number}[irad_lane].flat[irad_column] = 0"

    def _values(self, block: Block, found: str) -> list[str]:
        """What is stored: df = ∂f/∂z dz + ∂f/∂z̄ dz̄ in the directions 1 and i."""
        if block.is_pair:
            return [f"OLD + 0.5 * irad_weight * {found}", f"OLD + 0.5 * irad_weight.conjugate() * {found}"]
        if self._directions(block.input) == 2:  # d/dRe + i·d/dIm of a real number
            return [f"OLD + irad_weight.conjugate() * {found}"]
        return [found]
