"""The checks of rules accept right ones and name what is wrong with wrong ones: for each property there is a fault."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import carray, njit, types
from numba.core import cgutils
from numba.extending import intrinsic

import irad
from irad import rules
from irad.errors import RuleError, SignatureError
from irad.rules import AugmentedReturn, is_active
from irad.testing import Property, RuleFault, check_rule, test_reverse, unchecked_rules
from irad.testing.gradients.objective import Objective
from irad.testing.gradients.trial import Trial
from irad.testing.rules.programs import Passed, activities, call_once
from irad.testing.rules.reverse_rule import Checker, _passed

A, B = np.array([0.7, -1.2]), np.array([1.3, 0.4])


@contextmanager
def ruled(f: Any, augmented: Any, reverse: Any) -> Iterator[Any]:
    """A function while it has a rule."""
    rules.augmented_primal(f)(augmented)
    rules.reverse(f)(reverse)
    try:
        yield f
    finally:
        rules.remove(f)


# ------------------------------------------------------------------------------------------------ right rules


@njit
def inner(a, b):
    total = a[0] * b[0]
    for i in range(1, a.size):
        total += a[i] * b[i]
    return total


def inner_augmented(config, a, b):
    kept_a = a.value.copy() if config.overwritten[0] and is_active(b) else a.value
    kept_b = b.value.copy() if config.overwritten[1] and is_active(a) else b.value
    return AugmentedReturn(inner(a.value, b.value), None, (kept_a, kept_b))


def inner_reverse(config, cotangent, tape, a, b):
    for i in range(a.value.size):
        if is_active(a):
            a.shadow[i] += cotangent * tape[1][i]
        if is_active(b):
            b.shadow[i] += cotangent * tape[0][i]


@njit
def fill(out, x):
    out[:] = x * x


def fill_augmented(config, out, x):
    out.value[:] = x.value * x.value
    return AugmentedReturn(None, None, None)


def fill_reverse(config, cotangent, tape, out, x):
    by_x = 2.0 * x.value * out.shadow.sum()
    out.shadow[:] = 0.0
    return None, by_x


@njit
def pair(z, both):
    return z * both[0], both[1] * both[0]


def pair_augmented(config, z, both):
    second = both.value[1] * both.value[0]
    return AugmentedReturn((z.value * both.value[0], second), (None, np.zeros_like(second)), both.value[1].copy())


def pair_reverse(config, cotangent, tape, z, both):
    by_number, by_array = cotangent
    x = both.value[0]
    both.shadow[1][:] += by_array * x
    by_x = (by_number * np.conj(z.value)).real + (by_array * tape).sum()
    return by_number * x, (by_x, None)


def test_a_right_rule_passes_every_check():
    with ruled(inner, inner_augmented, inner_reverse):
        assert "inner" in unchecked_rules()
        check_rule(inner, A, B, single=False)
        assert "inner" not in unchecked_rules()
        rules.reverse(inner)(inner_reverse)
        assert "inner" in unchecked_rules()


def test_a_right_rule_passes_in_single_precision():
    with ruled(inner, inner_augmented, inner_reverse):
        test_reverse(inner, A.astype(np.float32), irad.Const(B.astype(np.float32)))


def test_a_function_that_only_writes():
    with ruled(fill, fill_augmented, fill_reverse):
        test_reverse(fill, A, 0.8)


def test_complex_numbers_tuples_and_annotations():
    with ruled(pair, pair_augmented, pair_reverse):
        test_reverse(pair, 0.5 - 0.3j, irad.MixedDuplicated((0.7, A), None))


def test_a_function_of_a_library_and_one_of_python():
    def plain(a, b):
        return a[0] * b[0] + a[1] * b[1]

    for f in (np.dot, plain):
        with ruled(f, inner_augmented, inner_reverse):
            test_reverse(f, A, irad.Const(B))


def test_a_function_that_writes_what_is_there_already():
    @njit
    def clear(out, x):
        out[:] = 0.0 * x

    def augmented(config, out, x):
        out.value[:] = 0.0 * x.value
        return AugmentedReturn(None, None, None)

    def reverse(config, cotangent, tape, out, x):
        out.shadow[:] = 0.0
        return None, 0.0

    with ruled(clear, augmented, reverse):
        check_rule(clear, np.zeros(2), 0.8, single=False)


# ------------------------------------------------------------------------------------------------ seeded faults


@njit
def norm(a):
    total = a[0] * a[0]
    for i in range(1, a.size):
        total += a[i] * a[i]
    return total


def norm_augmented(config, a):
    return AugmentedReturn(norm(a.value), None, a.value.copy())


def norm_reverse(config, cotangent, tape, a):
    a.shadow[:] += 2.0 * cotangent * tape


def assigns(config, cotangent, tape, a):
    a.shadow[:] = 2.0 * cotangent * tape


def keeps_no_copy(config, a):
    return AugmentedReturn(norm(a.value), None, a.value)


def wrong_primal(config, a):
    return AugmentedReturn(norm(a.value) + 1e-6, None, a.value.copy())


def factor_missing(config, cotangent, tape, a):
    a.shadow[:] += cotangent * tape


def wrong_when_overwritten(config, cotangent, tape, a):
    a.shadow[:] += (3.0 if config.overwritten[0] else 2.0) * cotangent * tape


def mutates(config, a):
    kept = a.value.copy()
    a.value[0] += 1.0
    return AugmentedReturn(norm(kept), None, kept)


def mutates_in_the_reverse(config, cotangent, tape, a):
    a.shadow[:] += 2.0 * cotangent * tape
    a.value[:] *= 2.0


def changes_its_tape(config, cotangent, tape, a):
    tape *= 2.0
    a.shadow[:] += cotangent * tape


def rounds(config, cotangent, tape, a):
    large = a.value.dtype.type(2.0**20)
    a.shadow[:] += 2.0 * cotangent * ((tape + large) - large)


@intrinsic
def forget(context, array):
    """Takes a reference and never drops it."""

    def emit(context, builder, signature, arguments):
        context.nrt.incref(builder, array, arguments[0])
        return context.get_dummy_value()

    return types.none(array), emit


def leaks(config, cotangent, tape, a):
    forget(tape.copy())
    a.shadow[:] += 2.0 * cotangent * tape


SHARED = np.zeros(2)
ADDRESS = SHARED.ctypes.data


@intrinsic
def as_pointer(context, address):
    def emit(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(address), emit


def shares_a_buffer(config, a):
    carray(as_pointer(ADDRESS), (2,), np.float64)[:] = a.value
    return AugmentedReturn(norm(a.value), None, None)


def reads_the_buffer(config, cotangent, tape, a):
    a.shadow[:] += 2.0 * cotangent * carray(as_pointer(ADDRESS), (2,), np.float64)


NORM_FAULTS: list[tuple[Callable[..., Any], Callable[..., Any], Property, Callable[..., Any]]] = [
    (norm_augmented, assigns, Property.ACCUMULATION, assigns),
    (keeps_no_copy, norm_reverse, Property.CHANGED, keeps_no_copy),
    (wrong_primal, norm_reverse, Property.VALUE, wrong_primal),
    (norm_augmented, factor_missing, Property.DERIVATIVE, factor_missing),
    (norm_augmented, wrong_when_overwritten, Property.DERIVATIVE, wrong_when_overwritten),
    (mutates, norm_reverse, Property.MUTATION, mutates),
    (norm_augmented, mutates_in_the_reverse, Property.MUTATION, mutates_in_the_reverse),
    (norm_augmented, changes_its_tape, Property.REUSE, changes_its_tape),
    (norm_augmented, leaks, Property.ALLOCATION, leaks),
    (shares_a_buffer, reads_the_buffer, Property.LIVE_CALLS, reads_the_buffer),
]


def expect(fault: Property, culprit: Callable[..., Any], f: Any, *arguments: Any, **options: Any) -> RuleFault:
    """Checks that a check of a rule finds a fault, and says where."""
    with pytest.raises(RuleFault) as caught:
        check_rule(f, *arguments, **options)
    found = caught.value
    assert found.property is fault, found
    assert f"fails in {fault.value}" in str(found)
    assert "expected" in str(found)
    assert "got" in str(found)
    assert f"{Path(__file__)}:{culprit.__code__.co_firstlineno} in {culprit.__qualname__}" in str(found)
    return found


@pytest.mark.parametrize(
    ("augmented", "reverse", "fault", "culprit"),
    NORM_FAULTS,
    ids=lambda x: x.value if isinstance(x, Property) else x.__name__,
)
def test_a_fault_is_found_and_named(augmented, reverse, fault, culprit):
    with ruled(norm, augmented, reverse):
        expect(fault, culprit, norm, A, single=False)


def test_wrong_in_single_precision_only():
    with ruled(norm, norm_augmented, rounds):
        found = expect(Property.PRECISION, rounds, norm, A)
    assert "float32" in str(found)


def test_wrong_sign_on_one_branch():
    @njit
    def bend(x):
        return x * x if x > 0.0 else -x * x

    def augmented(config, x):
        return AugmentedReturn(bend(x.value), None, None)

    def reverse(config, cotangent, tape, x):
        return (2.0 * x.value * cotangent,)

    with ruled(bend, augmented, reverse):
        check_rule(bend, 1.5, single=False)
        found = expect(Property.DERIVATIVE, reverse, bend, -1.5)
    assert float(found.expected[0]) == pytest.approx(-float(found.got[0]))


def test_the_shadow_of_overwritten_memory_is_not_cleared():
    def reverse(config, cotangent, tape, out, x):
        return None, 2.0 * x.value * out.shadow.sum()

    with ruled(fill, fill_augmented, reverse):
        expect(Property.ZEROING, reverse, fill, A, 0.8)


def test_a_case_with_constants_that_was_forgotten():
    def reverse(config, cotangent, tape, a, b):
        for i in range(a.value.size):
            a.shadow[i] += cotangent * tape[1][i]
            b.shadow[i] += cotangent * tape[0][i]

    with ruled(inner, inner_augmented, reverse):
        found = expect(Property.ACTIVITY, reverse, inner, A, B, aliasing=False)
    assert "Const" in str(found)


def test_a_constant_value_that_was_forgotten():
    @njit
    def counted(counts, x):
        counts[0] += 1.0
        return x * x

    def augmented(config, counts, x):
        return AugmentedReturn(counted(counts.value, x.value), None, None)

    def reverse(config, cotangent, tape, counts, x):
        return None, 2.0 * x.value * cotangent

    with ruled(counted, augmented, reverse):
        expect(Property.ACTIVITY, reverse, counted, np.ones(1), 0.8, single=False)


def test_the_combinations_of_many_arguments():
    chosen = list(activities((True, False, True, True, True, True)))
    assert chosen[0] == (True, False, True, True, True, True)
    assert set(activities((True, True))) == {(True, True), (True, False), (False, True)}
    assert list(activities((True, False))) == [(True, False)]


@pytest.mark.parametrize(
    ("size", "most"), [(3, 4), (4, 5), (5, 6), (6, 6), (10, 6), (11, 7), (15, 7), (30, 8), (40, 9)]
)
def test_each_two_arguments_are_seen_in_all_ways(size: int, most: int):
    chosen = list(activities((True,) * size))
    assert chosen[0] == (True,) * size
    assert all(map(any, chosen))
    assert len(chosen) == len(set(chosen)) <= most
    for i, j in combinations(range(size), 2):
        assert {(each[i], each[j]) for each in chosen} == {(True, True), (True, False), (False, True), (False, False)}


def test_finite_differences_are_taken_once(monkeypatch):
    """What takes part does not change them where nothing is written."""
    seen: list[tuple[Any, bytes, int]] = []
    differences = Objective.differences

    def noting(self, position, rtol, *, single=False):
        if len(self.values) == 2 and self.values[0].dtype == np.float64:
            seen.append((self.program, self.weights.tobytes(), position))
        return differences(self, position, rtol, single=single)

    monkeypatch.setattr(Objective, "differences", noting)
    with ruled(inner, inner_augmented, inner_reverse):
        check_rule(inner, A, B, aliasing=False)
    assert seen
    assert len(seen) == len(set(seen))


def test_arrays_of_several_calls_are_rows_of_one_where_these_have_their_type():
    square = np.ones((2, 2))
    fixed = np.ones(2)
    fixed.flags.writeable = False
    rows = [A, square, A.astype(np.complex128), A.astype(np.float32)]
    packed = [0.5, np.asfortranarray(np.ones((2, 3))), np.ones(4)[::2], np.array(1.0), fixed, (A, 1.0)]
    assert {_passed(value, True) for value in rows} == {Passed.STACKED}
    assert {_passed(value, True) for value in packed} == {Passed.PACKED}
    assert {_passed(value, False) for value in (3, np.arange(2), None, A)} == {Passed.ONCE}


@pytest.mark.parametrize("values", [A, np.repeat(A, 2)[::2]], ids=["rows", "packs"])
def test_wrong_in_a_loop(values: Any):
    with ruled(norm, shares_a_buffer, reads_the_buffer), pytest.raises(RuleFault) as caught:
        Checker(norm, Trial(call_once(norm, 1), (values,), (True,))).live_calls(norm)
    assert caught.value.property is Property.LIVE_CALLS
    with ruled(norm, norm_augmented, norm_reverse):
        Checker(norm, Trial(call_once(norm, 1), (values,), (True,))).live_calls(norm)


def test_wrong_where_an_argument_is_constant():
    @njit
    def product(x, y):
        return x * y

    def augmented(config, x, y):
        return AugmentedReturn(x.value * y.value, None, None)

    def reverse(config, cotangent, tape, x, y):
        return cotangent * y.value if is_active(y) else cotangent, cotangent * x.value

    with ruled(product, augmented, reverse):
        expect(Property.ACTIVITY, reverse, product, 0.7, 1.3)


def test_wrong_when_two_arguments_are_one_array():
    def reverse(config, cotangent, tape, a, b):
        for i in range(a.value.size):
            by_b = b.shadow[i] + cotangent * tape[0][i]
            a.shadow[i] += cotangent * tape[1][i]
            b.shadow[i] = by_b

    with ruled(inner, inner_augmented, reverse):
        expect(Property.ALIASING, reverse, inner, A, B)


# ------------------------------------------------------------------------------------------------ wrong use


def test_a_function_without_rule():
    with pytest.raises(RuleError, match="norm has no rule"):
        check_rule(norm, A)


def test_nothing_to_differentiate_by():
    with pytest.raises(SignatureError, match="no argument is active"):
        test_reverse(norm, irad.Const(A))


def test_a_point_where_the_function_is_not_smooth():
    @njit
    def distance(x):
        return abs(x)

    with pytest.raises(AssertionError, match="smooth"):
        test_reverse(distance, 0.0)
