"""Marks on calls that have vector variants, and what the vector functions compute."""

from __future__ import annotations

import math
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from numba import float32, float64, njit

import irad
from irad.backend.vector_math import with_vector_variants
from irad.frontend.numba import target

VECTORS, NUMBERS = irad.Options(), irad.Options(vector_math=False)
ALL = frozenset({"sse2", "avx2", "avx512f"})
TEXT = """
declare double @llvm.exp.f64(double)
declare float @tanhf(float)
declare double @numba_atan2(double, double)
declare double @lgamma(double)

define double @f(double %x, float %y) {
  %1 = tail call fast double @llvm.exp.f64(double %x), !dbg !1
  %2 = call float @tanhf(float noundef %y) #0
  %3 = call double @numba_atan2(double %1, double %x)
  %4 = call double @lgamma(double %3)
  ret double %4
}
"""

has_library = pytest.mark.skipif(
    not with_vector_variants(TEXT, ALL) != TEXT, reason="the C library here has no vector functions"
)
has_vectors = pytest.mark.skipif(
    with_vector_variants(TEXT, target.features()) == TEXT, reason="no vector functions for this processor here"
)


@has_library
def test_calls_name_their_variants() -> None:
    lines = with_vector_variants(TEXT, frozenset({"avx2"})).splitlines()
    (exp,) = (line for line in lines if "%1 =" in line)
    assert exp.strip() == (
        "%1 = tail call fast double @llvm.exp.f64(double %x) "
        '"vector-function-abi-variant"="_ZGV_LLVM_N4v_llvm.exp.f64(_ZGVdN4v_exp)", !dbg !1'
    )
    (tanh,) = (line for line in lines if "%2 =" in line)
    assert '(float noundef %y) "vector-function-abi-variant"="_ZGV_LLVM_N8v_tanhf(_ZGVdN8v_tanhf)" #0' in tanh
    (atan2,) = (line for line in lines if "%3 =" in line)
    assert "_ZGV_LLVM_N4vv_numba_atan2(_ZGVdN4vv_atan2)" in atan2
    (lgamma,) = (line for line in lines if "%4 =" in line)
    assert lgamma == "  %4 = call double @lgamma(double %3)"
    assert any(line.startswith("declare <4 x double> @_ZGVdN4vv_atan2(<4 x double>, <4 x double>)") for line in lines)


@has_library
def test_the_processor_decides_how_wide() -> None:
    marked = with_vector_variants(TEXT, ALL)
    assert all(f"_ZGV_LLVM_N{lanes}v_llvm.exp.f64" in marked for lanes in (2, 4, 8))
    assert "_ZGVe" not in with_vector_variants(TEXT, frozenset({"sse2", "avx2"}))
    assert with_vector_variants(TEXT, frozenset()) == TEXT


@has_library
def test_llvm_takes_the_text() -> None:
    marked = with_vector_variants(TEXT.replace(" #0", "").replace(", !dbg !1", ""), ALL)
    module = llvm.parse_assembly(marked)
    module.verify()
    module.link_in(llvm.parse_assembly(marked.replace("@f(", "@g(")))
    module.verify()


ONE = "exp expm1 log log1p log2 log10 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh erf erfc cbrt exp2"
SPECIAL = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    np.inf,
    -np.inf,
    np.nan,
    5e-324,
    -5e-324,
    1e-310,
    1e-300,
    1e300,
    -1e300,
)
MORE = (709.5, 710.0, -708.5, -745.0, -746.0, 1e5, -1e5, 1e16, 3e-8, np.pi, 100.5, -30.25)


def _applied(name: str, type_: Any) -> Any:
    function: Any = getattr(np, {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}.get(name, name), None)
    function = getattr(math, name) if name in ("erf", "erfc") else function
    if name in ("asinh", "acosh", "atanh"):
        function = getattr(np, f"arc{name[1:]}")

    @njit(error_model="numpy")
    def apply(x: Any, y: Any) -> None:
        for i in range(x.size):
            y[i] = function(x[i])

    return apply


@has_vectors
@pytest.mark.parametrize("type_", [float64, float32])
@pytest.mark.parametrize("name", [name for name in ONE.split() if name not in ("cbrt", "exp2")])
def test_functions_agree_with_those_of_numbers(name: str, type_: Any) -> None:
    """In range, out of range and at special values, within five units in the last place."""
    dtype = np.dtype(str(type_))
    near = np.concatenate([np.linspace(-3.0, 3.0, 61), np.geomspace(1e-12, 600.0, 60), SPECIAL, MORE])
    with np.errstate(over="ignore"):
        x = near.astype(dtype)
    apply = _applied(name, type_)
    plain, vectors = np.empty_like(x), np.empty_like(x)
    apply(x, plain)
    ones = np.ones_like(x)
    tangents = irad.Duplicated(x, ones), irad.Duplicated(vectors, np.empty_like(x))
    irad.autodiff(irad.Forward, apply, *tangents, options=VECTORS)
    same = (plain == vectors) | (np.isnan(plain) & np.isnan(vectors))
    with np.errstate(invalid="ignore", over="ignore"):
        close = np.abs(plain - vectors) <= 5 * np.spacing(np.abs(plain))
    assert (same | close).all(), [(x[i], plain[i], vectors[i]) for i in np.flatnonzero(~(same | close))]
    zeros = plain == 0.0
    assert (np.signbit(plain[zeros]) == np.signbit(vectors[zeros])).all()


@njit
def softplus(x: Any) -> Any:
    total = 0.0
    for i in range(x.size):
        total += np.log1p(np.exp(x[i]))
    return total


@has_vectors
def test_loops_with_sums_become_vectors_and_stay_in_order() -> None:
    x = np.random.default_rng(0).normal(size=1003)
    value, gradient = irad.value_and_grad(softplus, options=VECTORS)(x)
    np.testing.assert_allclose(value, softplus(x), rtol=1e-14)
    np.testing.assert_allclose(gradient, 1 / (1 + np.exp(-x)), rtol=1e-14)
    assert "_ZGV" in irad.inspect(irad.grad(softplus, options=VECTORS), x).asm

    value, gradient = irad.value_and_grad(softplus)(x)
    assert value == softplus(x)
    np.testing.assert_allclose(gradient, 1 / (1 + np.exp(-x)), rtol=1e-14)


@njit
def total(x: Any, y: Any) -> Any:
    kept = 0.0
    for i in range(x.size):
        kept += x[i] * y[i]
    return kept


def test_sums_of_the_primal_keep_their_order() -> None:
    """The sum is rounded as in the plain function, whose loop is not made into vectors."""
    rng = np.random.default_rng(1)
    for size in (0, 1, 3, 64, 1001):
        x, y = rng.normal(size=(2, size)) * 10.0 ** rng.integers(-8, 8, (2, size))
        value, gradient = irad.value_and_grad(total)(x, y)
        assert value == total(x, y)
        np.testing.assert_array_equal(gradient, y)


@has_vectors
def test_derivatives_with_and_without_do_not_share_code() -> None:
    @njit
    def activated(x: Any) -> Any:
        return np.tanh(x)

    x = np.linspace(-2.0, 2.0, 1001)
    in_vectors = irad.vjp(activated, x, options=VECTORS)[0]
    by_numbers = irad.vjp(activated, x, options=NUMBERS)[0]
    assert (by_numbers == activated(x)).all()
    assert (in_vectors != by_numbers).any()
    np.testing.assert_allclose(in_vectors, by_numbers, rtol=1e-15)
