"""The checker sees what is wrong: irad is replaced by hand-written derivatives, right or broken in one way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit
from numba.core import config

import irad
from irad.options import Options
from irad.testing.check_gradient import check_gradient, reference


@njit
def weighted(x, a):
    s = 0.0
    for i in range(x.size):
        s += a * x[i] ** 2
    x[0] = 7.0
    return s


def by_hand(x: np.ndarray, a: float) -> tuple[float, tuple[Any, ...]]:
    gradients = 2 * a * x, float(np.sum(x.astype(np.float64) ** 2))
    return weighted(x, a), gradients


@pytest.fixture
def install(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make irad answer with a function of (x, a, plan) → (value, gradients)."""

    def replace(answer: Callable[..., tuple[float, tuple[Any, ...]]]) -> None:
        def value_and_grad(f: Any, argnums: Any, *, options: Options) -> Callable[..., Any]:
            return lambda x, a: answer(x, a, options.plan)

        def grad(f: Any, argnums: Any, *, options: Options) -> Callable[..., Any]:
            return lambda x, a: answer(x, a, options.plan)[1]

        monkeypatch.setattr(irad, "value_and_grad", value_and_grad, raising=False)
        monkeypatch.setattr(irad, "grad", grad, raising=False)

    return replace


POINT = (np.array([0.5, 1.5, 2.5]), 1.25)


def test_right_gradient_passes(install: Callable[..., None]):
    install(lambda x, a, plan: by_hand(x, a))
    check_gradient(weighted, *POINT)
    np.testing.assert_array_equal(POINT[0], [0.5, 1.5, 2.5])


def test_single_precision_passes(install: Callable[..., None]):
    install(lambda x, a, plan: by_hand(x, a))
    check_gradient(weighted, np.array([0.5, 1.5], np.float32), 1.25)


@pytest.mark.parametrize(
    ("quick", "oracles"),
    [(False, [("grad", "default", 3), ("value", "save_all", 3)]), (True, [("grad", "save_all", 1)])],
)
def test_what_is_compiled_how(monkeypatch: pytest.MonkeyPatch, quick: bool, oracles: list[Any]):
    seen = []

    def value_and_grad(f: Any, argnums: Any, *, options: Options) -> Callable[..., Any]:
        seen.append(("value", options.plan, int(config.OPT)))
        return by_hand

    def grad(f: Any, argnums: Any, *, options: Options) -> Callable[..., Any]:
        seen.append(("grad", options.plan, int(config.OPT)))
        return lambda x, a: by_hand(x, a)[1]

    monkeypatch.setattr(irad, "value_and_grad", value_and_grad, raising=False)
    monkeypatch.setattr(irad, "grad", grad, raising=False)
    monkeypatch.setattr(config, "OPT", type(config.OPT)(3))
    check_gradient(weighted, *POINT, quick=quick)
    assert seen == [("value", "default", 3), *oracles]


def test_forward_mode_has_to_agree_unless_it_is_not_asked(monkeypatch: pytest.MonkeyPatch):
    def pushforward(f: Any, argnums: Any, *, options: Options | None) -> Callable[..., Any]:
        def pushed(x: Any, a: Any, tangents: Any) -> Any:
            value, (dx, da) = by_hand(x, a)
            return value, dx @ tangents[0] + da * tangents[1] + 1e-6

        return pushed

    monkeypatch.setattr(irad, "pushforward", pushforward, raising=False)
    with pytest.raises(AssertionError, match="forward and reverse mode differ"):
        check_gradient(weighted, *POINT, plans=("default",))
    check_gradient(weighted, *POINT, plans=("default",), quick=True)


@njit
def reverse_only(x):
    return x * x


@irad.rules.augmented_primal(reverse_only)
def reverse_only_augmented(config, x):
    return irad.rules.AugmentedReturn(x.value * x.value, None, x.value)


@irad.rules.reverse(reverse_only)
def reverse_only_reverse(config, cotangent, tape, x):
    return (2.0 * tape * cotangent,)


def test_a_rule_for_reverse_mode_alone_is_no_fault_unless_forward_mode_is_asked_for():
    function = njit(lambda x: reverse_only(x) + x)
    check_gradient(function, 1.5, plans=("default",))
    with pytest.raises(irad.NoRuleError, match="reverse mode only"):
        check_gradient(function, 1.5, plans=("default",), forward=True)


def wrong_number(x, a, plan):
    value, (dx, da) = by_hand(x, a)
    dx[1] += 1e-4
    return value, (dx, da)


