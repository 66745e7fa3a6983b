"""Adaptive quadrature of a function that returns a structure: the integral of a gradient.

The rule knows its integrand as a vector only, `irad.data.VectorSpace`. Here that is the gradient of a decaying signal
with respect to a dictionary, whose integral over time has a closed form: the gradient of the integral.
"""

import heapq

import numpy as np
from numba import njit

import irad
from irad import data
from irad.data import VectorSpace

# Gauss and Kronrod, 7 and 15 points on [-1, 1]: node, weight among fifteen, weight among seven (Piessens et al. 1983)
NODES = (
    (0.000000000000000, 0.209482141084728, 0.417959183673469),
    (0.207784955007898, 0.204432940075298, 0.0),
    (0.405845151377397, 0.190350578064785, 0.381830050505119),
    (0.586087235467691, 0.169004726639267, 0.0),
    (0.741531185599394, 0.140653259715525, 0.279705391489277),
    (0.864864423359769, 0.104790010322250, 0.0),
    (0.949107912342759, 0.063092092629979, 0.129484966168870),
    (0.991455371120813, 0.022935322010529, 0.0),
)


def integrate(integrand, low, high, like, tolerance=1e-10):
    """The integral of a function from one number to another, as a vector.

    Args:
        integrand: ``integrand(point, out)`` overwrites a vector with the value at a point.
        low: where to begin.
        high: where to end.
        like: any vector of the space.
        tolerance: of the norm of the error.
    """
    value, error = like.zero(), like.zero()

    def estimate(low, high):
        middle, half, total = 0.5 * (low + high), 0.5 * (high - low), like.zero()
        error.zero_()
        for node, fifteen, seven in NODES:
            for point in {middle - half * node, middle + half * node}:
                integrand(point, value)
                total.axpy(half * fifteen, value)
                error.axpy(half * (fifteen - seven), value)
        return -error.norm(), low, high, total

    parts = [estimate(low, high)]
    while -sum(part[0] for part in parts) > tolerance:
        _, low, high, _ = heapq.heappop(parts)
        middle = 0.5 * (low + high)
        heapq.heappush(parts, estimate(low, middle))
        heapq.heappush(parts, estimate(middle, high))
    result = like.zero()
    for *_, total in parts:
        result += total
    return result, len(parts)


@njit
def signal(parameters, time):
    """A sum of decays."""
    return parameters["scale"] * np.sum(np.exp(-parameters["rates"] * time))


def main():
    """Integrates the gradient of the signal, and compares it with the gradient of the integral."""
    parameters, end = {"scale": 2.0, "rates": np.array([0.5, 3.0, 100.0])}, 4.0
    gradient = irad.grad(signal)
    points = []

    def integrand(time, out):
        points.append(time)
        VectorSpace(gradient(parameters, time)).copyto(out)

    integral, count = integrate(integrand, 0.0, end, VectorSpace(parameters))
    rates, scale = parameters["rates"], parameters["scale"]
    faded = np.exp(-rates * end)
    truth = {
        "scale": np.sum((1.0 - faded) / rates),
        "rates": scale * (end * faded / rates - (1.0 - faded) / rates**2),
    }
    print(f"{len(points)} points in {count} intervals: {integral.value}")
    return data.to_vec(integral.value), data.to_vec(truth)


if __name__ == "__main__":
    main()
