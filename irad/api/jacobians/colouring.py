"""Colours of columns: columns of one colour have no row in common, so one product gives them all.

A product with the sum of the unit vectors of a colour has in each row the one entry that a column of this colour has
there. The fewest colours are hard to find (Gebremedhin, Manne, Pothen 2005, "What color is your Jacobian?"); taking the
first colour that fits, column by column, gives those of a band matrix, and few more for grids.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit


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
