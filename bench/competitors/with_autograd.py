"""Autograd (HIPS): NumPy as its users write it, ``value_and_grad`` of whole arrays and Python's loops."""

from __future__ import annotations

import math
from typing import Any

import autograd.numpy as np
from autograd import value_and_grad
from autograd.scipy.special import logsumexp
from autograd.scipy.stats import norm

from bench.case import Case
from bench.cases.algebra.many_scalars import LEFT, LINKS, RIGHT
from bench.cases.physics.shallow_water import GRAVITY
from bench.competitors import Prepared, formulation


def warm_up() -> None:
    """Nothing is compiled."""


def prepare(case: Case, args: tuple[Any, ...], setting: str) -> Prepared | None:
    """Autograd takes NumPy's arrays and returns them."""
    loss = formulation(globals(), case)
    if loss is None:
        return None
    gradient = value_and_grad(loss, argnum=case.argnums)
    return Prepared(lambda: gradient(*args), lambda result: result)


def gmm(alphas, means, factors, points, gamma, m):
    (n, d), k = points.shape, alphas.shape[0]
    below = np.zeros((d, d), int)
    columns, rows = np.triu_indices(d, 1)  # stored column by column
    below[rows, columns] = d + np.arange(rows.size)
    mask = np.tril(np.ones((d, d)), -1)
    lower = factors[:, below] * mask + np.exp(factors[:, :d])[:, :, None] * np.eye(d)
    sum_q = np.sum(factors[:, :d], axis=1)
    scaled = np.einsum("kij,nkj->nki", lower, points[:, None] - means)
    total = np.sum(logsumexp(alphas + sum_q - 0.5 * np.sum(scaled**2, axis=2), axis=1))
    degrees = d + m + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * degrees - 0.5 * j) for j in range(d))
    constant = degrees * d * (math.log(gamma) - 0.5 * math.log(2.0)) - log_gamma
    prior = 0.5 * gamma**2 * np.sum(lower**2) - m * np.sum(sum_q) - k * constant
    return -0.5 * n * d * math.log(2.0 * math.pi) + total - n * logsumexp(alphas) + prior


def lennard_jones(positions, epsilon, sigma):
    n = positions.shape[0]
    between = positions[:, None] - positions[None]
    r2 = np.sum(between**2, axis=2) + np.eye(n)
    s6 = (sigma**2 / r2) ** 3 * (1.0 - np.eye(n))
    return 2.0 * epsilon * np.sum(s6**2 - s6)


def heat(initial, target, ratio, steps):
    u = initial
    for _ in range(steps):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u = u + np.pad(ratio * (around - 4.0 * u[1:-1, 1:-1]), 1, "constant")
    return 0.5 * np.sum((u - target) ** 2)


def ode(initial, rates, target, step, steps):
    a, b, c, d = rates

    def slope(state):
        both = state[0] * state[1]
        return np.array([a * state[0] - b * both, c * both - d * state[1]])

    state = initial
    for _ in range(steps):
        k1 = slope(state)
        k2 = slope(state + 0.5 * step * k1)
        k3 = slope(state + 0.5 * step * k2)
        k4 = slope(state + step * k3)
        state = state + step / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return np.sum((state - target) ** 2)


def black_scholes(spots, strikes, maturities, volatilities, rate):
    deviations = volatilities * np.sqrt(maturities)
    d1 = (np.log(spots / strikes) + (rate + 0.5 * volatilities**2) * maturities) / deviations
    return np.sum(spots * norm.cdf(d1) - strikes * np.exp(-rate * maturities) * norm.cdf(d1 - deviations))


def log_sum_exp(weights, bias, features, labels, ridge):
    scores = np.dot(features, weights) + bias
    chosen = scores[np.arange(labels.size), labels]
    return np.mean(logsumexp(scores, axis=1) - chosen) + 0.5 * ridge * np.sum(weights**2)


def mlp(w1, b1, w2, b2, w3, b3, inputs, targets):
    first = np.tanh(np.dot(inputs, w1) + b1)
    return np.mean((np.dot(np.tanh(np.dot(first, w2) + b2), w3) + b3 - targets) ** 2)


def bundle_adjustment(cameras, points, weights, seen, features):
    camera, x = cameras[seen[:, 0]], points[seen[:, 1]]
    x, rotation = x - camera[:, 3:6], camera[:, :3]
    angle = np.sqrt(np.sum(rotation**2, axis=1, keepdims=True))
    axis, cosine = rotation / angle, np.cos(angle)
    along = np.sum(axis * x, axis=1, keepdims=True) * (1.0 - cosine)
    turned = x * cosine + np.cross(axis, x) * np.sin(angle) + axis * along
    flat = turned[:, :2] / turned[:, 2:]
    r2 = np.sum(flat**2, axis=1, keepdims=True)
    distortion = 1.0 + camera[:, 9:10] * r2 + camera[:, 10:11] * r2**2
    error = weights[:, None] * (camera[:, 6:7] * flat * distortion + camera[:, 7:9] - features)
    return 0.5 * (np.sum(error**2) + np.sum((1.0 - weights**2) ** 2))


