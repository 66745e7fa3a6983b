"""PyTorch, eager and by ``torch.compile``: whole arrays; loops over time steps are Python's."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
import torch
import torch.nn.functional as F
from torch import special

from bench.case import Case
from bench.cases.algebra.many_scalars import LEFT, LINKS, RIGHT
from bench.cases.physics.shallow_water import GRAVITY
from bench.competitors import Found, Prepared, formulation

torch.set_num_threads(1)

# torch.compile unrolls Python's loops: what has 100 steps and more compiles for many minutes at the full size.
UNROLLED: Final = {"heat", "ode", "kalman", "garch", "lstm"}


def warm_up() -> None:
    """A first gradient, eager; what the compiler loads counts as compile time of the one function of a process."""
    x = torch.ones(3, dtype=torch.float64, requires_grad=True)
    torch.sum(x**2).backward()


def prepare(case: Case, args: tuple[Any, ...], setting: str) -> Prepared | None:
    """Arrays and numbers to differentiate with respect to are tensors before."""
    loss = formulation(globals(), case)
    if loss is None or (setting and case.name in UNROLLED):
        return None
    if setting:
        loss = torch.compile(loss, dynamic=False)
    active = set(case.argnums)
    given = [_tensor(a, i in active) if i in active or isinstance(a, np.ndarray) else a for i, a in enumerate(args)]
    leaves = [given[i] for i in case.argnums]

    def run() -> Any:
        value = loss(*given)
        return value.detach(), torch.autograd.grad(value, leaves)

    return Prepared(run, _read)


def _tensor(value: Any, active: bool) -> torch.Tensor:
    return torch.from_numpy(np.array(value)).requires_grad_(active)


def _read(result: Any) -> Found:
    value, gradients = result
    return float(value), tuple(g.numpy() for g in gradients)


def gmm(alphas, means, factors, points, gamma, m):
    (n, d), k = points.shape, alphas.shape[0]
    columns, rows = torch.triu_indices(d, d, 1)  # stored column by column
    lower = torch.diag_embed(torch.exp(factors[:, :d])).index_put(
        (torch.arange(k)[:, None], rows[None], columns[None]), factors[:, d:]
    )
    sum_q = factors[:, :d].sum(1)
    scaled = torch.einsum("kij,nkj->nki", lower, points[:, None] - means)
    total = torch.logsumexp(alphas + sum_q - 0.5 * torch.sum(scaled**2, 2), 1).sum()
    degrees = d + m + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi) + sum(math.lgamma(0.5 * degrees - 0.5 * j) for j in range(d))
    constant = degrees * d * (math.log(gamma) - 0.5 * math.log(2.0)) - log_gamma
    prior = 0.5 * gamma**2 * torch.sum(lower**2) - m * torch.sum(sum_q) - k * constant
    return -0.5 * n * d * math.log(2.0 * math.pi) + total - n * torch.logsumexp(alphas, 0) + prior


def lennard_jones(positions, epsilon, sigma):
    s6 = (sigma / F.pdist(positions)) ** 6
    return 4.0 * epsilon * torch.sum(s6**2 - s6)


def heat(initial, target, ratio, steps):
    star = [[0.0, ratio, 0.0], [ratio, 1.0 - 4.0 * ratio, ratio], [0.0, ratio, 0.0]]
    kernel = torch.tensor([[star]], dtype=initial.dtype)
    u = initial
    for _ in range(steps):
        inner = F.conv2d(u[None, None], kernel)[0, 0]
        u = torch.cat([u[:1], torch.cat([u[1:-1, :1], inner, u[1:-1, -1:]], 1), u[-1:]])
    return 0.5 * torch.sum((u - target) ** 2)


def ode(initial, rates, target, step, steps):
    a, b, c, d = rates

    def slope(state):
        prey, predator = state
        both = prey * predator
        return torch.stack([a * prey - b * both, c * both - d * predator])

    state = initial
    for _ in range(steps):
        k1 = slope(state)
        k2 = slope(state + 0.5 * step * k1)
        k3 = slope(state + 0.5 * step * k2)
        k4 = slope(state + step * k3)
        state = state + step / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    return torch.sum((state - target) ** 2)


def black_scholes(spots, strikes, maturities, volatilities, rate):
    deviations = volatilities * torch.sqrt(maturities)
    d1 = (torch.log(spots / strikes) + (rate + 0.5 * volatilities**2) * maturities) / deviations
    discounted = strikes * torch.exp(-rate * maturities)
    return torch.sum(spots * special.ndtr(d1) - discounted * special.ndtr(d1 - deviations))


def log_sum_exp(weights, bias, features, labels, ridge):
    return F.cross_entropy(features @ weights + bias, labels) + 0.5 * ridge * torch.sum(weights**2)


def mlp(w1, b1, w2, b2, w3, b3, inputs, targets):
    first = torch.tanh(torch.addmm(b1, inputs, w1))
    return F.mse_loss(torch.addmm(b3, torch.tanh(torch.addmm(b2, first, w2)), w3), targets)


def bundle_adjustment(cameras, points, weights, seen, features):
    camera, x = cameras[seen[:, 0]], points[seen[:, 1]]
    x, rotation = x - camera[:, 3:6], camera[:, :3]
    angle = torch.linalg.vector_norm(rotation, dim=1, keepdim=True)
    axis, cosine = rotation / angle, torch.cos(angle)
    along = torch.sum(axis * x, 1, keepdim=True) * (1.0 - cosine)
    turned = x * cosine + torch.linalg.cross(axis, x) * torch.sin(angle) + axis * along
    flat = turned[:, :2] / turned[:, 2:]
    r2 = torch.sum(flat**2, 1, keepdim=True)
    distortion = 1.0 + camera[:, 9:10] * r2 + camera[:, 10:11] * r2**2
    error = weights[:, None] * (camera[:, 6:7] * flat * distortion + camera[:, 7:9] - features)
    return 0.5 * (torch.sum(error**2) + torch.sum((1.0 - weights**2) ** 2))


def _homogeneous(transforms):
    last = torch.tensor([0.0, 0.0, 0.0, 1.0], dtype=transforms.dtype).expand(len(transforms), 1, 4)
    return torch.cat([transforms, last], 1)


def _joints(flexions, abductions):
    cos_x, sin_x, cos_z, sin_z = torch.cos(flexions), torch.sin(flexions), torch.cos(abductions), torch.sin(abductions)
    entries = [cos_z, -cos_x * sin_z, sin_x * sin_z, sin_z, cos_x * cos_z, -sin_x * cos_z]
    rotations = torch.stack([*entries, torch.zeros_like(sin_x), sin_x, cos_x], 1).reshape(-1, 3, 3)
    return F.pad(rotations, (0, 1))


def _axis_rotation(rotation):
    angle = torch.linalg.vector_norm(rotation)
    x, y, z = rotation / angle
    zero = torch.zeros_like(x)
    turn = torch.stack([zero, -z, y, z, zero, -x, -y, x, zero]).reshape(3, 3)
    return torch.eye(3, dtype=turn.dtype) + torch.sin(angle) * turn + (1.0 - torch.cos(angle)) * turn @ turn


def hand_tracking(theta, parents, base_relatives, inverse_base_absolutes, base_positions, weights, which, points):
    fingers = theta[6:].reshape(-1, 4)
    flexions = F.pad(F.pad(fingers[:, [0, 2, 3]], (0, 1)).ravel(), (2, 0))
    abductions = F.pad(F.pad(fingers[:, 1:2], (0, 3)).ravel(), (2, 0))
    relatives = _homogeneous(base_relatives) @ _homogeneous(_joints(flexions, abductions))
    absolutes = []
    for parent, relative in zip(parents.tolist(), relatives, strict=True):
        absolutes.append(relative if parent < 0 else absolutes[parent] @ relative)
    transforms = torch.stack(absolutes)[:, :3] @ _homogeneous(inverse_base_absolutes)
    extended = F.pad(base_positions, (0, 1), value=1.0)
    blended = (weights @ transforms.flatten(1)).reshape(-1, 3, 4)
    positions = torch.einsum("vij,vj->vi", blended, extended)
    return 0.5 * torch.sum((positions[which] @ _axis_rotation(theta[:3]).T + theta[3:6] - points) ** 2)


def lstm(inner, outer, bias, sequence, target):
    hidden = cell = torch.zeros(inner.shape[1], dtype=inner.dtype)
    driven = sequence @ outer.T + bias
    for row in driven:
        forget, write, new, show = torch.chunk(row + inner @ hidden, 4)
        cell = torch.sigmoid(forget) * cell + torch.sigmoid(write) * torch.tanh(new)
        hidden = torch.sigmoid(show) * torch.tanh(cell)
    return 0.5 * torch.sum((hidden - target) ** 2)


def cnn(filters, dense, images, targets):
    pooled = F.max_pool2d(F.relu(F.conv2d(images[:, None], filters[:, None])), 2)
    return 0.5 * torch.sum((pooled.flatten(1) @ dense.T - targets) ** 2)


def cholesky(matrix):
    factor = torch.linalg.cholesky(torch.tril(matrix) + torch.tril(matrix, -1).T)
    return 2.0 * torch.sum(torch.log(torch.diagonal(factor)))


def cholesky_left(matrix):
    return cholesky(matrix)


def lu(matrix, right, target):
    return 0.5 * torch.sum((torch.linalg.solve(matrix, right) - target) ** 2)


def fft(signal, weights):
    spectrum = torch.fft.fft(signal)
    return torch.sum(weights * torch.log(1.0 + spectrum.real**2 + spectrum.imag**2))


def _torques(base, q, v, a):
    def cross(x, y):
        return torch.linalg.cross(x, y)

    def vector(*numbers):
        return torch.tensor([numbers], dtype=q.dtype)

    n, axis, lift = q.shape[0], vector(0.0, 0.0, 1.0), vector(*base[2])
    spin = rate = force = moment = torch.zeros(n, 3, dtype=q.dtype)
    c, s = torch.cos(q).T, torch.sin(q).T
    zero, passed, torques = torch.zeros_like(c[0]), [], []
    for i, (cos, sin, length, offset, mass, *numbers, motor) in enumerate(LINKS):
        first = [c[i], -s[i], zero, cos * s[i], cos * c[i], zero - sin]
        turn = torch.stack([*first, sin * s[i], sin * c[i], zero + cos], 1).reshape(n, 3, 3)
        origin, centre = vector(length, -sin * offset, cos * offset), vector(*numbers[:3])
        inertia = vector(*numbers[3:])
        lift = lift + cross(rate, origin) + cross(spin, cross(spin, origin))
        lift, carried, turned = (torch.einsum("nij,ni->nj", turn, x) for x in (lift, spin, rate))
        speed = axis * v[:, i : i + 1]
        rate = turned + cross(carried, speed) + axis * a[:, i : i + 1]
        spin = carried + speed
        pull = mass * (lift + cross(rate, centre) + cross(spin, cross(spin, centre)))
        twist = inertia * rate + cross(spin, inertia * spin) + cross(centre, pull)
        passed.append((turn, origin, pull, twist, motor * a[:, i]))
    for turn, origin, pull, twist, driven in reversed(passed):
        force, moment = force + pull, moment + twist
        torques.append(moment[:, 2] + driven)
        force, moment = (torch.einsum("nij,nj->ni", turn, x) for x in (force, moment))
        moment = moment + cross(origin, force)
    return torch.stack(torques)


def many_scalars(angles, speeds, accelerations):
    left = _torques(LEFT, angles[:, :6], speeds[:, :6], accelerations[:, :6])
    right = _torques(RIGHT, angles[:, 6:], speeds[:, 6:], accelerations[:, 6:])
    return 0.5 * torch.sum(left**2) + 0.5 * torch.sum(right**2)


def n_body(initial, velocities, masses, softening, step, steps):
    x, v = initial, velocities
    for _ in range(steps):
        x = x + 0.5 * step * v
        between = x[None] - x[:, None]
        r2 = torch.sum(between**2, 2) + softening**2
        v = v + step * torch.einsum("ij,ijd->id", masses * r2**-1.5, between)
        x = x + 0.5 * step * v
    return torch.sum(x**2)


def cloth(initial, stiffness, length, damping, step, steps):
    def pull(ends):
        distance = torch.linalg.vector_norm(ends, dim=2, keepdim=True)
        return stiffness * (distance - length) / distance * ends

    x, v = initial, torch.zeros_like(initial)
    weight = torch.tensor([0.0, 0.0, 9.81], dtype=initial.dtype)
    for _ in range(steps):
        down, right = pull(x[1:] - x[:-1]), pull(x[:, 1:] - x[:, :-1])
        force = F.pad(down, (0, 0, 0, 0, 0, 1)) - F.pad(down, (0, 0, 0, 0, 1, 0))
        force = force + F.pad(right, (0, 0, 0, 1)) - F.pad(right, (0, 0, 1, 0))
        v = torch.cat([v[:1], damping * v[1:] + step * (force[1:] - weight)])
        x = x + step * v
    return torch.sum(x**2)


def _neighbours(x):
    return torch.roll(x, 1, 0), torch.roll(x, -1, 0), torch.roll(x, 1, 1), torch.roll(x, -1, 1)


def brusselator(u0, v0, a, b, diffusion, step, steps):
    u, v = u0, v0
    for _ in range(steps):
        reaction = u**2 * v
        u_new = u + step * (a + reaction - (b + 1.0) * u + diffusion * (sum(_neighbours(u)) - 4.0 * u))
        u, v = u_new, v + step * (b * u - reaction + diffusion * (sum(_neighbours(v)) - 4.0 * v))
    return torch.sum(u**2) + torch.sum(v**2)


def shallow_water(surface, target, ratio, steps):
    def moved(x, down, right):
        (above, below), (left, after) = _neighbours(down)[:2], _neighbours(right)[2:]
        return 0.25 * sum(_neighbours(x)) - ratio * (below - above + after - left)

    h, p, q = surface, torch.zeros_like(surface), torch.zeros_like(surface)
    for _ in range(steps):
        pressure = 0.5 * GRAVITY * h**2
        along, mixed, across = p**2 / h + pressure, p * q / h, q**2 / h + pressure
        h, p, q = moved(h, p, q), moved(p, along, mixed), moved(q, mixed, across)
    return 0.5 * torch.sum((h - target) ** 2)


def kalman(transition, noise, observed, variance, series):
    d = observed.numel()
    mean, covariance = torch.zeros(d, dtype=series.dtype), torch.eye(d, dtype=series.dtype)
    total = 0.0
    for value in series:
        predicted, spread = transition @ mean, transition @ covariance @ transition.T + noise
        gain = spread @ observed
        innovation, scale = value - observed @ predicted, variance + observed @ gain
        total = total + 0.5 * (torch.log(2.0 * math.pi * scale) + innovation**2 / scale)
        mean, covariance = predicted + gain * innovation / scale, spread - torch.outer(gain, gain) / scale
    return total


def garch(parameters, returns):
    mean, constant, shock, memory = parameters
    squares = (returns - mean) ** 2
    variance, variances = constant / (1.0 - shock - memory), []
    for shocked in (constant + shock * squares).unbind():
        variances.append(variance)
        variance = shocked + memory * variance
    all_variances = torch.stack(variances)
    return torch.sum(0.5 * (torch.log(2.0 * math.pi * all_variances) + squares / all_variances))


def asian_option(market, normals, strike, maturity):
    spot, rate, volatility = market
    paths, steps = normals.shape
    dt = maturity / steps
    moves = (rate - 0.5 * volatility**2) * dt + volatility * math.sqrt(dt) * normals
    average = torch.mean(spot * torch.exp(torch.cumsum(moves, 1)), 1)
    return torch.exp(-rate * maturity) * torch.sum(F.relu(average - strike)) / paths
