"""What products are computed, and where in them each entry of a matrix is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from irad.api.sparse.colouring import colours_of, star_colours_of


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
        """How many products there are."""
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
    """By columns and by rows: the one with fewer products first, the other where it is asked for.

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
    """Of a symmetric pattern: entries are read where they stand, or where their mirror image does."""
    rows, columns = _entries(pattern)
    colours = star_colours_of(pattern)
    _, each, times = np.unique(rows.astype(np.int64) * colours.size + colours[columns], False, True, True)
    alone = times[each] == 1  # with its colour in its row
    return Compression(
        pattern, "forward", colours, np.where(alone, colours[columns], colours[rows]), np.where(alone, rows, columns)
    )


def _entries(pattern: Any) -> tuple[Any, Any]:
    return pattern.indices, np.repeat(np.arange(pattern.shape[1]), np.diff(pattern.indptr))
