"""Torques of two robot arms along a path, by Newton and Euler: straight-line code of many scalars for each state.

Two arms of a PUMA 560 hang from the sides of a torso. In each, motions go from the base to the hand, forces and moments
back. Everything is a tuple of three numbers in the frame of its link, and every function becomes part of its caller, so
that LLVM sees one block of some 1,800 lines.

Source: Luh, Walker, Paul 1980, 'On-line computational scheme for mechanical manipulators'; the frames as in Craig,
'Introduction to robotics'; numbers about those of Armstrong, Khatib, Burdick 1986, 'The explicit dynamic model
and inertial parameters of the PUMA 560 arm'.
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
    """Origin of the link's frame, in the frame before it."""
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


@part
def _turn(bar, a):
    """Cotangent of the angle of a joint, from that of a vector in its frame."""
    return bar[0] * a[1] - bar[1] * a[0]


@part
def _swing_bar(spin, arm, bar):
    """Cotangents of `swing`, of the angular velocity and acceleration."""
    first = cross(cross(spin, arm), bar)
    return add(first, cross(arm, cross(bar, spin))), cross(arm, bar)


@part
def _load_bar(link, motion, wrench_bar):
    spin, moment_bar = motion[0], wrench_bar[1]
    lift_bar = scale(link[4], add(wrench_bar[0], cross(moment_bar, centre(link))))
    spin_bar, spin_rate_bar = _swing_bar(spin, centre(link), lift_bar)
    spin_bar = add(spin_bar, cross(inertia_times(link, spin), moment_bar))
    spin_bar = add(spin_bar, inertia_times(link, cross(moment_bar, spin)))
    return spin_bar, add(spin_rate_bar, inertia_times(link, moment_bar)), lift_bar


@part
def _carry_bar(after, cosine, sine, wrench, bar, torque):
    """Cotangents of the force and moment on the link after, whose torque counts too, and of its angle."""
    force_bar = into(after, cosine, sine, add(bar[0], cross(bar[1], origin(after))))
    moment_bar = into(after, cosine, sine, bar[1])
    angle_bar = _turn(force_bar, wrench[0]) + _turn(moment_bar, wrench[1])
    return (force_bar, add(moment_bar, (0.0, 0.0, torque))), -angle_bar


@part
def _move_bar(link, cosine, sine, speed, before, after, bar):
    """Cotangents of the motion before and of the joint: angle, angular velocity, angular acceleration."""
    spin, spin_rate, lift = after
    spin_bar, spin_rate_bar, lift_bar = bar
    turned = add(spin_rate, (-spin[1] * speed, spin[0] * speed, 0.0))
    carried_bar = add(spin_bar, (-spin_rate_bar[1] * speed, spin_rate_bar[0] * speed, 0.0))
    angle_bar = _turn(carried_bar, spin) + _turn(spin_rate_bar, turned) + _turn(lift_bar, lift)
    joint = (angle_bar, spin_bar[2] + _turn(spin_rate_bar, spin), spin_rate_bar[2])
    lift_bar = out_of(link, cosine, sine, lift_bar)
    swing_bar = _swing_bar(before[0], origin(link), lift_bar)
    first = add(out_of(link, cosine, sine, carried_bar), swing_bar[0])
    return (first, add(out_of(link, cosine, sine, spin_rate_bar), swing_bar[1]), lift_bar), joint


@part
def _both(a, b):
    return add(a[0], b[0]), add(a[1], b[1]), add(a[2], b[2])


@part
def _load_all_bar(c, s, wrenches, t):
    """From the base to the hand: cotangents of the forces and moments, and of the angles that carry them back."""
    bar_1 = (ZERO, (0.0, 0.0, t[0]))
    bar_2, angle_2 = _carry_bar(LINK_2, c[1], s[1], wrenches[1], bar_1, t[1])
    bar_3, angle_3 = _carry_bar(LINK_3, c[2], s[2], wrenches[2], bar_2, t[2])
    bar_4, angle_4 = _carry_bar(LINK_4, c[3], s[3], wrenches[3], bar_3, t[3])
    bar_5, angle_5 = _carry_bar(LINK_5, c[4], s[4], wrenches[4], bar_4, t[4])
    bar_6, angle_6 = _carry_bar(LINK_6, c[5], s[5], wrenches[5], bar_5, t[5])
    return (bar_1, bar_2, bar_3, bar_4, bar_5, bar_6), (0.0, angle_2, angle_3, angle_4, angle_5, angle_6)


