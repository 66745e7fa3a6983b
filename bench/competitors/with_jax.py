"""JAX: ``jit(value_and_grad(loss))``; whole arrays where that is natural, `lax.scan` and `fori_loop` for steps."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.scipy.special import gammaln, logsumexp
from jax.scipy.stats import norm

from bench.case import Case
from bench.cases.algebra.many_scalars import LEFT, LINKS, RIGHT
from bench.cases.physics.shallow_water import GRAVITY
from bench.competitors import Found, Prepared, formulation

jax.config.update("jax_enable_x64", True)
jax.config.update("jax_platforms", "cpu")


def warm_up() -> None:
    """Compiles something small."""
    jax.block_until_ready(jax.jit(jax.value_and_grad(lambda x: jnp.sum(x**2)))(jnp.ones(3)))


def prepare(case: Case, args: tuple[Any, ...], setting: str) -> Prepared | None:
    """Arrays are on the device before; whole numbers, which say how many steps there are, are static."""
    loss = formulation(globals(), case)
    if loss is None:
        return None
    static = tuple(i for i, arg in enumerate(args) if isinstance(arg, int))
    gradient = jax.jit(jax.value_and_grad(loss, argnums=case.argnums), static_argnums=static)
    given = tuple(arg if i in static else jnp.asarray(arg) for i, arg in enumerate(args))
    return Prepared(lambda: jax.block_until_ready(gradient(*given)), _read)


def _read(result: Any) -> Found:
    value, gradients = result
    return float(value), tuple(map(np.asarray, gradients))


def gmm(alphas, means, factors, points, gamma, m):
    (n, d), k = points.shape, alphas.shape[0]
    columns, rows = np.triu_indices(d, 1)  # stored column by column
    below = jnp.zeros((k, d, d)).at[:, rows, columns].set(factors[:, d:])
    lower = below + jnp.exp(factors[:, :d, None]) * jnp.eye(d)
    sum_q = factors[:, :d].sum(1)
    scaled = jnp.einsum("kij,nkj->nki", lower, points[:, None] - means)
    total = jnp.sum(logsumexp(alphas + sum_q - 0.5 * jnp.sum(scaled**2, 2), axis=1))
    degrees = d + m + 1
    log_gamma = 0.25 * d * (d - 1) * math.log(math.pi) + jnp.sum(gammaln(0.5 * degrees - 0.5 * jnp.arange(d)))
    constant = degrees * d * (jnp.log(gamma) - 0.5 * math.log(2.0)) - log_gamma
    prior = 0.5 * gamma**2 * jnp.sum(lower**2) - m * jnp.sum(sum_q) - k * constant
    return -0.5 * n * d * math.log(2.0 * math.pi) + total - n * logsumexp(alphas) + prior


def lennard_jones(positions, epsilon, sigma):
    itself = jnp.eye(positions.shape[0])
    r2 = jnp.sum((positions[:, None] - positions[None]) ** 2, 2) + itself
    s6 = (sigma**2 / r2) ** 3 * (1.0 - itself)
    return 2.0 * epsilon * jnp.sum(s6**2 - s6)


def heat(initial, target, ratio, steps):
    def step(_, u):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return u.at[1:-1, 1:-1].add(ratio * (around - 4.0 * u[1:-1, 1:-1]))

    return 0.5 * jnp.sum((lax.fori_loop(0, steps, step, initial) - target) ** 2)


def ode(initial, rates, target, step, steps):
    def slope(state):
        prey, predator = state
        both = prey * predator
        return jnp.stack([rates[0] * prey - rates[1] * both, rates[2] * both - rates[3] * predator])

    def advance(_, state):
        k1 = slope(state)
        k2 = slope(state + 0.5 * step * k1)
        k3 = slope(state + 0.5 * step * k2)
        k4 = slope(state + step * k3)
        return state + step / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)

    return jnp.sum((lax.fori_loop(0, steps, advance, initial) - target) ** 2)


def black_scholes(spots, strikes, maturities, volatilities, rate):
    deviations = volatilities * jnp.sqrt(maturities)
    d1 = (jnp.log(spots / strikes) + (rate + 0.5 * volatilities**2) * maturities) / deviations
    return jnp.sum(spots * norm.cdf(d1) - strikes * jnp.exp(-rate * maturities) * norm.cdf(d1 - deviations))


def log_sum_exp(weights, bias, features, labels, ridge):
    scores = features @ weights + bias
    chosen = jnp.take_along_axis(scores, labels[:, None], 1)[:, 0]
    return jnp.mean(logsumexp(scores, axis=1) - chosen) + 0.5 * ridge * jnp.sum(weights**2)


def mlp(w1, b1, w2, b2, w3, b3, inputs, targets):
    return jnp.mean((jnp.tanh(jnp.tanh(inputs @ w1 + b1) @ w2 + b2) @ w3 + b3 - targets) ** 2)


def bundle_adjustment(cameras, points, weights, seen, features):
    def errors(camera, point, weight, feature):
        x, rotation = point - camera[3:6], camera[:3]
        angle = jnp.sqrt(jnp.sum(rotation**2))
        axis, cosine = rotation / angle, jnp.cos(angle)
        turned = x * cosine + jnp.cross(axis, x) * jnp.sin(angle) + axis * (axis @ x) * (1.0 - cosine)
        flat = turned[:2] / turned[2]
        r2 = jnp.sum(flat**2)
        error = weight * (camera[6] * flat * (1.0 + camera[9] * r2 + camera[10] * r2**2) + camera[7:9] - feature)
        return jnp.sum(error**2) + (1.0 - weight**2) ** 2

    return 0.5 * jnp.sum(jax.vmap(errors)(cameras[seen[:, 0]], points[seen[:, 1]], weights, features))


def _homogeneous(transforms):
    last = jnp.broadcast_to(jnp.array([0.0, 0.0, 0.0, 1.0]), (len(transforms), 1, 4))
    return jnp.concatenate([transforms, last], 1)


def _joint(flexion, abduction):
    (cos_x, sin_x), (cos_z, sin_z) = ((jnp.cos(angle), jnp.sin(angle)) for angle in (flexion, abduction))
    rows = [[cos_z, -cos_x * sin_z, sin_x * sin_z], [sin_z, cos_x * cos_z, -sin_x * cos_z], [0.0, sin_x, cos_x]]
    return jnp.pad(jnp.array(rows), ((0, 0), (0, 1)))


def _axis_rotation(rotation):
    angle = jnp.sqrt(jnp.sum(rotation**2))
    x, y, z = rotation / angle
    turn = jnp.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return jnp.eye(3) + jnp.sin(angle) * turn + (1.0 - jnp.cos(angle)) * turn @ turn


def hand_tracking(theta, parents, base_relatives, inverse_base_absolutes, base_positions, weights, which, points):
    fingers = theta[6:].reshape(-1, 4)
    flexions = jnp.pad(jnp.pad(fingers[:, jnp.array([0, 2, 3])], ((0, 0), (0, 1))).ravel(), (2, 0))
    abductions = jnp.pad(jnp.pad(fingers[:, 1:2], ((0, 0), (0, 3))).ravel(), (2, 0))
    relatives = _homogeneous(base_relatives) @ _homogeneous(jax.vmap(_joint)(flexions, abductions))

    def place(bone, absolutes):
        return absolutes.at[bone].set(absolutes[parents[bone]] @ relatives[bone])

    bones = parents.shape[0]
    ground = jnp.broadcast_to(jnp.eye(4), (bones + 1, 4, 4))  # the root's parent, -1, is the last one
    absolutes = lax.fori_loop(0, bones, place, ground)[:-1]
    transforms = absolutes[:, :3] @ _homogeneous(inverse_base_absolutes)
    extended = jnp.pad(base_positions, ((0, 0), (0, 1)), constant_values=1.0)
    positions = jnp.einsum("vb,bij,vj->vi", weights, transforms, extended)
    return 0.5 * jnp.sum((positions[which] @ _axis_rotation(theta[:3]).T + theta[3:6] - points) ** 2)


def lstm(inner, outer, bias, sequence, target):
    def step(state, x):
        hidden, cell = state
        forget, write, new, show = jnp.split(bias + outer @ x + inner @ hidden, 4)
        cell = jax.nn.sigmoid(forget) * cell + jax.nn.sigmoid(write) * jnp.tanh(new)
        return (jax.nn.sigmoid(show) * jnp.tanh(cell), cell), None

    start = jnp.zeros(inner.shape[1])
    (hidden, _), _ = lax.scan(step, (start, start), sequence)
    return 0.5 * jnp.sum((hidden - target) ** 2)


def cnn(filters, dense, images, targets):
    mapped = lax.conv(images[:, None], filters[:, None], (1, 1), "VALID")
    pooled = lax.reduce_window(jax.nn.relu(mapped), -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")
    return 0.5 * jnp.sum((pooled.reshape(images.shape[0], -1) @ dense.T - targets) ** 2)


def cholesky(matrix):
    factor = jnp.linalg.cholesky(jnp.tril(matrix) + jnp.tril(matrix, -1).T, symmetrize_input=False)
    return 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor)))


def cholesky_left(matrix):
    return cholesky(matrix)


def lu(matrix, right, target):
    return 0.5 * jnp.sum((jnp.linalg.solve(matrix, right) - target) ** 2)


def thomas(lower, diagonal, upper, right, target):
    def eliminate(before, row):
        low, middle, high, b = row
        pivot = middle - low * before[0]
        new = (high / pivot, (b - low * before[1]) / pivot)
        return new, new

    def substitute(after, row):
        x = row[1] - row[0] * after
        return x, x

    rows = (lower.at[0].set(0.0), diagonal, upper.at[-1].set(0.0), right)
    _, eliminated = lax.scan(eliminate, (0.0, 0.0), rows)
    _, x = lax.scan(substitute, 0.0, eliminated, reverse=True)
    return 0.5 * jnp.sum((x - target) ** 2)


def fft(signal, weights):
    spectrum = jnp.fft.fft(signal)
    return jnp.sum(weights * jnp.log(1.0 + spectrum.real**2 + spectrum.imag**2))


def _torques(base, q, v, a):
    axis = jnp.array([0.0, 0.0, 1.0])

    def swing(spin, rate, arm):
        return jnp.cross(rate, arm) + jnp.cross(spin, jnp.cross(spin, arm))

    def move(motion, joint):
        (spin, rate, lift), (link, c, s, speed, acceleration) = motion, joint
        cos, sin, length, offset, mass, *_, motor = link
        turn = jnp.array([[c, -s, 0.0], [cos * s, cos * c, -sin], [sin * s, sin * c, cos]])
        origin, centre, inertia = jnp.array([length, -sin * offset, cos * offset]), link[5:8], link[8:11]
        lift, carried = (lift + swing(spin, rate, origin)) @ turn, spin @ turn
        rate = rate @ turn + jnp.cross(carried, axis * speed) + axis * acceleration
        spin = carried + axis * speed
        force = mass * (lift + swing(spin, rate, centre))
        moment = inertia * rate + jnp.cross(spin, inertia * spin) + jnp.cross(centre, force)
        return (spin, rate, lift), (turn, origin, force, moment, motor * acceleration)

    def carry(wrench, joint):
        turn, origin, force, moment, driven = joint
        force, moment = force + wrench[0], moment + wrench[1]
        passed = turn @ force
        return (passed, turn @ moment + jnp.cross(origin, passed)), moment[2] + driven

    still = jnp.zeros(3)
    _, joints = lax.scan(move, (still, still, jnp.array(base[2])), (jnp.array(LINKS), jnp.cos(q), jnp.sin(q), v, a))
    return lax.scan(carry, (still, still), joints, reverse=True)[1]


def many_scalars(angles, speeds, accelerations):
    def effort(q, v, a):
        left, right = _torques(LEFT, q[:6], v[:6], a[:6]), _torques(RIGHT, q[6:], v[6:], a[6:])
        return 0.5 * jnp.sum(left**2) + 0.5 * jnp.sum(right**2)

    return jnp.sum(jax.vmap(effort)(angles, speeds, accelerations))


def n_body(initial, velocities, masses, softening, step, steps):
    def advance(_, state):
        x, v = state
        x = x + 0.5 * step * v
        between = x[None] - x[:, None]
        r2 = jnp.sum(between**2, 2) + softening**2
        v = v + step * jnp.einsum("j,ijd->id", masses, between / (r2 * jnp.sqrt(r2))[..., None])
        return x + 0.5 * step * v, v

    return jnp.sum(lax.fori_loop(0, steps, advance, (initial, velocities))[0] ** 2)


def _neighbours(x):
    return jnp.roll(x, 1, 0), jnp.roll(x, -1, 0), jnp.roll(x, 1, 1), jnp.roll(x, -1, 1)


def brusselator(u0, v0, a, b, diffusion, step, steps):
    def advance(_, fields):
        u, v = fields
        reaction = u**2 * v
        u_new = u + step * (a + reaction - (b + 1.0) * u + diffusion * (sum(_neighbours(u)) - 4.0 * u))
        return u_new, v + step * (b * u - reaction + diffusion * (sum(_neighbours(v)) - 4.0 * v))

    u, v = lax.fori_loop(0, steps, advance, (u0, v0))
    return jnp.sum(u**2) + jnp.sum(v**2)


def shallow_water(surface, target, ratio, steps):
    def advance(_, state):
        h, p, q = state
        pressure = 0.5 * GRAVITY * h**2
        along, mixed, across = p**2 / h + pressure, p * q / h, q**2 / h + pressure

        def moved(x, down, right):
            (above, below), (left, after) = _neighbours(down)[:2], _neighbours(right)[2:]
            return 0.25 * sum(_neighbours(x)) - ratio * (below - above + after - left)

        return moved(h, p, q), moved(p, along, mixed), moved(q, mixed, across)

    still = jnp.zeros_like(surface)
    return 0.5 * jnp.sum((lax.fori_loop(0, steps, advance, (surface, still, still))[0] - target) ** 2)


def cloth(initial, stiffness, length, damping, step, steps):
    def pull(ends):
        distance = jnp.sqrt(jnp.sum(ends**2, 2, keepdims=True))
        return stiffness * (distance - length) / distance * ends

    def advance(_, state):
        x, v = state
        down, right = pull(x[1:] - x[:-1]), pull(x[:, 1:] - x[:, :-1])
        force = jnp.zeros_like(x).at[:-1].add(down).at[1:].add(-down).at[:, :-1].add(right).at[:, 1:].add(-right)
        v = v.at[1:].set(damping * v[1:] + step * (force[1:] - jnp.array([0.0, 0.0, 9.81])))
        return x + step * v, v

    return jnp.sum(lax.fori_loop(0, steps, advance, (initial, jnp.zeros_like(initial)))[0] ** 2)


def kalman(transition, noise, observed, variance, series):
    def step(state, value):
        mean, covariance = state
        predicted, spread = transition @ mean, transition @ covariance @ transition.T + noise
        gain = spread @ observed
        innovation, scale = value - observed @ predicted, variance + observed @ gain
        loss = 0.5 * (jnp.log(2.0 * math.pi * scale) + innovation**2 / scale)
        return (predicted + gain * innovation / scale, spread - jnp.outer(gain, gain) / scale), loss

    d = observed.size
    return jnp.sum(lax.scan(step, (jnp.zeros(d), jnp.eye(d)), series)[1])


def garch(parameters, returns):
    mean, constant, shock, memory = parameters
    squares = (returns - mean) ** 2

    def step(variance, square):
        return constant + shock * square + memory * variance, variance

    _, variances = lax.scan(step, constant / (1.0 - shock - memory), squares)
    return jnp.sum(0.5 * (jnp.log(2.0 * math.pi * variances) + squares / variances))


def asian_option(market, normals, strike, maturity):
    spot, rate, volatility = market
    paths, steps = normals.shape
    dt = maturity / steps
    moves = (rate - 0.5 * volatility**2) * dt + volatility * jnp.sqrt(dt) * normals
    average = jnp.mean(spot * jnp.exp(jnp.cumsum(moves, 1)), 1)
    return jnp.exp(-rate * maturity) * jnp.sum(jnp.maximum(average - strike, 0.0)) / paths


def spline(values, points, knots, targets):
    gaps = jnp.diff(knots)
    slopes = jnp.diff(values) / gaps
    inner = lax.linalg.tridiagonal_solve(
        gaps[:-1].at[0].set(0.0),
        2.0 * (gaps[:-1] + gaps[1:]),
        gaps[1:].at[-1].set(0.0),
        6.0 * jnp.diff(slopes)[:, None],
    )
    second = jnp.pad(inner[:, 0], 1)
    i = jnp.clip(jnp.searchsorted(knots, points, side="right") - 1, 0, knots.size - 2)
    h = gaps[i]
    a, b = (knots[i + 1] - points) / h, (points - knots[i]) / h
    y = a * values[i] + b * values[i + 1] + ((a**3 - a) * second[i] + (b**3 - b) * second[i + 1]) * h**2 / 6.0
    return 0.5 * jnp.sum((y - targets) ** 2)
