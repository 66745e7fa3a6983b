"""Small versions of what people differentiate: physics, statistics, finance, learning, geometry."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()
MORE = Catalogue()  # run with the slow tests


@PROGRAMS.at(floats(6, 2), floats(3, seed=1), floats(3, 2, seed=2), floats(3, 2, seed=3))
@njit
def gaussian_mixture(x, alpha, mean, log_scale):
    total = 0.0
    m = alpha.max()
    norm = m + math.log(np.sum(np.exp(alpha - m)))
    for i in range(x.shape[0]):
        terms = np.empty(alpha.size)
        for k in range(alpha.size):
            q = 0.0
            logdet = 0.0
            for d in range(x.shape[1]):
                z = (x[i, d] - mean[k, d]) * math.exp(-log_scale[k, d])
                q += z * z
                logdet += log_scale[k, d]
            terms[k] = alpha[k] - norm - 0.5 * q - logdet
        t = terms.max()
        total += t + math.log(np.sum(np.exp(terms - t)))
    return total


@PROGRAMS.at(floats(5, 3, low=0.0, high=3.0))
@njit
def lennard_jones(x):
    e = 0.0
    for i in range(x.shape[0]):
        for j in range(i + 1, x.shape[0]):
            r2 = 0.0
            for k in range(3):
                d = x[i, k] - x[j, k]
                r2 += d * d
            s6 = 1.0 / (r2 * r2 * r2)
            e += 4.0 * (s6 * s6 - s6)
    return e


@PROGRAMS.at(floats(4, 3, low=0.0, high=3.0), 2.2)
@njit
def pairs_within_a_cutoff(x, cutoff):
    e = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[0]):
            if i == j:
                continue
            d = x[i] - x[j]
            r = math.sqrt(np.sum(d * d))
            if r < cutoff:
                e += (1 - r / cutoff) ** 2
    return e


@PROGRAMS.at(floats(5, 6), 0.1, 4)
@njit
def heat_in_two_dimensions(u, k, steps):
    u = u.copy()
    new = u.copy()
    for _ in range(steps):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new[i, j] = u[i, j] + k * (u[i + 1, j] + u[i - 1, j] + u[i, j + 1] + u[i, j - 1] - 4 * u[i, j])
        u, new = new, u
    return np.sum(u**2)


@MORE.at(floats(6, 5), 0.05)
@njit
def heat_by_slices(u, k):
    for _ in range(3):
        u[1:-1, 1:-1] += k * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    return np.sum(u * u)


@njit
def _lotka_volterra(y, p, out):
    out[0] = p[0] * y[0] - p[1] * y[0] * y[1]
    out[1] = p[2] * y[0] * y[1] - p[3] * y[1]


@PROGRAMS.at(np.array([1.0, 0.5]), np.array([1.1, 0.4, 0.3, 0.9]), 0.05, 12)
@njit
def runge_kutta(y0, p, h, steps):
    y = y0.copy()
    k1, k2, k3, k4 = np.empty(2), np.empty(2), np.empty(2), np.empty(2)
    for _ in range(steps):
        _lotka_volterra(y, p, k1)
        _lotka_volterra(y + 0.5 * h * k1, p, k2)
        _lotka_volterra(y + 0.5 * h * k2, p, k3)
        _lotka_volterra(y + h * k3, p, k4)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return y[0] * y[1] + y[0] ** 2


@PROGRAMS.at(np.array([1.0, 0.0, 0.0, 1.0]), 0.1)
@njit
def kepler_leapfrog(state, h):
    x, y, u, v = state[0], state[1], state[2], state[3]
    for _ in range(20):
        r3 = (x * x + y * y) ** 1.5
        u -= 0.5 * h * x / r3
        v -= 0.5 * h * y / r3
        x += h * u
        y += h * v
        r3 = (x * x + y * y) ** 1.5
        u -= 0.5 * h * x / r3
        v -= 0.5 * h * y / r3
    return x * v - y * u + x


@PROGRAMS.at(1.0, 1e-4, argnums=(0,))
@njit
def adaptive_step(x, tolerance):
    t = 0.0
    h = 0.1
    y = x
    while t < 1.0:
        if t + h > 1.0:
            h = 1.0 - t
        a = y - h * y * y
        half = y - 0.5 * h * y * y
        b = half - 0.5 * h * half * half
        error = abs(a - b)
        if error > tolerance and h > 0.01:
            h *= 0.5
            continue
        t += h
        y = b
        if error < tolerance / 4:
            h *= 1.5
    return y


PROGRAMS.at(floats(4, low=90.0, high=110.0), floats(4, low=95.0, high=105.0, seed=1), 0.03, 0.2)(
    njit(
        lambda s, k, r, v: np.sum(
            s * np.exp(-((np.log(s / k) + (r + v * v / 2)) ** 2)) - k * np.exp(-r) / (1 + np.exp(-(s - k) / (v * k)))
        )
    )
)


@PROGRAMS.at(100.0, 105.0, 0.02, 0.25, 12)
@njit
def binomial_tree(s, k, r, v, n):
    dt = 1.0 / n
    u = math.exp(v * math.sqrt(dt))
    d = 1.0 / u
    p = (math.exp(r * dt) - d) / (u - d)
    value = np.empty(n + 1)
    for i in range(n + 1):
        value[i] = max(k - s * u ** (n - i) * d**i, 0.0)
    for step in range(n - 1, -1, -1):
        for i in range(step + 1):
            hold = math.exp(-r * dt) * (p * value[i] + (1 - p) * value[i + 1])
            value[i] = max(hold, k - s * u ** (step - i) * d**i)
    return value[0]


@PROGRAMS.at(floats(8, 3), np.array([0, 1, 1, 0, 1, 0, 0, 1]), floats(3, seed=1), 0.2)
@njit
def logistic_regression(x, y, w, b):
    loss = 0.0
    for i in range(x.shape[0]):
        z = b
        for j in range(x.shape[1]):
            z += x[i, j] * w[j]
        loss += math.log1p(math.exp(-z)) if y[i] == 1 else math.log1p(math.exp(z))
    return loss / x.shape[0] + 0.01 * np.sum(w * w)


@PROGRAMS.at(floats(6, 3), floats(3, 4, seed=1), np.array([0, 3, 1, 1, 2, 0]))
@njit
def softmax_regression(x, w, labels):
    z = x @ w
    loss = 0.0
    for i in range(z.shape[0]):
        m = np.max(z[i])
        loss += m + np.log(np.sum(np.exp(z[i] - m))) - z[i, labels[i]]
    return loss


@PROGRAMS.at(floats(5, 2), floats(3, 2, seed=1), floats(3, 3, seed=2), floats(3, seed=3))
@njit
def recurrent_network(inputs, wx, wh, b):
    h = np.zeros(3)
    for t in range(inputs.shape[0]):
        h = np.tanh(wx @ inputs[t] + wh @ h + b)
    return np.sum(h * h)


@njit
def _sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


@PROGRAMS.at(floats(4, 2), floats(8, 2, seed=1), floats(8, 2, seed=2), floats(8, seed=3))
@njit
def lstm(inputs, wx, wh, b):
    h = np.zeros(2)
    c = np.zeros(2)
    for t in range(inputs.shape[0]):
        z = wx @ inputs[t] + wh @ h + b
        i, f, g, o = _sigmoid(z[:2]), _sigmoid(z[2:4]), np.tanh(z[4:6]), _sigmoid(z[6:])
        c = f * c + i * g
        h = o * np.tanh(c)
    return h[0] * h[1] + c.sum()


@PROGRAMS.at(floats(6, 6), floats(3, 3, seed=1))
@njit
def convolution_in_two_dimensions(image, kernel):
    n, m = image.shape[0] - 2, image.shape[1] - 2
    out = np.zeros((n, m))
    for i in range(n):
        for j in range(m):
            for a in range(3):
                for b in range(3):
                    out[i, j] += image[i + a, j + b] * kernel[a, b]
    return np.sum(np.maximum(out, 0.5) ** 2)


@PROGRAMS.at(floats(4, 4))
@njit
def max_pooling(x):
    s = 0.0
    for i in range(0, 4, 2):
        for j in range(0, 4, 2):
            m = x[i, j]
            for a in range(2):
                for b in range(2):
                    m = max(m, x[i + a, j + b])
            s += m * m
    return s


@PROGRAMS.at(floats(3, low=0.1, high=1.0), floats(3, 3, seed=1), floats(3, 2, seed=2), np.array([0, 1, 1, 0, 1]))
@njit
def hidden_markov_forward(start, transition, emission, observed):
    f = start * emission[:, observed[0]]
    log_likelihood = 0.0
    for t in range(1, observed.size):
        g = np.zeros(3)
        for i in range(3):
            for j in range(3):
                g[j] += f[i] * transition[i, j]
        for j in range(3):
            g[j] *= emission[j, observed[t]]
        scale = g.sum()
        log_likelihood += math.log(scale)
        f = g / scale
    return log_likelihood + f[0]


@PROGRAMS.at(floats(10), 0.3, 0.6)
@njit
def garch(returns, alpha, beta):
    h = np.var(returns) + 0.1
    s = 0.0
    for t in range(1, returns.size):
        h = 0.05 + alpha * returns[t - 1] ** 2 + beta * h
        s += 0.5 * (math.log(h) + returns[t] ** 2 / h)
    return s


@PROGRAMS.at(floats(4), np.array([0.1, 1.3, 2.2]), floats(4, low=0.2, high=3.0, seed=2))
@njit
def kalman_filter(z, p, noise):
    x, v = 0.0, 1.0
    s = 0.0
    for t in range(z.size):
        x, v = p[0] * x + p[1], p[0] ** 2 * v + p[2]
        residual = z[t] - x
        total = v + noise[t]
        gain = v / total
        x += gain * residual
        v *= 1 - gain
        s += math.log(total) + residual**2 / total
    return s


@PROGRAMS.at(floats(5), floats(4, seed=1))
@njit
def dynamic_time_warping(a, b):
    n, m = a.size, b.size
    d = np.full((n + 1, m + 1), 1e6)
    d[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            d[i, j] = (a[i - 1] - b[j - 1]) ** 2 + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    return d[n, m]


@PROGRAMS.at(floats(4, 2))
@njit
def polygon_area(p):
    s = 0.0
    for i in range(p.shape[0]):
        j = (i + 1) % p.shape[0]
        s += p[i, 0] * p[j, 1] - p[j, 0] * p[i, 1]
    return abs(s) / 2


@PROGRAMS.at(np.array([0.3, -0.2, 0.5]), floats(3, seed=1))
@njit
def rodrigues_rotation(w, x):
    theta = math.sqrt(w @ w)
    if theta < 1e-8:
        return np.sum(x)
    k = w / theta
    cross = np.array([k[1] * x[2] - k[2] * x[1], k[2] * x[0] - k[0] * x[2], k[0] * x[1] - k[1] * x[0]])
    y = x * math.cos(theta) + cross * math.sin(theta) + k * (k @ x) * (1 - math.cos(theta))
    return y[0] * y[1] + y[2] ** 2


@PROGRAMS.at(floats(11), floats(3, 3, seed=1), floats(3, seed=2))
@njit
def camera_projection(camera, x, weight):
    s = 0.0
    for i in range(x.shape[0]):
        p = np.empty(3)
        for d in range(3):
            p[d] = x[i, d] + camera[d] + camera[3 + d] * x[i, (d + 1) % 3]
        u = camera[6] * p[0] / (p[2] + 5)
        v = camera[7] * p[1] / (p[2] + 5)
        r = u * u + v * v
        f = 1 + camera[8] * r + camera[9] * r * r
        s += weight[i] ** 2 * ((f * u - camera[10]) ** 2 + (f * v) ** 2)
    return s


@PROGRAMS.at(floats(7))
@njit
def rosenbrock(x):
    s = 0.0
    for i in range(x.size - 1):
        s += 100 * (x[i + 1] - x[i] ** 2) ** 2 + (1 - x[i]) ** 2
    return s


@PROGRAMS.at(floats(6), 0.4)
@njit
def cubic_spline_energy(y, x):
    n = y.size
    c, d = np.zeros(n), np.zeros(n)
    for i in range(1, n - 1):
        w = 1.0 / (4.0 - c[i - 1])
        c[i] = w
        d[i] = (6 * (y[i + 1] - 2 * y[i] + y[i - 1]) - d[i - 1]) * w
    m = np.zeros(n)
    for i in range(n - 2, 0, -1):
        m[i] = d[i] - c[i] * m[i + 1]
    return np.sum(m * m) + m[2] * x + y[2] * (1 - x)


@PROGRAMS.at(floats(8), floats(2, seed=1))
@njit
def discrete_fourier_power(x, w):
    s = 0.0
    n = x.size
    for k in range(n):
        re = 0.0
        im = 0.0
        for t in range(n):
            a = 2 * math.pi * k * t / n
            re += x[t] * math.cos(a)
            im -= x[t] * math.sin(a)
        s += math.sqrt(re * re + im * im + 0.01) * (w[0] if k % 2 == 0 else w[1])
    return s


@PROGRAMS.at(np.array([0.9, 0.3, 0.5]), 200)
@njit
def many_small_steps(p, steps):
    x, v = p[0], p[1]
    for k in range(steps):
        v += 0.01 * (-x - p[2] * v + math.sin(0.01 * k))
        x += 0.01 * v
        if x < -0.5:
            v = -0.8 * v
            x = -1.0 - x
    return x * x + v * v


@PROGRAMS.at(floats(4, seed=9), 30)
@njit
def monte_carlo_with_its_own_generator(p, n):
    state = 12345
    s = 0.0
    for _ in range(n):
        state = (1103515245 * state + 12345) % 2147483648
        u = state / 2147483648.0
        s += math.exp(-p[0] * u) * math.cos(p[1] * u + p[2]) + p[3] * u * u
    return s / n


@PROGRAMS.at(floats(5), 20)
@njit
def monte_carlo_with_numpy_random(x, n):
    np.random.seed(7)
    s = 0.0
    for _ in range(n):
        z = np.random.normal()
        k = np.random.randint(0, 5)
        s += (x[k] * z + x[0]) ** 2
    return s / n


@PROGRAMS.at(floats(3, 3), 3)
@njit
def matrix_exponential_by_squaring(a, squarings):
    m = a / 2.0**squarings
    e = np.eye(3)
    term = np.eye(3)
    for k in range(1, 8):
        term = term @ m / k
        e = e + term
    for _ in range(squarings):
        e = e @ e
    return np.trace(e) + e[0, 2]


@pytest.mark.parametrize("case", [*PROGRAMS, *MORE.slow()], ids=str)
def test_gradient(case: Case):
    case.check()
