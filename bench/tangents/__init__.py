"""Hand-written tangents of the benchmark cases: njit functions ``(tangents, *arguments) -> (value, tangent)``."""

from bench.tangents import black_scholes, gmm, heat, lennard_jones, log_sum_exp, mlp, ode

BY_NAME = {
    "gmm": gmm.hand,
    "lennard-jones": lennard_jones.hand,
    "heat": heat.hand,
    "ode": ode.hand,
    "black-scholes": black_scholes.hand,
    "log-sum-exp": log_sum_exp.hand,
    "mlp": mlp.hand,
}
