"""Loops that read elements which the next iterations read again: one array of the tape, unless they are written to."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from numba import njit

import irad

_ORACLE = irad.Options(plan="save_all")
_RANDOM = np.random.default_rng(3)


def compiled(source: str) -> Any:
    scope: dict[str, Any] = {"np": np}
    exec(source, scope)
    return njit(error_model="numpy")(scope["loss"])


def agrees(function: Any, *args: Any) -> Any:
    """Compares with the oracle; the gradient with respect to the first two arguments."""
    value, found = irad.value_and_grad(function, argnums=(0, 1))(*[each.copy() for each in args])
    expected, wanted = irad.value_and_grad(function, argnums=(0, 1), options=_ORACLE)(*[each.copy() for each in args])
    assert value == expected
    for mine, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-11, atol=1e-12)
    return found


def tape_of(function: Any, *args: Any) -> int:
    return int(irad.tape_report(function, *[each.copy() for each in args], argnums=(0, 1)).total)


IN_PLACE = """
def loss(v, w):
    for t in range(3):
        for i in range({loop}):
            {first}
            {second}
    return v.sum()
"""
UP, DOWN = "2, v.size - 2", "v.size - 3, 1, -1"


def in_place(a: str, b: str, written: str, *, loop: str = UP, is_late: bool = True) -> Any:
    """Two elements are read, and another one is written after them, or between them."""
    late = f"v[{written}] = 0.9 * x * y + 0.01 * w[0]"
    early = f"v[{written}] = 0.9 * x * w[i]"
    parts = {
        "first": f"x = v[{a}]" if is_late else f"x = v[{a}]; {early}",
        "second": f"y = v[{b}]; {late}" if is_late else f"y = v[{b}]; w[i] = 0.5 * x * y * y",
    }
    return compiled(IN_PLACE.format(loop=loop, **parts))


PLACES = ("i - 1", "i", "i + 1", "i + 2")


@pytest.mark.parametrize(("a", "b", "written"), [each for each in product(PLACES, repeat=3) if each[0] != each[1]])
def test_every_place_of_a_write(a: str, b: str, written: str):
    v, w = _RANDOM.uniform(0.5, 1.2, 17), _RANDOM.uniform(0.5, 1.2, 17)
    agrees(in_place(a, b, written), v, w)


@pytest.mark.parametrize("is_late", [True, False])
@pytest.mark.parametrize("loop", [UP, DOWN])
@pytest.mark.parametrize("places", [("i + 1", "i", "i"), ("i - 1", "i", "i"), ("i + 2", "i - 1", "i + 1")])
def test_both_directions_and_a_write_between(places: tuple[str, str, str], loop: str, is_late: bool):
    function = in_place(*places, loop=loop, is_late=is_late)
    for size in (0, 3, 4, 5, 6, 17, 100):
        v, w = _RANDOM.uniform(0.5, 1.2, size + 1), _RANDOM.uniform(0.5, 1.2, size + 1)
        agrees(function, v, w)


@pytest.mark.parametrize(
    ("a", "b", "written", "numbers"),
    [
        ("i + 1", "i", "i", 1),  # the old values of both
        ("i + 1", "i", "i - 1", 1),
        ("i + 2", "i - 1", "i - 1", 1),
        ("i", "i - 1", "i", 2),  # a new one
        ("i + 2", "i", "i + 1", 2),  # written between
        ("2 * i - v.size", "i", "i - 1", 2),  # at other paces
    ],
)
def test_what_the_tape_has(a: str, b: str, written: str, numbers: int):
    v, w = np.ones(1000), np.ones(1000)
    per_number = 3 * 8 * 996
    # Some of what two take is known otherwise: the last number that was written.
    assert round(tape_of(in_place(a, b, written), v, w) / per_number) == numbers


def test_many_neighbours():
    """An update of high order saves each element once."""
    terms = " + ".join(f"{0.01 * k} * v[i + {k}] * w[i]" for k in range(1, 5))
    function = compiled(IN_PLACE.format(loop="0, v.size - 4", first=f"x = ({terms}) * v[i]", second="v[i] = x"))
    v, w = _RANDOM.uniform(0.5, 1.2, 300), _RANDOM.uniform(0.5, 1.2, 300)
    agrees(function, v, w)
    # One of v, and one of w, which might share memory with v.
    assert round(tape_of(function, v, w) / (3 * 8 * 296)) == 2


STEPS = """
def loss(u, k):
    old, new = u.copy(), u.copy()
    for t in range(k.size):
        for i in range(1, u.size - 1):
            new[i] = old[i] - k[t] * old[i] * (old[i + 1] - old[i - 1]) + 0.1 * old[i + 1] ** 3
        old, new = new, old
    return (old * old).sum()
"""


def test_buffers_that_are_swapped():
    u, k = _RANDOM.uniform(0.5, 1.2, 200), 0.1 * np.ones(5)
    found = agrees(compiled(STEPS), u, k)
    plain = compiled(STEPS).py_func
    for position, direction in ((0, _RANDOM.standard_normal(200)), (1, _RANDOM.standard_normal(5))):
        args: list[Any] = [u.astype(complex), k.astype(complex)]
        args[position] += 1e-30j * direction
        assert np.vdot(found[position], direction) == pytest.approx(plain(*args).imag / 1e-30, rel=1e-12)


NESTED = """
def loss(a, w):
    for i in range(1, a.shape[0] - 1):
        for j in range(1, a.shape[1] - 1):
            a[i, j] = 0.3 * a[i, j] * a[i, j + 1] * w[i] + 0.2 * a[i - 1, j] * a[i + 1, j]
    return (a * a).sum()
