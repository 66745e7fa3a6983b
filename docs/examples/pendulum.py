"""Swing a pendulum up: optimal control through an integrator.

The 200 torques over time are the unknowns. The cost is the effort of the motor plus the distance from upright and at
rest at the end. The gradient goes through the four stages of each step of Runge and Kutta.
"""

import argparse

import numpy as np
from numba import njit
from scipy.optimize import minimize

import irad

STEPS, DT = 200, 0.02


@njit
def acceleration(angle, speed, torque):
    """Of a pendulum of 1 kg and 1 m with friction; it hangs at the angle zero."""
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
    """Effort of the motor, and distance from upright and at rest at the end."""
    angle, speed = swing(torques)
    return 1e-3 * DT * (torques**2).sum() + (angle - np.pi) ** 2 + 0.1 * speed**2


def draw(file, torques):
    from matplotlib.figure import Figure  # only for the picture

    times = DT * np.arange(1, STEPS + 1)
    angles = [swing(torques[:count])[0] for count in range(1, STEPS + 1)]
    figure = Figure(figsize=(7, 3), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(times, np.degrees(angles), color="C0")
    left.axhline(180.0, color="0.7", linestyle="--")
    left.set(xlabel="time (s)", ylabel="angle (degrees)")
    right.plot(times, torques, color="C1")
    right.set(xlabel="time (s)", ylabel="torque (N m)")
    figure.savefig(file, dpi=110)


def main(plot=None):
    start = np.sin(np.arange(STEPS) * DT * 3.0)
    found = minimize(irad.value_and_grad(cost), start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    angle, speed = swing(found.x)
    print(f"angle {angle / np.pi:.3f} π, speed {speed:.3f}, largest torque {np.abs(found.x).max():.2f}")
    if plot:
        draw(plot, found.x)
    return angle, speed


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--plot", metavar="FILE", help="draw angle and torque, as PNG or SVG; needs matplotlib")
    main(parser.parse_args().plot)
