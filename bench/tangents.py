"""Tangents of the benchmark cases by hand: njit functions ``(tangents, *arguments) -> (value, tangent)``."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from bench.cases.learning.gmm import log_wishart_prior


@njit(error_model="numpy")
def _log_sum_exp(values, values_dot):
    largest = values[0]
    for value in values:
        largest = max(largest, value)
    total, total_dot = 0.0, 0.0
    for i in range(values.size):
        exponential = math.exp(values[i] - largest)
        total += exponential
        total_dot += exponential * values_dot[i]
    return largest + math.log(total), total_dot / total


@njit(error_model="numpy")
def _prior_dot(factors, factors_dot, diagonals, d, gamma, m):
    out = 0.0
    for ik in range(factors.shape[0]):
        for i in range(d):
            out += (gamma * gamma * diagonals[ik, i] ** 2 - m) * factors_dot[ik, i]
        for i in range(d, factors.shape[1]):
            out += gamma * gamma * factors[ik, i] * factors_dot[ik, i]
    return out


@njit(error_model="numpy")
def gmm(tangents, alphas, means, factors, points, gamma, m):
    """GMM log-likelihood: the tangents of the centred and scaled points beside them, softmax weights for the sums."""
    alphas_dot, means_dot, factors_dot = tangents
    n, d = points.shape
    k = alphas.shape[0]
    diagonals = np.exp(factors[:, :d])
    diagonals_dot = diagonals * factors_dot[:, :d]
    sums, sums_dot = np.zeros(k), np.zeros(k)
    for ik in range(k):
        for i in range(d):
            sums[ik] += factors[ik, i]
            sums_dot[ik] += factors_dot[ik, i]
    centred, scaled, scaled_dot = np.empty(d), np.empty(d), np.empty(d)
    terms, terms_dot = np.empty(k), np.empty(k)
    total, total_dot = 0.0, 0.0
    for ix in range(n):
        for ik in range(k):
            for i in range(d):
                centred[i] = points[ix, i] - means[ik, i]
                scaled[i] = diagonals[ik, i] * centred[i]
                scaled_dot[i] = diagonals_dot[ik, i] * centred[i] - diagonals[ik, i] * means_dot[ik, i]
            position = d
            for i in range(d):
                for j in range(i + 1, d):
                    factor = factors[ik, position]
                    scaled[j] += factor * centred[i]
                    scaled_dot[j] += factors_dot[ik, position] * centred[i] - factor * means_dot[ik, i]
                    position += 1
            norm, norm_dot = 0.0, 0.0
            for i in range(d):
                norm += scaled[i] * scaled[i]
                norm_dot += scaled[i] * scaled_dot[i]
            terms[ik] = alphas[ik] + sums[ik] - 0.5 * norm
            terms_dot[ik] = alphas_dot[ik] + sums_dot[ik] - norm_dot
        value, value_dot = _log_sum_exp(terms, terms_dot)
        total += value
        total_dot += value_dot
    constant = -0.5 * n * d * math.log(2.0 * math.pi)
    weight, weight_dot = _log_sum_exp(alphas, alphas_dot)
    prior = log_wishart_prior(factors, d, gamma, m)
    prior_dot = _prior_dot(factors, factors_dot, diagonals, d, gamma, m)
    return constant + total - n * weight + prior, total_dot - n * weight_dot + prior_dot


@njit(error_model="numpy")
def lennard_jones(tangents, positions, epsilon, sigma):
    """Lennard-Jones energy: the tangent of each pair."""
    (directions,) = tangents
    n = positions.shape[0]
    total, total_dot = 0.0, 0.0
    for i in range(n):
        for j in range(i + 1, n):
            dx = positions[i, 0] - positions[j, 0]
            dy = positions[i, 1] - positions[j, 1]
            dz = positions[i, 2] - positions[j, 2]
            inner = (
                dx * (directions[i, 0] - directions[j, 0])
                + dy * (directions[i, 1] - directions[j, 1])
                + dz * (directions[i, 2] - directions[j, 2])
            )
            inverse = 1.0 / (dx * dx + dy * dy + dz * dz)
            s2 = sigma * sigma * inverse
            s6 = s2 * s2 * s2
            total += 4.0 * epsilon * (s6 * s6 - s6)
            total_dot += 24.0 * epsilon * inverse * inner * (s6 - 2.0 * s6 * s6)
    return total, total_dot


@njit(error_model="numpy")
def heat(tangents, initial, target, ratio, steps):
    """Heat equation: the steps are linear, so the tangent of the field takes the same steps."""
    (direction,) = tangents
    n, m = initial.shape
    old, new = initial.copy(), initial.copy()
    old_dot, new_dot = direction.copy(), direction.copy()
    for _ in range(steps):
        for i in range(1, n - 1):
            for j in range(1, m - 1):
                neighbours = old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1]
                new[i, j] = old[i, j] + ratio * (neighbours - 4.0 * old[i, j])
                neighbours_dot = old_dot[i - 1, j] + old_dot[i + 1, j] + old_dot[i, j - 1] + old_dot[i, j + 1]
                new_dot[i, j] = old_dot[i, j] + ratio * (neighbours_dot - 4.0 * old_dot[i, j])
        old, new = new, old
        old_dot, new_dot = new_dot, old_dot
    total, total_dot = 0.0, 0.0
    for i in range(n):
        for j in range(m):
            difference = old[i, j] - target[i, j]
            total += difference * difference
            total_dot += difference * old_dot[i, j]
    return 0.5 * total, total_dot


@njit(error_model="numpy", inline="always")
def _slope(x, y, a, b, c, d):
    return a * x - b * x * y, c * x * y - d * y


@njit(error_model="numpy", inline="always")
def _slope_dot(x, y, x_dot, y_dot, rates, rates_dot):
    product, product_dot = x * y, x_dot * y + x * y_dot
    first = rates_dot[0] * x + rates[0] * x_dot - rates_dot[1] * product - rates[1] * product_dot
    second = rates_dot[2] * product + rates[2] * product_dot - rates_dot[3] * y - rates[3] * y_dot
    return first, second


@njit(error_model="numpy")
def ode(tangents, initial, rates, target, step, steps):
    """Lotka-Volterra by RK4: state, slopes and their tangents in registers."""
    initial_dot, rates_dot = tangents
    a, b, c, d = rates[0], rates[1], rates[2], rates[3]
    p, q = (a, b, c, d), (rates_dot[0], rates_dot[1], rates_dot[2], rates_dot[3])
    x, y, u, v = initial[0], initial[1], initial_dot[0], initial_dot[1]
    half, sixth = 0.5 * step, step / 6.0
    for _ in range(steps):
        x1, y1 = _slope(x, y, a, b, c, d)
        u1, v1 = _slope_dot(x, y, u, v, p, q)
        xi, yi, ui, vi = x + half * x1, y + half * y1, u + half * u1, v + half * v1
        x2, y2 = _slope(xi, yi, a, b, c, d)
        u2, v2 = _slope_dot(xi, yi, ui, vi, p, q)
        xi, yi, ui, vi = x + half * x2, y + half * y2, u + half * u2, v + half * v2
        x3, y3 = _slope(xi, yi, a, b, c, d)
        u3, v3 = _slope_dot(xi, yi, ui, vi, p, q)
        xi, yi, ui, vi = x + step * x3, y + step * y3, u + step * u3, v + step * v3
        x4, y4 = _slope(xi, yi, a, b, c, d)
        u4, v4 = _slope_dot(xi, yi, ui, vi, p, q)
        x += sixth * (x1 + 2.0 * x2 + 2.0 * x3 + x4)
        y += sixth * (y1 + 2.0 * y2 + 2.0 * y3 + y4)
        u += sixth * (u1 + 2.0 * u2 + 2.0 * u3 + u4)
        v += sixth * (v1 + 2.0 * v2 + 2.0 * v3 + v4)
    first, second = x - target[0], y - target[1]
    return first * first + second * second, 2.0 * (first * u + second * v)


_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)


@njit(error_model="numpy")
def black_scholes(tangents, spots, strikes, maturities, volatilities, rate):
    """Black-Scholes: the tangent of a price is made of its sensitivities."""
    spots_dot, strikes_dot, maturities_dot, volatilities_dot, rate_dot = tangents
    total, total_dot = 0.0, 0.0
    for i in range(spots.size):
        spot, strike, maturity, volatility = spots[i], strikes[i], maturities[i], volatilities[i]
        root = math.sqrt(maturity)
        deviation = volatility * root
        d1 = (math.log(spot / strike) + (rate + 0.5 * volatility * volatility) * maturity) / deviation
        d2 = d1 - deviation
        first = 0.5 * (1.0 + math.erf(d1 / math.sqrt(2.0)))
        second = 0.5 * (1.0 + math.erf(d2 / math.sqrt(2.0)))
        discounted = strike * math.exp(-rate * maturity)
        total += spot * first - discounted * second
        vega = spot * root * _DENSITY * math.exp(-0.5 * d1 * d1)
        carried = discounted * second
        total_dot += first * spots_dot[i] - carried / strike * strikes_dot[i] + vega * volatilities_dot[i]
        total_dot += (0.5 * vega * volatility / maturity + rate * carried) * maturities_dot[i]
        total_dot += maturity * carried * rate_dot
    return total, total_dot


@njit(error_model="numpy")
def log_sum_exp(tangents, weights, bias, features, labels, ridge):
    """Softmax regression: scores and their tangents side by side."""
    weights_dot, bias_dot = tangents
    n, width = features.shape
    classes = bias.shape[0]
    scores, scores_dot = np.empty(classes), np.empty(classes)
    total, total_dot = 0.0, 0.0
    for i in range(n):
        for c in range(classes):
            scores[c], scores_dot[c] = bias[c], bias_dot[c]
        for j in range(width):
            feature = features[i, j]
            for c in range(classes):
                scores[c] += feature * weights[j, c]
                scores_dot[c] += feature * weights_dot[j, c]
        largest = scores[0]
        for c in range(1, classes):
            if scores[c] > largest:
                largest = scores[c]
        exponentials, weighted = 0.0, 0.0
        for c in range(classes):
            exponential = math.exp(scores[c] - largest)
            exponentials += exponential
            weighted += exponential * scores_dot[c]
        total += largest + math.log(exponentials) - scores[labels[i]]
        total_dot += weighted / exponentials - scores_dot[labels[i]]
    penalty, penalty_dot = 0.0, 0.0
    for j in range(width):
        for c in range(classes):
            penalty += weights[j, c] * weights[j, c]
            penalty_dot += weights[j, c] * weights_dot[j, c]
    return total / n + 0.5 * ridge * penalty, total_dot / n + ridge * penalty_dot


@njit(error_model="numpy")
def _activate(sums, sums_dot, bias, bias_dot):
    """In place: tanh of the sums and the bias, and its tangent."""
    for i in range(sums.shape[0]):
        for j in range(sums.shape[1]):
            value = np.tanh(sums[i, j] + bias[j])
            sums[i, j] = value
            sums_dot[i, j] = (1.0 - value * value) * (sums_dot[i, j] + bias_dot[j])


@njit(error_model="numpy")
def _layer_dot(values, values_dot, weights, weights_dot):
    sums_dot = values @ weights_dot
    sums_dot += values_dot @ weights
    return sums_dot


@njit(error_model="numpy")
def mlp(tangents, w1, b1, w2, b2, w3, b3, inputs, targets):
    """Perceptron: products by BLAS, the rest in one loop for each layer."""
    w1_dot, b1_dot, w2_dot, b2_dot, w3_dot, b3_dot = tangents
    first, first_dot = inputs @ w1, inputs @ w1_dot
    _activate(first, first_dot, b1, b1_dot)
    second, second_dot = first @ w2, _layer_dot(first, first_dot, w2, w2_dot)
    _activate(second, second_dot, b2, b2_dot)
    output, output_dot = second @ w3, _layer_dot(second, second_dot, w3, w3_dot)
    total, total_dot = 0.0, 0.0
    for i in range(output.shape[0]):
        for j in range(output.shape[1]):
            difference = output[i, j] + b3[j] - targets[i, j]
            total += difference * difference
            total_dot += difference * (output_dot[i, j] + b3_dot[j])
    return total / output.size, 2.0 * total_dot / output.size


BY_NAME = {
    "gmm": gmm,
    "lennard-jones": lennard_jones,
    "heat": heat,
    "ode": ode,
    "black-scholes": black_scholes,
    "log-sum-exp": log_sum_exp,
    "mlp": mlp,
}
