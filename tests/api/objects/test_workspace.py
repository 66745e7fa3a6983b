"""Arguments without a role that active values pass through: workspace, and output arrays that are read back."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import float64, int64, njit, prange
from numba.experimental import jitclass
from numba.typed import Dict, List

import irad
from irad.testing.allocations import allocations

PLANS = ("default", "save_all")
X = np.array([1.0, 2.0, 3.0])


def slope(f: Callable[..., Any], make: Callable[[], tuple[Any, ...]], step: float = 1e-6) -> Any:
    """The gradient with respect to the first argument by central differences; ``make`` gives new arguments."""
    at = make()[0]
    found = np.zeros(at.shape, at.dtype)
    for index in np.ndindex(at.shape):
        for unit in (1.0, 1.0j) if at.dtype.kind == "c" else (1.0,):
            values = []
            for sign in (1.0, -1.0):
                arguments = make()
                arguments[0][index] += sign * step * unit
                values.append(f(*arguments))
            found[index] += unit * (values[0] - values[1]) / (2 * step)
    return found


def check(f: Callable[..., Any], make: Callable[[], tuple[Any, ...]], rel: float = 1e-7, step: float = 1e-6) -> None:
    """Value, gradient and final content of all arguments, under both plans, however a gradient is asked for."""
    expected, plain = slope(f, make, step), make()
    value = f(*plain)
    for plan in PLANS:
        options = irad.Options(plan=plan)
        arguments = make()
        found, gradient = irad.value_and_grad(f, options=options)(*arguments)
        assert found == pytest.approx(value, rel=rel)
        np.testing.assert_allclose(gradient, expected, rtol=rel, atol=rel)
        for mine, theirs in zip(arguments, plain, strict=True):
            np.testing.assert_array_equal(mine, theirs)
        np.testing.assert_allclose(irad.grad(f, options=options)(*make()), expected, rtol=rel, atol=rel)
        out = np.full_like(make()[0], 5.0)
        irad.value_and_grad_into(f, options=options)(out, *make())
        np.testing.assert_allclose(out, expected, rtol=rel, atol=rel)


@njit
def squares(x, work):
    for i in range(x.size):
        work[i] = x[i] * x[i]
    total = 0.0
    for i in range(x.size):
        total += (work[i] * x[i]).real
    return total


@njit(parallel=True)
def squares_of_threads(x, work):
    for i in prange(x.size):
        work[i] = x[i] * x[i]
    total = 0.0
    for i in prange(x.size):
        total += (work[i] * x[i]).real
    return total


@njit
def accumulated(x, work):
    total = 0.0
    for i in range(x.size):
        total += work[i] * x[i]
        work[i] = total
    return total * work[0]


@njit
def _fill(work, x, depth):
    if depth > 0:
        _fill(work, x, depth - 1)
    for i in range(x.size):
        work[i] = np.sin(x[i]) + work[i] * 0.5


@njit
def recursive(x, work):
    _fill(work, x, 3)
    return (work[: x.size] * x).sum()


@njit
def output(x, out):
    total = 0.0
    for i in range(x.size):
        out[i] = x[i]
        total += x[i] ** 2
    return total


FUNCTIONS = (squares, squares_of_threads, accumulated, recursive, output)


def buffer() -> Any:
    return np.linspace(7.0, 9.0, 12)


WORK = {
    "contiguous": lambda: buffer()[:5],
    "strided": lambda: buffer()[1::3],
    "reversed": lambda: buffer()[::-1],
    "column": lambda: buffer().reshape(4, 3)[:, 1],
    "Fortran": lambda: np.asfortranarray(buffer().reshape(4, 3))[:, 1],
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
@pytest.mark.parametrize("f", FUNCTIONS, ids=lambda f: f.py_func.__name__)
def test_workspace(f: Any, work: Any) -> None:
    check(f, lambda: (X.copy(), work()))


@pytest.mark.parametrize("f", [squares, squares_of_threads], ids=["serial", "parallel"])
def test_single_precision_and_complex_numbers(f: Any) -> None:
    check(f, lambda: (X.astype(np.float32), buffer().astype(np.float32)), rel=2e-3, step=1e-2)
    check(f, lambda: (X + 0.5j, buffer() + 0j))


def test_the_same_memory_twice() -> None:
    """Workspace that overlaps the differentiated argument, or other workspace, has a shadow that does so, too."""

    @njit
    def f(x, a, b):
        for i in range(x.size):
            a[i] = x[i] * x[i]
        for i in range(x.size):
            b[i] = a[i] * b[i] + 1.0
        return (a[: x.size] * b[: x.size] * x).sum()

    def apart() -> tuple[Any, ...]:
        return X.copy(), buffer()[:4], buffer()[:4]

    def one() -> tuple[Any, ...]:
        shared = buffer()
        return X.copy(), shared[:4], shared[1:5]

    def with_x() -> tuple[Any, ...]:
        shared = np.concatenate((X, buffer()))
        return shared[:3], shared[1:5], shared[6:]

    for make in (apart, one, with_x):
        expected = slope(f, make)
        for plan in PLANS:
            gradient = irad.grad(f, options=irad.Options(plan=plan))(*make())
            np.testing.assert_allclose(gradient, expected, rtol=1e-7)


def test_a_constant_that_shares_memory_with_workspace_is_refused() -> None:
    @njit
    def f(x, work, data):
        for i in range(x.size):
            work[i] = x[i] * data[i]
        return (work[: x.size] * x).sum()

    check(f, lambda: (X.copy(), buffer(), buffer()))
    shared = buffer()
    with pytest.raises(irad.SignatureError, match=r"\(data\) is constant but .* \(work\), which takes active"):
        irad.grad(f)(X.copy(), shared, shared[1:])


def test_parts_of_tuples() -> None:
    @njit
    def f(x, parts):
        work, weights, factor = parts
        for i in range(x.size):
            work[i] = x[i] * weights[i]
        return (work[: x.size] * x).sum() * factor

    make = lambda: (X.copy(), (buffer(), buffer(), 2.0))  # noqa: E731
    np.testing.assert_allclose(irad.grad(f)(*make()), slope(f, make), rtol=1e-7)


def test_records() -> None:
    dtype = np.dtype([("a", np.float64), ("n", np.int64), ("b", np.float64)])

    @njit
    def f(x, record):
        record.a = x[0] * x[1]
        record.n += 1
        record.b = record.a * x[2]
        return record.b * record.a * record.n

    make = lambda: (X.copy(), np.ones(2, dtype)[1])  # noqa: E731
    np.testing.assert_allclose(irad.grad(f)(*make()), slope(f, make), rtol=1e-7)


def test_a_number_is_differentiated() -> None:
    @njit
    def f(x, work):
        work[0] = x * x
        return work[0] * x

    assert irad.grad(f)(2.0, np.zeros(1)) == 12.0
    assert irad.value_and_grad(f)(2.0, np.zeros(1)) == (8.0, 12.0)
    value, pullback = irad.vjp(f, 2.0, np.zeros(1))
    assert (value, pullback(1.0)[0]) == (8.0, 12.0)


def test_inside_compiled_code() -> None:
    gradient = irad.grad(squares)

    @njit
    def norm(x, work):
        return (gradient(x, work) ** 2).sum() + (irad.grad(squares)(x, work) ** 2).sum()

    assert norm(X.copy(), buffer()) == pytest.approx(2 * ((3 * X**2) ** 2).sum())


def test_the_function_is_named_by_position() -> None:
    """Workspace in front of what is differentiated."""

    @njit
    def f(work, x, n):
        for i in range(n):
            work[i] = np.exp(x[i])
        return work[:n].sum()

    np.testing.assert_allclose(irad.grad(f, argnums=1)(buffer(), X.copy(), 3), np.exp(X), rtol=1e-14)
    np.testing.assert_allclose(irad.grad(f, argnums=(1,))(buffer(), X.copy(), 3)[0], np.exp(X), rtol=1e-14)


@njit(parallel=True)
def written_by_threads(x, work):
    total = 0.0
    for i in prange(x.size):
        work[i] = x[i]
        total += x[i] ** 2
    return total


@njit(parallel=True)
def array_expression(x, work):
    work[:3] = np.sin(x) * 2.0
    return (work * work).sum()


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize(
    "f",
    [squares, squares_of_threads, written_by_threads, array_expression, recursive, output],
    ids=lambda f: f.py_func.__name__,
)
def test_const_is_a_promise(f: Any, plan: Any) -> None:
    """Broken, it is refused by name, where the function itself breaks it, a callee or a parallel loop."""
    name = list(inspect.signature(f.py_func).parameters)[1]
    with pytest.raises(irad.ActivityError, match=f"in the memory of argument '{name}', which was passed as") as caught:
        irad.autodiff(
            irad.Reverse,
            f,
            irad.Duplicated(X.copy(), np.zeros(3)),
            irad.Const(buffer()),
            options=irad.Options(plan=plan),
        )
    assert "a constant argument has no shadow, so this derivative would be lost" in str(caught.value)
    x, work = X.copy(), buffer()
    dx, dwork = np.zeros(3), np.zeros_like(work)
    irad.autodiff(irad.Reverse, f, irad.Duplicated(x, dx), irad.Duplicated(work, dwork))  # the first remedy
    np.testing.assert_allclose(dx, slope(f, lambda: (X.copy(), buffer())), rtol=1e-7)


@pytest.mark.parametrize("f", [squares, squares_of_threads], ids=["serial", "parallel"])
def test_cache_is_workspace(f: Any) -> None:
    """In both modes and in compiled code, whatever it holds; what is passed as `Const` beside it stays a promise."""
    expected, work = 3 * X**2, np.full(3, np.nan)
    dx = np.zeros(3)
    irad.autodiff(irad.Reverse, f, irad.Duplicated(X.copy(), dx), irad.Cache(work))
    np.testing.assert_allclose(dx, expected, rtol=1e-14)
    assert irad.autodiff(irad.Forward, f, irad.Duplicated(X, X.copy()), irad.Cache(work)) == pytest.approx(expected @ X)

    @njit
    def inside(x, dx, work):
        irad.autodiff(irad.Reverse, f, irad.Duplicated(x, dx), irad.Cache(work))
        return dx

    np.testing.assert_allclose(inside(X, np.zeros(3), work), expected, rtol=1e-14)
    assert irad.Constant is irad.Const


def test_cache_of_an_object_beside_a_constant() -> None:
    dx = np.zeros(3)
    irad.autodiff(irad.Reverse, array_of_an_instance_in_threads, irad.Duplicated(X.copy(), dx), irad.Cache(Buffers(3)))
    np.testing.assert_allclose(dx, 3 * X**2, rtol=1e-14)

    @njit
    def f(x, work, kept):
        work[:] = x * x
        kept[:] = work
        return (kept * x).sum()

    with pytest.raises(irad.ActivityError, match="argument 'kept', which was passed as constant") as caught:
        irad.autodiff(irad.Reverse, f, irad.Duplicated(X.copy(), dx), irad.Cache(np.empty(3)), irad.Const(np.empty(3)))
    assert "irad.Duplicated(array" in str(caught.value)


@pytest.mark.parametrize("plan", PLANS)
def test_a_constant_may_be_written_with_constants(plan: Any) -> None:
    @njit(parallel=True)
    def counted(x, counts, flags):
        total = 0.0
        for i in prange(x.size):
            counts[i] += 1.0
            flags[i] = x[i] > 1.5
            total += x[i] ** 2 * counts[i]
        return total

    dx, counts, flags = np.zeros(3), np.zeros(3), np.zeros(3, np.bool_)
    irad.autodiff(
        irad.Reverse,
        counted,
        irad.Duplicated(X.copy(), dx),
        irad.Const(counts),
        irad.Const(flags),
        options=irad.Options(plan=plan),
    )
    np.testing.assert_array_equal(dx, 2 * X)
    assert counts.tolist() == [1.0, 1.0, 1.0]
    assert flags.tolist() == [False, True, True]


REFUSED = (irad.ActivityError, irad.UnsupportedProgram)  # at several places


@jitclass([("array", float64[::1]), ("number", float64)])
class Buffers:
    def __init__(self, n: int) -> None:
        self.array = np.zeros(n)
        self.number = 0.0


def buffers() -> Any:
    return Buffers(3)


def arrays() -> Any:
    return List([np.zeros(3)])


def numbers() -> Any:
    made = Dict()
    made[0] = 0.0
    return made


@njit(parallel=True)
def array_of_an_instance_in_threads(x, held):
    work = held.array
    for i in prange(x.size):
        work[i] = x[i] * x[i]
    return (work * x).sum()


@njit(parallel=True)
def array_of_a_list_in_threads(x, held):
    work = held[0]
    for i in prange(x.size):
        work[i] = x[i] * x[i]
    return (work * x).sum()


@irad.rules.noinline
@njit
def _into_instance(x, held):
    held.number = x[0] * x[1]
    for i in range(x.size):
        held.array[i] = x[i] * x[i]


@njit
def instance_in_a_callee(x, held):
    _into_instance(x, held)
    return (held.array * x).sum() * held.number


@irad.rules.noinline
@njit
def _into_parts(x, parts):
    parts[0][:] = x * x


@njit
def arrays_in_a_new_list(x, held):
    _into_parts(x, [held[0]])
    return (held[0] * x).sum()


@irad.rules.noinline
@njit
def _into_dictionary(x, held):
    held[0] = x[0] * x[1]


@njit
def dictionary_in_a_callee(x, held):
    _into_dictionary(x, held)
    return held[0] * x[2]


@pytest.mark.parametrize(
    ("f", "make"),
    [
        (array_of_an_instance_in_threads, buffers),
        (array_of_a_list_in_threads, arrays),
        (instance_in_a_callee, buffers),
        (arrays_in_a_new_list, arrays),
        (dictionary_in_a_callee, numbers),
    ],
    ids=lambda each: each.__name__,
)
def test_objects_filled_elsewhere(f: Any, make: Any) -> None:
    """In a parallel loop or a callee: an object is workspace as in serial code, and `Const` the same promise."""
    expected = slope(f, lambda: (X.copy(), make()))
    np.testing.assert_allclose(irad.grad(f)(X.copy(), make()), expected, rtol=1e-7)
    np.testing.assert_allclose(irad.jvp(f, (X.copy(), make()), (X.copy(), None))[1], expected @ X, rtol=1e-7)
    for mode in (irad.Reverse, irad.Forward):
        with pytest.raises(REFUSED, match="the memory of argument 'held', which was passed as constant"):
            irad.autodiff(mode, f, irad.Duplicated(X.copy(), np.zeros(3)), irad.Const(make()))


def test_a_parameter_called_out() -> None:
    """The destination of `irad.value_and_grad_into` has another name then."""
    gradient = np.empty(3)
    assert irad.value_and_grad_into(output)(gradient, X.copy(), np.zeros(3)) == 14.0
    np.testing.assert_array_equal(gradient, 2 * X)
    assert irad.value_and_grad_into(output)(gradient, x=X.copy(), out=np.zeros(3)) == 14.0


@njit
def noted(x, history):
    total = 0.0
    for value in x:
        total += value * value
        history.append(total)
    return history[-1] * history[0]


@jitclass([("values", float64[:]), ("count", int64), ("product", float64)])
class State:
    """Workspace of a model."""

    def __init__(self):
        self.values = np.zeros(4)
        self.count = 0
        self.product = 0.0


@njit
def stepped(x, state):
    for i in range(x.size):
        state.values[i] = x[i] * x[i]
        state.count += 1
    state.product = state.values[0] * state.values[1]
    return state.product * state.values[2] * state.count


@njit
def in_lists(x, arrays):
    arrays[0][:3] = x * x
    return (arrays[0][:3] * x * arrays[1][0]).sum()


def typed_list(*items: Any) -> Any:
    found = List()
    for item in items:
        found.append(item)
    return found


OBJECTS = {
    "typed list": (noted, lambda: typed_list(5.0)),
    "list": (noted, lambda: [5.0]),
    "instance": (stepped, State),
    "list of arrays": (in_lists, lambda: typed_list(np.ones(4), np.full(2, 3.0))),
}


@pytest.mark.parametrize(("f", "work"), OBJECTS.values(), ids=OBJECTS)
def test_lists_and_instances(f: Any, work: Any) -> None:
    expected = slope(f, lambda: (X.copy(), work()))
    for plan in PLANS:
        options = irad.Options(plan=plan)
        np.testing.assert_allclose(irad.grad(f, options=options)(X.copy(), work()), expected, rtol=1e-6)
    with pytest.raises(irad.IradError, match="constant") as caught:
        irad.autodiff(irad.Reverse, f, irad.Duplicated(X.copy(), np.zeros(3)), irad.Const(work()))
    errors = getattr(caught.value, "errors", (caught.value,))
    assert all(isinstance(each, irad.ActivityError) for each in errors)


def test_workspace_does_not_leak() -> None:
    lists = typed_list(np.ones(4), np.full(2, 3.0))

    def run() -> None:
        irad.grad(stepped)(X.copy(), State())
        irad.grad(in_lists)(X.copy(), lists)
        irad.grad(squares)(X.copy(), buffer())

    run()
    with allocations() as count:
        for _ in range(10):
            run()
        assert (count().kept, count().kept_headers) == (0, 0)
