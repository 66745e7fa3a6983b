from __future__ import annotations

from irad.ir import types
from irad.ir.instructions import Alloca, Freeze
from irad.ir.values import Undef
from irad.passes.augmented.shadows import build_augmented
from irad.passes.mode import REVERSE
from irad.passes.program import Program
from irad.passes.reverse.generate import busy_blocks, generate_reverse
from irad.passes.reverse.sweep import Sweep, zero_of
from tests.passes.reverse.test_control import BRANCH
from tests.passes.units import generated, registry, request_of, unit_of


def swept(text: str, kinds: str) -> Sweep:
    """A reverse sweep with its placeholders."""
    unit = unit_of(text, kinds)
    program = Program(unit.module, registry(), request_of(unit.function, kinds))
    sweep, _ = generate_reverse(build_augmented(program, unit, program.derive(unit.variant)))
    return sweep


STRAIGHT = """
define i32 @f(ptr noalias %r, double %x, double %y) {
entry:
  %m = fmul double %x, %y
  %n = fmul double %m, %m
  store double %n, ptr %r
  ret i32 0
}
"""


def test_needs_are_what_the_adjoint_asked_for_once_for_each_place():
    sweep = swept(STRAIGHT, "saa")
    assert [need.value.name for need in sweep.needs] == ["r.shadow", "m", "y", "x"]
    for need in sweep.needs:
        assert isinstance(need.placeholder, Freeze)
        assert isinstance(need.placeholder.operands[0], Undef)
        assert need.placeholder.block is need.place.block


def test_a_linear_function_needs_no_number():
    sweep = swept(
        STRAIGHT.replace("fmul double %x, %y", "fsub double %x, %y").replace("fmul double %m, %m", "fneg double %m"),
        "saa",
    )
    assert [need.value.name for need in sweep.needs] == ["r.shadow"]


def test_cotangents_within_a_block_are_no_slots():
    sweep = swept(STRAIGHT, "saa")
    assert {v.name for v in sweep.slots} == {"x", "y"}
    allocas = [i for i in sweep.function.instructions() if isinstance(i, Alloca)]
    assert len(allocas) == 2


def test_nothing_is_left_of_the_placeholders():
    (made,) = generated(BRANCH, "scsc")
    for inst in made.pair[REVERSE].instructions():
        assert not (isinstance(inst, Freeze) and isinstance(inst.operands[0], Undef))


def test_busy_blocks():
    unit = unit_of(BRANCH, "scsc")
    assert {b.name for b in busy_blocks(unit)} == {"entry", "one", "two", "join"}


def test_zeros_by_type():
    pair = types.struct_type([types.I64, types.DOUBLE])
    assert zero_of(types.DOUBLE).type is types.DOUBLE
    assert zero_of(pair).type is pair
