"""The rules of irad's libraries, each with operands at which `check_rule` checks it.

A new rule needs a line: in `EXAMPLES` if it is that of a function of a module, in `MADE` (`made_rules.py`) if it is
made for another function, in `WITHOUT_DERIVATIVE` if it says that there is nothing to differentiate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import irad
import irad.implicit
import irad.integrate
import irad.interpolate
import irad.nn
import irad.ode.states
import irad.sparse_linalg  # the catalogue has the rules of what is imported
from irad.frontend.custom import catalogue
from irad.sparse_linalg.solve import factored


class Operands(NamedTuple):
    """Where a rule is checked.

    Attributes:
        arguments: gives what `check_rule` takes; not made before, as some compile for seconds.
        options: of `check_rule`.
    """

    arguments: Callable[[], tuple[Any, ...]]
    options: dict[str, Any]


def at(*arguments: Any, **options: Any) -> Operands:
    return Operands(lambda: arguments, options)


def values(*shape: int) -> Any:
    """Numbers between -1.1 and 1.4, all different."""
    n = int(np.prod(shape))
    return (np.linspace(-1.0, 1.3, n) + 0.1 * np.cos(5.0 * np.arange(n))).reshape(shape)


X = np.linspace(-1.0, 1.5, 6).reshape(1, 3, 2)
INDICES, STARTS = np.array([0, 1, 1, 0]), np.array([0, 2, 4])
ENTRIES, RIGHT = np.array([4.0, 1.0, 3.0, 0.5]), np.array([1.0, 2.0])
ROWS = np.array([1, 0, 1])  # one is repeated
CONVOLUTION = ((1, 1, 2), (0, 0, 0, 0, 1, 0), (1, 1, 1), 1, False)  # stride, padding, dilation, groups, flipped
WINDOWS = ((1, 1, 2), (1, 1, 1), (0, 0, 0, 0, 1, 0))  # size, stride, padding
FOLDED = (*WINDOWS, (1, 1, 1), True)
LINEAR = (np.int64(6), np.int64(0))
MASK = np.array([[[[True, True, False], [True, True, True]]]])
POINTS = np.array([[[0.4, 0.3, 1.2], [-0.3, 0.6, 0.4]]])
ROOM = np.empty(0)  # memory to work in
FLAT_POINTS = irad.Const(np.array([[[0.0, 0.3, 1.2], [0.0, 0.6, 0.4]]]))  # along an axis of one element there is a kink


def _solution(by_rows: bool) -> tuple[Any, ...]:
    factors = factored(ENTRIES, INDICES, STARTS)
    return irad.Const(factors), irad.Const(ENTRIES), INDICES, STARTS, RIGHT, by_rows


EXAMPLES: dict[str, tuple[Operands, ...]] = {
    "irad.nn.attention._exponentials": (at(values(2, 3) - 3.0, values(2) + 2.0, 2, 2),),
    "irad.nn.attention.attend": (
        at(values(1, 1, 2, 2), values(1, 1, 3, 2), values(1, 1, 3, 1), values(1, 1, 2, 3), MASK, True),
    ),
    "irad.nn.convolution.kernels.add_conv": (
        at(values(1, 1, 1, 1, 2), values(1, 2, 1, 1, 4), values(1, 2, 1, 1, 2), CONVOLUTION, ROOM),
    ),
    "irad.nn.convolution.kernels.add_data": (
        at(values(1, 2, 1, 1, 4), values(1, 1, 1, 1, 2), values(1, 2, 1, 1, 2), CONVOLUTION, ROOM),
    ),
    "irad.nn.convolution.kernels.add_filter": (
        at(values(1, 2, 1, 1, 2), values(1, 2, 1, 1, 4), values(1, 1, 1, 1, 2), CONVOLUTION, ROOM),
    ),
    "irad.nn.indexing._add_from": (at(values(3, 2), values(2, 2), ROWS),),
    "irad.nn.indexing._add_at": (at(values(2, 2), values(3, 2), ROWS, irad.Const(-2.0)),),
    "irad.nn.indexing._fold": tuple(at(op, values(2, 2) + 2.0, values(3, 2) + 2.1, ROWS) for op in (3, 4, 5)),
    "irad.nn.normalisation._normalise": (at(values(2, 1, 3), values(3) + 2.0, values(3), 0.1),),
    # results and sums never are memory that is read
    "irad.nn.pooling._put_maxima": (at(values(1, 1, 1, 1, 4) + 1.0, values(1, 1, 1, 1, 4), WINDOWS, aliasing=False),),
    "irad.nn.pooling._add_means": tuple(
        at(values(1, 1, 1, 1, 4), values(1, 1, 1, 1, 4) + 1.0, (*WINDOWS, counts_all), aliasing=False)
        for counts_all in (True, False)
    ),
    "irad.nn.pooling._add_spread": (
        at(values(1, 1, 1, 1, 4), values(1, 1, 1, 1, 4) + 1.0, (*WINDOWS, True), aliasing=False),
    ),
    "irad.nn.products._put_mul": (
        at(values(1, 3, 3), X, X.transpose(0, 2, 1).copy() + 1.0, False, False, aliasing=False),
    ),
    # with probability zero: a function of chance has no differences, test_dropout.py compares with the mask
    "irad.nn.random_masks._put_dropped": (at(values(3, 2), values(3, 2) + 1.0, irad.Const(0.0), aliasing=False),),
    "irad.nn.resampling.folding._add_windows": (at(values(1, 2, 4), values(1, 1, 1, 1, 4), FOLDED),),
    "irad.nn.resampling.folding._add_images": (at(values(1, 1, 1, 1, 4), values(1, 2, 4), FOLDED),),
    "irad.nn.resampling.grids.add_samples": (
        at(values(1, 2, 2), values(1, 2, 2, 2, 3), POINTS, False),
        at(values(1, 2, 2), values(1, 2, 1, 2, 3), FLAT_POINTS, True),
    ),
    "irad.nn.linear.add_along": (at(values(1, 4, 2), values(1, 2, 2), LINEAR),),
    "irad.nn.linear.add_back": (at(values(1, 2, 2), values(1, 4, 2), LINEAR),),
    "irad.nn.sequences.ctc._losses": (
        at(0.1 * values(1, 3, 3) - 1.1, np.array([[0, 1]]), np.array([3]), np.array([2]), 2),
    ),
    "irad.nn.softmaxes._logsumexp": (at(X),),
    "irad.nn.softmaxes._put_logsoftmax": (at(values(1, 3, 2), values(1, 3, 2) + 1.0, aliasing=False),),
    "irad.nn.softmaxes._put_softmax": (at(values(1, 3, 2), values(1, 3, 2) + 1.0, aliasing=False),),
    # with respect to the right-hand side: factors stay as they are where a difference changes the entries
    "irad.sparse_linalg.solve.solution": tuple(
        Operands(partial(_solution, by_rows), {"single": False}) for by_rows in (True, False)
    ),
}
"""Operands of the rules of functions that a module defines."""

WITHOUT_DERIVATIVE = frozenset(
    {
        "irad.implicit.constrained._check_independent",
        "irad.implicit.pseudoinverse._check_rank",
        "irad.implicit.unknowns.check_count",
        "irad.integrate.outcome._check",
        "irad.integrate.outcome.check_derivative",
        "irad.integrate.samples._check_widths",
        "irad.integrate.weights._cell",
        "irad.integrate.weights._cuts",
        "irad.integrate.weights._stretch",
        "irad.interpolate.bsplines._check_degree",
        "irad.interpolate.bsplines._refuse_points",
        "irad.interpolate.cubics.check_rows",
        "irad.interpolate.grids.check_grid",
        "irad.interpolate.grids.check_order",
        "irad.interpolate.grids.refuse_order",
        "irad.nn.attention._raise_tops",
        "irad.nn.indexing._check_rows",
        "irad.nn.indexing._in_a_row",
        "irad.nn.indexing._joined",
        "irad.nn.indexing._operation_of",
        "irad.nn.outputs._check_apart",
        "irad.nn.outputs.is_same_memory",
        "irad.nn.resampling.grids._beyond",
        "irad.nn.resampling.grids._choice",
        "irad.nn.sequences.ctc._check",
        "irad.ode.algebra._dense_factors",
        "irad.ode.algebra._sparse_factors",
        "irad.ode.algebra.coloured",
        "irad.ode.algebra.is_square",
        "irad.ode.dense.just_after",
        "irad.ode.interpolant._piece_at",
        "irad.ode.march._check_progress",
        "irad.ode.march.error_size",
        "irad.ode.march.factor",
        "irad.ode.march.first_share",
        "irad.ode.march.longest_share",
        "irad.ode.march.rest_of_steps",
        "irad.ode.march.shrinking",
        "irad.ode.solve._check_numbers",
        "irad.ode.states._likeness",
        "irad.sparse_linalg.eigen._size",
        "irad.sparse_linalg.eigen.check_count",
        "irad.sparse_linalg.eigen.check_symmetry",
        "irad.sparse_linalg.products.check_matrix",
        "irad.sparse_linalg.products.check_size",
        "irad.sparse_linalg.solve.factored",
    }
)
"""Functions that are declared inactive: checks of arguments, names, and the sizes of steps."""


def own_rules() -> Iterator[tuple[str, catalogue.CustomRule]]:
    """What is declared for functions of irad, and their names."""
    for rule in catalogue.rules():
        module = str(getattr(rule.target, "__module__", ""))
        if module.startswith("irad."):
            yield f"{module}.{rule.target.__qualname__}", rule


def targets() -> dict[str, Any]:
    """The functions of modules that have a rule, by name."""
    return {name: rule.target for name, rule in own_rules() if rule.parts and "<locals>" not in name}