def _homogeneous(transforms):
    last = np.tile(np.array([0.0, 0.0, 0.0, 1.0]), (len(transforms), 1, 1))
    return np.concatenate([transforms, last], axis=1)


def _joints(flexions, abductions):
    cos_x, sin_x, cos_z, sin_z = np.cos(flexions), np.sin(flexions), np.cos(abductions), np.sin(abductions)
    zero = 0.0 * sin_x
    entries = [cos_z, -cos_x * sin_z, sin_x * sin_z, zero, sin_z, cos_x * cos_z, -sin_x * cos_z, zero]
    return np.reshape(np.stack([*entries, zero, sin_x, cos_x, zero], axis=1), (-1, 3, 4))


def _axis_rotation(rotation):
    angle = np.sqrt(np.sum(rotation**2))
    x, y, z = rotation / angle
    turn = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * turn + (1.0 - np.cos(angle)) * np.dot(turn, turn)


def hand_tracking(theta, parents, base_relatives, inverse_base_absolutes, base_positions, weights, which, points):
    fingers = np.reshape(theta[6:], (-1, 4))
    inner = (0, 0)
    flexions = np.pad(np.ravel(np.pad(fingers[:, [0, 2, 3]], (inner, (0, 1)), "constant")), (2, 0), "constant")
    abductions = np.pad(np.ravel(np.pad(fingers[:, 1:2], (inner, (0, 3)), "constant")), (2, 0), "constant")
    relatives = np.matmul(_homogeneous(base_relatives), _homogeneous(_joints(flexions, abductions)))
    absolutes = []
    for bone, parent in enumerate(parents):
        absolutes.append(relatives[bone] if parent < 0 else np.dot(absolutes[parent], relatives[bone]))
    transforms = np.matmul(np.stack(absolutes)[:, :3], _homogeneous(inverse_base_absolutes))
    extended = np.concatenate([base_positions, np.ones((len(base_positions), 1))], axis=1)
    blended = np.reshape(np.dot(weights, np.reshape(transforms, (-1, 12))), (-1, 3, 4))
    positions = np.einsum("vij,vj->vi", blended, extended)
    placed = np.dot(positions[which], _axis_rotation(theta[:3]).T) + theta[3:6]
    return 0.5 * np.sum((placed - points) ** 2)


def _sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def lstm(inner, outer, bias, sequence, target):
    width = inner.shape[1]
    hidden = cell = np.zeros(width)
    driven = np.dot(sequence, outer.T) + bias
    for t in range(sequence.shape[0]):
        gates = driven[t] + np.dot(inner, hidden)
        gated = _sigmoid(gates)
        cell = gated[:width] * cell + gated[width : 2 * width] * np.tanh(gates[2 * width : 3 * width])
        hidden = gated[3 * width :] * np.tanh(cell)
    return 0.5 * np.sum((hidden - target) ** 2)


def cholesky(matrix):
    full = np.tril(matrix) + np.tril(matrix, -1).T
    return 2.0 * np.sum(np.log(np.diagonal(np.linalg.cholesky(full), 0, -1, -2)))


def cholesky_left(matrix):
    return cholesky(matrix)


def lu(matrix, right, target):
    return 0.5 * np.sum((np.linalg.solve(matrix, right) - target) ** 2)


def fft(signal, weights):
    spectrum = np.fft.fft(signal)
    return np.sum(weights * np.log(1.0 + np.real(spectrum) ** 2 + np.imag(spectrum) ** 2))


def _torques(base, q, v, a):
    n, axis = len(q), np.array([[0.0, 0.0, 1.0]])
    spin = rate = force = moment = np.zeros((n, 3))
    lift = np.tile(np.array(base[2]), (n, 1))
    c, s = np.cos(q).T, np.sin(q).T
    zero, passed, torques = np.zeros(n), [], []
    for i, (cos, sin, length, offset, mass, *numbers, motor) in enumerate(LINKS):
        first = [c[i], -s[i], zero, cos * s[i], cos * c[i], zero - sin]
        turn = np.reshape(np.stack([*first, sin * s[i], sin * c[i], zero + cos], axis=1), (n, 3, 3))
        origin = np.tile(np.array([length, -sin * offset, cos * offset]), (n, 1))
        centre, inertia = np.tile(np.array(numbers[:3]), (n, 1)), np.array(numbers[3:])
        lift = lift + np.cross(rate, origin) + np.cross(spin, np.cross(spin, origin))
        lift, carried, turned = (np.einsum("nij,ni->nj", turn, x) for x in (lift, spin, rate))
        speed = axis * v[:, i : i + 1]
        rate = turned + np.cross(carried, speed) + axis * a[:, i : i + 1]
        spin = carried + speed
        pull = mass * (lift + np.cross(rate, centre) + np.cross(spin, np.cross(spin, centre)))
        twist = inertia * rate + np.cross(spin, inertia * spin) + np.cross(centre, pull)
        passed.append((turn, origin, pull, twist, motor * a[:, i]))
    for turn, origin, pull, twist, driven in reversed(passed):
        force, moment = force + pull, moment + twist
        torques.append(moment[:, 2] + driven)
        force, moment = (np.einsum("nij,nj->ni", turn, x) for x in (force, moment))
        moment = moment + np.cross(origin, force)
    return np.stack(torques)


