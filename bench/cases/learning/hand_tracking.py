"""Hand tracking (ADBench): distances between measured points and the skin of a posed hand, as a sum of squares.

Source: Šrajer, Kukelova, Fitzgibbon 2018, as in `gmm`; the variant whose correspondences are given. Six numbers of
`theta` turn and move the whole hand; a finger has four angles, two of its first bone and one of each of the next two. A
transform is a matrix of 3 x 4, whose last row 0, 0, 0, 1 is not stored.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from bench.case import Case, Size


@njit(error_model="numpy")
def euler_angles(theta, bones):
    """About x, z and y, for each bone; the hand has two bones without angles and four bones a finger."""
    angles = np.zeros((bones, 3))
    for finger in range((bones - 2) // 4):
        bone, at = 2 + 4 * finger, 6 + 4 * finger
        angles[bone, 0] = theta[at]
        angles[bone, 1] = theta[at + 1]
        angles[bone + 1, 0] = theta[at + 2]
        angles[bone + 2, 0] = theta[at + 3]
    return angles


@njit(error_model="numpy")
def rotate_by_angles(angles, out):
    cos_x, sin_x = math.cos(angles[0]), math.sin(angles[0])
    cos_z, sin_z = math.cos(angles[1]), math.sin(angles[1])
    cos_y, sin_y = math.cos(angles[2]), math.sin(angles[2])
    out[0, 0] = cos_y * cos_z
    out[0, 1] = sin_x * sin_y * cos_z - cos_x * sin_z
    out[0, 2] = cos_x * sin_y * cos_z + sin_x * sin_z
    out[1, 0] = cos_y * sin_z
    out[1, 1] = sin_x * sin_y * sin_z + cos_x * cos_z
    out[1, 2] = cos_x * sin_y * sin_z - sin_x * cos_z
    out[2, 0] = -sin_y
    out[2, 1] = sin_x * cos_y
    out[2, 2] = cos_x * cos_y


@njit(error_model="numpy")
def rotate_about_axis(rotation, out):
    angle = math.sqrt(rotation[0] ** 2 + rotation[1] ** 2 + rotation[2] ** 2)
    if angle < 1e-4:
        out[:] = np.eye(3)
        return
    x, y, z = rotation[0] / angle, rotation[1] / angle, rotation[2] / angle
    cosine, sine = math.cos(angle), math.sin(angle)
    out[0, 0] = x * x + (1.0 - x * x) * cosine
    out[0, 1] = x * y * (1.0 - cosine) - z * sine
    out[0, 2] = x * z * (1.0 - cosine) + y * sine
    out[1, 0] = x * y * (1.0 - cosine) + z * sine
    out[1, 1] = y * y + (1.0 - y * y) * cosine
    out[1, 2] = y * z * (1.0 - cosine) - x * sine
    out[2, 0] = x * z * (1.0 - cosine) - y * sine
    out[2, 1] = z * y * (1.0 - cosine) + x * sine
    out[2, 2] = z * z + (1.0 - z * z) * cosine


@njit(error_model="numpy")
def compose(left, right, out):
    for i in range(3):
        for j in range(4):
            out[i, j] = left[i, 0] * right[0, j] + left[i, 1] * right[1, j] + left[i, 2] * right[2, j]
        out[i, 3] += left[i, 3]


@njit(error_model="numpy")
def bone_transforms(theta, parents, base_relatives, inverse_base_absolutes):
    """From the hand at rest to the posed one, for each bone; parents come before their children."""
    bones = parents.size
    angles = euler_angles(theta, bones)
    rotation, relative = np.zeros((3, 4)), np.empty((3, 4))
    absolutes, transforms = np.empty((bones, 3, 4)), np.empty((bones, 3, 4))
    for bone in range(bones):
        rotate_by_angles(angles[bone], rotation)
        compose(base_relatives[bone], rotation, relative)
        if parents[bone] < 0:
            absolutes[bone] = relative
        else:
            compose(absolutes[parents[bone]], relative, absolutes[bone])
        compose(absolutes[bone], inverse_base_absolutes[bone], transforms[bone])
    return transforms


@njit(error_model="numpy")
def skin(transforms, base_positions, weights):
    """Linear blend skinning: each vertex is where its bones take it, on average."""
    vertices, bones = weights.shape
    positions = np.zeros((vertices, 3))
    for v in range(vertices):
        for b in range(bones):
            for i in range(3):
                place = transforms[b, i, 3]
                for j in range(3):
                    place += transforms[b, i, j] * base_positions[v, j]
                positions[v, i] += weights[v, b] * place
    return positions


@njit(error_model="numpy")
def loss(theta, parents, base_relatives, inverse_base_absolutes, base_positions, weights, correspondences, points):
    transforms = bone_transforms(theta, parents, base_relatives, inverse_base_absolutes)
    positions = skin(transforms, base_positions, weights)
    rotation = np.empty((3, 3))
    rotate_about_axis(theta[:3], rotation)
    total = 0.0
    for k in range(correspondences.size):
        position = positions[correspondences[k]]
        for i in range(3):
            place = theta[3 + i]
            for j in range(3):
                place += rotation[i, j] * position[j]
            total += (points[k, i] - place) ** 2
    return 0.5 * total


@njit(error_model="numpy")
def _pose(theta, parents, base_relatives, inverse_base_absolutes):
    """The transforms and what their adjoint needs: rotations, transforms to the parent and to the hand."""
    bones = parents.size
    angles = euler_angles(theta, bones)
    rotations, relatives = np.zeros((bones, 3, 4)), np.empty((bones, 3, 4))
    absolutes, transforms = np.empty((bones, 3, 4)), np.empty((bones, 3, 4))
    for b in range(bones):
        rotate_by_angles(angles[b], rotations[b])
        compose(base_relatives[b], rotations[b], relatives[b])
        if parents[b] < 0:
            absolutes[b] = relatives[b]
        else:
            compose(absolutes[parents[b]], relatives[b], absolutes[b])
        compose(absolutes[b], inverse_base_absolutes[b], transforms[b])
    return rotations, relatives, absolutes, transforms


@njit(error_model="numpy")
def _add_times_transpose(left, right, out):
    """Cotangent of the left factor in `compose`."""
    for i in range(3):
        for j in range(3):
            out[i, j] += left[i, 0] * right[j, 0] + left[i, 1] * right[j, 1] + left[i, 2] * right[j, 2]
            out[i, j] += left[i, 3] * right[j, 3]
        out[i, 3] += left[i, 3]


@njit(error_model="numpy")
def _transpose_times(left, right, out):
    """Cotangent of the rotation in the right factor of `compose`."""
    for i in range(3):
        for j in range(4):
            out[i, j] = left[0, i] * right[0, j] + left[1, i] * right[1, j] + left[2, i] * right[2, j]


@njit(error_model="numpy")
def _pose_bar(pose, transforms_bar, parents, base_relatives, inverse_base_absolutes, theta_bar):
    """From children to parents; bones without angles pass on what they get."""
    rotations, relatives, absolutes, _ = pose
    bones = parents.size
    bars = np.zeros((bones, 3, 4))
    relative_bar, rotation_bar = np.empty((3, 4)), np.empty((3, 4))
    for b in range(bones - 1, -1, -1):
        _add_times_transpose(transforms_bar[b], inverse_base_absolutes[b], bars[b])
        parent, joint = parents[b], (b - 2) % 4
        if parent >= 0:
            _add_times_transpose(bars[b], relatives[b], bars[parent])
        if b < 2 or joint == 3:
            continue
        _transpose_times(absolutes[parent], bars[b], relative_bar)
        _transpose_times(base_relatives[b], relative_bar, rotation_bar)
        rotation, flexion, abduction = rotations[b], 0.0, 0.0
        for i in range(3):
            flexion += rotation_bar[i, 1] * rotation[i, 2] - rotation_bar[i, 2] * rotation[i, 1]
            abduction += rotation_bar[1, i] * rotation[0, i] - rotation_bar[0, i] * rotation[1, i]
        at = 6 + 4 * ((b - 2) // 4)
        if joint == 0:
            theta_bar[at] = flexion
            theta_bar[at + 1] = abduction
        else:
            theta_bar[at + 1 + joint] = flexion


@njit(error_model="numpy")
def _rotation_bar(rotation, bar, out):
    """Cotangent of a rotation vector; its angle is not zero."""
    angle = math.sqrt(rotation[0] ** 2 + rotation[1] ** 2 + rotation[2] ** 2)
    axis, axis_bar = rotation / angle, np.empty(3)
    cosine, sine = math.cos(angle), math.sin(angle)
    turn = (bar[2, 1] - bar[1, 2], bar[0, 2] - bar[2, 0], bar[1, 0] - bar[0, 1])
    angle_bar = -sine * (bar[0, 0] + bar[1, 1] + bar[2, 2])
    along = 0.0
    for i in range(3):
        both = 0.0
        for j in range(3):
            both += (bar[i, j] + bar[j, i]) * axis[j]
        axis_bar[i] = sine * turn[i] + (1.0 - cosine) * both
        angle_bar += axis[i] * (cosine * turn[i] + 0.5 * sine * both)
        along += axis[i] * axis_bar[i]
    for i in range(3):
        out[i] = (axis_bar[i] - along * axis[i]) / angle + angle_bar * axis[i]


@njit(error_model="numpy")
def hand(theta, parents, base_relatives, inverse_base_absolutes, base_positions, weights, correspondences, points):
    """Forward and reverse of a correspondence together: its bones' transforms are averaged first, then applied."""
    pose = _pose(theta, parents, base_relatives, inverse_base_absolutes)
    transforms, bones = pose[3], parents.size
    transforms_bar = np.zeros((bones, 3, 4))
    rotation, rotation_bar = np.empty((3, 3)), np.zeros((3, 3))
    rotate_about_axis(theta[:3], rotation)
    theta_bar = np.zeros(theta.size)
    position, error, position_bar = np.empty(3), np.empty(3), np.empty(3)
    total = 0.0
    for k in range(correspondences.size):
        v = correspondences[k]
        x, y, z = base_positions[v, 0], base_positions[v, 1], base_positions[v, 2]
        for i in range(3):
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for bone in range(bones):
                weight = weights[v, bone]
                a += weight * transforms[bone, i, 0]
                b += weight * transforms[bone, i, 1]
                c += weight * transforms[bone, i, 2]
                d += weight * transforms[bone, i, 3]
            position[i] = a * x + b * y + c * z + d
        for i in range(3):
            place = theta[3 + i]
            for j in range(3):
                place += rotation[i, j] * position[j]
            error[i] = place - points[k, i]
            total += error[i] ** 2
            theta_bar[3 + i] += error[i]
        for j in range(3):
            bar = 0.0
            for i in range(3):
                rotation_bar[i, j] += error[i] * position[j]
                bar += error[i] * rotation[i, j]
            position_bar[j] = bar
        for bone in range(bones):
            weight = weights[v, bone]
            for i in range(3):
                bar = weight * position_bar[i]
                transforms_bar[bone, i, 0] += bar * x
                transforms_bar[bone, i, 1] += bar * y
                transforms_bar[bone, i, 2] += bar * z
                transforms_bar[bone, i, 3] += bar
    _rotation_bar(theta[:3], rotation_bar, theta_bar)
    _pose_bar(pose, transforms_bar, parents, base_relatives, inverse_base_absolutes, theta_bar)
    return 0.5 * total, (theta_bar,)


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _quick_pose(theta, parents, base_relatives, inverse_base_absolutes):
    """Like `_pose`, without what angles of zero would add."""
    bones = parents.size
    rotations, relatives = np.zeros((bones, 3, 4)), base_relatives.copy()
    absolutes, transforms = np.empty((bones, 3, 4)), np.empty((bones, 3, 4))
    for b in range(bones):
        finger, joint = (b - 2) // 4, (b - 2) % 4
        if b >= 2 and joint < 3:
            rotation, at = rotations[b], 6 + 4 * finger + joint + (joint > 0)
            cos_x, sin_x, cos_z, sin_z = math.cos(theta[at]), math.sin(theta[at]), 1.0, 0.0
            if joint == 0:
                cos_z, sin_z = math.cos(theta[at + 1]), math.sin(theta[at + 1])
            rotation[0, 0], rotation[0, 1], rotation[0, 2] = cos_z, -cos_x * sin_z, sin_x * sin_z
            rotation[1, 0], rotation[1, 1], rotation[1, 2] = sin_z, cos_x * cos_z, -sin_x * cos_z
            rotation[2, 1], rotation[2, 2] = sin_x, cos_x
            compose(base_relatives[b], rotation, relatives[b])
        if parents[b] < 0:
            absolutes[b] = relatives[b]
        else:
            compose(absolutes[parents[b]], relatives[b], absolutes[b])
        compose(absolutes[b], inverse_base_absolutes[b], transforms[b])
    return rotations, relatives, absolutes, transforms


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def _match(blended, base_positions, correspondences, points, rotation, shift):
    """Sum of squares, and cotangents of each vertex's transform, of the rotation and of the shift."""
    blended_bar, rotation_bar, shift_bar = np.zeros(blended.shape), np.zeros((3, 3)), np.zeros(3)
    position, error = np.empty(3), np.empty(3)
    total = 0.0
    for k in range(correspondences.size):
        v = correspondences[k]
        x, y, z = base_positions[v, 0], base_positions[v, 1], base_positions[v, 2]
        transform, bar = blended[v], blended_bar[v]
        for i in range(3):
            position[i] = transform[4 * i] * x + transform[4 * i + 1] * y + transform[4 * i + 2] * z
            position[i] += transform[4 * i + 3]
        for i in range(3):
            error[i] = rotation[i, 0] * position[0] + rotation[i, 1] * position[1] + rotation[i, 2] * position[2]
            error[i] += shift[i] - points[k, i]
            total += error[i] * error[i]
            shift_bar[i] += error[i]
            for j in range(3):
                rotation_bar[i, j] += error[i] * position[j]
        for i in range(3):
            pull = error[0] * rotation[0, i] + error[1] * rotation[1, i] + error[2] * rotation[2, i]
            bar[4 * i] += pull * x
            bar[4 * i + 1] += pull * y
            bar[4 * i + 2] += pull * z
            bar[4 * i + 3] += pull
    return total, blended_bar, rotation_bar, shift_bar


