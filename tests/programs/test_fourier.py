"""Fourier transforms through rocket-fft. They are linear, so one pairing of directions tells a wrong adjoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy import fft as scipy_fft

import irad
from tests.tools.catalogue import floats

pytest.importorskip("rocket_fft", reason="needs rocket-fft, which makes np.fft known to Numba: pip install .[fft]")

Function = Callable[..., Any]


def complexes(*shape: int, seed: int = 0) -> np.ndarray:
    return floats(*shape, seed=seed) - 1.0 + 1j * floats(*shape, seed=seed + 1)


def parts(value: Any) -> tuple[np.ndarray, ...]:
    return value if isinstance(value, tuple) else (value,)


def paired(a: Any, b: Any) -> float:
    """The real inner product that cotangents and changes have."""
    return sum(float(np.vdot(x, y).real) for x, y in zip(parts(a), parts(b), strict=True))


def check(function: Function, x: np.ndarray, *options: Any, tolerance: float = 1e-12) -> None:
    """The value is the plain call's, and the pullback is the transpose."""
    value, pullback = irad.vjp(function, x, *options)
    expected = function(x, *options)
    for given, plain in zip(parts(value), parts(expected), strict=True):
        np.testing.assert_allclose(given, plain, atol=tolerance * 10, rtol=0)
        assert given.dtype == plain.dtype
    rng = np.random.default_rng(1)
    seeds = tuple(
        np.asarray(rng.normal(size=p.shape) + (1j * rng.normal(size=p.shape) if np.iscomplexobj(p) else 0), p.dtype)
        for p in parts(expected)
    )
    change = complexes(*x.shape, seed=5).astype(x.dtype) if np.iscomplexobj(x) else floats(*x.shape, seed=5)
    change = np.asarray(change, x.dtype)
    cotangent = pullback(seeds if isinstance(expected, tuple) else seeds[0])
    cotangent = cotangent[0] if isinstance(cotangent, tuple) else cotangent
    assert cotangent.dtype == x.dtype
    forward = paired(seeds, parts(function(change, *options)))
    assert abs(forward - paired(cotangent, change)) <= tolerance * max(1.0, abs(forward)) * 10


# ------------------------------------------------------------------------------------------------ one axis


@njit
def of_complex(x):
    return np.fft.fft(x), np.fft.ifft(x), np.fft.irfft(x), np.fft.hfft(x)


@njit
def of_real(x):
    return np.fft.rfft(x), np.fft.ihfft(x), np.fft.fft(x)


@njit
def with_options(x, n, axis, norm):
    return np.fft.fft(x, n, axis, norm), np.fft.irfft(x, n=n, axis=axis, norm=norm)


@njit
def real_with_options(x, n, axis, norm):
    return np.fft.rfft(x, n, axis, norm)


@pytest.mark.parametrize("n", [5, 6])
def test_one_axis(n: int):
    check(of_complex, complexes(n))
    check(of_real, floats(n))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize(("n", "axis"), [(7, 0), (2, -1), (4, 1), (1, 0)])
def test_length_axis_and_norm(n: int, axis: int, norm: str):
    check(with_options, complexes(3, 4), n, axis, norm)
    check(real_with_options, floats(3, 4), n, axis, norm)


def test_single_precision():
    check(of_complex, complexes(5).astype(np.complex64), tolerance=1e-5)
    check(of_real, floats(6).astype(np.float32), tolerance=1e-5)


# ------------------------------------------------------------------------------------------------ several axes


@njit
def planes(x):
    return np.fft.fft2(x), np.fft.ifft2(x, axes=(0, 2)), np.fft.irfft2(x, s=(3, 5), norm="ortho")


@njit
def spaces(x):
    return np.fft.rfftn(x), np.fft.rfftn(x, (2, 6), axes=(2, 0)), np.fft.fftn(x, norm="forward")


@njit
def back(x):
    return np.fft.irfftn(x), np.fft.ifftn(x)


@njit
def of_scipy(x):
    return scipy_fft.fft(x), scipy_fft.rfft2(x.real), scipy_fft.hfft2(x)


def test_several_axes():
    check(planes, complexes(2, 4, 3))
    check(spaces, floats(2, 4, 3))
    check(back, complexes(2, 4, 3)[::-1, ::2])


def test_a_fortran_array():
    check(back, np.asfortranarray(complexes(2, 3)))


def test_scipy():
    check(of_scipy, complexes(4, 3))


# ------------------------------------------------------------------------------------------------ programs


@njit
def smoothness(x, kernel):
    """Circular convolution and the energy of what it leaves, in a loop that overwrites."""
    total = 0.0
    for k in range(3):
        x = np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(kernel, x.size), x.size)
        total += np.sum(x**2) * (k + 1)
        x *= x
    return total


def test_a_nonlinear_program():
    x, kernel = floats(6), floats(3)
    value, (by_x, by_kernel) = irad.value_and_grad(smoothness, argnums=(0, 1))(x, kernel)
    assert value == pytest.approx(smoothness(x, kernel), rel=1e-13)
    for given, place in ((by_x, 0), (by_kernel, 1)):
        for i in range(given.size):
            step = [np.zeros(6), np.zeros(3)]
            step[place][i] = 1e-5
            up, down = smoothness(x + step[0], kernel + step[1]), smoothness(x - step[0], kernel - step[1])
            assert given[i] == pytest.approx((up - down) / 2e-5, rel=1e-6)


def test_the_adjoint_is_a_transform():
    gradient = irad.grad(smoothness, argnums=(0, 1))
    gradient(floats(6), floats(3))
    text = "\n".join(gradient.inspect_llvm().values())
    assert "_adjoint_f64" in text
    assert text.count("irad.fft.c2r.f64") >= 3


# ------------------------------------------------------------------------------------------------ refusals, errors


@njit
def too_short(x):
    return np.fft.fft(x, 0).real.sum()


@njit
def no_such_axis(x):
    return np.fft.fft(x, 4, 1).real.sum()


@njit
def no_such_norm(x, norm):
    return np.fft.rfft(x, norm=norm).real.sum()


@pytest.mark.parametrize(("function", "rest"), [(too_short, ()), (no_such_axis, ()), (no_such_norm, ("half",))])
def test_what_the_primal_raises(function: Function, rest: tuple[Any, ...]):
    with pytest.raises(ValueError) as plain:  # noqa: PT011  # its text is what is compared
        function(floats(3), *rest)
    with pytest.raises(ValueError, match=str(plain.value)) as caught:
        irad.grad(function)(floats(3), *rest)
    assert str(caught.value) == str(plain.value)


@njit
def cosine_transform(x):
    return scipy_fft.dct(x).sum()


def test_other_transforms_are_refused():
    with pytest.raises(irad.UnsupportedError, match="rf_transform"):
        irad.grad(cosine_transform)(floats(4))