"""


@pytest.mark.parametrize("shape", [(9, 40), (3, 3), (2, 5), (40, 9)])
@pytest.mark.parametrize("layout", ["C", "F", "reversed", "strided"])
def test_rows(shape: tuple[int, int], layout: str):
    a, w = _RANDOM.uniform(0.5, 1.2, shape), _RANDOM.uniform(0.5, 1.2, shape[0])
    match layout:
        case "F":
            a = np.asfortranarray(a)
        case "reversed":
            a = a[::-1, ::-1]
        case "strided":
            a = np.repeat(a, 2, axis=1)[:, ::2]
    function = compiled(NESTED)
    value, found = irad.value_and_grad(function, argnums=(0, 1))(a.copy(order="K"), w)
    expected, wanted = irad.value_and_grad(function, argnums=(0, 1), options=_ORACLE)(a.copy(order="K"), w)
    assert value == expected
    for mine, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-11, atol=1e-12)


CONDITIONS = """
def loss(v, w):
    total = 0.0
    for t in range(2):
        for i in range(v.size - 2):
            x = 1.0
            if w[i] > 0.8:
                x = v[i + 1] * v[i + 1]
            if v[i] > 0.7:
                x *= v[i] * w[i]
            if w[i + 1] > 0.6:
                v[i] = 0.5 * x
            if x > 3.0:
                break
        total += v.sum()
    return total
"""


def test_reads_and_writes_under_conditions():
    function = compiled(CONDITIONS)
    for _ in range(20):
        agrees(function, _RANDOM.uniform(0.5, 1.2, 30), _RANDOM.uniform(0.5, 1.2, 30))


RECORDS = """
def loss(v, w):
    for i in range(v.size - 1):
        x = v[i + 1].a * v[i].a
        v[i].b = 0.5 * x * v[i + 1].b
        v[i].a = 0.9 * x * w[i]
    total = 0.0
    for i in range(v.size):
        total += v[i].a * v[i].b
    return total
"""


def test_fields_of_records():
    kind = np.dtype([("a", np.float64), ("b", np.float64)], align=True)
    v = np.zeros(40, kind)
    v["a"], v["b"] = _RANDOM.uniform(0.5, 1.2, (2, 40))
    w = _RANDOM.uniform(0.5, 1.2, 40)
    function = compiled(RECORDS)
    found = irad.grad(function, argnums=(0, 1))(v.copy(), w)
    wanted = irad.grad(function, argnums=(0, 1), options=_ORACLE)(v.copy(), w)
    for name in "ab":
        np.testing.assert_allclose(found[0][name], wanted[0][name], rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-11, atol=1e-13)


def test_arrays_that_may_be_one():
    """What is written to one may be what is read of the other."""
    text = """
def loss(v, w):
    for t in range(2):
        for i in range(v.size - 2):
            w[i + 1] = 0.8 * v[i + 1] * v[i]
    return v.sum() + w.sum()
"""
    function = compiled(text)
    x = _RANDOM.uniform(0.5, 1.2, 40)
    for v, w in ((x[:30], x[:30]), (x[:30], x[1:31]), (x[1:31], x[:30]), (x[2:32], x[:30]), (x[:20], x[20:])):
        memory = x.copy()
        found = irad.grad(function, argnums=(0, 1))(_in(memory, x, v), _in(memory, x, w))
        memory = x.copy()
        wanted = irad.grad(function, argnums=(0, 1), options=_ORACLE)(_in(memory, x, v), _in(memory, x, w))
        for mine, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(mine, other, rtol=1e-11, atol=1e-13)


def _in(memory: Any, whole: Any, part: Any) -> Any:
    """The same part of other memory."""
    start = (part.__array_interface__["data"][0] - whole.__array_interface__["data"][0]) // 8
    return memory[start : start + part.size]


@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_other_numbers(dtype: Any):
    function = in_place("i + 1", "i", "i")
    v = _RANDOM.uniform(0.5, 1.2, 50).astype(dtype)
    w = _RANDOM.uniform(0.5, 1.2, 50).astype(dtype)

    @njit(error_model="numpy")
    def real(v, w):
        return function(v, w).real

    rtol = 1e-4 if dtype == np.float32 else 1e-11
    found = irad.grad(real, argnums=(0, 1))(v.copy(), w.copy())
    wanted = irad.grad(real, argnums=(0, 1), options=_ORACLE)(v.copy(), w.copy())
    for mine, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, other, rtol=rtol, atol=rtol)


def test_second_derivatives_and_forward_mode():
    function = in_place("i + 1", "i", "i")
    v, w = _RANDOM.uniform(0.5, 1.2, 12), _RANDOM.uniform(0.5, 1.2, 12)
    direction = _RANDOM.standard_normal(12)
    gradient = irad.grad(function)(v.copy(), w.copy())
    _, tangent = irad.jvp(function, (v.copy(), w.copy()), (direction.copy(), np.zeros(12)))
    assert tangent == pytest.approx(gradient @ direction, rel=1e-12)
    product = irad.hvp(function)(v.copy(), direction.copy(), w.copy())
    step = 1e-6
    plus, minus = (irad.grad(function)(v + sign * step * direction, w.copy()) for sign in (1.0, -1.0))
    np.testing.assert_allclose(product, (plus - minus) / (2.0 * step), rtol=1e-6, atol=1e-8)
