"""Programs as people write them: solvers, filters, trees, tables, state machines; each mixes several features."""

from __future__ import annotations

import enum
import math
from collections import namedtuple
from typing import NamedTuple

import numpy as np
import pytest
from numba import njit

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()
MORE = Catalogue()  # run with the slow tests


class Method(enum.IntEnum):
    EULER = 0
    HEUN = 1
    RK4 = 2


@njit
def _pendulum(t, y, g):
    return np.array([y[1], -g * math.sin(y[0]) - 0.1 * y[1] + 0.05 * math.cos(t)])


@PROGRAMS.at(np.array([1.0, 0.3]), 9.81, 0.02, 2)
@PROGRAMS.at(np.array([1.0, 0.3]), 9.81, 0.02, 0)
@njit
def integrator_chosen_by_an_enum(y0, g, h, method):
    y = y0
    t = 0.0
    for _ in range(15):
        if method == Method.EULER:
            y = y + h * _pendulum(t, y, g)
        elif method == Method.HEUN:
            k1 = _pendulum(t, y, g)
            k2 = _pendulum(t + h, y + h * k1, g)
            y = y + 0.5 * h * (k1 + k2)
        elif method == Method.RK4:
            k1 = _pendulum(t, y, g)
            k2 = _pendulum(t + h / 2, y + h / 2 * k1, g)
            k3 = _pendulum(t + h / 2, y + h / 2 * k2, g)
            k4 = _pendulum(t + h, y + h * k3, g)
            y = y + h / 6 * (k1 + 2 * (k2 + k3) + k4)
        else:
            raise ValueError("method")
        t += h
    return y


@PROGRAMS.at(2.0, 0.3, 9.81, 0.7)
@njit
def bouncing_ball_with_event_location(height, v, g, restitution):
    t = 0.0
    z = height
    bounces = 0
    while t < 3.0:
        impact = (v + math.sqrt(v * v + 2 * g * z)) / g
        if t + impact > 3.0:
            dt = 3.0 - t
            z = z + v * dt - 0.5 * g * dt * dt
            v = v - g * dt
            break
        t += impact
        v = restitution * (g * impact - v)
        z = 0.0
        bounces += 1
        if bounces > 20:
            break
    return z + v * 0.1 + bounces


@PROGRAMS.at(np.array([0.3, -0.2]), floats(2, 2, low=-0.4, high=0.4), floats(9, 1), np.array([[1.0, 0.2]]), 0.3, 0.2)
@njit
def kalman_log_likelihood(x, F, ys, H, q, r):
    P = np.eye(2)
    ll = 0.0
    for t in range(ys.shape[0]):
        x = F @ x
        P = F @ P @ F.T + q * np.eye(2)
        s = (H @ P @ H.T)[0, 0] + r
        e = ys[t, 0] - (H @ x)[0]
        K = (P @ H.T)[:, 0] / s
        x = x + K * e
        P = P - np.outer(K, H[0] @ P)
        ll -= 0.5 * (math.log(2 * math.pi * s) + e * e / s)
    return ll


@PROGRAMS.at(
    floats(3, low=0.1, high=1.0),
    floats(3, 3, low=0.1, high=1.0),
    floats(3, 4, low=0.1, high=1.0),
    np.array([0, 2, 1, 3, 3, 0, 1]),
)
@njit
def hmm_forward_scaled(start, trans, emit, obs):
    n = start.size
    start = start / start.sum()
    for i in range(n):
        trans[i] /= trans[i].sum()
        emit[i, :] = emit[i, :] / np.sum(emit[i, :])
    alpha = start * emit[:, obs[0]]
    ll = 0.0
    for t in range(1, len(obs)):
        c = alpha.sum()
        ll += np.log(c)
        alpha = np.dot(alpha / c, trans) * emit[:, obs[t]]
    return ll + np.log(alpha.sum())


