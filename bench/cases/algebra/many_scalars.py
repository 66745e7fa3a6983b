"""Torques of two robot arms along a path, by Newton and Euler: straight-line code of many scalars for each state.

Two arms of a PUMA 560 hang from the sides of a torso. In each, motions go from the base to the hand, forces and moments
back. Everything is a tuple of three numbers in the frame of its link, and every function becomes part of its caller, so
that LLVM sees one block of some 2,000 lines.

Source: Luh, Walker, Paul 1980, 'On-line computational scheme for mechanical manipulators'; the frames as in Craig,
'Introduction to robotics'; the arm after Armstrong, Khatib, Burdick 1986, 'The explicit dynamic model and inertial
parameters of the PUMA 560 arm'.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size

# Cosine and sine of the twist, length, offset; mass, centre of mass; moments of inertia about it; inertia of the motor.
LINKS = (
    (1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.35, 1.14),
    (0.0, -1.0, 0.0, 0.2435, 17.4, 0.068, 0.006, -0.016, 0.13, 0.524, 0.539, 4.71),
    (1.0, 0.0, 0.4318, -0.0934, 4.8, 0.0, -0.07, 0.014, 0.066, 0.0125, 0.086, 0.83),
    (0.0, 1.0, -0.0203, 0.4331, 0.82, 0.0, 0.0, -0.019, 1.8e-3, 1.8e-3, 1.3e-3, 0.2),
    (0.0, -1.0, 0.0, 0.0, 0.34, 0.0, 0.0, 0.0, 3.0e-4, 3.0e-4, 4.0e-4, 0.179),
    (0.0, 1.0, 0.0, 0.0, 0.09, 0.0, 0.0, 0.032, 1.5e-4, 1.5e-4, 4.0e-5, 0.193),
)
LINK_1, LINK_2, LINK_3, LINK_4, LINK_5, LINK_6 = LINKS
ZERO = (0.0, 0.0, 0.0)
LEFT, RIGHT = (ZERO, ZERO, (1.7, 6.8, 6.8)), (ZERO, ZERO, (1.7, -6.8, 6.8))  # a torso that leans, held against gravity

part = njit(error_model="numpy", forceinline=True)


@part
def add(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


@part
def cross(a, b):
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


@part
def scale(factor, a):
    return factor * a[0], factor * a[1], factor * a[2]


@part
def origin(link):
    """Of the link's frame, in the frame before it."""
    return link[2], -link[1] * link[3], link[0] * link[3]


@part
def centre(link):
    return link[5], link[6], link[7]


@part
def inertia_times(link, a):
    return link[8] * a[0], link[9] * a[1], link[10] * a[2]


@part
def into(link, cosine, sine, a):
    """From the frame before the link into its own."""
    y, z = link[0] * a[1] + link[1] * a[2], link[0] * a[2] - link[1] * a[1]
    return cosine * a[0] + sine * y, cosine * y - sine * a[0], z


@part
def out_of(link, cosine, sine, a):
    """From the link's frame into the one before it."""
    x, y = cosine * a[0] - sine * a[1], sine * a[0] + cosine * a[1]
    return x, link[0] * y - link[1] * a[2], link[1] * y + link[0] * a[2]


@part
def swing(spin, spin_rate, arm):
    """Acceleration of a point on an arm that turns."""
    return add(cross(spin_rate, arm), cross(spin, cross(spin, arm)))


@part
def move(link, cosine, sine, speed, acceleration, motion):
    """Angular velocity, angular acceleration and acceleration of a link, from those of the one before it."""
    spin, spin_rate, lift = motion
    carried = into(link, cosine, sine, spin)
    turned = add(into(link, cosine, sine, spin_rate), (carried[1] * speed, -carried[0] * speed, acceleration))
    lifted = into(link, cosine, sine, add(lift, swing(spin, spin_rate, origin(link))))
    return add(carried, (0.0, 0.0, speed)), turned, lifted


@part
def load(link, motion):
    """Force and moment that the motion of a link takes."""
    spin, spin_rate, lift = motion
    force = scale(link[4], add(lift, swing(spin, spin_rate, centre(link))))
    gyration = add(inertia_times(link, spin_rate), cross(spin, inertia_times(link, spin)))
    return force, add(gyration, cross(centre(link), force))


