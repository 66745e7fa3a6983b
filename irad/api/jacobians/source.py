"""Python code of Jacobians: columns by forward mode, some in each run; rows by reverse mode, some in each sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final, TypeAlias

from irad.api.jacobians.structure import Block, Part, Place, Structure
from irad.frontend.calls.task import Returns

# What both kinds of code have in common.

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
    """Lines with the first direction of each part, `irad_x0`, `irad_x1`, …; the last is the number of all."""
    yield f"irad_{name}0 = 0"
    for part, size in zip(parts, sizes, strict=True):
        yield f"irad_{name}{part.number + 1} = irad_{name}{part.number} + {size}"


def size_of(part: Part, at: str, directions: int) -> str:
    """Number of directions of a part."""
    count = f"{at}.size" if part.is_array else "1"
    return count if directions == 1 else f"2 * {count}"


def is_in(direction: str, name: str, part: Part) -> str:
    """True if a direction is one of a part's."""
    return f"irad_{name}{part.number} <= {direction} < irad_{name}{part.number + 1}"


def unit(part: Part, is_second: str | None) -> str:
    """Entry for one place of a part: 1, or i in the second of two directions."""
    kind = f"irad_np.{part.dtype}"
    return f"{kind}(1)" if is_second is None else f"({kind}(1j) if {is_second} else {kind}(1))"


def number(part: Part, distance: str, directions: int) -> str:
    """Entry for a number, ``distance`` directions after its first one."""
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
    """Code that runs the function, and makes a pullback from the values that it saves.

    Args:
        call: the arguments, as the function is called.
        parameters: its parameters.
        has_aux: it returns an auxiliary output as well.
    """
    returned = "irad_both" if has_aux else "irad_value"
    yield f"irad_n, {returned}, irad_state, irad_shadows = irad_augmented({call})"
    yield f"irad_pullback = irad_make(irad_state, irad_shadows, (({parameters}, ), {returned}))"
    if has_aux:
        yield "irad_value, irad_aux = irad_both"


def result(structure: Structure, returns: Returns, has_aux: bool, is_complete: bool | None) -> str:
    """Result of the code: value, Jacobian or both; and whether the Jacobian is complete, if that is asked for."""
    found, value = structure.result(variable), "(irad_value, irad_aux)" if has_aux else "irad_value"
    jacobian = f"({found}, irad_aux)" if has_aux else found
    made = {Returns.GRADIENT: jacobian, Returns.VALUE: value}.get(returns, f"({value}, {found})")
    return made if is_complete is None else f"({made}, {is_complete})"