@part
def _move_all_bar(base, c, s, v, motions, loads):
    """From the hand to the base: cotangents of the joints."""
    m1, m2, m3, m4, m5, m6 = motions
    bar, joint_6 = _move_bar(LINK_6, c[5], s[5], v[5], m5, m6, _load_bar(LINK_6, m6, loads[5]))
    bar, joint_5 = _move_bar(LINK_5, c[4], s[4], v[4], m4, m5, _both(bar, _load_bar(LINK_5, m5, loads[4])))
    bar, joint_4 = _move_bar(LINK_4, c[3], s[3], v[3], m3, m4, _both(bar, _load_bar(LINK_4, m4, loads[3])))
    bar, joint_3 = _move_bar(LINK_3, c[2], s[2], v[2], m2, m3, _both(bar, _load_bar(LINK_3, m3, loads[2])))
    bar, joint_2 = _move_bar(LINK_2, c[1], s[1], v[1], m1, m2, _both(bar, _load_bar(LINK_2, m2, loads[1])))
    _, joint_1 = _move_bar(LINK_1, c[0], s[0], v[0], base, m1, _both(bar, _load_bar(LINK_1, m1, loads[0])))
    return joint_1, joint_2, joint_3, joint_4, joint_5, joint_6


@part
def _arm(base, c, s, v, a):
    """Sum of squares, and of each joint the cotangents of angle, angular velocity and angular acceleration."""
    motions = move_all(base, c, s, v, a)
    wrenches = load_all(c, s, motions)
    t = torques(a, wrenches)
    loads, angles = _load_all_bar(c, s, wrenches, t)
    j1, j2, j3, j4, j5, j6 = _move_all_bar(base, c, s, v, motions, loads)
    first = (j1[0] + angles[0], j2[0] + angles[1], j3[0] + angles[2])
    q_bar = (*first, j4[0] + angles[3], j5[0] + angles[4], j6[0] + angles[5])
    first = (j1[2] + LINK_1[11] * t[0], j2[2] + LINK_2[11] * t[1], j3[2] + LINK_3[11] * t[2])
    a_bar = (*first, j4[2] + LINK_4[11] * t[3], j5[2] + LINK_5[11] * t[4], j6[2] + LINK_6[11] * t[5])
    return sum_of_squares(t), q_bar, (j1[1], j2[1], j3[1], j4[1], j5[1], j6[1]), a_bar


@part
def _write(row, start, values):
    row[start], row[start + 1], row[start + 2] = values[0], values[1], values[2]
    row[start + 3], row[start + 4], row[start + 5] = values[3], values[4], values[5]


@njit(error_model="numpy")
def hand(angles, speeds, accelerations):
    """Forward and reverse of an arm together: from the base to the hand, back, and so once more."""
    angles_bar, speeds_bar = np.empty(angles.shape), np.empty(angles.shape)
    accelerations_bar = np.empty(angles.shape)
    total = 0.0
    for k in range(angles.shape[0]):
        for start, base in ((0, LEFT), (6, RIGHT)):
            q = six(angles[k], start)
            v, a = six(speeds[k], start), six(accelerations[k], start)
            squares, q_bar, v_bar, a_bar = _arm(base, cosines(q), sines(q), v, a)
            total += squares
            _write(angles_bar[k], start, q_bar)
            _write(speeds_bar[k], start, v_bar)
            _write(accelerations_bar[k], start, a_bar)
    return 0.5 * total, (angles_bar, speeds_bar, accelerations_bar)


LANES = 64


@part
def _column(rows, start, lane):
    first = (rows[start, lane], rows[start + 1, lane], rows[start + 2, lane])
    return (*first, rows[start + 3, lane], rows[start + 4, lane], rows[start + 5, lane])