@part
def carry(after, cosine, sine, wrench, own):
    """Force and moment on a link: what its own motion takes, and what the link after it does."""
    force = out_of(after, cosine, sine, wrench[0])
    moment = add(out_of(after, cosine, sine, wrench[1]), cross(origin(after), force))
    return add(own[0], force), add(own[1], moment)


@part
def move_all(base, c, s, v, a):
    motion_1 = move(LINK_1, c[0], s[0], v[0], a[0], base)
    motion_2 = move(LINK_2, c[1], s[1], v[1], a[1], motion_1)
    motion_3 = move(LINK_3, c[2], s[2], v[2], a[2], motion_2)
    motion_4 = move(LINK_4, c[3], s[3], v[3], a[3], motion_3)
    motion_5 = move(LINK_5, c[4], s[4], v[4], a[4], motion_4)
    motion_6 = move(LINK_6, c[5], s[5], v[5], a[5], motion_5)
    return motion_1, motion_2, motion_3, motion_4, motion_5, motion_6


@part
def load_all(c, s, motions):
    wrench_6 = load(LINK_6, motions[5])
    wrench_5 = carry(LINK_6, c[5], s[5], wrench_6, load(LINK_5, motions[4]))
    wrench_4 = carry(LINK_5, c[4], s[4], wrench_5, load(LINK_4, motions[3]))
    wrench_3 = carry(LINK_4, c[3], s[3], wrench_4, load(LINK_3, motions[2]))
    wrench_2 = carry(LINK_3, c[2], s[2], wrench_3, load(LINK_2, motions[1]))
    wrench_1 = carry(LINK_2, c[1], s[1], wrench_2, load(LINK_1, motions[0]))
    return wrench_1, wrench_2, wrench_3, wrench_4, wrench_5, wrench_6


@part
def torques(a, wrenches):
    """About the axes of the joints."""
    first = (wrenches[0][1][2] + LINK_1[11] * a[0], wrenches[1][1][2] + LINK_2[11] * a[1])
    second = (wrenches[2][1][2] + LINK_3[11] * a[2], wrenches[3][1][2] + LINK_4[11] * a[3])
    third = (wrenches[4][1][2] + LINK_5[11] * a[4], wrenches[5][1][2] + LINK_6[11] * a[5])
    return first + second + third


@part
def six(row, start):
    return row[start], row[start + 1], row[start + 2], row[start + 3], row[start + 4], row[start + 5]


@part
def cosines(q):
    return math.cos(q[0]), math.cos(q[1]), math.cos(q[2]), math.cos(q[3]), math.cos(q[4]), math.cos(q[5])


@part
def sines(q):
    return math.sin(q[0]), math.sin(q[1]), math.sin(q[2]), math.sin(q[3]), math.sin(q[4]), math.sin(q[5])


@part
def sum_of_squares(t):
    return t[0] ** 2 + t[1] ** 2 + t[2] ** 2 + t[3] ** 2 + t[4] ** 2 + t[5] ** 2


@part
def effort_of_arm(base, q, v, a):
    c, s = cosines(q), sines(q)
    return sum_of_squares(torques(a, load_all(c, s, move_all(base, c, s, v, a))))


@njit(error_model="numpy")
def effort(angles, speeds, accelerations):
    total = 0.0
    for k in range(angles.shape[0]):
        q, v, a = angles[k], speeds[k], accelerations[k]
        total += effort_of_arm(LEFT, six(q, 0), six(v, 0), six(a, 0))
        total += effort_of_arm(RIGHT, six(q, 6), six(v, 6), six(a, 6))
    return 0.5 * total


def make(size: Size) -> tuple[Any, ...]:
    """Angles, angular velocities and angular accelerations of the joints, six of each arm."""
    count = {"small": 3, "medium": 40, "full": 500}[size]
    rng = np.random.default_rng(25)
    return rng.uniform(-2.0, 2.0, (count, 12)), rng.standard_normal((count, 12)), rng.standard_normal((count, 12))
