"""A GARCH(1, 1) model of volatility, fitted by maximum likelihood.

The variance of tomorrow follows from the return of today and from the variance of today. SciPy minimises with the
gradient; the Hessian at the minimum gives the standard errors.
"""

import argparse

import numpy as np
from numba import njit
from scipy.optimize import minimize

import irad


@njit
def simulate(parameters, count, seed):
    """Returns with the volatility that the parameters describe."""
    np.random.seed(seed)
    constant, news, memory = parameters
    returns, variance = np.empty(count), constant / (1.0 - news - memory)
    for day in range(count):
        returns[day] = np.sqrt(variance) * np.random.normal()
        variance = constant + news * returns[day] ** 2 + memory * variance
    return returns


@njit
def negative_log_likelihood(parameters, returns):
    """Of returns that are normal, with a variance that follows from the returns before."""
    constant, news, memory = parameters[0], parameters[1], parameters[2]
    variance, total = constant / (1.0 - news - memory), 0.0
    for value in returns:
        total += 0.5 * (np.log(2.0 * np.pi * variance) + value**2 / variance)
        variance = constant + news * value**2 + memory * variance
    return total


@njit
def volatility(parameters, returns):
    variance, found = parameters[0] / (1.0 - parameters[1] - parameters[2]), np.empty(returns.size)
    for day in range(returns.size):
        found[day] = np.sqrt(variance)
        variance = parameters[0] + parameters[1] * returns[day] ** 2 + parameters[2] * variance
    return found


def draw(file, returns, band):
    from matplotlib.figure import Figure  # only for the picture

    figure, days = Figure(figsize=(7, 3), layout="constrained"), np.arange(returns.size)
    axes = figure.subplots()
    axes.plot(days, returns, color="0.5", linewidth=0.6, label="returns")
    axes.fill_between(days, -2.0 * band, 2.0 * band, color="C3", alpha=0.3, label="two standard deviations, as fitted")
    axes.set(xlabel="day", ylabel="return (%)")
    axes.legend(loc="upper right")
    figure.savefig(file, dpi=110)


def main(plot=None):
    truth = np.array([0.05, 0.1, 0.85])
    returns = simulate(truth, 20_000, 1)
    value_and_gradient, hessian = irad.value_and_grad(negative_log_likelihood), irad.hessian(negative_log_likelihood)
    bounds = [(1e-6, 1.0), (1e-6, 0.5), (1e-6, 0.999)]
    start = np.array([0.1, 0.05, 0.7])
    found = minimize(value_and_gradient, start, (returns,), jac=True, bounds=bounds, method="L-BFGS-B")
    errors = np.sqrt(np.diag(np.linalg.inv(hessian(found.x, returns))))
    for name, value, error, true in zip(("constant", "news", "memory"), found.x, errors, truth, strict=True):
        print(f"{name:8}  {value:.3f} ± {error:.3f}   (true: {true})")
    if plot:
        draw(plot, returns[:1000], volatility(found.x, returns)[:1000])
    return found.x, errors, truth


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plot", metavar="FILE", help="draw returns and volatility, as PNG or SVG; needs matplotlib")
    main(parser.parse_args().plot)
