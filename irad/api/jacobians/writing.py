"""Python code of Jacobians: what code for columns and code for rows have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from irad.api.jacobians.structure import Block, Part, Structure


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


def placeholders(blocks: Iterable[Block]) -> Iterator[str]:
    """Gives the variables of blocks their types."""
    for block in blocks:
        for name in block.names:
            if block.is_number:
                yield f"irad_j{name} = irad_np.{block.dtype}(0)"
            else:
                yield f"irad_j{name} = irad_np.zeros(({'0, ' * block.ndim}), irad_np.{block.dtype})"
                yield f"irad_b{name} = irad_np.zeros((0, 0), irad_np.{block.dtype})"


def allocations(blocks: Iterable[Block], output: str, inputs: Sequence[str]) -> Iterator[str]:
    """Makes the blocks.

    Args:
        blocks: all of them.
        output: an expression for the value, or for something of its structure.
        inputs: expressions for the parts that are differentiated.
    """
    for block in blocks:
        if block.is_number:
            continue
        ends = [(block.output, block.output.of(output)), (block.input, inputs[block.input.number])]
        shape = " + ".join(f"{at}.shape" for part, at in ends if part.is_array)
        flat = ", ".join(f"{at}.size" if part.is_array else "1" for part, at in ends)
        for name in block.names:
            yield f"irad_j{name} = irad_np.zeros({shape}, irad_np.{block.dtype})"
            yield f"irad_b{name} = irad_j{name}.reshape(({flat}))"


def stored(block: Block, place: str, values: Sequence[str]) -> Iterator[str]:
    """Stores numbers in a block; what is added to is stored twice, for each of two directions."""
    for name, value in zip(block.names, values, strict=True):
        target = f"irad_j{name}" if block.is_number else f"irad_b{name}[{place}]"
        yield f"{target} = irad_np.{block.dtype}({value.replace('OLD', target)})"


def variable(block: Block) -> str:
    """The expression for a block in the result."""
    names = [f"irad_j{name}" for name in block.names]
    return names[0] if len(names) == 1 else f"({', '.join(names)})"


def returned(structure: Structure, returns_value: bool, is_complete: bool | None) -> str:
    """What the code returns: the Jacobian, with the value before and whether it is complete after it, if wanted."""
    found = structure.result(variable)
    result = f"(irad_value, {found})" if returns_value else found
    return result if is_complete is None else f"({result}, {is_complete})"


def indented(lines: Iterable[str]) -> Iterator[str]:
    """The lines of a block of code."""
    return (f"    {line}" for line in lines)


def when(condition: str, lines: Iterable[str]) -> Iterator[str]:
    """Code under a condition; nothing where there is none."""
    body = list(lines)
    if body:
        yield f"if {condition}:"
        yield from indented(body)
