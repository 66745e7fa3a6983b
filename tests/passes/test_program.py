from __future__ import annotations

import dataclasses

from irad.ir import types
from irad.ir.values import GlobalVariable
from irad.passes.mode import AUGMENTED, REVERSE, REVERSE_MODE, Mode, ModeFunction
from irad.passes.program import Program
from irad.passes.request import ParameterKind
from irad.passes.variant import PointerVariant, Variant
from tests.passes.units import DOUBLES, generated, parsed, registry, request_of

TEXT = """
@table = internal global [3 x double] zeroinitializer
define double @f(double %x, ptr %a) {
  %y = load double, ptr @table
  ret double %x
}
"""


def program(**options: bool) -> tuple[Program, Variant]:
    module, function = parsed(TEXT)
    request = request_of(function, "as", **options)
    variant = Variant(function, request.kinds, request.memory, True, False)
    return Program(module, registry(), request), variant


def test_a_variant_is_declared_once_and_queued():
    state, variant = program()
    pair = state.derive(variant)
    assert state.derive(dataclasses.replace(variant)) is pair
    assert state.pending == [pair]
    other = state.derive(dataclasses.replace(variant, kinds=(ParameterKind.CONST, ParameterKind.SHADOW)))
    assert other is not pair
    assert pair[AUGMENTED].name == "f.irad0.augmented"
    assert other[REVERSE].name == "f.irad1.reverse"


def test_shadows_are_those_of_the_kind_or_as_declared():
    state, variant = program()
    assert state.derive(variant).shadows == (1,)
    state, variant = program()
    assert state.derive(variant, ()).shadows == ()


def test_only_the_entry_is_visible():
    state, variant = program()
    assert {f.prefix for f in state.derive(variant).functions.values()} == {("internal",)}
    entry = state.derive(dataclasses.replace(variant, is_entry=True))
    assert {f.prefix for f in entry.functions.values()} == {()}


def test_what_becomes_of_a_variant_is_what_the_mode_says():
    module, function = parsed(TEXT)
    third = ModeFunction("third", lambda variant, shadows: types.function_type(types.VOID, [types.PTR] * len(shadows)))
    request = request_of(function, "as", mode=Mode("three", (*REVERSE_MODE.functions, third)))
    state = Program(module, registry(), request)
    made = state.derive(Variant(function, request.kinds, request.memory, True, False))
    names = ["f.irad0.augmented", "f.irad0.reverse", "f.irad0.third"]
    assert [f.name for f in made.functions.values()] == names
    assert set(names) < set(module.functions)
    assert made[third].function_type is types.function_type(types.VOID, [types.PTR])
    assert {state.owners[f] for f in made.functions.values()} == {made}


def test_signatures():
    _, variant = program()
    ptr, double = types.PTR, types.DOUBLE
    assert AUGMENTED.type_of(variant, (1,)) is types.function_type(double, [ptr, ptr, double, ptr, ptr])
    assert REVERSE.type_of(variant, ()) is types.function_type(types.VOID, [ptr, ptr, double, ptr])
    quiet = dataclasses.replace(variant, result_active=False, kinds=(ParameterKind.CONST, ParameterKind.CONST))
    assert REVERSE.type_of(quiet, ()) is types.function_type(types.VOID, [ptr, ptr])
    _, function = parsed("define ptr @f(ptr %a) {\n  ret ptr %a\n}")
    returning = Variant(function, (ParameterKind.SHADOW,), (DOUBLES,), False, True)
    assert AUGMENTED.type_of(returning, (0,)).result is types.struct_type([ptr, ptr])


def test_the_shadow_of_a_global_is_made_once():
    state, _ = program()
    table = state.module.globals["table"]
    assert isinstance(table, GlobalVariable)
    shadow = state.shadow_global(table)
    assert state.shadow_global(table) is shadow
    assert types.size_of(shadow.value_type) == 24
    assert state.module.globals["table.shadow"] is shadow


def test_programs_share_the_table_of_a_variant_if_they_have_the_same_options():
    def table(**options: bool) -> str:
        state, variant = program(**options)
        called = PointerVariant(variant.function_type, variant.kinds, variant.memory, True, False)
        return str(state.table(called).name)

    names = ("watches", "meters", "zero_wins", "no_zero_wins", "shows_zeros", "checks_bounds", "strict")
    assert table() == table()
    assert len({table(), *(table(**{name: True}) for name in names)}) == len(names) + 1


RECURSIVE = """
define i32 @f(ptr noalias %r, double %x, i64 %n) {
  %y = call double @power(double %x, i64 %n)
  store double %y, ptr %r
  ret i32 0
}
define internal double @power(double %x, i64 %n) {
entry:
  %stop = icmp sle i64 %n, 0
  br i1 %stop, label %end, label %more
more:
  %m = sub i64 %n, 1
  %rest = call double @power(double %x, i64 %m)
  %y = fmul double %x, %rest
  br label %end
end:
  %z = phi double [ 1.0, %entry ], [ %y, %more ]
  ret double %z
}
"""


def test_recursion_finds_the_declared_pair():
    made = generated(RECURSIVE, "sac", [DOUBLES, None, None])
    assert [g.pair[AUGMENTED].name for g in made] == ["f.irad0.augmented", "power.irad1.augmented"]


def test_one_function_in_two_variants():
    text = RECURSIVE.replace("double @power(double %x, i64 %m)", "double @power(double 2.0, i64 %m)")
    made = generated(text, "sac", [DOUBLES, None, None])
    assert len(made) == 2  # the inner call has constant arguments: it stays the plain function
