"""The benchmark cases, in the order of the report."""

from bench.case import Case
from bench.cases import black_scholes, gmm, heat, lennard_jones, log_sum_exp, mlp, ode

CASES: tuple[Case, ...] = (
    gmm.CASE,
    lennard_jones.CASE,
    heat.CASE,
    ode.CASE,
    black_scholes.CASE,
    log_sum_exp.CASE,
    mlp.CASE,
)
BY_NAME = {case.name: case for case in CASES}
