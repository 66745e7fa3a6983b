"""Functions that the tests export, with the signatures that they are exported for."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types

import irad


class Point(NamedTuple):
    """A place in the plane, and weights."""

    x: float
    y: float
    weights: Any


@njit
def numbers(x: float, n: int, flag: bool, z: complex, s: float, b: int) -> Any:
    return (x + n if flag else -x), z * x, not flag, n + b, s * s


@njit
def energy(x: Any, k: float) -> float:
    if k < 0:
        raise ValueError("k must not be negative")
    if k > 1e6:
        raise OverflowError("k is too large", k)
    return 0.5 * k * np.sum(np.diff(x) ** 2) + np.sum(x**3)


@njit
def curve(x: Any) -> Any:
    return np.array([x[0] * x[1], np.sin(x[0]), x[1] ** 3])


@njit
def pulled(x: Any, ct: Any) -> Any:
    value, back = irad.vjp(curve, x)
    return value, back(ct)


@njit
def layouts(c: Any, f: Any, a: Any, fixed: Any, out: Any) -> Any:
    total = 0.0
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            total += c[i, j] * f[i, j] * a[i, j]
            out[i, j] = c[i, j] - a[i, j]
    return total + fixed.sum(), a.T, f


@njit
def moved(p: Any, by: Any) -> Any:
    return Point(p.x + by[0], p.y + by[1], p.weights[::-1]), (p.weights.size, p.weights * p.x)


@njit
def fill(out: Any, value: float) -> None:
    out[:] = value


@njit(boundscheck=True)
def errors(which: int, a: Any) -> float:
    if which == 1:
        return a[7]
    if which == 2:
        return 1.0 / (a[0] - a[0])
    if which == 3:
        raise KeyError("no such thing")
    if which == 4:
        return np.linalg.cholesky(-np.eye(2))[0, 0]
    return a.sum()


@njit
def solved(a: Any, b: Any) -> float:
    factor = np.linalg.cholesky(a @ a.T + np.eye(len(b)))
    return np.dot(np.linalg.solve(factor, b), b)


@njit
def drawn(seed: int, n: int) -> Any:
    np.random.seed(seed)
    return np.random.normal(0.0, 1.0, n)


@njit
def complex_power(z: complex, w: complex) -> complex:
    return z**w


@njit
def reshaped(a: Any) -> Any:
    return np.ascontiguousarray(a).T.reshape(2, 1, 3)[:, 0, 1].copy()


VECTOR = types.float64[::1]
MATRIX = types.float64[:, ::1]
READ_ONLY = types.Array(types.float64, 1, "C", readonly=True)
POINT = types.NamedTuple((types.float64, types.float64, types.float64[::1]), Point)
ENERGY = (VECTOR, types.float64)

EXPORTED: dict[str, Any] = {
    "numbers": (
        numbers,
        (types.float64, types.int64, types.boolean, types.complex128, types.float32, types.uint8),
    ),
    "energy": (energy, ENERGY),
    "force": (irad.grad(energy), ENERGY),
    "energy_and_force": (irad.value_and_grad(energy), ENERGY),
    "energy_into": (irad.value_and_grad_into(energy), (VECTOR, VECTOR, types.float64)),
    "curvature": (irad.hvp(energy), (VECTOR, VECTOR, types.float64)),
    "stiffness": (irad.hessian(energy), ENERGY),
    "slope": (irad.pushforward(curve), (VECTOR, VECTOR)),
    "rows": (irad.jacobian(curve), (VECTOR,)),
    "pulled": (pulled, (VECTOR, VECTOR)),
    "layouts": (
        layouts,
        (MATRIX, types.float64[::1, :], types.float64[:, :], READ_ONLY, types.float64[:, :]),
    ),
    "moved": (moved, (POINT, types.UniTuple(types.float64, 2))),
    "fill": (fill, (VECTOR, types.float64)),
    "errors": (errors, (types.int64, VECTOR)),
    "solved": (solved, (MATRIX, VECTOR)),
    "solved_slopes": (irad.grad(solved, argnums=(0, 1)), (MATRIX, VECTOR)),
    "drawn": (drawn, (types.int64, types.int64)),
    "complex_power": (complex_power, (types.complex128, types.complex128)),
    "reshaped": (reshaped, (types.float64[:, :],)),
}


@njit
def algebra(a: Any, b: Any) -> Any:
    """Numbers from all functions of linear algebra that Numba has, which signs of vectors do not change."""
    found = np.zeros(14)
    square = np.ascontiguousarray(a[: a.shape[1]])
    hermitian = square @ np.conj(square.T)
    found[0] = np.abs(np.linalg.inv(square)).sum()
    found[1] = np.abs(np.linalg.det(square))
    found[2] = np.abs(np.linalg.eig(square.astype(np.complex128))[0]).sum()
    values, vectors = np.linalg.eigh(hermitian)
    found[3] = np.abs(hermitian @ vectors - vectors * values.astype(a.dtype)).max() < 1e-3
    found[4] = values.sum()
    found[5] = np.linalg.svd(a)[1].sum()
    q, r = np.linalg.qr(a)
    found[6] = np.abs(q @ r - a).max() < 1e-4
    solution, residual, rank, _ = np.linalg.lstsq(a, b)
    found[7] = np.abs(solution).sum() + np.abs(residual).sum() + rank
    found[8] = np.abs(np.linalg.pinv(a)).sum()
    found[9] = np.linalg.norm(b)
    found[10] = np.abs(np.dot(b, b)) + np.abs(np.vdot(b, b + b[0]))
    found[11] = np.abs(a.T @ b).sum()
    found[12] = np.abs(np.linalg.solve(square, b[: a.shape[1]])).sum()
    found[13] = np.abs(np.linalg.cholesky(hermitian)).sum()
    return found


@njit
def real_eigenvalues(a: Any) -> float:
    return np.abs(np.linalg.eigvals(a + a.T)).sum()


@njit
def special(x: float, n: int) -> float:
    fraction, exponent = math.frexp(x)
    total = math.gamma(x) + math.lgamma(x) + math.erf(x) + math.erfc(x) + math.ldexp(x, n) + fraction * exponent
    return total + np.nextafter(x, 2.0) + math.frexp(math.inf)[1] + x**n + x % 0.7 + x // 0.7


TYPES = {"s": types.float32, "d": types.float64, "c": types.complex64, "z": types.complex128}
ALGEBRA: dict[str, Any] = {f"algebra_{letter}": (algebra, (kind[:, ::1], kind[::1])) for letter, kind in TYPES.items()}
ALGEBRA["real_eigenvalues"] = (real_eigenvalues, (types.float64[:, ::1],))
ALGEBRA["special"] = (special, (types.float64, types.int64))
