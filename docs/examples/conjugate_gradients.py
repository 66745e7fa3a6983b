"""Sharpen a blurred signal: conjugate gradients over a dictionary, with products by the Hessian taken from gradients.

The misfit is quadratic, so its gradient is affine: the Hessian times x is the gradient at x minus the gradient at zero.
The solver knows its unknowns only as a vector, through `irad.data.VectorSpace`; here they are a dictionary.
"""

import argparse

import numpy as np
from numba import njit

import irad
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


@njit
def misfit(p, kernel, measured):
    """Half the squared distance from the measurement; penalties on rough signals, and on ends that are not zero."""
    total = 2e-3 * (np.diff(p["signal"]) ** 2).sum() + (p["signal"][:15] ** 2).sum() + (p["signal"][-15:] ** 2).sum()
    for i in range(measured.size):
        blurred = p["background"] + (p["signal"][i : i + kernel.size] * kernel).sum()
        total += 0.5 * (blurred - measured[i]) ** 2
    return total


def draw(file, measured, found, truth):
    """The measurement, and the signal that explains it beside the true one."""
    from matplotlib.figure import Figure  # only for the picture

    time, margin = np.arange(truth.size), (truth.size - measured.size) // 2
    figure = Figure(figsize=(7, 3), layout="constrained")
    axes = figure.subplots()
    axes.plot(time, truth, color="0.75", linewidth=4, label="true")
    axes.plot(time[margin:-margin], measured, ".", markersize=3, color="0.3", label="measured")
    axes.plot(time, found, color="C3", label="sharpened")
    axes.set(xlabel="time (ms)", ylabel="signal (V)", ylim=(None, 1.5))
    axes.legend(frameon=False)
    figure.savefig(file, dpi=110)


def main(plot=None):
    """Blurs a signal of four pulses, adds noise and a background, and recovers the signal."""
    kernel = np.exp(-0.5 * np.linspace(-3.0, 3.0, 31) ** 2)
    kernel /= kernel.sum()
    centres, heights = np.array([60.0, 75.0, 130.0, 185.0]), np.array([1.0, 0.8, 0.5, 1.2])
    truth = (heights * np.exp(-0.5 * ((np.arange(240.0)[:, None] - centres) / 4.0) ** 2)).sum(axis=1)
    measured = np.convolve(truth, kernel, "valid") + 0.3
    measured += 0.005 * np.random.default_rng(0).standard_normal(measured.size)
    gradient = irad.grad(misfit)
    at_zero = VectorSpace(gradient({"signal": np.zeros(truth.size), "background": 0.0}, kernel, measured))
    found = conjugate_gradients(lambda x: VectorSpace(gradient(x.value, kernel, measured)) - at_zero, -at_zero, 300)
    signal, background = found.value["signal"], found.value["background"]
    print(f"background {background:.2f} V, largest error of the signal {np.abs(signal - truth).max():.2f} V")
    if plot:
        draw(plot, measured, signal, truth)
    return found.value, kernel, measured


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plot", metavar="FILE", help="draw the result, as PNG or SVG; needs matplotlib")
    main(parser.parse_args().plot)
