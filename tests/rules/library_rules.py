"""The rules of irad's libraries, each with operands at which `check_rule` checks it.

A new rule needs a line in `EXAMPLES`. The rules of functions that are made for another function, as those of
`irad.implicit` and `irad.integrate.quad`, are not in the catalogue until they are made; their libraries have the tests.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import irad.nn
import irad.sparse_linalg  # noqa: F401  the catalogue has the rules of what is imported
from irad.frontend.custom import catalogue

LIBRARIES = ("irad.nn.", "irad.integrate.", "irad.sparse_linalg.", "irad.implicit.", "irad.interpolate.")

X = np.linspace(-1.0, 1.5, 6).reshape(1, 3, 2)
INDICES, STARTS = np.array([0, 1, 1, 0]), np.array([0, 2, 4])
ENTRIES, RIGHT = np.array([4.0, 1.0, 3.0, 0.5]), np.array([1.0, 2.0])

EXAMPLES: dict[str, tuple[Any, ...]] = {
    "irad.nn.softmaxes._logsoftmax": (X,),
    "irad.nn.softmaxes._logsumexp": (X,),
    "irad.nn.products._mul": (X, X.transpose(0, 2, 1).copy() + 1.0, False, False),
    "irad.sparse_linalg.solve.csc_solve": (ENTRIES, INDICES, STARTS, RIGHT),
    "irad.sparse_linalg.solve.csr_solve": (ENTRIES, INDICES, STARTS, RIGHT),
}
"""Operands of the rules of functions that a module defines."""

ELSEWHERE = frozenset(
    {
        "irad.nn.attention.tiles._exponentials",
        "irad.nn.attention.tiles.attend",
        "irad.nn.convolution.bilinear.add_conv",
        "irad.nn.convolution.bilinear.add_data",
        "irad.nn.convolution.bilinear.add_filter",
        "irad.nn.indexing._add_from",
        "irad.nn.indexing._add_at",
        "irad.nn.indexing._fold",
        "irad.nn.normalisation._normalise",
        "irad.nn.pooling._maxima",
        "irad.nn.pooling._add_means",
        "irad.nn.pooling._add_spread",
        "irad.nn.random_masks._dropped",
        "irad.nn.resampling.folding._add_windows",
        "irad.nn.resampling.folding._add_images",
        "irad.nn.resampling.sampling.add_samples",
        "irad.nn.resampling.along.add_along",
        "irad.nn.resampling.along.add_back",
        "irad.nn.sequences.ctc._losses",
        "irad.nn.softmaxes._put_softmax",  # writes to new memory, never in place, which check_rule would try
    }
)
"""Rules that have no operands here: the tests of their libraries compare them with differences and forward mode."""


def targets() -> dict[str, Any]:
    """The functions of modules of the libraries that have a rule."""
    found = {}
    for rule in catalogue.rules():
        module = str(getattr(rule.target, "__module__", ""))
        name = str(getattr(rule.target, "__qualname__", ""))
        if rule.parts and module.startswith(LIBRARIES) and "<locals>" not in name:
            found[f"{module}.{name}"] = rule.target
    return found