def many_scalars(angles, speeds, accelerations):
    left = _torques(LEFT, angles[:, :6], speeds[:, :6], accelerations[:, :6])
    right = _torques(RIGHT, angles[:, 6:], speeds[:, 6:], accelerations[:, 6:])
    return 0.5 * np.sum(left**2) + 0.5 * np.sum(right**2)


def n_body(initial, velocities, masses, softening, step, steps):
    x, v = initial, velocities
    for _ in range(steps):
        x = x + 0.5 * step * v
        between = x[None] - x[:, None]
        r2 = np.sum(between**2, axis=2) + softening**2
        v = v + step * np.einsum("ij,ijd->id", masses * r2**-1.5, between)
        x = x + 0.5 * step * v
    return np.sum(x**2)


def cloth(initial, stiffness, length, damping, step, steps):
    def pull(ends):
        distance = np.sqrt(np.sum(ends**2, axis=2, keepdims=True))
        return stiffness * (distance - length) / distance * ends

    x, v = initial, np.zeros_like(initial)
    weight, inner = np.array([0.0, 0.0, 9.81]), (0, 0)
    for _ in range(steps):
        down, right = pull(x[1:] - x[:-1]), pull(x[:, 1:] - x[:, :-1])
        force = np.pad(down, ((0, 1), inner, inner), "constant") - np.pad(down, ((1, 0), inner, inner), "constant")
        force = (
            force
            + np.pad(right, (inner, (0, 1), inner), "constant")
            - np.pad(right, (inner, (1, 0), inner), "constant")
        )
        v = np.concatenate([v[:1], damping * v[1:] + step * (force[1:] - weight)])
        x = x + step * v
    return np.sum(x**2)


def _neighbours(x):
    return np.roll(x, 1, 0), np.roll(x, -1, 0), np.roll(x, 1, 1), np.roll(x, -1, 1)


def brusselator(u0, v0, a, b, diffusion, step, steps):
    u, v = u0, v0
    for _ in range(steps):
        reaction = u**2 * v
        u_new = u + step * (a + reaction - (b + 1.0) * u + diffusion * (sum(_neighbours(u)) - 4.0 * u))
        u, v = u_new, v + step * (b * u - reaction + diffusion * (sum(_neighbours(v)) - 4.0 * v))
    return np.sum(u**2) + np.sum(v**2)


def shallow_water(surface, target, ratio, steps):
    def moved(x, down, right):
        (above, below), (left, after) = _neighbours(down)[:2], _neighbours(right)[2:]
        return 0.25 * sum(_neighbours(x)) - ratio * (below - above + after - left)

    h, p, q = surface, np.zeros_like(target), np.zeros_like(target)
    for _ in range(steps):
        pressure = 0.5 * GRAVITY * h**2
        along, mixed, across = p**2 / h + pressure, p * q / h, q**2 / h + pressure
        h, p, q = moved(h, p, q), moved(p, along, mixed), moved(q, mixed, across)
    return 0.5 * np.sum((h - target) ** 2)


def kalman(transition, noise, observed, variance, series):
    mean, covariance = np.zeros(observed.size), np.eye(observed.size)
    total = 0.0
    for value in series:
        predicted = np.dot(transition, mean)
        spread = np.dot(np.dot(transition, covariance), transition.T) + noise
        gain = np.dot(spread, observed)
        innovation, scale = value - np.dot(observed, predicted), variance + np.dot(observed, gain)
        total = total + 0.5 * (np.log(2.0 * math.pi * scale) + innovation**2 / scale)
        mean, covariance = predicted + gain * innovation / scale, spread - np.outer(gain, gain) / scale
    return total


def garch(parameters, returns):
    mean, constant, shock, memory = parameters
    variance = constant / (1.0 - shock - memory)
    total = 0.0
    for value in returns:
        square = (value - mean) ** 2
        total = total + 0.5 * (np.log(2.0 * math.pi * variance) + square / variance)
        variance = constant + shock * square + memory * variance
    return total


def asian_option(market, normals, strike, maturity):
    spot, rate, volatility = market
    paths, steps = normals.shape
    dt = maturity / steps
    moves = (rate - 0.5 * volatility**2) * dt + volatility * math.sqrt(dt) * normals
    average = np.mean(spot * np.exp(np.cumsum(moves, axis=1)), axis=1)
    return np.exp(-rate * maturity) * np.sum(np.maximum(average - strike, 0.0)) / paths