@part
def _write_column(rows, start, lane, values):
    rows[start, lane], rows[start + 1, lane], rows[start + 2, lane] = values[0], values[1], values[2]
    rows[start + 3, lane], rows[start + 4, lane], rows[start + 5, lane] = values[3], values[4], values[5]


@part
def _cosine_and_sine(x):
    """Polynomials on an eighth of the circle to either side, for angles of some turns; no calls, so LLVM takes vectors.

    Source: fdlibm, `k_cos.c` and `k_sin.c`.
    """
    quarters = np.floor(x * (2.0 / math.pi) + 0.5)
    r = x - quarters * 1.57079632673412561417 - quarters * 6.07710050650619224932e-11
    z = r * r
    even = 2.75573137070700676789e-06 + z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)
    odd = -1.66666666666666324348e-01 + z * (8.33333333332248946124e-03 + z * (-1.98412698298579493134e-04 + z * even))
    sine = r + r * z * odd
    even = -2.75573143513906633035e-07 + z * (2.08757232129817482790e-09 - z * 1.13596475577881948265e-11)
    odd = 4.16666666666666019037e-02 + z * (-1.38888888888741095749e-03 + z * (2.48015872894767294178e-05 + z * even))
    cosine = 1.0 - 0.5 * z + z * z * odd
    quarter = quarters - 4.0 * np.floor(0.25 * quarters)
    swapped = quarter == 1.0 or quarter == 3.0
    first, second = (sine, cosine) if swapped else (cosine, sine)
    return -first if quarter == 1.0 or quarter == 2.0 else first, -second if quarter >= 2.0 else second


@part
def _turn_all(given):
    """Angles become cosines; sines go to the next six rows."""
    for i in range(6):
        for lane in range(LANES):
            given[i, lane], given[6 + i, lane] = _cosine_and_sine(given[i, lane])


@part
def _arms(base, given, found):
    """Many states side by side: without calls of sine and cosine, and with rows of known length, LLVM takes vectors."""
    for lane in range(LANES):
        c, s = _column(given, 0, lane), _column(given, 6, lane)
        squares, q_bar, v_bar, a_bar = _arm(base, c, s, _column(given, 12, lane), _column(given, 18, lane))
        _write_column(found, 0, lane, q_bar)
        _write_column(found, 6, lane, v_bar)
        _write_column(found, 12, lane, a_bar)
        found[18, lane] = squares


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(angles, speeds, accelerations):
    given, found = np.zeros((24, LANES)), np.empty((19, LANES))
    angles_bar, speeds_bar = np.empty(angles.shape), np.empty(angles.shape)
    accelerations_bar = np.empty(angles.shape)
    total = 0.0
    for first in range(0, angles.shape[0], LANES):
        size = min(LANES, angles.shape[0] - first)
        for start, base in ((0, LEFT), (6, RIGHT)):
            for lane in range(size):
                for i in range(6):
                    given[i, lane] = angles[first + lane, start + i]
                    given[12 + i, lane] = speeds[first + lane, start + i]
                    given[18 + i, lane] = accelerations[first + lane, start + i]
            _turn_all(given)
            _arms(base, given, found)
            for lane in range(size):
                total += found[18, lane]
                for i in range(6):
                    angles_bar[first + lane, start + i] = found[i, lane]
                    speeds_bar[first + lane, start + i] = found[6 + i, lane]
                    accelerations_bar[first + lane, start + i] = found[12 + i, lane]
    return 0.5 * total, (angles_bar, speeds_bar, accelerations_bar)


def make(size: Size) -> tuple[Any, ...]:
    """Angles, angular velocities and angular accelerations of the joints, six of each arm."""
    count = {"small": 3, "medium": 40, "full": 500}[size]
    rng = np.random.default_rng(25)
    return rng.uniform(-2.0, 2.0, (count, 12)), rng.standard_normal((count, 12)), rng.standard_normal((count, 12))


CASE = Case("many-scalars", "torques of two arms of six joints, 500 states", effort, hand, make, (0, 1, 2), hand_opt)
