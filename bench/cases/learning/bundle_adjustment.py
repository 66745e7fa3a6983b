"""Reprojection errors of bundle adjustment (ADBench), as a sum of squares.

Source: Šrajer, Kukelova, Fitzgibbon 2018, as in `gmm`. A camera is a rotation vector, a centre, a focal length, a
principal point and two coefficients of radial distortion.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


@njit(error_model="numpy")
def rotate(rotation, x, out):
    angle2 = rotation[0] ** 2 + rotation[1] ** 2 + rotation[2] ** 2
    if angle2 > 0.0:
        angle = math.sqrt(angle2)
        cosine, sine = math.cos(angle), math.sin(angle)
        axis = rotation / angle
        along = (axis[0] * x[0] + axis[1] * x[1] + axis[2] * x[2]) * (1.0 - cosine)
        out[0] = x[0] * cosine + (axis[1] * x[2] - axis[2] * x[1]) * sine + axis[0] * along
        out[1] = x[1] * cosine + (axis[2] * x[0] - axis[0] * x[2]) * sine + axis[1] * along
        out[2] = x[2] * cosine + (axis[0] * x[1] - axis[1] * x[0]) * sine + axis[2] * along
    else:
        out[0] = x[0] + rotation[1] * x[2] - rotation[2] * x[1]
        out[1] = x[1] + rotation[2] * x[0] - rotation[0] * x[2]
        out[2] = x[2] + rotation[0] * x[1] - rotation[1] * x[0]


@njit(error_model="numpy")
def loss(cameras, points, weights, seen, features):
    total = 0.0
    seen_from = np.empty(3)
    for k in range(seen.shape[0]):
        camera = cameras[seen[k, 0]]
        rotate(camera[:3], points[seen[k, 1]] - camera[3:6], seen_from)
        x, y = seen_from[0] / seen_from[2], seen_from[1] / seen_from[2]
        r2 = x * x + y * y
        distortion = 1.0 + camera[9] * r2 + camera[10] * r2 * r2
        x_error = weights[k] * (camera[6] * x * distortion + camera[7] - features[k, 0])
        y_error = weights[k] * (camera[6] * y * distortion + camera[8] - features[k, 1])
        total += x_error**2 + y_error**2 + (1.0 - weights[k] ** 2) ** 2
    return 0.5 * total


@njit(error_model="numpy")
def hand(cameras, points, weights, seen, features):
    """Forward and reverse of an observation together, all in registers; the rotations have no angle of zero."""
    cameras_bar, points_bar = np.zeros(cameras.shape), np.zeros(points.shape)
    weights_bar = np.empty(weights.size)
    total = 0.0
    for k in range(seen.shape[0]):
        c, p, weight = seen[k, 0], seen[k, 1], weights[k]
        camera, camera_bar, point_bar = cameras[c], cameras_bar[c], points_bar[p]
        focal, k1, k2 = camera[6], camera[9], camera[10]
        x0, x1, x2 = points[p, 0] - camera[3], points[p, 1] - camera[4], points[p, 2] - camera[5]
        angle = math.sqrt(camera[0] ** 2 + camera[1] ** 2 + camera[2] ** 2)
        per_angle = 1.0 / angle
        a0, a1, a2 = camera[0] * per_angle, camera[1] * per_angle, camera[2] * per_angle
        cosine, sine = math.cos(angle), math.sin(angle)
        dot = a0 * x0 + a1 * x1 + a2 * x2
        along = dot * (1.0 - cosine)
        c0, c1, c2 = a1 * x2 - a2 * x1, a2 * x0 - a0 * x2, a0 * x1 - a1 * x0
        r0 = x0 * cosine + c0 * sine + a0 * along
        r1 = x1 * cosine + c1 * sine + a1 * along
        r2 = x2 * cosine + c2 * sine + a2 * along
        per_depth = 1.0 / r2
        x, y = r0 * per_depth, r1 * per_depth
        square = x * x + y * y
        distortion = 1.0 + square * (k1 + k2 * square)
        x_off = focal * x * distortion + camera[7] - features[k, 0]
        y_off = focal * y * distortion + camera[8] - features[k, 1]
        off2 = x_off * x_off + y_off * y_off
        slack = 1.0 - weight * weight
        total += weight * weight * off2 + slack * slack
        weights_bar[k] = weight * (off2 - 2.0 * slack)
        u, v = weight * weight * x_off, weight * weight * y_off
        camera_bar[7] += u
        camera_bar[8] += v
        both = u * x + v * y
        camera_bar[6] += both * distortion
        distortion_bar = focal * both
        camera_bar[9] += distortion_bar * square
        camera_bar[10] += distortion_bar * square * square
        square_bar = 2.0 * distortion_bar * (k1 + 2.0 * k2 * square)
        x_bar = focal * distortion * u + square_bar * x
        y_bar = focal * distortion * v + square_bar * y
        g0, g1 = x_bar * per_depth, y_bar * per_depth
        g2 = -(x_bar * x + y_bar * y) * per_depth
        along_bar = a0 * g0 + a1 * g1 + a2 * g2
        dot_bar = along_bar * (1.0 - cosine)
        cosine_bar = x0 * g0 + x1 * g1 + x2 * g2 - dot * along_bar
        sine_bar = c0 * g0 + c1 * g1 + c2 * g2
        s0, s1, s2 = sine * g0, sine * g1, sine * g2
        b0 = along * g0 + dot_bar * x0 + x1 * s2 - x2 * s1
        b1 = along * g1 + dot_bar * x1 + x2 * s0 - x0 * s2
        b2 = along * g2 + dot_bar * x2 + x0 * s1 - x1 * s0
        y0 = cosine * g0 + dot_bar * a0 + s1 * a2 - s2 * a1
        y1 = cosine * g1 + dot_bar * a1 + s2 * a0 - s0 * a2
        y2 = cosine * g2 + dot_bar * a2 + s0 * a1 - s1 * a0
        angle_bar = cosine * sine_bar - sine * cosine_bar - (a0 * b0 + a1 * b1 + a2 * b2) * per_angle
        camera_bar[0] += b0 * per_angle + angle_bar * a0
        camera_bar[1] += b1 * per_angle + angle_bar * a1
        camera_bar[2] += b2 * per_angle + angle_bar * a2
        camera_bar[3] -= y0
        camera_bar[4] -= y1
        camera_bar[5] -= y2
        point_bar[0] += y0
        point_bar[1] += y1
        point_bar[2] += y2
    return 0.5 * total, (cameras_bar, points_bar, weights_bar)


def make(size: Size) -> tuple[Any, ...]:
    """Points around the origin, cameras at some distance."""
    n, m, k = {"small": (2, 3, 5), "medium": (5, 60, 500), "full": (20, 500, 5_000)}[size]
    rng = np.random.default_rng(15)
    cameras = np.concatenate(
        [
            0.3 * rng.standard_normal((n, 3)),
            rng.standard_normal((n, 3)) - [0.0, 0.0, 8.0],
            rng.uniform(0.8, 1.2, (n, 1)),
            0.1 * rng.standard_normal((n, 4)),
        ],
        axis=1,
    )
    seen = np.stack([rng.integers(0, n, k), rng.integers(0, m, k)], axis=1)
    return cameras, rng.standard_normal((m, 3)), rng.uniform(0.5, 1.0, k), seen, 0.3 * rng.standard_normal((k, 2))


CASE = Case("bundle-adjustment", "reprojection errors, 5,000 observations by 20 cameras", loss, hand, make, (0, 1, 2))
