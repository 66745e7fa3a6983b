"""Conjugate gradients, L-BFGS and Adam, written on `irad.data.VectorSpace` alone.

None of them knows what it optimises: the parameters of a model are one array, a dictionary, a dataclass or a jitclass
instance, and the same lines run. Vectors are overwritten, so that a step allocates nothing but what the gradient does.
"""

from dataclasses import dataclass

import numpy as np
from numba import float64, njit
from numba.experimental import jitclass

import irad
from irad import data
from irad.data import VectorSpace


def conjugate_gradients(product, b, steps, tolerance=1e-12):
    """Solves ``product(x) = b`` for a Hermitian, positive definite product (Hestenes and Stiefel 1952)."""
    x, residual, direction = b.zero(), b.copy(), b.copy()
    square = residual.dot(residual).real
    goal = tolerance**2 * square
    for _ in range(steps):
        if square <= goal:
            break
        image = product(direction)
        length = square / direction.dot(image).real
        x.axpy(length, direction)
        residual.axpy(-length, image)
        square, before = residual.dot(residual).real, square
        direction *= square / before
        direction += residual
    return x


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


def adam(objective, x, steps, rate=0.05, decay=(0.9, 0.999), floor=1e-8):
    """Minimises in place (Kingma and Ba 2015, algorithm 1)."""
    mean, variance, step = x.zero(), x.zero(), x.zero()
    for count in range(1, steps + 1):
        _, gradient = objective(x)
        mean *= decay[0]
        mean.axpy(1.0 - decay[0], gradient)
        step.map_(np.square, gradient)
        variance *= decay[1]
        variance.axpy(1.0 - decay[1], step)
        step.map_(np.sqrt, variance)
        step /= np.sqrt(1.0 - decay[1] ** count)
        step.map_(lambda part, out=None: np.add(part, floor, out=out), step)
        step.map_(np.divide, mean, step)
        x.axpy(-rate / (1.0 - decay[0] ** count), step)


# --- a straight line through measurements, with its parameters in four forms ------------------------------------------


@dataclass
class Line:
    """Fields that are not numbers take no part."""

    slopes: np.ndarray
    offset: float
    name: str = "line"


@jitclass([("slopes", float64[::1]), ("offset", float64)])
class CompiledLine:
    """The same as a class of Numba."""

    def __init__(self, slopes, offset):
        self.slopes = slopes
        self.offset = offset


@njit
def misfit(slopes, offset, features, targets, is_robust):
    """Half the sum of squares, or that of a loss that hardly minds outliers; a small penalty."""
    total = 0.05 * (np.sum(slopes**2) + offset**2)
    for i in range(targets.size):
        residual = np.sum(features[i] * slopes) + offset - targets[i]
        total += np.sqrt(1.0 + residual**2) - 1.0 if is_robust else 0.5 * residual**2
    return total


@njit
def of_array(p, features, targets, is_robust):
    """Slopes first, the offset last."""
    return misfit(p[:-1], p[-1], features, targets, is_robust)


@njit
def of_dictionary(p, features, targets, is_robust):
    """Parameters by key."""
    return misfit(p["slopes"], p["offset"], features, targets, is_robust)


@njit
def of_instance(p, features, targets, is_robust):
    """Parameters by name."""
    return misfit(p.slopes, p.offset, features, targets, is_robust)


FORMS = {
    "array": (of_array, lambda: np.zeros(4)),
    "dictionary": (of_dictionary, lambda: {"slopes": np.zeros(3), "offset": 0.0}),
    "dataclass": (of_instance, lambda: Line(np.zeros(3), 0.0)),
    "jitclass": (of_instance, lambda: CompiledLine(np.zeros(3), 0.0)),
}


def objective_of(loss, *constants):
    """Value and gradient of a loss as a function of a vector."""
    derivative = irad.value_and_grad(loss)

    def objective(x):
        value, gradient = derivative(x.value, *constants)
        return value, VectorSpace(gradient)

    return objective


def measurements():
    """Features and targets; the last target is an outlier."""
    random = np.random.default_rng(0)
    features = random.standard_normal((30, 3))
    targets = features @ np.array([1.0, -2.0, 0.5]) + 3.0 + 0.1 * random.standard_normal(30)
    targets[-1] += 20.0
    return features, targets


def solutions(loss, start):
    """What each solver finds, as a flat array."""
    features, targets = measurements()
    squares = objective_of(loss, features, targets, False)
    _, at_zero = squares(VectorSpace(start()))

    def product(x):  # the gradient of a sum of squares is affine
        return squares(x)[1] - at_zero

    by_conjugate_gradients = conjugate_gradients(product, -at_zero, 10)
    robust = objective_of(loss, features, targets, True)
    by_lbfgs, by_adam = VectorSpace(start()), VectorSpace(start())
    lbfgs(robust, by_lbfgs, 100)
    adam(robust, by_adam, 1000)
    return [data.to_vec(found.value) for found in (by_conjugate_gradients, by_lbfgs, by_adam)]


def main():
    """Fits the line with all solvers, its parameters in all forms."""
    found = {}
    for form, (loss, start) in FORMS.items():
        found[form] = solutions(loss, start)
        print(form, *(vector.round(4) for vector in found[form]))
    return found


if __name__ == "__main__":
    main()
