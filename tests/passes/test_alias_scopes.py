from __future__ import annotations

import re

import llvmlite.binding as ll

from irad.driver import derive
from irad.ir.module import Module
from irad.passes.alias_scopes import AliasScopes
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


def test_beyond_64_objects_nothing_is_said():
    allocas = "\n".join(f"  %l{i} = alloca double" for i in range(80))
    function, points_to = points_to_of(f"define void @f() {{\n{allocas}\n  ret void\n}}")
    scopes = AliasScopes(Module(), points_to)
    first, last = (points_to.mask(value(function, n)) for n in ("l0", "l79"))
    assert scopes.primal(first)
    assert scopes.primal(last) == {}
    assert scopes.primal(first | last) == {}


def test_the_oracle_says_nothing():
    (made,) = generated(TEXT, "ssccc", plan="save_all")
    for function in (made.pair.augmented, made.pair.reverse):
        assert not any("noalias" in inst.metadata for inst in function.instructions())


def test_llvm_accepts_and_keeps_the_metadata():
    _, function = parsed(TEXT)
    made = derive(canonical(TEXT), request_of(function, "ssccc"), registry(), check=True)
    module = ll.parse_assembly(made.text)
    module.verify()
    text = str(module)
    assert "!alias.scope" in text
    augmented = text.split(f"@{made.augmented}(", 1)[1].split("\n}", 1)[0]
    declared = augmented.index("@llvm.experimental.noalias.scope.decl")
    assert declared < augmented.index("!alias.scope")
