from __future__ import annotations

import numba
import numpy as np
import pytest

import irad
from irad.ir.instructions import Alloca, Store
from irad.passes.mode import REVERSE
from tests.passes.units import generated, gradient

# x is element 0, w element n, which may be the same.
BLOCK = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {{
  %q = getelementptr double, ptr %a, i64 %n
  {loads}
  {body}
  %z = load double, ptr %a
  %y = load double, ptr %q
  %zy = fadd double %z, %y
  store double %zy, ptr %r
  ret i32 0
}}
"""
X_FIRST = "%x = load double, ptr %a\n%w = load double, ptr %q"
W_FIRST = "%w = load double, ptr %q\n%x = load double, ptr %a"
PRODUCT = "%s = fmul double %x, %w\nstore double %s, ptr %a"
TWICE = PRODUCT + "\n%t = fmul double %w, 3.0\nstore double %t, ptr %q"
X, W = 3.0, 5.0


def stores(loads: str, body: str, **options: object) -> int:
    """How many stores to shadows there are in the reverse sweep."""
    (made,) = generated(BLOCK.format(loads=loads, body=body), "scsc", **options)
    found = (inst for inst in made.pair[REVERSE].instructions() if isinstance(inst, Store))
    return sum(not isinstance(store.operands[1], Alloca) for store in found)


@pytest.mark.parametrize("loads", [X_FIRST, W_FIRST])
def test_the_zero_is_not_stored(loads: str):
    """The additions to z and y, the new cotangent of x, the addition to w; and what clears the result."""
    assert stores(loads, PRODUCT) == stores(loads, PRODUCT, strict=True) - 1


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("loads", [X_FIRST, W_FIRST])
@pytest.mark.parametrize(("n", "expected"), [(1, [W, X + 1.0]), (0, [4.0 * X, 0.0])])
def test_what_may_be_the_same_element_is_added_afterwards(loads: str, n: int, expected: list[float], strict: bool):
    assert gradient(BLOCK.format(loads=loads, body=PRODUCT), (X, W), n, strict=strict) == pytest.approx(expected)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("loads", [X_FIRST, W_FIRST])
@pytest.mark.parametrize(("n", "expected"), [(1, [W, X + 3.0]), (0, [6.0, 0.0])])
def test_an_element_that_is_read_in_between_is_cleared_first(loads: str, n: int, expected: list[float], strict: bool):
    """The cotangent of x is taken between that of w and the addition to w, and may be the same."""
    assert gradient(BLOCK.format(loads=loads, body=TWICE), (X, W), n, strict=strict) == pytest.approx(expected)


def test_only_the_element_after_which_nothing_is_read_is_stored_once():
    assert stores(X_FIRST, TWICE) == stores(X_FIRST, TWICE, strict=True) - 1


def test_several_additions_after_one_store():
    again = "%x = load double, ptr %a\n%x2 = load double, ptr %a\n%w = load double, ptr %q"
    body = "%p = fmul double %x, %w\n%s = fmul double %p, %x2\nstore double %s, ptr %a"
    assert stores(again, body) == stores(again, body, strict=True) - 2
    assert gradient(BLOCK.format(loads=again, body=body), (X, W), 1) == pytest.approx([2.0 * X * W, X * X + 1.0])


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(("is_a", "expected"), [(True, 6.0), (False, 12.0)])
def test_an_addition_does_not_go_past_what_reads_its_element(is_a: bool, expected: float, strict: bool):
    """The addition to the shadow of `w` may be to that of `a` or of `b`, which is read before `a` is added to."""

    @numba.njit
    def f(a, is_a, n):
        b = np.zeros(n)
        q = a if is_a else b
        x = a[0]
        b[0] = 2.0 * x
        w = q[0]
        a[0] = x * w
        return a[0]

    found = irad.grad(f, options=irad.Options(strict=strict))(np.array([3.0, 5.0]), is_a, 100)
    np.testing.assert_array_equal(found, [expected, 0.0])


def test_the_oracle_stores_as_the_adjoint_says():
    assert stores(X_FIRST, PRODUCT, plan="save_all") == stores(X_FIRST, PRODUCT, strict=True)
