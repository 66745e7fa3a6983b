from __future__ import annotations

import ctypes
import math

import numpy as np
import pytest

from irad.ir.instructions import Alloca, Load, Store
from irad.ir.module import Function
from irad.passes.mode import REVERSE
from tests.passes.units import DOUBLES, POINTERS, doubles, generated, pointer, running

LOOP = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %x, ptr %y, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %sum = phi double [ 0.0, %entry ], [ %sum.next, %loop ]
  %p = getelementptr double, ptr %x, i64 %i
  %q = getelementptr i8, ptr %p, i64 {offset}
  %a = load double, ptr %p
  {second}
  %ab = fmul double %a, %b
  %sum.next = fadd double {summand}, %ab
  %i.next = add i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %end, label %loop
end:
  store double %sum.next, ptr %r
  ret i32 0
}}
"""
NEIGHBOUR = "%b = load double, ptr %q"


def gradient(second: str, offset: int = 8, summand: str = "%sum", **options: object) -> Function:
    """The reverse sweep of the loop."""
    text = LOOP.format(second=second, offset=offset, summand=summand)
    (made,) = generated(text, "scssc", **options)
    return made.pair[REVERSE]


def versions(second: str, offset: int = 8, summand: str = "%sum", **options: object) -> list[str]:
    """The blocks of second versions of the loop."""
    blocks = gradient(second, offset, summand, **options).blocks
    return [str(b.name).removeprefix("loop.adjoint.") for b in blocks if "adjoint." in str(b.name)]


def is_parallel(function: Function) -> bool:
    """True if iterations of the second version are marked as independent of each other."""
    (latch,) = (b for b in function.blocks if str(b.name).endswith("gathering.back"))
    return "llvm.loop" in latch.terminator.metadata


def additions(function: Function, name: str) -> int:
    """How many times a block stores to memory that is not the stack."""
    (block,) = (b for b in function.blocks if str(b.name).endswith(name))
    stores = (inst for inst in block.instructions if isinstance(inst, Store))
    return sum(not isinstance(store.operands[1], Alloca) for store in stores)


def test_neighbours_are_added_at_once():
    found = gradient(NEIGHBOUR)
    assert versions(NEIGHBOUR) == ["guard", "gathering", "gathered", "gathering.back"]
    assert additions(found, ".gathering") == 1
    assert additions(found, ".gathered") == 1  # the last element, to which the last iteration alone adds
    assert is_parallel(found)


def test_what_lies_far_behind_is_added_in_each_iteration_and_in_order():
    """Ten iterations on, there is an addition to the same element."""
    found = gradient(NEIGHBOUR, offset=80)
    assert additions(found, ".gathering") == 2
    assert additions(found, ".gathered") == 0
    assert not is_parallel(found)


def test_slots_are_not_marked_as_independent():
    """They carry values from one iteration to the next."""
    found = gradient(NEIGHBOUR)
    inside = [b for b in found.blocks if str(b.name).endswith((".gathering", ".gathering.back"))]
    insts = [inst for block in inside for inst in block.instructions]
    marked = [inst for inst in insts if "llvm.access.group" in inst.metadata]
    accesses = [inst for inst in insts if isinstance(inst, Load | Store)]
    assert marked == [inst for inst in accesses if not isinstance(inst.operands[-1], Alloca)]
    assert 0 < len(marked) < len(accesses)


def test_an_index_made_of_two_that_move_has_no_stride():
    second = """%u = add i64 %i, 2
  %w = xor i64 %i, %u
  %t = getelementptr double, ptr %y, i64 %w
  %b = load double, ptr %t"""
    assert versions(second) == []
    assert versions(second.replace("xor i64 %i, %u", "xor i64 2, %n")) != []


def test_parts_of_records_are_apart():
    record = NEIGHBOUR.replace("ptr %q", "ptr %u")
    found = gradient(
        f"%w = mul i64 %i, 3\n  %t = getelementptr double, ptr %y, i64 %w\n"
        f"  %u = getelementptr i8, ptr %t, i64 8\n  %c = load double, ptr %t\n  {record}\n"
        "  %bc = fmul double %b, %c\n  %both = fadd double %sum, %bc",
        summand="%both",
    )
    assert is_parallel(found)


STRIDED = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %x, ptr %y, i64 %n) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %p = getelementptr double, ptr %x, i64 %i
  %q = getelementptr i8, ptr %p, i64 8
  %a = load double, ptr %p
  %b = load double, ptr %q
  %ab = fmul double %a, %b
  %w = mul i64 %i, {stride}
  %t = getelementptr double, ptr %y, i64 %w
  store double %ab, ptr %t
  {again}
  %i.next = add i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %end, label %loop
end:
  ret i32 0
}}
"""
AGAIN = "%half = fmul double %ab, 0.5\n  store double %half, ptr %t"


@pytest.mark.parametrize(
    ("stride", "again", "expected"), [(1, "", True), (1, AGAIN, True), (3, "", True), (3, AGAIN, False)]
)
def test_elements_that_are_stored_twice_in_an_iteration(stride: int, again: str, expected: bool):
    """LLVM reorders strided accesses of loops that are independent, even those of one iteration."""
    (made,) = generated(STRIDED.format(stride=stride, again=again), "scssc")
    assert is_parallel(made.pair[REVERSE]) is expected


