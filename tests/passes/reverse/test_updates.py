from __future__ import annotations

import pytest

from irad.ir.instructions import Store
from irad.passes.mode import REVERSE
from irad.passes.reverse.sweep import find_updates
from tests.passes.parallel.loops import ARRAYS, IN_PLACE
from tests.passes.units import generated, gradient, straight

X, Y = 3.0, 5.0


ENDS = "\n%z = load double, ptr %a"
UPDATES = {
    "sum": ("%s = fadd double %x, %y\nstore double %s, ptr %a" + ENDS, (1.0, 1.0)),
    "second summand": ("%s = fadd double %y, %x\nstore double %s, ptr %a" + ENDS, (1.0, 1.0)),
    "difference": ("%s = fsub double %x, %y\nstore double %s, ptr %a" + ENDS, (1.0, -1.0)),
    "several terms": (
        "%p = fmul double %y, %y\n%s = fsub double %x, %y\n%t = fadd double %p, %s\n%u = fadd double %t, %y\n"
        "store double %u, ptr %a" + ENDS,
        (1.0, 2 * Y),
    ),
    "used in another term": (
        "%p = fmul double %x, %y\n%s = fadd double %x, %p\nstore double %s, ptr %a" + ENDS,
        (1.0 + Y, X),
    ),
    "a call without memory in between": (
        "%p = call double @exp(double %y)\n%q = fdiv double %p, %p\n%s = fadd double %x, %q\n"
        "store double %s, ptr %a" + ENDS,
        (1.0, 0.0),
    ),
}
OTHERS = {
    "subtracted from": ("%s = fsub double %y, %x\nstore double %s, ptr %a" + ENDS, (-1.0, 1.0)),
    "scaled": ("%s = fmul double %x, %y\nstore double %s, ptr %a" + ENDS, (Y, X)),
    "twice": ("%s = fadd double %x, %x\nstore double %s, ptr %a" + ENDS, (2.0, 0.0)),
    "stored elsewhere": (
        "%l = alloca double\n%s = fadd double %x, %y\nstore double %s, ptr %l\n%z = load double, ptr %l",
        (1.0, 1.0),
    ),
    "overwritten in between": (
        "%p = fmul double %y, %y\nstore double %p, ptr %a\n%s = fadd double %x, %p\nstore double %s, ptr %a" + ENDS,
        (1.0, 2 * Y),
    ),
    "the sum has another use": (
        "%s = fadd double %x, %y\nstore double %s, ptr %a\n%w = load double, ptr %a\n%z = fmul double %w, %s",
        (2 * (X + Y), 2 * (X + Y)),
    ),
    "in another block": (
        "br label %next\nnext:\n%s = fadd double %x, %y\nstore double %s, ptr %a" + ENDS,
        (1.0, 1.0),
    ),
}


def stores_in_reverse(body: str, **options: object) -> int:
    """How many stores there are in the reverse sweep."""
    (made,) = generated(straight(body), "scs", **options)
    return sum(isinstance(inst, Store) for inst in made.pair[REVERSE].instructions())


def found_in(body: str, **options: object) -> int:
    (made,) = generated(straight(body), "scs", **options)
    return len(find_updates(made.augmented).stores)


@pytest.mark.parametrize("name", UPDATES)
def test_updates(name: str):
    body, expected = UPDATES[name]
    assert found_in(body) == 1
    assert gradient(straight(body), (X, Y)) == pytest.approx(expected)


@pytest.mark.parametrize("name", OTHERS)
def test_other_stores(name: str):
    body, expected = OTHERS[name]
    assert found_in(body) == 0
    assert gradient(straight(body), (X, Y)) == pytest.approx(expected)


def test_lanes_do_not_update_arrays_that_they_share():
    """The cotangent of an element of which lanes have partial shadows is in several places."""
    update = IN_PLACE.replace("%z = fmul double %x, %y", "%z = fadd double %y, %x")
    assert update != IN_PLACE
    pairs = generated(update, "scss", kernels=(("kernel", ARRAYS),))
    [lane] = [pair for pair in pairs if pair.unit.sharing is not None]
    assert not find_updates(lane.augmented).stores


def test_fewer_accesses():
    update, other = UPDATES["sum"][0], OTHERS["scaled"][0]
    assert stores_in_reverse(update) == stores_in_reverse(other) - 1


def test_not_in_strict_order():
    body = UPDATES["sum"][0]
    assert found_in(body, strict=True) == 0
    assert gradient(straight(body), (X, Y), strict=True) == pytest.approx((1.0, 1.0))
