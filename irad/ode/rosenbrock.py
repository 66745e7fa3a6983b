"""A Rosenbrock step for stiff systems: Rodas, of order 4, stiffly accurate and L-stable.

Each of six stages solves a linear system with I - γ h J, where J is the right-hand side's derivative with respect to
the state, from forward mode. There is nothing to iterate.

Source: Hairer, Wanner: Solving Ordinary Differential Equations II, second edition, IV.7 and VI.4.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from irad.api.forward import pushforward
from irad.frontend.inner import inner_jitable
from irad.ode.dense import Steps, put

_GAMMA = 0.25
_NODES = np.array([0.0, 0.386, 0.21, 0.63, 1.0, 1.0])
_ERROR = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 1.0]])
_GAMMA_I = np.array([0.25, -0.1043, 0.1035, -0.03620000000000023, 0.0, 0.0])
_STATES, _SLOPES = np.zeros((6, 6)), np.zeros((6, 6))
for _table, _lines in (
    (
        _STATES,
        (
            (1.544,),
            (0.9466785280815826, 0.2557011698983284),
            (3.314825187068521, 2.896124015972201, 0.9986419139977817),
            (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950),
            (1.221224509226641, 6.019134481288629, 12.53708332932087, -0.6878860361058950, 1.0),
        ),
    ),
    (
        _SLOPES,
        (
            (-5.6688,),
            (-2.430093356833875, -0.2063599157091915),
            (-0.1073529058151375, -9.594562251023355, -20.47028614809616),
            (7.496443313967647, -10.24680431464352, -33.99990352819905, 11.70890893206160),
            (8.083246795921522, -7.981132988064893, -31.52159432874371, 16.31930543123136, -6.058818238834054),
        ),
    ),
):
    for _i, _line in enumerate(_lines):
        _table[_i + 1, : len(_line)] = _line
_DENSE = np.array(
    [
        [10.12623508344586, -7.487995877610167, -34.80091861555747, -7.992771707568823, 1.025137723295662],
        [-0.6762803392801253, 6.087714651680015, 16.43084320892478, 24.76722511418386, -6.594389125716872],
    ]
)


@inner_jitable
def lu_factored(matrix):  # type: ignore[no-untyped-def]
    """Overwrites a matrix with its LU factors, and gives the order of its rows."""
    n = matrix.shape[0]
    order = np.arange(n)
    for k in range(n):
        chosen = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[chosen, k]):
                chosen = i
        if chosen != k:
            order[k], order[chosen] = order[chosen], order[k]
            for j in range(n):
                matrix[k, j], matrix[chosen, j] = matrix[chosen, j], matrix[k, j]
        if matrix[k, k] == 0.0:
            raise ValueError("the linear system of an implicit step of a differential equation is singular")
        for i in range(k + 1, n):
            matrix[i, k] /= matrix[k, k]
            for j in range(k + 1, n):
                matrix[i, j] -= matrix[i, k] * matrix[k, j]
    return order


@inner_jitable
def lu_solve(x, factors, order, right):  # type: ignore[no-untyped-def]
    """Writes the solution for a matrix that was factored."""
    n = order.size
    for i in range(n):
        total = right[order[i]]
        for j in range(i):
            total -= factors[i, j] * x[j]
        x[i] = total
    for i in range(n - 1, -1, -1):
        total = x[i]
        for j in range(i + 1, n):
            total -= factors[i, j] * x[j]
        x[i] = total / factors[i, i]


@inner_jitable
def lu_solve_transposed(x, factors, order, right):  # type: ignore[no-untyped-def]
    """Writes the solution for the transpose of a matrix that was factored."""
    n, found = order.size, right.copy()
    for i in range(n):
        found[i] /= factors[i, i]
        for j in range(i + 1, n):
            found[j] -= factors[i, j] * found[i]
    for i in range(n - 1, -1, -1):
        for j in range(i):
            found[j] -= factors[i, j] * found[i]
        x[order[i]] = found[i]


def rodas(f: Any) -> Steps:
    """The steps for a right-hand side; what they keep are the solutions of the linear systems."""
    derivative = pushforward(f, (0, 1))

    @inner_jitable
    def linear(t, y, args):  # type: ignore[no-untyped-def]
        """The derivatives with respect to time and state."""
        matrix, direction = np.empty((y.size, y.size)), np.zeros(y.size)
        _, df_dt = derivative(t, y, (1.0, direction), *args)
        for j in range(y.size):
            direction = np.zeros(y.size)
            direction[j] = 1.0
            column = derivative(t, y, (0.0, direction), *args)[1]
            for i in range(y.size):
                matrix[i, j] = column[i]
        return df_dt, matrix

    @inner_jitable
    def step(t, h, y, slope, args):  # type: ignore[no-untyped-def]
        df_dt, matrix = linear(t, y, args)
        for i in range(y.size):
            for j in range(y.size):
                matrix[i, j] *= -_GAMMA * h
            matrix[i, i] += 1.0
        order = lu_factored(matrix)
        points, parts, right = np.empty((7, y.size)), np.empty((6, y.size)), np.empty((6, y.size))
        for i in range(6):
            for j in range(y.size):
                total = y[j]
                for k in range(i):
                    total += _STATES[i, k] * parts[k, j]
                points[i, j] = total
            put(right[i], slope if i == 0 else f(t + _NODES[i] * h, points[i], *args))
            for j in range(y.size):
                total = h * (right[i, j] + _GAMMA_I[i] * h * df_dt[j])
                for k in range(i):
                    total += _SLOPES[i, k] * parts[k, j]
                right[i, j] = _GAMMA * total
            lu_solve(parts[i], matrix, order, right[i])
        for j in range(y.size):
            points[6, j] = points[5, j] + parts[5, j]
        slope1 = np.empty(y.size)
        put(slope1, f(t + h, points[6], *args))
        return points[6], slope1, parts

    @inner_jitable
    def dense(t, h, y, y1, parts, args):  # type: ignore[no-untyped-def]
        found = np.zeros((2, y.size))
        for j in range(y.size):
            for i in range(5):
                found[0, j] += _DENSE[0, i] * parts[i, j]
                found[1, j] += _DENSE[1, i] * parts[i, j]
        return found

    return Steps(step, _ERROR, False, dense)