def test_shadows_that_are_read_at_one_place_are_checked_at_run_time_or_not_at_all():
    """Each iteration looks at the cotangent of what is stored, which may be in the same array."""
    assert versions(f"{NEIGHBOUR}\n  store double %a, ptr %p") == []
    assert versions(f"{NEIGHBOUR}\n  store double %a, ptr %y") != []


def test_an_element_that_is_stored_again_and_again_keeps_the_order():
    """Of the iterations, the last has stored what remains."""
    assert not is_parallel(gradient(f"{NEIGHBOUR}\n  store double %a, ptr %y"))


@pytest.mark.parametrize("options", [{"strict": True}, {"plan": "save_all"}, {"watches": True}, {"is_primal": True}])
def test_modes_that_keep_the_order(options: dict[str, object]):
    assert versions(NEIGHBOUR, **options) == []


def test_recurrences_are_left_alone():
    half = "%b = load double, ptr %q\n  %h = fmul double %sum, %a"
    assert versions(half, summand="%h") == []
    assert versions(NEIGHBOUR, summand="%a") != []


PERIODIC = "%at.end = icmp eq i64 %i.next, %n\n  %next = select i1 %at.end, i64 0, i64 %i.next\n"


def periodic(**replaced: str) -> Function:
    """The reverse sweep of a loop that multiplies neighbours, the last with the first."""
    text = LOOP.format(second=NEIGHBOUR, offset=8, summand="%sum")
    text = text.replace("  %i.next = add i64 %i, 1\n", "")
    text = text.replace("  %p = getelementptr", f"  %i.next = add i64 %i, 1\n  {PERIODIC}  %p = getelementptr", 1)
    text = text.replace("%q = getelementptr i8, ptr %p, i64 8", "%q = getelementptr double, ptr %x, i64 %next")
    for old, new in replaced.items():
        text = text.replace(old, new)
    (made,) = generated(text, "scssc")
    return made.pair[REVERSE]


def test_neighbours_across_a_periodic_border():
    """The last iteration, which runs first, is left as it is; the check comes again after it."""
    found = periodic()
    assert additions(found, ".gathering") == 1
    assert is_parallel(found)
    (guard,) = (b for b in found.blocks if str(b.name).endswith("adjoint.guard"))
    assert any(guard in b.terminator.targets for b in found.blocks if "back" in str(b.name) or "to" in str(b.name))


def test_neighbours_across_both_borders():
    """The lowest iteration runs as it was, after the others."""
    first = "%at.start = icmp eq i64 %i, 0\n  %before = add i64 %i, -1\n  %last = add i64 %n, -1\n"
    chosen = "%other = select i1 %at.start, i64 %last, i64 %before\n"
    beside = f"{first}  {chosen}  %o = getelementptr double, ptr %x, i64 %other\n  %c = load double, ptr %o\n"
    found = periodic(**{"%ab = fmul": f"{beside}  %bc = fmul double %b, %c\n  %ab = fmul", "%a, %b": "%a, %bc"})
    assert additions(found, ".gathering") == 1
    assert is_parallel(found)
    (lowest,) = (b for b in found.blocks if str(b.name).endswith("lowest"))
    assert str(lowest.successors[0].name) == "loop.adjoint"


def test_choices_by_an_order_are_no_single_exceptions():
    assert not [b for b in periodic(eq="slt").blocks if str(b.name).endswith("gathering")]


def test_loops_that_use_arrays_on_the_stack_are_left_alone():
    """Their shadows are read and cleared where they are added to, through addresses other than those of whole slots."""
    text = LOOP.format(second=NEIGHBOUR, offset=8, summand="%sum")
    text = text.replace("entry:\n", "entry:\n  %pair = alloca [2 x double]\n")
    part = """%odd = and i64 %i, 1
  %element = getelementptr double, ptr %pair, i64 %odd
  store double %a, ptr %element
  %kept = load double, ptr %pair
  %ab = fmul double %kept, %b"""
    (made,) = generated(text.replace("%ab = fmul double %a, %b", part), "scssc")
    assert not [b for b in made.pair[REVERSE].blocks if str(b.name).endswith("gathering")]


