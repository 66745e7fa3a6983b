"""`gradcheck` sees what is wrong, and does not take what is right for wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numba import njit, types
from numba.experimental import jitclass
from numba.typed import List as TypedList

import irad
from irad import rules
from irad.errors import SignatureError
from irad.rules import AugmentedReturn, is_active
from irad.testing import GradcheckError, Verdict, gradcheck

X = np.array([0.3, 0.8, 1.7, 2.9])
LARGE = np.random.default_rng(1).uniform(0.5, 2.0, 20_000)

# --------------------------------------------------------------------------------- a rule that is wrong as asked for

RIGHT, SIGN, RELATIVE, ONE_PLACE, BRANCH, NOTHING, UNDEFINED, SPREAD = range(8)


@njit
def damped(x, fault, place):
    total = 0.0
    for i in range(x.size):
        total += x[i] * np.exp(-x[i])
    return total


def damped_augmented(config, x, fault, place):
    kept = x.value.copy() if config.overwritten[0] else x.value
    return AugmentedReturn(damped(x.value, fault.value, place.value), None, kept)


def damped_reverse(config, cotangent, tape, x, fault, place):
    if is_active(x):
        for i in range(tape.size):
            slope = cotangent * (1.0 - tape[i]) * math.exp(-tape[i])
            if fault.value == SIGN:
                slope = -slope
            if fault.value == RELATIVE:
                slope *= 1.0 + 1e-6
            if fault.value == ONE_PLACE and i == place.value:
                slope *= 1.5
            if fault.value == BRANCH and tape[i] > 1.0:
                slope *= 1.001
            if fault.value == NOTHING:
                slope = 0.0
            if fault.value == UNDEFINED and i == place.value:
                slope = math.nan
            if fault.value == SPREAD:
                slope += cotangent * 1e-6
            x.shadow[i] += slope
    return None, None, None


@pytest.fixture(scope="module", autouse=True)
def _the_rule() -> Iterator[None]:
    rules.augmented_primal(damped)(damped_augmented)
    rules.reverse(damped)(damped_reverse)
    yield
    rules.remove(damped)


@njit
def model(x, a, fault, place):
    return a * damped(x, fault, place)


def test_the_right_rule_passes():
    report = gradcheck(model, X, 1.5, RIGHT, 0)
    assert report.right
    assert [(a.name, a.checked, a.method) for a in report.arguments] == [
        ("x", 4, "complex step"),
        ("a", 1, "complex step"),
    ]
    assert all(a.ratio <= 1 and a.accuracy <= 1e-10 for a in report.arguments)


@pytest.mark.parametrize("complex_step", [True, False])
@pytest.mark.parametrize(
    ("fault", "worst"),
    [(SIGN, 0.1), (RELATIVE, 1e-6), (ONE_PLACE, 0.4), (BRANCH, 1e-3), (NOTHING, 1.0), (SPREAD, 1e-6)],
)
def test_wrong_rules_are_seen(fault: int, worst: float, complex_step: bool):
    with pytest.raises(GradcheckError) as caught:
        gradcheck(model, X, 1.5, fault, 2, argnums=0, complex_step=complex_step)
    [argument] = caught.value.report.arguments
    assert argument.verdict is Verdict.WRONG
    assert argument.ratio > 100
    assert argument.worst.startswith("x[")
    assert abs(argument.got - argument.expected) >= 0.5 * worst * abs(argument.expected)


def test_the_place_is_named():
    with pytest.raises(AssertionError) as caught:
        gradcheck(model, X, 1.5, ONE_PLACE, 2)
    exact = 1.5 * (1 - X[2]) * math.exp(-X[2])
    text = str(caught.value)
    assert text.startswith("the gradient of model with respect to x[2] is wrong: got ")
    assert f"test_gradcheck.py:{model.py_func.__code__.co_firstlineno + 1}" in text, "the line of the def"
    assert "argument 0, x: float64[4]" in text
    argument = caught.value.report.arguments[0]  # type: ignore[attr-defined]
    assert argument.got == pytest.approx(1.5 * exact, rel=1e-12)
    assert argument.expected == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("fault", [SIGN, RELATIVE, ONE_PLACE, BRANCH, NOTHING, SPREAD])
def test_wrong_rules_are_seen_in_large_arrays(fault: int):
    with pytest.raises(GradcheckError) as caught:
        gradcheck(model, LARGE, 1.5, fault, 12_345, argnums=0)
    if fault == ONE_PLACE:
        assert caught.value.report.arguments[0].worst == "x[12345]"


def test_large_arrays_need_no_complex_step():
    with pytest.raises(GradcheckError, match=r"respect to x\[777\] is wrong"):
        gradcheck(model, LARGE, 1.5, ONE_PLACE, 777, argnums=0, complex_step=False)


def test_nan_is_seen_and_found_in_large_arrays():
    with pytest.raises(GradcheckError, match=r"respect to x\[4\] is wrong: got nan"):
        gradcheck(model, LARGE[:100], 1.5, UNDEFINED, 4)
    with pytest.raises(GradcheckError, match=r"respect to x\[1\] is wrong: got nan"):
        gradcheck(model, X, 1.5, UNDEFINED, 1)


def test_the_right_rule_passes_in_large_arrays():
    [argument] = gradcheck(model, LARGE, 1.5, RIGHT, 0, argnums=0, directions=3).arguments
    assert argument.checked == 3
    assert "with probability 5e-04" in argument.confidence


def test_wrong_in_single_precision():
    gradcheck(model, X.astype(np.float32), 1.5, RIGHT, 0)
    with pytest.raises(GradcheckError, match=r"respect to x\[\d\] is wrong"):
        gradcheck(model, X.astype(np.float32), 1.5, BRANCH, 0)


def test_a_tolerance_that_is_asked_for():
    assert gradcheck(model, X, 1.5, RELATIVE, 0, rtol=1e-5).right
    assert gradcheck(model, X, 1.5, SPREAD, 0, argnums=0, atol=2e-6).right
    assert not gradcheck(model, X, 1.5, BRANCH, 0, rtol=1e-5, raises=False).right


@pytest.mark.parametrize("mode", ["autodiff", "vjp"])
def test_every_mode_is_seen_through(mode: str):
    gradcheck(model, X, 1.5, RIGHT, 0, modes=(mode,))
    with pytest.raises(GradcheckError):
        gradcheck(model, X, 1.5, SIGN, 0, modes=(mode,))


# ----------------------------------------------------------------------------- rules that are wrong in one respect


@njit
def squared(z):
    return z * z


def squared_augmented(config, z):
    return AugmentedReturn(z.value * z.value, None, z.value)


def squared_without_conjugate(config, cotangent, tape, z):
    return (2.0 * tape * cotangent,)


@njit
def amount(z, w):
    return abs(squared(z) + w) ** 2


def test_a_missing_conjugate_is_seen():
    gradcheck(amount, 1.0 + 2.0j, 0.5j)
    rules.augmented_primal(squared)(squared_augmented)
    rules.reverse(squared)(squared_without_conjugate)
    try:
        with pytest.raises(GradcheckError, match=r"respect to z\.(real|imag) is wrong") as caught:
            gradcheck(amount, 1.0 + 2.0j, 0.5j)
        assert [a.verdict for a in caught.value.report.arguments] == [Verdict.WRONG, Verdict.RIGHT]
    finally:
        rules.remove(squared)


@njit
def overwrite(out, x):
    out[:] = x * x


def overwrite_augmented(config, out, x):
    out.value[:] = x.value * x.value
    return AugmentedReturn(None, None, None)


def overwrite_without_zero(config, cotangent, tape, out, x):
    return None, 2.0 * x.value * out.shadow.sum()


@njit
def through(out, x):
    before = out.sum()
    overwrite(out, x)
    return before * out[0]


def test_a_shadow_that_is_not_cleared_is_seen():
    gradcheck(through, X.copy(), 1.5)
    rules.augmented_primal(overwrite)(overwrite_augmented)
    rules.reverse(overwrite)(overwrite_without_zero)
    try:
        with pytest.raises(GradcheckError, match=r"respect to out\[\d\] is wrong"):
            gradcheck(through, X.copy(), 1.5)
    finally:
        rules.remove(overwrite)


# ------------------------------------------------------------------------------------------------ what is right


@njit
def scaled(x, scale):
    return scale * np.sum(np.sin(x) * x)


@njit
def stiff(x, k):
    return np.exp(-k * x) + np.tanh(k * (x - 1.0)) + x * x


@njit
def folded(x):
    return np.sum(np.abs(x) + np.maximum(x, 2.0 * x))


@njit
def iterated(x):
    s = 1.0
    for _ in range(40):
        s = 0.5 * (s + x / s)
    return s


@njit
def offset(x):
    return 1e12 + np.sin(x)


@njit
def power(z, w):
    return (z**3 * np.conj(w)).sum()


@njit
def written(x, y):
    y *= x
    x[0] = np.sin(x[1])
    return y.sum() * x[1], x * 2.0


@njit
def nested(pair, items, record):
    return pair[0] * pair[1].sum() + items[0] * items[1] ** 2 + record.a * record.b[1]


@njit
def of_records(rows, row):
    s = 0.0
    for i in range(rows.size):
        s += rows[i].a * rows[i].b[1] * row.a
        rows[i].a = s
    row.b[0] = s * row.b[1]
    return s


@njit
def of_a_list(items):
    s = 0.0
    for item in items:
        s += item**3
    return s


@njit
def grown(items, rows):
    items.append(items[0] * rows[1][0])
    items[0] = 2.0
    rows[0][0] = items[2] * 3.0
    return items[1] * items[2] + rows[0][0] * rows[1][1]


@njit
def branching(x):
    s = 0.0
    for i in range(x.size):
        s += x[i] ** 2 if x[i] > 1.0 else 3.0 * x[i]
    return s


@njit
def rooted(x):
    return np.sqrt(x - 1.0).sum() + np.log(x).sum()


@njit
def starred(a, *rest):
    return a * rest[0] * rest[1] ** 2


@njit
def cubed(x):
    return x**3


RECORD = np.array([(2.0, [1.0, 3.0])], np.dtype([("a", "f8"), ("b", "f8", (2,))]))[0]


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (scaled, (X, 1e-12)),
        (scaled, (X, 1e12)),
        (scaled, (X * 1e-12, 1.0)),
        (scaled, (X, 0.0)),
        (scaled, (np.array([1e-12, 1.0, 0.0, 1e3]), 1.0)),
        (scaled, (X.astype(np.float32), np.float32(1.5))),
        (scaled, (LARGE.astype(np.float32), 1e-3)),
        (scaled, (np.zeros(0), 1.0)),
        (scaled, (X[::-1], 2.0)),
        (stiff, (1.0, 1e4)),
        (stiff, (1.00003, 1e5)),
        (folded, (np.array([1e-5, -1e-5, 1e-9, 1.0, -2.0]),)),
        (folded, (np.array([0.0, 1.0, -1.0]),)),
        (folded, (np.concatenate([np.zeros(3), LARGE[:200] - 1.0]),)),
        (iterated, (2.0,)),
        (offset, (1.0,)),
        (power, (X + 1j, X * 1j)),
        (power, ((X + 1j).astype(np.complex64), (X * 1j).astype(np.complex64))),
        (written, (X.copy(), X.copy())),
        (nested, ((2.0, X), TypedList([1.5, 2.5]), RECORD)),
        (of_records, (np.array([RECORD, RECORD]), RECORD)),
        (of_a_list, (TypedList([1.0, 2.0]),)),
        (grown, (TypedList([1.0, 2.0]), TypedList([np.ones(2), X.copy()]))),
        (branching, (np.array([0.5, 1.0 + 1e-6, 3.0]),)),
        (rooted, (np.array([1.0001, 2.0]),)),
        (starred, (1.0, 2.0, 3.0)),
        (cubed, (0.0,)),
        (cubed, (np.full((2, 3), 2.0),)),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_right_gradients_pass(function: Any, args: tuple[Any, ...]):
    report = gradcheck(function, *args)
    assert report.right
    assert all(a.ratio <= 1.0 for a in report.arguments)


def test_kinks_are_listed():
    report = gradcheck(folded, np.array([0.0, 1.0, -1.0]))
    assert report.arguments[0].kinks == ("x[0]",)
    assert "a kink at this point in x[0]" in str(report)


def test_both_modes_at_several_points():
    report = gradcheck(written, X.copy(), X.copy(), modes=("autodiff", "vjp"), points=3)
    assert report.points == 3
    assert [a.checked for a in report.arguments] == [4 * 2 * 2 * 3] * 2


def test_complex_steps_are_left_where_they_are_no_derivative():
    @njit
    def sized(x):
        return np.abs(x).sum() ** 2

    [argument] = gradcheck(sized, X).arguments
    assert argument.method == "finite differences"
    [argument] = gradcheck(offset, 1.0).arguments
    assert argument.method == "complex step"


def test_signatures_of_single_precision():
    @njit([types.float32(types.float32[::1])])
    def summed(x):
        return np.sum(x * x * np.float32(0.5))

    gradcheck(summed, X.astype(np.float32))


# -------------------------------------------------------------------------------------- what cannot be decided


@njit
def stepped(x):
    return np.floor(x) * x


@njit
def rooted_at_zero(x):
    return np.sqrt(np.abs(x))


@njit
def random(x):
    return x * np.random.rand()


@njit
def far(x):
    return np.log(x)


@pytest.mark.parametrize(
    ("function", "at", "words"),
    [
        (stepped, 2.0, "do not converge"),
        (rooted_at_zero, 0.0, "do not converge"),
        (random, 1.0, "two plain calls"),
        (far, -1.0, "infinite or NaN"),
    ],
)
def test_undecided(function: Any, at: float, words: str):
    with pytest.raises(GradcheckError, match=f"(?s)cannot be checked.*{words}"):
        gradcheck(function, at)
    assert gradcheck(function, at, raises=False).verdict is Verdict.UNDECIDED


def test_a_slope_that_the_values_do_not_show_is_not_called_right():
    @njit
    def drowned(x):
        return 1e14 + abs(x) ** 3

    assert gradcheck(drowned, 1.0, raises=False).verdict is Verdict.UNDECIDED


# ----------------------------------------------------------------------------------------------------- domains

SEEN: list[float] = []


@njit
def bounded(x, y):
    if (x < 0.0).any() or (x > 2.0).any():
        raise RuntimeError("outside")
    return np.sum(x * x * y)


@pytest.mark.parametrize("count", [3, 100])
def test_functions_are_not_called_outside_their_domain(count: int):
    x = np.linspace(0.0, 2.0, count)
    with pytest.raises(RuntimeError, match="outside"):
        gradcheck(bounded, x, 1.0)
    report = gradcheck(bounded, x, 1.0, domain={0: (0.0, 2.0)}, points=3)
    assert report.right
    assert report.points == 3


def test_a_domain_with_one_end():
    assert gradcheck(bounded, np.array([0.0, 1.0]), 1.0, domain={0: (0.0, None)}).right


def test_a_point_outside_its_domain_is_refused():
    with pytest.raises(SignatureError, match="argument 0, x, lies outside its domain"):
        gradcheck(bounded, np.array([-1.0, 1.0]), 1.0, domain={0: (0.0, 2.0)})
    with pytest.raises(SignatureError, match="names argument 2"):
        gradcheck(bounded, X, 1.0, domain={2: (0.0, 2.0)})


def test_random_points_outside_are_left_out():
    @njit
    def edge(x):
        return math.sqrt(x - 0.9999)

    report = gradcheck(edge, 1.0, points=5)
    assert report.right
    assert 1 <= len(report.skipped) <= 4
    assert report.points == 5 - len(report.skipped)


# -------------------------------------------------------------------------------------------------- the rest


def test_a_wrong_value_or_memory_is_seen(monkeypatch: pytest.MonkeyPatch):
    honest = irad.autodiff

    def other_value(*args: Any, **options: Any) -> Any:
        gradients, value = honest(*args, **options)
        return gradients, value + 1.0

    monkeypatch.setattr(irad, "autodiff", other_value)
    with pytest.raises(GradcheckError, match="does not run the function as a plain call does: the value"):
        gradcheck(cubed, 2.0)


def test_shared_memory_that_is_written_is_refused():
    with pytest.raises(SignatureError, match="arguments 0 and 1 share memory"):
        gradcheck(written, X, X)


def test_forward_mode_is_checked():
    @njit
    def several(x, n, pair):
        x[0] = x[1] * pair[0]
        return x[::n] * pair[0], pair[1] ** 2 * x[0]

    arguments = X.copy(), 2, (1.5, 0.5 + 0.25j)
    report = gradcheck(several, *arguments, modes=("jvp",))
    assert report.right
    assert [(a.name, a.checked) for a in report.arguments] == [("x", 2 * X.size), ("pair", 2 * 3)]


def test_wrong_tangents_are_seen(monkeypatch: pytest.MonkeyPatch):
    def pushforward(f: Any, argnums: Any, *, options: Any) -> Any:
        return lambda x, tangents: (f(x), 3.0 * x * x * tangents[0] + 1e-5)

    monkeypatch.setattr(irad, "pushforward", pushforward, raising=False)
    with pytest.raises(GradcheckError, match="respect to x is wrong"):
        gradcheck(cubed, 1.0, modes=("jvp",))


def test_unknown_modes_are_refused():
    with pytest.raises(SignatureError, match="does not name modes of irad"):
        gradcheck(cubed, 1.0, modes=("forward",))


def test_nothing_to_check():
    @njit
    def whole(n):
        return 2.0 * n

    with pytest.raises(GradcheckError, match="there is nothing to check"):
        gradcheck(whole, 3)


def test_arguments_stay_as_they_are():
    x, y = X.copy(), X.copy()
    gradcheck(written, x, y)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(y, X)


def test_progress_and_figures():
    seen: list[tuple[str, int, int]] = []
    report = gradcheck(model, X, 1.5, RIGHT, 0, progress=lambda *each: seen.append(each), points=2)
    assert seen[-1] == ("a", 10, 10)
    figures = report.to_dict()
    assert figures["verdict"] == "right"
    assert figures["arguments"][0]["name"] == "x"
    assert "x: float64[4]" in str(report)


@njit
def of_long_names(weights_of_the_first_layer, temperature):
    return np.sum(np.exp(weights_of_the_first_layer / temperature))


@pytest.mark.parametrize("count", [12, 1200])
def test_the_table_has_room_on_a_terminal(count: int):
    lines = str(gradcheck(of_long_names, np.full(count, -123.4567), 1.5)).splitlines()
    assert max(map(len, lines[2:])) <= 80
    assert sum("right" in line for line in lines[2:]) == 2
    assert any(line.startswith("  worst at temperature: got ") for line in lines)


@njit
def of_nested(settings_of_the_whole_simulation):
    return np.sum(settings_of_the_whole_simulation["coefficients of the boundary"]["at the left end of it"][0] ** 2)


def test_the_table_has_room_for_names_that_take_a_whole_line():
    structure = {"coefficients of the boundary": {"at the left end of it": [np.full(3, 2.0)]}}
    text = str(gradcheck(of_nested, structure))
    assert max(map(len, text.splitlines()[2:])) <= 80
    name = "settings_of_the_whole_simulation['coefficients of the boundary']['at the left end of it'][0]"
    assert name in " ".join(text.split())


@pytest.mark.parametrize(
    "settings",
    [
        {"directions": 0, "max_partials": 0},
        {"cotangents": 0},
        {"points": 0},
        {"max_partials": -1},
        {"seed": -1},
        {"rtol": math.nan},
        {"rtol": math.inf},
        {"rtol": -1.0},
        {"atol": math.nan},
        {"domain": {0: 3.0}},
        {"domain": {0: (0.0, 1.0, 2.0)}},
        {"domain": {0: (np.zeros(7), None)}},
        {"domain": {0: ("low", None)}},
        {"domain": {0: (math.nan, None)}},
        {"domain": {0: (9.0, 0.0)}},
        {"domain": {1: (0.0, 9.0)}},
    ],
    ids=str,
)
def test_settings_that_check_nothing_are_refused(settings: dict[str, Any]):
    with pytest.raises(SignatureError) as caught:
        gradcheck(model, X, 1.5, SIGN, 0, **{"argnums": 0, **settings})
    assert caught.value.reason


def test_a_domain_of_one_point_leaves_no_room():
    report = gradcheck(cubed, 1.0, domain={0: (1.0, 1.0)}, raises=False)
    assert report.verdict is Verdict.UNDECIDED


def test_elements_that_share_memory_are_refused():
    for array in (np.broadcast_to(np.array([2.0]), (3,)), np.lib.stride_tricks.sliding_window_view(X, 2)):
        with pytest.raises(SignatureError, match="elements of argument 0 share memory"):
            gradcheck(sum_of_squares, array)
    assert gradcheck(sum_of_squares, np.arange(12.0).reshape(3, 4)[::-1, ::2]).right


@njit
def sum_of_squares(x):
    return (x * x).sum()


@jitclass([("weights", types.float64[:])])
class Layer:
    def __init__(self, weights):
        self.weights = weights


def test_what_cannot_be_checked_is_named():
    @njit
    def of_instance(layer):
        return layer.weights.sum()

    @njit
    def whole(x):
        return x.size

    with pytest.raises(GradcheckError, match="layer, a Layer: gradcheck cannot vary the numbers in it"):
        gradcheck(of_instance, Layer(X))
    with pytest.raises(GradcheckError, match="no result depends on them"):
        gradcheck(whole, X)
    assert "there is nothing to check" in str(gradcheck(whole, X, raises=False))
