"""Which quotients become products with a reciprocal in the reverse sweep."""

from __future__ import annotations

import pytest

from irad.ir.instructions import Binary
from irad.passes.mode import REVERSE
from tests.passes.units import generated, gradient, straight

QUOTIENT = """%s = fmul double %x, %x
      %q = fdiv double %s, %y
      %z = fmul double %q, 1.0e0"""


def divisions(body: str, **options: object) -> list[bool]:
    """The divisions of a reverse sweep: whether each is one of one."""
    made, *_ = generated(straight(body), "scs", **options)
    found = [i for i in made.pair[REVERSE].instructions() if isinstance(i, Binary) and i.opcode == "fdiv"]
    return [str(getattr(division.operands[0], "value", "")) == "1.0" for division in found]


def test_a_quotient_that_is_computed_again():
    assert divisions(QUOTIENT)
    assert all(divisions(QUOTIENT))
    assert gradient(straight(QUOTIENT), [3.0, 7.0]) == pytest.approx([6.0 / 7.0, -9.0 / 49.0], rel=1e-15)


@pytest.mark.parametrize("options", [{"strict": True}, {"plan": "save_all"}])
def test_no_products_where_all_is_rounded_as_written(options: dict[str, object]):
    assert not any(divisions(QUOTIENT, **options))


def test_a_quotient_that_decides():
    """It is compared in the reverse sweep: another rounding would be another decision."""
    assert not all(divisions(QUOTIENT, zero_wins=True))


def test_a_quotient_of_a_call():
    """What a function makes of it may decide something."""
    body = """%s = fmul double %x, %x
      %q = fdiv double %s, %y
      %w = call double @llvm.sqrt.f64(double %q)
      %z = fmul double %w, %q"""
    text = straight(body).replace("declare", "declare double @llvm.sqrt.f64(double)\n    declare", 1)
    x, y = 3.0, 7.0
    q = x * x / y
    assert gradient(text, [x, y]) == pytest.approx([1.5 * q**0.5 * 2 * x / y, -1.5 * q**0.5 * q / y], rel=1e-14)
