"""Ages in genealogies: moments by Laplace approximations of hypergeometric functions, projections on gammas."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

A = "tsdate.approx:"
H = "tsdate.hypergeo:"
FIRST, SECOND, EDGE = np.array([1.2, 1.1]), np.array([0.7, 0.9]), np.array([3.0, 0.6])
PARENT, CHILD = np.array([3, 3, 4, 4], np.int32), np.array([0, 1, 3, 2], np.int32)

PACKAGE = Package(
    "tsdate",
    "tsdate>=0.2.7",
    (
        of(A + "mutation_block_projection", 2.0, 1.2),
        of(A + "sideways_moments", 1.3, 2.2, 1.1, 3.0, 0.8),
        of(H + "_gammainc_der", 2.2, 1.3),
        of(H + "_gammainc_der", 1.2, 3.3),
        of(A + "mutation_leafward_projection", 2.0, FIRST, EDGE),
        of(A + "mutation_unphased_moments", 2.2, 1.1, 1.7, 0.9, 3.0, 0.6),
        of(A + "moments", 2.2, 1.1, 1.7, 0.9, 3.0, 0.6),
        of(H + "_betaln", 1.2, 2.3),
        of(
            "tsdate.rescaling:mutational_area",
            np.array([0.0, 0.0, 0.0, 1.3, 2.4]),
            floats(4, 2),
            PARENT,
            CHILD,
            argnums=(1,),
        ),
        of(A + "approximate_gamma_kl", 1.3, 0.1),
        of(H + "_hyp1f1_laplace", 1.2, 2.7, 0.8),
        of(A + "mutation_unphased_projection", FIRST, SECOND, EDGE),
        of("tsdate.discrete:LogLikelihoods.logsumexp", floats(6)),
    ),
)
