"""Forward mode through the products that Numba calls, against the product rule in NumPy and against reverse mode."""

from __future__ import annotations

import ctypes
import resource
from collections.abc import Callable, Iterator
from itertools import combinations

import numpy as np
import pytest
from numba import njit
from numba.extending import get_cython_function_address

import irad
from tests.rules.test_blas import random_array

TOLERANCE = {"d": 1e-12, "z": 1e-12, "s": 1e-5, "c": 1e-5}


@njit
def dot(a, b):
    return np.dot(a, b)


@njit
def operator(a, b):
    return a @ b


@njit
def conjugated(a, b):
    return np.vdot(a, b)


@njit
def transposed(a, b):
    return a.T @ b.T


@njit
def adjoint(a, b):
    return a.conj().T @ b


@njit
def norm(a, b):
    return np.linalg.norm(a) * np.linalg.norm(b)


@njit
def in_place(a, b, c):
    np.dot(a, b, c)
    return c * c


PRODUCTS = [
    *((f, (5,), (5,)) for f in (dot, operator, conjugated, norm)),
    *((f, *shapes) for f in (dot, operator) for shapes in (((3, 4), (4,)), ((4,), (4, 3)), ((3, 4), (4, 2)))),
    (transposed, (4, 3), (2, 4)),
    (adjoint, (4, 3), (4, 2)),
    (norm, (3, 4), (2, 2)),
    *((f, (0,), (0,)) for f in (dot, conjugated, norm)),
    *((operator, *shapes) for shapes in (((0, 4), (4,)), ((3, 0), (0,)), ((3, 0), (0, 2)), ((0, 2), (2, 3)))),
]
KINDS = [("d", "C"), ("d", "F"), ("d", "strided"), ("z", "C"), ("s", "C")]
LAYOUTS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda a: np.repeat(np.ascontiguousarray(a), 2, axis=-1)[..., ::2],
}


def patterns(count: int) -> Iterator[tuple[int, ...]]:
    for size in range(1, count + 1):
        yield from combinations(range(count), size)


def slope(f, args, tangents) -> np.ndarray:
    """A central difference in double precision, of a function of degree two in each argument: exact but for rounding.

    The norm is neither; its tangent is compared with reverse mode.
    """
    double = [np.asarray(a, np.result_type(a.dtype, np.float64)) for a in args]

    def at(step: float) -> np.ndarray:
        moved = [a if t is None else a + step * t for a, t in zip(double, tangents, strict=True)]
        return np.asarray(f.py_func(*moved))

    return (at(0.5) - at(-0.5)) if f is not norm else (at(1e-5) - at(-1e-5)) / 2e-5


@pytest.mark.filterwarnings("ignore:.*faster on contiguous arrays")
@pytest.mark.parametrize(("f", "first", "second"), PRODUCTS)
@pytest.mark.parametrize(("kind", "layout"), KINDS)
def test_products(f, first, second, kind: str, layout: str):
    args = [LAYOUTS[layout](random_array(kind, *shape, seed=i)) for i, shape in enumerate((first, second))]
    if f is norm and layout == "strided":
        args = [np.ascontiguousarray(a) for a in args]  # Numba has no norm of such arrays
    directions = [random_array(kind, *shape, seed=5 + i) for i, shape in enumerate((first, second))]
    for active in patterns(2) if (kind, layout) == ("d", "C") else [(0, 1)]:
        tangents = [directions[i] if i in active else None for i in range(2)]
        value, tangent = irad.jvp(f, args, tangents)
        tolerance = 1e-8 if f is norm and kind != "s" else TOLERANCE[kind]
        np.testing.assert_allclose(value, f.py_func(*args), rtol=TOLERANCE[kind], atol=TOLERANCE[kind])
        np.testing.assert_allclose(tangent, slope(f, args, tangents), rtol=tolerance, atol=10 * tolerance)
        assert np.shape(tangent) == np.shape(value)
        assert not isinstance(value, np.ndarray) or tangent.dtype == value.dtype


@pytest.mark.parametrize("f", [dot, operator, conjugated, adjoint, norm])
@pytest.mark.parametrize("kind", "dzsc")
def test_one_array_as_both_operands(f, kind: str):
    a = random_array(kind, 3, 3) if f is not conjugated else random_array(kind, 4)
    direction = random_array(kind, *a.shape, seed=1)

    @njit
    def twice(a):
        return f(a, a)

    _, tangent = irad.jvp(twice, (a,), (direction,))
    _, expected = irad.jvp(f, (a, a.copy()), (direction, direction))
    np.testing.assert_array_equal(tangent, expected)


