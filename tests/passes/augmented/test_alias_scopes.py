from __future__ import annotations

import re

import llvmlite.binding as ll

from irad.driver import derive
from irad.ir.cfg import control_flow
from irad.ir.dominance import dominators
from irad.ir.loops import loop_nest
from irad.ir.module import Function, Module
from irad.passes.augmented.alias_scopes import AliasScopes, rank_objects
from irad.passes.memory.objects import PointsTo
from irad.passes.mode import AUGMENTED, REVERSE
from tests.passes.units import canonical, generated, parsed, points_to_of, registry, request_of, value

TEXT = """
declare ptr @malloc(i64)
define i32 @f(ptr noalias %r, ptr %a, ptr %b, ptr %u, i1 %c) {
  %l = alloca double
  %m = call ptr @malloc(i64 8)
  %s = select i1 %c, ptr %l, ptr %m
  %n = inttoptr i64 64 to ptr
  %x = load double, ptr %a
  store double %x, ptr %s
  %y = load double, ptr %s
  store double %y, ptr %r
  ret i32 0
}
"""


def scopes_of():
    function, points_to = points_to_of(TEXT)
    module = Module()
    return module, function, points_to, AliasScopes(module, points_to)


def listed(module: Module, text: str) -> set[int]:
    """The scopes of a list."""
    return {int(n) for n in re.findall(r"!(\d+)", module.metadata[int(text[1:])].text)}


def test_no_access_is_apart_from_its_own_objects():
    module, _, points_to, scopes = scopes_of()
    count = len(points_to.objects)
    for mask in range(2, 1 << count, 2):  # all sets without the unknown object
        for group in (scopes.primal(mask), scopes.shadow(mask)):
            assert not listed(module, group["alias.scope"]) & listed(module, group["noalias"])


def test_memory_that_may_overlap_is_never_apart():
    module, _, points_to, scopes = scopes_of()
    single = [1 << o.index for o in points_to.objects][1:]
    for one in single:
        for other in single:
            for kind in (scopes.primal, scopes.shadow):
                claims = bool(listed(module, kind(one)["noalias"]) & listed(module, kind(other)["alias.scope"]))
                assert claims == (not points_to.may_overlap(one, other))


def test_primal_shadow_and_tape_are_apart():
    module, function, points_to, scopes = scopes_of()
    mask = points_to.mask(value(function, "a"))
    groups = [scopes.primal(mask), scopes.shadow(mask), scopes.tape()]
    for one in groups:
        for other in groups:
            if one is not other:
                assert listed(module, other["alias.scope"]) <= listed(module, one["noalias"])


def test_nothing_is_said_of_unknown_memory():
    _, function, points_to, scopes = scopes_of()
    unknown = points_to.mask(value(function, "n"))
    assert scopes.primal(unknown) == {}
    assert scopes.primal(unknown | points_to.mask(value(function, "a"))) == {}
    assert scopes.shadow(0) == {}


def many_objects() -> tuple[Module, Function, PointsTo, AliasScopes]:
    """A hundred, of which those in a loop come last."""
    allocas = "\n".join(f"  %l{i} = alloca double" for i in range(100))
    loads = [f"  %v{i} = load double, ptr %l{i}" for i in range(100)]
    text = f"""define void @f(i1 %c) {{
{allocas}
{chr(10).join(loads[:80])}
  br label %loop
loop:
{chr(10).join(loads[80:])}
  br i1 %c, label %loop, label %end
end:
  ret void
}}"""
    function, points_to = points_to_of(text)
    cfg = control_flow(function)
    ranked = rank_objects(points_to, cfg, loop_nest(cfg, dominators(cfg)))
    module = Module()
    return module, function, points_to, AliasScopes(module, points_to, ranked=ranked)


def test_objects_of_inner_loops_have_scopes_of_their_own():
    module, function, points_to, scopes = many_objects()
    groups = [scopes.primal(points_to.mask(value(function, f"l{i}"))) for i in range(80, 100)]
    for one in groups:
        for other in groups:
            apart = listed(module, other["alias.scope"]) <= listed(module, one["noalias"])
            assert apart == (one is not other)


def test_beyond_64_objects_the_rest_share_a_scope():
    module, function, points_to, scopes = many_objects()
    inner, rest, other = (points_to.mask(value(function, n)) for n in ("l99", "l78", "l79"))
    for kind in (scopes.primal, scopes.shadow):
        assert kind(rest)["alias.scope"] == kind(other)["alias.scope"]
        for one, two in ((rest, inner), (inner, rest)):
            assert listed(module, kind(two)["alias.scope"]) <= listed(module, kind(one)["noalias"])
        assert not listed(module, kind(rest)["alias.scope"]) & listed(module, kind(rest)["noalias"])
        assert not listed(module, kind(rest | inner)["alias.scope"]) <= listed(module, kind(rest)["noalias"])
        assert listed(module, scopes.tape()["alias.scope"]) <= listed(module, kind(rest)["noalias"])
    assert listed(module, scopes.shadow(rest)["alias.scope"]) <= listed(module, scopes.primal(rest)["noalias"])


def test_a_scope_that_objects_share_stands_for_all_of_them():
    _, function, points_to, scopes = many_objects()
    one, other = (points_to.mask(value(function, name)) for name in ("l78", "l79"))
    metadata = scopes.shadow(one)
    assert scopes.kind_of(metadata) == ("shadow", one)
    scopes.shadow(other)
    assert scopes.kind_of(metadata) == ("shadow", one | other)


def test_the_oracle_says_nothing():
    (made,) = generated(TEXT, "ssccc", plan="save_all")
    for function in (made.pair[AUGMENTED], made.pair[REVERSE]):
        assert not any("noalias" in inst.metadata for inst in function.instructions())


def test_llvm_accepts_and_keeps_the_metadata():
    _, function = parsed(TEXT)
    made = derive(canonical(TEXT), request_of(function, "ssccc"), registry(), check=True)
    module = ll.parse_assembly(made.text)
    module.verify()
    text = str(module)
    assert "!alias.scope" in text
    augmented = text.split(f"@{made.symbols[AUGMENTED]}(", 1)[1].split("\n}", 1)[0]
    declared = augmented.index("@llvm.experimental.noalias.scope.decl")
    assert declared < augmented.index("!alias.scope")