@PROGRAMS.at(floats(3), floats(3, 3), floats(6, 3))
@njit
def viterbi_score_with_backtracking(start, trans, emit):
    T, n = emit.shape
    score = np.full((T, n), -np.inf)
    back = np.zeros((T, n), np.int64)
    score[0] = start + emit[0]
    for t in range(1, T):
        for j in range(n):
            for i in range(n):
                s = score[t - 1, i] + trans[i, j]
                if s > score[t, j]:
                    score[t, j] = s
                    back[t, j] = i
            score[t, j] += emit[t, j]
    best = int(np.argmax(score[-1]))
    total = score[-1, best]
    path = 0.0
    for t in range(T - 1, 0, -1):
        path += emit[t, best] ** 2
        best = back[t, best]
    return total + 0.1 * path


@PROGRAMS.at(100.0, 105.0, 0.03, 0.25, 0.75, "put", "american")
@PROGRAMS.at(100.0, 105.0, 0.03, 0.25, 0.75, "call", "european")
@njit
def trinomial_tree_by_names(s, k, r, sigma, t, kind, style):
    n = 8
    dt = t / n
    u = np.exp(sigma * np.sqrt(2 * dt))
    a, b, c = np.exp(r * dt / 2), np.exp(-sigma * np.sqrt(dt / 2)), np.exp(sigma * np.sqrt(dt / 2))
    up, down = ((a - b) / (c - b)) ** 2, ((c - a) / (c - b)) ** 2
    mid = 1 - up - down
    sign = 1.0 if kind == "call" else -1.0
    v = np.empty(2 * n + 1)
    for j in range(2 * n + 1):
        v[j] = max(sign * (s * u ** (j - n) - k), 0.0)
    for i in range(n - 1, -1, -1):
        for j in range(2 * i + 1):
            hold = np.exp(-r * dt) * (up * v[j + 2] + mid * v[j + 1] + down * v[j])
            if style == "american":
                hold = max(hold, sign * (s * u ** (j - i) - k))
            v[j] = hold
    return v[0]


@PROGRAMS.at(floats(12), 0.05, 0.1, 10, True)
@njit
def upwind_advection(u, dx, c, steps, periodic):
    n = u.size
    dt = 0.02
    for _ in range(steps):
        un = u.copy()
        for i in range(n):
            left = un[i - 1] if i > 0 else (un[n - 1] if periodic else un[0])
            right = un[i + 1] if i < n - 1 else (un[0] if periodic else un[n - 1])
            speed = c + 0.1 * un[i]
            if speed > 0:
                u[i] = un[i] - speed * dt / dx * (un[i] - left)
            else:
                u[i] = un[i] - speed * dt / dx * (right - un[i])
    return np.sum(u**2) * dx


@MORE.at(floats(5, 6))
@njit
def median_filter_by_sorted_windows(img):
    out = img.copy()
    for i in range(1, img.shape[0] - 1):
        for j in range(1, img.shape[1] - 1):
            window = np.sort(img[i - 1 : i + 2, j - 1 : j + 2].ravel())
            out[i, j] = window[4]
    return (out * np.arange(30).reshape(5, 6)).sum()


@PROGRAMS.at(floats(4, 4), floats(4))
@njit
def conjugate_gradients_until_converged(A, b):
    A = A.T @ A + np.eye(4)
    x = np.zeros(4)
    r = b - A @ x
    p = r.copy()
    rs = r @ r
    for _ in range(4):
        Ap = A @ p
        alpha = rs / (p @ Ap)
        x += alpha * p
        r -= alpha * Ap
        new = r @ r
        if np.sqrt(new) < 1e-12:
            break
        p = r + (new / rs) * p
        rs = new
    return x