@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_into_an_array(plan: str):
    a, b, c = (random_array("d", *shape, seed=i) for i, shape in enumerate(((3, 4), (4, 2), (3, 2))))
    directions = [random_array("d", *x.shape, seed=5 + i) for i, x in enumerate((a, b, c))]
    for active in patterns(3):
        given = [x.copy() if i in active else None for i, x in enumerate(directions)]
        if 2 not in active:  # what is written has a tangent if what is written into it has one
            continue
        target = c.copy()
        value, tangent = irad.jvp(in_place, (a, b, target), given, options=irad.Options(plan=plan))
        product = (given[0] @ b if 0 in active else 0.0) + (a @ given[1] if 1 in active else 0.0) + np.zeros((3, 2))
        np.testing.assert_allclose(target, a @ b)
        np.testing.assert_allclose(value, target**2)
        np.testing.assert_allclose(given[2], product, atol=1e-14)
        np.testing.assert_allclose(tangent, 2.0 * target * product, atol=1e-13)


def test_zero_tangents_keep_infinities_out():
    a, b = np.full((2, 2), np.inf), np.ones((2, 2))
    for f, x in ((operator, b), (dot, b[0])):
        _, tangent = irad.jvp(f, (a, x), (np.ones((2, 2)), np.zeros(x.shape)))
        np.testing.assert_array_equal(tangent, np.full(x.shape, 2.0))
    assert irad.jvp(dot, (np.array([np.inf, 1.0]), b[0]), (None, np.array([0.0, 3.0])))[1] == 3.0
    assert irad.jvp(norm, (np.zeros(2), np.ones(2)), (np.ones(2), np.ones(2)))[1] == 0.0


def test_small_tangents_are_as_exact_as_large_ones():
    a, x = random_array("d", 4, 4), random_array("d", 4, seed=1)
    direction = random_array("d", 4, 4, seed=2)
    large = irad.jvp(operator, (a, x), (direction, None))[1]
    small = irad.jvp(operator, (a, x), (direction * 2.0**-300, None))[1]
    np.testing.assert_array_equal(small * 2.0**300, large)


def test_products_in_a_loop_and_in_a_recursion():
    @njit
    def power(a, x, count):
        for _ in range(count):
            x = a @ x
            x = x / np.linalg.norm(x)
        return x @ (a @ x)

    a, x = random_array("d", 4, 4), random_array("d", 4, seed=1)
    directions = random_array("d", 4, 4, seed=2), random_array("d", 4, seed=3)
    _, tangent = irad.jvp(power, (a, x, 7), (*directions, None))
    gradients = irad.grad(power, argnums=(0, 1))(a, x, 7)
    assert tangent == pytest.approx(sum(np.vdot(g, d) for g, d in zip(gradients, directions, strict=True)), rel=1e-12)


dtrsv = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 8)(get_cython_function_address("scipy.linalg.cython_blas", "dtrsv"))


@pytest.mark.parametrize("size", [3, 150])
def test_working_memory_is_free_after_the_call(size: int):
    @njit
    def solve_often(a, x, count):
        flags, n, step = np.array([117, 110, 117], np.uint8), np.array([len(x)], np.int32), np.array([1], np.int32)
        for _ in range(count):
            x = 0.5 * x + 1.0
            dtrsv(flags.ctypes, flags[1:].ctypes, flags[2:].ctypes, n.ctypes, a.ctypes, n.ctypes, x.ctypes, step.ctypes)
        return x

    a, x = random_array("d", size, size) / size**2, random_array("d", size, seed=1)
    directions = random_array("d", size, size, seed=2) / size**2, random_array("d", size, seed=3)
    count = 2000  # with 150 rows 360 MB of copies of the tangent
    value, tangent = irad.jvp(solve_often, (a, x, 2), (*directions, None))
    highest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    _, tangent = irad.jvp(solve_often, (a, x, count), (*directions, None))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - highest < 50_000  # KiB
    step = 1e-5
    above, below = (solve_often(a + h * directions[0], x + h * directions[1], count) for h in (step, -step))
    np.testing.assert_allclose(tangent, (above - below) / (2 * step), rtol=1e-6, atol=1e-6)
    assert value.shape == tangent.shape
