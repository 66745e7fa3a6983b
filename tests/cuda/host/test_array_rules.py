"""Rules for functions of array libraries: each against differences, on every form of its arguments."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.fft
import scipy.signal
import scipy.special
from numba import cuda

import irad
import irad.cuda
from irad.cuda.arrays.rules import elementwise
from irad.ruleset.symbols import TABLE, integer_arguments
from tests.cuda.host.array_case import check

RNG = np.random.default_rng(3)
V, W = RNG.normal(size=4), RNG.normal(size=4)
A, B = RNG.normal(size=(3, 4)), RNG.normal(size=(4, 2))
T, U = RNG.normal(size=(2, 3, 4)), RNG.normal(size=(2, 4, 3))
S = RNG.normal(size=(3, 3)) + 3.0 * np.eye(3)
Z, Y = V + 1j * W, W - 0.5j * V
C, D = A + 1j * RNG.normal(size=A.shape), B - 1j * RNG.normal(size=B.shape)
MASK = np.array([[True, False, False, True], [False, False, True, False], [False, False, False, False]])
POSITIVE = np.array([0.3, 1.2, 2.5])

RULES = dict(elementwise._elementwise_rules())
CALLED = [name for name in RULES if hasattr(np, name) or hasattr(scipy.special, name)]
SHORT = 1e-5  # of the derivative, which is a central difference


def _function(name):
    return getattr(np, name, None) or getattr(scipy.special, name)


def _operands(rule):
    """Points of the domains, away from kinks; whole numbers where the function takes these."""
    rng = np.random.default_rng(len(rule.name))
    integers = integer_arguments(rule.name) if rule.name in TABLE else ()
    for i in elementwise.operands_of(rule):
        low, high = rule.domains[i].low, rule.domains[i].high
        found = rng.uniform(low, high, 5)
        yield np.round(found) if i in integers else found


def _active(rule):
    return [place for place in range(len(elementwise.operands_of(rule))) if place not in elementwise.refused_of(rule)]


@pytest.mark.parametrize("name", [name for name in CALLED if _active(RULES[name])])
def test_elementwise_functions(name):
    rule, f = RULES[name], _function(name)
    values, active = list(_operands(rule)), _active(RULES[name])
    constants = [float(each[0]) for each in values]

    def of_active(*given):
        mixed = list(constants)
        for place, each in zip(active, given, strict=True):
            mixed[place] = each
        return f(*mixed)

    check(of_active, *(values[place] for place in active), tolerance=SHORT, records=1)


@pytest.mark.parametrize("name", sorted(elementwise.HOLOMORPHIC))
def test_elementwise_functions_of_complex_numbers(name):
    f = getattr(np, name)
    check(f, *((Z, Y) if f.nin == 2 else (Z,)))


@pytest.mark.parametrize("name", ["jv", "gammainc", "betainc", "yn"])
def test_orders_have_no_derivative(name):
    f = _function(name)
    with irad.cuda.executor(), irad.cuda.Tape():
        given = [cuda.to_device(np.full(2, 0.5 + i)) for i in range(f.nin)]
        with pytest.raises(irad.UnsupportedError, match="argument 0 is an array with a derivative"):
            f(*given)


def _assigned(x):
    y = x * x
    y[0], y[1:3], y[3] = 1, np.array([2, 3]), True
    return y + x


def _put(x):
    y, z = x * x, x * x
    y.put([0, 1], [2, 3])
    np.copyto(y[3:], 1)
    z.fill(4)
    return y + z * x


@pytest.mark.parametrize(
    ("f", "arrays"),
    [
        (_assigned, (V,)),
        (_put, (V,)),
        (lambda x: np.where(x > 0.0, x, 1), (V,)),
        (lambda x: np.where(x > 0.0, np.arange(4), x), (V,)),
        (lambda x: np.pad(x, 1, constant_values=2), (V,)),
        (lambda x: np.insert(np.append(x, [1, 2]), 1, 3), (V,)),
        (lambda x: np.concatenate([x, np.array([1, 2], np.uint64)]), (V,)),
        (lambda z: np.stack([z, np.arange(4)]), (Z,)),
        (lambda x: np.choose(np.array([0, 1, 0, 1]), [x, 2]), (V,)),
    ],
)
def test_integers_that_are_moved_are_constants(f, arrays):
    check(f, *arrays)


TWO = [name for name in CALLED if getattr(_function(name), "nin", 1) == 2 and len(_active(RULES[name])) == 2]
TWO.remove("pdtri")  # of a count and a probability: the operands below are neither


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_operands(name):
    f = _function(name)
    check(lambda x: f(x, 1.7), POSITIVE + 0.01)
    check(lambda x: f(1.7, x), POSITIVE + 0.01)
    check(f, np.abs(A) + 0.5, np.abs(V) + 0.6)  # broadcast
    check(f, np.abs(V) + 0.5, np.abs(A[:, :1]) + 0.6)
    if name in elementwise.HOLOMORPHIC:
        check(f, Z, V)


@pytest.mark.parametrize(
    ("f", "arrays"),
    [
        # operators
        (lambda x, y: -x + 2.0 * y - x * y / (y + 4.0), (V, W)),
        (lambda x: 1.0 / x + 3.0 - x, (V,)),
        (lambda x: x**2 + x**3 + abs(x), (V,)),
        (lambda x: x**2.5 + 2.0**x + x**-1, (POSITIVE,)),
        (lambda x: x % 1.0 + divmod(7, 2)[1], (POSITIVE,)),
        (lambda x: x / [1.0, 2.0, 3.0] + np.power(x, [1, 2, 3]) + np.hypot((3, 2, 1), x), (POSITIVE,)),
        (lambda x, y: x @ y, (A, B)),
        # complex numbers
        (np.abs, (Z,)),
        (lambda z: z.real * 2.0 + z.imag**2, (Z,)),
        (lambda z: np.real(z * z) + np.imag(z), (Z,)),
        (lambda z: np.conj(z) * z**2, (Z,)),
        (lambda x: (x + 0j) * 1j, (V,)),
        # clip and the like
        (lambda x: np.clip(x, -0.5, 0.5), (V,)),
        (lambda x: x.clip(-0.5, None), (V,)),
        (lambda x: x.clip(max=0.1), (V,)),
        (lambda x, low, high: np.clip(x, low, high), (V, W - 1.0, W + 1.0)),
        (lambda x, high: np.clip(x, a_min=None, a_max=high), (V, W)),
        (lambda x, low: np.clip(x, min=low) if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else x + low, (V, W)),
        (np.nan_to_num, (V,)),
        (lambda x: np.round(x, 1) + x.round(), (V,)),
        (lambda x: x.astype(np.complex128) * 1j, (V,)),
        # reductions
        *(
            (lambda x, f=f, k=k: f(x, **k), (T,))
            for f in (np.sum, np.mean, np.prod, np.max, np.min, np.var, np.std)
            for k in ({}, {"axis": 1}, {"axis": (0, -1)}, {"axis": 2, "keepdims": True})
        ),
        *(
            (lambda x, f=f: getattr(x, f)(axis=0) * getattr(x, f)(), (A,))
            for f in ("sum", "mean", "prod", "max", "min", "var", "std")
        ),
        (lambda x: np.sum(x, 0) * np.prod(x), (C,)),
        (lambda x: np.prod(x), (np.array([2.0, 0.0, 3.0]),)),
        (lambda x: np.prod(x), (np.array([2.0, 0.0, 0.0]),)),
        (lambda x: np.var(x, ddof=1), (V,)),
        (lambda x: np.add.reduce(x) * np.multiply.reduce(x, axis=None), (A,)),
        (lambda x: np.maximum.reduce(x) + np.minimum.reduce(x, axis=-2), (A,)),
        (lambda x: np.add.accumulate(x), (A,)),
        *((lambda x, a=a: np.cumsum(x, axis=a), (A,)) for a in (None, 0, -1)),
        (lambda x: np.diff(x, n=2, axis=0) if x.ndim > 2 else np.diff(x), (A,)),
        (lambda x: np.diff(x, n=2), (A,)),
        *((lambda x, a=a: np.cumprod(x, axis=a), (A,)) for a in (None, 0, -1)),
        (lambda x: np.cumprod(x) + x.cumprod(), (np.array([2.0, 0.0, 3.0, 0.0, 1.5]),)),
        (lambda z: np.cumprod(z, axis=1), (C,)),
        (lambda x: np.multiply.accumulate(x) * np.ptp(x, axis=0), (A,)),
        (lambda x: np.average(x) * np.average(x, axis=1), (A,)),
        (lambda x, w: np.average(x, axis=1, weights=w), (A, np.abs(V))),
        (lambda x, w: np.average(x, weights=w), (A, np.abs(A) + 0.1)),
        (lambda x, w: np.average(x, 0, w), (C, np.abs(A) + 0.1)),
        *(
            (lambda x, f=f, k=k: f(np.where(MASK, np.nan, x), **k), (A,))
            for f in (np.nansum, np.nanprod, np.nanmean, np.nanmax, np.nanmin)
            for k in ({}, {"axis": 1}, {"axis": 0, "keepdims": True})
        ),
        (np.trapezoid, (A,)),
        (lambda y, x: np.trapezoid(y, x), (A, np.sort(V))),
        (lambda y, x: np.trapezoid(y, x, axis=0), (A, A**2)),
        (lambda y: np.trapezoid(y, dx=0.3, axis=0), (C,)),
        *(
            (lambda x, f=f, k=k: getattr(scipy.special, f)(x, **k), (A,))
            for f in ("logsumexp", "softmax", "log_softmax")
            for k in ({}, {"axis": 1}, {"axis": 0})
        ),
        (lambda x: scipy.special.logsumexp(x, axis=1, keepdims=True), (A,)),
        (lambda x: np.eye(3) @ x + np.identity(3) @ x, (A,)),
        (np.linalg.norm, (V,)),
        (np.linalg.norm, (C,)),
        (lambda x: np.linalg.norm(x, "fro") + np.linalg.norm(x, axis=1).sum(), (A,)),
        (lambda x: np.linalg.norm(x, 1, axis=0) + np.linalg.norm(x, 2, axis=0, keepdims=True), (C,)),
        # products
        *((np.matmul, each) for each in ((A, B), (V, B), (A, V), (V, W), (T, U), (T, V), (V, U), (A[None], U), (C, D))),
        *((np.dot, each) for each in ((A, B), (V, B), (A, V), (V, W), (T, U), (T, V), (C, D))),
        *((np.kron, each) for each in ((A, B), (V, W), (Z, Y), (V, A), (A, W))),
        *((np.cross, each) for each in ((A[:, :3], S), (S, V[:3]), (C[:, :3], Z[:3]))),
        *((np.vecdot, each) for each in ((A, V), (C, Z), (A, A[1]))),
        (lambda x, y: x.dot(y) + np.dot(2.0, x) @ y, (A, B)),
        *((np.inner, each) for each in ((V, W), (A, V), (T, A))),
        *((np.outer, each) for each in ((V, W), (Z, Y))),
        *((np.vdot, each) for each in ((V, W), (Z, Y))),
        *((lambda x, y, a=a: np.tensordot(x, y, a), (T, U)) for a in (1 - 1, ([2], [1]), ([1, 2], [2, 1]), (-1, 1))),
        *(
            (lambda x, y, s=s: np.einsum(s, x, y), (T, U))
            for s in ("abc,acb->ab", "abc,acd->bd", "abc,dcb", "abc,def->e")
        ),
        (lambda x: np.einsum("ij->j", x) * np.einsum("ij->", x), (A,)),
        (lambda x, y, z: np.einsum("ij,j,k->ik", x, y, z), (C, Z, Y)),
        (np.einsum.__class__ and (lambda x, y: np.einsum("ij,jk->ki", x, y, optimize=True)), (A, B)),
        (lambda x: np.trace(x) + x.trace(1) + np.trace(x, -1), (A,)),
        (lambda x: np.trace(x, 1, 2, 0), (T,)),
        # systems
        (np.linalg.inv, (S,)),
        (np.linalg.solve, (S, A)),
        (np.linalg.solve, (S, V[:3])),
        (np.linalg.det, (S,)),
        (lambda x: np.linalg.cholesky(x @ x.T + np.eye(3)), (S,)),
        (lambda x: np.linalg.cholesky(x @ np.conj(x).swapaxes(-1, -2) + np.eye(2)), (C[None, :2],)),
        (np.linalg.cholesky, (S @ S.T + np.eye(3),)),
        (np.linalg.solve, (S + 1j * A[:, :3], C)),
        (np.linalg.inv, (np.stack([S, S.T + 1.0]),)),
        # moves
        (lambda x: x.reshape(2, 6) * np.reshape(x.T, (6, 2)).T, (A,)),
        (lambda x: x.T.copy() + x.T + np.transpose(x) + x.swapaxes(0, 1) + np.moveaxis(x, 0, 1), (A,)),
        (lambda x: x.ravel() + x.flatten() + x.reshape(-1, order="F"), (A,)),
        (lambda x: x[1] * x[:, ::2].sum() + x[-1, 2] + x[..., None, 0].mean(), (A,)),
        (lambda x: x[[0, 2, 0], 1] + x[np.array([True, False, True])].sum() + x[x > 0.0].sum(), (A,)),
        (lambda x, y: np.concatenate([x, y, x]) ** 2, (V, W)),
        (lambda x, y: np.concatenate([x, y.T], axis=1), (A, T[0].T)),
        (lambda x, y: np.stack([x, y], axis=-1) * np.column_stack([y, x]), (V, W)),
        (lambda x, y: np.vstack([x, y]) * np.hstack([x, y])[:4], (V, W)),
        (lambda x: np.repeat(x, 2) + np.tile(x, 2) + np.append(x, x) + x.repeat([1, 2, 3, 2]), (V,)),
        (lambda x: np.roll(x, 1) * np.flip(x) * np.rot90(x, 2), (A,)),
        (lambda x: np.take(x, [1, 1, 0], axis=0) + x.take(np.array([2]), axis=0), (A,)),
        (lambda x: np.take_along_axis(x, np.argsort(x, axis=1), axis=1), (A,)),
        (lambda x: np.diag(x) @ np.diag(np.diag(x)), (S,)),
        (lambda x: np.tril(x) @ np.triu(x, 1) + x.diagonal(), (S,)),
        (lambda x, y: np.where(x > y, x, 2.0 * y) + np.where(x > 0, 1.0, x), (V, W)),
        (
            lambda x: np.compress([True, False, True], x) + x.compress([0, 1, 1]) + np.extract(x > x.min(), x)[:2],
            (V[:3],),
        ),
        *((lambda x, m=m: np.pad(x, ((1, 2), (0, 1)), mode=m), (A,)) for m in ("constant", "edge", "reflect", "wrap")),
        (lambda x: np.pad(x, 1, constant_values=3.0), (C,)),
        (lambda x: np.insert(np.delete(x, 1), 0, 5.0), (V,)),
        (lambda x: np.broadcast_to(x, (2, 4)) * np.expand_dims(x, 0) + np.squeeze(x[None]), (V,)),
        (lambda x: np.sort(x) * np.array([1.0, 2.0, 3.0, 4.0]).tolist()[2] + np.sort(x)[::-1], (V,)),
        (lambda x: np.sort(x, axis=0) + np.sort(x, axis=None).reshape(3, 4), (A,)),
        (lambda x: x * np.ones_like(x) + np.zeros_like(x) + np.full_like(x, 3.0), (A,)),
        (lambda x: np.full_like(x, x[0, 0]) * x, (A,)),
        (lambda x: np.meshgrid(x, x, copy=False)[0] ** 2 + np.split(x, 2)[1][0], (V,)),
        (lambda x: np.lib.stride_tricks.sliding_window_view(x, 2).sum(axis=1) ** 2, (V,)),
        # transforms
        *(
            (lambda x, f=f, n=n, o=o: getattr(np.fft, f)(x, n, norm=o), (Z,))
            for f in ("fft", "ifft", "irfft")
            for n in (None, 3, 5, 6)
            for o in (None, "ortho", "forward")
        ),
        *(
            (lambda x, n=n, o=o: np.fft.rfft(x, n, norm=o), (V,))
            for n in (None, 3, 7)
            for o in (None, "ortho", "forward")
        ),
        *((lambda x, f=f: getattr(np.fft, f)(x, axis=0), (C,)) for f in ("fft", "ifft", "irfft")),
        *((lambda x, f=f: getattr(np.fft, f)(x), (C,)) for f in ("fft2", "ifft2", "fftn", "ifftn", "irfft2", "irfftn")),
        *(
            (lambda x, f=f: getattr(np.fft, f)(x, s=(3, 5), axes=(2, 0)), (T + 1j * T[::-1],))
            for f in ("fftn", "ifft2", "irfftn")
        ),
        (lambda x: np.fft.rfftn(x, s=(3, 3), axes=(0, 1)), (T,)),
        (np.fft.rfft2, (A,)),
        (lambda x: np.fft.fftshift(np.fft.fft(x)), (V,)),
        (lambda x: scipy.fft.fft(x) + scipy.fft.ifftshift(x), (Z,)),
        # convolutions
        *(
            (lambda x, y, m=m: np.convolve(x, y, m), each)
            for m in ("full", "same", "valid")
            for each in ((V, W[:2]), (W[:3], V))
        ),
        (lambda x, y: np.convolve(x, y), (Z, Y)),
        *((lambda x, y, m=m: scipy.signal.convolve(x, y, mode=m), (A, S[:2, :2])) for m in ("full", "same", "valid")),
        *(
            (lambda x, y, m=m: scipy.signal.fftconvolve(x, y, mode=m), (A, S[:2, :3]))
            for m in ("full", "same", "valid")
        ),
    ],
)
def test_functions(f, arrays):
    check(f, *arrays)
