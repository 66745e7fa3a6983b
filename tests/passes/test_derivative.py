from __future__ import annotations

import irad.passes
from irad.driver import derive
from irad.ir.parser import parse_module
from irad.ir.verifier import verify
from tests.passes.test_program import RECURSIVE
from tests.passes.test_tape import COUNTED, RAGGED, WHILE
from tests.passes.units import canonical, generated, gradient, parsed, registry, request_of

COPY = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %a, i64 %n) {
  %l = alloca double
  %v = load i64, ptr %a
  store i64 %v, ptr %l
  %x = load double, ptr %l
  %y = fmul double %x, %x
  store double %y, ptr %r
  ret i32 0
}
"""


def test_copies_of_floats_as_integers_carry_the_derivative():
    assert gradient(COPY, [3.0], 0) == [6.0]
    assert gradient(COPY, [3.0], 0, plan="save_all") == [6.0]


def test_the_entry_comes_first():
    made = generated(RECURSIVE, "sac")
    assert made[0].pair.variant.is_entry
    assert not made[1].pair.variant.is_entry


def test_the_same_input_gives_the_same_text():
    texts = set()
    for _ in range(2):
        _, function = parsed(RAGGED)
        texts.add(derive(canonical(RAGGED), request_of(function, "scsc"), registry()).text)
    assert len(texts) == 1


def test_what_is_made_is_valid_and_contains_no_placeholder():
    for text, kinds in ((COUNTED, "scsc"), (RAGGED, "scsc"), (WHILE, "scs"), (RECURSIVE, "sac")):
        _, function = parsed(text)
        made = derive(canonical(text), request_of(function, kinds), registry(), check=True)
        verify(parse_module(canonical(made.text)))
        assert "freeze ptr undef" not in made.text
        assert "freeze double undef" not in made.text
        assert "freeze i64 undef" not in made.text


def test_the_table_of_contents_names_modules_in_the_order_of_work():
    names = [name for name, _ in irad.passes.PIPELINE]
    assert len(set(names)) == len(names)
    assert names.index("points_to") < names.index("activity") < names.index("forward") < names.index("materialise")
    for name, purpose in irad.passes.PIPELINE:
        __import__(f"irad.passes.{name}")
        assert purpose.endswith(".")
        assert len(purpose) < 120