@PROGRAMS.at(np.array([0.0, 0.5, 1.2, 2.0, 3.1]), floats(5), np.array([-0.4, 0.2, 0.9, 1.9, 2.7, 3.6]), "linear")
@njit
def table_lookup_with_extrapolation(xs, ys, q, mode):
    out = np.empty(q.size)
    for k, v in enumerate(q):
        if v < xs[0] or v > xs[-1]:
            if mode == "constant":
                out[k] = ys[0] if v < xs[0] else ys[-1]
                continue
        lo, hi = 0, len(xs) - 1
        while hi - lo > 1:
            mid = (lo + hi) >> 1
            if xs[mid] > v:
                hi = mid
            else:
                lo = mid
        w = (v - xs[lo]) / (xs[hi] - xs[lo])
        out[k] = ys[lo] * (1 - w) + ys[hi] * w
    return out


@PROGRAMS.at(floats(5), np.array([2, 3, 4, 1, 2]), 7)
@njit
def knapsack_values(value, weight, capacity):
    best = np.zeros(capacity + 1)
    for i in range(value.size):
        for c in range(capacity, weight[i] - 1, -1):
            best[c] = max(best[c], best[c - weight[i]] + value[i])
    return best[capacity]


@PROGRAMS.at(floats(24, low=18.0, high=23.0), 20.0, 0.5, 1.7)
@njit
def thermostat_state_machine(outside, target, band, power):
    OFF, HEATING, COOLING = 0, 1, 2
    state = OFF
    temp = 17.0
    energy = 0.0
    for x in outside:
        if state == OFF:
            if temp < target - band:
                state = HEATING
            elif temp > target + band:
                state = COOLING
        elif state == HEATING and temp > target:
            state = OFF
        elif state == COOLING and temp < target:
            state = OFF
        if state == HEATING:
            temp += 0.3 * power
            energy += power**2
        elif state == COOLING:
            temp -= 0.2 * power
            energy += 0.5 * power**2
        temp += 0.1 * (x - temp)
    return energy + temp**2


@njit
def _activation(x, name="tanh", slope=0.1):
    if name == "tanh":
        return np.tanh(x)
    if name == "relu":
        return np.maximum(x, 0.0)
    if name == "leaky":
        return np.where(x > 0, x, slope * x)
    if name == "softplus":
        return np.log1p(np.exp(x))
    raise NotImplementedError


@MORE.at(
    floats(3, low=-1.0, high=1.0),
    (floats(4, 3, low=-1.0, high=1.0), floats(2, 4, low=-1.0, high=1.0)),
    (floats(4, low=-1.0), floats(2, low=-1.0)),
)
@njit
def layers_in_tuples_with_default_activations(x, weights, biases):
    h = _activation(weights[0] @ x + biases[0])
    h = _activation(weights[1] @ h + biases[1], "leaky", slope=0.2)
    return np.sum(_activation(h, name="softplus"))


@PROGRAMS.at(floats(4), 0.5, 11)
@njit
def metropolis_chain_with_active_log_density(theta, scale, seed):
    np.random.seed(seed)
    x = np.zeros(theta.size)
    log_p = -0.5 * np.sum((x - theta) ** 2)
    kept = 0.0
    for _ in range(20):
        prop = x + scale * np.random.normal(0.0, 1.0, theta.size)
        new = -0.5 * np.sum((prop - theta) ** 2)
        if np.log(np.random.random()) < new - log_p:
            x, log_p = prop, new
        kept += log_p + x[0] * theta[1]
    return kept


@PROGRAMS.at(floats(5), 0.1)
@njit
def caught_exception_falls_back(x, floor):
    total = 0.0
    for i in range(x.size):
        try:
            if x[i] > 1.2:
                raise ValueError
            total += math.log(x[i])
        except Exception:
            total += floor * x[i] ** 2
    return total


Box = namedtuple("Box", ["low", "high"])


@PROGRAMS.at(np.array([1.5, -0.2, 0.4]), Box(np.zeros(3), np.ones(3)), 3.0)
@njit
def projected_gradient_steps(x, box, target):
    for _ in range(4):
        g = 2 * (x - target * np.array([0.1, 0.2, 0.3]))
        x = np.minimum(np.maximum(x - 0.1 * g, box.low), box.high)
    return np.sum(x * x)