@njit(error_model="numpy", fastmath={"reassoc", "contract"})
def hand_opt(theta, parents, base_relatives, inverse_base_absolutes, base_positions, weights, correspondences, points):
    """Averages of transforms, and their adjoint, are products of matrices."""
    pose, bones = _quick_pose(theta, parents, base_relatives, inverse_base_absolutes), parents.size
    blended = np.dot(weights, pose[3].reshape(bones, 12))
    rotation, theta_bar = np.empty((3, 3)), np.empty(theta.size)
    rotate_about_axis(theta[:3], rotation)
    total, blended_bar, rotation_bar, shift_bar = _match(
        blended, base_positions, correspondences, points, rotation, theta[3:6]
    )
    transforms_bar = np.dot(weights.T, blended_bar).reshape(bones, 3, 4)
    _rotation_bar(theta[:3], rotation_bar, theta_bar)
    theta_bar[3:6] = shift_bar
    _pose_bar(pose, transforms_bar, parents, base_relatives, inverse_base_absolutes, theta_bar)
    return 0.5 * total, (theta_bar,)


@njit(error_model="numpy")
def _rest(parents, offsets):
    """Transforms to the parents and from the hand, of bones that are turned a little and moved."""
    bones = parents.size
    relatives, absolutes, inverses = np.zeros((bones, 3, 4)), np.zeros((bones, 3, 4)), np.zeros((bones, 3, 4))
    for b in range(bones):
        rotate_about_axis(offsets[b, :3], relatives[b, :, :3])
        relatives[b, :, 3] = offsets[b, 3:]
        if parents[b] < 0:
            absolutes[b] = relatives[b]
        else:
            compose(absolutes[parents[b]], relatives[b], absolutes[b])
        for i in range(3):
            for j in range(3):
                inverses[b, i, j] = absolutes[b, j, i]
                inverses[b, i, 3] -= absolutes[b, j, i] * absolutes[b, j, 3]
    return relatives, absolutes, inverses


