"""Colours of columns: one product gives all columns of a colour.

A product with the sum of the unit vectors of a colour has in each row the sum of the entries that columns of this
colour have there. Columns of one colour have no row in common, so that this is one entry. Of a symmetric matrix it is
enough that each entry can be read where it stands or where its mirror image stands: a *star colouring* (Gebremedhin,
Manne, Pothen 2005, "What color is your Jacobian?"; Powell, Toint 1979). An arrow takes two colours then, instead of n.

The fewest colours are hard to find; taking the first colour that fits, column by column, gives those of a band matrix,
and few more for grids.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numba import njit

_MANY: Final = 4  # columns with more entries than so many square roots of all have a colour of their own


@njit  # type: ignore[untyped-decorator]
def _coloured(order: Any, column_starts: Any, rows: Any, row_starts: Any, columns: Any) -> Any:
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


@njit  # type: ignore[untyped-decorator]
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
