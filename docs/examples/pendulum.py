"""Swing a pendulum up: optimal control through an integrator.

The torques at all times are the unknowns, 200 of them; what is minimised is the work of the motor and the distance from
rest, upright, at the end. The gradient goes through the four stages of each step of Runge and Kutta.
"""

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


def main():
    """Finds torques, and says where they lead."""
    start = np.sin(np.arange(STEPS) * DT * 3.0)
    found = minimize(irad.value_and_grad(cost), start, jac=True, method="L-BFGS-B", options={"maxiter": 500})
    angle, speed = swing(found.x)
    print(f"angle {angle / np.pi:.3f} π, speed {speed:.3f}, largest torque {np.abs(found.x).max():.2f}")
    return found.x, angle, speed


if __name__ == "__main__":
    main()
