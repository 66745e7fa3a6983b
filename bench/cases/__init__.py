"""The benchmark cases, in the order of the report."""

from bench.case import Case
from bench.cases.algebra import cholesky, fft, left_cholesky, lu, many_scalars, spline, thomas
from bench.cases.finance import asian_option, black_scholes, garch, kalman
from bench.cases.learning import bundle_adjustment, cnn, gmm, hand_tracking, log_sum_exp, lstm, mlp
from bench.cases.physics import brusselator, cloth, heat, lennard_jones, n_body, ode, shallow_water
from bench.generated.program import program

CASES: tuple[Case, ...] = (
    gmm.CASE,
    lennard_jones.CASE,
    heat.CASE,
    ode.CASE,
    black_scholes.CASE,
    log_sum_exp.CASE,
    mlp.CASE,
    bundle_adjustment.CASE,
    hand_tracking.CASE,
    lstm.CASE,
    cnn.CASE,
    cholesky.CASE,
    left_cholesky.CASE,
    lu.CASE,
    thomas.CASE,
    spline.CASE,
    fft.CASE,
    many_scalars.CASE,
    n_body.CASE,
    cloth.CASE,
    brusselator.CASE,
    shallow_water.CASE,
    kalman.CASE,
    garch.CASE,
    asian_option.CASE,
)
BY_NAME = {case.name: case for case in CASES}


def find(name: str) -> Case:
    """The case of a name, one of the list or, as ``family/seed``, one that is drawn.

    Raises:
        KeyError: there is none.
    """
    return program(name).case() if "/" in name else BY_NAME[name]
