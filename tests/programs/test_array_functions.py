"""NumPy functions that Numba lowers to loops: reductions, with axis where it has them, scans, joins, rearrangements."""

from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from tests.tools.catalogue import Case, Catalogue, floats

PROGRAMS = Catalogue()


@PROGRAMS.at(floats(5))
@PROGRAMS.at(floats(0))
@PROGRAMS.at(floats(3, 4))
@PROGRAMS.at(floats(8)[::2])
@njit
def sum_of_squares(x):
    return np.sum(x * x)


@PROGRAMS.at(floats(5))
@njit
def sum_method(x):
    return x.sum() ** 2


@PROGRAMS.at(floats(3, 4))
@njit
def sum_over_first_axis(x):
    s = np.sum(x, axis=0)
    return np.sum(s * s * s)


@PROGRAMS.at(floats(3, 4))
@njit
def sum_over_last_axis(x):
    s = x.sum(axis=1)
    return s[0] * s[1] + s[2] ** 2


@PROGRAMS.at(floats(2, 3, 2))
@njit
def sum_over_middle_axis(x):
    s = x.sum(1)
    return np.sum(s * s)


@PROGRAMS.at(floats(5))
@PROGRAMS.at(floats(2, 3))
@njit
def product(x):
    return np.prod(x) + x.prod() ** 2


@PROGRAMS.at(np.array([1.5, 0.0, 2.0]))
@PROGRAMS.at(np.array([1.5, 0.0, 2.0, 0.0]))
@njit
def product_with_zeros(x):
    return np.prod(x)


@PROGRAMS.at(floats(6))
@PROGRAMS.at(floats(2, 3))
@njit
def mean(x):
    return np.mean(x) * x.mean() ** 2


@PROGRAMS.at(floats(6))
@PROGRAMS.at(floats(2, 3))
@njit
def variance(x):
    return np.var(x) + x.var() * 2


@PROGRAMS.at(floats(6))
@njit
def standard_deviation(x):
    return np.std(x) / x.mean() + x.std()


@PROGRAMS.at(floats(6))
@njit
def standardised(x):
    z = (x - x.mean()) / x.std()
    return np.sum(z**3)


@PROGRAMS.at(floats(6))
@PROGRAMS.at(floats(2, 3))
@njit
def minimum_and_maximum(x):
    return np.min(x) * np.max(x) ** 2 + x.min() - x.max()


@PROGRAMS.at(floats(6))
@njit
def peak_to_peak(x):
    return np.ptp(x) ** 2


@PROGRAMS.at(floats(5))
@njit
def median_odd(x):
    return np.median(x) ** 2


@PROGRAMS.at(floats(6))
@njit
def median_even(x):
    return np.median(x) ** 2


@PROGRAMS.at(floats(5))
@PROGRAMS.at(floats(2, 3))
@njit
def cumulative_sum(x):
    c = np.cumsum(x)
    return np.sum(c * c)


@PROGRAMS.at(floats(5))
@njit
def cumulative_product(x):
    c = np.cumprod(x)
    return np.sum(c * c)


@PROGRAMS.at(floats(6))
@njit
def difference(x):
    d = np.diff(x)
    return np.sum(d**3) + np.diff(x, 2)[0] ** 2


@PROGRAMS.at(floats(4), floats(3, seed=1))
@njit
def concatenated(x, y):
    z = np.concatenate((x, y, x))
    return np.sum(z * z * np.arange(11))


@PROGRAMS.at(floats(2, 3), floats(2, 2, seed=1))
@njit
def concatenated_along_axis(x, y):
    z = np.concatenate((x, y), axis=1)
    return np.sum(z[0] * z[1])


@PROGRAMS.at(floats(4), floats(4, seed=1))
@njit
def stacked(x, y):
    z = np.stack((x, y))
    w = np.vstack((x, y))
    v = np.hstack((x, y))
    c = np.column_stack((x, y))
    return np.sum(z[0] * w[1]) + v[5] * c[2, 1] ** 2


@PROGRAMS.at(floats(3), 1.4)
@njit
def appended(x, a):
    y = np.append(x, a * x[0])
    return np.sum(y * y)


@PROGRAMS.at(floats(4))
@njit
def repeated(x):
    y = np.repeat(x, 3)
    return np.sum(y * y * np.arange(12))


@PROGRAMS.at(floats(5), 2)
@PROGRAMS.at(floats(5), -1)
@njit
def rolled(x, k):
    return np.sum(np.roll(x, k) * x * x)


@PROGRAMS.at(floats(3), floats(4, seed=1))
@njit
def outer_product(x, y):
    z = np.outer(x, y)
    return np.sum(z * z * z)


@PROGRAMS.at(floats(2, 2), floats(2, 3, seed=1))
@njit
def kronecker_product(x, y):
    return np.sum(np.kron(x, y) ** 2)


@PROGRAMS.at(floats(6), 0.8, 1.6)
@njit
def clipped(x, low, high):
    return np.sum(np.clip(x, low, high) ** 2)