def indented(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a block of code."""
    return (f"    {line}" for line in lines)


def when(condition: str, lines: Iterable[str]) -> Iterator[str]:
    """Code under a condition; nothing if there is no code."""
    body = list(lines)
    if body:
        yield f"if {condition}:"
        yield from indented(body)


# Code for Jacobians by forward mode: some columns in each run.
#
# The code of f(x: float64[:]) -> float64[:], without what is there for other types:
#
#     while True:
#         tangent_of_x[column] = 1.0
#         value, tangent = pushforward_of_f((tangent_of_x,), x)
#         if column == 0: make the matrix
#         matrix[:, column] = tangent
#         tangent_of_x[column] = 0.0
#         column += 1
#         if column >= x.size: break
#
# Every run has to begin with the same arguments: what the function writes to is copied first.

_DIFFERS = 'raise RuntimeError("the number of results differs between two runs of the function")'


class Columns:
    """Writes the code.

    Args:
        structure: of the Jacobian.
        arguments: an expression for each argument, by position.
        written: expressions for the arrays that the function may write to.
        decides: give up after the first run if reverse mode is better.
        is_flagged: return whether the Jacobian is complete, too.
        returns: result of the code.
        has_aux: the function returns an auxiliary output as well.
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
        sizes = [size_of(p, at, self._directions(p)) for p, at in zip(parts, self.inputs, strict=True)]
        yield from separations(self.places, self.arrays)
        yield from (f"irad_copy{i} = {at}.copy()" for i, at in enumerate(self.written))
        yield from starts("start", parts, sizes)
        yield from (line for part in parts for line in self._tangents(part))
        yield from placeholders(blocks, self.places)
        yield "irad_first = 0"
        yield "while True:"
        yield from indented(self._run(blocks, call))
        yield from copies(self.places)
        yield f"return {self._result(True)}"

    def _directions(self, part: Part) -> int:
        return self.structure.input_directions(part)

    def _result(self, is_complete: bool) -> str:
        return result(self.structure, self.returns, self.has_aux, is_complete if self.is_flagged else None)

    def _tangents(self, part: Part) -> Iterator[str]:
        """Tangents of an array: an array for each direction of a run."""
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
        """Code for each direction of a run, by the part that it belongs to."""
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
            one = unit(part, "irad_is_second" if self._directions(part) == 2 else None)
            yield f"irad_tangent{part.number}[irad_lane].flat[irad_column] = {one}"

    def _tangents_of(self, lane: int) -> Callable[[Part], str]:
        """The tangent of each part in a direction of a run."""

        def tangent(part: Part) -> str:
            if part.is_array:
                return f"irad_tangent{part.number}[{lane}]"
            return number(part, f"irad_first + {lane} - irad_start{part.number}", self._directions(part))

        return tangent

    def _begun(self, blocks: list[Block], total: str) -> Iterator[str]:
        """After the first run: how many results there are."""
        outputs = self.structure.outputs
        ats = [part.of("irad_columns[0]") for part in outputs]
        if self.decides:
            rows = [
                size_of(part, at, self.structure.output_directions(part)) for part, at in zip(outputs, ats, strict=True)
            ]
            yield f"irad_rows = {' + '.join(rows)}"
            yield from when(f"0 < irad_rows < {total}", [*self._restored(), f"return {self._result(False)}"])
        yield from allocations(blocks, "irad_columns[0]", self.inputs, self.places)

    def _taken(self, part: Part) -> Iterator[str]:
        """Stores a column."""
        if self._directions(part) == 2:
            yield "irad_weight = -1j if irad_is_second else 1 + 0j"
        for output in self.structure.outputs:
            block = Block(output, part, self.structure.holomorphic)
            at = output.of("irad_columns[irad_lane]")
            if not output.is_array:
                yield from stored(block, "0, irad_column", self._values(block, at))
                continue
            rows = f"irad_b{block.names[0]}.shape[0]"
            yield from when(f"{at}.size != {rows}", [_DIFFERS])
            yield "irad_row = 0"
            yield f"for irad_number in {at}.flat:"
            yield from indented(stored(block, "irad_row, irad_column", self._values(block, "irad_number")))
            yield "    irad_row += 1"
        if part.is_array and part not in self._overwritten():
            yield f"irad_tangent{part.number}[irad_lane].flat[irad_column] = 0"

    def _values(self, block: Block, found: str) -> list[str]:
        """Expressions that are stored: df = ∂f/∂z dz + ∂f/∂z̄ dz̄ in the directions 1 and i."""
        if block.is_pair:
            return [f"OLD + 0.5 * irad_weight * {found}", f"OLD + 0.5 * irad_weight.conjugate() * {found}"]
        if self._directions(block.input) == 2:  # d/dRe + i·d/dIm of a real number
            return [f"OLD + irad_weight.conjugate() * {found}"]
        return [found]


# Code for Jacobians by reverse mode: one augmented run, and a reverse sweep for each group of rows.
#
# The code of f(x: float64[:]) -> float64[:], without what is there for other types:
#
#     value, pullback = vjp of f at x, in 2 directions
#     for first in range(0, value.size, 2):
#         for lane in range(min(2, value.size - first)):
#             cotangents[lane][first + lane] = 1.0
#         found = pullback((cotangents[0], cotangents[1]))
#         for lane in range(min(2, value.size - first)):
#             matrix[first + lane, :] = found[0][lane]
#             cotangents[lane][first + lane] = 0.0


class Rows:
    """Writes the code.

    Args:
        structure: of the Jacobian.
        arguments: an expression for each argument, by position.
        is_flagged: return that the Jacobian is complete, too.
        returns: result of the code.
        has_aux: the function returns an auxiliary output as well.
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
        yield from separations(self.places, self.arrays)
        yield from forward_sweep(call, parameters, self.has_aux)
        sizes = [size_of(p, p.of("irad_value"), self._directions(p)) for p in parts]
        yield from starts("start", parts, sizes)
        for part in parts:
            if part.is_array:
                zeros = f"irad_np.zeros({part.of('irad_value')}.shape, irad_np.{part.dtype}), "
                yield f"irad_cotangents{part.number} = ({zeros * self.width})"
        yield from placeholders(blocks, self.places)
        yield from allocations(blocks, "irad_value", self.inputs, self.places)
        end = f"irad_start{len(parts)}"
        yield f"for irad_first in range(0, {end}, {self.width}):"
        yield from indented(self._each_lane(end, (line for part in parts for line in self._seeded(part))))
        seeds = [self.structure.of_value(partial(self._cotangent, lane)) for lane in range(self.width)]
        given = (f"({seed}, None), " if self.has_aux else f"{seed}, " for seed in seeds)
        yield f"    irad_found = irad_pullback(({''.join(given)}))"
        yield from indented(self._each_lane(end, (line for part in parts for line in self._taken(part))))
        yield from copies(self.places)
        flag = True if self.is_flagged else None
        yield f"return {result(self.structure, self.returns, self.has_aux, flag)}"

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
        one = unit(part, "irad_is_second" if self._directions(part) == 2 else None)
        given = f"irad_cotangents{part.number}[irad_lane].flat[irad_row] = {one}"
        yield from when(is_in("irad_direction", "start", part), [*self._place(part), given])

    def _cotangent(self, lane: int, part: Part) -> str:
        if part.is_array:
            return f"irad_cotangents{part.number}[{lane}]"
        return number(part, f"irad_first + {lane} - irad_start{part.number}", self._directions(part))

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
            yield from stored(block, place, [conjugate, f"OLD + 0.5 * irad_weight * {found}"])
        elif block.is_complex_function:
            lines = stored(block, place, [f"{found}.conjugate()"])
            yield from when("not irad_is_second", lines) if two else lines
        elif two:
            yield from stored(block, place, [f"OLD + irad_weight * {found}"])
        else:
            yield from stored(block, place, [found])
