"""Probability distributions of particle physics."""

from __future__ import annotations

import numpy as np

from tests.corpus.sample import Package, of
from tests.tools.catalogue import floats

X = np.array([-1.3, -0.4, 0.35, 1.7, 2.6])
POSITIVE = np.array([0.3, 0.7, 1.9, 2.8])
INSIDE = np.array([0.15, 0.4, 0.65, 0.9])
COUNTS = np.array([0.0, 1.0, 3.0, 7.0])
REFUSED = "refused: no derivative of a SciPy function with respect to its order or shape is known"

PACKAGE = Package(
    "numba_stats",
    "numba-stats>=1.14",
    (
        of("numba_stats.argus:_logpdf", INSIDE, 1.2, 1.1, 0.6, argnums=(0, 1, 2), known=REFUSED),
        of("numba_stats.bernstein:_de_castlejau", INSIDE, floats(4)),
        of("numba_stats.bernstein:_beta_int", floats(4)),
        of("numba_stats.bernstein:_density", INSIDE, floats(4), -0.1, 1.3),
        of("numba_stats.bernstein:_integral", INSIDE, floats(4), -0.1, 1.3),
        of("numba_stats.binom:_logpmf", COUNTS, np.array([9.0, 9.0, 9.0, 9.0]), 0.3, argnums=(2,)),
        of("numba_stats.chi2:_logpdf1", 1.3, 2.6),
        of("numba_stats.chi2:_pdf", POSITIVE, 3.2, -0.1, 1.4),
        of("numba_stats.cmsshape:_logpdf", X, 0.4, 0.3, 0.1),
        of("numba_stats.cmsshape:_cdf", X, 0.4, 0.3, 0.1),
        of("numba_stats.cruijff:_density", X, 0.1, 0.2, 0.1, 0.8, 1.2),
        of("numba_stats.crystalball:_powerlaw_integral", -2.4, 1.3, 2.2),
        of("numba_stats.crystalball:_logpdf", X, 0.8, 2.5, 0.3, 0.9),
        of("numba_stats.crystalball:_cdf", X, 0.8, 2.5, 0.3, 0.9),
        of("numba_stats.crystalball:_ppf", INSIDE, 0.8, 2.5, 0.3, 0.9),
        of("numba_stats.crystalball_ex:_logpdf", X, 0.8, 2.5, 0.9, 1.1, 3.2, 1.2, 0.1),
        of("numba_stats.crystalball_ex:_cdf", X, 0.8, 2.5, 0.9, 1.1, 3.2, 1.2, 0.1),
        of("numba_stats.expon:_logpdf", POSITIVE, 0.1, 1.3),
        of("numba_stats.expon:_cdf", X, 0.1, 1.3),
        of("numba_stats.expon:_ppf", INSIDE, 0.1, 1.3),
        of("numba_stats.exponnorm:_logpdf", X, 1.2, 0.2, 0.9),
        of("numba_stats.exponnorm:_cdf", X, 1.2, 0.2, 0.9),
        of("numba_stats.gamma:_logpdf", POSITIVE, 2.2, 0.1, 1.2),
        of("numba_stats.laplace:_pdf", X, 0.1, 1.2),
        of("numba_stats.laplace:_cdf", X, 0.1, 1.2),
        of("numba_stats.laplace:_ppf", INSIDE, 0.1, 1.2),
        of("numba_stats.lognorm:_logpdf", POSITIVE, 0.7, 0.1, 1.2),
        of("numba_stats.lognorm:_cdf", POSITIVE, 0.7, 0.1, 1.2),
        of("numba_stats.lognorm:_ppf", INSIDE, 0.7, 0.1, 1.2),
        of("numba_stats.ncx2:_logpdf", POSITIVE, 2.5, 1.2, 0.1, 1.4, known=REFUSED),
        of("numba_stats.norm:_pdf", X, 0.2, 1.3),
        of("numba_stats.norm:_logpdf", X.astype(np.float32), np.float32(0.2), np.float32(1.3)),
        of("numba_stats.norm:_cdf", X, 0.2, 1.3),
        of("numba_stats.norm:_ppf", INSIDE, 0.2, 1.3),
        of("numba_stats.novosibirsk:_logpdf", X, 0.3, 0.1, 1.2),
        of("numba_stats.novosibirsk:_cdf", X, 0.3, 0.1, 1.2),
        of("numba_stats.novosibirsk:_ppf", INSIDE, 0.3, 0.1, 1.2),
        of("numba_stats.poisson:_logpmf", COUNTS, 1.9),
        of("numba_stats.poisson:_pmf", COUNTS, 1.9),
        of("numba_stats.qgaussian:_logpdf", X, 1.4, 0.1, 1.2),
        of("numba_stats.qgaussian:_pdf", X, 1.0, 0.1, 1.2, argnums=(0, 2, 3)),
        of("numba_stats.skewnorm:_logpdf", X, 1.1, 0.2, 1.3),
        of("numba_stats.skewnorm:_cdf", X, 1.1, 0.2, 1.3),
        of("numba_stats.t:_logpdf", X, 2.4, 0.2, 1.3),
        of("numba_stats.truncexpon:_logpdf", POSITIVE, 0.1, 3.0, -0.2, 1.2),
        of("numba_stats.truncexpon:_cdf", POSITIVE, 0.1, 3.0, -0.2, 1.2),
        of("numba_stats.truncexpon:_ppf", INSIDE, 0.1, 3.0, -0.2, 1.2),
        of("numba_stats.truncexponnorm:_pdf", X, -2.0, 3.0, 1.2, -0.2, 1.2),
        of("numba_stats.truncnorm:_logpdf", X, -2.0, 3.0, -0.2, 1.2),
        of("numba_stats.truncnorm:_cdf", X, -2.0, 3.0, -0.2, 1.2),
        of("numba_stats.truncnorm:_ppf", INSIDE, -2.0, 3.0, -0.2, 1.2),
        of("numba_stats.tsallis:_pdf", POSITIVE, 0.9, 1.2, 5.2),
        of("numba_stats.tsallis:_cdf", POSITIVE, 0.9, 1.2, 5.2),
        of("numba_stats.uniform:_ppf", INSIDE, 0.1, 1.2),
        of("numba_stats.voigt:_pdf", X, 0.4, 0.2, 1.3),
        of("numba_stats.hypatia2:_log_bessel_k", 0.7, 1.3, known=REFUSED),
    ),
)