PRODUCTS = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %x, ptr noalias %y, i64 %n, i64 %start, i64 %step) {{
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %sum = phi double [ 0.0, %entry ], [ %sum.next, %loop ]
  %i.next = add i64 %i, 1
  %weight = sitofp i64 %i.next to double
  %scaled = {scaled}
  %at = add i64 %start, %scaled
  %p = getelementptr double, ptr %x, i64 %at
  {factors}
  %sum.next = fadd double %sum, {product}
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %end, label %loop
end:
  store double %sum.next, ptr %r
  ret i32 0
}}
"""
ROOM, MOST = 24, 21  # elements before the first, iterations


def products(scaled: str, offsets: tuple[int, ...], always: bool) -> str:
    """A loop that adds up products of neighbours times the number of the iteration, and where asked times `y[0]`."""
    lines, product = [], "%weight"
    for number, offset in enumerate(offsets):
        lines.append(f"%q{number} = getelementptr i8, ptr %p, i64 {8 * offset}")
        lines.append(f"%v{number} = load double, ptr %q{number}")
        lines.append(f"%m{number} = fmul double {product}, %v{number}")
        product = f"%m{number}"
    if always:
        lines += ["%v = load double, ptr %y", f"%m = fmul double {product}, %v"]
        product = "%m"
    return PRODUCTS.format(scaled=scaled, factors="\n  ".join(lines), product=product)


@pytest.mark.parametrize(
    ("scaled", "offsets", "steps", "always"),
    [
        ("add i64 %i, 0", (0, 1), (1,), False),
        ("add i64 %i, 0", (2, 1, -1), (1,), True),
        ("add i64 %i, 0", (-3, -1), (1,), False),
        ("mul i64 %i, -1", (0, 1, 3), (-1,), True),
        ("mul i64 %i, %step", (1, 2), (1, -1, 2, 0), False),
        ("add i64 %i, 0", (0, 10), (1,), False),
    ],
)
def test_gradients_of_products_of_neighbours(
    scaled: str, offsets: tuple[int, ...], steps: tuple[int, ...], always: bool
):
    """From one iteration, where the loop stays as it was, to more than all neighbours take."""
    memory = [DOUBLES, POINTERS, DOUBLES, DOUBLES, None, None, None]
    made = running(products(scaled, offsets, always), "scssccc", memory)
    assert ".gathering:" in made.derivative.text
    x, y = np.random.default_rng(1).uniform(0.5, 1.5, 3 * ROOM), 0.75
    for n, step in ((n, step) for n in (1, 2, 7, 8, 9, MOST) for step in steps):
        start = ROOM if step >= 0 else 2 * ROOM
        expected, of_y = np.zeros_like(x), 0.0
        for i in range(n):
            elements = [start + step * i + offset for offset in offsets]
            whole = (i + 1) * math.prod(x[elements]) * (y if always else 1.0)
            np.add.at(expected, elements, whole / x[elements])
            of_y += whole / y if always else 0.0
        result, seed, primal, shadow = doubles(0.0), doubles(0.0), doubles(*x), doubles(*(0.0 for _ in x))
        factor, of_factor = doubles(y), doubles(0.0)
        integers = (ctypes.c_int64(number) for number in (n, start, step))
        shadows = map(pointer, (seed, shadow, of_factor))
        status = made.augmented(
            pointer(result), ctypes.c_void_p(0), pointer(primal), pointer(factor), *integers, *shadows
        )
        assert status == 0
        seed[0] = 1.0
        made.reverse()
        np.testing.assert_allclose(list(shadow), expected, rtol=1e-12, err_msg=f"{n} iterations by {step}")
        np.testing.assert_allclose(of_factor[0], of_y, rtol=1e-12)
    made.close()


SCALED = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %x, ptr %y, ptr %out, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i.next, %loop ]
  %p = getelementptr double, ptr %x, i64 %i
  %q = getelementptr i8, ptr %p, i64 8
  %a = load double, ptr %p
  %b = load double, ptr %q
  %c = load double, ptr %y
  %ab = fmul double %a, %b
  %abc = fmul double %ab, %c
  %to = getelementptr double, ptr %out, i64 %i
  store double %abc, ptr %to
  %i.next = add i64 %i, 1
  %done = icmp eq i64 %i.next, %n
  br i1 %done, label %end, label %loop
end:
  ret i32 0
}
"""


def test_the_cotangent_of_a_factor_that_stores_might_change_is_a_sum():
    """The load of `y[0]` stays in the loop, since `out` may be the same array; here it is not."""
    made = running(SCALED, "scsssc", [DOUBLES, POINTERS, *[DOUBLES] * 3, None])
    assert ".gathering:" in made.derivative.text
    for n in (1, 7, 8, 9, MOST):
        x, (y, *seeds) = np.random.default_rng(2).uniform(0.5, 1.5, (2, n + 1))
        arrays = [doubles(0.0), doubles(*x), doubles(y), doubles(*np.zeros(n))]
        shadows = [doubles(0.0), doubles(*np.zeros(n + 1)), doubles(0.5), doubles(*seeds)]
        result, *given = map(pointer, arrays)
        assert made.augmented(result, ctypes.c_void_p(0), *given, ctypes.c_int64(n), *map(pointer, shadows)) == 0
        made.reverse()
        expected = np.zeros(n + 1)
        expected[:-1] += seeds * x[1:] * y
        expected[1:] += seeds * x[:-1] * y
        _, of_x, of_y, of_out = shadows
        np.testing.assert_allclose(list(of_x), expected, rtol=1e-12)
        np.testing.assert_allclose(of_y[0], 0.5 + seeds @ (x[:-1] * x[1:]), rtol=1e-12)
        assert list(of_out) == [0.0] * n
    made.close()
