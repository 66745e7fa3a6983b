"""What the marks of dimensions say, and which of them go."""

from __future__ import annotations

from irad.ir.instructions import Binary, Call
from irad.ir.module import Module
from irad.ir.text.parser import parse_module
from irad.ir.values import ConstantInt
from irad.passes.subscripts.dimensions import DIMENSION, drop_dimensions, take_dimensions
from tests.passes.units import canonical, value

MARKED = """
declare i64 @irad.dimension(i64, ptr)
define i64 @f(ptr %a, i64 %n, i64 %i) {
  %few = call i64 @irad.dimension(i64 3, ptr %a)
  %many = call i64 @irad.dimension(i64 9, ptr %a)
  %any = call i64 @irad.dimension(i64 %n, ptr %a)
  %x = mul i64 %i, %few
  %y = mul i64 %i, %many
  %z = mul i64 %i, %any
  %xy = add i64 %x, %y
  %sum = add i64 %xy, %z
  ret i64 %sum
}
"""


def factors(module: Module) -> list[object]:
    function = module.defined_functions()[0]
    products = (value(function, name) for name in "xyz")
    return [each.operands[1] for each in products if isinstance(each, Binary)]


def test_small_constants_take_the_place_of_their_marks():
    module = parse_module(canonical(MARKED))
    drop_dimensions(module, 3)
    few, many, any_size = factors(module)
    assert isinstance(few, ConstantInt)
    assert few.value == 3
    assert isinstance(many, Call)
    assert isinstance(any_size, Call)


def test_a_module_without_marks_stays_as_it_is():
    module = parse_module("define void @f() {\n  ret void\n}\n")
    drop_dimensions(module, 3)
    assert take_dimensions(module) == {}


def test_what_was_marked_is_said_of_the_numbers():
    module = parse_module(canonical(MARKED))
    function = module.defined_functions()[0]
    dimensions = take_dimensions(module)
    assert DIMENSION not in module.functions
    found = [dimensions[each] for each in factors(module)]  # type: ignore[index]
    assert found[2].size is value(function, "n")
    assert [each.size.value for each in found[:2]] == [3, 9]  # type: ignore[attr-defined]
    assert all(each.start is value(function, "a") for each in found)
