"""Derivatives by irad of many functions at many points: one compilation for each mode and order.

The functions of a batch are summed; each reads a row of its own, so that the gradient of the sum holds the gradient of
each. A derivative of higher order is the gradient of a sum, weighted at run time, of derivatives: the weights choose
the partial derivative. Forward mode carries a direction, chosen at run time, in place of weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import product
from typing import Any, Final

import numpy as np
from numba import njit

import irad
from tests.special_points.table import Case, Mode, Order

MODES: Final[tuple[Mode, ...]] = ("reverse", "forward", "forward over reverse")


def _source(cases: Sequence[Case]) -> str:
    """`values(p, q, out)`: each function of its row of p, where that is differentiated, or of q."""
    rows = [
        f"    out[{i}] = f{i}(" + ", ".join(f"{'p' if k in c.wrt else 'q'}[{i}, {k}]" for k in range(c.arity)) + ")"
        for i, c in enumerate(cases)
    ]
    return "\n".join(("def values(p, q):", f"    out = np.empty({len(cases)})", *rows, "    return out"))


class Batch:
    """Cases and their derivatives."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.cases = list(cases)
        self._width = max(case.arity for case in cases)
        scope: dict[str, Any] = {
            "np": np,
            **{f"f{i}": njit(c.function, error_model="numpy") for i, c in enumerate(cases)},
        }
        exec(_source(cases), scope)
        self._values = njit(scope["values"], error_model="numpy")
        self._found: dict[tuple[Mode, int], list[list[tuple[Order, list[float]]]]] = {}

    def derivatives(self, mode: Mode, case: Case, total: int) -> list[tuple[Order, list[float]]]:
        """Each partial derivative of a total order, in each sequence of differentiation, at each point of a case."""
        if (mode, total) not in self._found:
            self._found[mode, total] = self._computed(mode, total)
        return self._found[mode, total][self.cases.index(case)]

    def values(self, case: Case) -> list[float]:
        """The value at each point."""
        return self._of_each[self.cases.index(case)]

    @cached_property
    def _of_each(self) -> list[list[float]]:
        return self._of_all_points(self._values)

    def _rows(self, number: int) -> Any:
        """The points of that number, of all cases; those with fewer points repeat their first."""
        rows = np.ones((len(self.cases), self._width))
        for i, case in enumerate(self.cases):
            rows[i, : case.arity] = case.points[number if number < len(case.points) else 0]
        return rows

    def _of_all_points(self, function: Any) -> list[list[float]]:
        count = max(len(case.points) for case in self.cases)
        columns = [function(rows, rows) for rows in map(self._rows, range(count))]
        return [[float(column[i]) for column in columns[: len(c.points)]] for i, c in enumerate(self.cases)]

    def _computed(self, mode: Mode, total: int) -> list[list[tuple[Order, list[float]]]]:
        found: list[list[tuple[Order, list[float]]]] = [[] for _ in self.cases]
        for steps in product(range(self._width), repeat=total):
            wanted = [set(steps) <= set(case.wrt) for case in self.cases]
            results = self._of_all_points(self._along(mode, steps)) if any(wanted) else []
            for mine, case, is_wanted, result in zip(found, self.cases, wanted, results, strict=False):
                if is_wanted:
                    mine.append((tuple(steps.count(position) for position in range(case.arity)), result))
        return found

    def _along(self, mode: Mode, steps: tuple[int, ...]) -> Any:
        """A function of points that differentiates with respect to one argument after the other."""
        units = [np.zeros((len(self.cases), self._width)) for _ in steps]
        for unit, position in zip(units, steps, strict=True):
            unit[:, position] = 1.0
        inner = units[:-1]
        if mode == "forward":
            function = self._forward[len(steps) - 1]
            return lambda p, q: function(p, q, *units)
        function = (self._reverse if mode == "reverse" else self._mixed)[len(steps) - 1]
        return lambda p, q: function(p, q, *inner)[:, steps[-1]]

    @cached_property
    def _reverse(self) -> list[Any]:
        """Gradients of (weighted sums of gradients of …) the sum of the functions."""
        values = self._values
        first = irad.grad(njit(lambda p, q: values(p, q).sum()))
        second = irad.grad(njit(lambda p, q, v: (first(p, q) * v).sum()))
        third = irad.grad(njit(lambda p, q, v, w: (second(p, q, v) * w).sum()))
        return [first, second, third]

    @cached_property
    def _forward(self) -> list[Any]:
        """Directional derivatives of (directional derivatives of …) the functions."""
        once = irad.pushforward(self._values)
        first = njit(lambda p, q, u: once(p, u, q)[1])
        twice = irad.pushforward(first)
        second = njit(lambda p, q, u, v: twice(p, v, q, u)[1])
        thrice = irad.pushforward(second)
        third = njit(lambda p, q, u, v, w: thrice(p, w, q, u, v)[1])
        return [first, second, third]

    @cached_property
    def _mixed(self) -> list[Any]:
        """Directional derivatives of gradients."""
        first = self._reverse[0]
        once = irad.pushforward(first)
        second = njit(lambda p, q, v: once(p, v, q)[1])
        twice = irad.pushforward(second)
        third = njit(lambda p, q, v, w: twice(p, w, q, v)[1])
        return [first, second, third]
