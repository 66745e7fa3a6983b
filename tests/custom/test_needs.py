"""Facts about a call that its rule gets: is its value needed, does it take part, which parts of arguments do."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import njit
from numba.extending import register_jitable

import irad
from irad import rules
from irad.errors import RuleError
from irad.rules import AugmentedReturn, is_active
from irad.testing.check_gradient import check_quickly

# ------------------------------------------------------------------------------------------------ is the value needed


@njit
def square(x):
    return x * x


def _maybe(config, x):
    if config.needs_primal:
        return AugmentedReturn(x.value * x.value, None, None)
    return AugmentedReturn(None, None, None)


def _doubled(config, cotangent, tape, x):
    return (2.0 * x.value * cotangent * (1.0 if config.needs_primal else 100.0),)


def _sum(x):
    return square(x) + x


def _scaled(x):
    return 3.0 * square(x) / 4.0 - x


def _total(x):
    total = 0.0
    for i in range(3):
        total += square(x + i)
    return total


def _chosen(x):
    return square(x) if x > 1.0 else -square(x)


def _power(x):
    return square(x) ** 2


def _product(x):
    return square(x) * x


def _divisor(x):
    return 1.0 / square(x)


def _compared(x):
    value = square(x)
    return value if value > 1.0 else 2.0 * value


def _stored(x):
    a = np.empty(2)
    a[0] = square(x)
    a[1] = x
    return a[0 if x > 1.0 else 1] * x


@pytest.mark.parametrize("f", [_sum, _scaled, _total, _chosen])
def test_a_value_that_is_used_linearly_is_not_needed(with_rule, f):
    with_rule(square, _maybe, _doubled)
    program = njit(f)
    rest = -1.0 if f is _scaled else 1.0 if f is _sum else 0.0
    by_square = {_sum: 4.0, _scaled: 3.0, _total: 18.0, _chosen: 4.0}[f]
    assert irad.grad(program)(2.0) == 100.0 * by_square + rest
    assert irad.value_and_grad(program)(2.0) == (program(2.0), by_square + rest)


@pytest.mark.parametrize("f", [_power, _product, _divisor, _compared, _stored])
def test_a_value_that_is_used_otherwise_is_needed(with_rule, f):
    with_rule(square, _maybe, _doubled)
    check_quickly(njit(f), 2.0)


@pytest.mark.parametrize("f", [square, njit(_sum), njit(_scaled), njit(_total), njit(_chosen)])
def test_a_value_that_vjp_returns_is_needed(with_rule, f):
    with_rule(square, _maybe, _doubled)
    value, pullback = irad.vjp(f, 2.0)
    assert value == f(2.0)
    assert pullback(0.5) == (0.5 * irad.value_and_grad(f)(2.0)[1],)


def test_a_value_that_vjp_returns_in_a_tuple_is_needed(with_rule):
    with_rule(square, _maybe, _doubled)
    value, pullback = irad.vjp(njit(lambda x: (square(x), x)), 2.0)
    assert value == (4.0, 2.0)
    assert pullback((1.0, 3.0)) == (7.0,)


def test_a_value_that_is_read_back_is_needed(with_rule):
    with_rule(square, _maybe, _doubled)

    @njit
    def f(out, x):
        out[0] = square(x)
        return out[0] ** 2

    @njit
    def only_stored(out, x):
        out[0] = square(x)

    out = irad.DuplicatedNoNeed(np.zeros(1), np.zeros(1))
    assert irad.autodiff(irad.Reverse, f, out, irad.Active(2.0)) == (None, 32.0)
    out = irad.DuplicatedNoNeed(np.zeros(1), np.ones(1))
    assert irad.autodiff(irad.Reverse, only_stored, out, irad.Active(2.0), seed=None) == (None, 400.0)


def test_in_debug_mode_every_value_is_needed(with_rule):
    with_rule(square, _maybe, _doubled)
    assert irad.grad(njit(_sum), options=irad.Options(debug=True))(2.0) == 5.0


def test_a_needed_value_must_be_returned(with_rule):
    with_rule(square, lambda config, x: AugmentedReturn(None, None, None), _doubled)
    with pytest.raises(RuleError, match="a primal of the wrong type"):
        irad.grad(njit(_power))(2.0)


# ------------------------------------------------------------------------------------------------ constant values


@njit
def scale(a, k):
    return a * k


def _scale_augmented(config, a, k):
    return AugmentedReturn(a.value * k.value, np.zeros_like(a.value), a.value.copy())


def _scale_reverse(config, cotangent, tape, a, k):
    if is_active(a) and is_active(cotangent):
        a.shadow[:] += cotangent * k.value
    if not config.has_cotangent:
        return None, 0.0
    return None, (cotangent * tape).sum() if is_active(k) else 0.0


def test_a_rule_knows_that_the_value_takes_no_part(with_rule):
    with_rule(scale, _scale_augmented, _scale_reverse)

    @njit
    def size(a, k):
        return a.sum() * k * scale(a, k).size

    @njit
    def compared(a, k):
        return a.sum() * k if scale(a, k)[0] > 1.0 else k

    @njit
    def whole(a, k):
        return (scale(a, k) ** 2).sum()

    for f in (size, compared, whole):
        check_quickly(f, np.array([1.0, 2.0]), 3.0)


def _unguarded(config, cotangent, tape, a, k):
    if is_active(a):
        a.shadow[:] += cotangent * k.value
    return None, (cotangent * tape).sum() if is_active(k) else 0.0


def test_a_rule_is_not_asked_where_nothing_comes_out(with_rule):
    with_rule(scale, _scale_augmented, _unguarded)

    @njit
    def size(a, k):
        return a.sum() * k * scale(a, k).size

    @njit
    def compared(a, k):
        return a.sum() * k if scale(a, k)[0] > 1.0 else k

    for f in (size, compared):
        check_quickly(f, np.array([1.0, 2.0]), 3.0)


@njit
def _itself(a):
    return a


def test_what_comes_out_for_company_keeps_its_shadow(with_rule):
    with_rule(
        _itself,
        lambda config, a: AugmentedReturn(a.value, a.shadow, None),
        lambda config, cotangent, tape, a: None,
    )

    @njit
    def f(a, k):
        b = _itself(a)
        return a.sum() * k * b[1:].size + b[0]

    check_quickly(f, np.array([1.0, 2.0]), 3.0)


@njit
def _counted(counts, x):
    counts[0] += 1.0
    return x * x


def test_the_reverse_runs_without_cotangent_where_memory_is_overwritten(with_rule):
    def augmented(config, counts, x):
        return AugmentedReturn(_counted(counts.value, x.value), None, None)

    def reverse(config, cotangent, tape, counts, x):
        if is_active(cotangent):
            return None, 2.0 * x.value * cotangent
        return None, 0.0

    with_rule(_counted, augmented, reverse)

    @njit
    def f(x):
        counts = np.full(1, x)
        return x * counts[0] if _counted(counts, x) > 0.0 else x

    check_quickly(f, 3.0)


def test_a_rule_in_python_is_not_asked_for_a_value_that_takes_no_part():
    def rule(a):
        def pullback(cotangent):
            raise AssertionError("nobody has a cotangent")

        return 2.0 * a, pullback

    @njit
    def twice(a):
        return 2.0 * a

    rules.import_rule(twice, rule)

    @njit
    def f(a):
        return a.sum() * twice(a).size

    np.testing.assert_array_equal(irad.grad(f)(np.ones(2)), 2.0)
    rules.remove(twice)


# ------------------------------------------------------------------------------------------------ parts, and helpers


class Pair(NamedTuple):
    x: float
    a: Any


@njit
def volume(pair, sides):
    return pair.x * pair.a.sum() * sides[0] * sides[1]


@njit
def _helper(config, pair, sides, cotangent):
    if is_active(pair, "a"):
        pair.shadow.a[:] += cotangent * pair.value.x * sides.value[0] * sides.value[1]
    return


@register_jitable
def _by_number(cotangent, pair, sides):
    if is_active(pair, 0):
        return cotangent * pair.value.a.sum() * sides.value[0] * sides.value[1], None
    return None


def _volume_augmented(config, pair, sides):
    return AugmentedReturn(volume(pair.value, sides.value), None, None)


def _volume_reverse(config, cotangent, tape, pair, sides):
    _helper(config, pair, sides=sides, cotangent=cotangent)
    x, a, s = pair.value.x, pair.value.a, sides.value
    first = cotangent * x * a.sum() * s[1] if is_active(sides, 0) else None
    second = cotangent * x * a.sum() * s[0] if is_active(sides, 1) else None
    return _by_number(cotangent, pair, sides), (first, second)


def _all_parts(x, a, y, z):
    return volume(Pair(x, a), (y, z))


def _only_array(x, a, y, z):
    return volume(Pair(3.0, a), (2.0, 4.0)) + x + y + z


def _numbers_of_one(x, a, y, z):
    return volume(Pair(x, np.ones(2)), (2.0, z)) * y


def _one_side(x, a, y, z):
    return volume(Pair(3.0, np.ones(2)), (y, 2.0)) + a.sum()


@pytest.mark.parametrize("f", [_all_parts, _only_array, _numbers_of_one, _one_side])
def test_a_rule_knows_which_parts_take_part(with_rule, f):
    with_rule(volume, _volume_augmented, _volume_reverse)
    check_quickly(njit(f), 1.5, np.array([1.0, 2.0]), 0.5, 0.25)


@pytest.mark.parametrize("part", [5, "b", -1])
def test_parts_that_are_not_there(with_rule, part):
    def reverse(config, cotangent, tape, pair, sides):
        if is_active(pair, part):
            return None, None
        return None, None

    with_rule(volume, _volume_augmented, reverse)
    with pytest.raises(RuleError, match=f"is called for the part {part!r}"):
        irad.grad(njit(_all_parts))(1.5, np.ones(2), 0.5, 0.25)


# ------------------------------------------------------------------------------------------------ arrays made in loops


@njit
def norm(a):
    return (a * a).sum()


def _norm_augmented(config, a):
    return AugmentedReturn(norm(a.value), None, a.value.copy() if config.overwritten[0] else a.value)


def _norm_reverse(config, cotangent, tape, a):
    a.shadow[:] += 2.0 * cotangent * tape


def _norm_marking(config, cotangent, tape, a):
    if config.overwritten[0]:
        a.shadow[:] = np.nan
    else:
        a.shadow[:] += 2.0 * cotangent * tape


def _fresh(x, n):
    total = 0.0
    for i in range(n):
        b = np.empty(2)
        b[0], b[1] = x * i, x
        total += norm(b)
    return total


def _nested(x, n):
    total = 0.0
    for i in range(n):
        for j in range(i):
            b = np.empty(2)
            b[0], b[1] = x * i, x + j
            if b[0] > b[1]:
                total += norm(b)
    return total


def _filled_by_a_call(x, n):
    total = 0.0
    for i in range(n):
        b = np.full(3, x * i)
        b += x
        total += norm(b)
    return total


def _written_afterwards(x, n):
    total = 0.0
    for i in range(n):
        b = np.empty(2)
        b[0], b[1] = x * i, x
        total += norm(b)
        b[0] = 0.0
        total += b[1]
    return total


def _written_in_an_inner_loop(x, n):
    total = 0.0
    for i in range(n):
        b = np.full(2, x)
        for j in range(2):
            total += norm(b)
            b[j] = x * i
    return total


def _handed_on(x, n):
    total = 0.0
    old = np.ones(2)
    for i in range(n):
        b = np.empty(2)
        b[0], b[1] = x * i, x
        total += norm(b)
        old[:] = 0.0
        old = b
    return total + old[0]


def _before_the_next(x, n):
    total = 0.0
    b = np.full(2, x)
    for i in range(n):
        b[0] = x * i
        total += norm(b)
        if i == 1:
            b = np.full(2, x + i)
    return total


FRESH = [_fresh, _nested, _filled_by_a_call]
CHANGED = [_written_afterwards, _written_in_an_inner_loop, _handed_on, _before_the_next]


@pytest.mark.parametrize("f", [*FRESH, *CHANGED])
def test_arrays_of_loops_are_copied_where_they_change(with_rule, f):
    with_rule(norm, _norm_augmented, _norm_reverse)
    check_quickly(njit(f), 2.0, 4, argnums=(0,))


@pytest.mark.parametrize("f", [*FRESH, *CHANGED])
def test_arrays_of_loops_are_copied_only_there(with_rule, f):
    with_rule(norm, _norm_augmented, _norm_marking)
    assert bool(np.isnan(irad.grad(njit(f))(2.0, 4))) is (f in CHANGED)


# ---------------------------------------------------------------------------------- what the body does not depend on


@njit
def first(a, b):
    """A function whose rule says that the result depends on both arrays, where the body reads one."""
    return a[0]


def _of_both(config, cotangent, tape, a, b):
    if is_active(a):
        a.shadow[0] += cotangent
    if is_active(b):
        b.shadow[:] += cotangent
    return None, None


def _tangent_of_both(config, a, b):
    tangent = a.tangent[0] if is_active(a) else 0.0
    return a.value[0], tangent + b.tangent.sum() if is_active(b) else tangent


@pytest.mark.parametrize("plan", ["default", "save_all"])
def test_a_rule_may_depend_on_arrays_that_the_body_does_not_read(with_rule, plan):
    with_rule(first, lambda config, a, b: AugmentedReturn(a.value[0], None, None), _of_both)
    rules.forward(first)(_tangent_of_both)

    @njit
    def local(x):
        a, b = np.empty(2), np.empty(3)
        for i in range(2):
            a[i] = x * x
        for i in range(3):
            b[i] = x * x
        return first(a, b)

    @njit
    def only_the_second(x, b):
        return x * first(np.ones(1), b)

    options = irad.Options(plan=plan)
    assert irad.grad(local, options=options)(3.0) == 6.0 + 18.0
    assert irad.jvp(local, (3.0,), (1.0,)) == (9.0, 24.0)
    found = irad.grad(only_the_second, argnums=1, options=options)(2.0, np.ones(3))
    np.testing.assert_array_equal(found, 2.0)
    assert irad.jvp(only_the_second, (2.0, np.ones(3)), (0.0, np.ones(3)))[1] == 6.0
