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


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _rotation(camera, out):
    """Rodrigues' formula as a matrix; returns the axis, the angle, its cosine and its sine."""
    angle = math.sqrt(camera[0] ** 2 + camera[1] ** 2 + camera[2] ** 2)
    cosine, sine = math.cos(angle), math.sin(angle)
    a0, a1, a2 = camera[0] / angle, camera[1] / angle, camera[2] / angle
    rest = 1.0 - cosine
    out[0], out[1], out[2] = cosine + rest * a0 * a0, rest * a0 * a1 - sine * a2, rest * a0 * a2 + sine * a1
    out[3], out[4], out[5] = rest * a0 * a1 + sine * a2, cosine + rest * a1 * a1, rest * a1 * a2 - sine * a0
    out[6], out[7], out[8] = rest * a0 * a2 - sine * a1, rest * a1 * a2 + sine * a0, cosine + rest * a2 * a2
    return a0, a1, a2, angle, cosine, sine


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _finish_camera(camera, sums, bar):
    """A camera's cotangents from the sums over what it sees: that of its matrix, of points and of the rest."""
    r = np.empty(9)
    a0, a1, a2, angle, cosine, sine = _rotation(camera, r)
    m00, m01, m02, g0, m10, m11 = sums[0], sums[1], sums[2], sums[3], sums[4], sums[5]
    m12, g1, m20, m21, m22, g2 = sums[6], sums[7], sums[8], sums[9], sums[10], sums[11]
    turn0, turn1, turn2 = m21 - m12, m02 - m20, m10 - m01
    s0 = 2.0 * m00 * a0 + (m01 + m10) * a1 + (m02 + m20) * a2
    s1 = (m01 + m10) * a0 + 2.0 * m11 * a1 + (m12 + m21) * a2
    s2 = (m02 + m20) * a0 + (m12 + m21) * a1 + 2.0 * m22 * a2
    b0, b1, b2 = (
        sine * turn0 + (1.0 - cosine) * s0,
        sine * turn1 + (1.0 - cosine) * s1,
        sine * turn2 + (1.0 - cosine) * s2,
    )
    cosine_bar = m00 + m11 + m22 - 0.5 * (a0 * s0 + a1 * s1 + a2 * s2)
    angle_bar = cosine * (a0 * turn0 + a1 * turn1 + a2 * turn2) - sine * cosine_bar
    angle_bar -= (a0 * b0 + a1 * b1 + a2 * b2) / angle
    bar[0], bar[1], bar[2] = b0 / angle + angle_bar * a0, b1 / angle + angle_bar * a1, b2 / angle + angle_bar * a2
    for i in range(3):
        bar[3 + i] = -(r[i] * g0 + r[3 + i] * g1 + r[6 + i] * g2)
    bar[6], bar[7], bar[8], bar[9], bar[10] = sums[14], sums[12], sums[13], sums[15], sums[16]


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(cameras, points, weights, seen, features):
    """A camera's rotation becomes a matrix once; its adjoint runs once, on the sum of that matrix's cotangents."""
    n = cameras.shape[0]
    rotations, sums = np.empty((n, 9)), np.zeros((n, 17))
    for c in range(n):
        _rotation(cameras[c], rotations[c])
    points_bar, weights_bar = np.zeros(points.shape), np.empty(weights.size)
    total = 0.0
    for k in range(seen.shape[0]):
        c, p, weight = seen[k, 0], seen[k, 1], weights[k]
        focal, k1, k2 = cameras[c, 6], cameras[c, 9], cameras[c, 10]
        r00, r01, r02 = rotations[c, 0], rotations[c, 1], rotations[c, 2]
        r10, r11, r12 = rotations[c, 3], rotations[c, 4], rotations[c, 5]
        r20, r21, r22 = rotations[c, 6], rotations[c, 7], rotations[c, 8]
        x0, x1, x2 = points[p, 0] - cameras[c, 3], points[p, 1] - cameras[c, 4], points[p, 2] - cameras[c, 5]
        per_depth = 1.0 / (r20 * x0 + r21 * x1 + r22 * x2)
        x = (r00 * x0 + r01 * x1 + r02 * x2) * per_depth
        y = (r10 * x0 + r11 * x1 + r12 * x2) * per_depth
        square = x * x + y * y
        distortion = 1.0 + square * (k1 + k2 * square)
        x_off = focal * x * distortion + cameras[c, 7] - features[k, 0]
        y_off = focal * y * distortion + cameras[c, 8] - features[k, 1]
        off2 = x_off * x_off + y_off * y_off
        slack = 1.0 - weight * weight
        total += weight * weight * off2 + slack * slack
        weights_bar[k] = weight * (off2 - 2.0 * slack)
        u, v = weight * weight * x_off, weight * weight * y_off
        both = u * x + v * y
        distortion_bar = focal * both
        square_bar = 2.0 * distortion_bar * (k1 + 2.0 * k2 * square)
        x_bar, y_bar = focal * distortion * u + square_bar * x, focal * distortion * v + square_bar * y
        g0, g1, g2 = x_bar * per_depth, y_bar * per_depth, -(x_bar * x + y_bar * y) * per_depth
        row = sums[c]
        row[0] += g0 * x0
        row[1] += g0 * x1
        row[2] += g0 * x2
        row[3] += g0
        row[4] += g1 * x0
        row[5] += g1 * x1
        row[6] += g1 * x2
        row[7] += g1
        row[8] += g2 * x0
        row[9] += g2 * x1
        row[10] += g2 * x2
        row[11] += g2
        row[12] += u
        row[13] += v
        row[14] += both * distortion
        row[15] += distortion_bar * square
        row[16] += distortion_bar * square * square
        points_bar[p, 0] += r00 * g0 + r10 * g1 + r20 * g2
        points_bar[p, 1] += r01 * g0 + r11 * g1 + r21 * g2
        points_bar[p, 2] += r02 * g0 + r12 * g1 + r22 * g2
    cameras_bar = np.empty(cameras.shape)
    for c in range(n):
        _finish_camera(cameras[c], sums[c], cameras_bar[c])
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


CASE = Case(
    "bundle-adjustment", "reprojection errors, 5,000 observations by 20 cameras", loss, hand, make, (0, 1, 2), hand_opt
)