@PROGRAMS.at(floats(7, low=0.1, high=0.9), 0.3)
@njit
def recursive_adaptive_quadrature(c, end):
    return _adaptive(c, 0.0, end, 1e-3, 0)


@njit
def _f(c, x):
    s = 0.0
    for k in range(c.size):
        s = s * x + c[k]
    return math.exp(-s)


@njit
def _adaptive(c, a, b, tol, depth):
    m = 0.5 * (a + b)
    whole = (b - a) / 6 * (_f(c, a) + 4 * _f(c, m) + _f(c, b))
    p, q = 0.5 * (a + m), 0.5 * (m + b)
    left = (m - a) / 6 * (_f(c, a) + 4 * _f(c, p) + _f(c, m))
    right = (b - m) / 6 * (_f(c, m) + 4 * _f(c, q) + _f(c, b))
    if depth >= 3 or abs(left + right - whole) < tol * 1e-4:
        return left + right
    return _adaptive(c, a, m, tol / 2, depth + 1) + _adaptive(c, m, b, tol / 2, depth + 1)


@PROGRAMS.at(floats(4, 4))
@njit
def determinant_by_minors(m):
    n = m.shape[0]
    if n == 1:
        return m[0, 0]
    total = 0.0
    for j in range(n):
        minor = np.empty((n - 1, n - 1))
        for a in range(1, n):
            k = 0
            for b in range(n):
                if b != j:
                    minor[a - 1, k] = m[a, b]
                    k += 1
        total += (-1) ** j * m[0, j] * determinant_by_minors(minor)
    return total


@PROGRAMS.at(floats(3, 3))
@njit
def jacobi_eigenvalues(a):
    s = 0.5 * (a + a.T)
    n = 3
    for _ in range(6):
        for p in range(n - 1):
            for q in range(p + 1, n):
                if abs(s[p, q]) < 1e-14:
                    continue
                theta = (s[q, q] - s[p, p]) / (2 * s[p, q])
                t = (1.0 if theta >= 0 else -1.0) / (abs(theta) + math.sqrt(theta * theta + 1))
                c = 1 / math.sqrt(t * t + 1)
                sn = t * c
                for k in range(n):
                    x, y = s[k, p], s[k, q]
                    s[k, p], s[k, q] = c * x - sn * y, sn * x + c * y
                for k in range(n):
                    x, y = s[p, k], s[q, k]
                    s[p, k], s[q, k] = c * x - sn * y, sn * x + c * y
    d = np.diag(s).copy()
    d.sort()
    return d