@PROGRAMS.at(floats(6))
@njit
def clipped_method(x):
    return np.sum(x.clip(0.9, 1.4) * x)


@PROGRAMS.at(floats(6), floats(6, seed=1))
@njit
def elementwise_minimum_and_maximum(x, y):
    return np.sum(np.maximum(x, y) * np.minimum(x, 1.1)) + np.sum(np.fmax(x, y) ** 2) - np.fmin(x, y)[0]


@PROGRAMS.at(floats(6))
@njit
def sorted_weights(x):
    return np.sum(np.sort(x) ** 2 * np.arange(6))


@PROGRAMS.at(floats(6))
@njit
def sorted_in_place(x):
    x.sort()
    return x[0] * x[1] + x[5] ** 3


@PROGRAMS.at(floats(4))
@njit
def flips(x):
    m = np.flip(x) * x
    z = x.reshape(2, 2)
    return np.sum(np.fliplr(z) * z * np.flipud(z)) + m[0]


@PROGRAMS.at(floats(3, 3))
@njit
def triangles_and_diagonal(x):
    return np.sum(np.tril(x) * np.triu(x)) + np.trace(x) ** 2 + np.prod(np.diag(x))


@PROGRAMS.at(floats(3))
@njit
def diagonal_matrix(x):
    m = np.diag(x)
    return np.sum(m * m * m) + m[0, 1]


@PROGRAMS.at(floats(5), floats(5, seed=1))
@njit
def trapezoid(y, x):
    t = np.cumsum(x)
    return np.sum(np.diff(t) * (y[1:] + y[:-1])) / 2


@PROGRAMS.at(floats(4), 0.7)
@njit
def polynomial(c, x):
    s = 0.0
    for k in range(c.size):
        s = s * x + c[k]
    return s + np.sum(np.power(x, np.arange(4)) * c)


@PROGRAMS.at(1.7, np.array([0.0, 1.0, 2.0, 3.0]), floats(4))
@njit
def interpolation(x, xp, fp):
    return np.interp(x, xp, fp) ** 2


@PROGRAMS.at(floats(6), floats(3, seed=1))
@njit
def convolution(x, k):
    y = np.convolve(x, k)
    return np.sum(y * y)


@PROGRAMS.at(floats(3), floats(3, seed=1))
@njit
def cross_product(x, y):
    c = np.cross(x, y)
    return np.sum(c * c * c)


@PROGRAMS.at(floats(3, 4))
@njit
def reduction_of_rows(x):
    s = 0.0
    for i in range(3):
        s += np.max(x[i]) * np.mean(x[i]) - np.var(x[i])
    return s


@PROGRAMS.at(floats(3, 4))
@njit
def softmax_rows(x):
    s = 0.0
    for i in range(3):
        e = np.exp(x[i] - np.max(x[i]))
        p = e / e.sum()
        s -= np.log(p[i])
    return s


@PROGRAMS.at(floats(3, 4))
@njit
def column_standardised(x):
    n = x.shape[0]
    m = x.sum(axis=0) / n
    c = x - m
    v = (c * c).sum(axis=0) / n
    return np.sum(c[0] / np.sqrt(v + 0.1))


@PROGRAMS.at(floats(6))
@njit
def expanded_dimensions(x):
    a = np.expand_dims(x, 0)
    b = x.reshape(6, 1)
    return np.sum((a - b) ** 2 * a)


@PROGRAMS.at(floats(6), 2)
@njit
def split(x, k):
    a = x[:k]
    b = x[k:]
    parts = np.split(x, 3)
    return np.sum(a) * np.sum(b * b) + parts[1][0] * parts[2][1]


@PROGRAMS.at(floats(4, 3))
@njit
def any_and_all_decide(x):
    s = 0.0
    for i in range(4):
        if np.all(x[i] > 0.6):
            s += np.sum(x[i] ** 2)
        elif np.any(x[i] > 1.5):
            s += np.prod(x[i])
        else:
            s -= x[i, 0]
    return s


@PROGRAMS.at(floats(5))
@njit
def count_of_the_data(x):
    return np.count_nonzero(x > 1.0) * np.sum(x)


@PROGRAMS.at(floats(4), floats(4, seed=1))
@njit
def correlation(x, y):
    a, b = x - x.mean(), y - y.mean()
    return (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())


@PROGRAMS.at(floats(3, 5))
@njit
def covariance(x):
    return np.sum(np.cov(x) ** 2)


@PROGRAMS.at(floats(5))
@njit
def nan_reductions(x):
    y = x.copy()
    y[2] = np.nan
    return np.nansum(y * y) * np.nanmean(y) + np.nanmax(y)


@PROGRAMS.at(floats(3, 4))
@njit
def vectorised_distance(x):
    s = 0.0
    for i in range(3):
        for j in range(i):
            s += np.sqrt(np.sum((x[i] - x[j]) ** 2))
    return s


@pytest.mark.parametrize("case", PROGRAMS, ids=str)
def test_gradient(case: Case):
    case.check()
