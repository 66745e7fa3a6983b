"""Tape memory that is not available: status −4 out of the forward sweep, MemoryError out of the public API."""

from __future__ import annotations

import numba
import numpy as np
import pytest

import irad
from irad.frontend.numba.convention import NUMBA
from irad.ir.builder import Builder
from irad.ir.cfg import control_flow
from irad.ir.instructions import Call, Ret
from irad.ir.text.printer import print_module
from irad.passes.analysis.liveness import live_blocks
from irad.passes.augmented.allocation_failure import split_after
from irad.passes.mode import AUGMENTED
from tests.passes.augmented.test_tape import COUNTED, RAGGED, WHILE
from tests.passes.units import block, canonical, generated, gradient, parsed, value

MEBIBYTE = 1 << 20


def test_it_is_an_error_status():
    text = f"define i32 @f() {{\nentry:\n  ret i32 {NUMBA.exhausted}\n}}"
    assert live_blocks(control_flow(parsed(text)[1]), NUMBA.returned) == frozenset()


def test_a_slab_that_is_too_large():
    a = [-1.0] * 100_000
    with pytest.raises(MemoryError):
        gradient(COUNTED, a, len(a), limit=MEBIBYTE)
    assert gradient(COUNTED, a[:100], 100, limit=MEBIBYTE)[-1] > 0.0


@pytest.mark.parametrize("trips", [1 << 61, (1 << 63) - 1])
def test_a_slab_whose_size_overflows(trips):
    """The product is checked: nothing is run on memory that is too small."""
    with pytest.raises(MemoryError):
        gradient(COUNTED, [0.0], trips)


def test_records_that_are_too_many():
    # s = 0.3·exp(s) has a fixed point below 10: the loop does not end, the memory does.
    with pytest.raises(MemoryError):
        gradient(WHILE.replace("%e, 0.5", "%e, 0.3"), [1.0], limit=MEBIBYTE)


def test_in_an_inner_loop():
    with pytest.raises(MemoryError):
        gradient(RAGGED, [0.0] * 3000, 3000, limit=MEBIBYTE)


CALLEE = (
    "define i32 @f(ptr noalias %r, ptr noalias %x, ptr %a, i64 %n) {\n"
    "entry:\n  %s = call i32 @inner(ptr %r, ptr %x, ptr %a, i64 %n)\n  ret i32 %s\n}\n"
    + COUNTED.replace("define i32 @f(", "define internal i32 @inner(")
)


def test_in_a_callee():
    assert gradient(CALLEE, [-1.0, -1.0], 2)[-1] > 0.0
    with pytest.raises(MemoryError):
        gradient(CALLEE, [-1.0] * 100_000, 100_000, limit=MEBIBYTE)


def test_every_allocation_is_checked():
    for made in generated(CALLEE, "scsc"):
        augmented = made.pair[AUGMENTED]
        for inst in augmented.instructions():
            if isinstance(inst, Call) and getattr(inst.callee, "name", "").startswith("irad.arena_alloc"):
                assert inst.block is not None
                assert block(augmented, "exhausted") in inst.block.successors


def test_what_leaves():
    for made in generated(CALLEE, "scsc"):
        leave = block(made.pair[AUGMENTED], "exhausted").terminator
        assert isinstance(leave, Ret)
        assert leave.operands[0].value == (NUMBA.exhausted if made.pair.variant.is_entry else 0)


def test_splitting_moves_phis_along():
    text = """
    define i64 @f(i64 %n, i1 %c) {
    entry:
      %x = add i64 %n, 1
      %y = add i64 %x, 1
      br i1 %c, label %entry.2, label %end
    entry.2:
      br label %end
    end:
      %p = phi i64 [ %y, %entry ], [ 0, %entry.2 ]
      ret i64 %p
    }"""
    module, function = parsed(text)
    rest = split_after(value(function, "x"))
    head = function.blocks[0]
    Builder(head).br(rest)
    assert [i.name for i in head.instructions][:1] == ["x"]
    assert rest in [b for _, b in value(function, "p").incoming()]
    assert function.blocks[1] is rest
    canonical(print_module(module))


@numba.njit
def product(x, n):
    s = 1.0
    for _ in range(n):
        s = np.exp(s) * x
    return s


def test_memory_error_through_the_public_api():
    with pytest.raises(MemoryError):
        irad.grad(product)(1e-3, 1 << 60)
    assert irad.grad(product)(1e-3, 1) == pytest.approx(np.e)
