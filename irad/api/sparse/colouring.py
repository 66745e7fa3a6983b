"""Colours of columns: one product gives all columns of a colour.

A product with the sum of the unit vectors of a colour has in each row the sum of the entries that columns of this
colour have there. Columns of one colour have no row in common, so that this is one entry. Of a symmetric matrix it is
enough that each entry can be read where it stands or where its mirror image stands: a *star colouring* (Gebremedhin,
Manne, Pothen 2005, "What color is your Jacobian?"; Powell, Toint 1979). An arrow takes two colours then, instead of n.

The fewest colours are hard to find; taking the first colour that fits, column by column, gives those of a band matrix,
and few more for grids.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from irad.api.jit import jit, keep

_MANY: Final = 4  # columns with more than 4√nnz entries have a colour of their own


def first_fit(order: Any, column_starts: Any, rows: Any, row_starts: Any, columns: Any) -> Any:
    """For compiled code: a colour for each column of a pattern, which is given by columns and by rows."""
    colours = np.full(order.size, -1)
    taken_by = np.full(order.size, -1)  # the last column that could not have a colour
    for column in order:
        for i in range(column_starts[column], column_starts[column + 1]):
            row = rows[i]
            for j in range(row_starts[row], row_starts[row + 1]):
                colour = colours[columns[j]]
                if colour >= 0:
                    taken_by[colour] = column
        colour = 0
        while taken_by[colour] == column:
            colour += 1
        colours[column] = colour
    return colours


_coloured = jit(first_fit)


def keep_colouring() -> None:
    """Keeps the machine code of this module on disk from now on."""
    keep(_coloured)
    keep(_star_coloured)


def colours_of(pattern: Any) -> Any:
    """A colour for each column, counted from 0.

    Args:
        pattern: a matrix of SciPy's in the format CSC.

    Returns:
        An array of ints. Full columns come first, others in their order. Cost: the squares of the lengths of the rows.
    """
    by_rows = pattern.tocsr()
    order = np.argsort(-np.diff(pattern.indptr), kind="stable")
    return _coloured(order, pattern.indptr, pattern.indices, by_rows.indptr, by_rows.indices)


@jit
def _star_coloured(order: Any, starts: Any, places: Any, many: int) -> Any:
    colours = np.full(order.size, -1)
    taken_by = np.full(order.size, -1)
    first = 0
    for column in order:
        if starts[column + 1] - starts[column] > many:  # shared by no path of four columns with two colours
            colours[column] = first
            first += 1
            continue
        for i in range(starts[column], starts[column + 1]):
            other = places[i]
            if colours[other] >= 0:
                taken_by[colours[other]] = column
                if colours[other] < first:
                    continue
            for j in range(starts[other], starts[other + 1]):
                colour = colours[places[j]]
                if colour >= 0 and (colours[other] < 0 or colour < colours[other]):
                    taken_by[colour] = column
        colour = first
        while taken_by[colour] == column:
            colour += 1
        colours[column] = colour
    return colours


def star_colours_of(pattern: Any) -> Any:
    """A colour for each column of a symmetric matrix, counted from 0.

    In a path of three columns the ends have one colour only if that of the column between them is lower. Each entry
    (i, j) is therefore alone with its colour in row i or, as (j, i), in row j.

    Args:
        pattern: a symmetric matrix of SciPy's in the format CSC.

    Returns:
        An array of ints. Full columns come first; the fullest have a colour that no other has, because finding out
        which others could have it would take the square of their length. Cost: at most the number of entries to the
        power of 3/2.
    """
    order = np.argsort(-np.diff(pattern.indptr), kind="stable")
    many = int(_MANY * np.sqrt(pattern.nnz))
    return _star_coloured(order, pattern.indptr, pattern.indices, max(many, 8))


# What products are computed, and where in them each entry of a matrix is.


@dataclass(frozen=True, eq=False)
class Compression:
    """A product for each colour, and one place in them for each entry of the pattern.

    Attributes:
        pattern: a matrix of SciPy's of bools, in the format CSC.
        mode: "forward": colours are those of columns; "reverse": products are those with the transpose, and colours
            those of rows.
        colours: a number for each column, or for each row.
        product: for each entry, in the order of the pattern, the product that it is in.
        place: and where in that product.
    """

    pattern: Any
    mode: Literal["forward", "reverse"]
    colours: Any
    product: Any
    place: Any

    @property
    def count(self) -> int:
        """Number of products."""
        return int(self.colours.max(initial=-1)) + 1


def by_columns(pattern: Any) -> Compression:
    """Columns of one colour have no row in common."""
    rows, columns = _entries(pattern)
    colours = colours_of(pattern)
    return Compression(pattern, "forward", colours, colours[columns], rows)


def by_rows(pattern: Any) -> Compression:
    """Rows of one colour have no column in common."""
    rows, columns = _entries(pattern)
    colours = colours_of(pattern.T.tocsc())
    return Compression(pattern, "reverse", colours, colours[rows], columns)


def fewest_first(pattern: Any) -> Iterator[Compression]:
    """By columns and by rows: the one with fewer products first, the other if it is asked for.

    A full row takes a product for each column in it, and finding that out takes the square of its length. So the
    colours of columns are not counted where those of rows are as few as the longest row has entries, nor the reverse.
    """
    least = {by_columns: _longest(pattern.tocsr()), by_rows: _longest(pattern)}
    one, other = sorted(least, key=lambda way: least[way])
    first = one(pattern)
    if first.count <= least[other]:
        yield first
        yield other(pattern)
    else:
        yield from sorted([first, other(pattern)], key=lambda found: found.count)


def _longest(pattern: Any) -> int:
    return int(np.diff(pattern.indptr).max(initial=0))


def by_symmetry(pattern: Any) -> Compression:
    """The compression of a symmetric pattern: an entry is read at its own place, or at that of its mirror image."""
    rows, columns = _entries(pattern)
    colours = star_colours_of(pattern)
    _, each, times = np.unique(rows.astype(np.int64) * colours.size + colours[columns], False, True, True)
    alone = times[each] == 1  # with its colour in its row
    return Compression(
        pattern, "forward", colours, np.where(alone, colours[columns], colours[rows]), np.where(alone, rows, columns)
    )


def _entries(pattern: Any) -> tuple[Any, Any]:
    return pattern.indices, np.repeat(np.arange(pattern.shape[1]), np.diff(pattern.indptr))