def wrong_in_one_plan(x, a, plan):
    value, (dx, da) = by_hand(x, a)
    return value, (dx, da * (1 + 1e-9) if plan == "save_all" else da)


def wrong_value(x, a, plan):
    value, gradients = by_hand(x, a)
    return np.nextafter(value, 10), gradients


def wrong_memory(x, a, plan):
    result = by_hand(x, a)
    x[0] = 0.5
    return result


def wrong_dtype(x, a, plan):
    value, (dx, da) = by_hand(x, a)
    return value, (dx.astype(np.float32), da)


def wrong_shape(x, a, plan):
    value, (dx, da) = by_hand(x, a)
    return value, (dx.reshape(1, 3), da)


def not_a_float(x, a, plan):
    value, (dx, da) = by_hand(x, a)
    return value, (dx, np.array(da))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (wrong_number, "gradient with respect to argument 0"),
        (wrong_in_one_plan, "plans default and save_all differ by argument 1"),
        (wrong_value, "value"),
        (wrong_memory, "after the derivative"),
        (wrong_dtype, "dtype float32 for float64"),
        (wrong_shape, "shape"),
        (not_a_float, "ndarray for float"),
    ],
)
def test_wrong_answers_are_seen(install: Callable[..., None], answer: Callable[..., Any], words: str):
    install(answer)
    with pytest.raises(AssertionError, match=words):
        check_gradient(weighted, *POINT)


def test_a_grad_of_its_own_is_seen(install: Callable[..., None], monkeypatch: pytest.MonkeyPatch):
    install(lambda x, a, plan: by_hand(x, a))
    monkeypatch.setattr(irad, "grad", lambda f, argnums, options: lambda x, a: (2 * a * x, 0.0), raising=False)
    with pytest.raises(AssertionError, match="grad and value_and_grad differ"):
        check_gradient(weighted, *POINT)


def test_only_the_arguments_asked_for(monkeypatch: pytest.MonkeyPatch):
    asked: list[Any] = []

    def value_and_grad(f: Any, argnums: Any, *, options: Options) -> Callable[..., Any]:
        asked.append(argnums)
        return lambda x, a: (by_hand(x, a)[0], (float(np.sum(POINT[0] ** 2)),))

    monkeypatch.setattr(irad, "value_and_grad", value_and_grad, raising=False)
    monkeypatch.setattr(
        irad, "grad", lambda f, argnums, options: lambda x, a: value_and_grad(f, argnums, options=options)(x, a)[1]
    )
    check_gradient(weighted, *POINT, argnums=(1,))
    assert set(asked) == {(1,)}


@njit
def kinked(x):
    return abs(x) + x


def test_a_point_that_is_not_smooth_is_refused():
    with pytest.raises(AssertionError, match="do not converge"):
        reference(kinked, (0.0,))


@njit
def spread(x, n):
    return x * n, n, x.sum()


def test_reference_of_a_tuple_is_contracted_with_a_seed():
    x = np.array([1.0, 2.0], np.float32)
    expected = reference(spread, (x, 3))
    assert expected.argnums == (0,)
    assert expected.seed[1] is None
    assert expected.seed[0].dtype == np.float32
    seed = expected.seed[0].astype(float) * 3 + float(expected.seed[2])
    np.testing.assert_allclose(expected.derivatives[0], seed, rtol=1e-6)


@njit
def spread_and_write(x, n):
    y = x * n
    x[1] = 0.0
    return y, n


@pytest.mark.parametrize("broken", [False, True])
def test_arrays_are_checked_through_vjp(monkeypatch: pytest.MonkeyPatch, broken: bool):
    def vjp(f: Any, x: np.ndarray, n: int, *, options: Options) -> tuple[Any, Callable[..., Any]]:
        def pullback(seed: tuple[np.ndarray, None]) -> tuple[np.ndarray, None]:
            return seed[0] * n * (1.001 if broken else 1.0), None

        return spread_and_write(x, n), pullback

    monkeypatch.setattr(irad, "vjp", vjp, raising=False)
    if broken:
        with pytest.raises(AssertionError, match="gradient with respect to argument 0"):
            check_gradient(spread_and_write, np.array([1.0, 2.0]), 3)
    else:
        check_gradient(spread_and_write, np.array([1.0, 2.0]), 3)


@njit
def path_and_cost(x):
    path = [(i, i + 1) for i in range(x.size)]
    return path, {1: 2}, np.sum(x**2)


def test_parts_of_a_result_without_floats():
    check_gradient(path_and_cost, np.array([1.0, 2.0]))