@PROGRAMS.at(floats(16))
@njit
def fft_by_real_pairs(x):
    n = x.size
    re, im = x.copy(), np.zeros(n)
    j = 0
    for i in range(1, n):
        bit = n >> 1
        while j & bit:
            j ^= bit
            bit >>= 1
        j ^= bit
        if i < j:
            re[i], re[j] = re[j], re[i]
    length = 2
    while length <= n:
        ang = -2 * math.pi / length
        for start in range(0, n, length):
            for k in range(length // 2):
                wr, wi = math.cos(ang * k), math.sin(ang * k)
                a, b = start + k, start + k + length // 2
                tr, ti = re[b] * wr - im[b] * wi, re[b] * wi + im[b] * wr
                re[b], im[b] = re[a] - tr, im[a] - ti
                re[a] += tr
                im[a] += ti
        length <<= 1
    return np.sqrt(re[1:5] ** 2 + im[1:5] ** 2)


@PROGRAMS.at(floats(6), floats(6, seed=1), floats(6, seed=2))
@njit
def lists_of_tuples_are_walked(x, y, m):
    bodies = [(x[i], y[i], m[i]) for i in range(len(x))]
    e = 0.0
    for i, (a, b, c) in enumerate(bodies):
        for p, q, r in bodies[i + 1 :]:
            e -= c * r / math.sqrt((a - p) ** 2 + (b - q) ** 2 + 0.01)
    return e


@PROGRAMS.at(floats(6))
@njit
def stack_machine(x):
    program = [0, 1, 10, 2, 11, 3, 12, 4, 10, 5, 13]
    stack = [0.0]
    stack.pop()
    for op in program:
        if op < 10:
            stack.append(x[op])
            continue
        b = stack.pop()
        a = stack.pop()
        if op == 10:
            stack.append(a + b)
        elif op == 11:
            stack.append(a * b)
        elif op == 12:
            stack.append(a / b)
        else:
            stack.append(a - b * a)
    return stack[-1]


@PROGRAMS.at(floats(7), 3)
@njit
def priority_queue_by_hand(x, k):
    heap = np.empty(x.size)
    n = 0
    for v in x:
        heap[n] = v
        i = n
        n += 1
        while i > 0 and heap[(i - 1) // 2] > heap[i]:
            heap[i], heap[(i - 1) // 2] = heap[(i - 1) // 2], heap[i]
            i = (i - 1) // 2
    total = 0.0
    for r in range(k):
        total += heap[0] ** 2 * (r + 1)
        n -= 1
        heap[0] = heap[n]
        i = 0
        while True:
            c = 2 * i + 1
            if c >= n:
                break
            if c + 1 < n and heap[c + 1] < heap[c]:
                c += 1
            if heap[i] <= heap[c]:
                break
            heap[i], heap[c] = heap[c], heap[i]
            i = c
    return total


@PROGRAMS.at(floats(6), 2.5, 1e-10, argnums=(0,))
@njit
def newton_on_an_implicit_equation(c, guess, tol):
    x = guess
    for _ in range(50):
        f = 0.0
        df = 0.0
        for k in range(c.size):
            f += c[k] * math.exp(-0.3 * k * x) - 0.4
            df -= 0.3 * k * c[k] * math.exp(-0.3 * k * x)
        step = f / df
        x -= step
        if abs(step) < tol:
            break
    else:
        raise RuntimeError("no convergence")
    return x


class Material(NamedTuple):
    young: float
    poisson: float
    name: str


@MORE.at(Material(2.1, 0.3, "steel"), floats(4, 2))
@njit
def element_stiffness(material, xy):
    e, nu = material.young, material.poisson
    if material.name == "steel":
        e = e * 1.1
    d = e / (1 - nu**2) * np.array([[1.0, nu, 0.0], [nu, 1.0, 0.0], [0.0, 0.0, (1 - nu) / 2]])
    k = np.zeros((8, 8))
    gauss = 1 / np.sqrt(3.0)
    for s in (-gauss, gauss):
        for t in (-gauss, gauss):
            dn = 0.25 * np.array([[-(1 - t), 1 - t, 1 + t, -(1 + t)], [-(1 - s), -(1 + s), 1 + s, 1 - s]])
            jac = dn @ (xy + np.array([[0.0, 0.0], [3.0, 0.0], [3.0, 3.0], [0.0, 3.0]]))
            det = jac[0, 0] * jac[1, 1] - jac[0, 1] * jac[1, 0]
            inv = np.array([[jac[1, 1], -jac[0, 1]], [-jac[1, 0], jac[0, 0]]]) / det
            g = inv @ dn
            b = np.zeros((3, 8))
            for i in range(4):
                b[0, 2 * i] = g[0, i]
                b[1, 2 * i + 1] = g[1, i]
                b[2, 2 * i] = g[1, i]
                b[2, 2 * i + 1] = g[0, i]
            k += b.T @ d @ b * det
    return k


@pytest.mark.parametrize("case", [*PROGRAMS, *MORE.slow()], ids=str)
def test_gradient(case: Case) -> None:
    case.check()
