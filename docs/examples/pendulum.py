"""Swing a pendulum up: optimal control through an integrator.

The torques at all times are the unknowns, 200 of them; what is minimised is the work of the motor and the distance from
rest, upright, at the end. The gradient goes through the four stages of each step of Runge and Kutta.
"""

import argparse

import numpy as np
from numba import njit
from scipy.optimize import minimize

import irad

STEPS, DT = 200, 0.02


@njit
def acceleration(angle, speed, torque):
    """Of a pendulum with friction; the angle is zero where it hangs."""
    return -9.81 * np.sin(angle) - 0.1 * speed + torque


@njit
def swing(torques):
    """Angle and speed at the end, starting at rest, hanging."""
    angle = speed = 0.0
    for torque in torques:
        v1, a1 = speed, acceleration(angle, speed, torque)
        v2 = speed + 0.5 * DT * a1
        a2 = acceleration(angle + 0.5 * DT * v1, v2, torque)
        v3 = speed + 0.5 * DT * a2
        a3 = acceleration(angle + 0.5 * DT * v2, v3, torque)
        v4 = speed + DT * a3
        a4 = acceleration(angle + DT * v3, v4, torque)
        angle += DT / 6.0 * (v1 + 2.0 * v2 + 2.0 * v3 + v4)
        speed += DT / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
    return angle, speed


@njit
def cost(torques):
    """Work of the motor, and how far from upright and at rest it ends."""
    angle, speed = swing(torques)
    return 1e-3 * DT * (torques**2).sum() + (angle - np.pi) ** 2 + 0.1 * speed**2


def draw(file, torques):
    """The angle and the torque over time."""
    from matplotlib.figure import Figure  # only for the picture

    times = DT * np.arange(1, STEPS + 1)
    angles = [swing(torques[:count])[0] for count in range(1, STEPS + 1)]
    figure = Figure(figsize=(7, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(times, np.degrees(angles), color="C0")
    left.axhline(180.0, color="0.7", linestyle="--")
    left.set(xlabel="time", ylabel="angle in degrees")
    right.plot(times, torques, color="C1")
    right.set(xlabel="time", ylabel="torque")
    figure.savefig(file)


def main():
    """Finds torques, and says where they lead."""
    start = np.sin(np.arange(STEPS) * DT * 3.0)
    found = minimize(irad.value_and_grad(cost), start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    angle, speed = swing(found.x)
    print(f"angle {angle / np.pi:.3f} π, speed {speed:.3f}, largest torque {np.abs(found.x).max():.2f}")
    return found.x, angle, speed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plot", metavar="FILE", help="draw the result, as PNG or SVG; needs matplotlib")
    options = parser.parse_args()
    torques, _, _ = main()
    if options.plot:
        draw(options.plot, torques)