def _weights(vertices: int, bones: int, rng: np.random.Generator) -> np.ndarray:
    """Up to four bones a vertex, side by side in a finger; they sum to one."""
    weights = np.zeros((vertices, bones))
    for row in weights:
        first, count = rng.integers(0, bones - 3), rng.integers(1, 5)
        row[first : first + count] = rng.uniform(0.1, 1.0, count)
    return weights / weights.sum(axis=1, keepdims=True)


def make(size: Size) -> tuple[Any, ...]:
    """A forearm, a palm and fingers of four bones; the points are where another pose has the skin, and some noise."""
    fingers, vertices, count = {"small": (2, 12, 6), "medium": (5, 100, 60), "full": (5, 544, 500)}[size]
    bones = 2 + 4 * fingers
    rng = np.random.default_rng(23)
    parents = np.array([-1, 0] + [1 if joint == 0 else 4 * f + joint + 1 for f in range(fingers) for joint in range(4)])
    offsets = np.concatenate([0.3 * rng.standard_normal((bones, 3)), rng.uniform(0.2, 0.6, (bones, 3))], axis=1)
    base_relatives, base_absolutes, inverse_base_absolutes = _rest(parents, offsets)
    weights = _weights(vertices, bones, rng)
    base_positions = weights @ base_absolutes[:, :, 3] + 0.1 * rng.standard_normal((vertices, 3))
    theta, other = 0.4 * rng.standard_normal((2, 6 + 4 * fingers))
    correspondences = rng.integers(0, vertices, count)
    model = (parents, base_relatives, inverse_base_absolutes)
    rotation = np.empty((3, 3))
    rotate_about_axis(other[:3], rotation)
    measured = skin(bone_transforms(other, *model), base_positions, weights)[correspondences] @ rotation.T + other[3:6]
    return theta, *model, base_positions, weights, correspondences, measured + 0.05 * rng.standard_normal((count, 3))


CASE = Case("hand-tracking", "hand of 22 bones, 544 vertices, 500 points", loss, hand, make, (0,), hand_opt)
