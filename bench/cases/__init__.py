"""The benchmark cases, in the order of the report."""

from bench.case import Case
from bench.cases import (
    asian_option,
    black_scholes,
    brusselator,
    bundle_adjustment,
    cholesky,
    fft,
    garch,
    gmm,
    heat,
    kalman,
    lennard_jones,
    log_sum_exp,
    lu,
    mlp,
    n_body,
    ode,
    thomas,
)

CASES: tuple[Case, ...] = (
    gmm.CASE,
    lennard_jones.CASE,
    heat.CASE,
    ode.CASE,
    black_scholes.CASE,
    log_sum_exp.CASE,
    mlp.CASE,
    bundle_adjustment.CASE,
    cholesky.CASE,
    lu.CASE,
    thomas.CASE,
    fft.CASE,
    n_body.CASE,
    brusselator.CASE,
    kalman.CASE,
    garch.CASE,
    asian_option.CASE,
)
BY_NAME = {case.name: case for case in CASES}
