"""Calls through pointers that lead out of the module: the pair is looked up in a table."""

from __future__ import annotations

import pytest

from irad.errors import UnsupportedError
from irad.frontend.numba.convention import NUMBA
from irad.ir import types
from irad.ir.instructions import Call, Ret
from irad.ir.module import Function
from irad.passes.derivative import generate
from irad.passes.mode import AUGMENTED, REVERSE
from irad.passes.request import CalleeRequest, Request
from tests.passes.units import block, derivative, generated, parsed, registry, request_of

TEXT = """
define i32 @f(ptr noalias %r, ptr noalias %e, ptr %p, double %x) {
  %y = call double %p(double %x)
  %z = call double %p(double %y)
  %s = fmul double %z, %x
  store double %s, ptr %r
  ret i32 0
}"""


def calls(function: Function, name: str) -> list[Call]:
    found = [i for i in function.instructions() if isinstance(i, Call)]
    return [c for c in found if isinstance(c.callee, Function) and c.callee.name == name]


def test_pairs_come_from_one_table_for_all_calls_that_are_alike():
    whole = derivative(TEXT, "scca")
    (made,) = whole.pairs
    looked_up = calls(made.pair[AUGMENTED], "irad.pointer_pair")
    assert len(looked_up) == 2
    (symbol,) = tables = whole.program.tables_by_symbol()
    assert {c.arguments[1].name for c in looked_up} == {symbol}
    variant = tables[symbol]
    assert variant.result_active
    assert str(variant.function_type) == "double (double)"
    through_pointers = [
        i for i in made.pair[REVERSE].instructions() if isinstance(i, Call) and not isinstance(i.callee, Function)
    ]
    assert len(through_pointers) == 2


def test_the_name_of_a_table_says_what_it_holds():
    tables = derivative(TEXT, "scca").program.tables_by_symbol().keys()
    assert tables == derivative(TEXT, "scca").program.tables_by_symbol().keys()
    assert not tables & derivative(TEXT, "scca", strict=True).program.tables_by_symbol().keys()
    assert not tables & derivative(TEXT, "scca", plan="save_all").program.tables_by_symbol().keys()


def test_a_call_with_constants_only_stays_a_call():
    text = TEXT.replace("%p(double %x)", "%p(double 1.0)").replace("%p(double %y)", "%p(double 2.0)")
    whole = derivative(text, "scca")
    (made,) = whole.pairs
    assert not calls(made.pair[AUGMENTED], "irad.pointer_pair")
    assert not whole.program.tables


def test_the_reason_to_leave_is_asked_for():
    (made,) = generated(TEXT, "scca")
    leave = block(made.pair[AUGMENTED], "exhausted")
    assert isinstance(leave.terminator, Ret)
    assert [c.callee.name for c in leave.instructions if isinstance(c, Call)] == ["irad.arena_reason"]
    for call in calls(made.pair[AUGMENTED], "irad.pointer_pair"):
        assert call.block is not None
        assert leave in call.block.successors


def test_without_pointers_it_is_memory():
    text = "define double @g(double %x) noinline {\n %y = fmul double %x, %x\n ret double %y\n}"
    made = generated(TEXT.replace("%p(", "@g(") + text, "scca")[0]
    leave = block(made.pair[AUGMENTED], "exhausted").terminator
    assert leave.operands[0].value == NUMBA.exhausted


CALLEE = """
define double @g(double %x) {
  %y = fmul double %x, %x
  ret double %y
}"""


def callee_request(function: Function, type_: types.FunctionType) -> Request:
    request = request_of(function, "a")
    return Request(request.entry, request.kinds, request.memory, NUMBA, callee=CalleeRequest(type_, True, False))


def test_a_pair_for_callers_elsewhere():
    module, function = parsed(CALLEE)
    (made,) = generate(module, callee_request(function, function.function_type), registry()).pairs
    assert made.pair[AUGMENTED].prefix == made.pair[REVERSE].prefix == ()
    assert str(made.pair[AUGMENTED].function_type) == "double (ptr, ptr, double)"
    assert str(made.pair[REVERSE].function_type) == "void (ptr, ptr, double, ptr)"


def test_a_function_of_another_type_is_refused():
    module, function = parsed(CALLEE)
    with pytest.raises(UnsupportedError, match=r"double \(double\).*called as float \(float\)"):
        generate(module, callee_request(function, types.function_type(types.FLOAT, [types.FLOAT])), registry())
