"""The quasi-Newton method L-BFGS, written on `irad.data.VectorSpace` alone.

It does not know what it optimises: the unknowns are an array, a dictionary, a dataclass or a jitclass instance. Vectors
are overwritten, so that after the first steps only the gradient allocates memory.
"""

import numpy as np
from numba import njit

import irad
from irad.data import VectorSpace


def lbfgs(objective, x, steps, memory=5, tolerance=1e-9):
    """Minimises in place; ``objective(x)`` returns value and gradient (Nocedal and Wright 2006, algorithm 7.5)."""
    value, found = objective(x)
    gradient, direction, trial = found.copy(), x.zero(), x.zero()
    pairs, unused = [], [(x.zero(), x.zero()) for _ in range(memory)]
    for _ in range(steps):
        if gradient.norm() <= tolerance:
            break
        downhill(direction, gradient, pairs)
        value, found = search(objective, x, value, gradient, direction, trial)
        moved, change = unused.pop() if unused else pairs.pop(0)[:2]
        moved.map_(np.subtract, trial, x)
        change.map_(np.subtract, found, gradient)
        curvature = change.dot(moved).real
        if curvature > 0.0:
            pairs.append((moved, change, curvature))
        else:
            unused.append((moved, change))
        trial.copyto(x)
        found.copyto(gradient)
    return value


def downhill(direction, gradient, pairs):
    """The two loops: minus the gradient times an inverse Hessian that the pairs of steps and changes stand for."""
    gradient.copyto(direction)
    direction *= -1.0
    shares = []
    for moved, change, curvature in reversed(pairs):
        shares.append(moved.dot(direction).real / curvature)
        direction.axpy(-shares[-1], change)
    if pairs:
        _, change, curvature = pairs[-1]
        direction *= curvature / change.norm() ** 2
    for moved, change, curvature in pairs:
        direction.axpy(shares.pop() - change.dot(direction).real / curvature, moved)


def search(objective, x, value, gradient, direction, trial):
    """Bisects until the value falls and the slope flattens enough (weak Wolfe conditions; Lewis and Overton 2013)."""
    slope = gradient.dot(direction).real
    length, low, high = 1.0, 0.0, np.inf
    while True:
        x.copyto(trial)
        trial.axpy(length, direction)
        found, ahead = objective(trial)
        if not found <= value + 1e-4 * length * slope and high - low > 1e-12:
            high = length
        elif ahead.dot(direction).real < 0.9 * slope and high - low > 1e-12:
            low = length
        else:
            return found, ahead
        length = 2.0 * low if np.isinf(high) else 0.5 * (low + high)


def objective_of(loss, *constants):
    """Value and gradient of a loss as a function of a vector."""
    derivative = irad.value_and_grad(loss)

    def objective(x):
        value, gradient = derivative(x.value, *constants)
        return value, VectorSpace(gradient)

    return objective


@njit
def height(place):
    """Rosenbrock's valley; its lowest place is (1, 1)."""
    return (1.0 - place["east"]) ** 2 + 100.0 * (place["north"] - place["east"] ** 2) ** 2


def main():
    """Walks down the valley from the other side."""
    place = {"east": -1.2, "north": 1.0}
    value = lbfgs(objective_of(height), VectorSpace(place), 100)
    print(f"{place['east']:.6f} east, {place['north']:.6f} north, height {value:.0e}")
    return place


if __name__ == "__main__":
    main()
